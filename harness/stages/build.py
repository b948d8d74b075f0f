"""[Case] -> models' MLIR and inputs -> [Build]."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from harness.cache import cache_root
from harness.compile import BuildCache, CompileRequest, Underway, compile_cases
from harness.errors import CaseError, RunError, SuiteError
from harness.models.builder import check_params, find_builder
from harness.models.materialize import ModelArtifact, materialize
from harness.models.model import Model
from harness.peers.values import PeerModel
from harness.plugins.options import as_json
from harness.process import Limits
from harness.progress import Progress
from harness.records.case import Case
from harness.records.run import Build, Failure
from harness.stages.context import Context
from harness.stages.prepare import Prepared


@contextmanager
def writing_the_cache(remedy: str = "make room or set HARNESS_CACHE") -> Iterator[None]:
    """Turn what the system says of a cache that cannot be written into a sentence for the user.

    Raises:
        RunError: The cache cannot be written.
    """
    try:
        yield
    except OSError as error:
        raise RunError(f"{cache_root()}: the cache cannot be written ({error.strerror}); {remedy}") from None


def materialize_models(prepared: Prepared, limits: Limits, progress: Progress) -> dict[str, ModelArtifact | Failure]:
    """Build or import the models of all cases that will run; by name, a failure where one could not be made.

    Raises:
        RunError: The cache cannot be written.
    """
    wanted = {case.model for case in prepared.cases if case.skip is None}
    models = [model for model in prepared.suite.models if model.name in wanted]
    progress.stage("Models", len(models))
    artifacts: dict[str, ModelArtifact | Failure] = {}
    for model in models:
        progress.step(model.name, advance=0)
        try:
            with writing_the_cache():
                artifacts[model.name] = materialize(
                    model,
                    store=cache_root() / "models",
                    toolchain=prepared.toolchain,
                    limits=limits,
                    with_onnx=bool(prepared.peers) or model.reference == "onnxruntime",
                )
        except SuiteError as error:  # such as an ONNX file whose inputs the suite has to give: the others go on
            artifacts[model.name] = Failure(stage="model", message=f"{prepared.suite.path}: {error}")
        except CaseError as error:
            artifacts[model.name] = Failure.of(error)
        progress.step(model.name)
    return artifacts


def skip_unfit_peers(prepared: Prepared, artifacts: Mapping[str, ModelArtifact | Failure]) -> Prepared:
    """The same plan, the cases of peers that have no program for their model being skipped, with the reason."""
    models = {model.name: model for model in prepared.suite.models}

    def checked(case: Case) -> Case:
        artifact = artifacts.get(case.model)
        if case.peer is None or case.skip is not None or not isinstance(artifact, ModelArtifact):
            return case
        applied = prepared.peers[case.variant]
        reason = applied.refuses(peer_model(models[case.model], artifact))
        return case if reason is None else replace(case, skip=reason)

    return replace(prepared, cases=tuple(checked(case) for case in prepared.cases))


def peer_model(model: Model, artifact: ModelArtifact) -> PeerModel:
    """A model in the forms that peers read."""
    params = {}
    if model.builder is not None:
        params = as_json(check_params(find_builder(model.builder), model.params))
    onnx = artifact.onnx.absolute() if artifact.onnx is not None else None  # a peer's process has a folder of its own
    return PeerModel(name=model.name, builder=model.builder, params=params, onnx=onnx, inputs=artifact.inputs)


# Where nothing has been finished for so long, what is ready is measured before waiting on.
_PATIENCE_S = 15.0


@dataclass(frozen=True, kw_only=True)
class Batch:
    """Models whose cases are all compiled, so that they can be checked and measured.

    Attributes:
        builds: The builds of their cases, by the case's name.
        groups_elsewhere: How many groups belong to models of other batches.
    """

    models: frozenset[str]
    builds: Mapping[str, Build]
    groups_elsewhere: int


def compile_stage(context: Context, artifacts: Mapping[str, ModelArtifact | Failure]) -> Iterator[Batch]:
    """Compile what is not compiled yet, in the background, small models first.

    There is one batch with everything, unless some compiles take long: then what is ready comes first, so that it need
    not wait to be measured.

    Raises:
        RunError: The cache or the run's directory cannot be written.
    """
    progress, prepared = context.progress, context.prepared
    cache = BuildCache(cache_root())
    cache.sweep()
    builds = dict(context.done.builds)
    requests = _requests(context, artifacts, builds, cache)
    models = dict.fromkeys(case.model for case in prepared.cases if case.skip is None)
    model_of = {case.name: case.model for case in prepared.cases}
    waiting = Counter(request.case.model for request in requests)
    yielded: set[str] = set()

    def batch() -> Batch:
        ready = frozenset(model for model in models if model not in yielded and not waiting[model])
        yielded.update(ready)
        elsewhere = {case.group for case in prepared.cases if case.skip is None and case.model not in ready}
        of_ready = {case.name for case in prepared.cases if case.model in ready}
        return Batch(
            models=ready,
            builds={name: build for name, build in builds.items() if name in of_ready},
            groups_elsewhere=len(elsewhere),
        )

    progress.stage("Compile", len(requests))
    finished = time.monotonic()
    compiling: Sequence[str] = ()
    for item in _compiled(requests, cache, context):
        if isinstance(item, Underway):
            compiling = item.cases
            progress.step(", ".join(compiling), advance=0)
            is_ready = any(not waiting[model] for model in models if model not in yielded)
            if is_ready and time.monotonic() - finished > _PATIENCE_S:
                progress.note(f"Measuring what is ready; held still meanwhile: the compiler at {', '.join(compiling)}")
                yield batch()
                progress.stage("Compile", sum(waiting.values()))
                finished = time.monotonic()
            continue
        build, stderr = item
        finished = time.monotonic()
        if build.failure is not None:
            context.directory.log(build.case, stderr)
        if build.case not in builds:
            context.directory.append(build)
        builds[build.case] = build
        waiting[model_of[build.case]] -= 1
        progress.step(build.case)
    yield batch()


def _requests(
    context: Context,
    artifacts: Mapping[str, ModelArtifact | Failure],
    builds: dict[str, Build],
    cache: BuildCache,
) -> list[CompileRequest]:
    """What is still to be compiled; the cases of models that could not be made fail at once."""
    prepared, directory = context.prepared, context.directory
    host_cpu = host_cpu_of(directory.header.environment)
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
    go_on = f"then go on with `harness run --resume {context.directory.path}`"
    with writing_the_cache(f"make room or set HARNESS_CACHE, {go_on}"):
        yield from compile_cases(requests, cache, context.options.compilers)


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
