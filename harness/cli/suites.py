"""`harness list` and `harness check`, of one suite or of a list of suites."""

import sys
from collections.abc import Callable
from dataclasses import KW_ONLY, asdict, dataclass
from pathlib import Path
from typing import Any

from harness.cache import environments_root
from harness.cli.app import app
from harness.cli.output import print_text, reporter, tell, teller
from harness.errors import ExitCode, NothingSelected, SuiteError, UsageError
from harness.options import DataFormat, Loudness, Quiet, Toolchains, command_options
from harness.records.case import Case
from harness.report.data import to_json
from harness.stages.checking import Checked, check_suite
from harness.stages.prepare import prepare
from harness.suite.cases import Selection
from harness.suite.completion import Selecting
from harness.suite.load import SuiteList, find_list, load_suite
from harness.suite.shards import parse_shard
from harness.text import plural
from harness.toolchain import Toolchain, get_toolchains, releases_named

# From the least to the weightiest. A suite that cannot be run at all says less than one of which a case failed.
WEIGHT = (ExitCode.OK, ExitCode.CASE_FAILED, ExitCode.USAGE)
NOTHING = "what was asked for matches no case"


def find_toolchains(versions: tuple[str, ...], suite: Path, on_install: Callable[[str], None]) -> tuple[Toolchain, ...]:
    """The toolchains of these versions and ranges, installed where they are not here; () for none."""
    if not versions:
        return ()
    load_suite(suite)  # what is wrong with a suite shows before minutes of installing
    releases = releases_named(versions, on_install)
    return get_toolchains(releases, root=environments_root(), on_install=on_install)


@command_options
@dataclass(frozen=True)
class ListOptions(Selecting, Toolchains, Loudness):
    """What a user can choose about a list of cases.

    Attributes:
        suite: The suite's TOML file.
        shard: Only those of this shard, as of harness run.
        flags: With all flags of each case; so does --verbose.
        format: How to print them.
        verbose: With all flags of each case.
    """

    suite: Path
    _: KW_ONLY
    shard: str | None = None
    flags: bool = False
    format: DataFormat = "terminal"


@app.command(name="list")
def list_cases(options: ListOptions) -> int:
    """Show a suite's cases, and which of them would be skipped here and why.

    Of a list of suites, the exit status is 2 if one of them cannot be loaded.
    """
    found = find_list(options.suite)
    status, records = ExitCode.OK, []
    for suite in found.suites if found is not None else (options.suite,):
        record: dict[str, Any] = {"suite": suite.as_posix(), "cases": []}
        records.append(record)
        if found is not None and options.format == "terminal":
            print_text(str(suite))
        try:
            cases = _planned_cases(options, suite)
        except UsageError as error:
            if found is None:
                raise
            if isinstance(error, NothingSelected):
                if options.format == "terminal":
                    print_text(NOTHING)
                continue
            status = ExitCode.USAGE
            record["error"] = str(error)
            tell(str(error))
            continue
        record["cases"] = [asdict(case) for case in cases]
        if options.format == "terminal":
            _print_cases(cases, flags=options.flags or options.verbose)
    if options.format == "json":
        print_text(to_json(_of_all(found, records)))
    return status


def _of_all(found: SuiteList | None, records: list[dict[str, Any]]) -> dict[str, Any]:
    return records[0] if found is None else {"list": found.path.as_posix(), "suites": records}


def _planned_cases(options: ListOptions, suite: Path) -> tuple[Case, ...]:
    selection = Selection(patterns=options.patterns, tags=options.tags)
    shard = parse_shard(options.shard) if options.shard is not None else None
    toolchains = find_toolchains(options.toolchains, suite, teller(quiet=options.quiet))
    return prepare(suite, selection, toolchains, shard=shard).cases


def _print_cases(cases: tuple[Case, ...], *, flags: bool) -> None:
    """A line for each case, and their number; lines that grep and awk read, so no table."""
    width = max((len(case.name) for case in cases), default=0)
    for case in cases:
        remark = f"skipped: {case.skip}" if case.skip else "expected to fail" if case.known_to_fail else ""
        print_text(f"{case.name:<{width}}  {case.id}  {remark}".rstrip())
        if flags:
            sys.stdout.write("".join(f"    {flag}\n" for flag in (*case.compile_flags, *case.run_flags)))
    skipped = sum(case.skip is not None for case in cases)
    print_text(f"{len(cases)} cases, {skipped} of them skipped here")


# --- check ---


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
        status = max(status, status_of(checked), key=WEIGHT.index)
        records.append(_record(checked))
        if options.format == "terminal":
            print_text("\n".join(_lines(checked)))
    if options.format == "json":
        print_text(to_json(_of_all(found, records)))
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
