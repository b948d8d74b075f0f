"""`harness run` and `harness list`, of one suite or of a list of suites."""

import contextlib
import json
import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from harness.cli.app import app
from harness.cli.fleet import bench_at, require_waiting
from harness.cli.output import emit, print_report, print_text, reporter, tell, tell_where, teller, terminal_form
from harness.cli.suites import NOTHING, WEIGHT, find_toolchains
from harness.errors import ExitCode, HarnessError, Interrupted, NothingSelected, UsageError
from harness.options import Format
from harness.process import stop_all
from harness.report import render
from harness.report.command_pages import SuiteOutcome, outcome_records, outcomes_page
from harness.report.data import to_json
from harness.report.run_report import build_report
from harness.stages.options import RunOptions
from harness.stages.run import run_suite
from harness.store.folders import find_folder
from harness.store.run_directory import load_run
from harness.suite.load import SuiteList, find_list
from harness.toolchain import releases_named


@app.command
def run(options: RunOptions | None = None, *, format: Format = "terminal") -> int:  # noqa: A002 (the option's name)
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
    return run_and_print(options, format, purpose=os.environ.get("HARNESS_PURPOSE", ""))


def run_one(options: RunOptions, *, purpose: str = "") -> Path:
    """Run one suite, or go on with an interrupted run of it; the run's directory."""
    options = _resumed(options)
    assert options.suite is not None  # noqa: S101 (_resumed made sure)
    if options.fleet is not None and options.shard is not None:
        raise UsageError(
            "--fleet shares a suite out over hosts, and --shard over machines that do not know each other; leave one of"
            " them out"
        )
    if options.fleet is not None and options.jobs is not None:
        raise UsageError(
            "--jobs is of one machine, and each host of a fleet has its own; give it to harness fleet worker"
        )
    require_waiting(options.fleet, wait=options.wait)
    with (
        reporter(quiet=options.quiet, verbose=options.verbose) as progress,
        bench_at(options) as bench,
    ):
        toolchains = find_toolchains(options.toolchains, options.suite, progress.note)
        return run_suite(options, progress, toolchains, bench, purpose=purpose)


def _resumed(options: RunOptions) -> RunOptions:
    if (options.suite is None) == (options.resume is None):
        raise UsageError(
            "give either a suite, as in `harness run suites/esrgan.toml`, or --resume with a run directory"
        )
    if options.resume is None:
        if options.skip:
            raise UsageError(
                "--skip is for a run that goes on with --resume; leave cases out with [matrix] or --filter"
            )
        return options
    own = ("toolchains", "patterns", "tags", "budget_s", "generations", "seed", "shard")
    given = [name for name in own if getattr(options, name)] + ([] if options.measure else ["no_measure"])
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


def print_run(path: Path, output_format: Format) -> int:
    """Print a run's report; the exit status of the run."""
    found = load_run(path)
    print_report(found, output_format, results=path.parent)
    return int(build_report(found).summary.exit_code)


def run_and_print(options: RunOptions, output_format: Format, *, purpose: str = "") -> int:
    """Run one suite and print its report, also as far as it came where the user stops it; the exit status."""
    try:
        path = run_one(options, purpose=purpose)
    except Interrupted as error:
        stop_all()  # before rendering, which takes a moment
        if error.run is not None:
            with contextlib.suppress(HarnessError, OSError):  # it may be too young, and the terminal gone
                print_run(error.run, output_format)
                sys.stdout.flush()
        raise
    status = print_run(path, output_format)
    if not options.quiet:
        tell_where(path)
    return status


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
    interrupted: Interrupted | None = None
    for number, suite in enumerate(suites.suites, start=1):
        say(f"{suite}: suite {number} of {len(suites.suites)}")
        try:
            outcome = _run_of_list(replace(options, suite=suite), suite)
        except Interrupted as error:
            left = ", ".join(str(later) for later in suites.suites[number:])
            interrupted = Interrupted(f"{error}{f'; not begun were {left}' if left else ''}")
            outcome = _interrupted_outcome(error, suite)
        outcomes.append(outcome)
        if outcome.run is None:
            tell(outcome.note)
        elif output_format == "json":
            reports.append(json.loads(render(load_run(outcome.run), "json")))
        else:
            text = render(load_run(outcome.run), output_format, results=outcome.run.parent, **terminal_form())
            print_text(f"{text.rstrip()}\n\n")
            sys.stdout.flush()
            if not options.quiet:
                tell_where(outcome.run)
        if interrupted is not None:
            break
    if interrupted is None and all(outcome.run is None and outcome.status == ExitCode.OK for outcome in outcomes):
        raise UsageError(f"{suites.path}: {NOTHING} of any of its suites; `harness list {suites.path}` shows them all")
    document = {"list": suites.path.as_posix(), "suites": outcome_records(outcomes), "reports": reports}
    emit(output_format, lambda: outcomes_page(outcomes), lambda: to_json(document))
    if interrupted is not None:
        raise interrupted
    return int(max((outcome.status for outcome in outcomes), key=WEIGHT.index))


def _run_of_list(options: RunOptions, suite: Path) -> SuiteOutcome:
    try:
        path = run_one(options)
        summary = build_report(load_run(path)).summary
    except NothingSelected:
        return SuiteOutcome(suite=suite, status=ExitCode.OK, note=f"{suite}: passed over, since {NOTHING}")
    except Interrupted:
        raise
    except HarnessError as error:
        note = str(error) if str(suite) in str(error) else f"{suite}: {error}"
        return SuiteOutcome(suite=suite, status=error.exit_code, note=note)
    return SuiteOutcome(suite=suite, status=summary.exit_code, run=path, summary=summary)


def _interrupted_outcome(error: Interrupted, suite: Path) -> SuiteOutcome:
    """What there is of the suite in whose run the user stopped the list."""
    stop_all()
    summary = None
    if error.run is not None:
        with contextlib.suppress(HarnessError):
            summary = build_report(load_run(error.run)).summary
    run = error.run if summary is not None else None
    return SuiteOutcome(suite=suite, status=error.exit_code, run=run, summary=summary, note=f"{suite}: interrupted")
