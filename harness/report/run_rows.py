"""Run -> rows: every planned case becomes one row, whatever became of it; rows measured together are a section."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from harness.compare.judge import RunVerdicts, Timings
from harness.compare.pairs import Side
from harness.ir.roofline import NARROW_TYPES, attained
from harness.records.case import Case
from harness.records.run import Failure, ModelRecord
from harness.report.remarks import (
    check_remarks,
    counting_remarks,
    effect_remarks,
    fate_remarks,
    measuring_remarks,
    reference_remarks,
    sharing_remarks,
    warning_remarks,
)
from harness.report.repro import repro_lines
from harness.report.run_row import Row, Section, Status, side_label
from harness.stats import (
    GroupTimes,
    counter_per_call,
    estimate_ratio,
    summarise_latency,
)
from harness.store.evidence import find_failure, is_expected, why_refused


@dataclass(frozen=True, kw_only=True)
class _Group:
    """What the rows of one section share."""

    side: Side
    timings: Timings
    times: GroupTimes
    verdicts: RunVerdicts
    best_peer: Case | None  # The case of the fastest peer; None where none was measured
    instructions: Mapping[str, float]  # Per call, by case


def section_of(name: str, cases: Sequence[Case], side: Side, timings: Timings, verdicts: RunVerdicts) -> Section:
    """The rows of the cases that were measured against each other."""
    header, evidence, times = side.run.header, side.evidence, timings.groups[name]
    best_peer = _best_peer(cases, times)
    several = len({case.toolchain for case in cases if case.peer is None}) > 1
    base = side.baselines.get(name)
    planned = next((case for case in cases if case.baseline), base)
    labels = [side_label(case.variant, case.toolchain, several=several) for case in (base, planned) if case is not None]
    host, environment = side.run.host_of(cases[0]), side.run.environment_of(cases[0])
    group = _Group(
        side=side,
        timings=timings,
        times=times,
        verdicts=verdicts,
        best_peer=best_peer,
        instructions=counter_per_call(evidence.rounds.get(name, ()), "instructions"),
    )
    return Section(
        group=name,
        model=cases[0].model,
        device=cases[0].device,
        device_facts=str(environment.get("devices", {}).get(cases[0].device, "")),
        call=_call(evidence.models.get(cases[0].model)),
        baseline=labels[0] if labels else header.baseline,
        refused=f"{labels[1]} {why_refused(planned, evidence)}" if planned is not None and planned is not base else "",
        rounds=tuple(len(rounds) for rounds in times.generations.values()),
        rows=tuple(_row(case, group) for case in cases),
        best_peer=best_peer.variant if best_peer is not None else "",
        work=evidence.work.get(cases[0].model),
        peak=evidence.peaks.get((host, cases[0].device)),
        host=host,
    )


def _best_peer(cases: Sequence[Case], times: GroupTimes) -> Case | None:
    """The peer with the shortest latency, of those that were measured."""
    found = [
        (latency.median_ns, case)
        for case in cases
        if case.peer is not None and (latency := summarise_latency(times.ns_per_call(case.name))) is not None
    ]
    return min(found, key=lambda pair: pair[0])[1] if found else None


def _call(model: ModelRecord | None) -> str:
    if model is None or model.failure is not None:
        return ""
    return f"{model.function}({', '.join(model.inputs)})"


def _row(case: Case, group: _Group) -> Row:
    header, evidence, times = group.side.run.header, group.side.evidence, group.times
    stand_in = group.side.stand_ins.get(case.name)
    timed = group.timings.timed(case)
    has_time = bool(times.ns_per_call(timed.name))
    reached = has_time or evidence.turns_dropped != ""
    own_failure = find_failure(case, evidence, timed=reached)
    failure = own_failure or find_failure(timed, evidence, timed=reached)
    status = _status(case, failure, group, timed=has_time)
    build, check = evidence.builds.get(case.name), evidence.checks.get(case.name)
    reference = evidence.references.get(case.name) or evidence.references.get(timed.name)
    base = group.side.baselines.get(case.group)
    row = Row(
        case=case.name,
        group=case.group,
        model=case.model,
        variant=case.variant,
        device=case.device,
        toolchain=case.toolchain,
        baseline=case is base,
        compared_with=base.name if base is not None and base is not case else None,
        peer=case.peer,
        host=group.side.run.host_of(case),
        compile_flags=case.compile_flags,
        run_flags=case.run_flags,
        status=status,
        same_as=stand_in.variant if stand_in is not None and status == "same" else None,
        build=build,
        counted=evidence.ir.get(case.name),
        check=check,
        reference=reference,
        failure=failure,
        repro=repro_lines(case, header.suite, build, reference, check, several_toolchains=len(header.toolchains) > 1),
    )
    if status in ("measured", "same"):
        row = _with_times(row, timed, group)
    failed_check = check if own_failure else evidence.checks.get(timed.name)
    remarks = [*fate_remarks(case, status, failure, failed_check, None if own_failure or timed is case else timed)]
    if stand_in is not None and status == "same":
        remarks += sharing_remarks(case, stand_in, header.baseline)
    unusable = times.unusable.get(case.name, 0)
    remarks += measuring_remarks(row, generations=len(times.generations), unusable=unusable)
    remarks += reference_remarks(row)
    remarks += check_remarks(row.check)
    remarks += effect_remarks(case, build)
    remarks += counting_remarks(row.counted)
    remarks += warning_remarks(build)
    return replace(row, remarks=tuple(remarks))


def _status(case: Case, failure: Failure | None, group: _Group, *, timed: bool) -> Status:
    """What became of a case."""
    evidence = group.side.evidence
    if case.skip is not None:
        return "skipped"
    if failure is not None:
        return "expected failure" if is_expected(case, failure) else "failed"
    if timed:
        return "same" if case.name in group.side.stand_ins else "measured"
    if not evidence.finished:
        return "not measured yet"
    if not group.side.run.header.settings.get("measure", True):
        return "not timed"
    return "turns dropped" if evidence.turns_dropped else "missing"


def _with_times(row: Row, timed: Case, group: _Group) -> Row:
    latency = summarise_latency(group.times.ns_per_call(timed.name))
    if latency is None:
        return row
    own = summarise_latency(group.times.own_ns_per_call(timed.name))
    row = replace(
        row,
        latency=latency,
        own_ns=own.median_ns if own is not None else None,
        instructions_per_call=group.instructions.get(timed.name),
    )
    if (work := group.side.evidence.work.get(row.model)) is not None:
        model = group.side.evidence.models.get(row.model)
        narrow = model is not None and any(argument.dtype in NARROW_TYPES for argument in model.arguments)
        peak = group.side.evidence.peaks.get((row.host, row.device))
        row = replace(row, attained=attained(work, latency.median_ns, peak, narrow=narrow))
    if group.best_peer is not None and timed is not group.best_peer:
        row = replace(row, peer_estimate=estimate_ratio(group.times.log_ratios(timed.name, group.best_peer.name)))
    if row.baseline:
        return row
    if row.case in group.verdicts.identical:
        return replace(row, kind="same")
    judgement = group.verdicts.judgements.get(row.case)
    return row if judgement is None else replace(row, estimate=judgement.estimate, kind=judgement.words.change)
