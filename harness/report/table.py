"""Run -> Report: every planned case becomes one row, whatever became of it."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from harness.compare.pairs import Side, side_of
from harness.compare.recorded import RunVerdicts, Timings, judge_run
from harness.ir.roofline import NARROW_TYPES, attained
from harness.records.case import Case
from harness.records.run import Build, Check, Failure, Header, ModelRecord, Reference, Run
from harness.report.overview import baseline_label, collect_facts, collect_notes, count_rows
from harness.report.remarks import (
    counting_remarks,
    effect_remarks,
    fate_remarks,
    measuring_remarks,
    reference_remarks,
    sharing_remarks,
    warning_remarks,
)
from harness.report.repro import repro_lines
from harness.report.values import Report, Row, Section, Status
from harness.stats import (
    GroupTimes,
    counter_per_call,
    estimate_ratio,
    summarise_latency,
)
from harness.store.evidence import Evidence, find_failure, is_expected


@dataclass(frozen=True, kw_only=True)
class _Group:
    """What the rows of one section share.

    Attributes:
        stand_ins: For each case that is not measured on its own, the one whose module it has.
        best_peer: Name of the fastest peer's case; "" where none was measured.
        instructions: Per call, by case.
    """

    header: Header
    evidence: Evidence
    stand_ins: Mapping[str, Case]
    verdicts: RunVerdicts
    best_peer: str
    timings: Timings
    times: GroupTimes
    instructions: Mapping[str, float]


def build_report(run: Run) -> Report:
    """Put a run into rows, one section for each group of cases that were measured against each other."""
    side = side_of(run, f"run {run.header.id}")
    timings = Timings(side)
    verdicts = judge_run(side, timings)
    groups: dict[str, list[Case]] = {}
    for case in run.header.cases:
        groups.setdefault(case.group, []).append(case)
    sections = tuple(_section(name, cases, side, timings, verdicts) for name, cases in groups.items())
    rows = [row for section in sections for row in section.rows]
    return Report(
        facts=collect_facts(run),
        sections=sections,
        comparisons=run.header.groups,
        summary=count_rows(rows, run.header.cases),
        notes=collect_notes(run, sections),
        floor=verdicts.floor,
    )


def _section(name: str, cases: Sequence[Case], side: Side, timings: Timings, verdicts: RunVerdicts) -> Section:
    header, evidence, times = side.run.header, side.evidence, timings.groups[name]
    best_peer = _best_peer(cases, times)
    group = _Group(
        header=header,
        evidence=evidence,
        stand_ins=side.stand_ins,
        verdicts=verdicts,
        best_peer=best_peer.name if best_peer is not None else "",
        timings=timings,
        times=times,
        instructions=counter_per_call(evidence.rounds.get(name, ()), "instructions"),
    )
    return Section(
        group=name,
        model=cases[0].model,
        device=cases[0].device,
        device_facts=str(header.environment.get("devices", {}).get(cases[0].device, "")),
        call=_call(evidence.models.get(cases[0].model)),
        baseline=baseline_label(cases, header.baseline),
        rounds=tuple(len(times) for times in group.times.generations.values()),
        rows=tuple(_row(case, group) for case in cases),
        best_peer=best_peer.variant if best_peer is not None else "",
        work=evidence.work.get(cases[0].model),
        peak=evidence.peaks.get(cases[0].device),
    )


def _best_peer(cases: Sequence[Case], times: GroupTimes) -> Case | None:
    """The peer with the shortest latency, of those that were measured."""
    found = [
        (latency.median_ns, case)
        for case in cases
        if case.peer is not None and (latency := summarise_latency(times.ns_per_call(case.name))) is not None
    ]
    return min(found, key=lambda one: one[0])[1] if found else None


def _call(model: ModelRecord | None) -> str:
    if model is None or model.failure is not None:
        return ""
    return f"{model.function}({', '.join(model.inputs)})"


def _row(case: Case, group: _Group) -> Row:
    evidence = group.evidence
    stand_in = group.stand_ins.get(case.name)
    timed = group.timings.timed(case)
    has_time, dropped = bool(group.times.ns_per_call(timed.name)), evidence.turns_dropped != ""
    own_failure = find_failure(case, evidence, timed=has_time or dropped)
    failure = own_failure or find_failure(timed, evidence, timed=has_time or dropped)
    timing = bool(group.header.settings.get("measure", True))
    status = _status(
        case,
        failure,
        timed=has_time,
        shared=stand_in is not None,
        finished=evidence.finished,
        timing=timing,
        dropped=dropped,
    )
    build = evidence.builds.get(case.name)
    counted = evidence.ir.get(case.name)
    reference = evidence.references.get(case.name) or evidence.references.get(timed.name)
    row = Row(
        case=case.name,
        group=case.group,
        model=case.model,
        variant=case.variant,
        device=case.device,
        toolchain=case.toolchain,
        baseline=case.baseline,
        peer=case.peer,
        status=status,
        same_as=stand_in.variant if stand_in is not None and status == "same" else None,
        failure=failure,
        repro=repro_lines(
            case,
            group.header.suite,
            build,
            reference,
            evidence.checks.get(case.name),
            several_toolchains=len(group.header.toolchains) > 1,
        ),
        compile_flags=case.compile_flags,
        run_flags=case.run_flags,
        ir=counted.counts if counted is not None else {},
        storage=counted.storage if counted is not None else None,
    )
    row = _with_check(_with_reference(_with_build(row, build), reference), evidence.checks.get(case.name))
    if status in ("measured", "same"):
        row = _with_times(row, timed, group)
    check = evidence.checks.get(case.name if own_failure else timed.name)
    remarks = [*fate_remarks(case, status, failure, check, None if own_failure or timed is case else timed)]
    if stand_in is not None and status == "same":
        remarks += sharing_remarks(case, stand_in, group.header.baseline)
    unusable = group.times.unusable.get(case.name, 0)
    remarks += measuring_remarks(row, generations=len(group.times.generations), unusable=unusable)
    if status == "measured":
        remarks += reference_remarks(row, evidence.references.get(case.name))
    remarks += effect_remarks(case, build)
    remarks += counting_remarks(counted)
    remarks += warning_remarks(build)
    return replace(row, remarks=tuple(remarks))


def _status(
    case: Case,
    failure: Failure | None,
    *,
    timed: bool,
    shared: bool,
    finished: bool,
    timing: bool,
    dropped: bool = False,
) -> Status:
    """What became of a case.

    Args:
        failure: Its own, or that of the case that stands for it.
        timed: Whether it, or the case that stands for it, was measured.
        shared: Whether another case stands for it.
        finished: Whether the run is.
        timing: Whether the run was to time anything.
        dropped: Whether its raw turns were deleted since.
    """
    if case.skip is not None:
        return "skipped"
    if failure is not None:
        return "expected failure" if is_expected(case, failure) else "failed"
    if timed:
        return "same" if shared else "measured"
    if not finished:
        return "not measured yet"
    if not timing:
        return "not timed"
    return "turns dropped" if dropped else "missing"


def _with_build(row: Row, build: Build | None) -> Row:
    if build is None:
        return row
    row = replace(
        row,
        module_sha256=build.module_sha256,
        effects=build.effects,
        compile_ns=build.compile_ns,
        peak_rss_bytes=build.peak_rss_bytes,
    )
    if build.statistics is not None:
        row = replace(
            row,
            dispatches=build.statistics.dispatches,
            copies=build.statistics.copies,
            fills=build.statistics.fills,
            transient_bytes=build.statistics.transient_bytes,
        )
    if build.sizes is not None:
        row = replace(
            row,
            dispatch_bytes=sum(build.sizes.dispatch_bytes.values()),
            module_bytes=build.sizes.module_bytes,
        )
    return row


def _with_reference(row: Row, reference: Reference | None) -> Row:
    if reference is None:
        return row
    times = [time for time in reference.real_time_ns if 0 < time < math.inf]
    return replace(
        row,
        reference_ns=float(statistics.median(times)) if times else None,
        host_peak_bytes=reference.host_peak_bytes,
        device_peak_bytes=reference.device_peak_bytes,
        memory=reference.memory,
    )


def _with_check(row: Row, check: Check | None) -> Row:
    if check is None:
        return row
    return replace(
        row,
        checked_against=check.against or None,
        max_absolute_error=_finite(check.max_absolute),
        max_relative_error=_finite(check.max_relative),
    )


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def _with_times(row: Row, timed: Case, group: _Group) -> Row:
    latency = summarise_latency(group.times.ns_per_call(timed.name))
    if latency is None:
        return row
    row = replace(
        row,
        latency_ns=latency.median_ns,
        latency_low_ns=latency.low_ns,
        latency_high_ns=latency.high_ns,
        latency_spread=latency.spread,
        generations=latency.generations,
        rounds=latency.rounds,
        instructions_per_call=group.instructions.get(timed.name),
    )
    if (work := group.evidence.work.get(row.model)) is not None:
        model = group.evidence.models.get(row.model)
        narrow = model is not None and any(one.dtype in NARROW_TYPES for one in model.arguments)
        peak = group.evidence.peaks.get(row.device)
        row = replace(row, attained=attained(work, latency.median_ns, peak, narrow=narrow))
    if group.best_peer and timed.name != group.best_peer:
        row = replace(row, peer_estimate=estimate_ratio(group.times.log_ratios(timed.name, group.best_peer)))
    if row.baseline:
        return row
    if row.case in group.verdicts.identical:
        return replace(row, kind="same")
    judgement = group.verdicts.judgements.get(row.case)
    return row if judgement is None else replace(row, estimate=judgement.estimate, kind=judgement.words.change)
