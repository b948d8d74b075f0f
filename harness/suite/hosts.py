"""Which hosts of a fleet a suite's device is for: `on` and `hosts` of [devices.NAME], which only a fleet looks at."""

import fnmatch
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from harness.errors import SuiteError
from harness.suite.cases import matching
from harness.suite.load import Device, Suite


def fits(device: Device, host: str, machine_class: str) -> bool:
    """Whether a device may be measured on a host, as far as the suite says."""
    if device.host:
        return device.host == host
    return fnmatch.fnmatchcase(host, device.on) or fnmatch.fnmatchcase(machine_class, device.on)


def each_host(suite: Suite, hosts: Mapping[str, str]) -> Suite:
    """The suite with one device for each host that fits in the place of each device with hosts = "each".

    Such a device is called `<device>.<host>`, and its cases have an identity of their own. What the suite says of cases
    on the device holds for those on each of them. A device that no host fits stays as it is. `hosts` has the class of
    each, by its name.
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
