"""The table that closes the run of a list of suites."""

from __future__ import annotations

from pathlib import Path

from harness.errors import ExitCode
from harness.report.run_report import Summary
from harness.report.suite_list import SuiteOutcome, outcome_record, outcomes_markdown, outcomes_terminal

SUMMARY = Summary(
    planned=9,
    measured=5,
    same=0,
    failed=1,
    expected_failures=2,
    skipped=1,
    missing=0,
    not_measured_yet=0,
    faster=1,
    slower=0,
    unchanged=2,
    unclear=1,
    works_again=0,
)
OUTCOMES = (
    SuiteOutcome(suite=Path("a.toml"), status=ExitCode.CASE_FAILED, run=Path("results/1-a"), summary=SUMMARY),
    SuiteOutcome(suite=Path("b.toml"), status=ExitCode.USAGE, note="b.toml: name is missing; add it | twice"),
    SuiteOutcome(suite=Path("c.toml"), status=ExitCode.OK, note="c.toml: passed over"),
)


def test_on_a_terminal() -> None:
    lines = [line.rstrip() for line in outcomes_terminal(OUTCOMES, width=100, color=False).splitlines()]
    assert lines == [
        "Suites",
        "suite   measured  failed  skipped  failed as expected  exit status  run",
        "───────────────────────────────────────────────────────────────────────────────",
        "a.toml         5       1        1                   2            3  results/1-a",
        "b.toml                                                           2  not run",
        "c.toml                                                           0  not run",
        "",
        "- b.toml: name is missing; add it | twice",
        "- c.toml: passed over",
    ]


def test_in_markdown() -> None:
    assert outcomes_markdown(OUTCOMES) == (
        "### Suites\n\n"
        "| suite | measured | failed | skipped | failed as expected | exit status | run |\n"
        "| --- | ---: | ---: | ---: | ---: | ---: | --- |\n"
        "| a.toml | 5 | 1 | 1 | 2 | 3 | results/1-a |\n"
        "| b.toml |  |  |  |  | 2 | not run |\n"
        "| c.toml |  |  |  |  | 0 | not run |\n\n"
        "- b.toml: name is missing; add it &#124; twice\n"
        "- c.toml: passed over\n"
    )


def test_for_other_programs() -> None:
    failed, refused, _ = (outcome_record(one) for one in OUTCOMES)
    assert (failed["suite"], failed["run"], failed["exit_status"], failed["note"]) == ("a.toml", "results/1-a", 3, None)
    assert failed["summary"]["expected_failures"] == 2
    assert (refused["run"], refused["exit_status"], refused["summary"]) == (None, 2, None)
