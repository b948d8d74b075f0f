"""Two compiled positions -> one measurement of the figure that is asked for, or what is known without one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from harness.bisect.judged import counted, place
from harness.bisect.search import Unusable
from harness.compare.engine import decide
from harness.compare.judge import WORDS
from harness.compare.outputs import compare_pair
from harness.compare.pairs import Pair, Side, what_is_known
from harness.compare.rows import exact_rows, instructions_row, measured_row
from harness.compare.samplers import GENERATION_S, Gone, Module, find_module, latency_task, sample_compiles
from harness.compare.task import Generation, Task
from harness.errors import CaseError, RunError
from harness.measure import last_core
from harness.measure.alone import only_one_measures
from harness.measure.worker import ON_CALLING_THREAD
from harness.metrics import COMPILE_TIME, INSTRUCTIONS, Metric
from harness.process import Limits
from harness.progress import Progress
from harness.records.bisection import Trial
from harness.records.case import Case
from harness.records.comparison import Row, Verdict
from harness.records.run import Round
from harness.stats.rule import Rule, generations_needed
from harness.toolchain import Toolchain

# Instructions repeat to parts per million, so a few processes are enough to see that they do.
_COUNTED_GENERATIONS = 3
# Of the generations that a verdict needs, since not all of them agree.
_ROOM = 1.5
_UNMEASURED: frozenset[Verdict] = frozenset({"failed", "outputs differ", "missing", "new"})


@dataclass(frozen=True, kw_only=True)
class Place:
    """A position that is compiled and was right."""

    name: str
    side: Side  # The run in which that was done
    case: Case
    toolchain: Toolchain


@dataclass(frozen=True, kw_only=True)
class Measuring:
    """How positions are measured."""

    metric: Metric
    # Wall seconds for looking at one pair; it is more where calls are so long that a verdict needs more
    budget_s: float
    cap_s: float  # That a pair takes at most for looking
    noise: float  # The smallest change that this machine was found to see, as a share; 0: not known
    seed: int
    call_limit_s: float
    compile_limits: Limits  # Of each compile that is timed
    wait: bool  # While another harness measures on this machine
    cache: Path  # The cache folder
    progress: Progress
    whole: float | None = None  # Log ratio of two ends, by one of which a position may be placed; None: it is judged


def try_pair(base: Place, head: Place, rule: Rule, measuring: Measuring, earlier: Sequence[Trial] = ()) -> Trial:
    """Measure one position beside another, unless it is known already what comes of it."""
    asked = Trial(base=base.name, head=head.name, floor=rule.floor, verdict="inconclusive")
    pair = Pair(name=head.case.name, base=base.case, head=head.case)
    known = what_is_known(pair, base.side, head.side)
    if isinstance(known, str):
        return replace(asked, verdict="failed", reason=known)
    if known is not None and not (known.verdict == "identical" and measuring.metric == COMPILE_TIME):
        ratio = 1.0 if known.verdict == "identical" else None
        return replace(asked, verdict=known.verdict, reason=known.reason, ratio=ratio)
    if (differs := compare_pair(pair, base.side, head.side, measuring.cache).verdict) is not None:
        return replace(asked, verdict=differs.verdict, reason=differs.reason)
    if measuring.metric.exact:
        return _counted(asked, pair, base, head, measuring.metric)
    modules = _module(base, measuring.cache), _module(head, measuring.cache)
    with only_one_measures(measuring.progress.note, wait=measuring.wait):
        if measuring.metric == INSTRUCTIONS:
            return _instructions(asked, pair, modules, rule, measuring)
        return _timed(asked, pair, modules, rule, measuring, earlier)


def why_unmeasured(trial: Trial) -> str:
    """Why the head of a measurement cannot be measured; "" where it can."""
    return trial.reason if trial.verdict in _UNMEASURED else ""


def _module(place: Place, cache: Path) -> Module:
    try:
        return find_module(place.side, place.case, place.toolchain, cache)
    except Gone as error:
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
    return replace(filled, verdict=WORDS[found.standing].verdict, reason=found.reason, exact=True)


def _instructions(asked: Trial, pair: Pair, modules: tuple[Module, Module], rule: Rule, measuring: Measuring) -> Trial:
    """Count instructions, which only a device that computes on the thread that calls has."""
    rounds: list[Round] = []
    if set(pair.case.uris) != {ON_CALLING_THREAD}:
        return replace(asked, verdict="failed", reason="instructions are counted on local-sync devices alone")
    task = _latency_task(asked, modules, rule, measuring, 0.0, rounds.append)
    measuring.progress.stage(_title(asked, "count"), _COUNTED_GENERATIONS)
    try:
        for number in range(_COUNTED_GENERATIONS):
            task.sample(number)
            measuring.progress.step(asked.head)
    except CaseError as error:
        return replace(asked, verdict="failed", reason=str(error))
    row = instructions_row(pair, rounds, rule.floor)
    if row is None:
        return replace(asked, verdict="failed", reason="this machine does not let instructions be counted")
    return _filled(asked, row)


def _timed(
    asked: Trial,
    pair: Pair,
    modules: tuple[Module, Module],
    rule: Rule,
    measuring: Measuring,
    earlier: Sequence[Trial],
) -> Trial:
    """Latencies or compile times, until the engine has decided."""
    compiles = measuring.metric == COMPILE_TIME
    known_s = sum(module.build.compile_ns or 0 for module in modules) / 1e9 if compiles else 0.0
    budget_s = _budget_s(rule, measuring, earlier, known_s)
    if compiles:
        sample = partial(sample_compiles, *modules, last_core(), measuring.compile_limits)
        task = Task(name=_title(asked, ""), sample=sample, rule=rule, budget_s=budget_s, cap_s=measuring.cap_s)
    else:
        task = _latency_task(asked, modules, rule, measuring, budget_s, lambda _: None)
    if measuring.whole is not None:
        try:
            placed = place(asked, task, measuring.whole)
        except CaseError as error:
            return replace(asked, verdict="failed", reason=str(error))
        if isinstance(placed, Trial):
            return placed
        task = placed
    whole, done_s = max(1, int(budget_s)), 0.0
    measuring.progress.stage(_title(asked, "(s at most)"), whole)

    def show(_: str, generation: Generation) -> None:
        nonlocal done_s
        before = min(int(done_s), whole)
        done_s += generation.seconds
        measuring.progress.step(asked.head, advance=min(int(done_s), whole) - before)

    (outcome,) = decide([task], show, on_beyond=lambda _name, _seconds, sentence: measuring.progress.note(sentence))
    return _filled(asked, measured_row(pair, measuring.metric, outcome, rule.floor))


def _budget_s(rule: Rule, measuring: Measuring, earlier: Sequence[Trial], known_s: float) -> float:
    """The user's, or as much as a verdict needs with generations as dear as they were, up to the cap."""
    dear_s = max((trial.seconds / trial.generations for trial in earlier if trial.generations), default=known_s)
    needed_s = _ROOM * generations_needed(1, rule) * dear_s
    return max(measuring.budget_s, min(needed_s, measuring.cap_s))


def _latency_task(
    asked: Trial,
    modules: tuple[Module, Module],
    rule: Rule,
    measuring: Measuring,
    budget_s: float,
    on_round: Callable[[Round], None],
) -> Task:
    return latency_task(
        _title(asked, ""),
        *modules,
        rule,
        budget_s=budget_s,
        seed=measuring.seed,
        call_limit_s=measuring.call_limit_s,
        cap_s=measuring.cap_s,
        noise=measuring.noise,
        long_round_s=GENERATION_S,
        on_round=on_round,
    )


def _title(asked: Trial, more: str) -> str:
    return f"{asked.head} beside {asked.base} {more}".strip()


def _filled(asked: Trial, row: Row) -> Trial:
    """What a row of a comparison says, as a measurement."""
    return replace(
        asked,
        verdict=row.verdict,
        reason=row.reason,
        ratio=row.ratio,
        ci_low=row.ci_low,
        ci_high=row.ci_high,
        p=row.p,
        base_value=row.base_value,
        head_value=row.head_value,
        generations=row.generations,
        seconds=row.seconds,
    )
