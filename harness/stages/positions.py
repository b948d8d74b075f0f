"""A case of a suite under a toolchain -> compiled and checked, ready to be measured beside another position."""

from __future__ import annotations

import glob
import math
from collections.abc import Callable, Sequence
from pathlib import Path

from harness.bisect.search import Unusable
from harness.bisect.trials import Measuring, Place
from harness.cache import cache_root
from harness.compare.pairs import side_of
from harness.errors import SuiteError, UsageError
from harness.metrics import METRICS, REFERENCE_FACTS, Metric, metric_named
from harness.progress import Progress
from harness.stages.options import OneCase, RunOptions, compile_limits
from harness.stages.run import run_suite
from harness.store.evidence import find_failure
from harness.store.files import FINISHED_FILE
from harness.store.run_directory import RunDirectory, load_run
from harness.suite.load import load_suite
from harness.text import did_you_mean
from harness.toolchain import Toolchain


def require_metric(name: str) -> Metric:
    """The metric of that name."""
    metric = metric_named(name)
    if metric is None:
        raise UsageError(f"--metric {name}: there is no such metric{did_you_mean(name, [*METRICS])}")
    return metric


def require_counted(metric: Metric, suite: Path) -> None:
    """Refuse an op that the suite does not count, before anything is installed or compiled for it."""
    phase, slash, op = metric.name.partition("/")
    counted = [f"{phase}/{op}" for phase, ops in load_suite(suite).suite.ir.items() for op in ops]
    if slash and metric.name not in counted:
        hint = did_you_mean(metric.name, counted, f"; add {op!r} to {phase} in [ir]")
        raise UsageError(f"--metric {metric.name}: {suite} does not count it{hint}")


def make_place(
    name: str,
    suite: Path,
    case: str,
    toolchain: Toolchain,
    options: OneCase,
    progress: Progress,
    *,
    others: Sequence[Toolchain] = (),
    label: str = "",
    resume: Path | None = None,
    on_begin: Callable[[RunDirectory], None] = lambda _: None,
) -> Place | Unusable:
    """The case of a suite under a toolchain, compiled and checked, or why it cannot be measured."""
    run = resume
    if run is None or not (run / FINISHED_FILE).is_file():
        unmeasured = RunOptions(
            suite,
            resume=resume,
            patterns=(glob.escape(case),),
            measure=False,
            results=options.results,
            compile_timeout_s=options.compile_timeout_s,
            call_timeout_s=options.call_timeout_s,
            wait=options.wait,
            verbose=options.verbose,
        )
        try:
            run = run_suite(
                unmeasured,
                progress,
                (toolchain,),
                others=others,
                purpose="compare",
                on_begin=on_begin,
                with_reference=require_metric(options.metric) in REFERENCE_FACTS,
            )
        except SuiteError as error:
            return Unusable(reason=str(error))
    return place_in(run, name, case, toolchain, label)


def place_in(run: Path, name: str, case: str, toolchain: Toolchain, label: str = "") -> Place | Unusable:
    """A case of a finished run as a position, or why it cannot be measured."""
    side = side_of(load_run(run, rounds=False), label or name, run)
    found = side.cases.get(case)
    if found is None:
        return Unusable(reason=f"{run} has no case {case}")
    if found.skip is not None:
        return Unusable(reason=f"it is skipped: {found.skip}")
    if found.peer is not None:
        return Unusable(reason="another engine runs it, which no release and no flag of IREE changes")
    failure = find_failure(found, side.evidence, timed=True)
    if failure is not None:
        return Unusable(reason=f"it fails at {failure.stage}: {failure.message}")
    return Place(name=name, side=side, case=found, toolchain=toolchain)


def measuring_of(
    options: OneCase, metric: Metric, noise: float, progress: Progress, *, left_s: float = math.inf
) -> Measuring:
    """How positions are measured beside each other."""
    return Measuring(
        metric=metric,
        budget_s=min(options.row_budget, left_s),
        cap_s=min(options.row_cap, left_s),
        noise=noise,
        seed=options.seed,
        call_limit_s=options.call_timeout_s,
        compile_limits=compile_limits(options.compile_timeout_s),
        wait=options.wait,
        cache=cache_root(),
        progress=progress,
    )
