"""Making the models of a run: what is wrong with one of them fails its own cases, and the others go on."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.errors import CaseError, SuiteError
from harness.models.materialize import ModelArtifact
from harness.models.model import Model
from harness.process import Limits
from harness.progress import Silent
from harness.records.run import Failure
from harness.stages import build as room
from harness.stages.build import materialize_models
from harness.toolchain import Toolchain
from tests.builders import a_model, a_peer, a_suite, make_artifact, make_case
from tests.fakes.fake_toolchain import make_fake_toolchain
from tests.stages.made import a_prepared


@pytest.fixture
def toolchain(tmp_path: Path) -> Toolchain:
    return make_fake_toolchain(tmp_path / "tools")


def made(
    toolchain: Toolchain, models: tuple[Model, ...], *, skipped: str = "", peers: dict[str, Any] | None = None
) -> dict[str, ModelArtifact | Failure]:
    cases = tuple(
        replace(make_case("stock", model=model.name), skip="not here" if model.name == skipped else None)
        for model in models
    )
    prepared = a_prepared(toolchain, cases, a_suite(models=models), peers)
    return materialize_models(prepared, Limits(), Silent())


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (SuiteError("[models.bad] inputs are missing"), "suite.toml: [models.bad] inputs are missing"),
        (CaseError("model", "no weights"), "no weights"),
    ],
)
def test_one_model_that_cannot_be_made_does_not_stop_the_others(
    tmp_path: Path, toolchain: Toolchain, monkeypatch: pytest.MonkeyPatch, error: Exception, message: str
) -> None:
    artifact = make_artifact(tmp_path / "net.mlir", arguments=())

    def materialize(model: Model, **_: object) -> ModelArtifact:
        if model.name == "bad":
            raise error
        return artifact

    monkeypatch.setattr(room, "materialize", materialize)
    found = made(toolchain, (a_model("bad"), a_model("good")))
    assert found == {"bad": Failure(stage="model", message=message), "good": artifact}


def test_only_models_of_cases_that_are_run_are_made(
    tmp_path: Path, toolchain: Toolchain, monkeypatch: pytest.MonkeyPatch
) -> None:
    artifact = make_artifact(tmp_path / "net.mlir", arguments=())
    monkeypatch.setattr(room, "materialize", lambda *_, **__: artifact)
    assert set(made(toolchain, (a_model("here"), a_model("there")), skipped="there")) == {"here"}


@pytest.mark.parametrize(
    ("model", "peers", "wanted"),
    [
        (a_model(), {}, False),
        (a_model(), {"onnxruntime": a_peer()}, True),
        (a_model(reference="onnxruntime"), {}, True),
    ],
    ids=["neither", "peers", "reference"],
)
def test_the_onnx_form_is_written_where_somebody_reads_it(
    tmp_path: Path,
    toolchain: Toolchain,
    monkeypatch: pytest.MonkeyPatch,
    model: Model,
    peers: dict[str, Any],
    wanted: bool,
) -> None:
    asked: list[object] = []

    def materialize(_: Model, *, with_onnx: bool, **__: object) -> ModelArtifact:
        asked.append(with_onnx)
        return make_artifact(tmp_path / "net.mlir", arguments=())

    monkeypatch.setattr(room, "materialize", materialize)
    made(toolchain, (model,), peers=peers)
    assert asked == [wanted]
