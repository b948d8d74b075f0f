"""The table that closes the run of a list of suites."""

from dataclasses import replace
from pathlib import Path

from harness.errors import ExitCode
from harness.report.command_pages import SuiteOutcome, outcome_records, outcomes_page
from harness.report.run_report import build_report
from harness.report.terminal import to_terminal
from tests.report.builders import make_small_run

SUMMARY = replace(build_report(make_small_run()).summary, measured=5, same=0, failed=1, skipped=1, expected_failures=2)
OUTCOMES = (
    SuiteOutcome(suite=Path("a.toml"), status=ExitCode.CASE_FAILED, run=Path("results/1-a"), summary=SUMMARY),
    SuiteOutcome(suite=Path("b.toml"), status=ExitCode.USAGE, note="b.toml: name is missing; add it | twice"),
)


def test_each_suite_has_a_row_and_why_it_was_not_run_stands_below() -> None:
    assert to_terminal(outcomes_page(OUTCOMES)).splitlines() == [
        "Suites",
        "suite   measured  failed  skipped  failed as expected  exit status  run",
        "───────────────────────────────────────────────────────────────────────────────",
        "a.toml         5       1        1                   2            3  results/1-a",
        "b.toml         -       -        -                   -            2  -",
        "",
        "- b.toml: name is missing; add it | twice",
    ]
    failed, refused = outcome_records(OUTCOMES)
    assert (failed["suite"], failed["run"], failed["exit_status"], failed["note"]) == ("a.toml", "results/1-a", 3, None)
    assert failed["summary"]["expected_failures"] == 2
    assert (refused["run"], refused["exit_status"], refused["summary"]) == (None, 2, None)
