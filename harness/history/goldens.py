"""Golden times: what IREE's own gate makes of them, and files that have them.

That gate fails where the shortest of ten calls of one process is above golden x factor. Processes differ more than the
calls of one do, so generations are what is counted, and few of them tell little.
"""

import json
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from harness.compare.judge import Timings
from harness.compare.pairs import Side
from harness.errors import UsageError
from harness.history.imported import plain_name
from harness.history.series import History, frame_records
from harness.metrics import LATENCY
from harness.records.case import Case
from harness.records.run import Run
from harness.report.data import Field, table_of
from harness.report.page import Page, Paragraph
from harness.stats.intervals import CONFIDENCE, Estimate, paired_mean, rate_bounds, ratio_of
from harness.stats.pairing import FloatArray
from harness.store.files import read_document
from harness.store.run_directory import load_run
from harness.text import matching, plural, shown

_REPETITIONS = 10
_FALSE_ALARMS = 0.01  # What a proposed factor allows
_FACTOR = 1.1  # Upstream's, where none can be proposed
_ENOUGH = 8  # Generations for a factor above that
_RUNS = "SELECT * FROM runs WHERE finished AND clock = '' AND suite = ? ORDER BY started, run"


@dataclass(frozen=True, kw_only=True)
class Golden:
    """A time to hold a program against, and what the gate makes of this machine's own noise."""

    case: str
    name: str  # Upstream's: the model's where there is one case of it, else the case's
    golden_ns: float  # The geometric mean over generations of the shortest of ten
    low_ns: float | None  # Of its interval; None of one generation. high_ns likewise.
    high_ns: float | None
    generations: int
    false_alarms: float  # The share of processes that the gate fails
    at_most: float  # The upper end of that share's interval
    factor: float | None  # With which it fails _FALSE_ALARMS of them; None of one generation

    @property
    def golden_ms(self) -> float:
        """As files have it."""
        return float(f"{self.golden_ns / 1e6:.4g}")


def golden_of(generations: Sequence[FloatArray], factor: float, case: str = "", name: str = "") -> Golden:
    """From what calls took in each generation, one at least, in the order in which they ran."""
    from scipy.special import stdtrit  # scipy.stats takes a second to import

    # Of each ten calls in a row, the first after the last: a slow stretch slows all ten.
    windows = [np.min([np.roll(ns, -step) for step in range(_REPETITIONS)], axis=0) for ns in generations]
    logs, number = [np.log(shortest) for shortest in windows], len(windows)
    means = np.array([each.mean() for each in logs])
    golden = Estimate(where=paired_mean(means, confidence=CONFIDENCE), confidence=CONFIDENCE, rounds=0)
    alarms = sum(float((each > golden.where.centre + math.log(factor)).mean()) for each in logs)
    proposed = None
    if golden.low is not None:
        # What a process to come does not exceed: by its likes, and as these are few by their spread as a normal one.
        spread = math.hypot(means.std(ddof=1) * math.sqrt(1 + 1 / number), np.mean([each.std() for each in logs]))
        seen = np.quantile(np.concatenate(logs), 1 - _FALSE_ALARMS, method="higher") - golden.where.centre
        above = max(float(seen), float(stdtrit(number - 1, 1 - _FALSE_ALARMS)) * spread)
        proposed = math.ceil(ratio_of(above) * 1000) / 1000
    return Golden(
        case=case,
        name=name,
        golden_ns=golden.ratio,
        low_ns=golden.low,
        high_ns=golden.high,
        generations=number,
        false_alarms=alarms / number,
        at_most=rate_bounds(math.ceil(alarms - 1e-9), number)[1],
        factor=proposed,
    )


def runs_of(history: History, suite: str, machine_class: str) -> list[Run]:
    """The runs of a suite on machines of a class under the toolchain of the latest of them, in order of time."""
    every = frame_records(history.query(_RUNS, [suite]))
    own = [row for row in every if row["machine_class"] == machine_class]
    if not own:
        what = f"none of its {plural(len(every), 'run')} of {shown(suite)} was measured on {machine_class}"
        raise UsageError(f"{history.results}: {what}; measure here, without --no-measure")
    same = [row for row in own if all(row[fact] == own[-1][fact] for fact in ("toolchain", "revision"))]
    return [load_run(history.results / row["run"]) for row in same]


def propose(runs: Sequence[Run], factor: float, patterns: Sequence[str], *, medians: bool = False) -> list[Golden]:
    """For each case that the latest run timed under its newest toolchain, from all runs; gates are of medians."""
    chosen, generations = matching(patterns or ("*",)), dict[str, list[FloatArray]]()
    cases: dict[str, Case] = {}
    for run in runs:
        recorded, newest = Timings(Side(run, "")), run.header.toolchains[-1].version
        own = [case for case in run.header.cases if case.toolchain == newest]
        cases = {f"{case.model}/{case.variant}@{case.device}": case for case in own}
        for case in own:
            times = recorded.groups[case.group].ns_per_call(recorded.timed(case).name)
            generations.setdefault(case.id, []).extend(np.median(ns, keepdims=True) if medians else ns for ns in times)
    timed = {name: case for name, case in cases.items() if chosen.match(name) and generations[case.id]}
    of_model = Counter(case.model for case in timed.values())
    return [
        golden_of(generations[case.id], factor, name, case.model if of_model[case.model] == 1 else name)
        for name, case in timed.items()
    ]


def goldens_page(found: Sequence[Golden], runs: Sequence[Run], factor: float) -> Page:
    """A row for each case, and how to read it."""
    fields: tuple[Field[Golden], ...] = (
        Field(title="case", kind="name", value=lambda row: row.case),
        Field(title="golden", unit="ns", value=lambda row: row.golden_ns),
        Field(title="from", unit="ns", value=lambda row: row.low_ns, rank=1),
        Field(title="to", unit="ns", value=lambda row: row.high_ns, rank=1),
        Field(title="generations", value=lambda row: row.generations),
        Field(title=f"false alarms at {factor:g}", unit="share", value=lambda row: row.false_alarms),
        Field(title="at most", unit="share", value=lambda row: row.at_most),
        Field(title=f"factor for {_FALSE_ALARMS:.0%}", unit="ratio", value=lambda row: row.factor),
    )
    legend = (
        f"From {plural(len(runs), 'run')} under IREE {runs[-1].header.toolchains[-1].version}. A false alarm: the "
        f"shortest of {_REPETITIONS} calls of a process is above golden x {factor:g} with nothing wrong. At most: the "
        "end of the 95 % interval of their share, which falls with the number of generations."
    )
    few = [Paragraph(_too_few(row), "bad") for row in found if row.generations < _ENOUGH][:1]
    return Page(parts=(*table_of(fields, found, ""), *few, Paragraph(legend)))


def _too_few(row: Golden) -> str:
    return f"{row.case} has {plural(row.generations, 'generation')}, too few; give --generations {_ENOUGH} or more"


def written(out: Path, found: Sequence[Golden]) -> str:
    """The new text of a file: gates of a suite, a benchmark of torch_models, or else a configuration of torch_ops."""
    if wide := [row for row in found if row.generations < _ENOUGH and (row.factor or 0) > _FACTOR]:
        raise UsageError(f"{out}: is not written with a factor of {wide[0].factor:g}: {_too_few(wide[0])}")
    if out.suffix == ".toml":
        import tomli_w

        gates = {}
        for row in found:
            limit_ns = round(row.golden_ns * (row.factor or _FACTOR))
            gates[plain_name(row.case)] = {"metric": LATENCY.name, "cases": row.case, "at_most": limit_ns}
        return tomli_w.dumps({"gates": gates})
    try:
        before = dict(json.loads(read_document(out))) if out.exists() else {}
    except (TypeError, ValueError) as error:
        raise UsageError(f"{out}: is no JSON object ({error}); mend it, or name another file") from None
    if "type" in before:
        found = [row for row in found if row.name == out.stem]
        if not found:
            raise UsageError(f"{out}: no case that was asked for is named {out.stem}; name its model as the test")
        more: dict[str, object] = {"golden_time_ms": found[0].golden_ms}
    else:
        there = dict(before.get("golden_times_ms", {}))
        names = {name.replace("/", "-"): name for name in there}  # of models in suites that are made of these tests
        more = {"golden_times_ms": {**there, **{names.get(row.name, row.name): row.golden_ms for row in found}}}
    factor = max(row.factor or _FACTOR for row in found)
    if "type" not in before and isinstance(others := before.get("tolerance_factor"), (int, float)):
        factor = max(factor, others)  # tests that were not measured may need it
    return json.dumps({**before, **more, "tolerance_factor": factor}, indent=4) + "\n"
