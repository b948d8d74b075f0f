"""A run in sentences: its outcome, how it was measured, how far to trust it, and what to do next."""

import math
import shlex
from collections import Counter
from collections.abc import Sequence

from harness.records.comparison import Verdict
from harness.report.page import Name, Sentence, Step
from harness.report.run_report import Report
from harness.report.run_rows import Row, Section
from harness.report.units import interval_text, percent, ratio_text, share
from harness.report.verdicts import MARKS, RUN_WORDS
from harness.stats import CONFIDENCE
from harness.stats.rule import Rule
from harness.text import plural
from harness.verify.cases import UNCHECKED
from harness.verify.rounding import FACTOR

# Things that outputs are held against, which a sentence has room for.
_MOST_SOURCES = 5
# Our median and iree-benchmark-module's come from different processes; on the machines this was written on, fresh
# processes running one module differ by 6 to 14 %, so a smaller difference says nothing.
_REFERENCE_FLOOR = 0.05
_VERDICTS: dict[str, Verdict] = {word: verdict for verdict, word in RUN_WORDS.items()}
# What a sentence says of so many rows of a summary's field: before what was compared, and after it.
_LOST = {"failed": "failed", "missing": "missing", "works_again": "expected to fail and works now"}
_QUIET = {
    "expected_failures": "failed as expected",
    "skipped": "skipped",
    "not_timed": "compiled and right, not timed",
    "not_checked": "compiled, neither checked nor timed",
    "not_measured_yet": "not measured yet",
}


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


def verdict(report: Report) -> str:
    """The whole run in one sentence."""
    summary = report.summary
    against = f" than {report.baseline}"
    compared = {
        "faster": f"faster{against}",
        "slower": f"slower{'' if summary.faster else against}",
        "unchanged": f"the same within {share(report.floor)}",
        "unclear": "unclear",
        "same": "identical to another variant",
        "peers": "of other engines",
    }
    lost, found, quiet = (
        [f"{number} {words}" for name, words in table.items() if (number := getattr(summary, name))]
        for table in (_LOST, compared, _QUIET)
    )
    if not summary.measured:
        parts = ["nothing was measured", *lost, *quiet]
    else:
        parts = [*lost, *(found or [f"{summary.measured} measured, with nothing to compare"]), *quiet]
    first = " (a first look)" if summary.measured and _is_first_look(report) else ""
    return f"{plural(summary.planned, 'case')}: {', '.join(parts)}{first}."


def _generations_of_ratios(report: Report) -> list[int]:
    with_ratios = [section for section in report.sections if any(row.estimate is not None for row in section.rows)]
    return [len(section.rounds) for section in with_ratios if section.rounds]


def _is_first_look(report: Report) -> bool:
    """Whether ratios rest on fewer generations than the judge asks for before it looks at all."""
    return any(number < Rule().first_look for number in _generations_of_ratios(report))


def first_look(report: Report, folder: str) -> Sentence:
    """What makes a run a first look, and what decides its rows; "" where it is none."""
    if not _is_first_look(report):
        return ""
    fewest = min(_generations_of_ratios(report))
    return (
        f"A first look: {plural(fewest, 'generation')}, where a verdict takes {Rule().first_look} and a confirmation "
        "in fresh processes. To measure until each row is decided: ",
        Name(f"harness compare --within {shlex.quote(folder)}{_on_its_fleet(report)}"),
    )


def correctness(report: Report) -> str:
    """How many outputs were checked, against what, and how far off the worst was; "" where none was."""
    checked = {row.case: row.check for row in report.rows() if row.check and row.checked_against and not row.failure}
    if not checked:
        return ""
    cases = {row.case for row in report.rows()}
    sources: Counter[str] = Counter()
    for check in checked.values():
        if check.max_relative is not None:
            source = f"against {'a baseline that nothing judged' if check.against in cases else check.against}"
        elif check.against == UNCHECKED:
            source = "not checked, as the suite says"
        else:
            source = "not checked but for being finite"
        sources[source] += 1
    texts = [f"{number} {source}" for source, number in sources.most_common(_MOST_SOURCES)]
    if others := sum(number for _, number in sources.most_common()[_MOST_SOURCES:]):
        texts.append(f"{others} against others")
    if twice := sum(check.other_inputs for check in checked.values()):
        texts[-1] += f" ({twice} of them with other random inputs too)"
    spreads = {case: check.spreads for case, check in checked.items() if check.spreads is not None}
    errors = {case: check.max_relative for case, check in checked.items() if check.max_relative is not None}
    error = ""
    if spreads:
        worst = max(spreads, key=spreads.__getitem__)
        far = f"{spreads[worst]:.2g} spreads of its rounding, of which {FACTOR:g} are allowed"
        error = f"; the largest error is {far}, of {worst}"
    elif errors:
        worst = max(errors, key=errors.__getitem__)
        far = f"{errors[worst]:.1e}, of {worst} against {checked[worst].against}"
        error = f"; the largest relative difference is {far}"
    were = " were checked before timing" if errors else ""
    return f"Outputs of {plural(len(checked), 'case')}{were}: {', '.join(texts)}{error}."


def reference_sentence(report: Report) -> str:
    """That iree-benchmark-module says other times than we do, in how many rows and by how much; "" where it does not.

    Only differences count that are larger than the noise between processes.
    """
    asked, off = 0, []
    for row in report.rows():
        if row.status == "measured" and row.latency is not None and row.reference_ns is not None:
            asked += 1
            ratio = row.reference_ns / row.latency.median_ns
            if abs(math.log(ratio)) > max(_REFERENCE_FLOOR, 2 * row.latency.spread):
                off.append(ratio)
    if not off:
        return ""
    ends = list(dict.fromkeys(map(percent, (min(off), max(off)))))
    return (
        f"iree-benchmark-module, in one process of its own for each case, says another time than the table in "
        f"{len(off)} of {plural(asked, 'row')} ({' to '.join(ends)}). The ratios are of turns side by "
        "side and do not depend on it."
    )


def next_steps(report: Report, folder: str) -> list[Step]:
    """What to do about what the report of a run in that folder says."""
    summary, header = report.summary, report.header
    fleet, again = _on_its_fleet(report), f"harness run {shlex.quote(header.suite)}"
    if any(word.startswith("--toolchain") for word in header.command):
        versions = dict.fromkeys(version for section in report.sections for version in section.toolchains)
        again += "".join(f" --toolchain {shlex.quote(version)}" for version in versions)
    most = max((len(section.rounds) for section in report.sections), default=0)
    longer = f"--generations {max(5, 2 * most)} --budget {2 * float(header.settings.get('budget_s', 60)):g}"
    table = (
        (not report.run.finished, "go on with this run", f"harness run --resume {shlex.quote(folder)}{fleet}"),
        (
            summary.failed,
            "what the tools said of failures is here, and all that iree-compile said in the run's logs",
            "",
        ),
        (summary.missing, "what is missing left no record at all: run it again, and report it as a defect", ""),
        (summary.works_again, f"take expectations that no longer hold out of {header.suite}", ""),
        (summary.unclear, "unclear ratios take more generations", f"{again} {longer}{fleet}"),
    )
    return [Step(text, command) for holds, text, command in table if holds]


def _on_its_fleet(report: Report) -> str:
    fleet = report.header.settings.get("fleet")
    return f" --fleet {shlex.quote(str(fleet))}" if fleet else ""


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
