"""A run in sentences: its outcome, how it was measured, how far to trust it, and what to do next."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Mapping, Sequence

from harness.compare.judge import WORDS, Change
from harness.compare.sides import selfcheck_of
from harness.records.comparison import Verdict
from harness.report.page import Name, Sentence, Step
from harness.report.run_report import Facts, Report, Summary
from harness.report.run_row import Row, Section
from harness.report.units import interval_text, ratio_text, share
from harness.report.verdicts import MARKS, machine_line
from harness.stats import CONFIDENCE
from harness.stats.rule import Rule
from harness.text import plural
from harness.verify.cases import UNCHECKED
from harness.verify.rounding import FACTOR

# Things that outputs are held against, which a sentence has room for.
_MOST_SOURCES = 5
# Hosts whose selfchecks it has room for.
_MOST_HOSTS = 3

_VERDICTS: Mapping[Change, Verdict] = {words.change: words.verdict for words in WORDS.values()}


def verdict_of(row: Row) -> Verdict | None:
    """The verdict of a row that was measured beside its baseline; None for all others."""
    return _VERDICTS[row.kind] if row.kind is not None and row.status == "measured" else None


def legend(report: Report) -> str:
    """What the marks mean; "" where no row has a ratio."""
    interval = f"in brackets the {CONFIDENCE * 100:.0f} % interval of the ratio"
    return f"▼ faster, ▲ slower, = same within {share(report.floor)}, ? unclear; {interval}." if report.compares else ""


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


def peer_text(row: Row, best_peer: str) -> str:
    """A row's ratio to the fastest peer, which is named; "" where there is none."""
    if row.variant == best_peer and row.peer:
        return "best peer"
    estimate = row.peer_estimate
    return "" if estimate is None else interval_text(estimate.ratio, estimate.low, estimate.high)


def verdict(report: Report) -> str:
    """The whole run in one sentence."""
    summary = report.summary
    if not summary.measured:
        nothing = "" if summary.turns_dropped else "nothing was measured"
        return _sentence(summary, [nothing, *_lost_counts(summary), *_quiet_counts(summary)])
    against = f" than {report.facts.baseline}"
    compared = [
        _count(summary.faster, f"faster{against}"),
        _count(summary.slower, f"slower{'' if summary.faster else against}"),
        _count(summary.unchanged, f"the same within {share(report.floor)}"),
        _count(summary.unclear, "unclear"),
        _count(summary.same, "identical to another variant"),
        _count(summary.peers, "of other engines"),
    ]
    if not any(compared):
        compared = [f"{summary.measured} measured, with nothing to compare"]
    text = _sentence(summary, [*_lost_counts(summary), *compared, *_quiet_counts(summary)])
    return f"{text.removesuffix('.')} (a first look)." if is_first_look(report) else text


def is_first_look(report: Report) -> bool:
    """Whether ratios rest on fewer generations than the judge asks for before it looks at all."""
    return any(number < Rule().first_look for number in _generations_of_ratios(report))


def _generations_of_ratios(report: Report) -> list[int]:
    """How many generations each section has whose rows have ratios."""
    with_ratios = [section for section in report.sections if any(row.estimate is not None for row in section.rows)]
    return [len(section.rounds) for section in with_ratios if section.rounds]


def first_look(report: Report) -> Sentence:
    """What makes a run a first look, and what decides its rows; "" where it is none."""
    if not is_first_look(report):
        return ""
    fewest = min(_generations_of_ratios(report))
    return (
        f"A first look: {plural(fewest, 'generation')}, where a verdict takes {Rule().first_look} and a confirmation "
        "in fresh processes. To measure until each row is decided: ",
        Name(f"harness compare --within {shlex.quote(report.facts.folder)}{_on_its_fleet(report.facts)}"),
    )


def _lost_counts(summary: Summary) -> list[str]:
    return [
        _count(summary.failed, "failed"),
        _count(summary.missing, "missing"),
        _count(summary.works_again, "expected to fail and works now"),
    ]


def _quiet_counts(summary: Summary) -> list[str]:
    return [
        _count(summary.expected_failures, "failed as expected"),
        _count(summary.skipped, "skipped"),
        _count(summary.not_timed, "compiled and right, not timed"),
        _count(summary.not_checked, "compiled, neither checked nor timed"),
        _count(summary.turns_dropped, "measured, with their turns dropped since"),
        _count(summary.not_measured_yet, "not measured yet"),
    ]


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number else ""


def _sentence(summary: Summary, parts: Sequence[str]) -> str:
    return f"{plural(summary.planned, 'case')}: {', '.join(part for part in parts if part)}."


def correctness(report: Report) -> str:
    """How many outputs were checked, against what, and how far off the worst was; "" where none was."""
    checked = [row for row in report.rows() if row.checked_against and row.failure is None]
    errors = {row.case: row.check.max_relative for row in checked if row.check and row.check.max_relative is not None}
    if not checked:
        return ""
    text = f"Outputs of {plural(len(checked), 'case')} were checked before timing"
    if not errors and all(row.checked_against == UNCHECKED for row in checked):
        return f"Outputs of {plural(len(checked), 'case')} were not checked, as the suite says."
    if not errors:
        return f"{text}, but only for being finite: that is not known to be right."
    twice = sum(row.check is not None and row.check.other_inputs for row in checked)
    again = f" ({twice} of them with other random inputs too)" if twice else ""
    return f"{text}: {', '.join(_by_source(report, checked))}{again}; {_largest_error(checked, errors)}."


def _largest_error(checked: Sequence[Row], errors: Mapping[str, float]) -> str:
    """How far off the worst output was: in spreads of its own rounding where the evaluator judged, else relative."""
    spreads = {row.case: row.check.spreads for row in checked if row.check and row.check.spreads is not None}
    if spreads:
        case = max(spreads, key=lambda name: spreads[name] or 0.0)
        far = f"{spreads[case]:.2g} spreads of its rounding, of which {FACTOR:g} are allowed"
        return f"the largest error is {far}, of {case}"
    worst = max(checked, key=lambda row: errors.get(row.case, -1.0))
    error = f"the largest relative difference is {errors[worst.case]:.1e}"
    return f"{error}, of {worst.case} against {worst.checked_against}"


def _by_source(report: Report, checked: Sequence[Row]) -> list[str]:
    """How many cases were held against what, as in `3 against ONNX Runtime 1.31.1`."""
    cases = {row.case for row in report.rows()}
    counts: Counter[str] = Counter()
    for row in checked:
        if row.check is None or row.check.max_relative is None:
            by_suite = row.checked_against == UNCHECKED
            counts["not checked, as the suite says" if by_suite else "not checked but for being finite"] += 1
        else:
            is_case = row.checked_against in cases
            counts["against a baseline that nothing judged" if is_case else f"against {row.checked_against}"] += 1
    first, rest = counts.most_common()[:_MOST_SOURCES], counts.most_common()[_MOST_SOURCES:]
    texts = [f"{number} {source}" for source, number in first]
    return [*texts, *([f"{sum(number for _, number in rest)} against others"] if rest else [])]


def trust(report: Report) -> str:
    """How often verdicts on the run's machines were wrong when they were last checked; "" where they never were."""
    facts = report.facts
    lines = [machine_line(selfcheck_of(environment), host) for host, environment in facts.hosts.items()]
    known = [line for line in lines if line]
    if len(known) > _MOST_HOSTS:
        return f"{'; '.join(known[:_MOST_HOSTS])}; and so on for {len(known) - _MOST_HOSTS} more hosts"
    return "; ".join(known) if facts.hosts else machine_line(selfcheck_of(facts.environment))


def next_steps(report: Report) -> list[Step]:
    """What to do about what the report says."""
    summary, facts = report.summary, report.facts
    steps = []
    if not facts.finished:
        command = f"harness run --resume {shlex.quote(facts.folder)}{_on_its_fleet(facts)}"
        steps.append(Step("go on with this run", command))
    if summary.failed:
        steps.append(
            Step("what the tools said of failures is above, and all that iree-compile said is in the run's logs")
        )
    if summary.missing:
        steps.append(Step("what is missing left no record at all: run it again, and report it as a defect"))
    if summary.works_again:
        steps.append(Step(f"take expectations that no longer hold out of {facts.suite}"))
    if summary.unclear:
        most = max(len(section.rounds) for section in report.sections)
        budget = 2 * float(facts.settings.get("budget_s", 60))
        again = f"harness run {shlex.quote(facts.suite)}{_toolchain_options(report)}"
        command = f"{again} --generations {max(5, 2 * most)} --budget {budget:g}{_on_its_fleet(facts)}"
        steps.append(Step("unclear ratios take more generations", command))
    return steps


def _on_its_fleet(facts: Facts) -> str:
    """The option that gives another command the fleet that measured a run; "" where none did."""
    fleet = facts.settings.get("fleet")
    return f" --fleet {shlex.quote(str(fleet))}" if fleet else ""


def _toolchain_options(report: Report) -> str:
    """The options that give another run the same toolchains; "" where this one had none of them."""
    if not any(word.startswith("--toolchain") for word in report.facts.command):
        return ""
    versions = dict.fromkeys(version for section in report.sections for version in section.toolchains)
    return "".join(f" --toolchain {shlex.quote(version)}" for version in versions)


def run_line(facts: Facts, sections: Sequence[Section]) -> str:
    """Where and how it was measured: machine, toolchain, generations and rounds."""
    commit, plus, dirty = facts.harness_commit.partition("+")
    parts = [
        facts.machine,
        facts.cpu or "CPU not recorded",
        *(f"IREE {toolchain}" for toolchain in facts.toolchains),
        *facts.peers,
        sampling(sections),
        f"harness {facts.harness_version} ({commit[:10] or 'no commit'}{plus}{dirty})",
    ]
    return ", ".join(part for part in parts if part)


def sampling(sections: Sequence[Section]) -> str:
    """`5 generations of 38 to 42 rounds`: how often each group was measured."""
    generations = _span([len(section.rounds) for section in sections if section.rounds], "generation")
    rounds = _span([number for section in sections for number in section.rounds], "round")
    if not rounds and any(row.status == "turns dropped" for section in sections for row in section.rows):
        return "turns dropped"
    return f"{generations} of {rounds}" if rounds else "not measured"


def _span(values: Sequence[int], noun: str) -> str:
    if not values:
        return ""
    low, high = min(values), max(values)
    return f"{low} to {high} {noun}s" if low != high else plural(low, noun)


def common_fate(section: Section) -> str:
    """What to say where all cases of a section were skipped, or failed, for the same reason; "": its table says it.

    What the tools said of failures has its own place in a report.
    """
    remarks = {row.remarks for row in section.rows}
    statuses = {row.status for row in section.rows}
    if len(remarks) != 1 or statuses not in ({"skipped"}, {"failed"}):
        return ""
    count, failure = len(section.rows), section.rows[0].failure
    who = "The only case" if count == 1 else f"All {count} cases"
    if failure is not None:
        return f"{who} failed at {failure.stage}"
    return f"{who} {'was' if count == 1 else 'were'} {'; '.join(remarks.pop())}"
