"""The suites of the MLP and of the convolution ask what their seeds asked, and their peers have programs for that."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import pytest

from harness.models import check_params, find_builder
from harness.peers import PeerModel
from harness.peers.peer import find_peer
from harness.plugins.halide_schedule import Step
from harness.plugins.options import as_json, check_options
from harness.suite.load import Suite, load_suite

SUITES = Path(__file__).parents[2] / "suites"


def suite_of(name: str) -> Suite:
    return load_suite(SUITES / name).suite


@pytest.mark.parametrize(
    ("suite", "peer"), [("mlp.toml", "libxsmm"), ("conv-schedule.toml", "halide")], ids=["mlp", "conv-schedule"]
)
def test_the_seed_s_own_engine_runs_every_model(suite: str, peer: str) -> None:
    loaded = suite_of(suite)
    (*uses,) = (use for use in loaded.peers if use.name == peer)
    assert uses
    engine = find_peer(peer)
    for model in loaded.models:
        assert model.builder is not None
        params = check_params(find_builder(model.builder), model.params)
        program = PeerModel(name=model.name, builder=model.builder, params=as_json(params), inputs=())
        for use in uses:
            options = check_options(engine.options, use.options, where="peers", owner=peer, noun="option")
            assert engine.refuses(program, options) is None


def test_every_stage_of_the_schedule_is_a_variant() -> None:
    variants = suite_of("conv-schedule.toml").variants
    steps = {
        variant.name: plugin.options["step"]
        for variant in variants
        for plugin in variant.plugins
        if plugin.name == "halide-schedule"
    }
    assert steps == {step: step for step in get_args(Step)}


def test_the_mlp_has_both_forms_and_both_types() -> None:
    models = suite_of("mlp.toml").models
    found = {(model.params["form"], model.params["dtype"]) for model in models}
    assert found == {(form, dtype) for form in ("pytorch", "mlir-gen") for dtype in ("f32", "bf16")}
