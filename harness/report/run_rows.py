"""Run -> rows: every planned case becomes one row, whatever became of it, with remarks beyond its figures."""

import itertools
import math
import re
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from harness.compare.comparison import Plan
from harness.compare.judge import Judged, Timings
from harness.compare.pairs import DecidedRow, Side
from harness.compare.rows import allowance, amount, matches
from harness.ir.roofline import NARROW_TYPES, Attained, attained
from harness.metrics import BUILD_FACTS, COMPILE_TIME, INSTRUCTIONS, LATENCY, METRICS, REFERENCE_FACTS
from harness.plugins.chain import PIPELINE_FLAG
from harness.records.case import Case, Gate
from harness.records.run import Build, Check, Failure, IrCounts, Peak, Reference, Work
from harness.report.comparison import RUN_WORDS, Change
from harness.report.repro import repro_lines
from harness.stats.intervals import Estimate, Latency, estimate_ratio, summarise_latency
from harness.stats.pairing import GroupTimes, counter_per_call
from harness.store.evidence import find_failure, is_expected, why_refused
from harness.text import plural

_OF_CASE = ("group", "model", "variant", "device", "toolchain", "peer", "compile_flags", "run_flags")
# A pass pipeline that makes the usual mistake.
_WRONG_ANCHOR = re.compile(rf"{PIPELINE_FLAG}=.*(?<![\w.])func\.func\(")

Status = Literal[
    "measured", "same", "not timed", "failed", "expected failure", "skipped", "missing", "not measured yet"
]
_WENT_ALL_THE_WAY: tuple[Status, ...] = ("measured", "same", "not timed")  # that its run was to go


def side_label(variant: str, toolchain: str, *, several: bool) -> str:
    """A variant by its name; where there are several toolchains, as in `stock:3.12.0`."""
    return f"{variant}:{toolchain}" if several else variant


@dataclass(frozen=True, kw_only=True)
class Row:
    """One case and what was recorded of it; None where nothing was."""

    case: str
    group: str
    model: str
    variant: str
    device: str
    toolchain: str
    baseline: bool  # Whether the other rows of its section are compared with it
    # The case that is the baseline of its section; None of that case itself, and where there is none
    compared_with: str | None = None
    peer: str | None = None  # The engine that ran it instead of IREE, by its registered name
    host: str = ""  # Which one measured it; "" where one machine measured the whole run
    compile_flags: tuple[str, ...] = ()
    run_flags: tuple[str, ...] = ()
    # `same`: not measured on its own, since its module and run flags are those of `same_as`, whose timings it shows.
    # `not timed`: compiled and right, in a run that was to time nothing. `missing`: planned, and neither measured nor
    # failed nor skipped in a finished run.
    status: Status
    same_as: str | None = None  # Variant with the same module and run flags, under the same toolchain
    build: Build | None = None
    # The ops that the suite names, and its encoded tensors where the suite asks what they cost
    counted: IrCounts | None = None
    check: Check | None = None
    reference: Reference | None = None  # Of this case, or of the one whose timings it shows
    latency: Latency | None = None
    own_ns: float | None = None  # The same of own time, see harness.stats.pairing; None where it is not known
    instructions_per_call: float | None = None  # Retired in user mode; the median over turns
    # Time of this case divided by the baseline's; None for the baseline and where one of them has none
    estimate: Estimate | None = None
    # What to call the estimate; `same` without an estimate where the module is the baseline's
    kind: Change | None = None
    # Time of this case divided by the section's best peer's; None for that peer itself
    peer_estimate: Estimate | None = None
    attained: Attained | None = None  # How much of the machine it uses; None where its model's work is not known
    failure: Failure | None = None  # Why there are no figures, for failures that were expected too
    works_again: bool = False  # Whether it was expected to fail and does not
    over: tuple[str, ...] = ()  # Each limit of a gate that it is over, as a phrase
    remarks: tuple[str, ...] = ()  # Sentences in plain words, the weightiest first
    repro: tuple[str, ...] = ()  # Command lines that repeat the case with plain tools

    @property
    def latency_ns(self) -> float | None:
        """Median over generations of each one's median time of one call."""
        return self.latency.median_ns if self.latency is not None else None

    @property
    def reference_ns(self) -> float | None:
        """Median real time that one iree-benchmark-module process says."""
        times = [time for time in self.reference.real_time_ns if 0 < time < math.inf] if self.reference else []
        return float(statistics.median(times)) if times else None

    @property
    def ir(self) -> Mapping[str, int]:
        """Counts of the ops that the suite names, by `phase/op`."""
        return self.counted.counts if self.counted is not None else {}

    def figure(self, metric: str) -> float | None:
        """One of its figures by the metric's name; of a latency, that of the fastest generation."""
        if metric == LATENCY.name:
            return self.latency.low_ns if self.latency is not None else None
        if metric == INSTRUCTIONS.name:
            return self.instructions_per_call
        if "/" in metric:
            return self.ir.get(metric)
        if metric == COMPILE_TIME.name:
            return self.build.compile_ns if self.build is not None else None
        if (of_build := BUILD_FACTS.get(METRICS[metric])) is not None:
            return of_build(self.build) if self.build is not None else None
        return REFERENCE_FACTS[METRICS[metric]](self.reference) if self.reference is not None else None


@dataclass(frozen=True, kw_only=True)
class Section:
    """The cases that were measured against each other: one model on one device."""

    group: str
    model: str
    device: str
    device_facts: str  # What the device is and its driver's version; "" where the run does not say
    call: str  # The entry function and its inputs, as a person would write them
    baseline: str  # What the others are compared with: the variant, and its toolchain where there are several
    rounds: tuple[int, ...]  # Of each generation that measured the group
    rows: tuple[Row, ...]
    refused: str = ""  # The suite's baseline and why another case stands in its place; "" where it is the baseline
    taken: float | None = None  # The share of its turns' time that other processes took; None where it is not known
    best_peer: str = ""  # Label of the fastest peer; "" where none was measured
    work: Work | None = None  # What one call has to do; None in runs that did not count it
    # What the machine reaches with as many threads; None where it was not measured, as of a GPU
    peak: Peak | None = None
    host: str = ""  # Which one measured the group; "" where one machine measured the whole run

    @property
    def against(self) -> str:
        """`vs im2col (stock is refused: wrong output)`; "" where others are held against the suite's baseline."""
        return f"vs {self.baseline} ({self.refused})" if self.refused else ""

    @property
    def place(self) -> str:
        """What a picture has above the section's rows."""
        return f"{self.model} @ {self.device}{f', {self.against}' if self.refused else ''}"

    @property
    def title(self) -> str:
        """`net on cpu`, and where there are several hosts, which of them measured it."""
        return f"{self.model} on {self.device}{f' of {self.host}' if self.host else ''}"

    @property
    def toolchains(self) -> tuple[str, ...]:
        """Versions of its rows, in order; peers know none."""
        return tuple(dict.fromkeys(row.toolchain for row in self.rows if row.peer is None))

    def label(self, row: Row) -> str:
        """What tells a row from the others of the section: its variant, and its toolchain where there are several."""
        return side_label(row.variant, row.toolchain, several=len(self.toolchains) > 1 and row.peer is None)


# --- From a run ---


@dataclass(frozen=True, kw_only=True)
class _Group:
    """What the rows of one section share."""

    side: Side
    plan: Plan
    judged: Mapping[str, Judged]
    timings: Timings
    times: GroupTimes
    best_peer: Case | None  # The case of the fastest peer; None where none was measured
    instructions: Mapping[str, float]  # Per call, by case


def section_of(name: str, plan: Plan, timings: Timings, judged: Mapping[str, Judged]) -> Section:
    """The rows of the cases that were measured against each other."""
    side = plan.head
    cases, evidence, times = side.groups[name], side.evidence, timings.groups[name]
    several = len({case.toolchain for case in cases if case.peer is None}) > 1
    base = side.baselines.get(name)
    planned = next((case for case in cases if case.baseline), base)
    labels = [side_label(case.variant, case.toolchain, several=several) for case in (base, planned) if case is not None]
    first, host = cases[0], side.run.host_of(cases[0])
    model = evidence.models.get(first.model)
    group = _Group(
        side=side,
        plan=plan,
        judged=judged,
        timings=timings,
        times=times,
        best_peer=_best_peer(cases, times),
        instructions=counter_per_call(evidence.rounds.get(name, ()), "instructions"),
    )
    return Section(
        group=name,
        model=first.model,
        device=first.device,
        device_facts=str(side.run.environment_of(first).get("devices", {}).get(first.device, "")),
        call="" if model is None or model.failure is not None else f"{model.function}({', '.join(model.inputs)})",
        baseline=labels[0] if labels else side.run.header.baseline,
        refused=f"{labels[1]} {why_refused(planned, evidence)}" if planned is not None and planned is not base else "",
        rounds=tuple(len(rounds) for rounds in times.generations.values()),
        rows=tuple(_row(case, group) for case in cases),
        taken=statistics.mean(times.taken.values()) if times.taken else None,
        best_peer=group.best_peer.variant if group.best_peer is not None else "",
        work=evidence.work.get(first.model),
        peak=evidence.peaks.get((host, first.device)),
        host=host,
    )


def _best_peer(cases: Sequence[Case], times: GroupTimes) -> Case | None:
    found = [
        (latency.median_ns, case)
        for case in cases
        if case.peer is not None and (latency := summarise_latency(times.ns_per_call(case.name))) is not None
    ]
    return min(found, key=lambda pair: pair[0])[1] if found else None


def _row(case: Case, group: _Group) -> Row:
    header, evidence, times = group.side.run.header, group.side.evidence, group.times
    stand_in = group.side.stand_ins.get(case.name)
    timed = group.timings.timed(case)
    has_time = bool(times.ns_per_call(timed.name))
    own_failure = find_failure(case, evidence, timed=has_time)
    failure = own_failure or find_failure(timed, evidence, timed=has_time)
    status = _status(case, failure, group, timed=has_time)
    build, check = evidence.builds.get(case.name), evidence.checks.get(case.name)
    reference = evidence.references.get(case.name) or evidence.references.get(timed.name)
    base = group.side.baselines.get(case.group)
    same_as = stand_in if status == "same" else None
    row = Row(
        case=case.name,
        **{name: getattr(case, name) for name in _OF_CASE},
        baseline=case is base,
        compared_with=base.name if base is not None and base is not case else None,
        host=group.side.run.host_of(case),
        status=status,
        same_as=same_as.variant if same_as is not None else None,
        build=build,
        counted=evidence.ir.get(case.name),
        check=check,
        reference=reference,
        failure=failure,
        works_again=works_again(case, status, check),
        repro=repro_lines(case, header.suite, build, reference, check, several_toolchains=len(header.toolchains) > 1),
    )
    if status in ("measured", "same"):
        row = _with_times(row, timed, group)
    row = replace(row, over=tuple(_over(row, header.gates)))
    shared = [f"same module as {same_as.variant}"] if same_as is not None else []
    if same_as is not None and same_as.variant == header.baseline:
        shared = [f"inert: it changes nothing in {case.toolchain} ({shared[0]})"]
    failed_check = check if own_failure else evidence.checks.get(timed.name)
    remarks = (
        *fate_remarks(case, status, failure, failed_check, None if own_failure or timed is case else timed),
        *row.over,
        *shared,
        *measuring_remarks(row, len(times.generations), times.unusable.get(case.name, 0)),
        *check_remarks(check),
        *effect_remarks(case, build),
        *counting_remarks(row.counted),
        *(f"compiler warning: {warning}" for warning in (build.warnings if build is not None else ())),
    )
    return replace(row, remarks=remarks)


def _over(row: Row, gates: Sequence[Gate]) -> Iterator[str]:
    """Each limit that a row is over."""
    for gate in gates:
        if (
            gate.at_most is not None
            and row.failure is None
            and matches(gate, row.case, f"{row.model}/{row.variant}@{row.device}")
        ):
            value = row.figure(gate.metric)
            if value is not None and value > gate.at_most:
                yield f"over its limit: gate {gate.name} allows {allowance(gate)}, and it has {amount(gate, value)}"


def _status(case: Case, failure: Failure | None, group: _Group, *, timed: bool) -> Status:
    evidence = group.side.evidence
    if case.skip is not None:
        return "skipped"
    if failure is not None:
        return "expected failure" if is_expected(case, failure) else "failed"
    if timed:
        return "same" if case.name in group.side.stand_ins else "measured"
    if not evidence.finished:
        return "not measured yet"
    return "missing" if group.side.run.header.settings.get("measure", True) else "not timed"


def _with_times(row: Row, timed: Case, group: _Group) -> Row:
    latency = summarise_latency(group.times.ns_per_call(timed.name))
    if latency is None:
        return row
    own = summarise_latency(group.times.own_ns_per_call(timed.name))
    instructions = group.instructions.get(timed.name)
    own_ns = own.median_ns if own is not None else None
    row = replace(row, latency=latency, own_ns=own_ns, instructions_per_call=instructions)
    if (work := group.side.evidence.work.get(row.model)) is not None:
        model = group.side.evidence.models.get(row.model)
        narrow = model is not None and any(argument.dtype in NARROW_TYPES for argument in model.arguments)
        peak = group.side.evidence.peaks.get((row.host, row.device))
        row = replace(row, attained=attained(work, latency.median_ns, peak, narrow=narrow))
    if group.best_peer is not None and timed is not group.best_peer:
        row = replace(row, peer_estimate=estimate_ratio(group.times.log_ratios(timed.name, group.best_peer.name)))
    if row.baseline:
        return row
    fate = group.plan.fates.get(row.case)
    if isinstance(fate, DecidedRow) and fate.verdict == "identical":
        return replace(row, kind="same")
    judged = group.judged.get(row.case)
    if judged is None or judged.estimate is None:
        return row
    return replace(row, estimate=judged.estimate, kind=RUN_WORDS[judged.row.verdict])


# --- Remarks ---


def fate_remarks(
    case: Case, status: Status, failure: Failure | None, check: Check | None, stand_in: Case | None
) -> Iterator[str]:
    """Why a row has no figures, or that it was not expected to have any."""
    message = f' with "{case.expected_failure}"' if case.expected_failure else ""
    expectation = "give wrong outputs" if case.expected_mismatch else f"fail{message}"
    if status == "skipped":
        yield f"skipped: {case.skip}"
    elif status == "missing":
        yield "missing: planned, but neither measured nor failed"
    elif failure is not None:
        is_wrong = failure.stage == "verify" and check is not None and check.against
        cause = f"{'wrong output' if is_wrong else f'failed at {failure.stage}'}: {failure.message}"
        if stand_in is not None:
            cause = f"same module as {stand_in.variant}: {cause}"
        yield f"expected to fail: {cause}" if status == "expected failure" else cause
    elif works_again(case, status, check):
        yield f"expected to {expectation}, but works now"
    elif status in _WENT_ALL_THE_WAY and case.expected_mismatch:
        yield "expected to give wrong outputs, which cannot be told: there is nothing to compare them with"


def works_again(case: Case, status: Status, check: Check | None) -> bool:
    """Whether a case that was expected to fail does not; of outputs held against nothing, nobody can tell that."""
    is_told = was_compared(check) if case.expected_mismatch else status != "not timed" or check is not None
    return case.known_to_fail and is_told and status in _WENT_ALL_THE_WAY


def measuring_remarks(row: Row, generations: int, unusable: int) -> Iterator[str]:
    """What a reader should know about the samples behind a row, and that iree-benchmark-module failed."""
    if row.latency is not None and row.latency.generations < generations:
        yield f"measured in {row.latency.generations} of {generations} generations"
    if unusable:
        yield f"{plural(unusable, 'turn')} without time on the clock left out"
    if row.status == "measured" and row.latency is not None and row.reference and row.reference.failure is not None:
        yield f"iree-benchmark-module failed: {row.reference.failure.message}"


def was_compared(check: Check | None) -> bool:
    """Whether a case's outputs were held against right ones, and not only looked at for being finite."""
    return check is not None and check.max_relative is not None


def check_remarks(check: Check | None) -> Iterator[str]:
    """That a check says little, since zeros would pass; or nothing."""
    if check is None:
        return
    if check.failure is None and check.below_tolerance:
        numbers = ", ".join(map(str, check.below_tolerance))
        which = f"output{'s' if len(check.below_tolerance) > 1 else ''} {numbers}"
        yield f"all values of {which} are within the tolerance of zero, so the check says little: zeros would pass"
    if check.failure is None and check.against and not was_compared(check):
        yield f"not checked: {check.no_second_opinion or 'its values are finite, and that is all that is known'}"
    if check.note:
        yield check.note
    if check.failure is not None and check.reproducer:
        yield f"what shows it is kept in the cache folder, in {check.reproducer}"


def effect_remarks(case: Case, build: Build | None) -> Iterator[str]:
    """What rewrites matched, and that a pass pipeline cannot match anything."""
    rewrites = [effect for effect in build.effects if effect.matched is not None] if build is not None else []
    for name, group in itertools.groupby(rewrites, key=lambda effect: effect.name):
        steps = tuple(group)
        matched = sum(step.matched or 0 for step in steps)
        nothing = ", and changed nothing" if matched and not any(step.changed for step in steps) else ""
        yield f"{name} matched {plural(matched, 'place')}{nothing}"
    if build is not None and any(map(_WRONG_ANCHOR.search, case.compile_flags)):
        yield "passes for func.func find nothing, since functions are util.func by then"


def counting_remarks(counted: IrCounts | None) -> Iterator[str]:
    """That the ops of a case could not be counted, or at some phases, or its encoded tensors not be sized."""
    if counted is None:
        return
    if counted.lacking:
        phases = ", ".join(counted.lacking)
        yield f"its release of IREE does not have the {'phases' if len(counted.lacking) > 1 else 'phase'} {phases}"
    if counted.failure is not None:
        yield f"its ops were not counted: {counted.failure.message}"
    if counted.storage_failure is not None:
        yield counted.storage_failure.message
