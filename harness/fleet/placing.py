"""Which host does what: pure decisions over what compiles, groups and rows need, and what hosts have.

A group stays with its host from night to night, whatever other groups and hosts come and go, as far as balance lets
it: hosts are preferred in the order of a hash of group and host (rendezvous hashing, Thaler and Ravishankar 1998), and
none takes more than its share.
"""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from harness.fleet.offer import Offer, OfferedToolchain
from harness.machine.identity import machine_class, machine_id, processor_identity
from harness.records.case import Case
from harness.records.run import HostRecord
from harness.suite.devices import Presence, fits
from harness.suite.load import Device, Suite
from harness.text import one_line


@dataclass(frozen=True, kw_only=True)
class Host:
    """A host, as far as a suite is concerned."""

    name: str
    # Which hosts' figures on a device may be compared with its own, by the suite's name of the device
    classes: Mapping[str, str]
    host_cpu: str
    machine: str = ""  # Identity of the machine, as an environment has it; "": not known
    # Why a device or a peer cannot be used there, by the suite's name or label; "" where it can
    missing: Mapping[str, str] = field(default_factory=dict)
    toolchains: Mapping[str, OfferedToolchain] = field(default_factory=dict)  # Those that are there, by version

    @classmethod
    def recalled(cls, record: HostRecord, suite: Suite) -> Host:
        """A host as it was when it measured something."""
        said = record.environment
        return cls(
            name=record.name,
            classes={device.name: machine_class(said, device.name) for device in suite.devices},
            host_cpu=processor_identity(said),
            machine=machine_id(said),
        )

    @classmethod
    def of(cls, offer: Offer, suite: Suite) -> Host:
        """A host from what it offers."""
        there, peers = offer.devices(suite), {peer.name: peer.missing or "" for peer in offer.peers}
        missing = {device.name: _missing(device, offer, there[device.name]) for device in suite.devices}
        missing |= {peer.case_label: peers.get(peer.name, "no package there brings it") for peer in suite.peers}
        return replace(cls.recalled(record_of(offer, suite), suite), missing=missing, toolchains=offer.toolchains)

    def is_another(self, host: Host) -> bool:
        """Whether what has joined under its name is another machine: by its class, its CPU, or its identity."""
        is_alike = (host.classes, host.host_cpu) == (self.classes, self.host_cpu)
        return not is_alike or (host.machine != self.machine and "" not in (host.machine, self.machine))


def record_of(offer: Offer, suite: Suite) -> HostRecord:
    """What a run keeps of a host."""
    there = {name: device for name, device in offer.devices(suite).items() if device.missing is None}
    peers = {peer.name: peer.version for peer in offer.peers if peer.version is not None}
    environment: dict[str, dict[str, Any]] = {
        **offer.environment,
        "devices": {name: device.facts for name, device in there.items()},
        "device_names": {name: device.name for name, device in there.items() if device.name},
        "peers": {peer.case_label: peers[peer.name] for peer in suite.peers if peer.name in peers},
    }
    return HostRecord(name=offer.name, environment=environment)


@dataclass(frozen=True, kw_only=True)
class Need:
    """What a compile, a group or a row needs of the host that does it."""

    name: str
    device: str = ""  # "" of a compile
    peers: frozenset[str] = frozenset()  # Labels of the engines among its cases
    compilers: Mapping[str, str] = field(default_factory=dict)  # Hash of the compiler, by version, of its cases
    # Identity of the CPU that its modules are made for; "" where that does not matter, or none is made yet
    cpu: str = ""
    machine_class: str = ""  # Of the host that has begun it, with the device; "": nobody has

    def begun_on(self, host: Host) -> Need:
        """The same once a host has begun it."""
        return replace(self, machine_class=host.classes[self.device])


def need_of(cases: Sequence[Case], compilers: Mapping[str, str]) -> Need:
    """What the cases of a group need."""
    return Need(
        name=cases[0].group,
        device=cases[0].device,
        peers=frozenset(case.variant for case in cases if case.peer is not None),
        compilers={case.toolchain: compilers[case.toolchain] for case in cases if case.peer is None},
    )


def unfit(need: Need, host: Host) -> str:
    """Why a host cannot do it, as a clause; "": it can."""
    for name in filter(None, (need.device, *sorted(need.peers))):
        if why := host.missing.get(name, f"it does not know {name}"):
            return why
    for version, sha256 in need.compilers.items():
        if version in host.toolchains and host.toolchains[version].compiler_sha256 != sha256:
            return f"its IREE {version} is another build than the client's"
    if need.cpu and host.host_cpu != need.cpu:
        return "it has another CPU than the one that the modules are made for"
    if need.machine_class and host.classes.get(need.device) != need.machine_class:
        return f"it is of another class than the host that has begun ({need.machine_class})"
    return ""


def preference(name: str, host: str) -> int:
    """How much a group is drawn to a host: as random as a hash, and always the same."""
    return int.from_bytes(hashlib.sha256(f"{name}\n{host}".encode()).digest()[:8], "big")


def place(needs: Sequence[Need], hosts: Sequence[Host], kept: Mapping[str, str] | None = None) -> dict[str, str]:
    """The host of each group, by the group's name; a group that fits nowhere is left out.

    No host takes more of the groups that fit the same hosts than its share, rounded up.
    """
    names = {host.name for host in hosts}
    placed = {name: host for name, host in (kept or {}).items() if host in names}
    fitting = {need.name: tuple(host.name for host in hosts if not unfit(need, host)) for need in needs}
    share = {able: math.ceil(count / len(able)) for able, count in Counter(fitting.values()).items() if able}
    load = Counter((fitting[name], placed[name]) for name in fitting if name in placed)
    for name in sorted(fitting):
        able = fitting[name]
        if name in placed or not able:
            continue
        best = sorted(able, key=lambda host: preference(name, host), reverse=True)
        chosen = next((host for host in best if load[able, host] < share[able]), best[0])
        load[able, chosen] += 1
        placed[name] = chosen
    return placed


def choose_after_loss(need: Need, hosts: Iterable[Host], load: Mapping[str, int]) -> str | None:
    """The host that takes something over; None: there is none for it."""
    able = [host.name for host in hosts if not unfit(need, host)]
    return min(able, key=lambda name: (load.get(name, 0), -preference(need.name, name)), default=None)


def why_nowhere(need: Need, hosts: Collection[Host]) -> str:
    """Why no host can do something, as a sentence."""
    reasons: dict[str, list[str]] = {}
    for host in hosts:
        reasons.setdefault(unfit(need, host), []).append(host.name)
    said = "; ".join(f"{', '.join(sorted(names))}: {one_line(why)}" for why, names in reasons.items())
    return f"{need.name}: no host can measure it ({said})"


def devices_of_fleet(suite: Suite, offers: Collection[Offer]) -> dict[str, Presence]:
    """Each of a suite's devices by name: as it is on the hosts that have it, or why none has."""
    there = {offer.name: offer.devices(suite) for offer in offers}
    found: dict[str, Presence] = {}
    for device in suite.devices:
        missing = {
            offer.name: _missing(device, offer, there[offer.name][device.name])
            for offer in sorted(offers, key=lambda offer: offer.name)
        }
        has = [there[name][device.name] for name, why in missing.items() if not why]
        if has:
            # Each host has an environment of its own, which its cases get once it is known.
            found[device.name] = Presence(
                facts=" or ".join(dict.fromkeys(presence.facts for presence in has)),
                name=" or ".join(dict.fromkeys(presence.name for presence in has if presence.name)),
            )
        else:
            said = "; ".join(f"{name}: {why}" for name, why in missing.items())
            found[device.name] = Presence(missing=f"no host of the fleet has it ({said})")
    return found


def _missing(device: Device, offer: Offer, presence: Presence) -> str:
    """Why a device cannot be used on a host; "": it can."""
    if not fits(device, offer.name, offer.machine_class):
        return f"it is not what on = {device.on!r} asks for" if not device.host else f"it is not {device.host}"
    return presence.missing or ""
