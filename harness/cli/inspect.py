"""Commands around a suite and what is here: `ir`, `export`, `schema`, `plugins`, `doctor`, `bench`, `ablate`."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

from harness.cache import environments_root
from harness.cli.app import app, application_for
from harness.cli.output import emit, print_text, reporter, tell, teller
from harness.cli.run import run_and_print
from harness.doctor import devices_of, diagnose, diagnosis_page, render_json
from harness.errors import ExitCode, ToolchainError, UsageError
from harness.ir.counts import check_ops
from harness.options import DataFormat, Loudness
from harness.process import Limits
from harness.report.command_pages import find_registered, registered_json, registered_page
from harness.report.ir_page import (
    TELLING_OPS,
    comparison_json,
    comparison_page,
    counts_page,
    render_counts_json,
    texts_difference,
)
from harness.stages.build import export_program
from harness.stages.derived_suites import write_ablation, write_bench
from harness.stages.ir import NamedCase, compare_cases, inspect_case, named_cases
from harness.stages.options import AblateOptions, BenchOptions, IrOptions, RunOptions
from harness.suite.load import find_list, load_suite
from harness.suite.schema import Kind, json_schema
from harness.toolchain import Toolchain, find_toolchain, installed_environments


@app.command
def ir(options: IrOptions | None = None) -> int:
    """Count the operations of a case's IR at phases of the compiler, or compare two cases' IR.

    harness ir suites/esrgan.toml rdb/stock@cpu

    harness ir latest:rdb/stock@cpu latest:rdb/nhwc@cpu

    harness ir iree==3.10.0 iree==3.12.0 --suite suites/esrgan.toml --case rdb/stock@cpu
    """
    options = options or IrOptions()
    phases, texts = tuple(dict.fromkeys(options.phases)), options.format == "mlir"
    if texts and len(phases) != 1:
        raise UsageError("--format mlir prints one phase; say which with --phase")
    if options.ops and options.format in ("json", "mlir"):
        raise UsageError(f"--ops chooses what the table shows; leave it out with --format {options.format}")
    check_ops(options.ops)
    named = named_cases(options)
    if len(named) == 1:
        _print_case(named[0], options)
    else:
        _print_two(named, options)
    return ExitCode.OK


def _print_case(named: NamedCase, options: IrOptions) -> None:
    with reporter(quiet=options.quiet) as progress:
        inspected = inspect_case(named, options, progress)
    if options.format == "mlir":
        print_text(inspected.texts[options.phases[0]], options.out)
    else:
        ops = options.ops or TELLING_OPS
        emit(options.format, lambda: counts_page(inspected, ops), lambda: render_counts_json(inspected), options.out)


def _print_two(named: Sequence[NamedCase], options: IrOptions) -> None:
    with reporter(quiet=options.quiet) as progress:
        compared = compare_cases(named, options, progress)
    if options.format == "mlir":
        base, head = compared.base, compared.head
        difference = texts_difference(base, head, options.phases[0])
        if not difference:
            tell(f"{base.label} and {head.label}: the IR at phase {options.phases[0]!r} is the same")
        print_text(difference, options.out)
        return
    ops = options.ops or TELLING_OPS
    emit(options.format, lambda: comparison_page(compared, ops), lambda: comparison_json(compared), options.out)


@app.command
def ablate(options: AblateOptions) -> int:
    """Run a model with no option of a plugin, each alone, all but each, and all; show what each does."""
    suite = write_ablation(options)
    _say_where(suite, "option", options)
    chosen = RunOptions(suite, budget_s=options.budget_s, results=options.results)
    chosen = replace(chosen, quiet=options.quiet, verbose=options.verbose)
    return run_and_print(chosen, options.format, purpose="ablate")


def _say_where(suite: Path, each: str, options: Loudness) -> None:
    sentence = f"{suite}: each {each} as a variant; `harness run {shlex.quote(str(suite))}` repeats this"
    teller(quiet=options.quiet)(sentence)


@app.command
def bench(options: BenchOptions) -> int:
    """Time a model's file under several sets of flags side by side; no suite is needed.

    harness bench model.mlir --flags "--iree-opt-level=O2" --flags "--iree-opt-level=O3"
    """
    suite = write_bench(options)
    _say_where(suite, "set of flags", options)
    chosen = RunOptions(suite, toolchains=options.toolchains, generations=options.generations, results=options.results)
    chosen = replace(chosen, quiet=options.quiet, verbose=options.verbose)
    return run_and_print(chosen, options.format, purpose="bench")


@app.command
def export(
    suite: Path, model: str, *, variant: str | None = None, device: str | None = None, out: Path | None = None
) -> int:
    """Write a model's MLIR and inputs to a folder, for use with plain IREE tools.

    Args:
        suite: The suite's TOML file.
        model: The model's name in it.
        variant: The program as this variant's plugins rewrite it, and the files that they give to the tools.
        device: For this device (default: the first).
        out: The folder (default: the model's name, and the variant's).
    """
    if variant is None and device is not None:
        raise UsageError("--device is for --variant, whose plugins may differ by device; give both or neither")
    folder = out or Path(".".join(part for part in (model, variant, device) if part))
    exported = export_program(suite, model, folder, variant=variant, device=device)
    for effect in exported.effects:
        tell(f"{effect.name} matched {effect.matched}")
    begin = f"; compile it with {' '.join(exported.flags)}" if exported.flags else ""
    tell(f"{folder}: {', '.join(exported.files)}; entry function {exported.function}{begin}")
    return ExitCode.OK


@app.command
def schema(kind: Kind) -> int:
    """Print the JSON Schema of one kind of TOML file, for editors.

    Args:
        kind: Suites, lists of suites, flag-set files, or files of variants.
    """
    print_text(json.dumps(json_schema(kind), indent=2))
    return ExitCode.OK


@app.command
def completion(shell: Literal["bash", "zsh", "fish"]) -> int:
    """Print a script that makes a shell complete commands, options, files and names of runs.

    Cases of the suite on the command line are completed too, after --filter and for harness ir.

    For bash: eval "$(harness completion bash)", in ~/.bashrc too.

    Args:
        shell: Which one.
    """
    print_text(application_for(()).generate_completion(shell=shell))
    return ExitCode.OK


@app.command
def plugins(*names: str, format: DataFormat = "terminal") -> int:  # noqa: A002 (the option's name)
    """Show the plugins, builders and peers that are installed, with their options.

    Args:
        names: Only these.
        format: How to print them.
    """
    found = find_registered(names)
    emit(format, lambda: registered_page(found), lambda: registered_json(found))
    return ExitCode.OK


@app.command
def doctor(*suites: Path, format: DataFormat = "terminal") -> int:  # noqa: A002 (the option's name)
    """Say what is here: tools, drivers, devices, and what would make timing noisy.

    A device that is not here is a note, and missing where a suite asks for it.

    Args:
        suites: Suites, or lists of suites, whose devices should be here.
        format: How to print it.
    """
    toolchain: Toolchain | ToolchainError
    try:
        toolchain = find_toolchain()
    except ToolchainError as error:
        toolchain = error
    lists = [(suite, find_list(suite)) for suite in suites]
    files = [file for suite, found in lists for file in (found.suites if found is not None else (suite,))]
    asked = devices_of(load_suite(file).suite for file in files)
    environments = installed_environments(environments_root())
    diagnosis = diagnose(toolchain, environments, limits=Limits(seconds=60), asked=asked)
    emit(format, lambda: diagnosis_page(diagnosis), lambda: render_json(diagnosis))
    return ExitCode.OK if isinstance(toolchain, Toolchain) else ExitCode.USAGE
