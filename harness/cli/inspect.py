"""Commands around a suite and what is here: `ir`, `export`, `schema`, `plugins`, `doctor`, `bench`, `ablate`, `new`."""

import json
import keyword
import re
import shlex
import shutil
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from string import Template
from typing import Annotated, Literal

from cyclopts import App, Parameter

from harness import __version__
from harness.cache import environments_root
from harness.cli.app import app, application_for
from harness.cli.output import emit, print_text, reporter, tell, teller
from harness.cli.run import run_and_print
from harness.doctor.examine import devices_of, diagnose, diagnosis_page, render_json
from harness.errors import ExitCode, ToolchainError, UsageError
from harness.files import shipped
from harness.ir.counts import check_ops
from harness.options import DataFormat
from harness.plugins import PLUGINS
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
from harness.report.run_report import Report
from harness.stages.build import export_program
from harness.stages.change import explained, largest_change
from harness.stages.derived_suites import write_ablation, write_bench
from harness.stages.ir import compare_cases, inspect_case, named_cases
from harness.stages.options import AblateOptions, BenchOptions, IrOptions, RunOptions
from harness.store.files import writing
from harness.suite.load import find_list, load_suite
from harness.suite.schema import Kind, json_schema
from harness.toolchain import Toolchain, find_toolchain, installed_environments
from harness.upstream import write_suites


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
    named, ops = named_cases(options), options.ops or TELLING_OPS
    with reporter(quiet=options.quiet) as progress:
        if len(named) == 1:
            inspected = inspect_case(named[0], options, progress)
        else:
            compared = compare_cases(named, options, progress)
    if len(named) == 1:
        if texts:
            print_text(inspected.texts[phases[0]], options.out)
        else:
            emit(
                options.format, lambda: counts_page(inspected, ops), lambda: render_counts_json(inspected), options.out
            )
        return ExitCode.OK
    if not texts:
        emit(options.format, lambda: comparison_page(compared, ops), lambda: comparison_json(compared), options.out)
        return ExitCode.OK
    base, head = compared.base, compared.head
    difference = texts_difference(base, head, phases[0])
    if not difference:
        tell(f"{base.label} and {head.label}: the IR at phase {phases[0]!r} is the same")
    print_text(difference, options.out)
    return ExitCode.OK


@app.command
def ablate(options: AblateOptions) -> int:
    """Run a model with no option of a plugin, each alone, all but each, and all."""
    chosen = RunOptions(write_ablation(options), toolchains=options.toolchains, budget_s=options.budget_s)
    return int(_run_variants(chosen, "option", options, purpose="ablate").summary.exit_code)


def _run_variants(chosen: RunOptions, each: str, options: AblateOptions | BenchOptions, *, purpose: str) -> Report:
    """Say where the suite is that was made for these options, and run it."""
    words = ["harness", "run", str(chosen.suite)]
    words += [word for release in chosen.toolchains for word in ("--toolchain", release)]
    teller(quiet=options.quiet)(f"{chosen.suite}: each {each} as a variant; `{shlex.join(words)}` repeats this")
    told = {name: getattr(options, name) for name in ("results", "wait", "quiet", "verbose")}
    return run_and_print(replace(chosen, **told), options.format, purpose=purpose)


@app.command
def bench(options: BenchOptions) -> int:
    """Time a model's file under several sets of flags, or toolchains, side by side; no suite is needed.

    After the report it says the largest change in one sentence: how much, and in which dispatch why.

    harness bench model.mlir --flags "--iree-opt-level=O2" --flags "--iree-opt-level=O3"

    harness bench model.mlir --toolchain 3.12.0 --toolchain build/

    harness bench model.mlir --toolchain 3.11.0 --toolchain newest --save slower
    """
    suite, releases = write_bench(options, teller(quiet=options.quiet))
    chosen = RunOptions(suite, toolchains=releases, generations=options.generations)
    report = _run_variants(chosen, "set of flags", options, purpose="bench")
    change = largest_change(report)
    if change is not None and change.is_certain:
        if options.explain:
            with reporter(quiet=options.quiet, verbose=options.verbose) as progress:
                change = explained(change, options, progress)
        say = print_text if options.format in ("terminal", "markdown") else teller(quiet=options.quiet)
        say(change.sentence)
    if options.folder is not None and change is not None:
        tell(f"{change.reproduced_in(options.folder)}: the same with plain IREE tools, to be run or put into an issue")
    return int(report.summary.exit_code)


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
    """Print a script that makes a shell complete commands and names of runs.

    For bash: eval "$(harness completion bash)", in ~/.bashrc too.

    Args:
        shell: Which one.
    """
    print_text(application_for(()).generate_completion(shell=shell))
    return ExitCode.OK


@app.command
def plugins(*names: str, format: DataFormat = "terminal") -> int:
    """Show the plugins, builders and peers that are installed, with their options.

    Args:
        names: Only these.
        format: How to print them.
    """
    found = find_registered(names)
    emit(format, lambda: registered_page(found), lambda: registered_json(found))
    return ExitCode.OK


@app.command
def doctor(*suites: Path, format: DataFormat = "terminal") -> int:
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
    asked = devices_of(map(load_suite, files))
    environments = installed_environments(environments_root())
    diagnosis = diagnose(toolchain, environments, limits=Limits(seconds=60), asked=asked)
    emit(format, lambda: diagnosis_page(diagnosis), lambda: render_json(diagnosis))
    return ExitCode.OK if isinstance(toolchain, Toolchain) else ExitCode.USAGE


# --- `harness new`: a plugin, a suite or those of the harness, which work as they are and are there to be changed ---


new_app = App(name="new", help="Begin a plugin or a suite of your own, or write out the suites of the harness.")
app.command(new_app)

# What is written, with $names for what differs; .txt, since no tool can read them before they are filled in.
_TEMPLATES = Path(__file__).with_name("templates")


@new_app.command(name="plugin")
def new_plugin(name: str, *, out: Path | None = None) -> int:
    """Write a package with a plugin: entry point, options, a rewrite, its test, and a suite that runs it.

    Args:
        name: Its name in suites, such as fold-transposes.
        out: The folder (default: the name).
    """
    _check_name(name, "plugin")
    package = name.replace("-", "_")
    if keyword.iskeyword(package) or find_spec(package) is not None or name in PLUGINS.names:
        raise UsageError(f"{name!r} is the name of a Python package or a plugin already; choose another")
    folder = out or Path(name)
    suite = {"file": "example.toml", "mlir": "program.mlir", "subject": name, "variant": name}
    _write(
        folder,
        {
            "pyproject.toml": "pyproject.toml.txt",
            f"{package}/__init__.py": "plugin.py.txt",
            f"{package}/rewrites.py": "rewrites.py.txt",
            f"tests/test_{package}.py": "test.py.txt",
            "README.md": "README.md.txt",
            "example.toml": "suite.toml.txt",
            "program.mlir": "program.mlir.txt",
        },
        {"name": name, "package": package, "release": __version__, **suite, "change": f'plugins = ["{name}"]'},
    )
    tell(f"{folder}: a package with the plugin {name}; README.md there says how to install, test and run it")
    return ExitCode.OK


@new_app.command(name="suite")
def new_suite(
    name: str,
    *,
    out: Path = Path(),
    source: Annotated[Path | None, Parameter(name="--from")] = None,
    config: Path | None = None,
    files: Path | None = None,
) -> int:
    """Write a suite of one small program and two variants, or of IREE's own tests, which runs as it is.

    Args:
        name: Of the suite; its files are NAME.toml and NAME.mlir, or the folder NAME of inputs and right outputs.
        out: The folder.
        source: A checkout of iree-test-suites, or a folder of it: its tests become cases.
        config: With --from, the JSON file of flags, skips and expected failures (default: the one in the checkout).
        files: With --from, a TOML file with a table [files]: by URL of a test's file, the local one.
    """
    _check_name(name, "suite")
    if source is not None:
        file = write_suites(source, name, out, tell, config=config, files=files)
        tell(f"{file}: run it with `harness run {file}`, or with --no-measure, which compiles and checks alone")
        return ExitCode.OK
    if config is not None or files is not None:
        raise UsageError("--config and --files are for tests of iree-test-suites; give --from too")
    file = out / f"{name}.toml"
    change = (
        '# flags of iree-compile; plugins = ["NAME"] too, `harness plugins` lists them\nflags = ["--iree-opt-level=O3"]'
    )
    values = {"name": name, "file": str(file), "mlir": f"{name}.mlir", "subject": "more optimisation", "variant": "o3"}
    _write(out, {f"{name}.toml": "suite.toml.txt", f"{name}.mlir": "program.mlir.txt"}, {**values, "change": change})
    tell(f"{file}: a suite of {name}.mlir in two variants; run it with `harness run {file}`")
    return ExitCode.OK


@new_app.command(name="examples")
def new_examples(*, out: Path = Path()) -> int:
    """Write out the suites that come with the harness, and the flag sets and docs that they name.

    Args:
        out: The folder.
    """
    folders = ("suites", "flagsets", "docs")
    for name in folders:
        if (out / name).exists():
            raise UsageError(f"{out / name}: is there already; choose another folder with --out")
    files = [file for name in folders for file in shipped(name).rglob("*") if file.is_file() and file.suffix != ".pyc"]
    for file in files:
        path = out / file.relative_to(shipped(""))
        with writing(path, "choose another folder with --out"):
            path.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, path)
    tell(f"{', '.join(str(out / name) for name in folders)}: begin with `harness run {out / 'suites' / 'smoke.toml'}`")
    return ExitCode.OK


def _check_name(name: str, noun: str) -> None:
    if not re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", name) or len(name) > 64:
        raise UsageError(f"a {noun} cannot be called {name[:80]!r}; take small letters, digits and dashes: my-{noun}")


def _write(folder: Path, files: dict[str, str], values: dict[str, str]) -> None:
    for name in files:
        if (folder / name).exists():
            raise UsageError(f"{folder / name}: is there already; choose another name, or another folder with --out")
    for name, template in files.items():
        path = folder / name
        text = (_TEMPLATES / template).read_text(encoding="utf-8")
        with writing(path, "choose another folder with --out"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(Template(text).substitute(values), encoding="utf-8")
