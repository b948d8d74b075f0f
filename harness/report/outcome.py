"""What the exit status of a run, a comparison or a bisect is; the contract is in docs/architecture.md."""

from __future__ import annotations

from harness.errors import ExitCode
from harness.metrics import LATENCY, TIMED
from harness.records.bisection import Bisection
from harness.records.comparison import Comparison, Row
from harness.report.run_report import Report, Summary
from harness.report.verdicts import LOST, MEASURED, of_metric, of_verdict, real_rows


def exit_code(summary: Summary) -> ExitCode:
    """3 if a planned case failed or is missing, or nothing was measured; else 0.

    Of a run that was only to compile and check, being right is enough. Skipped cases and failures that were expected
    are no failures, but a run of nothing else has measured nothing, unless it is a shard: others have the rest. What
    turns were dropped of had been measured.
    """
    done = summary.measured or summary.not_timed or summary.turns_dropped or summary.of_shard
    if summary.failed or summary.missing or summary.not_measured_yet or not done:
        return ExitCode.CASE_FAILED
    return ExitCode.OK


def comparison_exit_code(comparison: Comparison, *, strict: bool) -> ExitCode:
    """1 for a regression or a violated gate; else 3 for a failed or missing row, or if nothing was compared; else 0.

    A latency or a compile time that regressed is a regression unless a gate of the suite allows it; other figures are
    only what their gates make of them. Where both 1 and 3 hold it is 1, and the report names both. A/A controls never
    count.
    """
    rows = real_rows(comparison)
    if any(row.gate == "violated" or is_regression(row) for row in rows):
        return ExitCode.REGRESSION
    latencies = of_metric(rows, LATENCY.name)
    if of_verdict(rows, *LOST) or not of_verdict(latencies, *MEASURED, "identical"):
        return ExitCode.CASE_FAILED
    if strict and of_verdict(latencies, "inconclusive"):
        return ExitCode.INCONCLUSIVE
    return ExitCode.OK


def is_regression(row: Row) -> bool:
    """Whether a time regressed and no gate of the suite says otherwise."""
    return row.verdict == "regressed" and row.metric in TIMED and row.gate != "passed"


def bisect_exit_code(found: Bisection) -> ExitCode:
    """0 where the step that was asked for is known; else 4."""
    return ExitCode.OK if found.is_known else ExitCode.INCONCLUSIVE


def exit_status(result: object) -> ExitCode:
    """Of whatever `harness report` prints; an explanation and a tuning are findings, whatever they say."""
    if isinstance(result, Report):
        return exit_code(result.summary)
    if isinstance(result, Comparison):
        return comparison_exit_code(result, strict=False)
    return bisect_exit_code(result) if isinstance(result, Bisection) else ExitCode.OK
