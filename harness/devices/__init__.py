"""Which devices this machine has, as IREE's own runtime finds them."""

from __future__ import annotations

from harness.devices.probe import DRIVERS, DeviceInfo, DeviceProbe, driver_of, parse_dump, probe_driver

__all__ = ["DRIVERS", "DeviceInfo", "DeviceProbe", "driver_of", "parse_dump", "probe_driver"]
