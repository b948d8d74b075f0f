"""What was measured of two positions -> what a search makes of it, and how sure each measurement has to be."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from harness.bisect.search import Measured, Unusable
from harness.compare.engine import Generation, Task, decide
from harness.compare.judge import VERDICT_OF
from harness.compare.pairs import Pair, Side, compare_pair, what_is_known
from harness.compare.rows import exact_rows, instructions_row, measured_row
from harness.compare.samplers import (
    GENERATION_S,
    CacheMiss,
    MeasurementPolicy,
    Module,
    compile_task,
    find_module,
    latency_task,
)
from harness.errors import CaseError, RunError
from harness.measure.session import only_one_measures
from harness.measure.worker import ON_CALLING_THREAD
from harness.metrics import COMPILE_TIME, INSTRUCTIONS, Metric
from harness.progress import Progress
from harness.records.bisection import Trial
from harness.records.case import Case
from harness.records.comparison import Row, Verdict
from harness.records.run import Round
from harness.stats.rule import Rule, Standing, generations_needed
from harness.toolchain import Toolchain

# The chance that a whole search is wrong, by the rule's figures: shared by all measurements that are judged.
ERROR = 0.01
# Of a search with one step: its ends and the step; and of a small one what cannot be placed.
JUDGED_OF_SEARCH = 8
# Generations that may place a position, and how far they may lie from an end: a share of the distance of both ends.
_PLACING, _BY_AN_END = 2, 0.25

_STANDINGS: Mapping[Verdict, Standing] = {
    "regressed": "higher",
    "improved": "lower",
    "unchanged": "equal",
    "identical": "equal",
    "inconclusive": "open",
}


def rule_of_measurements(number: int, floor: float) -> Rule:
    """The rule of each of so many measurements: they share the error that all may make together (Bonferroni)."""
    share = ERROR / number  # before any confirmation, which makes that of a plain change less than a share
    return replace(Rule(), floor=floor, alpha=share, plain_alpha=Rule().alpha, confidence=1 - 2 * share)


def place_by_an_end(asked: Trial, task: Task, whole: float) -> Trial | Task:
    """Place a position that lies plainly by one of two ends of this log ratio; else its task, begun, to be judged."""
    taken = [task.sample(number) for number in range(_PLACING)]
    logs = np.array([generation.log_ratio for generation in taken if generation.log_ratio is not None])
    shares = logs / whole
    if len(logs) < _PLACING or not (np.all(shares < _BY_AN_END) or np.all(shares > 1 - _BY_AN_END)):
        return replace(task, sample=lambda number: taken[number] if number < _PLACING else task.sample(number))
    return replace(
        asked,
        placed=True,
        reason=f"{_PLACING} generations lie by this end; not judged",
        ratio=math.exp(float(logs.mean())),
        base_value=taken[-1].base,
        head_value=taken[-1].head,
        generations=_PLACING,
        seconds=round(sum(generation.seconds for generation in taken), 3),
    )


def as_measured(trial: Trial) -> Measured | Unusable:
    """A measurement that was kept, for a search."""
    standing = _STANDINGS.get(trial.verdict)
    if standing is None:
        return Unusable(reason=trial.reason)
    if trial.exact:
        return counted(trial.base_value, trial.head_value, trial.floor)
    if trial.verdict == "identical":
        return Measured(standing="equal", centre=0.0, low=0.0, high=0.0, reason=trial.reason)
    centre = trial.log_ratio
    if centre is None:
        return Unusable(reason=trial.reason or "it has no figure")
    return Measured(
        standing=standing,
        centre=centre,
        low=math.log(trial.ci_low) if trial.ci_low else -math.inf,
        high=math.log(trial.ci_high) if trial.ci_high else math.inf,
        reason=trial.reason,
        placed=trial.placed,
    )


def counted(base: float | None, head: float | None, floor: float) -> Measured | Unusable:
    """The same of figures that are exact: counts and bytes. Either may be zero, which stands as a half."""
    if base is None or head is None:
        return Unusable(reason="it has no such figure")
    log = math.log(max(head, 0.5) / max(base, 0.5))
    standing: Standing = "equal" if abs(log) <= math.log1p(floor) else "higher" if log > 0 else "lower"
    return Measured(standing=standing, centre=log, low=log, high=log, reason=f"{base:,.10g} and {head:,.10g}")


# --- Two compiled positions -> one measurement of the figure that is asked for, or what is known without one ---


# Instructions repeat to parts per million, so a few processes are enough to see that they do.
_COUNTED_GENERATIONS = 3
# Of the generations that a verdict needs, since not all of them agree.
_ROOM = 1.5


@dataclass(frozen=True, kw_only=True)
class Place:
    """A position that is compiled and was right."""

    name: str
    side: Side  # The run in which that was done
    case: Case
    toolchain: Toolchain


def try_pair(
    base: Place,
    head: Place,
    metric: Metric,
    policy: MeasurementPolicy,
    progress: Progress,
    *,
    whole: float | None = None,
    earlier: Sequence[Trial] = (),
) -> Trial:
    """Measure one position beside another, unless it is known what comes of it; of a `whole`, it may be placed."""
    asked = Trial(base=base.name, head=head.name, floor=policy.rule.floor, verdict="inconclusive")
    pair = Pair(name=head.case.name, base=base.case, head=head.case)
    known = what_is_known(pair, base.side, head.side)
    if isinstance(known, str):
        return replace(asked, verdict="failed", reason=known)
    if known is not None and not (known.verdict == "identical" and metric == COMPILE_TIME):
        ratio = 1.0 if known.verdict == "identical" else None
        return replace(asked, verdict=known.verdict, reason=known.reason, ratio=ratio)
    if (differs := compare_pair(pair, base.side, head.side).verdict) is not None:
        return replace(asked, verdict=differs.verdict, reason=differs.reason)
    if metric.exact:
        return _counted(asked, pair, base, head, metric)
    modules = _module(base), _module(head)
    with only_one_measures(progress.note, wait=policy.wait):
        try:
            if metric == INSTRUCTIONS:
                return _instructions(asked, pair, modules, policy, progress)
            task = _task(asked, modules, metric, policy, earlier)
            placed = task if whole is None else place_by_an_end(asked, task, whole)
            return placed if isinstance(placed, Trial) else _timed(asked, pair, metric, placed, progress)
        except CaseError as error:
            return replace(asked, verdict="failed", reason=str(error))


def _module(place: Place) -> Module:
    try:
        return find_module(place.side, place.case, place.toolchain)
    except CacheMiss as error:
        raise RunError(f"{error}; begin the bisect again, which compiles it again") from None


def _counted(asked: Trial, pair: Pair, base: Place, head: Place, metric: Metric) -> Trial:
    rows = exact_rows(pair, base.side, head.side)
    row = next((row for row in rows if row.metric == metric.name), None)
    if row is None:
        return replace(asked, verdict="failed", reason=f"it has no figure of {metric.name}", exact=True)
    found = counted(row.base_value, row.head_value, asked.floor)
    if isinstance(found, Unusable):
        return replace(asked, verdict="failed", reason=found.reason, exact=True)
    filled = _filled(asked, row)
    return replace(filled, verdict=VERDICT_OF[found.standing], reason=found.reason, exact=True)


def _instructions(
    asked: Trial, pair: Pair, modules: tuple[Module, Module], policy: MeasurementPolicy, progress: Progress
) -> Trial:
    """Count instructions, which only a device that computes on the thread that calls has."""
    rounds: list[Round] = []
    if set(pair.case.uris) != {ON_CALLING_THREAD}:
        return replace(asked, verdict="failed", reason="instructions are counted on local-sync devices alone")
    task = latency_task(_title(asked), *modules, policy, long_round_s=GENERATION_S, on_round=rounds.append)
    progress.stage(f"{_title(asked)} count", _COUNTED_GENERATIONS)
    for number in range(_COUNTED_GENERATIONS):
        task.sample(number)
        progress.step(asked.head)
    row = instructions_row(pair, rounds, policy.rule.floor)
    if row is None:
        return replace(asked, verdict="failed", reason="this machine does not let instructions be counted")
    return _filled(asked, row)


def _task(
    asked: Trial, modules: tuple[Module, Module], metric: Metric, policy: MeasurementPolicy, earlier: Sequence[Trial]
) -> Task:
    """Latencies or compile times; the budget is more where generations as dear as they were need more for a verdict."""
    compiles, title = metric == COMPILE_TIME, _title(asked)
    known_s = sum(module.build.compile_ns or 0 for module in modules) / 1e9 if compiles else 0.0
    dear_s = max((trial.seconds / trial.generations for trial in earlier if trial.generations), default=known_s)
    needed_s = _ROOM * generations_needed(1, policy.rule) * dear_s
    policy = replace(policy, budget_s=max(policy.budget_s, min(needed_s, policy.cap_s)))
    if compiles:
        return compile_task(title, *modules, policy)
    return latency_task(title, *modules, policy, long_round_s=GENERATION_S)


def _timed(asked: Trial, pair: Pair, metric: Metric, task: Task, progress: Progress) -> Trial:
    """Generations until the engine has decided."""
    progress.stage(f"{_title(asked)} ({task.budget_s:.0f} s at most)", 1)

    def show(_name: str, _generation: Generation) -> None:
        progress.step(asked.head, advance=0)

    (outcome,) = decide([task], show, on_beyond=progress.note)
    progress.step(asked.head)
    return _filled(asked, measured_row(pair, metric, outcome, asked.floor))


def _title(asked: Trial) -> str:
    return f"{asked.head} beside {asked.base}"


def _filled(asked: Trial, row: Row) -> Trial:
    """What a row of a comparison says, as a measurement."""
    figures = ("ratio", "ci_low", "ci_high", "p", "base_value", "head_value", "generations", "seconds")
    return replace(asked, **{name: getattr(row, name) for name in ("verdict", "reason", *figures)})
