"""Whatever the program of concatenations, sharing buffers changes no bit of its results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import accumulate
from typing import Any

import numpy as np
from hypothesis import event, given, settings
from hypothesis import strategies as st
from iree.compiler import ir

from harness.rewrites.share_concat import share_concat
from tests.rewrites import tools
from tests.rewrites.tools import Array, assert_left_alone, printed, rewritten

# ------------------------------------------------------------------------------------------------------- an interpreter


def interpret(text: str, arguments: Sequence[Array]) -> list[Array]:
    """The results of a module's only function; what was never written is NaN."""
    with ir.Context():
        module = ir.Module.parse(text)
        block = module.body.operations[0].regions[0].blocks[0]
        values: dict[ir.Value, Any] = dict(zip(block.arguments, arguments, strict=True))
        for view in block.operations:
            operation = view.operation
            operands = [values[operand] for operand in operation.operands]
            if operation.name == "func.return":
                return operands
            values[operation.result] = _MEANINGS[operation.name](operation, *operands)
    raise ValueError("the function does not return")


def _window(operation: ir.Operation) -> tuple[slice, ...]:
    offsets, sizes = operation.attributes["static_offsets"], operation.attributes["static_sizes"]
    return tuple(slice(offset, offset + size) for offset, size in zip(offsets, sizes, strict=True))


def _insert(operation: ir.Operation, part: Array, base: Array) -> Array:
    whole: Array = base.copy()
    whole[_window(operation)] = part
    return whole


def _pad(operation: ir.Operation, inner: Array) -> Array:
    low, high = operation.attributes["static_low"], operation.attributes["static_high"]
    value = operation.regions[0].blocks[0].operations[0].operands[0].owner.attributes["value"].value
    padded: Array = np.pad(inner, list(zip(low, high, strict=True)), constant_values=value)
    return padded


_MEANINGS: dict[str, Callable[..., Any]] = {
    "arith.constant": lambda operation: np.float32(operation.attributes["value"].value),
    "arith.addf": lambda _, left, right: left + right,
    "arith.mulf": lambda _, left, right: left * right,
    "linalg.fill": lambda _, value, base: np.full_like(base, value),
    "tensor.concat": lambda operation, *parts: np.concatenate(parts, operation.attributes["dim"].value),
    "tensor.empty": lambda operation: np.full(operation.result.type.shape, np.nan, np.float32),
    "tensor.extract_slice": lambda operation, whole: whole[_window(operation)],
    "tensor.insert_slice": _insert,
    "tensor.pad": _pad,
}

# ------------------------------------------------------------------------------------------------------ random programs

_LARGEST = 30  # elements along an axis


@dataclass(frozen=True, kw_only=True)
class Program:
    """A module, and arguments for its function `main`."""

    text: str
    arguments: tuple[Array, ...]


@dataclass
class _Writer:
    """A function's body while it is written.

    Attributes:
        shapes: Of all values, the arguments first; a value's name is its number.
        low: What every pad adds before the first element.
        high: What every pad adds after the last element.
        lines: The operations.
        whole: The values that have no gaps.
        joins: The axis and the parts of every concatenation.
    """

    shapes: list[tuple[int, ...]]
    low: Sequence[int]
    high: Sequence[int]
    lines: list[str] = field(default_factory=list)
    whole: list[int] = field(default_factory=list)
    joins: list[tuple[int, list[int]]] = field(default_factory=list)

    def add(self, operation: str, shape: Sequence[int]) -> int:
        """Append one operation; its result."""
        self.shapes.append(tuple(shape))
        self.lines.append(f"  %{len(self.shapes) - 1} = {operation}")
        return len(self.shapes) - 1

    def square(self, value: int) -> int:
        kind = _kind(self.shapes[value])
        return self.add(f"arith.mulf %{value}, %{value} : {kind}", self.shapes[value])

    def pad(self, value: int, constant: str, crop: Sequence[int]) -> list[int]:
        """A padded value, and the first elements of it along every axis."""
        shape = [
            below + size + above for below, size, above in zip(self.low, self.shapes[value], self.high, strict=True)
        ]
        indices = ", ".join(f"%i{number}: index" for number in range(len(shape)))
        padded = self.add(
            f"tensor.pad %{value} low{list(self.low)} high{list(self.high)} {{\n  ^bb0({indices}):\n"
            f"    tensor.yield {constant} : f32\n  }} : {_kind(self.shapes[value])} to {_kind(shape)}",
            shape,
        )
        first = f"{[0] * len(crop)} {list(crop)} {[1] * len(crop)} : {_kind(shape)} to {_kind(crop)}"
        return [padded, self.add(f"tensor.extract_slice %{padded}{first}", crop)]

    def concat(self, parts: Sequence[int], axis: int) -> int:
        names, kinds = ", ".join(f"%{part}" for part in parts), ", ".join(_kind(self.shapes[part]) for part in parts)
        shape = self.joined(parts, axis)
        return self.add(f"tensor.concat dim({axis}) {names} : ({kinds}) -> {_kind(shape)}", shape)

    def chain(self, parts: Sequence[int], axis: int, places: Sequence[tuple[int, int]]) -> int:
        """Insert values at offsets, one after the other."""
        shape = self.joined(parts, axis)
        result = self.add(f"tensor.empty() : {_kind(shape)}", shape)
        for part, place in places:
            sizes = self.shapes[part]
            offsets = [place if number == axis else 0 for number in range(len(shape))]
            result = self.add(
                f"tensor.insert_slice %{part} into %{result}{offsets} {list(sizes)} {[1] * len(sizes)} "
                f": {_kind(sizes)} into {_kind(shape)}",
                shape,
            )
        return result

    def joined(self, parts: Sequence[int], axis: int) -> list[int]:
        """The shape of the parts side by side."""
        shape = list(self.shapes[parts[0]])
        shape[axis] = sum(self.shapes[part][axis] for part in parts)
        return shape

    def alike(self, value: int, axis: int) -> list[int]:
        """The values that can be joined with one along an axis."""
        kinds = [_without(shape, axis) for shape in self.shapes]
        return [other for other in self.whole if kinds[other] == kinds[value]]

    def text(self, arguments: int, results: Sequence[int]) -> str:
        kinds = [_kind(self.shapes[result]) for result in results]
        return "\n".join(
            [
                f"func.func @main({', '.join(f'%{n}: {_kind(self.shapes[n])}' for n in range(arguments))})"
                f" -> ({', '.join(kinds)}) {{",
                "  %zero = arith.constant 0.0 : f32",
                "  %one = arith.constant 1.0 : f32",
                *self.lines,
                f"  return {', '.join(f'%{result}' for result in results)} : {', '.join(kinds)}",
                "}",
            ]
        )


@st.composite
def programs(draw: st.DrawFn) -> Program:
    """Squares, pads, dense blocks and concatenations, many of the parts of an earlier one with some more or fewer.

    All pads are alike but for the constant, and what was padded is cropped to go on with.
    """
    rank = draw(st.integers(1, 4))
    axis = draw(st.integers(0, rank - 1))
    shape = draw(st.lists(st.integers(1, 3), min_size=rank, max_size=rank))
    sizes = draw(st.lists(st.integers(1, 3), min_size=1, max_size=3))
    low, high = (draw(st.lists(st.integers(0, 1), min_size=rank, max_size=rank)) for _ in range(2))
    if draw(st.integers(0, 3)):
        low[axis] = high[axis] = 0
    writer = _Writer([(*shape[:axis], size, *shape[axis + 1 :]) for size in sizes], low, high)
    writer.whole += range(len(sizes))
    for _ in range(draw(st.integers(1, 10))):
        value = draw(st.sampled_from(writer.whole))
        what = draw(st.sampled_from(["square", "pad", *["block"] * 4, "join", "grow", "shrink"]))
        if what == "square":
            writer.whole.append(writer.square(value))
        elif what == "pad":
            writer.whole += writer.pad(value, draw(st.sampled_from(["%zero", "%one"])), writer.shapes[value])
        elif what == "block":
            _add_block(draw, writer, value, axis)
        else:
            other_axis = draw(st.integers(0, rank - 1))
            parts, axis_of_parts = _choose_parts(draw, writer, what, value, draw(st.sampled_from([axis, other_axis])))
            _join(draw, writer, parts, axis_of_parts)
    results = draw(st.lists(st.sampled_from(writer.whole), min_size=1, unique=True))
    rng = np.random.default_rng(0)
    arguments = tuple(rng.uniform(-1, 1, writer.shapes[n]).astype(np.float32) for n in range(len(sizes)))
    return Program(text=writer.text(len(sizes), results), arguments=arguments)


def _add_block(draw: st.DrawFn, writer: _Writer, value: int, axis: int) -> None:
    """Joins of a value and of what was computed from the join before, the newest last or first; each is padded."""
    parts = [value, draw(st.sampled_from(writer.alike(value, axis)))]
    newest_first = draw(st.booleans())
    for _ in range(draw(st.integers(1, 3))):
        joined = _join(draw, writer, parts, axis)
        if joined is None:
            return
        padded, cropped = writer.pad(joined, "%zero", writer.shapes[value])
        writer.whole += [padded, cropped]
        parts = [cropped, *parts] if newest_first else [*parts, cropped]


def _choose_parts(draw: st.DrawFn, writer: _Writer, what: str, value: int, axis: int) -> tuple[list[int], int]:
    """A value with others, or the parts of an earlier join with some more, or some of them; and the axis."""
    if what == "join" or not writer.joins:
        return [value, *draw(st.lists(st.sampled_from(writer.alike(value, axis)), min_size=1, max_size=3))], axis
    axis, parts = draw(st.sampled_from(writer.joins))
    if what == "shrink":
        first = draw(st.integers(0, len(parts) - 2))
        return parts[first : draw(st.integers(first + 2, len(parts)))], axis
    more = st.lists(st.sampled_from(writer.alike(parts[0], axis)), max_size=2)
    return [*draw(more), *parts, *draw(more)], axis


def _join(draw: st.DrawFn, writer: _Writer, parts: list[int], axis: int) -> int | None:
    """Join the parts in one of the two ways, unless that grows too large."""
    if writer.joined(parts, axis)[axis] > _LARGEST:
        return None
    if draw(st.booleans()):
        result = writer.concat(parts, axis)
    else:
        result = writer.chain(parts, axis, draw(_places(writer, parts, axis)))
    writer.whole.append(result)
    writer.joins.append((axis, parts))
    return result


@st.composite
def _places(draw: st.DrawFn, writer: _Writer, parts: Sequence[int], axis: int) -> list[tuple[int, int]]:
    """Every part at its place, in any order; before that, maybe, a part somewhere: it will be overwritten."""
    sizes = [writer.shapes[part][axis] for part in parts]
    ends = list(accumulate(sizes))
    places = draw(st.permutations([(part, end - size) for part, end, size in zip(parts, ends, sizes, strict=True)]))
    if draw(st.integers(0, 4)) == 0:
        places = [(parts[0], draw(st.integers(0, ends[-1] - sizes[0]))), *places]
    return places


def _without(shape: Sequence[int], axis: int) -> tuple[int, ...]:
    return (*shape[:axis], *shape[axis + 1 :])


def _kind(shape: Sequence[int]) -> str:
    return f"tensor<{'x'.join(map(str, shape))}xf32>"


# --------------------------------------------------------------------------------------------------------------- tests


@settings(max_examples=80)
@given(program=programs(), padding=st.booleans())
def test_the_results_are_the_same(program: Program, padding: bool) -> None:
    """By an interpreter to which unwritten memory is NaN: a slice that is read too early, or garbage, would show."""
    text, (matched,) = rewritten(program.text, partial(share_concat, padding=padding))
    event(f"shares: {matched > 0}, with a frame: {'linalg.fill' in text}")
    before, after = interpret(program.text, program.arguments), interpret(text, program.arguments)
    assert [result.tobytes() for result in before] == [result.tobytes() for result in after]
    if not matched:
        assert text == printed(program.text)


@settings(max_examples=40)
@given(program=programs(), padding=st.booleans())
def test_nothing_is_left_to_share(program: Program, padding: bool) -> None:
    text, _ = rewritten(program.text, partial(share_concat, padding=padding))
    assert_left_alone(text, partial(share_concat, padding=padding))


@settings(max_examples=4)
@given(program=programs(), padding=st.booleans())
def test_the_results_are_the_same_compiled(program: Program, padding: bool) -> None:
    text, _ = rewritten(program.text, partial(share_concat, padding=padding))
    before, after = (tools.Program(one)(*program.arguments) for one in (program.text, text))
    assert [result.tobytes() for result in before] == [result.tobytes() for result in after]
