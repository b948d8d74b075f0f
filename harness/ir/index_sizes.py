"""What numbers on the host's side of a program are, for the shapes of a case's inputs; part of layouts.py.

It runs where that does: stdlib only.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any


class Unknown(Exception):
    """What cannot be told of a program; a phrase."""


def _ceildiv(a: int, b: int) -> int:
    return -(-a // b)


def _truncdiv(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


_ARITHMETIC: dict[str, Callable[..., int]] = {
    "arith.addi": operator.add,
    "arith.subi": operator.sub,
    "arith.muli": operator.mul,
    "arith.divsi": _truncdiv,
    "arith.divui": operator.floordiv,
    "arith.ceildivsi": _ceildiv,
    "arith.ceildivui": _ceildiv,
    "arith.maxsi": max,
    "arith.maxui": max,
    "arith.minsi": min,
    "arith.minui": min,
    "arith.index_cast": operator.index,
    "arith.index_castui": operator.index,
    "arith.select": lambda condition, a, b: a if condition else b,
}
# By the number of arith's predicates; sizes are never negative, so signed and unsigned ones agree.
_COMPARISONS = (
    operator.eq,
    operator.ne,
    *(operator.lt, operator.le, operator.gt, operator.ge) * 2,
)


class Sizes:
    """What values of type index on the host's side are, for the case's inputs."""

    def __init__(self, ir: Any, inputs: Sequence[Sequence[int]]) -> None:
        self.ir, self.inputs = ir, inputs
        self.known: dict[Any, tuple[int, bool]] = {}

    def of(self, value: Any) -> tuple[int, bool]:
        """The value, and whether an input decides it.

        Raises:
            Unknown: It depends on what is computed.
        """
        if value not in self.known:
            self.known[value] = self._evaluate(value)
        return self.known[value]

    def _evaluate(self, value: Any) -> tuple[int, bool]:
        op = value.owner
        if isinstance(op, self.ir.Block):
            raise Unknown("the size of an encoded tensor is an argument of a block")
        if op.name == "arith.constant":
            return int(op.attributes["value"].value), False
        if op.name == "hal.buffer_view.dim":
            view = op.operands[0]
            if isinstance(view.owner, self.ir.Block) and view.arg_number < len(self.inputs):
                return self.inputs[view.arg_number][int(op.attributes["index"].value)], True
        if op.name == "arith.cmpi":
            (a, one), (b, other) = (self.of(operand) for operand in op.operands)
            return int(_COMPARISONS[int(op.attributes["predicate"].value)](a, b)), one or other
        if op.name not in _ARITHMETIC:
            raise Unknown(f"the size of an encoded tensor comes from {op.name}")
        operands = [self.of(operand) for operand in op.operands]
        return _ARITHMETIC[op.name](*(number for number, _ in operands)), any(given for _, given in operands)
