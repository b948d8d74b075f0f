"""Run -> Report: its rows, facts and counts, the run as a comparison within itself; and all of it in sentences."""

import math
import shlex
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from harness.compare.comparison import conclude, judge_plan, plan_run
from harness.compare.judge import Timings, judge_recorded
from harness.compare.pairs import Side, pair_peers
from harness.compare.sides import describe_toolchains
from harness.errors import ExitCode
from harness.machine.environment import machine_name, processor
from harness.metrics import LATENCY
from harness.records.comparison import Comparison, Verdict
from harness.records.comparison import Row as ComparedRow
from harness.records.run import Header, Run
from harness.report.comparison import BUSY, BUSY_THREADS, MARKS, RUN_WORDS, Busy, busy_line, capital
from harness.report.page import Step
from harness.report.run_rows import Row, Section, section_of, was_compared
from harness.report.units import interval_text, percent, ratio_text, share
from harness.stats.intervals import CONFIDENCE
from harness.stats.rule import Rule
from harness.text import plural
from harness.verify.cases import UNCHECKED
from harness.verify.rounding import FACTOR

# Of turns that a container's quota stopped, more than this share is worth a note.
_STOPPED = 0.05

# Our median and iree-benchmark-module's come from different processes; on the machines this was written on, fresh
# processes running one module differ by 6 to 14 %, so a smaller difference says nothing.
_REFERENCE_FLOOR = 0.05
_VERDICTS: dict[str, Verdict] = {word: verdict for verdict, word in RUN_WORDS.items()}
# What a sentence says of so many rows of a summary's field: before what was compared, and after it.
_LOST = {
    "failed": "failed",
    "missing": "missing",
    "over_limit": "over a limit",
    "works_again": "expected to fail and works now",
}
_QUIET = {
    "expected_failures": "failed as expected",
    "skipped": "skipped",
    "not_timed": "compiled and right, not timed",
    "not_checked": "compiled, neither checked nor timed",
    "not_measured_yet": "not measured yet",
}


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
    over_limit: int = 0  # Rows with a figure over what a gate of the suite allows it to be at most
    peers: int = 0  # Measured rows of other engines
    not_timed: int = 0  # Rows of a run that was only to compile and check
    not_checked: int = 0  # Those of them that nothing judged
    of_shard: bool = False  # Whether the run is a shard of its suite, which may have nothing to measure

    @property
    def exit_code(self) -> ExitCode:
        """3 if a planned case failed, is missing or is over a limit, or nothing was measured, or was to be; else 0."""
        # The other shards have the rest, so one may have nothing to measure.
        done = self.measured or self.not_timed or self.not_checked or self.of_shard
        lost = self.failed or self.missing or self.not_measured_yet or self.over_limit
        return ExitCode.OK if done and not lost else ExitCode.CASE_FAILED


@dataclass(frozen=True, kw_only=True)
class Report:
    """A run, ready to be laid out."""

    run: Run
    sections: tuple[Section, ...]
    summary: Summary
    comparison: Comparison  # The run as a recorded comparison of its variants with their baseline
    peers: tuple[ComparedRow, ...]  # Other engines against the baseline, as rows of it
    timings: Timings  # The turns that it recorded
    floor: float = LATENCY.floor  # Relative change of latency below which nothing is called faster or slower

    @property
    def header(self) -> Header:
        """What was known before the run's first build."""
        return self.run.header

    def rows(self) -> Iterator[Row]:
        """All rows, section by section."""
        return (row for section in self.sections for row in section.rows)

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
    """Put a run into rows, one section for each group of cases that were measured against each other."""
    side = Side(run, f"run {run.header.id}")
    timings, plan = Timings(side), plan_run(side)
    rule = plan.rules[LATENCY.name]
    judged = judge_plan(plan, timings, timings)
    # How far another engine is from the baseline is another question: adding a peer changes no variant's verdict.
    of_peers = judge_recorded({pair.name: pair for pair in pair_peers(side)}, timings, timings, rule)
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
        timings=timings,
        floor=rule.floor,
    )


def count_rows(run: Run, rows: Sequence[Row]) -> Summary:
    """Count what became of the planned cases."""
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
        works_again=sum(row.works_again for row in rows),
        over_limit=sum(bool(row.over) for row in rows),
        not_timed=statuses["not timed"] - not_checked,
        not_checked=not_checked,
        peers=sum(row.peer is not None and row.status == "measured" for row in rows),
        of_shard=bool(run.header.settings.get("shard")),
    )


def notes_of(report: Report) -> list[str]:
    """What a reader has to know before comparing figures, in plain words."""
    run, sections, notes = report.run, report.sections, list[str]()
    if not run.finished:
        notes.append("This run is not finished; its figures may still change.")
    if file := run.header.imported:
        notes.append(f"It was imported from {file}: its outputs were not checked, and it has no modules.")
    if shard := run.header.settings.get("shard"):
        notes.append(f"This is shard {shard} of its suite; `harness results merge` joins all of them.")
    notes += [
        f"{placed.group} was begun again on {placed.host}: {placed.why.rstrip('.')}."
        for placed in {placed.group: placed for placed in run.placed}.values()
        if placed.why
    ]
    if any(len(section.rounds) == 1 for section in sections):
        notes.append("Groups measured in one generation have ratios without intervals.")
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


# --- In sentences ---


def verdict_of(row: Row) -> Verdict | None:
    """The verdict of a row that was measured beside its baseline; None for all others."""
    return _VERDICTS[row.kind] if row.kind is not None and row.status == "measured" else None


def legend(report: Report) -> str:
    """What the marks mean; "" where no row has a ratio."""
    interval = f"in brackets the {CONFIDENCE * 100:.0f} % interval of the ratio"
    compares = any(row.kind is not None for row in report.rows())
    return f"▼ faster, ▲ slower, = same within {share(report.floor)}, ? unclear; {interval}." if compares else ""


def outcome_text(row: Row) -> str:
    """What a table says beside a row's latency: its ratio to the baseline, or why there is none."""
    if row.status == "same":
        return f"= same module as {row.same_as or ''}"
    if row.status != "measured":
        return row.status
    if row.baseline:
        return "baseline"
    verdict = verdict_of(row)
    if row.estimate is None or verdict is None:
        return "no baseline to compare with"
    estimate = row.estimate
    if estimate.low is None or estimate.high is None:
        why = "one generation" if estimate.generations == 1 else "no interval"
        return f"{MARKS[verdict]} {ratio_text(estimate.ratio)} [{why}]"
    return f"{MARKS[verdict]} {interval_text(estimate.ratio, estimate.low, estimate.high)}"


def verdict(report: Report, *, over_releases: bool = False) -> str:
    """The whole run in one sentence; over releases, no case is compared with the baseline's first one."""
    summary = report.summary
    against = f" than {report.baseline}"
    compared = {
        "faster": f"faster{against}",
        "slower": f"slower{'' if summary.faster else against}",
        "unchanged": f"the same within {share(report.floor)}",
        "unclear": "unclear",
    }
    found_of = {"measured": "measured"} if over_releases else compared
    found_of |= {"same": "identical to another variant", "peers": "of other engines"}
    lost, found, quiet = (
        [f"{number} {words}" for name, words in table.items() if (number := getattr(summary, name))]
        for table in (_LOST, found_of, _QUIET)
    )
    if not summary.measured:
        parts = ["nothing was measured", *lost, *quiet]
    else:
        parts = [*lost, *(found or [f"{summary.measured} measured, with nothing to compare"]), *quiet]
    first = " (a first look)" if summary.measured and first_look(report) else ""
    return f"{plural(summary.planned, 'case')}: {', '.join(parts)}{first}."


def first_look(report: Report) -> str:
    """That ratios rest on fewer generations than the judge asks for before it looks at all; "" where none do."""
    with_ratios = [section for section in report.sections if any(row.estimate is not None for row in section.rows)]
    generations = [len(section.rounds) for section in with_ratios if section.rounds]
    first = Rule().first_look
    if not generations or min(generations) >= first:
        return ""
    fewest = plural(min(generations), "generation")
    return f"A first look: {fewest}, where a verdict takes {first} and a confirmation in fresh processes."


def correctness(report: Report) -> str:
    """How many outputs were checked, against what, and how far off the worst was; "" where none was."""
    checked = {row.case: row.check for row in report.rows() if row.check and row.check.against and not row.failure}
    if not checked:
        return ""
    cases = {row.case for row in report.rows()}
    sources: Counter[str] = Counter()
    for check in checked.values():
        if check.max_relative is not None:
            sources[f"against {'a baseline that nothing judged' if check.against in cases else check.against}"] += 1
        else:
            sources["not checked" if check.against == UNCHECKED else "not checked but for being finite"] += 1
    texts = ", ".join(f"{number} {source}" for source, number in sources.most_common())
    twice = sum(check.other_inputs for check in checked.values())
    texts += f" ({twice} of them with other random inputs too)" if twice else ""
    spreads = {case: check.spreads for case, check in checked.items() if check.spreads is not None}
    errors = {case: check.max_relative for case, check in checked.items() if check.max_relative is not None}
    error = ""
    if spreads:
        worst = max(spreads, key=spreads.__getitem__)
        error = f"; the largest error is {spreads[worst]:.2g} of {FACTOR:g} allowed spreads of its rounding, of {worst}"
    elif errors:
        worst = max(errors, key=errors.__getitem__)
        error = f"; the largest relative difference is {errors[worst]:.1e}, of {worst} against {checked[worst].against}"
    were = " were checked before timing" if errors else ""
    return f"Outputs of {plural(len(checked), 'case')}{were}: {texts}{error}."


def reference_sentence(report: Report) -> str:
    """That iree-benchmark-module says other times than we do, by more than the noise between processes."""
    asked, off = 0, []
    for row in report.rows():
        if row.status == "measured" and row.latency is not None and row.reference_ns is not None:
            asked += 1
            ratio = row.reference_ns / row.latency.median_ns
            if abs(math.log(ratio)) > max(_REFERENCE_FLOOR, 2 * row.latency.spread):
                off.append(ratio)
    if not off:
        return ""
    ends = list(dict.fromkeys(percent(ratio, decimals=0) for ratio in (min(off), max(off))))
    return (
        f"iree-benchmark-module, in one process of its own for each case, says another time than the table in "
        f"{len(off)} of {plural(asked, 'row')} ({' to '.join(ends)}). The ratios are of turns side by "
        "side and do not depend on it."
    )


def next_steps(report: Report, folder: str) -> list[Step]:
    """What to do about what the report of a run in that folder says."""
    summary, fleet = report.summary, report.header.settings.get("fleet")
    works = ", ".join(row.case for row in report.rows() if row.works_again)
    at = f" {shlex.quote(folder)}{f' --fleet {shlex.quote(str(fleet))}' if fleet else ''}"
    table = (
        (not report.run.finished, "go on with this run", f"harness run --resume{at}"),
        (summary.failed, "see here what the tools said of failures, and in the run's logs all that they said", ""),
        (summary.missing, "what is missing left no record at all: run it again, and report it as a defect", ""),
        (works, f"take expectations that no longer hold out of {report.header.suite}: {works}", ""),
        (summary.unclear or first_look(report), "measure until each row is decided", f"harness compare --within{at}"),
    )
    return [Step(text, command) for holds, text, command in table if holds]


def run_line(report: Report, *, releases: bool = True) -> str:
    """Where and how it was measured: machine, toolchain, generations and rounds."""
    commit, plus, dirty = report.header.harness_commit.partition("+")
    parts = [
        report.machine,
        report.cpu or "CPU not recorded",
        *(f"IREE {toolchain}" for toolchain in report.toolchains if releases),
        *report.engines,
        sampling(report.sections),
        f"harness {report.header.harness_version} ({commit[:10] or 'no commit'}{plus}{dirty})",
    ]
    return ", ".join(part for part in parts if part)


def sampling(sections: Sequence[Section]) -> str:
    """`5 generations of 38 to 42 rounds`: how often each group was measured."""
    generations = [len(section.rounds) for section in sections if section.rounds]
    if generations:
        rounds = [number for section in sections for number in section.rounds]
        return f"{_span(generations, 'generation')} of {_span(rounds, 'round')}"
    return "not measured"


def _span(values: Sequence[int], noun: str) -> str:
    low, high = min(values), max(values)
    return f"{low} to {high} {noun}s" if low != high else plural(low, noun)
