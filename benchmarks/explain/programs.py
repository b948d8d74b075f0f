"""Programs of ten pieces that have nothing to do with each other, each with a knob that is known to change it alone.

A piece has an argument and a result of its own, so that nothing is fused across pieces, and shapes of its own, so that
the compiler calls its dispatches by another name than those of the others.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

# So long that it hides how the processor begins an element before the last one has ended. Divided by 20 it is a
# multiple of 16: with 1.05 times as many, no unrolled loop has a rest.
LOOP = 3200
# How often a piece of a row of dispatches runs the same one.
ROW = 20

_CONSTANTS = """\
  %none = arith.constant 0 : index
  %next = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %half = arith.constant 0.5 : f32
  %term = arith.constant 0.001 : f32
"""


@dataclass(frozen=True, kw_only=True)
class Piece:
    """A part of a program that is compiled to a dispatch, or to several.

    Attributes:
        shapes: Of its arguments, which are called `%ID_a0`, `%ID_a1`, ...
        value: Of which its arguments are full.
        result: Its result's name; `shapes[0]` is its shape too.
        dispatches: Shell patterns of the names that the compiler gives to its dispatches, without their numbers.
    """

    shapes: tuple[str, ...]
    body: str
    result: str
    dispatches: tuple[str, ...]
    value: float = 0.5


@dataclass(frozen=True, kw_only=True)
class Program:
    """MLIR whose function `main` takes these inputs.

    Attributes:
        inputs: As a suite has them.
    """

    mlir: str
    inputs: list[dict[str, Any]] = field(default_factory=list)


def program(pieces: Sequence[Piece]) -> Program:
    """One function that computes all pieces, in their order."""
    arguments, results, bodies, inputs = [], [], [], list[dict[str, Any]]()
    for number, piece in enumerate(pieces):
        name = f"p{number}"
        arguments += [f"%{name}_a{place}: {_tensor(shape)}" for place, shape in enumerate(piece.shapes)]
        results.append((piece.result.replace("ID", name), _tensor(piece.shapes[0])))
        bodies.append(piece.body.replace("ID", name))
        inputs += [{"shape": [*map(int, shape.split("x"))], "value": piece.value} for shape in piece.shapes]
    kinds = ", ".join(kind for _, kind in results)
    values = ", ".join(value for value, _ in results)
    return Program(
        mlir=f"func.func @main({', '.join(arguments)}) -> ({kinds}) {{\n{_CONSTANTS}{''.join(bodies)}"
        f"  return {values} : {kinds}\n}}\n",
        inputs=inputs,
    )


def _tensor(shape: str) -> str:
    return f"tensor<{shape}xf32>"


# --- pieces of one dispatch, whose loop may be longer ---


def loop(size: int, work: float = 1.0, factor: float = 0.999) -> Piece:
    """Every element goes through a chain of multiplications and additions, `work` times as long as it is else.

    Args:
        factor: Of the multiplications, which makes other code of the same work.
    """
    shape = f"{size}"
    return Piece(
        shapes=(shape,),
        result="%ID_result",
        dispatches=(f"elementwise_{size}_f32",),
        body=f"""\
  %ID_to = arith.constant {round(LOOP * work)} : index
  %ID_factor = arith.constant {factor} : f32
  %ID_empty = tensor.empty() : {_tensor(shape)}
  %ID_result = linalg.generic {{indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>],
                               iterator_types = ["parallel"]}}
      ins(%ID_a0 : {_tensor(shape)}) outs(%ID_empty : {_tensor(shape)}) {{
  ^bb0(%in: f32, %out: f32):
    %last = scf.for %i = %none to %ID_to step %next iter_args(%y = %in) -> f32 {{
      %scaled = arith.mulf %y, %ID_factor : f32
      %moved = arith.addf %scaled, %term : f32
      scf.yield %moved : f32
    }}
    linalg.yield %last : f32
  }} -> {_tensor(shape)}
""",
    )


# --- pieces that run one dispatch again and again ---


def _row(step: str, shapes: tuple[str, ...], dispatches: tuple[str, ...], work: float, value: float = 0.5) -> Piece:
    """A row of equal steps, each of which makes `%ID_yNEXT` of `%ID_yLAST`; the first takes the first argument."""
    steps = round(ROW * work)
    body = "".join(step.replace("NEXT", f"{number + 1}").replace("LAST", f"{number}") for number in range(steps))
    return Piece(
        shapes=shapes,
        body=body.replace("%ID_y0 ", "%ID_a0 "),
        result=f"%ID_y{steps}",
        dispatches=dispatches,
        value=value,
    )


def matmuls(rows: int, width: int, work: float = 1.0) -> Piece:
    """Products with a square matrix, each of the one before it; elements stay what they are."""
    shapes = (f"{rows}x{width}", f"{width}x{width}")
    step = _product("%ID_yNEXT", *map(_tensor, shapes))
    return _row(step, shapes, (_matmul(rows, width),), work, value=1 / width)


def biased_matmuls(*, split: bool) -> Piece:
    """The same, with an addition to each product, in its dispatch or behind a barrier in one of its own.

    Its tensors are small: where a call takes a megabyte more of memory, all that touches it first takes longer.
    """
    rows, width = 64, 96
    shapes = (f"{rows}x{width}", f"{width}x{width}", f"{rows}x{width}")
    kind, square, _ = map(_tensor, shapes)
    same, added = "affine_map<(i, j) -> (i, j)>", "%ID_bNEXT" if split else "%ID_pNEXT"
    step = f"""\
{_product("%ID_pNEXT", kind, square)}\
{f"  %ID_bNEXT = util.optimization_barrier %ID_pNEXT : {kind}" if split else ""}
  %ID_oNEXT = tensor.empty() : {kind}
  %ID_yNEXT = linalg.generic {{indexing_maps = [{same}, {same}, {same}], iterator_types = ["parallel", "parallel"]}}
      ins({added}, %ID_a2 : {kind}, {kind}) outs(%ID_oNEXT : {kind}) {{
  ^bb0(%left: f32, %right: f32, %out: f32):
    %sum = arith.addf %left, %right : f32
    linalg.yield %sum : f32
  }} -> {kind}
"""
    dispatches = (_matmul(rows, width), f"elementwise_{rows * width}_f32")
    return _row(step, shapes, dispatches, 1.0, value=1 / width)


def _product(result: str, kind: str, square: str) -> str:
    return f"""\
  %ID_eNEXT = tensor.empty() : {kind}
  %ID_fNEXT = linalg.fill ins(%zero : f32) outs(%ID_eNEXT : {kind}) -> {kind}
  {result} = linalg.matmul ins(%ID_yLAST , %ID_a1 : {kind}, {square}) outs(%ID_fNEXT : {kind}) -> {kind}
"""


def _matmul(rows: int, width: int) -> str:
    return f"matmul_{rows}x{width}x{width}_f32"


def softmaxes(work: float = 1.0) -> Piece:
    """Softmaxes, each of the one before it."""
    kind = _tensor("8x64")
    step = f"""\
  %ID_eNEXT = tensor.empty() : {kind}
  %ID_yNEXT = linalg.softmax dimension(1) ins(%ID_yLAST : {kind}) outs(%ID_eNEXT : {kind}) -> {kind}
"""
    return _row(step, ("8x64",), ("softmax_8x64*", "*_8x64*"), work)


# --- pieces that a flag or a plugin changes ---


def convolution() -> Piece:
    """A 3x3 convolution in the order of channels, height and width, with padding around the image."""
    image, padded, weights = _tensor("1x16x32x32"), _tensor("1x16x34x34"), _tensor("16x16x3x3")
    return Piece(
        shapes=("1x16x32x32",),
        result="%ID_result",
        dispatches=(
            "conv*",
            "*im2col*",
            "matmul*_16x*",
            "matmul*x144_f32",
            "transpose*",
            "slow_memcpy*",
            "*32x32x16*",
            "*16x32x32*",
        ),
        body=f"""\
  %ID_weights = arith.constant dense<0.01> : {weights}
  %ID_padded = tensor.pad %ID_a0 low[0, 0, 1, 1] high[0, 0, 1, 1] {{
  ^bb0(%n: index, %c: index, %h: index, %w: index):
    tensor.yield %zero : f32
  }} : {image} to {padded}
  %ID_empty = tensor.empty() : {image}
  %ID_filled = linalg.fill ins(%zero : f32) outs(%ID_empty : {image}) -> {image}
  %ID_result = linalg.conv_2d_nchw_fchw {{dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>}}
      ins(%ID_padded, %ID_weights : {padded}, {weights}) outs(%ID_filled : {image}) -> {image}
""",
    )


def long_sum() -> Piece:
    """The sums of rows that are long enough to be added up in vectors."""
    kind = _tensor("24x8192")
    maps = "[affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>]"
    return Piece(
        shapes=("24", "24x8192"),
        result="%ID_result",
        dispatches=("reduction_24x8192_f32",),
        body=f"""\
  %ID_empty = tensor.empty() : {_tensor("24")}
  %ID_filled = linalg.fill ins(%zero : f32) outs(%ID_empty : {_tensor("24")}) -> {_tensor("24")}
  %ID_result = linalg.generic {{indexing_maps = {maps}, iterator_types = ["parallel", "reduction"]}}
      ins(%ID_a1 : {kind}) outs(%ID_filled : {_tensor("24")}) {{
  ^bb0(%in: f32, %sum: f32):
    %added = arith.addf %in, %sum : f32
    linalg.yield %added : f32
  }} -> {_tensor("24")}
""",
    )


# --- whole programs ---

PIECES: Mapping[str, Piece] = {
    **{f"loop of {size}": loop(size) for size in (6, 10, 12, 16, 24, 48)},
    "matmuls": matmuls(64, 64),
    "wide matmuls": matmuls(32, 128),
    "small matmuls": matmuls(96, 48),
    "softmaxes": softmaxes(),
}
# These hardly touch memory. Where the plan of transient memory changes, matmuls of the same code took 5 to 12 % more or
# less time, in every process: so it is not known of them that they stay as they are.
LOOPS: Mapping[str, Piece] = {f"loop of {size}": loop(size) for size in (6, 8, 10, 12, 14, 16, 18, 20, 24, 48)}


def ten(others: Mapping[str, Piece] | None = None, of: Mapping[str, Piece] = PIECES) -> Program:
    """Ten pieces, some of them replaced by others."""
    replaced = {**of, **(others or {})}
    assert replaced.keys() == of.keys()
    return program(list(replaced.values()))
