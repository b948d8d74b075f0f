"""Run -> Report: its rows, its facts and counts, and what a reader has to know before any figure."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from harness.compare.judge import Timings, judge_run
from harness.compare.pairs import side_of
from harness.compare.sides import describe_toolchains
from harness.errors import ExitCode
from harness.machine.identity import machine_name, processor
from harness.metrics import LATENCY
from harness.records.case import Case, VariantGroup
from harness.records.run import Run
from harness.report.run_row import Row, Section
from harness.report.run_rows import section_of, was_compared
from harness.stats.own_time import own_ns, taken_share
from harness.text import plural

# Of a quiet core other processes take some per mille; more than this is worth a note.
TAKEN = 0.05
# Threads of one device wait for each other too, for 3 to 7 % of the time on a quiet machine.
_TAKEN_OF_THREADS = 0.2
# Groups that a sentence names.
_MOST_NAMES = 3


@dataclass(frozen=True, kw_only=True)
class Facts:
    """What a reader has to know before believing a figure."""

    id: str
    suite: str
    suite_name: str
    suite_description: str
    suite_sha256: str
    started: str  # ISO 8601, UTC
    finished: bool
    # What the others are compared with, as in a section; where sections differ the variant alone, or `their baseline`
    baseline: str
    machine: str  # Which one it was; "" where the run does not say. Of several hosts, how many there were.
    cpu: str  # Its processor, likewise; of several hosts each one's
    toolchains: tuple[str, ...]  # Release and revision of each
    peers: tuple[str, ...] = ()  # Title and version of each that was measured
    harness_version: str
    harness_commit: str
    command: tuple[str, ...]  # The command line of the run
    settings: dict[str, Any] = field(default_factory=dict)
    # Of the machine that measured, or of several hosts, of the one that asked them
    environment: dict[str, dict[str, Any]] = field(default_factory=dict)
    # Of each of several hosts, by its name; {} where one machine measured the whole run
    hosts: dict[str, dict[str, dict[str, Any]]] = field(default_factory=dict)
    shard: str = ""  # Which part of its suite the run is, as in `2/8`; "" where it is the whole
    results: str = "results"  # The folder that holds the run, as whoever reads of it names it

    @property
    def folder(self) -> str:
        """Of the run: `results/20261121-1-esrgan`."""
        return f"{self.results}/{self.id}"


@dataclass(frozen=True, kw_only=True)
class Summary:
    """Rows by status, which add up to `planned`, and measured rows beside the baseline by their ratio."""

    planned: int
    measured: int
    same: int  # Rows whose module is another row's, so that nothing had to be measured
    failed: int
    expected_failures: int
    skipped: int
    missing: int
    not_measured_yet: int
    faster: int
    slower: int
    unchanged: int  # Measured rows of kind `same`
    unclear: int
    works_again: int  # Rows that were expected to fail and did not
    peers: int = 0  # Measured rows of other engines
    not_timed: int = 0  # Rows of a run that was only to compile and check
    not_checked: int = 0  # Those of them that nothing judged
    turns_dropped: int = 0  # Rows whose raw turns were deleted by `harness results gc`
    of_shard: bool = False  # Whether the run is a shard of its suite, which may have nothing to measure


@dataclass(frozen=True, kw_only=True)
class Report:
    """A run, ready to be laid out."""

    facts: Facts
    sections: tuple[Section, ...]
    comparisons: tuple[VariantGroup, ...]  # Variants that the suite wants side by side
    summary: Summary
    notes: tuple[str, ...]  # What bears on the whole run, in plain words
    floor: float = LATENCY.floor  # Relative change of latency below which nothing is called faster or slower

    def rows(self) -> Iterator[Row]:
        """All rows, section by section."""
        return (row for section in self.sections for row in section.rows)

    @property
    def compares(self) -> bool:
        """Whether any row has a ratio to show."""
        return any(row.kind is not None for row in self.rows())


def exit_code(summary: Summary) -> ExitCode:
    """3 if a planned case failed or is missing, or nothing was measured; else 0.

    Of a run that was only to compile and check, being right is enough. Skipped cases and failures that were expected
    are no failures, but a run of nothing else has measured nothing, unless it is a shard: others have the rest. What
    turns were dropped of had been measured.
    """
    done = summary.measured or summary.not_timed or summary.not_checked or summary.turns_dropped or summary.of_shard
    if summary.failed or summary.missing or summary.not_measured_yet or not done:
        return ExitCode.CASE_FAILED
    return ExitCode.OK


def build_report(run: Run) -> Report:
    """Put a run into rows, one section for each group of cases that were measured against each other."""
    side = side_of(run, f"run {run.header.id}")
    timings = Timings(side)
    verdicts = judge_run(side, timings)
    sections = tuple(section_of(name, cases, side, timings, verdicts) for name, cases in side.groups.items())
    rows = [row for section in sections for row in section.rows]
    return Report(
        facts=collect_facts(run, sections),
        sections=sections,
        comparisons=run.header.groups,
        summary=replace(count_rows(rows, run.header.cases), of_shard=bool(run.header.settings.get("shard"))),
        notes=collect_notes(run, sections),
        floor=verdicts.floor,
    )


def collect_facts(run: Run, sections: Sequence[Section] = ()) -> Facts:
    """Where, when and with what a run was made."""
    header = run.header
    bases = [(section.baseline, row.variant) for section in sections for row in section.rows if row.baseline]
    labels, variants = {label for label, _ in bases}, {variant for _, variant in bases} or {header.baseline}
    common = labels if len(labels) == 1 else variants
    return Facts(
        id=header.id,
        suite=header.suite,
        suite_name=header.suite_name,
        suite_description=header.suite_description,
        suite_sha256=header.suite_sha256,
        started=header.started,
        finished=run.finished,
        baseline=common.pop() if len(common) == 1 else "their baseline",
        machine=plural(len(run.environments), "host") if run.environments else machine_name(header.environment),
        cpu=" + ".join(sorted({processor(host) for host in run.machines} - {""})),
        toolchains=describe_toolchains(header),
        peers=tuple(dict.fromkeys(peer for host in run.machines for peer in host.get("peers", {}).values())),
        harness_version=header.harness_version,
        harness_commit=header.harness_commit,
        command=header.command,
        settings=header.settings,
        environment=header.environment,
        hosts=dict(run.environments),
        shard=str(header.settings.get("shard") or ""),
    )


def count_rows(rows: Sequence[Row], cases: Sequence[Case]) -> Summary:
    """Count what became of the planned cases."""
    statuses = Counter(row.status for row in rows)
    variants = [row for row in rows if row.status == "measured" and not row.baseline and row.peer is None]
    kinds = Counter(row.kind for row in variants)
    expected = {case.name for case in cases if case.known_to_fail}
    mismatches = {case.name for case in cases if case.expected_mismatch}

    not_checked = sum(row.status == "not timed" and not was_compared(row.check) for row in rows)

    def tellable(row: Row) -> bool:
        return row.case not in mismatches or was_compared(row.check)

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
        not_timed=statuses["not timed"] - not_checked,
        not_checked=not_checked,
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
    if shard := run.header.settings.get("shard"):
        notes.append(
            f"This is shard {shard} of its suite; the other shards are runs of their own, and `harness results merge`"
            " joins them all."
        )
    notes.extend(
        f"{placed.group} was begun again on {placed.host}: {placed.why.rstrip('.')}."
        for placed in {placed.group: placed for placed in run.placed}.values()
        if placed.why
    )
    if any(len(section.rounds) == 1 for section in sections):
        notes.append(
            "Groups measured in one generation have ratios without intervals: one set of processes cannot show how "
            "much the next would differ."
        )
    notes.extend(_busy_groups(run, sections))
    notes.extend(_throttled_groups(run))
    for section in sections:
        baseline = next((row for row in section.rows if row.baseline), None)
        if section.rounds and (baseline is None or baseline.latency_ns is None):
            notes.append(f"No ratios for {section.group}: its baseline, {section.baseline}, was not measured.")
    return tuple(notes)


def _busy_groups(run: Run, sections: Sequence[Section]) -> Iterator[str]:
    """Groups of whose time other processes took a share that matters; a sentence for each kind of group."""
    pinned = {case.group for case in run.header.cases if case.pin}
    taken_ns, wall_ns, own_turns, turns_of = Counter[str](), Counter[str](), Counter[str](), Counter[str]()
    with_threads = set[str]()
    for turns in run.rounds:
        for turn in turns.turns:
            share = taken_share(turn)
            if share is None and turn.account is None and turns.group in pinned and turn.wall_ns:
                share = 1 - turn.cpu_ns / turn.wall_ns  # of a run that is older than accounts
            if share is not None:
                if turn.account is not None and not turn.account.on_calling_thread:
                    with_threads.add(turns.group)
                taken_ns[turns.group] += round(share * turn.wall_ns)
                wall_ns[turns.group] += turn.wall_ns
                own_turns[turns.group] += math.isfinite(own_ns(turn))
                turns_of[turns.group] += 1
    taken = {group: taken_ns[group] / spent for group, spent in wall_ns.items()}
    least = {group: _TAKEN_OF_THREADS if group in with_threads else TAKEN for group in taken}
    busy = {group: share for group, share in taken.items() if share > least[group]}
    factors = {
        section.group: [row.latency_ns / row.own_ns for row in section.rows if row.own_ns and row.latency_ns]
        for section in sections
    }
    kinds = {
        group: "threads" if group in with_threads else "own" if 2 * own_turns[group] > turns_of[group] else "wall"
        for group in busy
    }
    for kind in ("own", "wall", "threads"):
        groups = [group for group in busy if kinds[group] == kind]
        if groups:
            shares = [busy[group] for group in groups]
            some = _ends(f"{100 * share:.0f}" for share in (min(shares), max(shares)))
            named = groups if len(groups) <= _MOST_NAMES else groups[:_MOST_NAMES]
            rest = f" and {len(groups) - len(named)} more" if len(named) < len(groups) else ""
            what = f"other processes took {some} % of the time"
            if kind == "threads":
                its = "its" if len(groups) == 1 else "their"
                what = f"{its} threads waited for a core {some} % of the time, for other processes or for each other"
            follows = "Latencies there are too high, and ratios are less sure."
            if kind == "own":
                follows = _what_follows([factor for group in groups for factor in factors.get(group, ())])
            yield f"While {', '.join(named)}{rest} {'was' if len(groups) == 1 else 'were'} timed, {what}. {follows}"


def _throttled_groups(run: Run) -> Iterator[str]:
    """Groups whose turns a container's quota of CPU time stopped."""
    turns, stopped = Counter[str](), Counter[str]()
    for measured in run.rounds:
        for turn in measured.turns:
            turns[measured.group] += 1
            stopped[measured.group] += bool(turn.account is not None and turn.account.throttled)
    for group in turns:
        if stopped[group] > TAKEN * turns[group]:
            yield (
                f"A container's limit of CPU time stopped {stopped[group]} of {turns[group]} turns of {group}; their "
                "times and ratios have the waiting in them."
            )


def _what_follows(factors: Sequence[float]) -> str:
    """Of median latencies that are so many times as long as the own time of the same calls."""
    if max(factors, default=1.0) <= 1 + TAKEN:
        return "Median latencies hardly show it, and ratios leave it out."
    times = _ends(f"{factor:.2g}" for factor in (min(factors), max(factors)))
    return f"Latencies there are about {times} times what the calls take by themselves; ratios leave that out."


def _ends(numbers: Iterable[str]) -> str:
    return " to ".join(dict.fromkeys(numbers))
