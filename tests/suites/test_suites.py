"""Suites name what the scripts beside them write, are what the documentation shows, and ask what their seeds asked."""

import runpy
from pathlib import Path
from typing import get_args

import numpy as np
import onnx
import pytest

from harness.models import check_params, find_builder
from harness.peers import PeerModel
from harness.peers.peer import find_peer
from harness.plugins.halide_schedule import Step
from harness.plugins.options import as_json, check_options
from harness.suite.load import Suite, load_suite

ROOT = Path(__file__).parents[2]
KNOWN = ROOT / "suites/known-issues"


def test_the_right_outputs_of_known_issues_are_those_that_numpy_computes() -> None:
    written = dict(runpy.run_path(str(KNOWN / "right.py"))["right_outputs"]())
    assert {file.name for file in written} == {file.name for file in KNOWN.glob("*.npy")}
    for file, values in written.items():
        np.testing.assert_allclose(np.load(file), values, rtol=1e-6, err_msg=file.name)


@pytest.mark.parametrize("program", sorted(KNOWN.glob("*.mlir")), ids=lambda path: path.stem)
def test_a_known_issue_is_in_the_suite_and_in_the_documentation(program: Path) -> None:
    suite = load_suite(ROOT / "suites/known-issues.toml").suite
    assert program.name in [model.mlir.name for model in suite.models if model.mlir is not None]
    documented = (ROOT / "docs/known-issues.md").read_text()
    assert program.stem in documented
    # prelu and cbrt with another number or function
    alike = {"prelu-wide", "powf", "atan2", "sinh", "asinh", "atanh", "acosh", "asin-f16", "atanh-f16"}
    assert program.read_text() in documented or program.stem in alike


def test_the_smoke_suite_s_network_is_the_one_its_script_writes() -> None:
    script = runpy.run_path(str(ROOT / "suites/smoke/network.py"))
    assert onnx.load(script["FILE"]) == onnx.load_model_from_string(script["network"]())


# --- The suites of the MLP and of the convolution ---

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
