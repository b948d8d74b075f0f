"""What each command does, once its arguments are parsed."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from harness.cache import environments_root
from harness.command_output import memory_limit, print_text, tell_where
from harness.errors import ExitCode, RunError, ToolchainError, UsageError
from harness.plan import Case, Selection
from harness.process import Limits
from harness.progress import Terminal
from harness.results.records import SCHEMA_VERSION

if TYPE_CHECKING:
    from harness.toolchain.values import Toolchain

Format = Literal["terminal", "markdown", "json", "csv"]


@dataclass(frozen=True, kw_only=True)
class RunArguments:
    """The arguments of `harness run`, as they were given."""

    suite: Path | None
    resume: Path | None
    toolchains: tuple[str, ...]
    patterns: tuple[str, ...]
    tags: tuple[str, ...]
    budget_s: float | None
    generations: int | None
    jobs: int | None
    seed: int | None
    results: Path
    compile_timeout_s: float
    compile_memory_gib: float | None
    call_timeout_s: float


def run_command(arguments: RunArguments, output_format: Format) -> int:
    """`harness run`: exit status 3 if a case failed or is missing; of a list of suites, the weightiest of theirs."""
    from harness.suite import find_list

    if arguments.suite is not None and arguments.resume is None and (suites := find_list(arguments.suite)) is not None:
        from harness.list_commands import run_list

        return run_list(suites, arguments, output_format)
    path = run_for(arguments)
    status = report_command(path, output_format, full=False, out=None)
    tell_where(path)
    return status


def run_for(arguments: RunArguments) -> Path:
    """Run what the arguments ask for; the run's directory."""
    from harness.run import run_suite
    from harness.stages.context import RunOptions

    suite, selection, results, versions = _what_to_run(arguments)
    memory = arguments.compile_memory_gib
    with Terminal() as progress:
        toolchains = _toolchains(versions, suite, progress.note)
    options = RunOptions(
        suite=suite,
        toolchains=toolchains,
        results=results,
        selection=selection,
        jobs=arguments.jobs or os.cpu_count() or 1,
        budget_s=arguments.budget_s,
        generations=arguments.generations,
        seed=arguments.seed or 0,
        compile_limits=Limits(
            seconds=arguments.compile_timeout_s,
            memory_bytes=int(memory * 2**30) if memory else memory_limit(),
        ),
        call_limit_s=arguments.call_timeout_s,
        command=("harness", *sys.argv[1:]),
        resume=arguments.resume,
    )
    with Terminal() as progress:
        return run_suite(options, progress)


def _what_to_run(arguments: RunArguments) -> tuple[Path, Selection, Path, tuple[str, ...]]:
    """Suite, selection, results folder and toolchains; of an interrupted run, its own."""
    if (arguments.suite is None) == (arguments.resume is None):
        raise UsageError(
            "give either a suite, as in `harness run suites/esrgan.toml`, or --resume with a run directory"
        )
    if arguments.suite is not None:
        selection = Selection(patterns=arguments.patterns, tags=arguments.tags)
        return arguments.suite, selection, arguments.results, arguments.toolchains
    from harness.results.store import load_run

    assert arguments.resume is not None  # noqa: S101 (one of the two is given)
    own = ("toolchains", "patterns", "tags", "budget_s", "generations", "seed")
    given = [name for name in own if getattr(arguments, name)]
    if given:
        raise UsageError(f"--resume goes on with the run's own settings; leave out {', '.join(given)}")
    header = load_run(arguments.resume).header
    settings = header.settings
    selection = Selection(patterns=tuple(settings["patterns"]), tags=tuple(settings["tags"]))
    versions = tuple(one.version for one in header.toolchains)
    return Path(header.suite), selection, arguments.resume.parent, versions


def _toolchains(versions: tuple[str, ...], suite: Path, on_install: Callable[[str], None]) -> tuple[Toolchain, ...]:
    """The toolchains of these versions, installed where they are not here; () for none."""
    if not versions:
        return ()
    from harness.suite import load_suite
    from harness.toolchain import get_toolchains

    load_suite(suite)  # a suite that is wrong is told before minutes of installing
    return get_toolchains(versions, root=environments_root(), on_install=on_install)


def report_command(path: Path, output_format: Format, *, full: bool, out: Path | None) -> int:
    """`harness report`: exit status 3 if a case failed or is missing, or nothing was measured.

    Of a comparison's directory, its report and its exit status.
    """
    from harness.compare.store import is_comparison
    from harness.report import render
    from harness.report.outcome import exit_code
    from harness.report.table import build_report
    from harness.results.store import load_run

    if is_comparison(path):
        return _report_comparison(path, output_format, full=full, out=out)
    run = load_run(path)
    width = shutil.get_terminal_size((120, 24)).columns
    color = out is None and sys.stdout.isatty() and "NO_COLOR" not in os.environ
    text = render(run, output_format, full=full, width=width, color=color)
    print_text(text, out)
    return int(exit_code(build_report(run).summary))


def _report_comparison(path: Path, output_format: Format, *, full: bool, out: Path | None) -> int:
    from harness.compare.store import COMPARISON_FILE
    from harness.compare_commands import print_comparison
    from harness.report.comparison import comparison_from_json
    from harness.report.outcome import comparison_exit_code

    try:
        comparison = comparison_from_json((path / COMPARISON_FILE).read_text(), str(path / COMPARISON_FILE))
    except (OSError, UnicodeDecodeError):
        raise RunError(f"{path / COMPARISON_FILE}: cannot be read; compare again") from None
    print_comparison(comparison, output_format, full=full, out=out)
    return int(comparison_exit_code(comparison, strict=False))


def list_command(
    suite: Path,
    patterns: tuple[str, ...],
    tags: tuple[str, ...],
    versions: tuple[str, ...],
    output_format: Literal["terminal", "json"],
    *,
    flags: bool,
) -> int:
    """`harness list`."""
    from harness.suite import find_list

    selection = Selection(patterns=patterns, tags=tags)
    if (suites := find_list(suite)) is not None:
        from harness.list_commands import show_list

        return show_list(suites, selection, versions, output_format, flags=flags)
    cases = planned_cases(suite, selection, versions)
    if output_format == "json":
        document = {"schema_version": SCHEMA_VERSION, **cases_record(suite, cases)}
        sys.stdout.write(json.dumps(document, indent=2) + "\n")
    else:
        print_cases(cases, flags=flags)
    return ExitCode.OK


def planned_cases(suite: Path, selection: Selection, versions: tuple[str, ...]) -> tuple[Case, ...]:
    """A suite's cases on this machine."""
    from harness.prepare import prepare

    return prepare(suite, selection, _toolchains(versions, suite, _tell)).cases


def cases_record(suite: Path, cases: tuple[Case, ...]) -> dict[str, Any]:
    """A suite's cases for other programs."""
    return {"suite": suite.as_posix(), "cases": [asdict(case) for case in cases]}


def _tell(sentence: str) -> None:
    sys.stderr.write(f"{sentence}\n")


def print_cases(cases: tuple[Case, ...], *, flags: bool) -> None:
    """A line for each case, and their number."""
    width = max(len(case.name) for case in cases)
    for case in cases:
        remark = f"skipped: {case.skip}" if case.skip else "expected to fail" if case.known_to_fail else ""
        sys.stdout.write(f"{case.name:<{width}}  {case.id}  {remark}".rstrip() + "\n")
        if flags:
            sys.stdout.write("".join(f"    {flag}\n" for flag in (*case.compile_flags, *case.run_flags)))
    skipped = sum(case.skip is not None for case in cases)
    sys.stdout.write(f"{len(cases)} cases, {skipped} of them skipped here\n")


def doctor_command(output_format: Literal["terminal", "json"]) -> int:
    """`harness doctor`."""
    from harness.doctor import diagnose, render_json, render_terminal
    from harness.toolchain import find_toolchain, installed_environments
    from harness.toolchain.values import Toolchain

    toolchain: Toolchain | ToolchainError
    try:
        toolchain = find_toolchain()
    except ToolchainError as error:
        toolchain = error
    environments = installed_environments(environments_root())
    diagnosis = diagnose(toolchain, environments, limits=Limits(seconds=60))
    if output_format == "json":
        sys.stdout.write(render_json(diagnosis))
    else:
        width = shutil.get_terminal_size((100, 24)).columns
        sys.stdout.write(render_terminal(diagnosis, width=width, color=sys.stdout.isatty()))
    return ExitCode.OK if isinstance(toolchain, Toolchain) else ExitCode.USAGE


def export_command(suite: Path, model: str, variant: str | None, device: str | None, out: Path | None) -> int:
    """`harness export`: program, inputs, external weights and plugins' files, as reports' command lines name them."""
    from harness.exporting import export_model, export_variant

    limits = Limits(seconds=900, memory_bytes=memory_limit())
    if variant is None and device is not None:
        raise UsageError("--device is for --variant, whose plugins may differ by device; give both or neither")
    if variant is None:
        folder = out or Path(model)
        exported = export_model(suite, model, folder, limits=limits)
    else:
        folder = out or Path(".".join(part for part in (model, variant, device) if part))
        exported = export_variant(suite, model, variant, device, folder, limits=limits)
    for effect in exported.effects:
        sys.stderr.write(f"{effect.name} matched {effect.matched}\n")
    begin = f"; compile it with {' '.join(exported.flags)}" if exported.flags else ""
    sys.stderr.write(f"{folder}: {', '.join(exported.files)}; entry function {exported.function}{begin}\n")
    return ExitCode.OK
