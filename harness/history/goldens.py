"""Golden times of a suite's cases from what runs recorded: as a page, as upstream's JSON, and as gates of a suite."""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from harness.compare.judge import Timings
from harness.compare.pairs import side_of
from harness.errors import UsageError
from harness.history.imported import plain_name
from harness.history.series import History, frame_records
from harness.metrics import LATENCY
from harness.records.case import Case
from harness.records.run import Run
from harness.report.data import Field, table_of
from harness.report.page import Page, Paragraph
from harness.stats.goldens import FALSE_ALARMS, REPETITIONS, Golden, golden_of
from harness.stats.pairing import FloatArray
from harness.store.files import read_document
from harness.store.run_directory import load_run
from harness.text import matching, plural, shown

_RUNS = "SELECT * FROM runs WHERE finished AND clock = '' AND suite = ? ORDER BY started, run"


@dataclass(frozen=True, kw_only=True)
class Proposal:
    """The golden time of a case."""

    case: str
    name: str  # Upstream's: the model's where there is one case of it, else the case's
    golden: Golden
    latency_ns: float  # The median over generations of their medians

    @property
    def upstream(self) -> dict[str, float]:
        """As a benchmark of upstream's has it; of one generation with upstream's own factor."""
        golden_ms = float(f"{self.golden.golden_ns / 1e6:.4g}")
        return {"golden_time_ms": golden_ms, "tolerance_factor": self.golden.factor or 1.1}


def runs_of(history: History, suite: str, machine_class: str) -> list[Run]:
    """The runs of a suite on machines of a class under the toolchain of the latest of them, in order of time."""
    every = frame_records(history.query(_RUNS, [suite]))
    own = [row for row in every if row["machine_class"] == machine_class]
    if not own:
        what = f"none of its {plural(len(every), 'run')} of {shown(suite)} was measured on {machine_class}"
        raise UsageError(f"{history.results}: {what}; measure here, without --no-measure")
    same = [row for row in own if all(row[fact] == own[-1][fact] for fact in ("toolchain", "revision"))]
    return [load_run(history.results / row["run"]) for row in same]


def propose(runs: Sequence[Run], factor: float, patterns: Sequence[str]) -> list[Proposal]:
    """For each case that the latest run timed under its newest toolchain, from all of these runs."""
    chosen, generations = matching(patterns or ("*",)), dict[str, list[FloatArray]]()
    cases: dict[str, Case] = {}
    for run in runs:
        recorded, newest = Timings(side_of(run, "")), run.header.toolchains[-1].version
        named = {
            f"{case.model}/{case.variant}@{case.device}": case for case in run.header.cases if case.toolchain == newest
        }
        cases = {name: case for name, case in named.items() if chosen.match(name)}
        for case in cases.values():
            times = recorded.groups[case.group].ns_per_call(recorded.timed(case).name)
            generations.setdefault(case.id, []).extend(times)
    of_model = Counter(case.model for case in cases.values())
    return [
        Proposal(
            case=name,
            name=case.model if of_model[case.model] == 1 else name,
            golden=golden_of(measured, factor),
            latency_ns=float(np.median([np.median(ns) for ns in measured])),
        )
        for name, case in cases.items()
        if (measured := generations[case.id])
    ]


def goldens_page(found: Sequence[Proposal], runs: Sequence[Run], factor: float) -> Page:
    """A row for each case, and how to read it."""
    fields: tuple[Field[Proposal], ...] = (
        Field(title="case", kind="name", value=lambda row: row.case),
        Field(title="golden", unit="ns", value=lambda row: row.golden.golden_ns),
        Field(title="from", unit="ns", value=lambda row: row.golden.low_ns, rank=1),
        Field(title="to", unit="ns", value=lambda row: row.golden.high_ns, rank=1),
        Field(title="generations", value=lambda row: row.golden.generations),
        Field(title=f"false alarms at {factor:g}", unit="share", value=lambda row: row.golden.false_alarms),
        Field(title="at most", unit="share", value=lambda row: row.golden.at_most),
        Field(title=f"factor for {FALSE_ALARMS:.0%}", unit="ratio", value=lambda row: row.golden.factor),
    )
    legend = (
        f"From {plural(len(runs), 'run')} under IREE {runs[-1].header.toolchains[-1].version}. A false alarm: the "
        f"shortest of {REPETITIONS} calls of a process is above golden x {factor:g} with nothing wrong. At most: the "
        "end of the 95 % interval of their share, which falls with the number of generations."
    )
    return Page(parts=(*table_of(fields, found, ""), Paragraph(legend)))


def written(out: Path, found: Sequence[Proposal]) -> str:
    """The new text of a file: gates of a suite, a benchmark of torch_models, or else a configuration of torch_ops."""
    if out.suffix == ".toml":
        import tomli_w

        gates = {}
        for row in found:
            limit_ns = round(row.latency_ns * row.upstream["tolerance_factor"])
            gates[plain_name(row.case)] = {"metric": LATENCY.name, "cases": row.case, "at_most": limit_ns}
        return tomli_w.dumps({"gates": gates})
    try:
        before = dict(json.loads(read_document(out))) if out.exists() else {}
    except (TypeError, ValueError) as error:
        raise UsageError(f"{out}: is no JSON object ({error}); mend it, or name another file") from None
    if "type" in before:
        own = [row.upstream for row in found if row.name == out.stem]
        if not own:
            raise UsageError(f"{out}: no case is named {out.stem}, but {found[0].name}; name the model as the test")
        return json.dumps({**before, **own[0]}, indent=2)
    there = dict(before.get("golden_times_ms", {}))
    names = {name.replace("/", "-"): name for name in there}  # of models in suites that are made of these tests
    there |= {names.get(row.name, row.name): row.upstream["golden_time_ms"] for row in found}
    factor = max(row.upstream["tolerance_factor"] for row in found)
    return json.dumps({**before, "golden_times_ms": there, "tolerance_factor": factor}, indent=2)
