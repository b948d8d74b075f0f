"""[Build] -> [Check], and what iree-benchmark-module says of the builds that are right."""

from __future__ import annotations

from collections.abc import Sequence

from harness.process import Limits
from harness.reference import benchmark_command, run_benchmark_module
from harness.stages.context import Context
from harness.verify import Runnable, check_cases

# iree-benchmark-module makes about this many calls where each is long: one to estimate and some for each repetition.
_BENCHMARK_CALLS = 10


def verify_stage(context: Context, runnable: Sequence[Runnable]) -> list[Runnable]:
    """Check outputs; the cases that may be timed. Baselines run again on resuming: others need their outputs."""
    prepared, directory, progress = context.prepared, context.directory, context.progress
    checks = dict(context.done.checks)
    open_groups = {one.case.group for one in runnable if one.case.name not in checks}
    open_models = {one.case.model for one in runnable if one.case.group in open_groups}
    wanted = [
        one for one in runnable if one.case.name not in checks or (one.case.baseline and one.case.model in open_models)
    ]
    progress.stage("Verify", len(wanted))
    models = {model.name: model for model in prepared.suite.models}
    limits = Limits(seconds=context.options.call_limit_s)
    for check in check_cases(wanted, models, limits, lambda name: progress.step(name, advance=0)):
        if check.case not in checks:
            directory.append(check)
            checks[check.case] = check
        progress.step(check.case)
    return [one for one in runnable if checks[one.case.name].failure is None]


def reference_stage(context: Context, runnable: Sequence[Runnable]) -> None:
    """Ask iree-benchmark-module once for each distinct case."""
    directory, progress = context.directory, context.progress
    wanted = [one for one in distinct(runnable) if one.case.name not in context.done.references]
    progress.stage("iree-benchmark-module", len(wanted))
    for one in wanted:
        progress.step(one.case.name, advance=0)
        command = benchmark_command(
            function=one.artifact.function,
            inputs=one.bench.inputs,
            parameters=one.bench.parameters,
            uri=one.case.uri,
            run_flags=one.case.run_flags,
        )
        directory.append(
            run_benchmark_module(
                one.case.name,
                one.toolchain,
                command,
                one.bench.folder,
                limits=Limits(seconds=_BENCHMARK_CALLS * context.options.call_limit_s),
                cpus=one.cpus,
            )
        )
        progress.step(one.case.name)


def distinct(runnable: Sequence[Runnable]) -> list[Runnable]:
    """The cases that differ in module, run flags or toolchain from all before them in their group.

    Only those are timed. The same bytes in another release's runtime are another thing to measure.
    """
    seen = set()
    distinct = []
    for one in runnable:
        key = (one.case.group, one.build.module_sha256, one.case.run_flags, one.case.toolchain)
        if key not in seen:
            seen.add(key)
            distinct.append(one)
    return distinct
