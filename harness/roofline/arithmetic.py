"""What the operations of a body cost: arithmetic operations for each time it runs.

Part of harness.roofline.counter, which runs under a toolchain's own Python.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from iree.compiler import ir

_FLOAT = "addf subf mulf divf remf negf maximumf minimumf maxnumf minnumf cmpf"
_INTEGER = (
    "addi subi muli divsi divui remsi remui ceildivsi ceildivui floordivsi maxsi maxui minsi minui cmpi "
    "addui_extended mulsi_extended mului_extended"
)
_ROUNDING = "absf absi floor ceil round roundeven trunc copysign"
# Functions that a processor computes in several steps, roots too.
_FUNCTIONS = (
    "exp exp2 expm1 log log2 log10 log1p sin cos tan asin acos atan atan2 sinh cosh tanh asinh acosh atanh erf erfc "
    "sqrt rsqrt cbrt powf fpowi ipowi"
)
# What only moves, converts or masks values.
_FREE_ARITH = (
    "constant select extf extsi extui truncf trunci sitofp uitofp fptosi fptoui bitcast index_cast index_castui "
    "andi ori xori shli shrsi shrui scaling_extf scaling_truncf"
)
_FREE = frozenset(
    (
        *(f"arith.{name}" for name in _FREE_ARITH.split()),
        *("linalg.yield", "linalg.index", "iree_linalg_ext.yield", "iree_linalg_ext.index"),
        *("tensor.yield", "tensor.extract", "tensor.dim", "scf.yield", "math.isnan", "math.isinf", "math.isfinite"),
        *("cf.assert", "util.assume.int"),
    )
)
_COST = {
    **{f"arith.{name}": 1 for name in (*_FLOAT.split(), *_INTEGER.split())},
    **{f"math.{name}": 1 for name in (*_ROUNDING.split(), *_FUNCTIONS.split())},
    "math.fma": 2,
}
_TRANSCENDENTAL = frozenset(f"math.{name}" for name in _FUNCTIONS.split())


@dataclass(kw_only=True)
class Cost:
    """What something does, as plain sums.

    Attributes:
        operations: Arithmetic ones, on floats and on integers; a fused multiply-add is two, a function is one.
        integer: Of these, those on integers.
        transcendental: Of these, functions such as exp, tanh and rsqrt.
        moved_bytes: What goes to and from memory where every operation reads its operands and writes its results.
        unknown: Operations whose arithmetic is not known, by name.
    """

    operations: int = 0
    integer: int = 0
    transcendental: int = 0
    moved_bytes: int = 0
    unknown: Counter[str] = field(default_factory=Counter)

    def add(self, other: Cost, times: int = 1) -> None:
        """Add what another one says, so many times; unknown ones are listed once."""
        self.operations += other.operations * times
        self.integer += other.integer * times
        self.transcendental += other.transcendental * times
        self.moved_bytes += other.moved_bytes * times
        self.unknown += other.unknown


def cost_of(op: Any) -> Cost:
    """Of one operation on scalars, or on each element where it is on tensors; its regions are not looked at."""
    name = op.name
    if name in _FREE or _is_address(op):
        return Cost()
    if name not in _COST:
        return Cost(unknown=Counter({name: 1}))
    operations = _COST[name]
    return Cost(
        operations=operations,
        integer=operations if _is_integer(op.operands[0].type) else 0,
        transcendental=operations if name in _TRANSCENDENTAL else 0,
    )


def cost_of_body(op: Any) -> Cost:
    """Of all operations in an operation's regions, each once; of a branch, both sides."""
    total = Cost()
    for inner in nested(op):
        if not inner.regions:
            total.add(cost_of(inner))
        elif inner.name != "scf.if":
            total.unknown[inner.name] += 1
    return total


def nested(op: Any) -> Iterator[Any]:
    """All operations in an operation's regions, at any depth."""
    for region in op.regions:
        for block in region:
            for inner in block.operations:
                yield inner.operation
                yield from nested(inner.operation)


def _is_address(op: Any) -> bool:
    """Whether it computes with indices, which are no data."""
    return len(op.operands) > 0 and all(isinstance(one.type, ir.IndexType) for one in op.operands)


def _is_integer(kind: Any) -> bool:
    element = kind.element_type if hasattr(kind, "element_type") else kind
    return isinstance(element, ir.IntegerType)
