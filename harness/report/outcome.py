"""What a run's exit status is; the contract is in docs/architecture.md."""

from __future__ import annotations

from harness.errors import ExitCode
from harness.report.values import Summary


def exit_code(summary: Summary) -> ExitCode:
    """3 if a planned case failed or is missing, or nothing was measured; else 0.

    Skipped cases and failures that were expected are no failures, but a run of nothing else has measured nothing.
    """
    if summary.failed or summary.missing or summary.not_measured_yet or not summary.measured:
        return ExitCode.CASE_FAILED
    return ExitCode.OK
