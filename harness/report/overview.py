"""What bears on a whole run: its facts, its counts, and what has to be said before any figure."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from harness.records.case import Case
from harness.records.run import Run
from harness.report.values import Facts, Row, Section, Summary, side_label

# A quiet core gives a busy process all but some per mille of its time; less than this is another program's doing.
_WHOLE_CORE = 0.95


def collect_facts(run: Run) -> Facts:
    """Where, when and with what a run was made."""
    header = run.header
    return Facts(
        id=header.id,
        suite=header.suite,
        suite_name=header.suite_name,
        suite_description=header.suite_description,
        suite_sha256=header.suite_sha256,
        started=header.started,
        finished=run.finished,
        baseline=baseline_label(header.cases, header.baseline),
        machine=_machine(header.environment),
        cpu=str(header.environment.get("cpu", {}).get("model", "")),
        toolchains=tuple(
            f"{toolchain.version} ({toolchain.revision[:10]})" if toolchain.revision else toolchain.version
            for toolchain in header.toolchains
        ),
        peers=tuple(dict.fromkeys(header.environment.get("peers", {}).values())),
        harness_version=header.harness_version,
        harness_commit=header.harness_commit,
        command=header.command,
        settings=header.settings,
        environment=header.environment,
    )


def baseline_label(cases: Sequence[Case], variant: str) -> str:
    """What cases are compared with: the suite's baseline variant, and its toolchain where there are several.

    Groups whose baselines are under different toolchains have only the variant in common.
    """
    several = len({case.toolchain for case in cases if case.peer is None}) > 1
    toolchains = {case.toolchain for case in cases if case.baseline}
    return side_label(variant, toolchains.pop(), several=several) if len(toolchains) == 1 else variant


def count_rows(rows: Sequence[Row], cases: Sequence[Case]) -> Summary:
    """Count what became of the planned cases."""
    statuses = Counter(row.status for row in rows)
    variants = [row for row in rows if row.status == "measured" and not row.baseline and row.peer is None]
    kinds = Counter(row.kind for row in variants)
    expected = {case.name for case in cases if case.known_to_fail}
    mismatches = {case.name for case in cases if case.expected_mismatch}

    def tellable(row: Row) -> bool:
        return row.case not in mismatches or row.max_relative_error is not None

    return Summary(
        planned=len(rows),
        measured=statuses["measured"],
        same=statuses["same"],
        failed=statuses["failed"],
        expected_failures=statuses["expected failure"],
        skipped=statuses["skipped"],
        missing=statuses["missing"],
        not_measured_yet=statuses["not measured yet"],
        faster=kinds["faster"],
        slower=kinds["slower"],
        unchanged=kinds["same"],
        unclear=kinds["unclear"],
        works_again=sum(row.case in expected and row.status in ("measured", "same") and tellable(row) for row in rows),
        not_timed=statuses["not timed"],
        turns_dropped=statuses["turns dropped"],
        peers=sum(row.peer is not None and row.status == "measured" for row in rows),
    )


def collect_notes(run: Run, sections: Sequence[Section]) -> tuple[str, ...]:
    """What a reader has to know before comparing figures."""
    notes = []
    if not run.finished:
        notes.append("This run is not finished; its figures may still change.")
    if run.turns_dropped:
        notes.append(
            f"Its raw turns were dropped on {run.turns_dropped[:10]}; figures are in the history, and "
            "in report.md of its folder."
        )
    if any(len(section.rounds) == 1 for section in sections):
        notes.append(
            "Groups measured in one generation have ratios without intervals: one set of processes cannot show how "
            "much the next would differ."
        )
    notes.extend(_shared_cores(run))
    for section in sections:
        baseline = next((row for row in section.rows if row.baseline), None)
        if section.rounds and (baseline is None or baseline.latency_ns is None):
            notes.append(f"No ratios for {section.group}: its baseline, {section.baseline}, was not measured.")
    return tuple(notes)


def _shared_cores(run: Run) -> Iterator[str]:
    """Groups on one core whose processes did not have it to themselves: time on the clock beside time on the CPU."""
    pinned = {case.group for case in run.header.cases if case.pin}
    shares: dict[str, list[float]] = {}
    for one in run.rounds:
        if one.group in pinned:
            shares.setdefault(one.group, []).extend(turn.cpu_ns / turn.wall_ns for turn in one.turns if turn.wall_ns)
    for group, values in shares.items():
        share = statistics.median(values)
        if share < _WHOLE_CORE:
            yield (
                f"While {group} was timed, its process had its core {100 * share:.0f} % of the time: something else "
                "ran there. Its latencies are too high by about as much; its ratios less sure."
            )


def _machine(environment: Mapping[str, Mapping[str, Any]]) -> str:
    """`machine 3f2a91c04b7e (virtual)`: the same words for the same machine, which do not tell its name."""
    facts = environment.get("machine", {})
    if "id" not in facts:
        return ""
    return f"machine {facts['id']}{' (virtual)' if facts.get('virtual') else ''}"
