"""A run and its report as rows of the tables `runs`, `points` and `cases`; harness.store.schema says what they hold."""

from __future__ import annotations

import hashlib
import json
import math
import shlex
import statistics
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime, timezone
from typing import Any, NamedTuple

from harness.compare.judge import Timings
from harness.compare.pairs import Side
from harness.compare.sides import selfcheck_of
from harness.machine.environment import Environment, machine_class, machine_id
from harness.metrics import (
    COMPILE_TIME,
    EXACT,
    INSTRUCTIONS,
    LATENCY,
    LATENCY_VS_BASELINE,
    LATENCY_VS_REFERENCE,
    NOISY_METRICS,
    metric_named,
)
from harness.records.case import Case
from harness.records.run import Header, Run
from harness.report.run_report import Report, build_report
from harness.report.run_rows import Row
from harness.stats.intervals import estimate_ratio
from harness.store.evidence import clock_fault, utc_text
from harness.store.schema import BETWEEN_HOSTS, Role

_ID_DIGITS = 16
# Columns of a run, by what they are called among its machine's facts.
_SELFCHECK = {"flagged": "flagged", "rows": "rows", "bound": "upper_bound", "detects": "detects", "when": "when"}

Record = dict[str, Any]


def rows_of(run: Run, *, now: datetime | None = None) -> dict[str, list[Record]]:
    """All that a results folder's tables have of a run, by table; a case with another's module has its figures."""
    started = utc_text(run.header.started)
    report = build_report(run)
    facts = _facts_of_cases(run)
    clock = clock_fault(run.header.started, now or datetime.now(timezone.utc))
    return {
        "runs": [_run_row(run, started, report, clock)],
        "points": _points(run, started, report, facts),
        "cases": [_case_row(run.header, started, row, facts[row.case]) for row in report.rows()],
    }


def _told_by_hosts(run: Run, fact: Callable[[Environment], str]) -> str:
    return BETWEEN_HOSTS.join(sorted({told for environment in run.machines if (told := fact(environment))}))


def series_id(suite: str, case_id: str, metric: str, machine_class: str, role: Role, fixed: str = "") -> str:
    """16 hex digits that tell one series from all others."""
    text = json.dumps([suite, case_id, metric, machine_class, role, fixed], separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:_ID_DIGITS]


class _CaseFacts(NamedTuple):
    """What the rows of one case in one run share."""

    case: Case
    # Those that `points` and `cases` share. The name is without the toolchain; a peer has the role `newest` and, as its
    # toolchain, the engine's name and version as far as the run knows them.
    columns: Record
    revision: str  # "" of a peer
    # Whether the run has another case with the same id and the same toolchain, as of two variants with the same flags
    ambiguous: bool


def _facts_of_cases(run: Run) -> dict[str, _CaseFacts]:
    header = run.header
    places = {toolchain.version: place for place, toolchain in enumerate(header.toolchains)}
    seen: set[tuple[str, str]] = set()
    facts = {}
    for case in header.cases:
        place = places.get(case.toolchain)
        is_newest = place in (None, len(header.toolchains) - 1)
        peers = run.environment_of(case).get("peers", {})
        columns = {
            "case": f"{case.model}/{case.variant}@{case.device}",
            "case_id": case.id,
            "model": case.model,
            "variant": case.variant,
            "device": case.device,
            "peer": case.peer or "",
            "role": "newest" if is_newest else "reference" if place == 0 else "other",
            "toolchain": case.toolchain if case.peer is None else str(peers.get(case.variant, "")),
        }
        revision = header.toolchains[place].revision if place is not None else ""
        facts[case.name] = _CaseFacts(case, columns, revision, (case.id, case.toolchain) in seen)
        seen.add((case.id, case.toolchain))
    return facts


def _run_row(run: Run, started: str, report: Report, clock: str) -> Record:
    header = run.header
    environment: Environment = run.machines[0] if len(run.machines) == 1 else {}
    cpu = environment.get("cpu", {})
    newest = header.toolchains[-1] if header.toolchains else None
    selfcheck = selfcheck_of(environment)
    spreads = [
        row.latency.spread
        for row in report.rows()
        if row.status == "measured" and row.latency is not None and row.latency.generations > 1
    ]
    cores, load = cpu.get("usable_cores"), environment.get("load", {}).get("load_1min")
    return {
        "run": header.id,
        "suite": header.suite_name,
        "suite_file": header.suite,
        "started": started,
        "finished": run.finished,
        "machine_class": _told_by_hosts(run, machine_class),
        "machine": _told_by_hosts(run, machine_id),
        "cpu": _told_by_hosts(run, lambda host: str(host.get("cpu", {}).get("model", ""))),
        "cores": cores if isinstance(cores, int) else None,
        "kernel": _told_by_hosts(run, lambda host: str(host.get("machine", {}).get("kernel", ""))),
        "toolchain": newest.version if newest is not None else "",
        "revision": newest.revision if newest is not None else "",
        "reference": header.toolchains[0].version if len(header.toolchains) > 1 else None,
        "harness_version": header.harness_version,
        "harness_commit": header.harness_commit,
        "cases": report.summary.planned,
        "measured": report.summary.measured,
        "failed": report.summary.failed,
        "missing": report.summary.missing,
        "noise": statistics.median(spreads) if spreads else None,
        "load_1min": float(load) if isinstance(load, int | float) else None,
        **{f"selfcheck_{column}": getattr(selfcheck, fact, None) for column, fact in _SELFCHECK.items()},
        "command": shlex.join(header.command),
        "clock": clock,
        "devices": _devices(run),
        "purpose": header.purpose,
    }


def _devices(run: Run) -> str:
    told: dict[str, set[str]] = {}
    for environment in run.machines:
        for name, text in environment.get("devices", {}).items():
            told.setdefault(name, set()).add(str(text))
    return "; ".join(f"{name}: {BETWEEN_HOSTS.join(sorted(texts))}" for name, texts in told.items())


def _case_row(header: Header, started: str, row: Row, facts: _CaseFacts) -> Record:
    case = facts.case
    return {
        "run": header.id,
        "started": started,
        "suite": header.suite_name,
        **facts.columns,
        "status": row.status,
        "stage": row.failure.stage if row.failure is not None else "",
        "message": row.failure.message if row.failure is not None else case.skip or "",
        "flags": shlex.join((*case.compile_flags, *case.run_flags)),
        "repro": "\n".join(row.repro),
    }


class _Figure(NamedTuple):
    """One value of a case."""

    metric: str
    value: float
    low: float | None = None
    high: float | None = None
    reference: str = ""  # The release that it is a ratio to; "" where it is none to another toolchain


def _points(run: Run, started: str, report: Report, facts: Mapping[str, _CaseFacts]) -> list[Record]:
    header = run.header
    across = _across_toolchains(run) if len(header.toolchains) > 1 else None
    points = []
    for row in report.rows():
        of_case = facts[row.case]
        case, columns, role = of_case.case, of_case.columns, of_case.columns["role"]
        environment = run.environment_of(case)
        classed = machine_class(environment, case.device)
        base = facts.get(row.compared_with or "")
        if base is not None and not base.case.baseline:  # a ratio to another case than the suite's is of no series
            row = replace(row, estimate=None, kind=None)
        for figure in (*_timings(case, row, across), *_counted(row)):
            lowest = 0.0 if figure.metric not in NOISY_METRICS else math.ulp(0.0)
            if not math.isfinite(figure.value) or figure.value < lowest:  # it cannot be plotted or compared
                continue
            fixed = [figure.reference, columns["toolchain"] if role in ("reference", "other") else ""]
            if of_case.ambiguous:
                fixed.append(columns["case"])
            name, metric = " ".join(filter(None, fixed)), metric_named(figure.metric)
            points.append(
                {
                    "run": header.id,
                    "started": started,
                    "series": series_id(header.suite_name, case.id, figure.metric, classed, role, name),
                    "suite": header.suite_name,
                    **columns,
                    "revision": of_case.revision,
                    "machine_class": classed,
                    "machine": machine_id(environment),
                    "metric": figure.metric,
                    "unit": metric.unit if metric is not None else "ratio",
                    "value": figure.value,
                    "low": figure.low,
                    "high": figure.high,
                    "module_sha256": (row.build.module_sha256 if row.build is not None else None) or "",
                }
            )
    return points


def _timings(case: Case, row: Row, across: Callable[[Case], Iterator[_Figure]] | None) -> Iterator[_Figure]:
    if row.latency is None:
        return
    yield _Figure(LATENCY.name, row.latency.median_ns, row.latency.low_ns, row.latency.high_ns)
    if row.instructions_per_call is not None:
        yield _Figure(INSTRUCTIONS.name, row.instructions_per_call)
    if across is not None:
        yield from across(case)
    elif row.estimate is not None:
        yield _Figure(LATENCY_VS_BASELINE, row.estimate.ratio, row.estimate.low, row.estimate.high)
    elif row.kind == "same":  # its module is the baseline's
        yield _Figure(LATENCY_VS_BASELINE, 1.0)


def _counted(row: Row) -> Iterator[_Figure]:
    compiled = row.build is not None and row.build.failure is None and not row.build.cached
    names = [*([COMPILE_TIME.name] if compiled else []), *(metric.name for metric in EXACT)]
    for name, count in {**{name: row.figure(name) for name in names}, **row.ir}.items():
        if count is not None:
            yield _Figure(name, float(count))


def _across_toolchains(run: Run) -> Callable[[Case], Iterator[_Figure]]:
    """What divides a case's time by its toolchain's baseline's and by its own under the reference, round by round."""
    header = run.header
    own = [case for case in header.cases if case.peer is None]
    first, newest = header.toolchains[0].version, header.toolchains[-1].version
    recorded = Timings(Side(run, ""))
    baselines = {(case.group, case.toolchain): case for case in own if case.variant == header.baseline}
    # A group may have two variants of one id.
    references = {(case.group, case.id, case.variant): case for case in own if case.toolchain == first}

    def ratios(case: Case) -> Iterator[_Figure]:
        baseline = baselines.get((case.group, case.toolchain if case.peer is None else newest))
        reference = references.get((case.group, case.id, case.variant))
        others = [(LATENCY_VS_BASELINE, baseline, "")]
        if reference is not None and case.toolchain != reference.toolchain:
            others.append((LATENCY_VS_REFERENCE, reference, reference.toolchain))
        for metric, other, release in others:
            if other is None or other is case:
                continue
            timed, below = recorded.timed(case), recorded.timed(other)
            if timed is below:
                yield _Figure(metric, 1.0, reference=release)
            elif estimate := estimate_ratio(recorded.groups[case.group].log_ratios(timed.name, below.name)):
                yield _Figure(metric, estimate.ratio, estimate.low, estimate.high, release)

    return ratios
