"""What models have to do, and what this machine could do: the figures that cases are held against."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from harness.cache import cache_root
from harness.errors import CaseError
from harness.ir.roofline import measure_peak, peak_threads
from harness.ir.work import count_work
from harness.models.materialize import ModelArtifact
from harness.records.run import Failure, Work
from harness.stages.build import host_cpu_of
from harness.stages.context import Context
from harness.verify import AnyRunnable


def work_stage(context: Context, artifacts: Mapping[str, ModelArtifact | Failure], models: Collection[str]) -> None:
    """Count the arithmetic and the bytes of these models, under the first toolchain, which made them.

    Raises:
        RunError: The run's directory cannot be written.
    """
    flags = {case.model: case.compile_flags for case in context.prepared.cases if case.baseline and case.skip is None}
    todo = [
        (artifact, flags[name])
        for name, artifact in artifacts.items()
        if name in models and name in flags and name not in context.done.work and isinstance(artifact, ModelArtifact)
    ]
    context.progress.stage("Count", len(todo))

    def count(one: tuple[ModelArtifact, tuple[str, ...]]) -> Work:
        artifact, given = one
        try:
            return count_work(
                artifact.name,
                artifact.mlir,
                artifact.function,
                [argument.shape for argument in artifact.inputs],
                sha256=artifact.sha256,
                flags=given,
                toolchain=context.prepared.toolchain,
                limits=context.options.compile_limits,
                memos=cache_root() / "work",
            )
        except CaseError as error:
            return Work(model=artifact.name, failure=Failure(stage="ir", message=str(error), stderr=error.stderr))

    pool = ThreadPoolExecutor(max_workers=context.options.jobs, thread_name_prefix="work")
    try:
        for work in pool.map(count, todo):
            context.directory.append(work)
            context.progress.step(work.model)
    finally:
        pool.shutdown(wait=False, cancel_futures=True)  # an interrupted run does not wait for a compiler


def peak_stage(context: Context, runnable: Sequence[AnyRunnable]) -> None:
    """Measure the peaks that these cases are held against: once a run for each number of threads.

    Raises:
        RunError: The run's directory cannot be written.
    """
    devices = {one.case.device: peak_threads(one.case) for one in runnable if one.case.device not in context.peaks}
    todo = {device: threads for device, threads in devices.items() if threads is not None}
    if not todo:
        return
    context.progress.stage("Peaks", len(todo))
    host_cpu = host_cpu_of(context.directory.header.environment)
    for device, threads in todo.items():
        peak = next((one for one in context.peaks.values() if one.threads == threads), None)
        if peak is None:
            toolchain, cache = context.prepared.toolchain, cache_root() / "peaks"
            peak = measure_peak(device, threads, toolchain, host_cpu=host_cpu, cache=cache)
        context.peaks[device] = replace(peak, device=device)
        context.directory.append(context.peaks[device])
        context.progress.step(device)
