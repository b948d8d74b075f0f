"""The wording that several renderers share: names, marks, and the sentences above and below the tables."""

from __future__ import annotations

import shlex
from dataclasses import dataclass

from harness.compare.sides import selfcheck_of
from harness.report.comparison.words import share
from harness.report.machine import machine_line
from harness.report.units import ratio_text
from harness.report.values import Facts, Report, Row, Section, Summary
from harness.stats import CONFIDENCE, Change, Estimate
from harness.text import one_line

# A mark beside each ratio, so that colour never carries the meaning alone.
MARKS: dict[Change, str] = {"faster": "▼", "slower": "▲", "same": "=", "unclear": "?"}


def legend(report: Report) -> str:
    """What the marks mean."""
    interval = f"in brackets the {CONFIDENCE * 100:.0f} % interval of the ratio"
    return f"▼ faster  ▲ slower  = same within {share(report.floor)}  ? unclear; {interval}"


def interval_text(estimate: Estimate | None) -> str:
    """A ratio with its interval: `0.602 [0.597, 0.607]`, or why it has none; "" where there is no ratio."""
    if estimate is None:
        return ""
    if estimate.low is None or estimate.high is None:
        why = "one generation" if estimate.generations == 1 else "no interval"
        return f"{ratio_text(estimate.ratio)} [{why}]"
    return f"{ratio_text(estimate.ratio)} [{ratio_text(estimate.low)}, {ratio_text(estimate.high)}]"


def outcome_text(row: Row) -> str:
    """What a table says beside a row's latency: its ratio to the baseline, or why there is none."""
    if row.status == "same":
        return f"= same module as {one_line(row.same_as or '')}"
    if row.status != "measured":
        return row.status
    if row.baseline:
        return "baseline"
    if row.estimate is None or row.kind is None:
        return "no baseline to compare with"
    return f"{MARKS[row.kind]} {interval_text(row.estimate)}"


def verdict(report: Report) -> str:
    """The whole run in one sentence."""
    summary = report.summary
    if not summary.measured:
        nothing = "" if summary.turns_dropped else "nothing was measured"
        return _sentence(summary, [nothing, *_lost_counts(summary), *_known_counts(summary)])
    against = f" than {one_line(report.facts.baseline)}"
    compared = [
        _count(summary.faster, f"faster{against}"),
        _count(summary.slower, f"slower{'' if summary.faster else against}"),
        _count(summary.unchanged, f"the same within {share(report.floor)}"),
        _count(summary.unclear, "unclear"),
        _count(summary.same, "with the module of another"),
    ]
    if summary.peers:
        compared.append(f"{summary.peers} of other engines")
    if not any(compared):
        compared = [f"{summary.measured} measured, with nothing to compare"]
    return _sentence(summary, [*_lost_counts(summary), *compared, *_known_counts(summary)])


def correctness(report: Report) -> str:
    """How many outputs were checked, against what, and how far off the worst was; "" where none was."""
    checked = [row for row in report.rows() if row.checked_against and row.failure is None]
    compared = [row for row in checked if row.max_relative_error is not None]
    if not checked:
        return ""
    worst = max(compared, key=lambda row: row.max_relative_error or 0.0, default=None)
    text = f"Outputs of {len(checked)} case{'' if len(checked) == 1 else 's'} were checked before timing"
    if worst is None:
        return f"{text}, but only for being finite."
    alone = len(checked) - len(compared)
    unsure = f", {alone} of them only for being finite" if alone else ""
    return (
        f"{text}{unsure}; the largest relative difference is {worst.max_relative_error:.1e}, of {one_line(worst.case)} "
        f"against {one_line(worst.checked_against or '')}."
    )


def trust(report: Report) -> str:
    """How often verdicts on the run's machine were wrong when that was last checked; "" where it never was."""
    selfcheck = selfcheck_of(report.facts.environment)
    return "" if selfcheck is None else machine_line(selfcheck)


@dataclass(frozen=True, kw_only=True)
class Step:
    """Something to do next; `command` is the command line that does it, where there is one."""

    text: str
    command: str = ""


def next_steps(report: Report) -> list[Step]:
    """What to do about what the report says."""
    summary, facts = report.summary, report.facts
    suite = one_line(facts.suite)
    steps = []
    if not facts.finished:
        steps.append(
            Step(
                text="go on with this run",
                command=f"harness run --resume {shlex.quote(f'results/{one_line(facts.id)}')}",
            )
        )
    if summary.failed:
        steps.append(
            Step(
                text="the tools' last words on failures are above, and all that iree-compile said is in the run's logs"
            )
        )
    if summary.missing:
        steps.append(Step(text="what is missing left no record at all: run it again, and report it as a defect"))
    if summary.works_again:
        steps.append(Step(text=f"take expectations that no longer hold out of {suite}"))
    if summary.unclear:
        most = max(len(section.rounds) for section in report.sections)
        budget = 2 * float(facts.settings.get("budget_s", 60))
        again = f"harness run {shlex.quote(suite)}{_asked_toolchains(report)}"
        command = f"{again} --generations {max(5, 2 * most)} --budget {budget:g}"
        steps.append(Step(text="unclear ratios take more generations", command=command))
    return steps


def _asked_toolchains(report: Report) -> str:
    """The options that give another run the same toolchains; "" where this one had none of them."""
    if not any(word.startswith("--toolchain") for word in report.facts.command):
        return ""
    versions = dict.fromkeys(version for section in report.sections for version in section.toolchains)
    return "".join(f" --toolchain {shlex.quote(one_line(version))}" for version in versions)


def run_line(facts: Facts, sections: tuple[Section, ...]) -> str:
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
    return ", ".join(one_line(part) for part in parts if part)


def sampling(sections: tuple[Section, ...]) -> str:
    """`5 generations of 38 to 42 rounds`: how often each group was measured."""
    generations = _span([len(section.rounds) for section in sections if section.rounds], "generation")
    rounds = _span([number for section in sections for number in section.rounds], "round")
    if not rounds and any(row.status == "turns dropped" for section in sections for row in section.rows):
        return "turns dropped"
    return f"{generations} of {rounds}" if rounds else "not measured"


def change_text(value: str, base: str, ratio: float | None) -> str:
    """As IREE's comments wrote it: `84.508 (vs. 76.591, 10.34%↑)`; no percentage against a base of zero."""
    if ratio is None:
        return f"{value} (vs. {base})"
    arrow = "↑" if ratio > 1 else "↓" if ratio < 1 else ""
    return f"{value} (vs. {base}, {abs(ratio - 1):.2%}{arrow})"


def _span(values: list[int], noun: str) -> str:
    if not values:
        return ""
    low, high = min(values), max(values)
    return f"{low} to {high} {noun}s" if low != high else f"{low} {noun}{'' if low == 1 else 's'}"


def _lost_counts(summary: Summary) -> list[str]:
    return [
        _count(summary.failed, "failed"),
        _count(summary.missing, "missing"),
        _count(summary.works_again, "expected to fail and works now"),
    ]


def _known_counts(summary: Summary) -> list[str]:
    return [
        _count(summary.expected_failures, "failed as expected"),
        _count(summary.skipped, "skipped"),
        _count(summary.not_timed, "compiled and right, not timed"),
        _count(summary.turns_dropped, "measured, with their turns dropped since"),
        _count(summary.not_measured_yet, "not measured yet"),
    ]


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number else ""


def _sentence(summary: Summary, parts: list[str]) -> str:
    return f"{_span([summary.planned], 'case')}: {', '.join(part for part in parts if part)}."


def common_fate(section: Section) -> str | None:
    """What to say instead of a table where every case of a section was skipped for the same reason."""
    remarks = {row.remarks for row in section.rows}
    if any(row.status != "skipped" for row in section.rows) or len(remarks) != 1:
        return None
    count = len(section.rows)
    whose = "The only case was" if count == 1 else f"All {count} cases were"
    return f"{whose} {'; '.join(one_line(remark) for remark in remarks.pop())}"
