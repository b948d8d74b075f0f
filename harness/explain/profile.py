"""A module -> what a call of it spends in each dispatch and in each other operation of the device.

It is the runtime's own profile of calls in iree-benchmark-module, as iree-profile prints it; both tools can since 3.12.
Profiling takes time of its own, so nothing of it goes into a latency.

On CPUs the profile has every operation with its begin and end (`host-execution`), on other devices every dispatch by
the device's clock (`dispatch-events`); the drivers of CUDA and HIP take the request and write nothing.

Every moment is given away once: where several operations run at once, each gets an equal share of that time, and a
command buffer's execution is what its dispatches leave of it, copies, fills and updates in it included.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from harness.compare.engine import BASE, HEAD
from harness.compare.samplers import GENERATION_S, Module
from harness.errors import CaseError
from harness.measure import last_core
from harness.models.materialize import MODULE_FILE
from harness.process import Limits
from harness.text import plural
from harness.toolchain import Toolchain
from harness.verify.outputs import ModuleCall, parse_times, require_success


class Unprofiled(CaseError):
    """The runtime has no profile of a device's dispatches (stage `measure`); the message says how that shows."""

    def __init__(self, why: str) -> None:
        super().__init__("measure", why)


_PROFILER = "iree-profile"
_PROFILE_FILE = "calls.ireeprof"
_HOST_MODES = "host-execution,executable-metadata"
_DEVICE_MODES = "dispatch-events,executable-metadata"
# Devices whose work is done by this machine's processors.
_LOCAL = "local-"
# The first call of a process finds its memory unmapped; of three, their median has nothing of that.
_LEAST_CALLS = 3
# An event takes half a kilobyte as text: more calls of a long program would take longer to read than to make.
_MOST_EVENTS = 30_000
# Of a call, besides dispatches, copies and fills: allocations, a command buffer's execution, a barrier.
_OTHER_EVENTS = 8
# Of the time of a generation of latencies, a profile has so much; there are two for each side.
_PROFILE_S = GENERATION_S / 2


@dataclass(frozen=True, kw_only=True)
class Profile:
    """What one call of a program spends where, in nanoseconds."""

    calls: int  # That are behind it
    call_ns: float  # What one took in all
    dispatch_ns: Mapping[str, float]  # By name, in the order of their first dispatch
    # By other operations of the device's queue: `alloca`, `copy`, ...; `execute` is a command buffer outside of its
    # dispatches. {} where the profile does not tell.
    device_ns: Mapping[str, float] = field(default_factory=dict)
    # Of names in `dispatch_ns` whose time is not known, and is 0 there: why, as a phrase
    untimed: Mapping[str, str] = field(default_factory=dict)


def can_profile(toolchain: Toolchain) -> bool:
    """Whether its runtime writes profiles that it can read: 3.12 does, and later ones."""
    return toolchain.runtime_tool(_PROFILER).is_file()


def profile_module(module: Module, folder: Path, seconds: float, limits: Limits, *, call_ns: float) -> Profile:
    """Profile some calls of a module, in a process of its own."""
    call = lay_out(module, folder)
    on_host = all(uri.startswith(_LOCAL) for uri in module.case.uris)
    modes = _HOST_MODES if on_host else _DEVICE_MODES
    (folder / _PROFILE_FILE).unlink(missing_ok=True)
    profiling = (f"--device_profiling_mode={modes}", f"--device_profiling_output={_PROFILE_FILE}")
    calls = _calls(module, seconds, call_ns)
    try:
        taken_ns = time_call(call, f"{calls}x", limits, profiling)
        dispatches = _ask(call, "dispatch", limits, *([] if on_host else ["--dispatch_events"]))
    except CaseError as error:
        if on_host:
            raise
        raise Unprofiled(str(error)) from None  # a driver that cannot profile refuses to, or leaves an empty file
    queue = _ask(call, "queue", limits) if on_host else ""
    return read_profile(dispatches, queue, calls=calls, call_ns=taken_ns)


def time_module(module: Module, folder: Path, seconds: float, limits: Limits) -> float:
    """What a call takes in iree-benchmark-module without any profile: the mean over calls of one process."""
    return time_call(lay_out(module, folder), f"{seconds:g}s", limits)


class ProfiledTurns:
    """Profiles of both sides, generation by generation, in fresh processes."""

    def __init__(self, base: Module, head: Module, folder: Path, limits: Limits) -> None:
        self._modules = {BASE: base, HEAD: head}
        self._folder, self._limits = folder, limits
        self._call_ns: dict[str, float] = {}

    def __call__(self, number: int) -> tuple[Profile, Profile]:
        """Of base and of head, in generation 0, 1, ..."""
        # Base, head, head, base, or the other way round: a machine that gets slower does so to both alike.
        order = (BASE, HEAD) if number % 2 == 0 else (HEAD, BASE)
        taken: dict[str, list[Profile]] = {BASE: [], HEAD: []}
        for side in (*order, *reversed(order)):
            settings = self._modules[side], self._folder / side, _PROFILE_S, self._limits
            try:
                if side not in self._call_ns:  # the first time the tool tells what a call takes
                    self._call_ns[side] = time_module(*settings)
                taken[side].append(profile_module(*settings, call_ns=self._call_ns[side]))
            except Unprofiled:
                raise
            except CaseError as error:
                raise CaseError(error.stage, f"the {side}'s module: {error}", error.stderr) from None
        return mean_profile(taken[BASE]), mean_profile(taken[HEAD])


def mean_profile(profiles: Sequence[Profile]) -> Profile:
    """One profile of several of one module: of each figure the geometric mean, whose ratios are means of ratios."""

    def mean(values: Sequence[float]) -> float:
        return math.exp(math.fsum(map(math.log, values)) / len(values)) if min(values) > 0 else float(np.mean(values))

    def means(figures: Sequence[Mapping[str, float]]) -> dict[str, float]:
        names = dict.fromkeys(name for each in figures for name in each)
        return {name: mean([each.get(name, 0.0) for each in figures]) for name in names}

    return Profile(
        calls=sum(profile.calls for profile in profiles),
        call_ns=mean([profile.call_ns for profile in profiles]),
        dispatch_ns=means([profile.dispatch_ns for profile in profiles]),
        device_ns=means([profile.device_ns for profile in profiles]),
    )


# --- the tools ---


def lay_out(module: Module, folder: Path) -> ModuleCall:
    """A module's call through IREE's runtime tools, in a folder that has it."""
    loadable = module.loadable
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / MODULE_FILE).is_symlink():
        (folder / MODULE_FILE).symlink_to(loadable.module.resolve())
    parameters = ((scope, file.resolve()) for scope, file in loadable.parameters.items())
    return call_in(
        module,
        folder,
        loadable.function,
        inputs=tuple(map(_input, loadable.arguments)),
        parameters=tuple(f"{scope}={file}" if scope else f"{file}" for scope, file in parameters),
    )


def call_in(
    module: Module, folder: Path, function: str, *, inputs: tuple[str, ...] = (), parameters: tuple[str, ...] = ()
) -> ModuleCall:
    """A call on the devices of a module's case, in a folder with a module of that name."""
    case = module.case
    return ModuleCall(
        toolchain=module.loadable.toolchain,
        folder=folder,
        function=function,
        inputs=inputs,
        parameters=parameters,
        uris=case.uris,
        run_flags=module.loadable.run_flags,
        cpus=last_core() if case.pin else None,
        environment=case.environment,
    )


def _input(argument: Mapping[str, Any]) -> str:
    """The text of --input= of an argument as a worker takes it, see harness.measure.worker."""
    file = Path(argument["file"]).resolve()
    if argument.get("scalar"):
        value = np.load(file, allow_pickle=False).item()
        return f"{int(value) if isinstance(value, bool) else value}"
    if argument.get("raw"):
        return f"{'x'.join([*map(str, argument['shape']), 'bf16'])}=@{file}"
    return f"@{file}"


def _calls(module: Module, seconds: float, call_ns: float) -> int:
    """How many calls take so long, as far as their events can be read soon."""
    counted = module.build.statistics
    events = _OTHER_EVENTS + (counted.dispatches + counted.copies + counted.fills if counted is not None else 0)
    return max(_LEAST_CALLS, int(min(seconds * 1e9 / max(call_ns, 1.0), _MOST_EVENTS / events)))


def time_call(call: ModuleCall, length: str, limits: Limits, more: Sequence[str] = ()) -> float:
    """What a call took in one process of iree-benchmark-module, in nanoseconds."""
    options = (f"--benchmark_min_time={length}", "--time_unit=ns", "--benchmark_format=json")
    command = ("iree-benchmark-module", *call.flags, *call.run_flags, *options, *more)
    finished = call.run("measure", command, limits)
    require_success("measure", finished, limits)
    try:
        times, _ = parse_times(finished.stdout)
    except CaseError as error:
        raise CaseError("measure", str(error), error.stderr) from None
    return times[0]


def _ask(call: ModuleCall, command: str, limits: Limits, *more: str) -> str:
    finished = call.run("measure", (_PROFILER, command, "--format=jsonl", *more, _PROFILE_FILE), limits)
    require_success("measure", finished, limits)
    return finished.stdout


# --- what they print ---


def read_profile(dispatches: str, queue: str, *, calls: int, call_ns: float) -> Profile:
    """A profile as `iree-profile dispatch` and `iree-profile queue` print it with --format=jsonl."""
    try:
        rows, events = _rows(dispatches), _rows(queue)
        for row in (*rows, *events):
            for loss in _LOSSES if row["type"] in _SUMMARIES else ():
                if int(row.get(loss, 0)):
                    lost = f"{loss.replace('_', ' ')}: {row[loss]}"
                    raise CaseError("measure", f"the profile does not have all that happened ({lost})")
        names = {_function(row): str(row["key"]) for row in rows if row["type"] == "host_dispatch_group"}
        if on_device := [row for row in rows if row["type"] == "dispatch_event"]:
            dispatch_ns, device_ns = _on_device(on_device, calls), {}
        else:
            spans = [_span(event, names) for event in events if event["type"] == "host_execution_event"]
            by_what = per_call_ns(spans, calls)
            found = set(names.values())
            dispatch_ns = {name: ns for name, ns in by_what.items() if name in found}
            device_ns = {name: ns for name, ns in by_what.items() if name not in found}
    except (KeyError, TypeError, ValueError) as error:
        raise CaseError("measure", f"{_PROFILER} printed rows of an unknown form ({error!r})") from None
    if not dispatch_ns and not device_ns:
        raise Unprofiled(f"the profile of {plural(calls, 'call')} has nothing that the device did")
    return Profile(calls=calls, call_ns=call_ns, dispatch_ns=dispatch_ns, device_ns=device_ns)


_SUMMARIES = ("dispatch_summary", "queue_summary")
# What counts records that are missing or no good in these rows.
_LOSSES = ("invalid_dispatches", "invalid_host_dispatches", "truncated_chunks", "dropped_records")


def _rows(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines() if line.strip()]


def _function(row: Mapping[str, Any]) -> tuple[int, int, int]:
    """Which dispatch: device, executable, and its function's number."""
    return int(row["physical_device_ordinal"]), int(row["executable_id"]), int(row["function_ordinal"])


def _span(event: Mapping[str, Any], names: Mapping[tuple[int, int, int], str]) -> Span:
    what = operation = str(event["op"])
    if not event["valid"]:
        raise CaseError("measure", f"the profile has an operation without a valid time ({operation})")
    if operation == "dispatch":
        if (function := _function(event)) not in names:
            raise CaseError("measure", f"the profile has a dispatch that it does not name (function {function})")
        what = names[function]
    start_ns, end_ns = int(event["start_host_time_ns"]), int(event["end_host_time_ns"])
    return Span(what=what, start_ns=start_ns, end_ns=end_ns, encloses=operation == "execute")


def _on_device(rows: Sequence[Mapping[str, Any]], calls: int) -> dict[str, float]:
    """What a call takes in each dispatch on a device of its own, whose clock has to be known."""
    for row in rows:
        if not row["valid"]:
            raise CaseError("measure", f"the profile has a dispatch without a valid time ({row['key']})")
        if not row["clock_fit_available"]:
            raise Unprofiled(f"the profile has no time of dispatch {row['key']}: the device's clock is not known")
    spans = [Span(what=str(row["key"]), start_ns=row["start_tick"], end_ns=row["end_tick"]) for row in rows]
    ns = math.fsum(row["duration_ns"] for row in rows)
    ns_per_tick = ns / max(1, sum(row["duration_ticks"] for row in rows))
    return {name: ticks * ns_per_tick for name, ticks in per_call_ns(spans, calls).items()}


@dataclass(frozen=True, kw_only=True)
class Span:
    """One operation of the device."""

    what: str  # Dispatches of one name are added up, and operations of one kind
    start_ns: int
    end_ns: int
    encloses: bool = False  # Whether others run within it: it has only the time in which none of those runs


def shares_ns(spans: Sequence[Span]) -> list[float]:
    """What each span has of the time in which any of them runs."""
    shares = [0.0] * len(spans)
    edges: list[tuple[int, bool, int]] = []
    for place, span in enumerate(spans):
        if span.end_ns > span.start_ns:
            edges += [(span.start_ns, True, place), (span.end_ns, False, place)]
    running: tuple[set[int], set[int]] = (set(), set())  # those that others run within come second
    before = 0
    for moment, begins, place in sorted(edges):  # at one moment, ends come first
        sharers = running[0] or running[1]
        for sharer in sharers:
            shares[sharer] += (moment - before) / len(sharers)
        before = moment
        where = running[spans[place].encloses]
        if begins:
            where.add(place)
        else:
            where.discard(place)
    return shares


def per_call_ns(spans: Sequence[Span], calls: int) -> dict[str, float]:
    """What a call spends in each thing, in order: the median over calls that do the same things, else the mean."""
    ordered = sorted(spans, key=lambda span: (span.start_ns, -span.end_ns))
    shares = shares_ns(ordered)
    length, rest = divmod(len(ordered), calls)
    done = [Counter[str]() for _ in range(calls)]
    sums = {span.what: [0.0] * calls for span in ordered}
    for place, (span, share) in enumerate(zip(ordered, shares, strict=True)):
        call = place // length if not rest else 0
        done[call][span.what] += 1
        sums[span.what][call] += share
    alike = not rest and all(each == done[0] for each in done)
    return {name: float(np.median(each)) if alike else math.fsum(each) / calls for name, each in sums.items()}
