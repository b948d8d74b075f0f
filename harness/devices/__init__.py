"""Which devices this machine has, as IREE's own runtime finds them."""

from __future__ import annotations

from harness.devices.present import Presence, find_devices
from harness.devices.probe import DRIVERS, DeviceInfo, DeviceProbe, driver_of, parse_dump, probe_driver
from harness.devices.vulkan_drivers import VULKAN_DRIVERS, probe_vulkan_driver

__all__ = [
    "DRIVERS",
    "VULKAN_DRIVERS",
    "DeviceInfo",
    "DeviceProbe",
    "Presence",
    "driver_of",
    "find_devices",
    "parse_dump",
    "probe_driver",
    "probe_vulkan_driver",
]
