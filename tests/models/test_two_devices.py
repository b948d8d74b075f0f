"""Programs for two devices: what they say about devices, and that all kinds compute the same."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from harness.models.two_devices import Parameters, build
from tests.models.conftest import Make, RunMain

SMALL: dict[str, Any] = {"layers": 4, "width": 8, "rows": 4}


def text_of(**params: Any) -> str:
    return str(build(Parameters(**{**SMALL, **params})).text)


def moves(text: str) -> list[str]:
    """Where the products run and tensors go, in order: * for a product, a or b for a device."""
    found = re.findall(r"linalg\.matmul|flow\.tensor\.transfer.*<@dev_(\w)>", text)
    return [name or "*" for name in found]


@pytest.mark.parametrize(
    ("params", "expected"),
    [
        ({"kind": "whole"}, "****"),
        ({"kind": "pipeline"}, "**b**a"),
        ({"kind": "transfers"}, "*b*a*b*a"),
        ({"kind": "transfers", "layers": 3}, "*b*a*"),
        ({"kind": "pipeline", "layers": 3}, "**b*a"),
        ({"kind": "pipeline", "layers": 1}, "*"),
        ({"kind": "pipeline", "batches": 2}, "**b**a**b**a"),
    ],
)
def test_layers_go_where_the_kind_says(params: dict[str, Any], expected: str) -> None:
    assert "".join(moves(text_of(**params))) == expected


def test_a_whole_program_does_not_speak_of_devices() -> None:
    assert "dev_" not in text_of(kind="whole", batches=3)


@pytest.mark.parametrize("batches", [1, 3])
def test_the_rows_of_all_parts_are_the_input(batches: int) -> None:
    model = build(Parameters(**SMALL, batches=batches))
    assert [argument.shape for argument in model.inputs] == [(4 * batches, 8)]


@pytest.mark.parametrize("kind", ["pipeline", "transfers"])
def test_on_two_devices_it_computes_what_the_whole_does_on_one(make: Make, run_main: RunMain, kind: str) -> None:
    """Which tests/models/test_builders.py holds against numpy."""
    whole, parts = (make("two-devices", **SMALL, kind=name, batches=2) for name in ("whole", kind))
    (expected,) = run_main(whole, targets=("dev_a=local[0]",))
    (output,) = run_main(parts, targets=("dev_a=local[0]", "dev_b=local[1]"), uris=("local-sync", "local-task"))
    np.testing.assert_allclose(output, expected, rtol=1e-5, atol=1e-6)
