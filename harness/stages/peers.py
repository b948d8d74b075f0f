"""Which peers have a program for their model; asked once the models are there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from harness.models.builder import check_params, find_builder
from harness.models.materialize import ModelArtifact
from harness.models.model import Model
from harness.peers.values import PeerModel
from harness.plugins.options import as_json
from harness.records.case import Case
from harness.records.run import Failure
from harness.stages.prepare import Prepared


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
