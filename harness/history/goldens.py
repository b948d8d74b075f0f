"""Golden times of a suite's cases from what runs recorded: as a page, as upstream's JSON, and as gates of a suite."""

import json
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from harness.compare.judge import Timings
from harness.compare.pairs import side_of
from harness.errors import UsageError
from harness.history.series import History, frame_records
from harness.metrics import LATENCY
from harness.records.run import Run
from harness.report.data import Field, table_of
from harness.report.page import Page, Paragraph
from harness.report.run_report import build_report
from harness.stats.goldens import FALSE_ALARMS, REPETITIONS, Golden, golden_of
from harness.stats.pairing import FloatArray
from harness.store.files import read_document, writing
from harness.store.run_directory import load_run
from harness.suite.schema import LONGEST_NAME
from harness.text import matching, plural, shown

_RUNS = "SELECT * FROM runs WHERE finished AND clock = '' AND suite = ? ORDER BY started, run"
_COUNTS = {"golden_dispatch_count": "dispatches", "golden_binary_size": "module-size"}


@dataclass(frozen=True, kw_only=True)
class Proposal:
    """The golden time of a case, and what else upstream's tests hold it to."""

    case: str
    name: str  # Upstream's: the model's where there is one case of it, else the case's
    golden: Golden
    latency_ns: float  # The median over generations of their medians
    counts: dict[str, float]  # By upstream's name, of the latest run

    @property
    def times(self) -> dict[str, float]:
        """The same of its time; of one generation with upstream's own factor."""
        golden_ms = float(f"{self.golden.golden_ns / 1e6:.4g}")
        return {"golden_time_ms": golden_ms, "tolerance_factor": self.golden.factor or 1.1}


def runs_of(history: History, suite: str, machine_class: str) -> list[Run]:
    """The runs of a suite on machines of a class under the toolchain of the latest of them, in order of time."""
    every = frame_records(history.query(_RUNS, [suite]))
    own = [row for row in every if row["machine_class"] == machine_class]
    if not own:
        others = "; ".join(sorted({row["machine_class"] for row in every})) or "nothing"
        what = f"has no run of {shown(suite)} on {machine_class}, but of {others}"
        raise UsageError(f"{history.results}: {what}; measure it here, without --no-measure")
    same = [row for row in own if all(row[fact] == own[-1][fact] for fact in ("toolchain", "revision"))]
    return [load_run(history.results / row["run"]) for row in same]


def propose(runs: Sequence[Run], factor: float, patterns: Sequence[str]) -> list[Proposal]:
    """For each case that the latest run timed under its newest toolchain, from all of these runs."""
    generations: dict[str, list[FloatArray]] = {}
    for run in runs:
        recorded = Timings(side_of(run, ""))
        ids = {case.name: case.id for case in run.header.cases if case.toolchain == run.header.toolchains[-1].version}
        for case in run.header.cases:
            if case.name in ids:
                times = recorded.groups[case.group].ns_per_call(recorded.timed(case).name)
                generations.setdefault(case.id, []).extend(times)
    chosen = matching(patterns or ("*",))
    timed = [row for row in build_report(runs[-1]).rows() if row.case in ids and row.latency is not None]
    rows = [row for row in timed if chosen.match(f"{row.model}/{row.variant}@{row.device}")]
    of_model = Counter(row.model for row in rows)
    found = []
    for row in rows:
        name = f"{row.model}/{row.variant}@{row.device}"
        counts = {golden: row.ir.get(metric, row.figure(metric)) for golden, metric in _COUNTS.items()}
        proposal = Proposal(
            case=name,
            name=row.model if of_model[row.model] == 1 else name,
            golden=golden_of(measured := generations[ids[row.case]], factor),
            latency_ns=float(np.median([np.median(ns) for ns in measured])),
            counts={golden: count for golden, count in counts.items() if count is not None},
        )
        found.append(proposal)
    return found


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
    header = runs[-1].header
    legend = (
        f"From {plural(len(runs), 'run')} of {header.suite_name} under IREE {header.toolchains[-1].version}. A false "
        f"alarm: the shortest of {REPETITIONS} calls of one process is above golden x {factor:g}, with nothing wrong. "
        "At most: the end of the 95 % interval of their share, which falls with the number of generations."
    )
    return Page(parts=(*table_of(fields, found, ""), Paragraph(legend)))


def write_goldens(out: Path, found: Sequence[Proposal]) -> None:
    """Into a folder of torch_models' tests, into a TOML file as gates of a suite, or into torch_ops' configuration."""
    if out.is_dir():
        return _write_tests(out, found)
    if out.suffix == ".toml":
        return _write_gates(out, found)
    before = _json_of(out) if out.exists() else {}
    there = dict(before.get("golden_times_ms", {}))
    names = {name.replace("/", "-"): name for name in there}  # of models in suites that are made of these tests
    there |= {names.get(row.name, row.name): row.times["golden_time_ms"] for row in found}
    factor = max(row.times["tolerance_factor"] for row in found)
    return _write(out, json.dumps({**before, "golden_times_ms": there, "tolerance_factor": factor}, indent=2))


def _write_tests(folder: Path, found: Sequence[Proposal]) -> None:
    tests = {file: test for file in sorted(folder.rglob("*.json")) if "type" in (test := _json_of(file))}
    by_name = {row.name: row for row in found}
    by_module = {str(tests[file].get("modules")): by_name[file.stem] for file in tests if file.stem in by_name}
    rows = {file: by_name.get(file.stem) or by_module.get(f"[{test.get('module')!r}]") for file, test in tests.items()}
    if not any(rows.values()):
        raise UsageError(f"{folder}: no test in it is named as {found[0].name} is; name models as the tests are named")
    for file, row in rows.items():
        if row is not None and (kind := tests[file]["type"]) in ("benchmark", "compstat"):
            _write(file, json.dumps(tests[file] | (row.times if kind == "benchmark" else row.counts), indent=2))


def _write_gates(file: Path, found: Sequence[Proposal]) -> None:
    """What `harness run` judges is the median of all calls, and not the shortest of ten."""
    import tomli_w

    gates = {
        re.sub(r"[^A-Za-z0-9._+-]", ".", row.case)[-LONGEST_NAME:]: {
            "metric": LATENCY.name,
            "cases": row.case,
            "at_most": round(row.latency_ns * row.times["tolerance_factor"]),
        }
        for row in found
    }
    _write(file, tomli_w.dumps({"gates": gates}))


def _json_of(file: Path) -> dict[str, Any]:
    try:
        return dict(json.loads(read_document(file)))
    except (TypeError, ValueError) as error:
        raise UsageError(f"{file}: is no JSON object ({error}); mend it, or name another file") from None


def _write(file: Path, text: str) -> None:
    with writing(file):
        file.write_text(f"{text.rstrip()}\n", encoding="utf-8")
