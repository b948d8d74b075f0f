"""The builders of published networks: what they refuse, and what they give where the weights can be had."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest

from harness.errors import CaseError, SuiteError
from harness.models import BuiltOnnx, check_params, find_builder
from harness.models.inputs import make_array
from tests.models.onnx_runs import run_onnx_bytes

# Those whose packages are small, with the shapes of their results; the suite checks all at their own sizes.
NETWORKS: list[tuple[str, dict[str, Any], list[tuple[int, ...]]]] = [
    ("efficientnet-lite0", {"size": 32}, [(1, 1000)]),
    ("paddle-ocr", {"height": 32, "width": 64}, [(1, 1, 32, 64)] * 2),
    ("paddle-ocr", {"part": "classifier"}, [(1, 2)]),
    ("silero", {"form": "straight"}, [(1, 1), (2, 1, 128)]),
    ("silero", {"form": "branches"}, [(1, 1), (2, 1, 128)]),
]


@pytest.mark.parametrize(("name", "params", "shapes"), NETWORKS)
def test_with_its_weights_a_network_gives_finite_numbers(
    name: str, params: dict[str, Any], shapes: list[tuple[int, ...]]
) -> None:
    builder = find_builder(name)
    try:
        built = builder.build(check_params(builder, params))
    except CaseError as error:
        if "is not installed" not in str(error):
            raise
        pytest.skip(str(error))
    assert isinstance(built, BuiltOnnx)
    arrays = [make_array(one) for one in built.inputs]
    results = run_onnx_bytes(built.onnx, *arrays)
    assert [one.shape for one in results] == shapes
    assert all(np.isfinite(one).all() for one in results)
    assert onnx.load_from_string(built.onnx).opset_import[0].version >= 17


@pytest.mark.parametrize(
    ("name", "params", "message"),
    [
        ("minilm", {"layers": 4}, "params.layers: input should be 3 or 6, not '4'"),
        ("minilm", {"sequence": 513}, "params.sequence: input should be less than or equal to 512, not '513'"),
        ("efficientnet-lite0", {"size": 16}, "params.size: input should be greater than or equal to 32, not '16'"),
        ("crepe", {"batch": 0}, "params.batch: input should be greater than or equal to 1, not '0'"),
        ("paddle-ocr", {"part": "reader"}, "params.part: input should be 'detector' or 'classifier', not 'reader'"),
        ("silero", {"form": "both"}, "params.form: input should be 'branches' or 'straight', not 'both'"),
    ],
)
def test_sizes_and_parts_that_a_network_does_not_have_are_refused(
    name: str, params: dict[str, Any], message: str
) -> None:
    with pytest.raises(SuiteError) as caught:
        check_params(find_builder(name), params)
    assert str(caught.value) == message
