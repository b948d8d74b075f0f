"""Builders by name; how their parameters are checked is in tests/test_options.py."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import EntryPoint
from typing import Any

import pytest

from harness.errors import SuiteError
from harness.models import builder, check_params, find_builder, load_builders
from harness.models.residual_dense_block import BUILDER, Parameters

WHERE = "[models.rdb] params"


def test_the_built_in_builder_is_registered() -> None:
    assert load_builders()["residual-dense-block"] is BUILDER
    assert find_builder("residual-dense-block") is BUILDER


def test_an_unknown_builder_is_named_with_a_close_one() -> None:
    with pytest.raises(SuiteError) as caught:
        find_builder("residual-dense-blocks", "[models.rdb] builder")
    assert str(caught.value) == (
        "[models.rdb] builder: there is no builder 'residual-dense-blocks'; did you mean \"residual-dense-block\"?"
    )


@pytest.fixture
def registered(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, EntryPoint]]:
    """Entry points that the test may add to."""
    points: dict[str, EntryPoint] = {}
    monkeypatch.setattr(builder, "_entry_points", lambda: points)
    yield points


@pytest.mark.parametrize("value", ["no_such_package:BUILDER", "harness.models.residual_dense_block:NO_SUCH_NAME"])
def test_a_builder_that_does_not_load_names_its_origin(registered: dict[str, EntryPoint], value: str) -> None:
    registered["broken"] = EntryPoint("broken", value, builder.ENTRY_POINT_GROUP)
    with pytest.raises(SuiteError, match=f"'broken': {value} cannot be loaded"):
        load_builders()


def test_something_else_than_a_builder_is_refused(registered: dict[str, EntryPoint]) -> None:
    registered["odd"] = EntryPoint("odd", "harness.errors:SuiteError", builder.ENTRY_POINT_GROUP)
    with pytest.raises(SuiteError, match=r"harness\.errors:SuiteError is not a harness\.models\.Builder"):
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
