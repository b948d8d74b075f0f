"""Whatever the program of concatenations, sharing buffers changes no bit of its results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import accumulate

import numpy as np
from hypothesis import event, given, settings
from hypothesis import strategies as st

from harness.rewrites.share_concat import share_concat
from tests.rewrites.concats import interpret, program
from tests.rewrites.tools import Array, assert_left_alone, printed, rewritten

_LARGEST = 30  # elements along an axis


@dataclass
class _Writer:
    """A function in short notation while it is written.

    Attributes:
        shapes: Of all values, the arguments first; value 3 is named v3.
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
        self.lines.append(f"v{len(self.shapes) - 1} = {operation}")
        return len(self.shapes) - 1

    def pad(self, value: int, constant: str, crop: Sequence[int]) -> list[int]:
        """A padded value, and the first elements of it along every axis."""
        shape = np.add(self.shapes[value], np.add(self.low, self.high)).tolist()
        padded = self.add(f"pad v{value} {constant} {_join(self.low)} {_join(self.high)}", shape)
        return [padded, self.add(f"extract v{padded} {_join([0] * len(crop))} {_join(crop, 'x')}", crop)]

    def concat(self, parts: Sequence[int], axis: int) -> int:
        return self.add(f"concat {axis} {' '.join(f'v{part}' for part in parts)}", self.joined(parts, axis))

    def chain(self, parts: Sequence[int], axis: int, places: Sequence[tuple[int, int]]) -> int:
        """Insert values at offsets, one after the other."""
        shape = self.joined(parts, axis)
        result = self.add(f"empty {_join(shape, 'x')}", shape)
        for part, place in places:
            offsets = [place if number == axis else 0 for number in range(len(shape))]
            result = self.add(f"insert v{part} v{result} {_join(offsets)}", shape)
        return result

    def joined(self, parts: Sequence[int], axis: int) -> list[int]:
        """The shape of the parts side by side."""
        shape = list(self.shapes[parts[0]])
        shape[axis] = sum(self.shapes[part][axis] for part in parts)
        return shape

    def alike(self, value: int, axis: int) -> list[int]:
        """The values that can be joined with one along an axis."""
        kinds = [(*shape[:axis], *shape[axis + 1 :]) for shape in self.shapes]
        return [other for other in self.whole if kinds[other] == kinds[value]]


def _join(numbers: Sequence[int], separator: str = ",") -> str:
    return separator.join(map(str, numbers))


@st.composite
def programs(draw: st.DrawFn) -> tuple[str, list[Array]]:
    """Squares, pads, dense blocks and concatenations, many of the parts of an earlier one with some more or fewer.

    All pads are alike but for the constant, and what was padded is cropped to go on with.

    Returns:
        The module, and arguments for its function.
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
            writer.whole.append(writer.add(f"mulf v{value} v{value}", writer.shapes[value]))
        elif what == "pad":
            writer.whole += writer.pad(value, draw(st.sampled_from(["zero", "one"])), writer.shapes[value])
        elif what == "block":
            _add_block(draw, writer, value, axis)
        else:
            other_axis = draw(st.integers(0, rank - 1))
            parts, axis_of_parts = _choose_parts(draw, writer, what, value, draw(st.sampled_from([axis, other_axis])))
            _add_join(draw, writer, parts, axis_of_parts)
    results = draw(st.lists(st.sampled_from(writer.whole), min_size=1, unique=True))
    head = " ".join(f"v{number}:{_join(shape, 'x')}" for number, shape in enumerate(writer.shapes[: len(sizes)]))
    text = "\n".join([f"main {head}", *writer.lines, f"return {' '.join(f'v{result}' for result in results)}"])
    rng = np.random.default_rng(0)
    return program(text), [rng.uniform(-1, 1, shape).astype(np.float32) for shape in writer.shapes[: len(sizes)]]


def _add_block(draw: st.DrawFn, writer: _Writer, value: int, axis: int) -> None:
    """Joins of a value and of what was computed from the join before, the newest last or first; each is padded."""
    parts = [value, draw(st.sampled_from(writer.alike(value, axis)))]
    newest_first = draw(st.booleans())
    for _ in range(draw(st.integers(1, 3))):
        joined = _add_join(draw, writer, parts, axis)
        if joined is None:
            return
        padded, cropped = writer.pad(joined, "zero", writer.shapes[value])
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


def _add_join(draw: st.DrawFn, writer: _Writer, parts: list[int], axis: int) -> int | None:
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


@settings(max_examples=60)
@given(drawn=programs(), padding=st.booleans())
def test_the_results_are_the_same_and_nothing_is_left_to_share(drawn: tuple[str, list[Array]], padding: bool) -> None:
    """By an interpreter to which unwritten memory is NaN: a slice that is read too early, or garbage, would show."""
    before, arguments = drawn
    share = partial(share_concat, padding=padding)
    after, (matched,) = rewritten(before, share)
    event(f"shares: {matched > 0}, with a frame: {'linalg.fill' in after}")
    expected, results = (interpret(text, arguments) for text in (before, after))
    assert [result.tobytes() for result in results] == [result.tobytes() for result in expected]
    assert_left_alone(after, share)
    if not matched:
        assert after == printed(before)
