"""Run -> Report: its rows, facts and counts, what a reader has to know, and the run as a comparison within itself."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from harness.compare.comparison import conclude, judge_plan, plan_run
from harness.compare.judge import Timings, judge_recorded
from harness.compare.pairs import pair_peers, side_of
from harness.compare.sides import describe_toolchains
from harness.errors import ExitCode
from harness.machine.identity import machine_name, processor
from harness.metrics import LATENCY
from harness.records.case import Case
from harness.records.comparison import Comparison
from harness.records.comparison import Row as ComparedRow
from harness.records.run import Header, Run
from harness.report.run_rows import Row, Section, section_of, was_compared
from harness.report.verdicts import BUSY, BUSY_THREADS, Busy, busy_line, capital
from harness.text import plural

# Of turns that a container's quota stopped, more than this share is worth a note.
_STOPPED = 0.05


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
    of_shard: bool = False  # Whether the run is a shard of its suite, which may have nothing to measure

    @property
    def exit_code(self) -> ExitCode:
        """3 if a planned case failed or is missing, or nothing was measured; else 0.

        Of a run that was only to compile and check, being right is enough. Skipped cases and failures that were
        expected are no failures, but a run of nothing else has measured nothing, unless it is a shard: others have the
        rest.
        """
        done = self.measured or self.not_timed or self.not_checked or self.of_shard
        lost = self.failed or self.missing or self.not_measured_yet
        return ExitCode.OK if done and not lost else ExitCode.CASE_FAILED


@dataclass(frozen=True, kw_only=True)
class Report:
    """A run, ready to be laid out."""

    run: Run
    sections: tuple[Section, ...]
    summary: Summary
    comparison: Comparison  # The run as a recorded comparison of its variants with their baseline
    peers: tuple[ComparedRow, ...]  # Other engines against the baseline, as rows of it
    floor: float = LATENCY.floor  # Relative change of latency below which nothing is called faster or slower

    @property
    def header(self) -> Header:
        """What was known before the run's first build."""
        return self.run.header

    def rows(self) -> Iterator[Row]:
        """All rows, section by section."""
        return (row for section in self.sections for row in section.rows)

    @property
    def compares(self) -> bool:
        """Whether any row has a ratio to show."""
        return any(row.kind is not None for row in self.rows())

    @property
    def baseline(self) -> str:
        """What the others are compared with; where sections differ the variant alone, or `their baseline`."""
        bases = [(section.baseline, row.variant) for section in self.sections for row in section.rows if row.baseline]
        labels, variants = ({base[place] for base in bases} for place in (0, 1))
        common = labels if len(labels) == 1 else variants or {self.header.baseline}
        return next(iter(common)) if len(common) == 1 else "their baseline"

    @property
    def machine(self) -> str:
        """Which one it was; "" where the run does not say. Of several hosts, how many there were."""
        hosts = self.run.environments
        return plural(len(hosts), "host") if hosts else machine_name(self.header.environment)

    @property
    def cpu(self) -> str:
        """The machine's processor; of several hosts each one's."""
        return " + ".join(sorted({processor(host) for host in self.run.machines} - {""}))

    @property
    def toolchains(self) -> tuple[str, ...]:
        """Release and revision of each."""
        return describe_toolchains(self.header)

    @property
    def engines(self) -> tuple[str, ...]:
        """Title and version of each peer that was measured."""
        return tuple(dict.fromkeys(peer for host in self.run.machines for peer in host.get("peers", {}).values()))

    @property
    def busy(self) -> list[Busy]:
        """How busy the machine was while each section was timed."""
        return [
            Busy(name=section.group, taken=section.taken, own=any(row.own_ns is not None for row in section.rows))
            for section in self.sections
            if section.taken is not None
        ]


def build_report(run: Run) -> Report:
    """Put a run into rows, one section for each group of cases that were measured against each other.

    Variants are corrected for their number together. Peers answer another question (how far another engine is from
    the baseline), so they are corrected among themselves, and adding one changes no variant's verdict.
    """
    side = side_of(run, f"run {run.header.id}")
    timings, plan = Timings(side), plan_run(side)
    rule = plan.rules[LATENCY.name]
    judged = judge_plan(plan, timings, timings)
    of_peers = judge_recorded({pair.name: pair for pair in pair_peers(side)}, timings, timings, rule, within=True)
    comparison = conclude(
        plan,
        [judged[pair.name].row for pair in plan.open],
        run.header.environment,
        created=run.header.started,
        name=run.header.id,
        hosts=[host for host in run.hosts if host.name in run.environments],
    )
    sections = tuple(section_of(name, plan, timings, judged | of_peers) for name in side.groups)
    return Report(
        run=run,
        sections=sections,
        summary=count_rows(run, [row for section in sections for row in section.rows]),
        comparison=comparison,
        peers=tuple(peer.row for peer in of_peers.values()),
        floor=rule.floor,
    )


def count_rows(run: Run, rows: Sequence[Row]) -> Summary:
    """Count what became of the planned cases."""
    cases = {case.name: case for case in run.header.cases}
    statuses = Counter(row.status for row in rows)
    kinds = Counter(row.kind for row in rows if row.status == "measured" and not row.baseline and row.peer is None)
    not_checked = sum(row.status == "not timed" and not was_compared(row.check) for row in rows)
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
        works_again=sum(_works_again(row, cases[row.case]) for row in rows),
        not_timed=statuses["not timed"] - not_checked,
        not_checked=not_checked,
        peers=sum(row.peer is not None and row.status == "measured" for row in rows),
        of_shard=bool(run.header.settings.get("shard")),
    )


def _works_again(row: Row, case: Case) -> bool:
    """Of outputs that nothing was held against, nobody can tell whether they are still wrong."""
    is_told = not case.expected_mismatch or was_compared(row.check)
    return case.known_to_fail and is_told and row.status in ("measured", "same")


def notes_of(report: Report) -> list[str]:
    """What a reader has to know before comparing figures, in plain words."""
    run, sections, notes = report.run, report.sections, list[str]()
    if not run.finished:
        notes.append("This run is not finished; its figures may still change.")
    if shard := run.header.settings.get("shard"):
        notes.append(
            f"This is shard {shard} of its suite; the other shards are runs of their own, and `harness results merge`"
            " joins them all."
        )
    notes += [
        f"{placed.group} was begun again on {placed.host}: {placed.why.rstrip('.')}."
        for placed in {placed.group: placed for placed in run.placed}.values()
        if placed.why
    ]
    if any(len(section.rounds) == 1 for section in sections):
        notes.append(
            "Groups measured in one generation have ratios without intervals: one set of processes cannot show how "
            "much the next would differ."
        )
    if any(group.taken >= (BUSY if group.own else BUSY_THREADS) for group in report.busy):
        notes.append(capital(busy_line(report.busy)))
    turns, stopped = Counter[str](), Counter[str]()
    for measured in run.rounds:
        turns[measured.group] += len(measured.turns)
        accounts = (turn.account for turn in measured.turns)
        stopped[measured.group] += sum(account is not None and bool(account.throttled) for account in accounts)
    notes += [
        f"A container's limit of CPU time stopped {stopped[group]} of {turns[group]} turns of {group}; their "
        "times and ratios have the waiting in them."
        for group in turns
        if stopped[group] > _STOPPED * turns[group]
    ]
    for section in sections:
        baseline = next((row for row in section.rows if row.baseline), None)
        if section.rounds and (baseline is None or baseline.latency_ns is None):
            notes.append(f"No ratios for {section.group}: its baseline, {section.baseline}, was not measured.")
    return notes
