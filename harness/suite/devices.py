"""A suite's devices: which of them are on this machine, and which hosts of a fleet they are for."""

import fnmatch
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from typing import TypeAlias

from harness.errors import SuiteError
from harness.process import Limits
from harness.suite.load import Device, Suite
from harness.text import did_you_mean, matching
from harness.toolchain.devices import (
    DRIVERS,
    PROCESSORS,
    VULKAN_DRIVERS,
    DeviceInfo,
    DeviceProbe,
    VulkanDriver,
    driver_of,
    environment_for,
    probe_driver,
    probe_vulkan_driver,
)
from harness.toolchain.find import Toolchain

_PROBE_LIMITS = Limits(seconds=60)
# A runtime may be built without some of IREE's drivers; any other driver that offers nothing is a misspelt name.
_DRIVERS = (*DRIVERS, "amdgpu", "metal", "null", "webgpu")
# What a driver by name offers, through that driver of Vulkan where a suite says which.
Probe: TypeAlias = Callable[[str, VulkanDriver | None], DeviceProbe]


@dataclass(frozen=True, kw_only=True)
class Presence:
    """Whether one of a suite's devices is on this machine, and what it is."""

    facts: str = ""  # Name and versions of the device, or of all its devices, joined by ` + `; "" where one is missing
    # Name of the device, or of all its devices, joined by ` + `; "" for processors, which runs describe anyway.
    name: str = ""
    missing: str | None = None  # Why it is not there, as a sentence; None: it is there
    environment: Mapping[str, str] = field(default_factory=dict)  # Variables that every process on it needs


def find_devices(suite: Suite, toolchain: Toolchain) -> dict[str, Presence]:
    """Each of the suite's devices by name, as a toolchain's runtime sees it. It asks every driver once."""

    @cache
    def probe(driver: str, chosen: VulkanDriver | None) -> DeviceProbe:
        if chosen is not None and driver == "vulkan":
            return probe_vulkan_driver(toolchain, chosen, limits=_PROBE_LIMITS)
        return probe_driver(toolchain, driver, limits=_PROBE_LIMITS)

    return devices_among(suite, probe, environment_for)


def devices_among(
    suite: Suite, probe: Probe, environment: Callable[[VulkanDriver], Mapping[str, str]]
) -> dict[str, Presence]:
    """Each of the suite's devices by name, among those that a machine's drivers offer, this one or another."""
    found = {}
    for device in suite.devices:
        chosen = VULKAN_DRIVERS[device.vulkan_driver] if device.vulkan_driver is not None else None
        infos = []
        for uri in device.uris:
            name = driver_of(uri)
            offered = probe(name, chosen)
            if offered.reason is not None and name not in _DRIVERS:
                hint = did_you_mean(name, _DRIVERS)
                raise SuiteError(f"{suite.path}: [devices.{device.name}] uri: there is no driver {name!r}{hint}")
            infos.append(_by_uri(offered, uri))
        missing = next((info for info in infos if isinstance(info, str)), None)
        here = [info for info in infos if isinstance(info, DeviceInfo)]
        found[device.name] = Presence(
            facts=" + ".join(info.facts for info in here),
            name=" + ".join(info.name for info in here if driver_of(info.uri) not in PROCESSORS and info.name),
            environment=environment(chosen) if chosen is not None else {},
        )
        if missing is not None:
            found[device.name] = Presence(missing=missing)
    return found


def why_gone(uris: Iterable[str], toolchain: Toolchain, environment: Mapping[str, str]) -> str:
    """Why a device that was here is not here now, as a clause; "": all of it is."""
    for uri in uris:
        probe = probe_driver(toolchain, driver_of(uri), limits=_PROBE_LIMITS, environment=environment)
        if isinstance(found := _by_uri(probe, uri), str):
            return f"device {uri} is gone: {found}"
    return ""


def _by_uri(probe: DeviceProbe, uri: str) -> DeviceInfo | str:
    """The device of that URI, or why it is not there, as a sentence."""
    if probe.reason is not None:
        return f"{probe.reason}; {probe.advice}" if probe.advice else probe.reason
    wanted = uri.partition("://")[2]
    if not wanted:
        return probe.devices[0]
    if wanted.isdecimal() and int(wanted) < len(probe.devices):
        return probe.devices[int(wanted)]
    named = next((device for device in probe.devices if device.uri == uri), None)
    return named or f"no device {uri}; {probe.driver} has {', '.join(device.uri for device in probe.devices)}"


# --- `on` and `hosts` of [devices.NAME], which only a fleet looks at ---


def fits(device: Device, host: str, machine_class: str) -> bool:
    """Whether a device may be measured on a host, as far as the suite says."""
    if device.host:
        return device.host == host
    return fnmatch.fnmatchcase(host, device.on) or fnmatch.fnmatchcase(machine_class, device.on)


def each_host(suite: Suite, hosts: Mapping[str, str]) -> Suite:
    """The suite with one device, `<device>.<host>`, for each host that fits a device with hosts = "each".

    What it says of cases on the device holds on each of them. `hosts` has the class of each, by its name.
    """
    becomes = _becoming(suite, hosts)
    names = {device.name for device in suite.devices}
    for name, devices in becomes.items():
        for device in devices:
            if device.name in names:
                raise SuiteError(
                    f"{suite.path}: [devices.{device.name}] has the name of [devices.{name}] on host {device.host}; "
                    "rename one of them"
                )
    widened = _widening(suite, becomes)
    return replace(
        suite,
        devices=tuple(made for device in suite.devices for made in becomes.get(device.name, [device])),
        include=tuple(pattern for given in suite.include for pattern in widened(given)),
        exclude=tuple(pattern for given in suite.exclude for pattern in widened(given)),
        expectations=tuple(replace(rule, cases=cases) for rule in suite.expectations for cases in widened(rule.cases)),
        gates=tuple(replace(gate, cases=cases) for gate in suite.gates for cases in widened(gate.cases)),
    )


def patterns_on_each(suite: Suite, hosts: Mapping[str, str], patterns: Iterable[str]) -> tuple[str, ...]:
    """A user's patterns on the names of a suite's cases, for the suite that `each_host` makes of it."""
    widened = _widening(suite, _becoming(suite, hosts))
    return tuple(pattern for given in patterns for pattern in widened(given))


def _becoming(suite: Suite, hosts: Mapping[str, str]) -> dict[str, list[Device]]:
    """By name, the devices that each such device becomes, where a host fits it."""
    found = {
        device.name: [
            device.model_copy(update={"name": f"{device.name}.{host}", "hosts": "one", "host": host})
            for host in sorted(hosts)
            if fits(device, host, hosts[host])
        ]
        for device in suite.devices
        if device.hosts == "each"
    }
    return {name: devices for name, devices in found.items() if devices}


def _widening(suite: Suite, becomes: Mapping[str, list[Device]]) -> Callable[[str], list[str]]:
    """What a pattern on case names becomes, so that it matches on `cpu.ash` what it matched on `cpu`."""
    variants = [*(variant.name for variant in suite.variants), *(peer.case_label for peer in suite.peers)]
    cases = [f"{model.name}/{variant}" for model in suite.models for variant in variants]
    renamed = {f"{case}@{name}": f"{case}@{made.name}" for case in cases for name in becomes for made in becomes[name]}
    left = [f"{case}@{device.name}" for case in cases for device in suite.devices if device.name not in becomes]

    def widened(pattern: str) -> list[str]:
        match = matching([pattern]).match
        if all(match(name) for before, name in renamed.items() if match(before)):
            return [pattern]
        still = any(match(name) for name in (*left, *renamed.values()))
        return [*([pattern] if still else []), f"{pattern}.*"]

    return widened
