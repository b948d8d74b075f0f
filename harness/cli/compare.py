"""`harness compare` and `harness selfcheck`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter
from cyclopts.validators import Number

from harness.cli.app import Format, Patterns, Toolchains, app


@app.command
def compare(
    *sides: str,
    within: Path | None = None,
    toolchains: Toolchains = None,
    suite: Path | None = None,
    patterns: Patterns = None,
    remeasure: bool = True,
    across_hosts: Annotated[bool, Parameter(negative="")] = False,
    by_name: Annotated[bool, Parameter(negative="")] = False,
    row_budget: Annotated[float, Parameter(validator=Number(gt=0, lt=10_000_000))] = 15.0,
    compile_budget: Annotated[float, Parameter(validator=Number(gte=0, lt=10_000_000))] = 30.0,
    floor: Annotated[float | None, Parameter(validator=Number(gt=0, lt=1))] = None,
    controls: Annotated[int, Parameter(validator=Number(gte=0))] = 0,
    rule: Literal["generations", "upstream"] = "generations",
    strict: Annotated[bool, Parameter(negative="")] = False,
    seed: int = 0,
    results: Path = Path("results"),
    compile_timeout: Annotated[float, Parameter(validator=Number(gt=0, lt=10_000_000))] = 900.0,
    call_timeout: Annotated[float, Parameter(validator=Number(gt=0, lt=10_000_000))] = 300.0,
    format: Format = "terminal",  # noqa: A002 (the option's name)
    full: Annotated[bool, Parameter(negative="")] = False,
    out: Path | None = None,
) -> int:
    """Say of every case whether head is slower, faster or as fast as base, by measuring both side by side.

    Args:
        sides: Base and head: run directories, or toolchains such as iree==3.12.0.
        within: Compare this run's variants with its baseline instead.
        toolchains: Sides that are toolchains, after those given by position.
        suite: Suite for sides that are toolchains (default: that of the other side's run).
        patterns: Only these cases.
        remeasure: Measure again, now; else compare what the runs recorded.
        across_hosts: Compare recorded numbers of different machines or devices too.
        by_name: Compare cases of one name also where the two sides define them differently, as before and after a
            change of the suite's flags.
        row_budget: Wall seconds for looking at one row's latency; confirming a finding takes as much again, at
            most twice.
        compile_budget: Wall seconds for one row's compile times; 0: they are not measured.
        floor: Relative change of latency below which nothing is called changed (default: the suite's, else 0.01).
        controls: So many identical rows are measured all the same, as A/A controls.
        rule: What decides: generations and their intervals, or the thresholds of IREE's own old comments.
        strict: Exit with 4 where rows stay inconclusive.
        seed: Of the order of turns.
        results: Where the comparison's directory goes.
        compile_timeout: Seconds after which a compile is stopped.
        call_timeout: Seconds after which a turn is stopped.
        format: How to print the report.
        full: Markdown without cuts.
        out: Write the report to this file instead of stdout.
    """
    from harness.commands.compare import compare_command
    from harness.compare.options import CompareOptions

    return compare_command(
        CompareOptions(
            sides=sides,
            within=within,
            toolchains=tuple(toolchains or ()),
            suite=suite,
            patterns=tuple(patterns or ()),
            remeasure=remeasure,
            across_hosts=across_hosts,
            by_name=by_name,
            row_budget=row_budget,
            compile_budget=compile_budget,
            floor=floor,
            controls=controls,
            rule=rule,
            seed=seed,
            results=results,
            compile_timeout=compile_timeout,
            call_timeout=call_timeout,
        ),
        format,
        strict=strict,
        full=full,
        out=out,
    )


@app.command
def selfcheck(
    suite: Path,
    *,
    patterns: Patterns = None,
    rows: Annotated[int, Parameter(validator=Number(gte=1))] = 40,
    row_budget: Annotated[float, Parameter(validator=Number(gt=0, lt=10_000_000))] = 15.0,
    floor: Annotated[float | None, Parameter(validator=Number(gt=0, lt=1))] = None,
    seed: int = 0,
    results: Path = Path("results"),
    format: Literal["terminal", "json"] = "terminal",  # noqa: A002 (the option's name)
) -> int:
    """Compare modules with themselves: how often are verdicts wrong on this machine, and how small a change is seen?

    Args:
        suite: The suite's TOML file.
        patterns: Only these cases.
        rows: Rows over all cases, at least; each case gets equally many.
        row_budget: Wall seconds of one row.
        floor: Relative change of latency below which nothing is called changed (default: the suite's, else 0.01).
        seed: Of the order of turns.
        results: Where the run's directory goes that its modules are compiled for.
        format: How to print it.
    """
    from harness.commands.compare import selfcheck_command

    return selfcheck_command(
        suite, tuple(patterns or ()), rows, row_budget, floor, seed=seed, results=results, output_format=format
    )
