"""`harness list`, `harness check` and `harness run`, of one suite or of a list of suites."""

import contextlib
import json
import os
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import KW_ONLY, asdict, dataclass, replace
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element

from harness.cache import environments_root
from harness.cli.app import app
from harness.cli.fleet import bench_at, require_waiting
from harness.cli.output import emit, print_report, print_text, reporter, tell, tell_where, teller, terminal_form
from harness.errors import ExitCode, HarnessError, Interrupted, NothingSelected, UsageError
from harness.options import DataFormat, Format, Loudness, Quiet, Toolchains, command_options, option_of
from harness.process import stop_all
from harness.report import render
from harness.report.command_pages import SuiteOutcome, outcome_records, outcomes_page
from harness.report.data import to_json
from harness.report.junit import junit, tests_of_nothing, tests_of_run
from harness.report.run_report import Report, build_report
from harness.stages.checking import Checked, check_suite
from harness.stages.options import RunOptions
from harness.stages.prepare import prepare
from harness.stages.run import run_suite
from harness.store.folders import find_folder
from harness.store.run_directory import load_run
from harness.suite.cases import Selection, parse_shard
from harness.suite.load import SuiteList, find_list, load_suite
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
class ListOptions(Selection, Toolchains, Loudness):
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
    shard = parse_shard(options.shard) if options.shard is not None else None
    is_list, say = find_list(options.suite) is not None, teller(quiet=options.quiet)

    def planned(suite: Path) -> tuple[ExitCode, dict[str, Any], list[str]]:
        try:
            toolchains = find_toolchains(options.toolchains, suite, say)
            cases = prepare(suite, options, toolchains, shard=shard).cases
        except NothingSelected:
            if not is_list:
                raise
            cases = ()
        width = max((len(case.name) for case in cases), default=0)
        lines = [str(suite)] if is_list else []  # which grep and awk read, so no table
        for case in cases:
            remark = f"skipped: {case.skip}" if case.skip else "expected to fail" if case.known_to_fail else ""
            lines.append(f"{case.name:<{width}}  {case.id}  {remark}".rstrip())
            if options.flags or options.verbose:
                lines += [f"    {flag}" for flag in (*case.compile_flags, *case.run_flags)]
        skipped = sum(case.skip is not None for case in cases)
        lines.append(f"{len(cases)} cases, {skipped} of them skipped here")
        return ExitCode.OK, {"suite": suite.as_posix(), "cases": [asdict(case) for case in cases]}, lines

    return _each_suite(options.suite, options.format, planned)


def _each_suite(
    path: Path, output_format: DataFormat, do: Callable[[Path], tuple[ExitCode, dict[str, Any], list[str]]]
) -> int:
    """Do it with a suite, or with each of a list, whatever is wrong with others; the weightiest status.

    What comes of each is its status, its record for programs, and its lines for people.
    """
    found = find_list(path)
    status, records = ExitCode.OK, []
    for suite in found.suites if found is not None else (path,):
        try:
            own, record, lines = do(suite)
        except UsageError as error:
            if found is None:
                raise
            tell(str(error))
            own, record, lines = ExitCode.USAGE, {"suite": suite.as_posix(), "error": str(error)}, []
        status = max(status, own, key=WEIGHT.index)
        records.append(record)
        if output_format == "terminal" and lines:
            print_text("\n".join(lines))
    if output_format == "json":
        print_text(to_json(records[0] if found is None else {"list": found.path.as_posix(), "suites": records}))
    return status


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

    def checked(suite: Path) -> tuple[ExitCode, dict[str, Any], list[str]]:
        toolchains = find_toolchains(options.toolchains, suite, teller(quiet=options.quiet))
        with reporter(quiet=options.quiet) as progress:
            found = check_suite(suite, toolchains, progress)
        status, skips = _status_of(found), Counter(case.skip for case in found.cases if case.skip is not None)
        skipped = f", {skips.total()} of them skipped here" if skips else ""
        lines = [f"{suite}: {plural(len(found.cases), 'case')} under IREE {', '.join(found.toolchains)}{skipped}"]
        lines += [f"  skipped: {plural(number, 'case')}: {reason}" for reason, number in skips.most_common()]
        lines += [f"  {finding.kind}: {finding.text}" for finding in found.findings]
        if not found.findings:
            lines.append("  nothing is wrong as far as that shows without compiling")
        record = {
            "suite": suite.as_posix(),
            "toolchains": list(found.toolchains),
            "cases": len(found.cases),
            "skipped": dict(skips.most_common()),
            "findings": [asdict(finding) for finding in found.findings],
            "exit_status": int(status),
        }
        return status, record, lines

    return _each_suite(options.suite, options.format, checked)


def _status_of(checked: Checked) -> ExitCode:
    kinds = {finding.kind for finding in checked.findings}
    if "contradiction" in kinds:
        return ExitCode.USAGE
    nothing_runs = all(case.skip is not None for case in checked.cases)
    return ExitCode.CASE_FAILED if "failed" in kinds or nothing_runs else ExitCode.OK


# --- run ---


@app.command
def run(options: RunOptions | None = None, *, format: Format = "terminal") -> int:
    """Compile, check and measure every case of a suite, and print the report.

    The exit status is 3 if a case failed or is missing, or if nothing was measured; a shard without a case ends with 0.
    A list of suites has the weightiest status of its suites. What is stopped with Ctrl-C prints what there is so far,
    and how to go on.

    Args:
        format: How to print the report.
    """
    options = options or RunOptions()
    if options.suite is not None and options.resume is None and (suites := find_list(options.suite)) is not None:
        return run_list(suites, options, format)
    # Of a harness that makes a side of a comparison in a tree of its own.
    return int(run_and_print(options, format, purpose=os.environ.get("HARNESS_PURPOSE", "")).summary.exit_code)


def run_one(options: RunOptions, *, purpose: str = "") -> Path:
    """Run one suite, or go on with an interrupted run of it; the run's directory."""
    options = _resumed(options)
    assert options.suite is not None  # noqa: S101 (_resumed made sure)
    if options.fleet is not None and options.shard is not None:
        raise UsageError("--fleet shares a suite out over its hosts by itself; leave --shard out")
    if options.fleet is not None and options.jobs is not None:
        raise UsageError("--jobs is of one machine; give it to harness fleet worker")
    require_waiting(options.fleet, wait=options.wait)
    with reporter(quiet=options.quiet, verbose=options.verbose) as progress, bench_at(options) as bench:
        toolchains = find_toolchains(options.toolchains, options.suite, progress.note)
        return run_suite(options, progress, toolchains, bench, purpose=purpose)


def _resumed(options: RunOptions) -> RunOptions:
    if (options.suite is None) == (options.resume is None):
        command = f"harness {type(options).__name__.removesuffix('Options').lower()} suites/esrgan.toml"
        raise UsageError(f"give either a suite, as in `{command}`, or --resume with a run directory")
    if options.resume is None:
        return options
    own = ("toolchains", "patterns", "tags", "budget_s", "generations", "seed", "shard")
    given = [option_of(RunOptions, name) for name in own if getattr(options, name)]
    given += [] if options.measure else ["--no-measure"]
    if given:
        raise UsageError(f"--resume goes on with the run's own settings; leave out {', '.join(given)}")
    resume = find_folder(options.resume, options.results, unfinished=True)
    header = load_run(resume).header
    settings = header.settings
    return replace(
        options,
        suite=Path(header.suite),
        resume=resume,
        results=resume.parent,
        toolchains=tuple(toolchain.version for toolchain in header.toolchains),
        patterns=tuple(settings["patterns"]),
        tags=tuple(settings["tags"]),
        shard=settings.get("shard"),
        measure=bool(settings.get("measure", True)),
        keep_going=options.keep_going or bool(settings.get("keep_going")),
    )


def run_and_print(options: RunOptions, output_format: Format, *, purpose: str = "") -> Report:
    """Run one suite and print its report, also as far as it came where the user stops it."""
    try:
        path = run_one(options, purpose=purpose)
    except Interrupted as error:
        stop_all()  # before rendering, which takes a moment
        if error.run is not None:
            with contextlib.suppress(HarnessError, OSError):  # it may be too young, and the terminal gone
                print_report(load_run(error.run), output_format, results=error.run.parent)
                sys.stdout.flush()
        raise
    found = load_run(path)
    print_report(found, output_format, results=path.parent)
    if not options.quiet:
        tell_where(path)
    return build_report(found)


def run_list(suites: SuiteList, options: RunOptions, output_format: Format) -> int:
    """Run each suite of a list in turn, print reports and what became of each; the weightiest exit status."""
    if output_format == "csv":
        raise UsageError(f"{suites.path}: --format csv is for one suite, and this is a list; take json or markdown")
    say = teller(quiet=options.quiet)
    options = replace(
        options,
        budget_s=options.budget_s or suites.budget_s,
        generations=options.generations or suites.generations,
        # Asked once, since a release may come out between the first suite and the last.
        toolchains=releases_named(options.toolchains, say),
    )
    outcomes: list[SuiteOutcome] = []
    reports: list[dict[str, Any]] = []
    tests: list[Element] = []
    interrupted: Interrupted | None = None
    for number, suite in enumerate(suites.suites, start=1):
        say(f"{suite}: suite {number} of {len(suites.suites)}")
        path, found, status, note = None, None, ExitCode.OK, ""
        try:
            path = run_one(replace(options, suite=suite))
            found = load_run(path)
            status = build_report(found).summary.exit_code
        except NothingSelected:
            note = f"{suite}: passed over, since {NOTHING}"
        except Interrupted as error:
            stop_all()
            left = ", ".join(str(later) for later in suites.suites[number:])
            interrupted = Interrupted(f"{error}{f'; not begun were {left}' if left else ''}")
            path, status, note = error.run, error.exit_code, f"{suite}: interrupted"
            with contextlib.suppress(HarnessError):  # it may be too young
                found = load_run(path) if path is not None else None
        except HarnessError as error:
            status, note = error.exit_code, str(error) if str(suite) in str(error) else f"{suite}: {error}"
        summary = build_report(found).summary if found is not None else None
        run = path if found is not None else None
        outcomes.append(SuiteOutcome(suite=suite, status=status, run=run, summary=summary, note=note))
        if found is None or run is None:
            tell(note)
            tests += [tests_of_nothing(suite.stem, note)] if status is not ExitCode.OK else []
        elif output_format == "json":
            reports.append(json.loads(render(found, "json")))
        elif output_format == "junit":
            tests.append(tests_of_run(build_report(found)))
        else:
            text = render(found, output_format, results=run.parent, **terminal_form())
            print_text(f"{text.rstrip()}\n\n")
            sys.stdout.flush()
            if not options.quiet:
                tell_where(run)
        if interrupted is not None:
            break
    if interrupted is None and all(outcome.run is None and outcome.status == ExitCode.OK for outcome in outcomes):
        raise UsageError(f"{suites.path}: {NOTHING} of any of its suites; `harness list {suites.path}` shows them all")
    document = {"list": suites.path.as_posix(), "suites": outcome_records(outcomes), "reports": reports}
    if output_format == "junit":
        print_text(junit(tests))
    else:
        emit(output_format, lambda: outcomes_page(outcomes), lambda: to_json(document))
    if interrupted is not None:
        raise interrupted
    return int(max((outcome.status for outcome in outcomes), key=WEIGHT.index))
