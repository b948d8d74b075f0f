"""Devices of drivers: asked of the real runtime, and of scripts that print what it prints on other machines."""

from __future__ import annotations

import platform
import sys
from pathlib import Path

import pytest

from harness.process import Limits
from harness.toolchain import Toolchain
from harness.toolchain.devices import (
    VULKAN_DRIVERS,
    DeviceInfo,
    DeviceProbe,
    driver_of,
    environment_for,
    find_manifest,
    parse_dump,
    probe_driver,
    probe_vulkan_driver,
)
from tests.toolchain.conftest import ScriptTool

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
def test_a_vulkan_device_has_a_name_and_versions(real_toolchain: Toolchain) -> None:
    found = probe_driver(real_toolchain, "vulkan", limits=LIMITS)
    assert found.reason is found.advice is None
    device = found.devices[0]
    assert device.uri.startswith("vulkan://GPU-")
    assert device.name
    assert device.driver_version
    assert device.api.startswith("Vulkan 1.")
    assert device.is_software is (device.kind == "cpu")


def test_vulkan_without_a_driver(real_toolchain: Toolchain, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for variable in ("VK_DRIVER_FILES", "VK_ICD_FILENAMES"):  # newer and older loaders
        monkeypatch.setenv(variable, str(tmp_path / "no-driver.json"))
    found = probe_driver(real_toolchain, "vulkan", limits=LIMITS)
    assert found.devices == ()
    assert found.reason == "no Vulkan device"
    assert found.advice is not None
    assert "mesa-vulkan-drivers" in found.advice
    assert found.detail


@pytest.mark.parametrize("driver", ["cuda", "hip"])
def test_gpu_drivers_answer_with_devices_or_with_sentences(driver: str, real_toolchain: Toolchain) -> None:
    found = probe_driver(real_toolchain, driver, limits=LIMITS)
    if found.devices:
        assert found.reason is None
        assert all(device.uri.startswith(f"{driver}://") for device in found.devices)
    else:
        assert found.reason == f"no {driver.upper()} device"
        assert found.advice is not None
        assert " " in found.advice
        assert "dylib" not in found.detail
        assert "/runtime/" not in found.detail


def test_a_driver_that_the_runtime_does_not_have(real_toolchain: Toolchain) -> None:
    found = probe_driver(real_toolchain, "abacus", limits=LIMITS)
    assert found.reason == "this IREE was built without its abacus driver"
    assert found.detail == "NOT_FOUND: no driver 'abacus' registered"


NO_LOADER = f"""\
{SOURCE}/vulkan/util/libvulkan.c:641: NOT_FOUND; Vulkan loader library not found; ensure it is installed:
  Tried: libvulkan.so.1
    c/runtime/src/iree/base/internal/dynamic_library_posix.c:165: NOT_FOUND; failed to load dynamic library"""


@posix
@pytest.mark.parametrize(
    ("driver", "message", "reason", "advice", "detail"),
    [
        (
            "vulkan",
            NO_LOADER,
            "no Vulkan device",
            "install the Vulkan loader and a Vulkan driver; a software one will do "
            "(Debian: apt-get install libvulkan1 mesa-vulkan-drivers)",
            "NOT_FOUND: Vulkan loader library not found",
        ),
        (
            "vulkan",
            f"{SOURCE}/vulkan/physical_device.c:441: UNAVAILABLE; [vkCreateInstance] VK_ERROR_INCOMPATIBLE_DRIVER",
            "no Vulkan device",
            "install a Vulkan driver; a software one will do (Debian: apt-get install mesa-vulkan-drivers)",
            "UNAVAILABLE: [vkCreateInstance] VK_ERROR_INCOMPATIBLE_DRIVER",
        ),
        (
            "cuda",
            f"{SOURCE}/cuda/cuda_dynamic_symbols.c:66: UNAVAILABLE; CUDA driver library 'libcuda.so'/'nvcuda.dll' not "
            "available; please ensure installed and in dynamic library search path",
            "no CUDA device",
            "install the NVIDIA driver (libcuda)",
            "UNAVAILABLE: CUDA driver library 'libcuda.so'/'nvcuda.dll' not available",
        ),
        (
            "cuda",
            f"{SOURCE}/cuda/cuda_driver.c:200: UNKNOWN; CUDA driver error 'CUDA_ERROR_NO_DEVICE' (100)",
            "no CUDA device",
            "check that nvidia-smi lists a GPU here",
            "UNKNOWN: CUDA driver error 'CUDA_ERROR_NO_DEVICE' (100)",
        ),
        (
            "hip",
            f"{SOURCE}/hip/x.c:1: UNAVAILABLE; HIP runtime library not available",
            "no HIP device",
            "install AMD's ROCm runtime (libamdhip64)",
            "UNAVAILABLE: HIP runtime library not available",
        ),
        ("hip", "no status line", "no HIP device", "check that rocminfo lists a GPU here", ""),
        ("metal", "", "no metal device", "run iree-run-module --list_devices=metal and see what it says", ""),
    ],
)
def test_a_reason_comes_with_the_advice_that_fits_it(
    driver: str, message: str, reason: str, advice: str, detail: str, script_tool: ScriptTool
) -> None:
    probe = probe_driver(script_tool(failing(message)), driver, limits=LIMITS)
    assert probe == DeviceProbe(driver=driver, reason=reason, advice=advice, detail=detail)


SEARCH = "the search for CUDA devices"
HANGS = "look into the system's CUDA driver: it ends or hangs when it is asked for its devices"


@posix
@pytest.mark.parametrize(
    ("commands", "reason", "advice"),
    [
        ("exit 0", "no CUDA device", "check that nvidia-smi lists a GPU here"),
        ("sleep 60", f"{SEARCH} ran past its limit of 2 s", HANGS),
        ("kill -SEGV $$", f"{SEARCH} was ended by SIGSEGV", HANGS),
        (None, "iree-run-module cannot be started: No such file or directory", "install iree-base-runtime again"),
    ],
    ids=["lists nothing", "hangs", "crashes", "is not there"],
)
def test_a_tool_that_finds_nothing(commands: str | None, reason: str, advice: str, script_tool: ScriptTool) -> None:
    toolchain = script_tool(commands or "")
    if commands is None:
        toolchain.runtime_tool("iree-run-module").unlink()
    found = probe_driver(toolchain, "cuda", limits=Limits(seconds=2))
    assert found == DeviceProbe(driver="cuda", reason=reason, advice=advice)


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


# ------------------------------------------------------------------------------------- software Vulkan drivers by name

LAVAPIPE, SWIFTSHADER = VULKAN_DRIVERS["lavapipe"], VULKAN_DRIVERS["swiftshader"]


@pytest.fixture
def no_drivers_of_the_user(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("VK_DRIVER_FILES", "VK_ICD_FILENAMES"):
        monkeypatch.delenv(variable, raising=False)


def written(folder: Path, *names: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        (folder / name).write_text("{}")
    return folder


@pytest.mark.usefixtures("no_drivers_of_the_user")
def test_a_manifest_is_found_by_its_drivers_name_among_others(tmp_path: Path) -> None:
    folder = written(tmp_path, "intel_icd.x86_64.json", "vk_swiftshader_icd.json", "lvp_icd.json")
    assert find_manifest(SWIFTSHADER, [folder]) == folder / "vk_swiftshader_icd.json"
    assert find_manifest(LAVAPIPE, [folder]) == folder / "lvp_icd.json"


@pytest.mark.usefixtures("no_drivers_of_the_user")
def test_of_several_architectures_it_is_this_machines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = written(tmp_path, "lvp_icd.aarch64.json", "lvp_icd.i686.json", "lvp_icd.x86_64.json")
    for machine, architecture in (("x86_64", "x86_64"), ("AMD64", "x86_64"), ("arm64", "aarch64")):
        monkeypatch.setattr(platform, "machine", lambda machine=machine: machine)
        assert find_manifest(LAVAPIPE, [folder]) == folder / f"lvp_icd.{architecture}.json"
    monkeypatch.setattr(platform, "machine", lambda: "riscv64")
    assert find_manifest(LAVAPIPE, [folder]) is None


@pytest.mark.usefixtures("no_drivers_of_the_user")
def test_folders_are_searched_in_order_and_may_be_missing(tmp_path: Path) -> None:
    near, far = (written(tmp_path / name, "lvp_icd.json") for name in ("near", "far"))
    assert find_manifest(LAVAPIPE, [tmp_path / "nowhere", near, far]) == near / "lvp_icd.json"


@pytest.mark.usefixtures("no_drivers_of_the_user")
def test_what_the_users_own_variable_names_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    system, own = (written(tmp_path / name, "lvp_icd.json") for name in ("system", "own"))
    monkeypatch.setenv("VK_DRIVER_FILES", f"/gone/intel_icd.json:{own / 'lvp_icd.json'}")
    assert find_manifest(LAVAPIPE, [system]) == own / "lvp_icd.json"
    assert find_manifest(SWIFTSHADER, [system]) is None


@pytest.mark.usefixtures("no_drivers_of_the_user")
def test_loaders_old_and_new_are_shown_that_manifest_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    manifest = written(tmp_path, "vk_swiftshader_icd.json") / "vk_swiftshader_icd.json"
    monkeypatch.setenv("VK_ICD_FILENAMES", str(manifest))
    assert environment_for(SWIFTSHADER) == {"VK_DRIVER_FILES": str(manifest), "VK_ICD_FILENAMES": str(manifest)}


def test_a_driver_that_is_not_here_is_told_with_the_way_to_get_it(
    real_toolchain: Toolchain, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("harness.toolchain.devices.find_manifest", lambda _: None)
    found = probe_vulkan_driver(real_toolchain, SWIFTSHADER, limits=LIMITS)
    assert found.devices == ()
    assert found.reason == "the Vulkan driver SwiftShader is not here"
    assert found.advice is not None
    assert "apt-get install --no-install-recommends chromium" in found.advice


@pytest.mark.usefixtures("no_drivers_of_the_user")
@pytest.mark.vulkan
@pytest.mark.parametrize(("name", "word"), [("lavapipe", "llvmpipe"), ("swiftshader", "SwiftShader")])
def test_only_the_drivers_own_devices_are_seen(real_toolchain: Toolchain, name: str, word: str) -> None:
    driver = VULKAN_DRIVERS[name]
    if find_manifest(driver) is None:
        pytest.skip(f"{driver.title} is not here; {driver.install}")
    found = probe_vulkan_driver(real_toolchain, driver, limits=LIMITS)
    assert found.reason is None
    assert all(word in device.name for device in found.devices)
    assert all(device.is_software for device in found.devices)
