"""The line of `harness compare`: two sides -> a plan -> rows, measured or recorded -> a comparison in its directory."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path

from harness.cache import cache_root
from harness.compare.comparison import conclude, plan_comparison, recorded
from harness.compare.engine import STOPPED
from harness.compare.options import CompareOptions
from harness.compare.pairs import Side
from harness.compare.remeasure import Bench, StoppedWithRows, remeasure
from harness.compare.sides import Environment, selfcheck_of
from harness.errors import Interrupted
from harness.machine.environment import capture_environment
from harness.progress import Progress
from harness.records.comparison import Comparison
from harness.report import render
from harness.report.comparison import json_document
from harness.store.comparison_directory import ComparisonDirectory
from harness.text import plural
from harness.toolchain import Toolchain


class InterruptedComparison(Interrupted):
    """The user stopped a comparison; `comparison` says what there is of it, and is not kept."""

    def __init__(self, message: str, comparison: Comparison) -> None:
        super().__init__(message)
        self.comparison = comparison


def compare_sides(
    base: Side,
    head: Side,
    toolchains: Mapping[str, Toolchain],
    options: CompareOptions,
    progress: Progress,
    *,
    memory_bytes: int | None = None,
    command: tuple[str, ...] = (),
) -> tuple[Comparison, Path]:
    """Compare two sides, and keep the comparison; within a run, both sides are that run.

    Args:
        toolchains: On this machine, by release; at least those of all cases where they are measured again.
        memory_bytes: At which a compile is stopped; None: no limit.
        command: The command line.

    Raises:
        HarnessError: The sides cannot be compared, or the results folder cannot be written.
        InterruptedComparison: The user stopped it while rows were measured.
    """
    plan = plan_comparison(base, head, options)
    environment = capture_environment()
    now = datetime.now(timezone.utc)
    with ComparisonDirectory(options.results, head.run.header.suite_name, now) as directory:
        if options.remeasure:
            bench = Bench(
                toolchains=toolchains,
                cache=cache_root(),
                directory=directory,
                progress=progress,
                memory_bytes=memory_bytes,
                noise=_noise_of(environment),
            )
            try:
                rows = remeasure(plan, bench)
            except StoppedWithRows as stopped:
                there = conclude(plan, stopped.rows, environment, created=now, command=command)
                raise _interrupted(there, directory.path, command) from None
        else:
            rows = recorded(plan)
        comparison = conclude(plan, rows, environment, created=now, name=directory.path.name, command=command)
        directory.finish(json_document(comparison), render(comparison, "markdown", full=True), comparison)
    return comparison, directory.path


def _noise_of(environment: Environment) -> float:
    """The smallest change that this machine's last selfcheck found; 0 where it is not known."""
    facts = selfcheck_of(environment)
    return (facts.detects or 0.0) if facts is not None else 0.0


def _interrupted(comparison: Comparison, path: Path, command: tuple[str, ...]) -> InterruptedComparison:
    number = sum(row.reason.startswith(STOPPED) for row in comparison.rows)
    note = f"Interrupted: {plural(number, 'row is', 'rows are')} not decided, and this comparison is not kept"
    again = f"`{shlex.join(command)}` begins again, and with --filter takes single cases"
    return InterruptedComparison(
        f"interrupted; {again}; the turns so far are in {path}",
        replace(comparison, notes=(note, *comparison.notes)),
    )
