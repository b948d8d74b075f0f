"""Software Vulkan drivers that a suite asks for by name, and where this system keeps their manifests.

The Vulkan loader offers the devices of every driver that it finds. A device with `vulkan_driver` is of one of them:
the loader is shown that driver's manifest alone, so that `vulkan` means the same device on every machine.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.process import Limits
from harness.toolchain.probe import DeviceProbe, probe_driver
from harness.toolchain.values import Toolchain

# Both say which manifests the loader reads: the first since 1.3.207, where it wins; the second before.
_VARIABLES = ("VK_DRIVER_FILES", "VK_ICD_FILENAMES")

# Where loaders look (the system's, then what is installed by hand), and where browsers keep the driver they bring.
_FOLDERS = (
    "/usr/share/vulkan/icd.d",
    "/etc/vulkan/icd.d",
    "/usr/local/share/vulkan/icd.d",
    "/usr/local/etc/vulkan/icd.d",
    "~/.local/share/vulkan/icd.d",
    "/usr/lib/chromium",
    "/usr/lib64/chromium-browser",
    "/usr/lib/chromium-browser",
    "/opt/google/chrome",
)
_ARCHITECTURES = {"amd64": "x86_64", "arm64": "aarch64"}


@dataclass(frozen=True, kw_only=True)
class VulkanDriver:
    """A driver by the name under which suites know it.

    Attributes:
        title: What its makers call it.
        manifest: The name of its manifest's file, less the architecture that may follow and `.json`.
        install: How to get it, a sentence that is an order.
    """

    name: str
    title: str
    manifest: str
    install: str


VULKAN_DRIVERS = {
    driver.name: driver
    for driver in (
        VulkanDriver(
            name="lavapipe",
            title="Mesa's lavapipe",
            manifest="lvp_icd",
            install="install Mesa's Vulkan drivers (Debian: apt-get install mesa-vulkan-drivers)",
        ),
        VulkanDriver(
            name="swiftshader",
            title="SwiftShader",
            manifest="vk_swiftshader_icd",
            install="install Chromium, which brings it (Debian: apt-get install --no-install-recommends chromium)",
        ),
    )
}


def find_manifest(driver: VulkanDriver, folders: Sequence[str | Path] = _FOLDERS) -> Path | None:
    """Its manifest on this machine: among those that the user's own variables name, else in the known folders.

    Where a system has the driver for several architectures, it is this machine's.
    """
    named = [Path(one) for variable in _VARIABLES for one in os.environ.get(variable, "").split(os.pathsep) if one]
    listed = [file for folder in folders for file in sorted(Path(folder).expanduser().glob(f"{driver.manifest}*.json"))]
    machine = _ARCHITECTURES.get(platform.machine().lower(), platform.machine().lower())
    for wanted in (f"{driver.manifest}.{machine}.json", f"{driver.manifest}.json"):
        for file in (*named, *listed):
            if file.name == wanted and file.is_file():
                return file
    return None


def environment_for(driver: VulkanDriver) -> Mapping[str, str]:
    """Variables with which the Vulkan loader finds that driver and no other; {} where it is not on this machine."""
    manifest = find_manifest(driver)
    return {} if manifest is None else dict.fromkeys(_VARIABLES, str(manifest))


def probe_vulkan_driver(toolchain: Toolchain, driver: VulkanDriver, *, limits: Limits) -> DeviceProbe:
    """Ask the toolchain's runtime for that driver's devices."""
    environment = environment_for(driver)
    if not environment:
        reason = f"the Vulkan driver {driver.title} is not here"
        return DeviceProbe(driver="vulkan", reason=reason, advice=driver.install)
    return probe_driver(toolchain, "vulkan", limits=limits, environment=environment)
