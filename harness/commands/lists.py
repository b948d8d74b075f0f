"""`harness run` and `harness list` of a list of suites: one suite after the other, whatever becomes of each."""

from __future__ import annotations

import json
import os
import shutil
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from harness.commands.cases import cases_record, planned_cases, print_cases
from harness.commands.one_run import RunArguments, run_for
from harness.commands.output import Format, tell, tell_where
from harness.errors import ExitCode, HarnessError, Interrupted, NothingSelected, UsageError
from harness.records.run import SCHEMA_VERSION
from harness.report import render
from harness.report.outcome import exit_code
from harness.report.suite_list import SuiteOutcome, outcome_record, outcomes_markdown, outcomes_terminal
from harness.report.table import build_report
from harness.store.run_directory import load_run
from harness.suite.cases import Selection
from harness.suite.values import SuiteList
from harness.toolchain import release_named

# From the least to the weightiest. A suite that cannot be run at all says less than one of which a case failed.
_WEIGHT = (ExitCode.OK, ExitCode.CASE_FAILED, ExitCode.USAGE)
_NOTHING = "what was asked for matches no case"


def run_list(suites: SuiteList, arguments: RunArguments, output_format: Format) -> int:
    """Run each suite of a list in turn, print their reports, and a table of what became of each.

    Returns:
        The weightiest exit status of all.

    Raises:
        UsageError: Nothing is selected in any of them, or the format is for single suites.
        Interrupted: The user stopped it; the message says how to go on.
    """
    if output_format == "csv":
        raise UsageError(f"{suites.path}: --format csv is for one suite, and this is a list; take json or markdown")
    arguments = replace(
        arguments,
        budget_s=arguments.budget_s or suites.budget_s,
        generations=arguments.generations or suites.generations,
        # Asked once, since a release may come out between the first suite and the last.
        toolchains=tuple(release_named(one, tell) for one in arguments.toolchains),
    )
    outcomes: list[SuiteOutcome] = []
    reports: list[dict[str, Any]] = []
    for number, suite in enumerate(suites.suites, start=1):
        sys.stderr.write(f"{suite}: suite {number} of {len(suites.suites)}\n")
        try:
            outcome = _run_one(replace(arguments, suite=suite))
        except Interrupted as error:
            left = ", ".join(str(one) for one in suites.suites[number:])
            raise Interrupted(f"{error}{f'; not begun were {left}' if left else ''}") from None
        outcomes.append(outcome)
        if outcome.run is None:
            sys.stderr.write(f"{outcome.note}\n")
        elif output_format == "json":
            reports.append(json.loads(_report(outcome.run, "json")))
        else:
            sys.stdout.write(f"{_report(outcome.run, output_format).rstrip()}\n\n")
            sys.stdout.flush()
            tell_where(outcome.run)
    if all(outcome.run is None and outcome.status == ExitCode.OK for outcome in outcomes):
        raise UsageError(f"{suites.path}: {_NOTHING} of any of its suites; `harness list {suites.path}` shows them all")
    if output_format == "json":
        document = {
            "schema_version": SCHEMA_VERSION,
            "list": suites.path.as_posix(),
            "suites": [outcome_record(one) for one in outcomes],
            "reports": reports,
        }
        sys.stdout.write(json.dumps(document, indent=2) + "\n")
    else:
        closing = outcomes_markdown(outcomes) if output_format == "markdown" else outcomes_terminal(outcomes, **_form())
        sys.stdout.write(closing)
    return int(max((outcome.status for outcome in outcomes), key=_WEIGHT.index))


def show_list(
    suites: SuiteList,
    selection: Selection,
    versions: tuple[str, ...],
    output_format: Literal["terminal", "json"],
    *,
    flags: bool,
) -> int:
    """Show the cases of each suite of a list; exit status 2 if one of them cannot be loaded."""
    status = ExitCode.OK
    records: list[dict[str, Any]] = []
    for suite in suites.suites:
        if output_format == "terminal":
            sys.stdout.write(f"{suite}\n")
        try:
            cases = planned_cases(suite, selection, versions)
        except NothingSelected:
            cases = ()
        except UsageError as error:
            status = ExitCode.USAGE
            records.append({"suite": suite.as_posix(), "cases": [], "error": str(error)})
            sys.stderr.write(f"{error}\n")
            continue
        records.append(cases_record(suite, cases))
        if output_format == "terminal" and cases:
            print_cases(cases, flags=flags)
        elif output_format == "terminal":
            sys.stdout.write(f"{_NOTHING}\n")
    if output_format == "json":
        document = {"schema_version": SCHEMA_VERSION, "list": suites.path.as_posix(), "suites": records}
        sys.stdout.write(json.dumps(document, indent=2) + "\n")
    return status


def _run_one(arguments: RunArguments) -> SuiteOutcome:
    """Run one suite; one that cannot be run is an outcome too."""
    suite = arguments.suite or Path()
    try:
        run = run_for(arguments)
        summary = build_report(load_run(run)).summary
    except NothingSelected:
        return SuiteOutcome(suite=suite, status=ExitCode.OK, note=f"{suite}: passed over, since {_NOTHING}")
    except Interrupted:
        raise
    except HarnessError as error:
        told = str(error) if str(suite) in str(error) else f"{suite}: {error}"
        return SuiteOutcome(suite=suite, status=error.exit_code, note=told)
    return SuiteOutcome(suite=suite, status=exit_code(summary), run=run, summary=summary)


def _report(run: Path, output_format: Format) -> str:
    return render(load_run(run), output_format, **_form())


def _form() -> dict[str, Any]:
    """How wide the terminal is, and whether it shows colours."""
    color = sys.stdout.isatty() and "NO_COLOR" not in os.environ
    return {"width": shutil.get_terminal_size((120, 24)).columns, "color": color}
