"""[Case] -> [Build]; and a case's program as files, for `harness export`."""

import shlex
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from harness.cache import cache_root, sweep_writing
from harness.compile import BuildCache, CompileRequest, Underway, compile_cases
from harness.compile.iree_compile import MODEL_FILE, rewrite_model
from harness.errors import RunError, UsageError
from harness.machine.environment import processor_identity
from harness.models.materialize import ModelArtifact, input_files, materialize
from harness.models.model import Model
from harness.process import Limits
from harness.records.case import Case
from harness.records.run import Build, Failure, PluginEffect
from harness.stages.models import writing_the_cache
from harness.stages.options import compile_limits
from harness.stages.prepare import Context, Prepared, find_named, prepare
from harness.store.files import writing
from harness.suite.cases import Selection
from harness.suite.load import load_suite
from harness.text import printable
from harness.toolchain import Toolchain, find_toolchain
from harness.verify.cases import trim_outputs


def require_cache(context: Context, builds: Mapping[str, Build]) -> None:
    """Refuse failures that are the cache's, which somebody deleted while the run used it."""
    cache = BuildCache(cache_root())
    compiled = [build for build in builds.values() if build.failure is None and build.cache_key]
    gone = [model.name for model in context.made.values() if not model.mlir.is_file()]
    gone += [build.case for build in compiled if cache.find(build.cache_key, build.case) is None]
    if gone:
        raise RunError(
            f"{cache_root()}: what was made of {gone[0]} is no longer in the cache, which this run needs to its end; "
            f"go on with `harness run --resume {shlex.quote(str(context.directory.path))}`, which makes it again"
        )


def compile_stage(context: Context, requests: Sequence[CompileRequest]) -> None:
    """Compile what is not compiled yet, small models first."""
    cache, progress = BuildCache(cache_root()), context.progress
    cache.sweep()
    sweep_writing(cache_root())
    trim_outputs(cache_root())
    fail_unmade(context)
    progress.stage("Compile", len(requests))
    for item in _compiled(requests, cache, context):
        if isinstance(item, Underway):
            progress.step(", ".join(item.cases), advance=0)
            continue
        build, stderr = item
        keep_build(context, build, stderr)
        progress.step(build.case)


def keep_build(context: Context, build: Build, stderr: str) -> None:
    """Write down what came of a compile, and say what failed."""
    printed, builds = stderr, context.done.builds
    if build.failure is not None:
        context.directory.log(build.case, stderr)
        cases = {case.name: case for case in context.prepared.cases}
        case = cases.pop(build.case)
        context.failed(case, build.failure, [left for name, left in cases.items() if name not in builds])
    elif printed := BuildCache(cache_root()).printed(build):
        context.directory.log(build.case, printed, "plugins")
    if context.options.verbose and printed:
        for line in (f"{build.case} printed:", *printable(printed).rstrip().splitlines()):
            context.progress.note(line)
    if build.case not in builds:
        context.directory.append(build)
    builds[build.case] = build


def fail_unmade(context: Context) -> None:
    """Write down that cases failed whose model could not be made."""
    builds = context.done.builds
    for case in context.prepared.cases:
        artifact = context.artifacts.get(case.model)
        if case.skip is None and isinstance(artifact, Failure) and case.name not in builds:
            builds[case.name] = Build(case=case.name, command=(), cache_key="", failure=artifact)
            context.directory.append(builds[case.name])


def requests_of(context: Context, host_cpu: str | None = None) -> list[CompileRequest]:
    """What is still to be compiled, small models first; in flags, `host` is this machine unless another is named."""
    if host_cpu is None:
        host_cpu = processor_identity(context.directory.header.environment)
    cache, done, models = BuildCache(cache_root()), context.done.builds, context.made
    requests: list[CompileRequest] = []
    for case in context.prepared.cases:
        artifact, before = models.get(case.model), done.get(case.name)
        if case.skip is not None or case.peer is not None or artifact is None:
            continue
        if before is None or not (before.failure or cache.find(before.cache_key, case.name)):
            requests.append(request_for(context.prepared, case, artifact, host_cpu, context.options.compile_limits))
    return sorted(requests, key=lambda request: models[request.case.model].mlir_bytes)


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


# --- `harness export`: a model's program and inputs as files, under the names that reports' command lines have ---


@dataclass(frozen=True, kw_only=True)
class Exported:
    """What lies in the folder now."""

    files: tuple[str, ...]
    function: str
    effects: tuple[PluginEffect, ...] = ()  # What each rewrite did to the program
    flags: tuple[str, ...] = ()  # Flags that say where iree-compile begins


def export_program(
    suite: Path, model: str, out: Path, *, variant: str | None = None, device: str | None = None
) -> Exported:
    """Write the program that a variant's plugins make of a model, and the files that they give to the tools."""
    loaded = load_suite(suite)
    found = find_named(suite, "model", model, loaded.models)
    if variant is None:
        artifact = _artifact(found, find_toolchain())
        return Exported(files=_copy(out, artifact, artifact.mlir, ()), function=artifact.function)
    find_named(suite, "variant", variant, loaded.variants)
    if device is not None:
        find_named(suite, "device", device, loaded.devices)
    prepared = prepare(suite, Selection())
    cases = [case for case in prepared.cases if (case.model, case.variant) == (model, variant)]
    case = next((case for case in cases if device in (None, case.device)), None)
    if case is None:
        name = f"{model}/{variant}@{device or '*'}"
        raise UsageError(f"{suite}: [matrix] leaves out {name}; choose a case of `harness list`")
    artifact = _artifact(found, prepared.toolchain)
    request = request_for(prepared, case, artifact, "", compile_limits())
    with tempfile.TemporaryDirectory(prefix="harness-export-") as scratch:
        folder = Path(scratch)
        (folder / MODEL_FILE).symlink_to(artifact.mlir.resolve())
        for file in request.arranged.files:
            file.put_into(folder)
        flags, effects = rewrite_model(request, folder)
        plugin_files = [folder / file.unique_name for file in request.arranged.files]
        files = _copy(out, artifact, folder / MODEL_FILE, plugin_files)
    return Exported(files=files, function=artifact.function, effects=effects, flags=flags)


def _artifact(model: Model, toolchain: Toolchain) -> ModelArtifact:
    return materialize(model, store=cache_root() / "models", toolchain=toolchain, limits=compile_limits())


def _copy(out: Path, artifact: ModelArtifact, program: Path, plugin_files: Sequence[Path]) -> tuple[str, ...]:
    files = {MODEL_FILE: program, **input_files(artifact), **{file.name: file for file in plugin_files}}
    with writing(out, "choose another folder with --out"):
        out.mkdir(parents=True, exist_ok=True)
        for name, file in files.items():
            shutil.copy(file, out / name)
    return tuple(files)
