"""Software Vulkan drivers by name: where their manifests are found, and that the loader then sees them alone."""

from __future__ import annotations

import platform
from pathlib import Path

import pytest

from harness.process import Limits
from harness.toolchain.devices import VULKAN_DRIVERS, environment_for, find_manifest, probe_vulkan_driver
from harness.toolchain.find import Toolchain

LAVAPIPE, SWIFTSHADER = VULKAN_DRIVERS["lavapipe"], VULKAN_DRIVERS["swiftshader"]
LIMITS = Limits(seconds=60)


@pytest.fixture(autouse=True)
def _no_drivers_of_the_users(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("VK_DRIVER_FILES", "VK_ICD_FILENAMES"):
        monkeypatch.delenv(variable, raising=False)


def written(folder: Path, *names: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        (folder / name).write_text("{}")
    return folder


def test_a_manifest_is_found_by_its_drivers_name_among_others(tmp_path: Path) -> None:
    folder = written(tmp_path, "intel_icd.x86_64.json", "vk_swiftshader_icd.json", "lvp_icd.json")
    assert find_manifest(SWIFTSHADER, [folder]) == folder / "vk_swiftshader_icd.json"
    assert find_manifest(LAVAPIPE, [folder]) == folder / "lvp_icd.json"


def test_of_several_architectures_it_is_this_machines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = written(tmp_path, "lvp_icd.aarch64.json", "lvp_icd.i686.json", "lvp_icd.x86_64.json")
    for machine, architecture in (("x86_64", "x86_64"), ("AMD64", "x86_64"), ("arm64", "aarch64")):
        monkeypatch.setattr(platform, "machine", lambda machine=machine: machine)
        assert find_manifest(LAVAPIPE, [folder]) == folder / f"lvp_icd.{architecture}.json"
    monkeypatch.setattr(platform, "machine", lambda: "riscv64")
    assert find_manifest(LAVAPIPE, [folder]) is None


def test_folders_are_searched_in_order_and_may_be_missing(tmp_path: Path) -> None:
    near, far = (written(tmp_path / name, "lvp_icd.json") for name in ("near", "far"))
    assert find_manifest(LAVAPIPE, [tmp_path / "nowhere", near, far]) == near / "lvp_icd.json"


def test_what_the_users_own_variable_names_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    system, own = (written(tmp_path / name, "lvp_icd.json") for name in ("system", "own"))
    monkeypatch.setenv("VK_DRIVER_FILES", f"/gone/intel_icd.json:{own / 'lvp_icd.json'}")
    assert find_manifest(LAVAPIPE, [system]) == own / "lvp_icd.json"
    assert find_manifest(SWIFTSHADER, [system]) is None


def test_loaders_old_and_new_are_shown_that_manifest_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    manifest = written(tmp_path, "vk_swiftshader_icd.json") / "vk_swiftshader_icd.json"
    monkeypatch.setenv("VK_ICD_FILENAMES", str(manifest))
    assert environment_for(SWIFTSHADER) == {"VK_DRIVER_FILES": str(manifest), "VK_ICD_FILENAMES": str(manifest)}


def test_a_driver_that_is_not_here_is_told_with_the_way_to_get_it(
    toolchain: Toolchain, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("harness.toolchain.devices.find_manifest", lambda _: None)
    found = probe_vulkan_driver(toolchain, SWIFTSHADER, limits=LIMITS)
    assert found.devices == ()
    assert found.reason == "the Vulkan driver SwiftShader is not here"
    assert found.advice is not None
    assert "apt-get install --no-install-recommends chromium" in found.advice


@pytest.mark.vulkan
@pytest.mark.parametrize(("name", "word"), [("lavapipe", "llvmpipe"), ("swiftshader", "SwiftShader")])
def test_only_the_drivers_own_devices_are_seen(toolchain: Toolchain, name: str, word: str) -> None:
    driver = VULKAN_DRIVERS[name]
    if find_manifest(driver) is None:
        pytest.skip(f"{driver.title} is not here; {driver.install}")
    found = probe_vulkan_driver(toolchain, driver, limits=LIMITS)
    assert found.reason is None
    assert all(word in device.name for device in found.devices)
    assert all(device.is_software for device in found.devices)
