"""What one operation on tensors does: arithmetic, and the elements and bytes that it reads and writes; and its loops.

It runs under a toolchain's own Python, for harness.ir.child.
"""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from iree.compiler import ir
from iree.compiler._mlir_libs._mlirDialectsLinalg import get_indexing_maps  # the dialect's own module needs more

from harness.ir.sizes import Sizes, Unknown, inits, nested, segments

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
    """What something does, as plain sums."""

    operations: int = 0  # Arithmetic ones, on floats and on integers; a fused multiply-add is two, a function is one
    integer: int = 0  # Of these, those on integers
    transcendental: int = 0  # Of these, functions such as exp, tanh and rsqrt
    footprint_bytes: int = (
        0  # What goes to and from memory where every operation reads its operands and writes its results
    )
    uncounted: Counter[str] = field(default_factory=Counter)  # Operations whose arithmetic is not known, by name

    def add(self, other: "Cost", times: int = 1) -> None:
        """Add what another one says, so many times; unknown ones are listed once."""
        self.operations += other.operations * times
        self.integer += other.integer * times
        self.transcendental += other.transcendental * times
        self.footprint_bytes += other.footprint_bytes * times
        self.uncounted += other.uncounted


def cost_of(op: Any) -> Cost:
    """Of one operation on scalars, or on each element where it is on tensors; its regions are not looked at."""
    name = op.name
    computes_addresses = len(op.operands) > 0 and all(isinstance(value.type, ir.IndexType) for value in op.operands)
    if name in _FREE or computes_addresses:  # indices are no data
        return Cost()
    if name not in _COST:
        return Cost(uncounted=Counter({name: 1}))
    operations, kind = _COST[name], op.operands[0].type
    return Cost(
        operations=operations,
        integer=operations if isinstance(getattr(kind, "element_type", kind), ir.IntegerType) else 0,
        transcendental=operations if name in _TRANSCENDENTAL else 0,
    )


def cost_of_body(op: Any) -> Cost:
    """Of all operations in an operation's regions, each once; of a branch, both sides."""
    total = Cost()
    for inner in nested(op):
        if not inner.regions:
            total.add(cost_of(inner))
        elif inner.name != "scf.if":
            total.uncounted[inner.name] += 1
    return total


def is_inside(value: Any, op: Any) -> bool:
    """Whether a value is defined in an operation's regions."""
    owner = value.owner.owner if isinstance(value.owner, ir.Block) else value.owner
    while owner is not None and owner != op:
        owner = owner.operation.parent
    return owner is not None


# What only makes another view of its operand, or says something of it.
_VIEWS = frozenset(
    (
        *("tensor.empty", "tensor.splat", "tensor.cast", "tensor.bitcast", "tensor.dim", "tensor.rank"),
        *("tensor.expand_shape", "tensor.collapse_shape", "tensor.reshape", "tensor.extract_slice"),
        *("tensor.extract", "tensor.from_elements", "tensor.insert"),
        *("linalg.fill", "arith.constant", "linalg.yield"),
        *("hal.tensor.import", "hal.tensor.export", "hal.tensor.barrier", "hal.tensor.alias"),
    )
)
_VIEW_DIALECTS = ("util", "hal", "affine", "index", "cf", "ml_program")
# What moves data and computes nothing.
_MOVES = frozenset(
    (
        *("tensor.pad", "tensor.concat", "tensor.insert_slice", "linalg.pack", "linalg.unpack"),
        *("iree_linalg_ext.gather", "iree_linalg_ext.im2col", "iree_linalg_ext.pack", "iree_linalg_ext.unpack"),
    )
)
_EMPTY = ("tensor.empty", "linalg.fill", "tensor.splat")


def cost_of_tensors(op: Any, sizes: Sizes) -> Cost:
    """Of one operation outside of loops and branches, its own regions included."""
    name = op.name
    if name in _VIEWS or name.partition(".")[0] in _VIEW_DIALECTS:
        return Cost()
    if not any(isinstance(value.type, ir.ShapedType) for value in (*op.operands, *op.results)):
        return Cost(uncounted=Counter() if name.startswith(("arith.", "math.", "scf.")) else cost_of(op).uncounted)
    if name.startswith("linalg.") and (maps := maps_of(op)):
        return _structured(op, maps, sizes)
    cost = Cost()
    if name == "tensor.insert_slice":
        cost.footprint_bytes = 2 * _bytes(op.operands[0], sizes)
    else:
        cost.footprint_bytes = sum(_bytes(value, sizes) for value in (*_sources(op), *op.results))
    if name == "linalg.softmax":  # max, subtract, exp, sum, divide
        elements = sizes.elements(op.operands[0])
        cost.add(Cost(operations=5, transcendental=1), elements)
    elif name == "iree_linalg_ext.attention":
        cost.add(_attention(op, sizes))
    elif name.startswith(("arith.", "math.")):
        cost.add(cost_of(op), sizes.elements(op.results[0]))
    elif name not in _MOVES:
        cost.uncounted[name] += 1
    return cost


def gathered(value: Any, sizes: Sizes) -> int | None:
    """Elements of a tensor that is read in the bodies of other operations only, one by one; None: it is read whole."""
    total = 0
    for use in value.uses:
        reader = use.owner.operation
        holder = reader.parent.operation
        if reader.name != "tensor.extract" or not holder.name.startswith("linalg."):
            return None
        total += math.prod(loop_ranges(maps_of(holder), list(map(sizes.shape, holder.operands))).values())
    return min(total, sizes.elements(value))


def is_uniform(value: Any) -> bool:
    """Whether a tensor has no values yet, or one everywhere, so that nothing is read from memory."""
    if isinstance(value, ir.BlockArgument):
        return False
    op = value.owner.operation
    if op.name == "arith.constant":
        attribute = op.attributes["value"]
        return isinstance(attribute, ir.DenseElementsAttr) and bool(attribute.is_splat)
    return op.name in _EMPTY


def _structured(op: Any, maps: Sequence[Any], sizes: Sizes) -> Cost:
    operands = list(op.operands)
    ranges = loop_ranges(maps, [sizes.shape(operand) for operand in operands])
    if len(ranges) < maps[0].n_dims:
        raise Unknown(f"the extent of a loop of {op.name} is not the size of any operand")
    cost = Cost()
    iterations = math.prod(ranges.values())
    cost.add(cost_of_body(op), iterations)
    arguments = list(op.regions[0].blocks[0].arguments)
    outputs = inits(op)
    for operand, affine_map, argument in zip(operands, maps, arguments, strict=True):
        if isinstance(operand.type, ir.ShapedType) and any(argument.uses) and not is_uniform(operand):
            cost.footprint_bytes += bytes_of(touched(affine_map, ranges), operand.type)
    for output, affine_map in zip(outputs, maps[len(maps) - len(outputs) :], strict=True):
        cost.footprint_bytes += bytes_of(touched(affine_map, ranges), output.type)
    for inner in nested(op):
        if inner.name == "tensor.extract":
            source = inner.operands[0]
            cost.footprint_bytes += bytes_of(min(iterations, sizes.elements(source)), source.type)
    return cost


def maps_of(op: Any) -> list[Any]:
    """Its indexing maps; [] where it has none."""
    return [attribute.value for attribute in get_indexing_maps(op) or ()]


def _attention(op: Any, sizes: Sizes) -> Cost:
    """Two contractions, and between them the scale and a softmax over the keys (max, subtract, exp, sum, divide)."""
    maps = [attribute.value for attribute in op.attributes["indexing_maps"]]
    ranges = loop_ranges(maps, [sizes.shape(operand) for operand in op.operands])
    query, key, value, *_, output = (set().union(*map(dims_of, affine_map.results)) for affine_map in maps)
    scores = math.prod(ranges[dim] for dim in (query | key) & (value | output))
    products = math.prod(ranges[dim] for dim in query | key) + math.prod(ranges[dim] for dim in value | output)
    return Cost(operations=2 * products + 6 * scores, transcendental=scores)


def _sources(op: Any) -> Iterator[Any]:
    """Tensors that an operation reads; of one in destination style, without what it writes to."""
    read = segments(op)[0]
    if op.name.startswith(("linalg.", "iree_linalg_ext.")) and len(read) == len(op.operands):
        read = read[: len(read) - len(op.results)]
    return (value for value in read if isinstance(value.type, ir.ShapedType) and not is_uniform(value))


def _bytes(value: Any, sizes: Sizes) -> int:
    return bytes_of(sizes.elements(value), value.type) if isinstance(value.type, ir.ShapedType) else 0


def element_bits(kind: Any) -> int:
    """Bits that IREE takes to store an element: a byte for i1, eight for an index."""
    if isinstance(kind, ir.ComplexType):
        return 2 * element_bits(kind.element_type)
    bits = 64 if isinstance(kind, ir.IndexType) else int(kind.width)
    return 8 if bits == 1 else bits


def bytes_of(elements: int, kind: Any) -> int:
    """Of so many elements of a tensor type, rounded up."""
    return -(-elements * element_bits(kind.element_type) // 8)


def loop_ranges(maps: Sequence[Any], shapes: Sequence[Sequence[int]]) -> dict[int, int]:
    """How often each loop of an iteration space runs, by its number: a size that it indexes by itself."""
    ranges: dict[int, int] = {}
    for affine_map, shape in zip(maps, shapes, strict=True):
        for expr, size in zip(affine_map.results, shape, strict=False):
            if isinstance(expr, ir.AffineDimExpr):
                ranges.setdefault(expr.position, size)
    return ranges


def touched(affine_map: Any, ranges: Mapping[int, int]) -> int:
    """How many elements a map reaches over an iteration space, at most."""
    spans = ((expr, _interval(expr, ranges)) for expr in affine_map.results)
    # An expression takes no more values than its span has, and no more than its loops have iterations.
    return math.prod(min(high - low + 1, math.prod(ranges[d] for d in dims_of(expr))) for expr, (low, high) in spans)


def _interval(expr: Any, ranges: Mapping[int, int]) -> tuple[int, int]:
    if isinstance(expr, ir.AffineDimExpr):
        return 0, max(ranges[expr.position] - 1, 0)
    if isinstance(expr, ir.AffineConstantExpr):
        value = int(expr.value)
        return value, value
    left, right = _interval(expr.lhs, ranges), _interval(expr.rhs, ranges)
    if isinstance(expr, ir.AffineAddExpr):
        return left[0] + right[0], left[1] + right[1]
    if isinstance(expr, ir.AffineMulExpr):
        corners = [a * b for a in left for b in right]
        return min(corners), max(corners)
    divisor = max(right[1], 1)
    if isinstance(expr, ir.AffineModExpr):
        return 0, min(divisor - 1, left[1])
    return left[0] // divisor, -(-left[1] // divisor)


def dims_of(expr: Any) -> set[int]:
    """The loops that an affine expression goes by."""
    if isinstance(expr, ir.AffineDimExpr):
        return {expr.position}
    if isinstance(expr, ir.AffineConstantExpr | ir.AffineSymbolExpr):
        return set()
    return dims_of(expr.lhs) | dims_of(expr.rhs)


_LOWERING, _PIPELINE = "lowering_config", "translation_info"
# What somebody before the compiler says of how an operation is lowered: it becomes the lowering configuration.
_ASKED = "compilation_info"
_UNKNOWN = -1


def functions(modules: Iterable[Any], _: str) -> list[list[dict[str, Any]]]:
    """Of each module the functions: name, pipeline, and the operations on tensors with loops, for tuning specs.

    Of an operation, `computes` is its text without anything about lowering, and `matcher` has what a plugin asks for;
    both are "" where its body takes values from outside, which a matcher cannot say. Another operation that has a
    lowering configuration is there with its name and that alone.
    """
    return [[_function(op) for op in nested(module.operation) if op.name == "func.func"] for module in modules]


def _function(function: Any) -> dict[str, Any]:
    return {
        "name": ir.StringAttr(function.attributes["sym_name"]).value,
        "pipeline": _attribute(function, _PIPELINE),
        "operations": [found for op in nested(function) for found in _tiled(op)],
    }


def _tiled(op: Any) -> Iterator[dict[str, Any]]:
    configuration = _attribute(op, _LOWERING)
    known = {"op": op.name, "configuration": configuration}
    maps = maps_of(op) if op.name.startswith("linalg.") else []
    if not maps or not op.results or not all(isinstance(value.type, ir.ShapedType) for value in op.results):
        if configuration:
            yield known
        return
    shapes = [_sizes_of(operand.type) for operand in op.operands]
    ranges = loop_ranges(maps, shapes)
    written = maps[len(op.operands) - 1]
    yield known | {
        "loops": [[ranges.get(loop, _UNKNOWN), kind] for loop, kind in enumerate(_loop_kinds(op, written))],
        "operands": [str(operand.type) for operand in op.operands],
        "element_bits": element_bits(op.results[0].type.element_type),
        "innermost": _innermost(written),
        "matcher": _said(op, without=(_LOWERING,)),
        "computes": _said(op, without=(_LOWERING, _ASKED)),
    }


def _attribute(op: Any, attribute: str) -> str:
    return str(op.attributes[attribute]) if attribute in op.attributes else ""


def _sizes_of(kind: Any) -> tuple[int, ...]:
    if not isinstance(kind, ir.ShapedType):
        return ()
    return tuple(_UNKNOWN if kind.is_dynamic_dim(i) else kind.get_dim_size(i) for i in range(kind.rank))


def _loop_kinds(op: Any, written: Any) -> list[str]:
    """Of its loops. Of an operation with a name: what its output has none of is reduced."""
    if "iterator_types" in op.attributes:
        return ["parallel" if "parallel" in str(kind) else "reduction" for kind in op.attributes["iterator_types"]]
    parallel = {expr.position for expr in written.results if isinstance(expr, ir.AffineDimExpr)}
    return ["parallel" if loop in parallel else "reduction" for loop in range(written.n_dims)]


def _innermost(written: Any) -> int:
    """The loop of the output's last dimension; of an output of one element, the last loop."""
    results = list(written.results)
    if results and isinstance(results[-1], ir.AffineDimExpr):
        return int(results[-1].position)
    return int(written.n_dims) - 1


def _said(op: Any, *, without: tuple[str, ...]) -> str:
    """The text of an operation on %arg0, %arg1, ..., without attributes of these names."""
    if not all(is_inside(value, op) for inner in nested(op) for value in inner.operands):
        return ""
    holder = ir.Operation.create("harness.holder", regions=1)
    block = holder.regions[0].blocks.append(*(operand.type for operand in op.operands))
    with ir.InsertionPoint(block):
        copy = op.clone()
    for position, argument in enumerate(block.arguments):
        copy.operands[position] = argument
    for name in without:
        if name in copy.attributes:
            del copy.attributes[name]
    return str(copy.get_asm(assume_verified=True, use_local_scope=True))
