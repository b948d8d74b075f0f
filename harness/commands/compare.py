"""What `harness compare` and `harness selfcheck` do, once their arguments are parsed."""

from __future__ import annotations

import os
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from harness.commands.output import Format, memory_limit, print_text
from harness.compare.pairs import Side, require_whole, side_of
from harness.compare.sides import is_toolchain, require_two, resolve, suite_of, toolchains_here
from harness.errors import ExitCode, UsageError
from harness.machine.environment import capture_environment
from harness.process import Limits
from harness.progress import Progress, Terminal
from harness.records.comparison import Comparison, RuleName
from harness.report.comparison import render_comparison
from harness.report.outcome import comparison_exit_code
from harness.stages.comparing import CompareOptions, compare_sides
from harness.store.run_directory import load_run

if TYPE_CHECKING:
    from harness.stages.context import RunOptions
    from harness.suite.cases import Selection
    from harness.toolchain import Toolchain

_COMPILE_TIMEOUT_S = 900.0
_CALL_TIMEOUT_S = 300.0


@dataclass(frozen=True, kw_only=True)
class CompareArguments:
    """The arguments of `harness compare`, as they were given."""

    sides: tuple[str, ...]
    within: Path | None
    toolchains: tuple[str, ...]
    suite: Path | None
    patterns: tuple[str, ...]
    remeasure: bool
    across_hosts: bool
    row_budget_s: float
    compile_budget_s: float
    floor: float | None
    controls: int
    rule: RuleName
    seed: int
    results: Path
    compile_timeout_s: float
    call_timeout_s: float
    by_name: bool = False


def compare_command(
    arguments: CompareArguments, output_format: Format, *, strict: bool, full: bool, out: Path | None
) -> int:
    """`harness compare`: exit status 1 for a regression, 3 for a failed or missing row, 4 (strict) for an open one."""
    if arguments.controls and not arguments.remeasure:
        raise UsageError("--controls are measured, and --no-remeasure measures nothing; leave one of them out")
    labels = require_two(arguments.sides, arguments.toolchains, arguments.within)
    if not arguments.remeasure and any(is_toolchain(label) for label in labels):
        raise UsageError("a toolchain has no recorded numbers to compare; leave --no-remeasure out, or give two runs")
    suite = suite_of(labels, arguments.suite)
    limits = Limits(seconds=arguments.compile_timeout_s, memory_bytes=memory_limit())
    options = CompareOptions(
        results=arguments.results,
        remeasure=arguments.remeasure,
        across_hosts=arguments.across_hosts,
        row_budget_s=arguments.row_budget_s,
        compile_budget_s=arguments.compile_budget_s,
        floor=arguments.floor,
        controls=arguments.controls,
        rule=arguments.rule,
        patterns=arguments.patterns,
        seed=arguments.seed,
        compile_limits=limits,
        call_limit_s=arguments.call_timeout_s,
        command=("harness", *sys.argv[1:]),
        by_name=arguments.by_name,
    )
    with Terminal() as progress:
        comparison, path = _compare(labels, suite, arguments, options, progress)
    print_comparison(comparison, output_format, full=full, out=out)
    program = "harness" if shutil.which("harness") else os.path.relpath(sys.argv[0])
    sys.stderr.write(f"Kept in {path}; `{program} report {path} --format markdown` prints it for an issue.\n")
    return int(comparison_exit_code(comparison, strict=strict))


def _compare(
    labels: tuple[str, str],
    suite: Path | None,
    arguments: CompareArguments,
    options: CompareOptions,
    progress: Progress,
) -> tuple[Comparison, Path]:
    if arguments.within is not None:
        one = side_of(load_run(arguments.within), labels[0])
        base, head = one, one
    else:

        def compile_suite(path: Path, toolchain: Toolchain) -> Path:
            from harness.stages.run import run_suite
            from harness.suite.cases import Selection

            selection = Selection(patterns=arguments.patterns)
            return run_suite(
                _unmeasured(path, arguments.results, selection, options.compile_limits, (toolchain,)), progress
            )

        base, head = resolve(labels, suite, compile_suite, progress.note)
    for side in (base, head):
        require_whole(side)
    toolchains = toolchains_here((base, head), progress.note) if arguments.remeasure else {}
    return compare_sides(base, head, toolchains, options, progress, within=arguments.within is not None)


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
