"""One run of one suite, as the arguments of `harness run` ask for it."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path

from harness.commands.cases import find_toolchains
from harness.commands.output import memory_limit
from harness.errors import UsageError
from harness.process import Limits
from harness.progress import Terminal
from harness.suite.cases import Selection


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
    measure: bool
    seed: int | None
    results: Path
    compile_timeout_s: float
    compile_memory_gib: float | None
    call_timeout_s: float


def run_for(arguments: RunArguments) -> Path:
    """Run what the arguments ask for; the run's directory."""
    from harness.stages.context import RunOptions
    from harness.stages.run import run_suite

    suite, selection, results, versions, measure = _what_to_run(arguments)
    memory = arguments.compile_memory_gib
    with Terminal() as progress:
        toolchains = find_toolchains(versions, suite, progress.note)
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
        measure=measure,
    )
    with Terminal() as progress:
        return run_suite(options, progress)


def _what_to_run(arguments: RunArguments) -> tuple[Path, Selection, Path, tuple[str, ...], bool]:
    """Suite, selection, results folder, toolchains, and whether to time; of an interrupted run, its own."""
    if (arguments.suite is None) == (arguments.resume is None):
        raise UsageError(
            "give either a suite, as in `harness run suites/esrgan.toml`, or --resume with a run directory"
        )
    if arguments.suite is not None:
        selection = Selection(patterns=arguments.patterns, tags=arguments.tags)
        return arguments.suite, selection, arguments.results, arguments.toolchains, arguments.measure
    from harness.store.run_directory import load_run

    assert arguments.resume is not None  # noqa: S101 (one of the two is given)
    own = ("toolchains", "patterns", "tags", "budget_s", "generations", "seed")
    given = [name for name in own if getattr(arguments, name)] + ([] if arguments.measure else ["no_measure"])
    if given:
        raise UsageError(f"--resume goes on with the run's own settings; leave out {', '.join(given)}")
    header = load_run(arguments.resume).header
    settings = header.settings
    selection = Selection(patterns=tuple(settings["patterns"]), tags=tuple(settings["tags"]))
    versions = tuple(one.version for one in header.toolchains)
    return Path(header.suite), selection, arguments.resume.parent, versions, bool(settings.get("measure", True))
