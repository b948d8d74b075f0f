"""`harness run` and what goes with it: list, doctor, export, schema."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter
from cyclopts.validators import Number

from harness.cli.app import Count, Format, Patterns, Positive, Tags, Toolchains, app
from harness.errors import ExitCode


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
    measure: bool = True,
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
        measure: Time the cases; else compile and check them, as for a side of a comparison.
        seed: Of the order of turns (default: 0).
        results: Where the run's directory goes.
        compile_timeout: Seconds after which a compile is stopped.
        compile_memory: GiB of memory at which a compile is stopped (default: 80 % of the machine's).
        call_timeout: Seconds after which a turn, or one call through iree-run-module, is stopped.
        format: How to print the report.
    """
    from harness.commands.one_run import RunArguments
    from harness.commands.run import run_command

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
            measure=measure,
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
    from harness.commands.list import list_command

    return list_command(suite, tuple(patterns or ()), tuple(tags or ()), tuple(toolchains or ()), format, flags=flags)


@app.command
def doctor(
    *,
    format: Literal["terminal", "json"] = "terminal",  # noqa: A002 (the option's name)
) -> int:
    """Say what is here: tools, drivers, devices, and what would make timing noisy on this machine.

    Args:
        format: How to print it.
    """
    from harness.commands.doctor import doctor_command

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
    from harness.commands.export import export_command

    return export_command(suite, model, variant, device, out)


@app.command
def schema(kind: Literal["suite", "list", "flagset"]) -> int:
    """Print the JSON Schema of suites, lists of suites or flag-set files, which lets editors complete and check them.

    Args:
        kind: Which of the three.
    """
    from harness.suite.schema import json_schema

    sys.stdout.write(json.dumps(json_schema(kind), indent=2) + "\n")
    return ExitCode.OK
