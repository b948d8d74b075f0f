"""Which hosts of a fleet measure which rows of a comparison: pure decisions over its runs, its suite and its hosts.

All rows of a group are measured where its head was checked, if that host is here: its modules are made for that CPU,
and its files are there. Else groups are placed as those of a run are. Where the user spreads rows, all hosts of that
host's class measure each of them, at the same time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from harness.compare.comparison import Plan
from harness.compare.pairs import Side
from harness.compare.remeasure import Work
from harness.fleet.placing import Group, Host, place, unfit, why_nowhere
from harness.machine.identity import processor_identity
from harness.records.case import Case
from harness.suite.load import Suite
from harness.toolchain.host_cpu import is_of_host


@dataclass(frozen=True, kw_only=True)
class RowNeed:
    """What a row needs of the hosts that measure it."""

    group: Group  # Its own needs; the name is that of the cases' group
    two_cpus: bool = False  # Whether its modules are made for two CPUs, so that no host has both

    @classmethod
    def of(cls, work: Work, plan: Plan) -> RowNeed:
        """The needs of a row of a comparison."""
        sides = list(zip((plan.base, plan.head), work.pair.both, strict=True))
        cpus = {_cpu(side, case) for side, case in sides} - {""}
        case = work.pair.case
        group = Group(
            name=case.group,
            device=case.device,
            compilers={case.toolchain: side.toolchains[case.toolchain].compiler_sha256 for side, case in sides},
            cpu=min(cpus, default=""),
        )
        return cls(group=group, two_cpus=len(cpus) > 1)


def _cpu(side: Side, case: Case) -> str:
    """Identity of the CPU that a module is made for; "": any that its flags allow."""
    tied = bool(case.plugins) or any(map(is_of_host, case.compile_flags))
    return processor_identity(side.run.environment_of(case)) if tied else ""


@dataclass(frozen=True, kw_only=True)
class Placing:
    """Which hosts measure which row."""

    rows: Mapping[str, tuple[str, ...]]  # Hosts in the order of their names, by the row's name
    nowhere: Mapping[str, str] = field(default_factory=dict)  # Why no host can measure it, by the row's name


def of_unknown_devices(works: Iterable[Work], suite: Suite, file: str) -> dict[str, str]:
    """Rows whose device a suite no longer has, by name, with why they cannot be measured."""
    devices = {device.name for device in suite.devices}
    return {
        work.name: f"{file} no longer has the device {work.pair.case.device}; put it back"
        for work in works
        if work.pair.case.device not in devices
    }


def place_rows(
    needs: Mapping[str, RowNeed],
    hosts: Sequence[Host],
    *,
    kept: Mapping[str, tuple[str, ...]],
    checked_on: Mapping[str, str],
    spread: bool,
) -> Placing:
    """Put rows on hosts."""
    known = {host.name: host for host in hosts}
    left = {name: need for name, need in needs.items() if name not in kept and not need.two_cpus}
    groups = {
        need.group.name: _joined(other.group for other in left.values() if other.group.name == need.group.name)
        for need in left.values()
    }
    there = {name: checked_on[name] for name in groups if checked_on.get(name) in known}
    there = {name: host for name, host in there.items() if not unfit(groups[name], known[host])}
    placed = place(list(groups.values()), hosts, there)
    rows, nowhere = dict(kept), {}
    for name, need in needs.items():
        if name in kept:
            continue
        own, host = need.group, placed.get(need.group.name, "")
        if need.two_cpus:
            nowhere[name] = "its two modules are made for two CPUs; make both runs again, with --fleet"
        elif not host:
            nowhere[name] = why_nowhere(groups[own.name], hosts)
        elif spread:
            alike = [other for other in hosts if not unfit(own, other) and are_alike(other, known[host], own)]
            rows[name] = tuple(sorted(other.name for other in alike))
        else:
            rows[name] = (host,)
    return Placing(rows=rows, nowhere=nowhere)


def _joined(groups: Iterable[Group]) -> Group:
    """What all rows of a group need."""
    first, *others = groups
    for other in others:
        first = replace(first, compilers={**first.compilers, **other.compilers}, cpu=first.cpu or other.cpu)
    return first


def are_alike(host: Host, other: Host, need: Group) -> bool:
    """Whether two hosts are of one class for a row: machine, device, and identity of the CPU."""
    return host.classes[need.device] == other.classes[need.device] and host.host_cpu == other.host_cpu
