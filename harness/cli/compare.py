"""`harness compare` and `harness selfcheck`."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

from harness.cli.app import app
from harness.cli.output import print_text, tell_where, terminal_form
from harness.compare.options import CompareOptions, SelfcheckOptions
from harness.compare.pairs import is_toolchain, require_whole, side_of
from harness.compare.selfcheck import check_machine
from harness.compare.sides import require_two, resolve, toolchains_here
from harness.errors import ExitCode, UsageError
from harness.machine.environment import capture_environment
from harness.options import Flag, Format
from harness.process import stop_all
from harness.progress import Progress, Terminal
from harness.records.comparison import Comparison
from harness.report import render
from harness.report.outcome import comparison_exit_code
from harness.report.selfcheck import render_selfcheck
from harness.stages.comparing import InterruptedComparison, compare_sides
from harness.stages.options import RunOptions, compile_limits
from harness.stages.run import run_suite
from harness.store.names import find_folder
from harness.store.run_directory import load_run
from harness.toolchain import Toolchain


@app.command
def compare(
    options: CompareOptions | None = None,
    *,
    strict: Flag = False,
    format: Format = "terminal",  # noqa: A002 (the option's name)
    full: Flag = False,
    out: Path | None = None,
) -> int:
    """Say of every case whether head is slower, faster or as fast as base, by measuring both side by side.

    The exit status is 1 for a regression, 3 for a failed or missing row, and with --strict 4 for an inconclusive one.
    What is stopped with Ctrl-C prints the rows that are decided.

    Args:
        strict: Exit with 4 where rows stay inconclusive.
        format: How to print the report.
        full: Markdown without cuts.
        out: Write the report to this file instead of stdout.
    """
    options = _found(options or CompareOptions())
    if options.controls and not options.remeasure:
        raise UsageError("--controls are measured, and --no-remeasure measures nothing; leave one of them out")
    labels = require_two(options.sides, options.toolchains, options.within)
    if not options.remeasure and any(is_toolchain(label) for label in labels):
        raise UsageError("a toolchain has no recorded numbers to compare; leave --no-remeasure out, or give two runs")
    try:
        with Terminal() as progress:
            comparison, path = _compare(labels, options, progress)
    except InterruptedComparison as error:
        stop_all()
        print_text(render(error.comparison, format, full=full, **terminal_form(out)), out)
        sys.stdout.flush()
        raise
    print_text(render(comparison, format, full=full, **terminal_form(out)), out)
    tell_where(path)
    return int(comparison_exit_code(comparison, strict=strict))


def _found(options: CompareOptions) -> CompareOptions:
    """The options, with the folders of the runs that they name as `latest`, `@-1` or by a beginning."""
    sides = tuple(
        side if is_toolchain(side) else str(find_folder(side, options.results, kind="run")) for side in options.sides
    )
    within = None if options.within is None else find_folder(options.within, options.results, kind="run")
    return replace(options, sides=sides, within=within)


def _compare(labels: tuple[str, str], options: CompareOptions, progress: Progress) -> tuple[Comparison, Path]:
    if options.within is not None:
        base = head = side_of(load_run(options.within), labels[0])
    else:

        def compile_suite(path: Path, toolchain: Toolchain) -> Path:
            unmeasured = RunOptions(
                path,
                patterns=options.patterns,
                measure=False,
                results=options.results,
                compile_timeout_s=options.compile_timeout,
            )
            return run_suite(unmeasured, progress, (toolchain,), purpose="compare")

        base, head = resolve(labels, options.suite, compile_suite, progress.note)
    for side in (base, head):
        require_whole(side)
    toolchains = toolchains_here((base, head), progress.note) if options.remeasure else {}
    limit_bytes = compile_limits(options.compile_timeout).memory_bytes
    command = ("harness", *sys.argv[1:])
    return compare_sides(base, head, toolchains, options, progress, memory_bytes=limit_bytes, command=command)


@app.command
def selfcheck(options: SelfcheckOptions) -> int:
    """Compare modules with themselves: how often are verdicts wrong on this machine, and how small a change is seen?

    The exit status is 0 whatever it finds: a false alarm here is a finding about the machine.
    """
    unmeasured = RunOptions(options.suite, patterns=options.patterns, measure=False, results=options.results)
    with Terminal() as progress:
        path = run_suite(unmeasured, progress, purpose="selfcheck")
        side = side_of(load_run(path), str(path))
        checked = check_machine(side, toolchains_here([side], progress.note), capture_environment(), options, progress)
    print_text(render_selfcheck(checked, options.format, **terminal_form()))
    return ExitCode.OK
