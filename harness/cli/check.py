"""`harness check`, of one suite or of a list of suites."""

from __future__ import annotations

from dataclasses import KW_ONLY, asdict, dataclass
from pathlib import Path
from typing import Any

from harness.cli.app import app
from harness.cli.output import print_text, reporter, tell, teller
from harness.cli.run import find_toolchains
from harness.errors import ExitCode, SuiteError, UsageError
from harness.options import DataFormat, Quiet, Toolchains, command_options
from harness.report.data import to_json
from harness.stages.checking import Checked, check_suite
from harness.suite.load import find_list
from harness.text import plural

_WEIGHT = (ExitCode.OK, ExitCode.CASE_FAILED, ExitCode.USAGE)


@command_options
@dataclass(frozen=True)
class CheckOptions(Toolchains, Quiet):
    """What a user can choose about a check.

    Attributes:
        suite: The suite's TOML file, or a list of suites.
        format: How to print it.
    """

    suite: Path
    _: KW_ONLY
    format: DataFormat = "terminal"


@app.command
def check(options: CheckOptions) -> int:
    """Say what is wrong with a suite, or has no effect in it, without compiling anything.

    The exit status is 2 where the suite is wrong or contradicts itself, 3 where a model cannot be made or no case would
    run here, and else 0; what is not used is only said.
    """
    found = find_list(options.suite)
    suites = found.suites if found is not None else (options.suite,)
    status, records = ExitCode.OK, []
    for suite in suites:
        try:
            toolchains = find_toolchains(options.toolchains, suite, teller(quiet=options.quiet))
            with reporter(quiet=options.quiet) as progress:
                checked = check_suite(suite, toolchains, progress)
        except UsageError as error:
            every = error.every if isinstance(error, SuiteError) else (str(error),)
            if found is None and len(every) == 1:
                raise
            for sentence in every:
                tell(sentence)
            if found is None:
                raise UsageError(f"{suite}: has the {len(every)} errors above; correct them") from None
            status = ExitCode.USAGE
            records.append({"suite": suite.as_posix(), "error": str(error), "errors": list(every)})
            continue
        status = max(status, status_of(checked), key=_WEIGHT.index)
        records.append(_record(checked))
        if options.format == "terminal":
            print_text("\n".join(_lines(checked)))
    if options.format == "json":
        print_text(to_json(records[0] if found is None else {"list": found.path.as_posix(), "suites": records}))
    return status


def status_of(checked: Checked) -> ExitCode:
    """The exit status of one suite's check."""
    kinds = {finding.kind for finding in checked.findings}
    if "contradiction" in kinds:
        return ExitCode.USAGE
    nothing_runs = all(case.skip is not None for case in checked.cases)
    return ExitCode.CASE_FAILED if "failed" in kinds or nothing_runs else ExitCode.OK


def _lines(checked: Checked) -> list[str]:
    skipped = sum(checked.skipped.values())
    lines = [
        f"{checked.suite}: {plural(len(checked.cases), 'case')} under IREE {', '.join(checked.toolchains)}"
        f"{f', {skipped} of them skipped here' if skipped else ''}"
    ]
    lines += [f"  skipped: {plural(number, 'case')}: {reason}" for reason, number in checked.skipped.items()]
    lines += [f"  {finding.kind}: {finding.text}" for finding in checked.findings]
    if not checked.findings:
        lines.append("  nothing is wrong as far as that shows without compiling")
    return lines


def _record(checked: Checked) -> dict[str, Any]:
    return {
        "suite": checked.suite.as_posix(),
        "toolchains": list(checked.toolchains),
        "cases": len(checked.cases),
        "skipped": dict(checked.skipped),
        "findings": [asdict(finding) for finding in checked.findings],
        "exit_status": int(status_of(checked)),
    }
