"""A run or a comparison as JUnit's XML: a test suite for each suite, a test for each case or row.

What makes the exit status 1 or 3 is a failure or an error there; so is a case that was expected to fail and does not.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from harness.errors import ExitCode
from harness.metrics import LATENCY
from harness.records.comparison import Comparison
from harness.report.comparison import LOST, comparison_exit_code, headline, is_regression, real_rows, sides_line
from harness.report.data import records, row_record
from harness.report.run_fields import FIELDS
from harness.report.run_report import Report, notes_of, run_line, verdict
from harness.report.units import interval_text
from harness.text import one_line, printable

Outcome = Literal["passed", "failure", "error", "skipped"]
# Of a row's status; of the first two the harness came to no verdict.
_OUTCOMES: dict[str, Outcome] = {
    **dict.fromkeys(("missing", "not measured yet"), "error"),
    **dict.fromkeys(("skipped", "expected failure"), "skipped"),
}
_NO_XML = str.maketrans("", "", "\ufffe\uffff")


def junit(suites: Sequence[Element]) -> str:
    """The document of all suites."""
    root = Element("testsuites")
    root.extend(suites)
    indent(root)
    return f"<?xml version='1.0' encoding='utf-8'?>\n{tostring(root, encoding='unicode').translate(_NO_XML)}\n"


def tests_of_run(report: Report) -> Element:
    """A test for each case of a run."""
    header, rows = report.header, tuple(report.rows())
    facts = {"run": header.id, "measured on": run_line(report), "notes": " ".join(notes_of(report))}
    suite = _begin(header.suite_name, header.started, facts)
    for row, figures in zip(rows, records(FIELDS, rows), strict=True):
        outcome, kind = _OUTCOMES.get(row.status, "passed"), str(row.status)
        if row.status == "failed" and row.failure is not None:
            kind = row.failure.stage  # a model that cannot be made never comes to the compiler
            outcome = "error" if kind == "model" else "failure"
        elif row.works_again:
            outcome, kind = "failure", "works now"
        elif row.over:
            outcome, kind = "failure", "over a limit"
        test = _add(suite, row.model, row.case, figures, row.latency_ns)
        _say(test, outcome, kind, next(iter(row.remarks), kind), row.repro, row.failure.stderr if row.failure else "")
    return _end(suite, report.summary.exit_code, verdict(report))


def tests_of_comparison(comparison: Comparison) -> Element:
    """A test for each row of a comparison but its A/A controls."""
    facts = {"comparison": comparison.id, "sides": sides_line(comparison), "notes": " ".join(comparison.notes)}
    suite = _begin(Path(comparison.head.suite).stem, comparison.created, facts)
    for row in real_rows(comparison):
        name = row.case if row.metric == LATENCY.name else f"{row.case} {row.metric}"
        test = _add(suite, row.model, name, row_record(row), row.head_value if row.unit == "ns" else None)
        ratio = "" if row.ratio is None else f" {interval_text(row.ratio, row.ci_low, row.ci_high)} of base"
        kind = "gate violated" if row.gate == "violated" else row.verdict
        lost = row.gate == "violated" or row.verdict in LOST or is_regression(row)
        outcome: Outcome = "failure" if lost else "skipped" if row.verdict == "inconclusive" else "passed"
        message = f"{kind}: {row.metric}{ratio}{f'; {row.reason}' if row.reason else ''}"
        _say(test, outcome, kind, message, row.repro, row.stderr)
    return _end(suite, comparison_exit_code(comparison), headline(comparison))


def tests_of_nothing(suite: str, why: str) -> Element:
    """Of a suite that could not be run: one test, which says why."""
    return _end(_begin(suite, "", {}), ExitCode.USAGE, why)


# --- XML ---


def _begin(name: str, started: str, facts: Mapping[str, Any]) -> Element:
    when = {"timestamp": one_line(started)[:19]} if started else {}  # JUnit knows no zones
    suite = Element("testsuite", when, name=one_line(name))
    _properties(suite, facts)
    return suite


def _add(suite: Element, model: str, name: str, facts: Mapping[str, Any], ns: float | None = None) -> Element:
    """A test; CI systems fold its class, `suite.model`."""
    group = f"{suite.get('name')}.{model}".rstrip(".")
    test = SubElement(suite, "testcase", classname=one_line(group), name=one_line(name.removeprefix(f"{model}/")))
    if ns is not None:
        test.set("time", f"{ns / 1e9:.9f}")
    _properties(test, facts)
    return test


def _say(test: Element, outcome: Outcome, kind: str, why: str, repro: Sequence[str] = (), output: str = "") -> None:
    if outcome != "passed":
        again = "\n".join(("Repeat it with:", *repro)) if repro else ""
        said = SubElement(test, outcome, type=kind, message=one_line(why))
        said.text = printable("\n\n".join(filter(None, (why, again, output))))


def _end(suite: Element, status: ExitCode, why: str) -> Element:
    """With a test for an exit status that no other one explains, as where nothing was measured; and counted."""
    if status is not ExitCode.OK and not suite.findall("testcase/failure") + suite.findall("testcase/error"):
        _say(_add(suite, "", "anything to measure", {}), "error", "nothing measured", why)
    suite.set("tests", str(len(suite.findall("testcase"))))
    for name, outcome in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        suite.set(name, str(len(suite.findall(f"testcase/{outcome}"))))
    return suite


def _properties(element: Element, facts: Mapping[str, Any]) -> None:
    known = {name: value for name, value in facts.items() if isinstance(value, str | int | float) and value != ""}
    properties = SubElement(element, "properties") if known else element
    for name, value in known.items():
        SubElement(properties, "property", name=name, value=one_line(str(value)))
