"""[Case] -> models' MLIR and inputs, and what is wrong with them, before anything is compiled."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace

from harness.cache import cache_root
from harness.errors import CaseError, RunError, SuiteError
from harness.models.builder import check_params, find_builder
from harness.models.materialize import ModelArtifact, materialize
from harness.models.model import Model
from harness.peers.peer import PeerModel
from harness.plugins.options import as_json
from harness.process import Limits
from harness.progress import Progress
from harness.records.case import Case
from harness.records.run import Failure
from harness.stages.entry import check_entry
from harness.stages.failures import FailureNotes
from harness.stages.prepare import Prepared

_LONGEST_REASON = 300


@contextmanager
def writing_the_cache(remedy: str = "make room or set HARNESS_CACHE") -> Iterator[None]:
    """Turn what the system says of a cache that cannot be written into a sentence for the user."""
    try:
        yield
    except OSError as error:
        raise RunError(f"{cache_root()}: the cache cannot be written ({error.strerror}); {remedy}") from None


def materialize_models(
    prepared: Prepared, limits: Limits, progress: Progress, *, notes: bool = True
) -> dict[str, ModelArtifact | Failure]:
    """Build or import the models of all cases that will run; by name, a failure where one could not be made.

    Entry functions are held against what the suite says of them, and each failure is a note at once.
    """
    wanted: dict[str, list[Case]] = {}
    for case in prepared.cases:
        if case.skip is None:
            wanted.setdefault(case.model, []).append(case)
    models = [model for model in prepared.suite.models if model.name in wanted]
    progress.stage("Models", len(models))
    failures = FailureNotes(progress)
    artifacts: dict[str, ModelArtifact | Failure] = {}
    for model in models:
        progress.step(model.name, advance=0)
        artifact = _materialized(model, prepared, wanted[model.name], limits)
        if isinstance(artifact, Failure) and notes:
            failures.model(model.name, artifact, wanted[model.name])
        artifacts[model.name] = artifact
        progress.step(model.name)
    return artifacts


def _materialized(model: Model, prepared: Prepared, cases: Sequence[Case], limits: Limits) -> ModelArtifact | Failure:
    try:
        with writing_the_cache():
            artifact = materialize(
                model,
                store=cache_root() / "models",
                toolchain=prepared.toolchain,
                limits=limits,
                with_onnx=bool(prepared.peers) or model.reference == "onnxruntime",
            )
        flags = [flag for case in cases for flag in case.compile_flags]
        check_entry(model, artifact, flags, toolchain=prepared.toolchain, limits=limits)
    except SuiteError as error:  # such as an ONNX file whose inputs the suite has to give: the others go on
        return Failure(stage="model", message=f"{prepared.suite.path}: {error}")
    except CaseError as error:
        return Failure.of(error)
    except (MemoryError, OverflowError, ValueError) as error:  # of sizes that nothing can hold, and the others go on
        reason = " ".join(str(error).split())[:_LONGEST_REASON] or type(error).__name__
        return Failure(stage="model", message=f"[models.{model.name}] cannot be made ({reason}); give smaller sizes")
    return artifact


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
