"""What an asker knows of a run on a fleet: hosts, compiles and groups, and what is next for each."""

from __future__ import annotations

import copy
import itertools
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from harness.fleet import patience
from harness.fleet.files import Luggage
from harness.fleet.offer import Offer
from harness.fleet.orders import CompileOrder, GroupOrder, LookOrder, group_order, named
from harness.fleet.placing import Group, Host
from harness.models.materialize import ModelArtifact
from harness.process import Limits
from harness.records.case import Case
from harness.records.run import Build, HostRecord
from harness.stages.context import Context
from harness.stages.options import RunOptions
from harness.suite.load import Suite

# How many orders a host has in hand beside the one it is at, so that it never waits for the next.
_COMPILES_AHEAD = 2
_TURNS_AHEAD = 1

CHECK, AGAIN, REFERENCE, PEAK = "check", "again", "reference", "peak"
# Steps that may go on beside compilers.
UNTIMED = (CHECK, AGAIN)
# What is measured before the first generation comes right before it, so that a group is begun as late as can be.
_RANKS = {CHECK: -1, AGAIN: -1, REFERENCE: 0, PEAK: 0}
# A step of a group: one of these, or the number of a generation.
Step = str | int


@dataclass(kw_only=True, eq=False)
class HostState:
    """A host, now."""

    host: Host
    offer: Offer | None = None  # None where it has not been here since this run began or went on
    address: str = ""  # Of its worker; "": it is not here
    gone_since: float = field(default_factory=time.monotonic)  # By the monotonic clock, in seconds
    compiling: set[int] = field(default_factory=set)  # Tickets of its compiles
    # Those of them for other hosts: they are not held still, so nothing is timed until they are done
    helping: set[int] = field(default_factory=set)
    measuring: list[int] = field(default_factory=list)  # Tickets of what takes its right to measure, in their order
    timing: set[int] = field(default_factory=set)  # Those of them at which its compilers stand still
    since: float = 0.0  # When the first of these had its turn, by the monotonic clock, in seconds

    @property
    def name(self) -> str:
        """The host's."""
        return self.host.name

    @property
    def cores(self) -> int:
        """For compiling; 0: it is not here."""
        return self.offer.cores if self.offer is not None and self.address else 0

    @property
    def wants_turn(self) -> bool:
        """Whether something more to measure can be given to it."""
        return bool(self.address) and len(self.measuring) <= _TURNS_AHEAD

    def record(self, suite: Suite) -> HostRecord:
        """What a run keeps of it."""
        assert self.offer is not None  # noqa: S101 (it measures)
        there = {name: device for name, device in self.offer.devices(suite).items() if device.missing is None}
        peers = {peer.name: peer.version for peer in self.offer.peers if peer.version is not None}
        labels = {peer.case_label: peers[peer.name] for peer in suite.peers if peer.name in peers}
        environment: dict[str, dict[str, Any]] = {
            **self.offer.environment,
            "devices": {name: device.facts for name, device in there.items()},
            "device_names": {name: device.name for name, device in there.items() if device.name},
            "peers": dict(labels),
        }
        return HostRecord(name=self.name, environment=environment)


def all_can_have(hosts: Iterable[HostState]) -> int:
    """How many compiles all hosts of a fleet together can have in hand."""
    return sum(state.cores + _COMPILES_AHEAD for state in hosts if state.cores)


def next_to_compile(states: Sequence[HostState], most: int, left: int) -> HostState | None:
    """Which of some hosts gets the next compile: that with the fewest for each of its cores; None: none wants one.

    None has more in hand than cores unless so many are left that all hosts can: the last ones go to who is free first.
    """
    if not left:
        return None
    ahead = _COMPILES_AHEAD if left > most else 0
    wanting = (state for state in states if state.cores and len(state.compiling) < state.cores + ahead)
    return min(wanting, key=lambda state: len(state.compiling) / state.cores, default=None)


@dataclass(kw_only=True, eq=False)
class Job:
    """A compile, or a look at the IR of a build, which compiles it once more; and the cases that share it."""

    order: CompileOrder | LookOrder
    luggage: Luggage
    cases: list[Case]
    host: str  # The one that measures these cases
    host_cpu: str = ""  # Identity of the CPU that it has to be done on; "": on any
    refused: dict[str, str] = field(default_factory=dict)  # Why hosts could not do it, by name
    deaths: int = 0  # How often a host's worker ended over it

    @property
    def name(self) -> str:
        """The first case's."""
        return self.cases[0].name

    def allows(self, host: Host) -> bool:
        """Whether it may be done there."""
        version, sha256 = self.order.toolchain.version, self.order.toolchain.compiler_sha256
        same_cpu = not self.host_cpu or host.host_cpu == self.host_cpu
        return same_cpu and host.name not in self.refused and host.compilers.get(version, sha256) == sha256

    @property
    def why_nowhere(self) -> str:
        """Why no host that is left can do it."""
        if self.refused:
            said = "; ".join(f"{name}: {why}" for name, why in self.refused.items())
            return f"{said}; no other host can compile it"
        cpu = f"the CPU of {self.host} and " if self.host_cpu else ""
        return f"no host has {cpu}the asker's build of IREE {self.order.toolchain.version}"


def choose_job(jobs: Sequence[Job], host: Host, *, others: bool) -> Job | None:
    """A compile for a host: the first of its own groups', else the last of others'; None where there is none."""
    own = (job for job in jobs if job.host == host.name)
    all_others = reversed(jobs) if others else ()
    return next((job for job in itertools.chain(own, all_others) if job.allows(host)), None)


@dataclass(kw_only=True, eq=False)
class GroupState:
    """A group, now."""

    need: Group
    number: int  # In the plan's order
    cases: list[Case]  # Those that have not failed
    host: str = ""
    attempt: int = 0
    noted: str = ""  # The host that the run's directory has it on; "": it says nothing yet
    begun: bool = False
    uncompiled: set[str] = field(default_factory=set)  # Cases whose builds are not here yet
    todo: deque[Step] = field(default_factory=deque)  # Steps that are left, in their order
    ticket: int | None = None  # Of the step that a host has in hand; None: none has
    timed: set[str] = field(default_factory=set)  # Cases that had a turn
    deaths: int = 0  # How often its host's worker ended while it was measured
    refused: dict[str, str] = field(default_factory=dict)  # Why hosts could not do it, by name
    # The last one, with the kind of step, the worker and the cases that it was for
    last_order: tuple[tuple[str, str, tuple[str, ...]], GroupOrder, Luggage] | None = None

    @property
    def name(self) -> str:
        """The group's."""
        return self.need.name

    @property
    def is_ready(self) -> bool:
        """Whether its host may go on with it."""
        return not self.uncompiled and self.ticket is None and bool(self.todo)

    @property
    def order(self) -> tuple[int, int]:
        """Groups with the smallest come first, so that the generations of each are spread."""
        step = self.todo[0]
        return (step if isinstance(step, int) else _RANKS[step]), self.number


def steps(context: Context) -> Iterator[Step]:
    """All that a group goes through in a run."""
    yield CHECK
    if not context.options.measure:
        yield AGAIN
    if context.with_reference:
        yield REFERENCE
    if context.options.measure:
        yield PEAK
        yield from range(int(context.directory.header.settings["generations"]))


def compile_limits(options: RunOptions) -> Limits:
    """What one compile may use on a host: what the user says, else as much memory as the host itself gives."""
    limits = options.compile_limits
    return limits if options.compile_memory_gib is not None else replace(limits, memory_bytes=None)


def limit_s(context: Context, group: GroupState, step: Step) -> float:
    """Within how many seconds a step of a group surely ends: the sum of its processes' limits."""
    options, settings = context.options, context.directory.header.settings
    compile_s = 2 * options.compile_timeout_s if step == CHECK else 0.0  # of the second opinion
    beside_s = compile_s + float(settings["budget_s"])
    return patience.limit_s(options.call_timeout_s, max(1, len(group.cases)), beside_s)


def order_for(
    context: Context,
    group: GroupState,
    step: Step,
    cases: Sequence[Case],
    artifact: ModelArtifact,
    builds: Mapping[str, Build],
    host: HostState,
) -> tuple[GroupOrder, Luggage]:
    """The order for a step of a group, with what it takes along; it is made once for all generations."""
    kind = step if isinstance(step, str) else ""
    alike = kind, host.address, tuple(case.name for case in cases)
    if group.last_order is None or group.last_order[0] != alike:
        group.last_order = alike, *_make_order(context, cases, artifact, builds, host)
    _, order, luggage = group.last_order
    return replace(order, given_up=copy.deepcopy(context.given_up)), luggage


def _make_order(
    context: Context, cases: Sequence[Case], artifact: ModelArtifact, builds: Mapping[str, Build], host: HostState
) -> tuple[GroupOrder, Luggage]:
    prepared, luggage = context.prepared, Luggage()
    assert host.offer is not None  # noqa: S101 (it gets an order)
    model = next(model for model in prepared.suite.models if model.name == cases[0].model)
    environment = dict(host.offer.devices(prepared.suite)[cases[0].device].environment)
    peers = {case.variant: prepared.peers[case.variant] for case in cases if case.peer is not None}
    order = group_order(
        [replace(case, environment=environment) for case in cases],
        model,
        artifact,
        builds,
        luggage,
        peers={label: (peer.name, dict(peer.options)) for label, peer in peers.items()},
        toolchains={toolchain.version: named(toolchain) for toolchain in prepared.toolchains},
        compile_limits=compile_limits(context.options),
        call_timeout_s=context.options.call_timeout_s,
        given_up=context.given_up,
        checks={case.name: context.checks[case.name] for case in cases if case.name in context.checks},
    )
    return order, luggage


class AtWork(NamedTuple):
    """An order that is out."""

    host: str  # That has it
    what: str  # For people
    limit_s: float | None  # Within which it comes to an end once it is the host's turn; None: its compiler has one
    done: Callable[[Any], None]  # Called with its answer
    died: Callable[[bool], None]  # Called when its worker has gone, with whether the host was measuring it


def words_of(group: str, step: Step) -> str:
    """What a host does at a step of a group, for people."""
    return f"{group} generation {step + 1}" if isinstance(step, int) else f"{group} {step}"
