"""The command line: parses, calls, prints. Heavy imports wait until a command needs them."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import App, CycloptsError, Parameter
from cyclopts.validators import Number

from harness import __version__
from harness.errors import ExitCode, HarnessError

Format = Literal["terminal", "markdown", "json", "csv"]
Patterns = Annotated[
    list[str] | None,
    Parameter(name="--filter", negative="", help="Only cases whose name matches; shell patterns; repeatable."),
]
Tags = Annotated[list[str] | None, Parameter(name="--tag", negative="", help="Only cases with this tag; repeatable.")]
Toolchains = Annotated[
    list[str] | None,
    Parameter(
        name="--toolchain",
        negative="",
        help="Release of IREE, as in 3.12.0, installed into the cache once; repeatable: the others are compared with "
        "the first (default: the one that is installed).",
    ),
]
Positive = Annotated[float | None, Parameter(validator=Number(gt=0, lt=10_000_000))]
Count = Annotated[int | None, Parameter(validator=Number(gte=1))]

app = App(
    name="harness",
    help="Measure what ML compilers do: models x compiler-flag variants x devices, through IREE's own tools.",
    version=__version__,
)


def main() -> None:
    """Entry point of the `harness` command."""
    sys.exit(run_command_line(sys.argv[1:]))


def run_command_line(arguments: Sequence[str]) -> int:
    """Run one command line; its exit status. Errors are one sentence on stderr."""
    signal.signal(signal.SIGTERM, _interrupt)
    if hasattr(signal, "SIGHUP"):
        signal.signal(signal.SIGHUP, _interrupt)
    try:
        status = app(list(arguments), exit_on_error=False, print_error=False, result_action="return_value")
        sys.stdout.flush()
    except HarnessError as error:
        _stop_children()
        _complain(str(error))
        return int(error.exit_code)
    except CycloptsError as error:
        _complain(" ".join(str(error).split()) + " (see harness --help)")
        return int(ExitCode.USAGE)
    except KeyboardInterrupt:
        _stop_children()
        _complain("interrupted")
        return int(ExitCode.INTERRUPTED)
    except BrokenPipeError:  # the reader, such as `head`, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return int(ExitCode.OK)
    except Exception as error:  # a defect: still one sentence, and never the status of a regression
        _stop_children()
        if "HARNESS_TRACEBACK" in os.environ:
            raise
        text = " ".join(str(error).split())[:300]
        _complain(f"internal error: {type(error).__name__}: {text}; HARNESS_TRACEBACK=1 shows where, please report it")
        return int(ExitCode.INTERNAL)
    return int(status) if isinstance(status, int) else int(ExitCode.OK)


def _stop_children() -> None:
    if "harness.process" in sys.modules:  # else none was started
        from harness.process import stop_all

        stop_all()


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt


def _complain(sentence: str) -> None:
    sys.stderr.write(f"harness: {sentence}\n")


@app.command
def run(
    suite: Path | None = None,
    *,
    resume: Path | None = None,
    toolchains: Toolchains = None,
    patterns: Patterns = None,
    tags: Tags = None,
    budget: Positive = None,
    generations: Count = None,
    jobs: Count = None,
    seed: int | None = None,
    results: Path = Path("results"),
    compile_timeout: Annotated[float, Parameter(validator=Number(gt=0, lt=10_000_000))] = 900.0,
    compile_memory: Positive = None,
    call_timeout: Annotated[float, Parameter(validator=Number(gt=0, lt=10_000_000))] = 300.0,
    format: Format = "terminal",  # noqa: A002 (the option's name)
) -> int:
    """Compile, check and measure every case of a suite, and print the report.

    Args:
        suite: The suite's TOML file.
        resume: Go on with this interrupted run; finished work is not repeated.
        toolchains: Under these releases.
        patterns: Only these cases.
        tags: Only cases with these tags.
        budget: Seconds of timed rounds for the whole run (default: the suite's).
        generations: Fresh sets of processes, the independent samples (default: the suite's).
        jobs: Compiles at once (default: the number of cores).
        seed: Of the order of turns (default: 0).
        results: Where the run's directory goes.
        compile_timeout: Seconds after which a compile is stopped.
        compile_memory: GiB of memory at which a compile is stopped (default: 80 % of the machine's).
        call_timeout: Seconds after which a turn, or one call through iree-run-module, is stopped.
        format: How to print the report.
    """
    from harness.commands import RunArguments, run_command

    return run_command(
        RunArguments(
            suite=suite,
            resume=resume,
            toolchains=tuple(toolchains or ()),
            patterns=tuple(patterns or ()),
            tags=tuple(tags or ()),
            budget_s=budget,
            generations=generations,
            jobs=jobs,
            seed=seed,
            results=results,
            compile_timeout_s=compile_timeout,
            compile_memory_gib=compile_memory,
            call_timeout_s=call_timeout,
        ),
        format,
    )


@app.command(name="list")
def list_(
    suite: Path,
    *,
    toolchains: Toolchains = None,
    patterns: Patterns = None,
    tags: Tags = None,
    flags: bool = False,
    format: Literal["terminal", "json"] = "terminal",  # noqa: A002 (the option's name)
) -> int:
    """Show a suite's cases, and which of them would be skipped here and why.

    Args:
        suite: The suite's TOML file.
        toolchains: Under these releases.
        patterns: Only these cases.
        tags: Only cases with these tags.
        flags: With all flags of each case.
        format: How to print them.
    """
    from harness.commands import list_command

    return list_command(suite, tuple(patterns or ()), tuple(tags or ()), tuple(toolchains or ()), format, flags=flags)


@app.command
def report(
    run: Path,
    *,
    format: Format = "terminal",  # noqa: A002 (the option's name)
    full: bool = False,
    out: Path | None = None,
) -> int:
    """Print the report of a run again.

    Args:
        run: The run's directory.
        format: How to print it.
        full: Markdown without cuts: every case, every metric, the environment.
        out: Write it to this file instead of stdout.
    """
    from harness.commands import report_command

    return report_command(run, format, full=full, out=out)


@app.command
def doctor(
    *,
    format: Literal["terminal", "json"] = "terminal",  # noqa: A002 (the option's name)
) -> int:
    """Say what is here: tools, drivers, devices, and what would make timing noisy on this machine.

    Args:
        format: How to print it.
    """
    from harness.commands import doctor_command

    return doctor_command(format)


@app.command
def export(
    suite: Path, model: str, *, variant: str | None = None, device: str | None = None, out: Path | None = None
) -> int:
    """Write a model's MLIR and inputs to a folder, for use with plain iree-compile and iree-benchmark-module.

    Args:
        suite: The suite's TOML file.
        model: The model's name in it.
        variant: The program as this variant's plugins rewrite it, and the files that they give to the tools.
        device: For this device (default: the first).
        out: The folder (default: the model's name, and the variant's).
    """
    from harness.commands import export_command

    return export_command(suite, model, variant, device, out)


@app.command
def schema(kind: Literal["suite", "flagset"]) -> int:
    """Print the JSON Schema of suite or flag-set files, which lets editors complete and check them.

    Args:
        kind: Which of the two.
    """
    from harness.suite.schema import json_schema

    sys.stdout.write(json.dumps(json_schema(kind), indent=2) + "\n")
    return ExitCode.OK


@app.command
def compare(
    *sides: str,
    within: Path | None = None,
    toolchains: Toolchains = None,
    suite: Path | None = None,
    patterns: Patterns = None,
    remeasure: bool = True,
    across_hosts: Annotated[bool, Parameter(negative="")] = False,
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
    from harness.compare_commands import CompareArguments, compare_command

    return compare_command(
        CompareArguments(
            sides=sides,
            within=within,
            toolchains=tuple(toolchains or ()),
            suite=suite,
            patterns=tuple(patterns or ()),
            remeasure=remeasure,
            across_hosts=across_hosts,
            row_budget_s=row_budget,
            compile_budget_s=compile_budget,
            floor=floor,
            controls=controls,
            rule=rule,
            seed=seed,
            results=results,
            compile_timeout_s=compile_timeout,
            call_timeout_s=call_timeout,
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
    from harness.compare_commands import selfcheck_command

    return selfcheck_command(
        suite, tuple(patterns or ()), rows, row_budget, floor, seed=seed, results=results, output_format=format
    )
