"""What `harness compare` and `harness selfcheck` do, once their arguments are parsed."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from harness.commands.output import Format, memory_limit, print_text
from harness.compare.options import CompareOptions
from harness.compare.pairs import Side, is_toolchain, require_whole, side_of
from harness.compare.sides import require_two, resolve, suite_of, toolchains_here
from harness.errors import ExitCode, UsageError
from harness.machine.environment import capture_environment
from harness.process import Limits
from harness.progress import Progress, Terminal
from harness.records.comparison import Comparison
from harness.report.comparison import render_comparison
from harness.report.outcome import comparison_exit_code
from harness.stages.comparing import compare_sides
from harness.store.run_directory import load_run

if TYPE_CHECKING:
    from harness.stages.context import RunOptions
    from harness.suite.cases import Selection
    from harness.toolchain import Toolchain

_COMPILE_TIMEOUT_S = 900.0
_CALL_TIMEOUT_S = 300.0


def compare_command(
    options: CompareOptions, output_format: Format, *, strict: bool, full: bool, out: Path | None
) -> int:
    """`harness compare`: exit status 1 for a regression, 3 for a failed or missing row, 4 (strict) for an open one."""
    if options.controls and not options.remeasure:
        raise UsageError("--controls are measured, and --no-remeasure measures nothing; leave one of them out")
    labels = require_two(options.sides, options.toolchains, options.within)
    if not options.remeasure and any(is_toolchain(label) for label in labels):
        raise UsageError("a toolchain has no recorded numbers to compare; leave --no-remeasure out, or give two runs")
    with Terminal() as progress:
        comparison, path = _compare(labels, suite_of(labels, options.suite), options, progress)
    print_comparison(comparison, output_format, full=full, out=out)
    program = "harness" if shutil.which("harness") else os.path.relpath(sys.argv[0])
    sys.stderr.write(f"Kept in {path}; `{program} report {path} --format markdown` prints it for an issue.\n")
    return int(comparison_exit_code(comparison, strict=strict))


def _compare(
    labels: tuple[str, str], suite: Path | None, options: CompareOptions, progress: Progress
) -> tuple[Comparison, Path]:
    limits = Limits(seconds=options.compile_timeout, memory_bytes=memory_limit())
    if options.within is not None:
        base = head = side_of(load_run(options.within), labels[0])
    else:

        def compile_suite(path: Path, toolchain: Toolchain) -> Path:
            from harness.stages.run import run_suite
            from harness.suite.cases import Selection

            selection = Selection(patterns=options.patterns)
            return run_suite(_unmeasured(path, options.results, selection, limits, (toolchain,)), progress)

        base, head = resolve(labels, suite, compile_suite, progress.note)
    for side in (base, head):
        require_whole(side)
    toolchains = toolchains_here((base, head), progress.note) if options.remeasure else {}
    command = ("harness", *sys.argv[1:])
    return compare_sides(base, head, toolchains, options, progress, memory_bytes=limits.memory_bytes, command=command)


def _unmeasured(
    suite: Path, results: Path, selection: Selection, limits: Limits, toolchains: tuple[Toolchain, ...] = ()
) -> RunOptions:
    """A run of which nothing is timed: its modules are compiled and checked."""
    from harness.stages.context import RunOptions

    return RunOptions(
        suite=suite,
        results=results,
        selection=selection,
        jobs=os.cpu_count() or 1,
        budget_s=None,
        generations=None,
        seed=0,
        compile_limits=limits,
        call_limit_s=_CALL_TIMEOUT_S,
        command=("harness", *sys.argv[1:]),
        toolchains=toolchains,
        measure=False,
    )


def print_comparison(comparison: Comparison, output_format: Format, *, full: bool, out: Path | None) -> None:
    """Print a comparison's report, or write it to a file."""
    width = shutil.get_terminal_size((120, 24)).columns
    color = out is None and sys.stdout.isatty() and "NO_COLOR" not in os.environ
    print_text(render_comparison(comparison, output_format, full=full, width=width, color=color), out)


def selfcheck_command(
    suite: Path,
    patterns: tuple[str, ...],
    rows: int,
    row_budget_s: float,
    floor: float | None,
    *,
    seed: int,
    results: Path,
    output_format: Literal["terminal", "json"],
) -> int:
    """`harness selfcheck`: exit status 0, whatever it finds: a false alarm here is a finding about the machine."""
    from harness.compare.selfcheck import SelfcheckOptions, check_machine
    from harness.report.selfcheck import render_selfcheck
    from harness.stages.run import run_suite
    from harness.suite.cases import Selection

    limits = Limits(seconds=_COMPILE_TIMEOUT_S, memory_bytes=memory_limit())
    with Terminal() as progress:
        path = run_suite(_unmeasured(suite, results, Selection(patterns=patterns), limits), progress)
        side: Side = side_of(load_run(path), str(path))
        checked = check_machine(
            side,
            toolchains_here([side], progress.note),
            capture_environment(),
            SelfcheckOptions(
                rows=rows, row_budget_s=row_budget_s, floor=floor, seed=seed, call_limit_s=_CALL_TIMEOUT_S
            ),
            progress,
        )
    width = shutil.get_terminal_size((120, 24)).columns
    print_text(render_selfcheck(checked, output_format, width=width, color=sys.stdout.isatty()), None)
    return int(ExitCode.OK)
