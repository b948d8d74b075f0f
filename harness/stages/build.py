"""[Case] -> [Build], each laid out in a folder to run in."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from harness.bench_folder import lay_out
from harness.cache import cache_root
from harness.compile import BuildCache, CompileRequest, compile_cases
from harness.errors import RunError
from harness.measure import last_core
from harness.models.materialize import ModelArtifact
from harness.plan import Case
from harness.prepare import Prepared
from harness.process import Limits
from harness.results.records import Build, Failure
from harness.stages.context import Context
from harness.verify import Runnable


def compile_stage(context: Context, artifacts: Mapping[str, ModelArtifact | Failure]) -> dict[str, Build]:
    """Compile what is not compiled yet; all builds by case name.

    Raises:
        RunError: The cache or the run's directory cannot be written.
    """
    prepared, options, directory, progress = context.prepared, context.options, context.directory, context.progress
    cache = BuildCache(cache_root())
    cache.sweep()
    host_cpu = host_cpu_of(directory.header.environment)
    builds = dict(context.done.builds)
    requests = []
    for case in prepared.cases:
        if case.skip is not None:
            continue
        artifact = artifacts[case.model]
        if isinstance(artifact, Failure):
            if case.name not in builds:
                builds[case.name] = Build(case=case.name, command=(), cache_key="", failure=artifact)
                directory.append(builds[case.name])
            continue
        before = builds.get(case.name)
        if before is not None and (before.failure or cache.find(before.cache_key, case.name)):
            continue
        requests.append(request_for(prepared, case, artifact, host_cpu, options.compile_limits))
    progress.stage("Compile", len(requests))
    try:
        for build, stderr in compile_cases(
            requests, cache, options.jobs, lambda names: progress.step(", ".join(names), advance=0)
        ):
            if build.failure is not None:
                directory.log(build.case, stderr)
            if build.case not in builds:
                directory.append(build)
            builds[build.case] = build
            progress.step(build.case)
    except OSError as error:
        raise RunError(
            f"{cache_root()}: the cache cannot be written ({error.strerror}); make room or set HARNESS_CACHE, then go "
            f"on with `harness run --resume {directory.path}`"
        ) from None
    return builds


def request_for(
    prepared: Prepared, case: Case, artifact: ModelArtifact, host_cpu: str, limits: Limits
) -> CompileRequest:
    """What compiling a planned case needs."""
    return CompileRequest(
        case=case,
        toolchain=prepared.toolchain_of(case),
        model=artifact.mlir,
        model_sha256=artifact.sha256,
        function=artifact.function,
        host_cpu=host_cpu,
        plugins=prepared.plugins_of(case),
        arranged=prepared.arranged_for(case),
        limits=limits,
    )


def host_cpu_of(environment: Mapping[str, Mapping[str, Any]]) -> str:
    """What `host` means in a compiler flag on this machine."""
    cpu = environment.get("cpu", {})
    return f"{cpu.get('model', '')} {cpu.get('flags', '')}"


def lay_out_stage(
    prepared: Prepared,
    artifacts: Mapping[str, ModelArtifact | Failure],
    builds: Mapping[str, Build],
    scratch: Path,
) -> list[Runnable]:
    """Give every case that compiled a folder to run in."""
    cache = BuildCache(cache_root())
    pinned = last_core()
    runnable = []
    for number, case in enumerate(prepared.cases):
        build, artifact = builds.get(case.name), artifacts.get(case.model)
        if build is None or build.failure is not None or not isinstance(artifact, ModelArtifact):
            continue
        bench = lay_out(scratch / str(number), cache.module(build), artifact, cache.files(build))
        runnable.append(
            Runnable(
                case=case,
                build=build,
                artifact=artifact,
                bench=bench,
                toolchain=prepared.toolchain_of(case),
                cpus=pinned if case.pin else None,
            )
        )
    return runnable
