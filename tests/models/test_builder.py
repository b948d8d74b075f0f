"""Builders by name; how their parameters are checked is in tests/test_options.py."""

from __future__ import annotations

import re
from importlib.metadata import EntryPoint, EntryPoints
from typing import Any

import pytest

from harness.errors import SuiteError
from harness.models import builder, check_params, find_builder
from harness.models.residual_dense_block import BUILDER, Parameters

WHERE = "[models.rdb] params"


def test_the_built_in_builder_is_registered() -> None:
    assert find_builder("residual-dense-block") is BUILDER


def test_an_unknown_builder_is_named_with_a_close_one() -> None:
    with pytest.raises(SuiteError) as caught:
        find_builder("residual-dense-blocks", "[models.rdb] builder")
    assert str(caught.value) == (
        "[models.rdb] builder: there is no builder 'residual-dense-blocks'; did you mean \"residual-dense-block\"?"
    )


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("no_such_package:BUILDER", "builder 'odd': no_such_package:BUILDER cannot be loaded"),
        ("harness.models.mlp:NO_SUCH_NAME", "builder 'odd': harness.models.mlp:NO_SUCH_NAME cannot be loaded"),
        ("harness.errors:SuiteError", "harness.errors:SuiteError is not a harness.models.Builder"),
    ],
)
def test_a_package_that_registers_no_builder_is_named(
    value: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    points = EntryPoints([EntryPoint("odd", value, builder.ENTRY_POINT_GROUP)])
    monkeypatch.setattr(builder, "_entry_points", lambda: points)
    with pytest.raises(SuiteError, match=re.escape(message)):
        find_builder("odd")


def test_parameters_default() -> None:
    assert check_params(BUILDER, {}) == Parameters()
    assert check_params(BUILDER, {"height": 4, "blocks": 2}) == Parameters(height=4, blocks=2)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        (
            {"hieght": 4},
            "[models.rdb] params.hieght is not a parameter of builder 'residual-dense-block'; did you mean \"height\"?",
        ),
        ({"height": 0}, "[models.rdb] params.height: input should be greater than or equal to 1, not '0'"),
        ({"seed": -1}, "[models.rdb] params.seed: input should be greater than or equal to 0, not '-1'"),
    ],
)
def test_wrong_parameters_are_named(params: dict[str, Any], message: str) -> None:
    with pytest.raises(SuiteError) as caught:
        check_params(BUILDER, params, WHERE)
    assert str(caught.value) == message
