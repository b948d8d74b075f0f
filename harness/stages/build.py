"""[Case] -> [Build]."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

from harness.cache import cache_root, sweep_writing
from harness.compile import BuildCache, CompileRequest, Underway, compile_cases
from harness.errors import RunError
from harness.machine.identity import processor_identity
from harness.models.materialize import ModelArtifact
from harness.process import Limits
from harness.records.case import Case
from harness.records.run import Build, Failure
from harness.stages.context import COMPILE, Context
from harness.stages.models import writing_the_cache
from harness.stages.prepare import Prepared
from harness.text import printable
from harness.verify.kept import trim_outputs


def require_cache(path: Path, artifacts: Mapping[str, ModelArtifact | Failure], builds: Mapping[str, Build]) -> None:
    """Refuse failures that are the cache's, which somebody deleted while the run used it."""
    cache = BuildCache(cache_root())
    models = [artifact for artifact in artifacts.values() if isinstance(artifact, ModelArtifact)]
    compiled = [build for build in builds.values() if build.failure is None and build.cache_key]
    gone = [model.name for model in models if not model.mlir.is_file()]
    gone += [build.case for build in compiled if cache.find(build.cache_key, build.case) is None]
    if gone:
        raise RunError(
            f"{cache_root()}: what was made of {gone[0]} is no longer in the cache, which this run needs to its end; "
            f"go on with `harness run --resume {shlex.quote(str(path))}`, which makes it again"
        )


def compile_stage(context: Context, artifacts: Mapping[str, ModelArtifact | Failure]) -> dict[str, Build]:
    """Compile what is not compiled yet, small models first; all builds, by case."""
    cache, progress = BuildCache(cache_root()), context.progress
    cache.sweep()
    sweep_writing(cache_root())
    trim_outputs(cache_root())
    builds = dict(context.done.builds)
    requests = requests_of(context, artifacts, builds, processor_identity(context.directory.header.environment))
    progress.stage(COMPILE, len(requests))
    for item in _compiled(requests, cache, context):
        if isinstance(item, Underway):
            progress.step(", ".join(item.cases), advance=0)
            continue
        build, stderr = item
        keep_build(context, build, stderr, builds)
        progress.step(build.case, seconds=None if build.compile_ns is None else build.compile_ns / 1e9)
    return builds


def keep_build(
    context: Context,
    build: Build,
    stderr: str,
    builds: dict[str, Build],
) -> None:
    """Write down what came of a compile, and say what failed."""
    if build.failure is not None:
        context.directory.log(build.case, stderr)
        cases = {case.name: case for case in context.prepared.cases}
        case = cases[build.case]
        others = 0
        if context.given_up.note(case, build.failure):
            alike = (case.group, case.toolchain)
            untried = [left for name, left in cases.items() if name not in builds and name != case.name]
            others = sum((left.group, left.toolchain) == alike for left in untried)
        context.failures.case(case, build.failure, others)
        printed = stderr
    else:
        printed = BuildCache(cache_root()).printed(build)
        if printed:
            context.directory.log(build.case, printed, "plugins")
    if context.options.verbose and printed:
        for line in (f"{build.case} printed:", *printable(printed).rstrip().splitlines()):
            context.progress.note(line)
    if build.case not in builds:
        context.directory.append(build)
    builds[build.case] = build


def requests_of(
    context: Context, artifacts: Mapping[str, ModelArtifact | Failure], builds: dict[str, Build], host_cpu: str
) -> list[CompileRequest]:
    """What is still to be compiled, small models first; the cases of models that could not be made fail at once."""
    prepared, directory, cache = context.prepared, context.directory, BuildCache(cache_root())
    requests: list[tuple[int, CompileRequest]] = []
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
        if case.peer is not None or (
            before is not None and (before.failure or cache.find(before.cache_key, case.name))
        ):
            continue
        request = request_for(prepared, case, artifact, host_cpu, context.options.compile_limits)
        requests.append((artifact.mlir_bytes, request))
    return [request for _, request in sorted(requests, key=lambda item: item[0])]


def _compiled(
    requests: Sequence[CompileRequest], cache: BuildCache, context: Context
) -> Iterator[tuple[Build, str] | Underway]:
    go_on = f"then go on with `harness run --resume {shlex.quote(str(context.directory.path))}`"
    with writing_the_cache(f"make room or set HARNESS_CACHE, {go_on}"):
        refusal = partial(context.given_up.refusal, stage="compile")
        yield from compile_cases(requests, cache, context.options.compilers, refusal, context.given_up.note)


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
