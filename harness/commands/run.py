"""What `harness run` does."""

from __future__ import annotations

from harness.commands.one_run import RunArguments, run_for
from harness.commands.output import Format, tell_where
from harness.commands.report import report_command


def run_command(arguments: RunArguments, output_format: Format) -> int:
    """`harness run`: exit status 3 if a case failed or is missing; of a list of suites, the weightiest of theirs."""
    from harness.suite.load import find_list

    if arguments.suite is not None and arguments.resume is None and (suites := find_list(arguments.suite)) is not None:
        from harness.commands.lists import run_list

        return run_list(suites, arguments, output_format)
    path = run_for(arguments)
    status = report_command(path, output_format, full=False, out=None)
    tell_where(path)
    return status
