"""What drivers offer: asked of the real runtime, and of scripts that print what it prints on other machines."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.process import Limits
from harness.toolchain.devices import DRIVERS, DeviceInfo, DeviceProbe, driver_of, parse_dump, probe_driver
from harness.toolchain.find import Toolchain

ScriptTool = Callable[[str], Toolchain]

LIMITS = Limits(seconds=60)
SOURCE = "c/runtime/src/iree/hal/drivers"

posix = pytest.mark.skipif(sys.platform == "win32", reason="the scripts are shell scripts")


def failing(message: str) -> str:
    """Shell commands that fail as iree-run-module does: a coloured line, then source position, code and sentence."""
    return f"printf '\\033[31mFLAGS ERROR: (oops)\\033[0m\\n' >&2\ncat >&2 <<'END'\n{message}\nEND\nexit 1"


@pytest.mark.parametrize(
    ("uri", "driver"),
    [("local-sync", "local-sync"), ("local-task://", "local-task"), ("vulkan://GPU-6d65", "vulkan"), ("cuda", "cuda")],
)
def test_driver_of_a_uri(uri: str, driver: str) -> None:
    assert driver_of(uri) == driver


@pytest.mark.parametrize("driver", ["local-sync", "local-task"])
def test_local_devices_are_there_without_asking(driver: str, script_tool: ScriptTool) -> None:
    found = probe_driver(script_tool("exit 1"), driver, limits=LIMITS)
    assert [device.uri for device in found.devices] == [driver]
    assert found.devices[0].name.startswith("this CPU, on ")
    assert found.reason is found.advice is None


@pytest.mark.vulkan
def test_a_vulkan_device_has_a_name_and_versions(toolchain: Toolchain) -> None:
    found = probe_driver(toolchain, "vulkan", limits=LIMITS)
    assert found.reason is found.advice is None
    device = found.devices[0]
    assert device.uri.startswith("vulkan://GPU-")
    assert device.name
    assert device.driver_version
    assert device.api.startswith("Vulkan 1.")
    assert device.is_software is (device.kind == "cpu")


def test_vulkan_without_a_driver(toolchain: Toolchain, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for variable in ("VK_DRIVER_FILES", "VK_ICD_FILENAMES"):  # newer and older loaders
        monkeypatch.setenv(variable, str(tmp_path / "no-driver.json"))
    found = probe_driver(toolchain, "vulkan", limits=LIMITS)
    assert found.devices == ()
    assert found.reason == "no Vulkan device"
    assert found.advice is not None
    assert "mesa-vulkan-drivers" in found.advice
    assert found.detail


@pytest.mark.parametrize("driver", ["cuda", "hip"])
def test_gpu_drivers_answer_with_devices_or_with_sentences(driver: str, toolchain: Toolchain) -> None:
    found = probe_driver(toolchain, driver, limits=LIMITS)
    if found.devices:
        assert found.reason is None
        assert all(device.uri.startswith(f"{driver}://") for device in found.devices)
    else:
        assert found.reason == f"no {driver.upper()} device"
        assert found.advice is not None
        assert " " in found.advice
        assert "dylib" not in found.detail
        assert "/runtime/" not in found.detail


def test_a_driver_that_the_runtime_does_not_have(toolchain: Toolchain) -> None:
    found = probe_driver(toolchain, "abacus", limits=LIMITS)
    assert found.reason == "this IREE was built without its abacus driver"
    assert found.detail == "NOT_FOUND: no driver 'abacus' registered"


NO_LOADER = f"""\
{SOURCE}/vulkan/util/libvulkan.c:641: NOT_FOUND; Vulkan loader library not found; ensure it is installed:
  Tried: libvulkan.so.1
    c/runtime/src/iree/base/internal/dynamic_library_posix.c:165: NOT_FOUND; failed to load dynamic library"""


@posix
@pytest.mark.parametrize(
    ("driver", "message", "expected"),
    [
        (
            "vulkan",
            NO_LOADER,
            DeviceProbe(
                driver="vulkan",
                reason="no Vulkan device",
                advice="install the Vulkan loader and a Vulkan driver; a software one will do "
                "(Debian: apt-get install libvulkan1 mesa-vulkan-drivers)",
                detail="NOT_FOUND: Vulkan loader library not found",
            ),
        ),
        (
            "vulkan",
            f"{SOURCE}/vulkan/physical_device.c:441: UNAVAILABLE; [vkCreateInstance] VK_ERROR_INCOMPATIBLE_DRIVER",
            DeviceProbe(
                driver="vulkan",
                reason="no Vulkan device",
                advice="install a Vulkan driver; a software one will do (Debian: apt-get install mesa-vulkan-drivers)",
                detail="UNAVAILABLE: [vkCreateInstance] VK_ERROR_INCOMPATIBLE_DRIVER",
            ),
        ),
        (
            "cuda",
            f"{SOURCE}/cuda/cuda_dynamic_symbols.c:66: UNAVAILABLE; CUDA driver library 'libcuda.so'/'nvcuda.dll' not "
            "available; please ensure installed and in dynamic library search path",
            DeviceProbe(
                driver="cuda",
                reason="no CUDA device",
                advice="install the NVIDIA driver (libcuda)",
                detail="UNAVAILABLE: CUDA driver library 'libcuda.so'/'nvcuda.dll' not available",
            ),
        ),
        (
            "cuda",
            f"{SOURCE}/cuda/cuda_driver.c:200: UNKNOWN; CUDA driver error 'CUDA_ERROR_NO_DEVICE' (100)",
            DeviceProbe(
                driver="cuda",
                reason="no CUDA device",
                advice="check that nvidia-smi lists a GPU here",
                detail="UNKNOWN: CUDA driver error 'CUDA_ERROR_NO_DEVICE' (100)",
            ),
        ),
        (
            "hip",
            "something that is no status line",
            DeviceProbe(driver="hip", reason="no HIP device", advice="check that rocminfo lists a GPU here"),
        ),
        (
            "metal",
            "",
            DeviceProbe(
                driver="metal",
                reason="no metal device",
                advice="run iree-run-module --list_devices=metal and see what it says",
            ),
        ),
    ],
)
def test_a_reason_comes_with_the_advice_that_fits_it(
    driver: str, message: str, expected: DeviceProbe, script_tool: ScriptTool
) -> None:
    assert probe_driver(script_tool(failing(message)), driver, limits=LIMITS) == expected


@posix
def test_a_driver_that_lists_nothing_has_no_device(script_tool: ScriptTool) -> None:
    found = probe_driver(script_tool("exit 0"), "vulkan", limits=LIMITS)
    assert (found.reason, found.devices) == ("no Vulkan device", ())


@posix
def test_a_driver_that_hangs_is_stopped(script_tool: ScriptTool) -> None:
    found = probe_driver(script_tool("sleep 60"), "cuda", limits=Limits(seconds=0.2))
    assert found.reason == "the search for CUDA devices ran past its limit of 0.2 s"
    assert found.advice == "look into the system's CUDA driver: it ends or hangs when it is asked for its devices"


@posix
def test_a_driver_that_crashes_is_a_reason(script_tool: ScriptTool) -> None:
    found = probe_driver(script_tool("kill -SEGV $$"), "hip", limits=LIMITS)
    assert found.reason == "the search for HIP devices was ended by SIGSEGV"


def test_a_tool_that_is_not_there_is_a_reason(tmp_path: Path, toolchain: Toolchain) -> None:
    gone = Toolchain(
        version="",
        revision="",
        compiler_sha256="",
        python=toolchain.python,
        compiler_tools=tmp_path,
        runtime_tools=tmp_path,
    )
    found = probe_driver(gone, "vulkan", limits=LIMITS)
    assert found.reason == "iree-run-module cannot be started: No such file or directory"
    assert found.advice == "install iree-base-runtime again"


TWO_GPUS = """\
# ============================================================================
# Enumerated devices for driver 'cuda'
# ============================================================================

# ===----------------------------------------------------------------------===
# --device=cuda://GPU-aaaa
#   NVIDIA H200
# ===----------------------------------------------------------------------===
- gpu-compute-capability: 9.0
- driver-max-cuda-version: 12.8
- launch-max-grid-dims: (2147483647, 65535, 65535)

# ===----------------------------------------------------------------------===
# --device=cuda://GPU-bbbb
#   NVIDIA T4
# ===----------------------------------------------------------------------===
- gpu-compute-capability: 7.5
- driver-max-cuda-version: 12.8
"""


@posix
def test_several_devices_keep_the_order_of_the_list(script_tool: ScriptTool) -> None:
    commands = f"""case $1 in
--list_devices=cuda) echo cuda://GPU-bbbb; echo cuda://GPU-aaaa; echo cuda://GPU-cccc;;
*) cat <<'END'
{TWO_GPUS}
END
esac"""
    found = probe_driver(script_tool(commands), "cuda", limits=LIMITS)
    assert found.devices == (
        DeviceInfo(uri="cuda://GPU-bbbb", name="NVIDIA T4", driver_version="CUDA 12.8", api="compute capability 7.5"),
        DeviceInfo(uri="cuda://GPU-aaaa", name="NVIDIA H200", driver_version="CUDA 12.8", api="compute capability 9.0"),
        DeviceInfo(uri="cuda://GPU-cccc", name=""),
    )


VULKAN = """\
# ===----------------------------------------------------------------------===
# --device=vulkan://GPU-6d65
#   llvmpipe (LLVM 15.0.6, 256 bits) (llvmpipe Mesa 22.3.6 (LLVM 15.0.6))
# ===----------------------------------------------------------------------===
name: llvmpipe (LLVM 15.0.6, 256 bits)
path: GPU-6d65
api: 1.3.230
type: cpu
vendor_id: 0x10005
driver: llvmpipe
driver_info: Mesa 22.3.6 (LLVM 15.0.6)
feature_tier[vulkan-1.3]: supported
memory_heaps: 1
  [0] size=2147483648 flags=0x00000001
"""


def test_fields_of_a_dumped_vulkan_device() -> None:
    assert parse_dump(VULKAN) == [
        DeviceInfo(
            uri="vulkan://GPU-6d65",
            name="llvmpipe (LLVM 15.0.6, 256 bits)",
            driver_version="Mesa 22.3.6 (LLVM 15.0.6)",
            api="Vulkan 1.3.230",
            kind="cpu",
        )
    ]
    assert parse_dump(VULKAN)[0].is_software


def test_a_hip_device_is_known_by_its_architecture() -> None:
    dump = "# --device=hip://GPU-1\n#   AMD Instinct MI300X\n# ===\n- gpu-arch-name: gfx942\n- gpu-warp-size: 64\n"
    assert parse_dump(dump) == [DeviceInfo(uri="hip://GPU-1", name="AMD Instinct MI300X", api="gfx942")]


def test_a_dump_without_devices() -> None:
    assert parse_dump("# Enumerated devices for driver 'cuda'\n") == []


def test_the_local_drivers_come_first() -> None:
    assert DRIVERS[:2] == ("local-sync", "local-task")
