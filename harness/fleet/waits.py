"""What waits on a fleet, counted by reason: what no host has in hand yet of a run or a comparison.

Its scheduler tells `harness fleet status` of it. What a host has in hand and is not at, the scheduler knows itself.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, TypedDict

from harness.fleet.orders import LookOrder
from harness.fleet.state import GroupState, HostState, Job

# Of what waits for one reason, how many are named.
_NAMED = 3


class Reason(NamedTuple):
    """Why something waits."""

    why: str  # A word, for which harness.fleet.status has a sentence
    host: str = ""  # That it is about; "": about all that may do it


class Waits(TypedDict):
    """What waits for one reason, as a scheduler passes it on: how many, and the first few by name."""

    why: str
    host: str
    count: int
    first: list[str]


def by_reason(found: Iterable[tuple[Reason, str]]) -> list[Waits]:
    """What waits, with a name each, by reason."""
    names: dict[Reason, list[str]] = {}
    for reason, name in found:
        names.setdefault(reason, []).append(name)
    return [
        {"why": reason.why, "host": reason.host, "count": len(own), "first": own[:_NAMED]}
        for reason, own in names.items()
    ]


def waits_of_run(jobs: Iterable[Job], groups: Iterable[GroupState], hosts: Mapping[str, HostState]) -> list[Waits]:
    """What no host has in hand of a run's compiles and groups."""
    return by_reason([*_jobs(jobs, hosts), *_groups(groups, hosts)])


def _jobs(jobs: Iterable[Job], hosts: Mapping[str, HostState]) -> Iterator[tuple[Reason, str]]:
    known: dict[tuple[object, ...], Reason] = {}  # thousands of compiles may be done on the same few sets of hosts
    for job in jobs:
        toolchain = job.order.toolchain
        alike = job.host_cpu, toolchain.version, toolchain.compiler_sha256, frozenset(job.refused)
        if alike not in known:
            known[alike] = _why_not_compiled([state for state in hosts.values() if job.allows(state.host)])
        yield known[alike], f"{'ir' if isinstance(job.order, LookOrder) else 'compile'} {job.name}"


def _why_not_compiled(able: list[HostState]) -> Reason:
    here = [state for state in able if state.address]
    if not here:
        return Reason("away", able[0].name if len(able) == 1 else "")
    return Reason("still" if all(state.timing for state in here) else "cores")


def _groups(groups: Iterable[GroupState], hosts: Mapping[str, HostState]) -> Iterator[tuple[Reason, str]]:
    for group in groups:
        if not group.todo or group.ticket is not None or group.host not in hosts:
            continue
        state = hosts[group.host]
        if not state.address:
            yield Reason("away", state.name), group.name
        elif group.uncompiled:
            yield Reason("builds"), group.name
        else:  # a host that compiles for others times nothing until that is done
            yield Reason("helps" if state.helping and not state.measuring else "busy", state.name), group.name


def waits_of_rows(
    undone: Mapping[str, bool], placed: Mapping[str, Sequence[str]], away: Collection[str]
) -> list[Waits]:
    """What waits of a comparison."""
    found: list[tuple[Reason, str]] = []
    for name, has_begun in sorted(undone.items()):
        lacks = [host for host in placed[name] if host in away]
        if lacks or not has_begun:
            found.append((Reason("away", lacks[0]) if lacks else Reason("busy", placed[name][0]), name))
    return by_reason(found)
