"""The trunk of ESRGAN's generator: three dense blocks and a residual, so many times."""

from __future__ import annotations

import pytest
from iree.compiler import ir

from harness.errors import SuiteError
from harness.models import check_params, find_builder
from harness.models.residual_dense_block import TRUNK_BUILDER, TrunkParameters, build

SMALL = TrunkParameters(height=4, width=4, channels=4, growth=2, blocks=2)


def operations(params: TrunkParameters, name: str) -> int:
    with ir.Context():
        module = ir.Module.parse(build(params).text)
        module.operation.verify()
        found = 0

        def visit(op: ir.Operation) -> ir.WalkResult:
            nonlocal found
            found += op.name == name
            return ir.WalkResult.ADVANCE

        module.operation.walk(visit)
        return found


def test_it_is_registered() -> None:
    assert find_builder("rrdb-trunk") is TRUNK_BUILDER


def test_fifteen_convolutions_a_block() -> None:
    assert operations(SMALL, "linalg.conv_2d_nchw_fchw") == 2 * 3 * 5


def test_equal_parameters_give_equal_bytes_and_other_seeds_others() -> None:
    assert build(SMALL).text == build(SMALL).text
    other = TrunkParameters(height=4, width=4, channels=4, growth=2, blocks=2, seed=1)
    assert build(SMALL).text != build(other).text


def test_it_is_called_with_one_image() -> None:
    built = build(SMALL)
    (image,) = built.inputs
    assert (built.function, image.shape, image.seed) == ("main", (1, 4, 4, 4), 0)


def test_sizes_are_at_least_one() -> None:
    with pytest.raises(SuiteError, match=r"params\.blocks: input should be greater than or equal to 1, not '0'"):
        check_params(TRUNK_BUILDER, {"blocks": 0})
