"""Run -> rows of the tables that a history has; a comparison likewise."""

from __future__ import annotations

import shlex
import statistics
from dataclasses import dataclass
from datetime import datetime, timezone

from harness.compare.sides import selfcheck_of
from harness.history.machine_class import machine_class
from harness.history.points import CaseFacts, facts_of_cases, points_of
from harness.history.values import CaseRow, ComparisonRow, Point, RunRow, TurnRow
from harness.records.comparison import Comparison
from harness.records.run import Header, Run
from harness.report.run_report import Report, build_report
from harness.report.run_rows import Row
from harness.store.clock import clock_fault, utc_text
from harness.store.evidence import gather


@dataclass(frozen=True, kw_only=True)
class Tables:
    """One run's rows of each table."""

    run: Run
    runs: list[RunRow]
    points: list[Point]
    cases: list[CaseRow]

    @property
    def turns(self) -> list[TurnRow]:
        """Made anew each time it is asked for, since there are many."""
        return [
            TurnRow(
                run=self.run.header.id,
                case=turn.case,
                group=one.group,
                generation=one.generation,
                round=one.round,
                place=place,
                started_unix_ns=one.started_unix_ns,
                calls=turn.calls,
                wall_ns=turn.wall_ns,
                cpu_ns=turn.cpu_ns,
            )
            for one in self.run.rounds
            for place, turn in enumerate(one.turns)
        ]


def tables_of(run: Run, *, now: datetime | None = None) -> Tables:
    """Everything that a history keeps of a run.

    A case that was not measured on its own, since its module is another's, has that one's figures: its series goes on,
    and `module_sha256` tells. A compile that was found in the cache gives no compile time, since nothing was timed.
    `latency-vs-baseline` is the ratio to the suite's baseline variant under the same toolchain, and
    `latency-vs-reference` that to the same case under the first of several toolchains; both are taken between turns of
    the same rounds.

    Args:
        now: When this is asked (default: now); a run that started more than a day later has a clock that is wrong.
    """
    header = run.header
    started = utc_text(header.started)
    report = build_report(run)
    evidence = gather(run)
    facts = facts_of_cases(header)
    clock = clock_fault(header.started, run.rounds, now or datetime.now(timezone.utc))
    return Tables(
        run=run,
        runs=[_run_row(run, started, report, clock)],
        points=points_of(header, started, report, evidence, facts),
        cases=[_case_row(header, started, row, facts[row.case]) for row in report.rows()],
    )


def _run_row(run: Run, started: str, report: Report, clock: str) -> RunRow:
    header = run.header
    environment = header.environment
    machine, cpu = environment.get("machine", {}), environment.get("cpu", {})
    newest = header.toolchains[-1] if header.toolchains else None
    selfcheck = selfcheck_of(environment)
    spreads = [
        row.latency_spread
        for row in report.rows()
        if row.status == "measured" and row.latency_spread is not None and (row.generations or 0) > 1
    ]
    devices = environment.get("devices", {})
    return RunRow(
        run=header.id,
        suite=header.suite_name,
        suite_file=header.suite,
        started=started,
        finished=run.finished,
        machine_class=machine_class(environment),
        machine=str(machine.get("id", "")),
        cpu=str(cpu.get("model", "")),
        cores=_integer(cpu.get("usable_cores")),
        kernel=str(machine.get("kernel", "")),
        toolchain=newest.version if newest is not None else "",
        revision=newest.revision if newest is not None else "",
        reference=header.toolchains[0].version if len(header.toolchains) > 1 else None,
        harness_version=header.harness_version,
        harness_commit=header.harness_commit,
        cases=report.summary.planned,
        measured=report.summary.measured,
        failed=report.summary.failed,
        missing=report.summary.missing,
        noise=statistics.median(spreads) if spreads else None,
        load_1min=_number(environment.get("load", {}).get("load_1min")),
        selfcheck_flagged=selfcheck.flagged if selfcheck is not None else None,
        selfcheck_rows=selfcheck.rows if selfcheck is not None else None,
        selfcheck_bound=selfcheck.upper_bound if selfcheck is not None else None,
        selfcheck_detects=selfcheck.detects if selfcheck is not None else None,
        selfcheck_when=selfcheck.when if selfcheck is not None else None,
        command=shlex.join(header.command),
        clock=clock,
        devices="; ".join(f"{name}: {facts}" for name, facts in devices.items()),
    )


def _integer(value: object) -> int | None:
    return value if isinstance(value, int) else None


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, (int, float)) else None


def _case_row(header: Header, started: str, row: Row, facts: CaseFacts) -> CaseRow:
    case = facts.case
    return CaseRow(
        run=header.id,
        started=started,
        suite=header.suite_name,
        **facts.columns,
        status=row.status,
        stage=row.failure.stage if row.failure is not None else "",
        message=row.failure.message if row.failure is not None else case.skip or "",
        flags=shlex.join((*case.compile_flags, *case.run_flags)),
        repro="\n".join(row.repro),
    )


def comparison_rows(comparison: Comparison) -> list[ComparisonRow]:
    """A row for each of the comparison's."""
    command = shlex.join(comparison.command)
    return [
        ComparisonRow(
            comparison=comparison.id,
            created=utc_text(comparison.created),
            base_run=comparison.base.run,
            head_run=comparison.head.run,
            machine=comparison.machine.description,
            case=row.case,
            model=row.model,
            variant=row.variant,
            device=row.device,
            metric=row.metric,
            verdict=row.verdict,
            ratio=row.ratio,
            ci_low=row.ci_low,
            ci_high=row.ci_high,
            p=row.p,
            floor=row.floor,
            base_value=row.base_value,
            head_value=row.head_value,
            unit=row.unit,
            control=row.control,
            gate=row.gate or "",
            reason=row.reason,
            command=command,
            within=comparison.within,
        )
        for row in comparison.rows
    ]
