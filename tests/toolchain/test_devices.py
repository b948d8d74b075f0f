"""Devices of drivers: asked of the real runtime, and of scripts that print what it prints on other machines."""

import platform
from pathlib import Path

import pytest

from harness.process import Limits
from harness.toolchain import Toolchain
from harness.toolchain.devices import (
    VULKAN_DRIVERS,
    DeviceInfo,
    DeviceProbe,
    environment_for,
    find_manifest,
    parse_dump,
    probe_driver,
    probe_vulkan_driver,
)
from tests.toolchain.conftest import ScriptTool

LIMITS = Limits(seconds=60)


# What follows the source position in what iree-run-module prints elsewhere.
NO_LOADER = "NOT_FOUND; Vulkan loader library not found; ensure it is installed:\n  Tried: libvulkan.so.1\n"
LIBCUDA = "CUDA driver library 'libcuda.so'/'nvcuda.dll' not available"
NO_CUDA = f"UNAVAILABLE; {LIBCUDA}; please ensure installed and in dynamic library search path"
NO_HIP = "UNAVAILABLE; HIP runtime library not available"


@pytest.mark.parametrize(
    ("driver", "printed", "advice", "detail"),
    [
        ("vulkan", NO_LOADER, "install the Vulkan loader and a", "NOT_FOUND: Vulkan loader library not found"),
        ("cuda", NO_CUDA, "install the NVIDIA driver", f"UNAVAILABLE: {LIBCUDA}"),
        ("hip", NO_HIP, "install AMD's ROCm runtime", NO_HIP.replace(";", ":")),
        ("metal", "", "run iree-run-module --list_devices=metal and see what it says", ""),
    ],
)
def test_advice_fits_the_reason(driver: str, printed: str, advice: str, detail: str, script_tool: ScriptTool) -> None:
    printed = f"\033[31mFLAGS ERROR: (oops)\033[0m\nc/runtime/src/iree/hal/drivers/x.c:641: {printed}"
    probe = probe_driver(script_tool(f"cat >&2 <<'END'\n{printed}\nEND\nexit 1"), driver, limits=LIMITS)
    title = {"vulkan": "Vulkan", "metal": "metal"}.get(driver, driver.upper())
    assert (probe.devices, probe.reason, probe.detail) == ((), f"no {title} device", detail)
    assert str(probe.advice).startswith(advice)


HANGS = "look into the system's CUDA driver: it ends or hangs when it is asked for its devices"


@pytest.mark.parametrize(
    ("commands", "reason", "advice"),
    [
        ("exit 0", "no CUDA device", "check that nvidia-smi lists a GPU here"),
        ("sleep 60", "the search for CUDA devices ran past its limit of 2 s", HANGS),
        (None, "iree-run-module cannot be started: No such file or directory", "install iree-base-runtime again"),
    ],
    ids=["lists nothing", "hangs", "is not there"],
)
def test_a_tool_that_finds_nothing(commands: str | None, reason: str, advice: str, script_tool: ScriptTool) -> None:
    toolchain = script_tool(commands or "")
    if commands is None:
        toolchain.runtime_tool("iree-run-module").unlink()
    found = probe_driver(toolchain, "cuda", limits=Limits(seconds=2))
    assert found == DeviceProbe(driver="cuda", reason=reason, advice=advice)


VULKAN = """\
# ===----------------------------------------------------------------------===
# --device=vulkan://GPU-6d65
#   llvmpipe (LLVM 15.0.6, 256 bits) (llvmpipe Mesa 22.3.6 (LLVM 15.0.6))
# ===----------------------------------------------------------------------===
name: llvmpipe (LLVM 15.0.6, 256 bits)
api: 1.3.230
type: cpu
driver_info: Mesa 22.3.6 (LLVM 15.0.6)
memory_heaps: 1
  [0] size=2147483648 flags=0x00000001
"""
CUDA = (
    "# --device=cuda://GPU-a\n#   NVIDIA H200\n# ===\n- gpu-compute-capability: 9.0\n- driver-max-cuda-version: 12.8\n"
)
HIP = "# --device=hip://GPU-1\n#   AMD Instinct MI300X\n# ===\n- gpu-arch-name: gfx942\n- gpu-warp-size: 64\n"


def test_fields_of_dumped_devices() -> None:
    (llvmpipe,) = parse_dump(VULKAN)
    assert llvmpipe == DeviceInfo(
        uri="vulkan://GPU-6d65",
        name="llvmpipe (LLVM 15.0.6, 256 bits)",
        driver_version="Mesa 22.3.6 (LLVM 15.0.6)",
        api="Vulkan 1.3.230",
        kind="cpu",
    )
    assert llvmpipe.is_software
    assert parse_dump(HIP) == [DeviceInfo(uri="hip://GPU-1", name="AMD Instinct MI300X", api="gfx942")]
    (h200,) = parse_dump(CUDA)
    assert (h200.name, h200.driver_version, h200.api) == ("NVIDIA H200", "CUDA 12.8", "compute capability 9.0")


def test_devices_keep_the_order_of_the_list_and_need_no_names(script_tool: ScriptTool) -> None:
    commands = f"case $1 in\n--list*) echo cuda://GPU-b; echo cuda://GPU-a;;\n*) cat <<'END'\n{CUDA}END\nesac"
    found = probe_driver(script_tool(commands), "cuda", limits=LIMITS).devices
    assert [(device.uri, device.name) for device in found] == [("cuda://GPU-b", ""), ("cuda://GPU-a", "NVIDIA H200")]


LAVAPIPE, SWIFTSHADER = VULKAN_DRIVERS["lavapipe"], VULKAN_DRIVERS["swiftshader"]


@pytest.fixture(autouse=True)
def no_drivers_of_the_user(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("VK_DRIVER_FILES", "VK_ICD_FILENAMES"):
        monkeypatch.delenv(variable, raising=False)


def written(folder: Path, *names: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        (folder / name).write_text("{}")
    return folder


def test_a_manifest_is_found_by_its_drivers_name_and_this_machines_architecture(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    near = written(tmp_path / "near", "intel_icd.x86_64.json", "vk_swiftshader_icd.json", "lvp_icd.json")
    far = written(tmp_path / "far", "lvp_icd.json")
    assert find_manifest(SWIFTSHADER, [tmp_path / "nowhere", near, far]) == near / "vk_swiftshader_icd.json"
    assert find_manifest(LAVAPIPE, [tmp_path / "nowhere", near, far]) == near / "lvp_icd.json", "in the first folder"
    several = written(tmp_path / "several", "lvp_icd.aarch64.json", "lvp_icd.x86_64.json")
    for machine, name in (("AMD64", "lvp_icd.x86_64.json"), ("arm64", "lvp_icd.aarch64.json")):
        monkeypatch.setattr(platform, "machine", lambda machine=machine: machine)
        assert find_manifest(LAVAPIPE, [several]) == several / name
    monkeypatch.setattr(platform, "machine", lambda: "riscv64")
    assert find_manifest(LAVAPIPE, [several]) is None


def test_what_the_users_own_variable_names_comes_first_and_all_loaders_are_shown_it(
    real_toolchain: Toolchain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    system, own = (written(tmp_path / name, "vk_swiftshader_icd.json") for name in ("system", "own"))
    manifest = own / "vk_swiftshader_icd.json"
    monkeypatch.setenv("VK_DRIVER_FILES", f"/gone/intel_icd.json:{manifest}")
    assert find_manifest(SWIFTSHADER, [system]) == manifest
    assert environment_for(SWIFTSHADER) == {"VK_DRIVER_FILES": str(manifest), "VK_ICD_FILENAMES": str(manifest)}
    monkeypatch.setattr("harness.toolchain.devices.find_manifest", lambda _: None)
    found = probe_vulkan_driver(real_toolchain, SWIFTSHADER, limits=LIMITS)
    assert (found.reason, found.advice) == ("the Vulkan driver SwiftShader is not here", SWIFTSHADER.install)


@pytest.mark.vulkan
@pytest.mark.parametrize(("name", "word"), [("lavapipe", "llvmpipe"), ("swiftshader", "SwiftShader")])
def test_only_the_drivers_own_devices_are_seen(real_toolchain: Toolchain, name: str, word: str) -> None:
    driver = VULKAN_DRIVERS[name]
    if find_manifest(driver) is None:
        pytest.skip(f"{driver.title} is not here; {driver.install}")
    found = probe_vulkan_driver(real_toolchain, driver, limits=LIMITS)
    assert found.reason is None
    assert all(word in device.name and device.is_software for device in found.devices)
    assert all(device.api.startswith("Vulkan 1.") for device in found.devices)
