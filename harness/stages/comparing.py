"""The line of `harness compare`: two sides -> a plan -> rows, measured or recorded -> a comparison in its directory."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timezone
from pathlib import Path

from harness.cache import cache_root
from harness.compare.comparison import conclude, plan_comparison, recorded
from harness.compare.options import CompareOptions
from harness.compare.pairs import Side
from harness.compare.remeasure import Bench, remeasure
from harness.machine.environment import capture_environment
from harness.progress import Progress
from harness.records.comparison import Comparison
from harness.report import render
from harness.report.comparison import json_document
from harness.store.comparison_directory import ComparisonDirectory
from harness.toolchain import Toolchain


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
            )
            rows = remeasure(plan, bench)
        else:
            rows = recorded(plan)
        comparison = conclude(plan, rows, environment, created=now, name=directory.path.name, command=command)
        directory.finish(json_document(comparison), render(comparison, "markdown", full=True), comparison)
    return comparison, directory.path
