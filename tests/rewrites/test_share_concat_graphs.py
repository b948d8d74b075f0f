"""Whatever the program of concatenations, sharing buffers changes no bit of its results."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import accumulate

from hypothesis import event, given, settings
from hypothesis import strategies as st

from harness.rewrites.share_concat import share_concat
from tests.programs import Shape, Writer, interpret
from tests.rewrites.tools import Array, argument_shapes, assert_left_alone, printed, random, rewritten

_LARGEST = 30  # elements along an axis


class _Graph(Writer):
    """A program of concatenations while it is drawn; all its pads are alike but for the constant.

    Attributes:
        whole: The values that have no gaps.
        joins: The axis and the parts of every concatenation.
    """

    def __init__(self, draw: st.DrawFn, shapes: Sequence[Shape], low: Sequence[int], high: Sequence[int]) -> None:
        super().__init__(" ".join(f"v{number}:{_join(shape, 'x')}" for number, shape in enumerate(shapes)))
        self.draw, self.padding = draw, f"{_join(low)} {_join(high)}"
        self.whole = list(self.shapes)
        self.joins: list[tuple[int, list[str]]] = []

    def pad(self, value: str, constant: str, crop: Shape) -> list[str]:
        """A padded value, and the first elements of it along every axis, to go on with."""
        padded = self.add(f"pad {value} {constant} {self.padding}")
        made = [padded, self.add(f"extract {padded} {_join([0] * len(crop))} {_join(crop, 'x')}")]
        self.whole += made
        return made

    def join(self, parts: list[str], axis: int) -> str | None:
        """Join the parts in one of the two ways, unless that grows too large."""
        sizes = [self.shapes[part][axis] for part in parts]
        if sum(sizes) > _LARGEST:
            return None
        if self.draw(st.booleans()):
            result = self.add(f"concat {axis} {' '.join(parts)}")
        else:
            shape = list(self.shapes[parts[0]])
            shape[axis] = sum(sizes)
            result = self.add(f"empty {_join(shape, 'x')}")
            for part, place in self._places(parts, sizes):
                offsets = [place if number == axis else 0 for number in range(len(shape))]
                result = self.add(f"insert {part} {result} {_join(offsets)}")
        self.whole.append(result)
        self.joins.append((axis, parts))
        return result

    def _places(self, parts: Sequence[str], sizes: Sequence[int]) -> list[tuple[str, int]]:
        """Every part at its place, in any order; before that, maybe, a part somewhere: it will be overwritten."""
        ends = list(accumulate(sizes))
        offsets = [end - size for end, size in zip(ends, sizes, strict=True)]
        places = self.draw(st.permutations(list(zip(parts, offsets, strict=True))))
        if self.draw(st.integers(0, 4)) == 0:
            places = [(parts[0], self.draw(st.integers(0, ends[-1] - sizes[0]))), *places]
        return places

    def alike(self, value: str, axis: int) -> list[str]:
        """The values that can be joined with one along an axis."""
        kinds = {name: (*shape[:axis], *shape[axis + 1 :]) for name, shape in self.shapes.items()}
        return [other for other in self.whole if kinds[other] == kinds[value]]

    def block(self, value: str, axis: int) -> None:
        """Joins of a value and of what was computed from the join before, the newest last or first; each is padded."""
        parts = [value, self.draw(st.sampled_from(self.alike(value, axis)))]
        newest_first = self.draw(st.booleans())
        for _ in range(self.draw(st.integers(1, 3))):
            joined = self.join(parts, axis)
            if joined is None:
                return
            _, cropped = self.pad(joined, "zero", self.shapes[value])
            parts = [cropped, *parts] if newest_first else [*parts, cropped]

    def choose_parts(self, what: str, value: str, axis: int) -> tuple[list[str], int]:
        """A value with others, or the parts of an earlier join with some more, or some of them; and the axis."""
        draw = self.draw
        if what == "join" or not self.joins:
            return [value, *draw(st.lists(st.sampled_from(self.alike(value, axis)), min_size=1, max_size=3))], axis
        axis, parts = draw(st.sampled_from(self.joins))
        if what == "shrink":
            first = draw(st.integers(0, len(parts) - 2))
            return parts[first : draw(st.integers(first + 2, len(parts)))], axis
        more = st.lists(st.sampled_from(self.alike(parts[0], axis)), max_size=2)
        return [*draw(more), *parts, *draw(more)], axis


def _join(numbers: Sequence[int], separator: str = ",") -> str:
    return separator.join(map(str, numbers))


@st.composite
def programs(draw: st.DrawFn) -> str:
    """Squares, pads, dense blocks and concatenations, many of the parts of an earlier one with some more or fewer."""
    rank = draw(st.integers(1, 4))
    axis = draw(st.integers(0, rank - 1))
    shape = draw(st.lists(st.integers(1, 3), min_size=rank, max_size=rank))
    sizes = draw(st.lists(st.integers(1, 3), min_size=1, max_size=3))
    low, high = (draw(st.lists(st.integers(0, 1), min_size=rank, max_size=rank)) for _ in range(2))
    if draw(st.integers(0, 3)):
        low[axis] = high[axis] = 0
    graph = _Graph(draw, [(*shape[:axis], size, *shape[axis + 1 :]) for size in sizes], low, high)
    for _ in range(draw(st.integers(1, 10))):
        value = draw(st.sampled_from(graph.whole))
        what = draw(st.sampled_from(["square", "pad", *["block"] * 4, "join", "grow", "shrink"]))
        if what == "square":
            graph.whole.append(graph.add(f"mulf {value} {value}"))
        elif what == "pad":
            graph.pad(value, draw(st.sampled_from(["zero", "one"])), graph.shapes[value])
        elif what == "block":
            graph.block(value, axis)
        else:
            graph.join(*graph.choose_parts(what, value, draw(st.sampled_from([axis, draw(st.integers(0, rank - 1))]))))
    return graph.module(draw(st.lists(st.sampled_from(graph.whole), min_size=1, unique=True)))


@settings(max_examples=60)
@given(before=programs(), padding=st.booleans())
def test_the_results_are_the_same_and_nothing_is_left_to_share(before: str, padding: bool) -> None:
    """By an interpreter to which unwritten memory is NaN: a slice that is read too early, or garbage, would show."""
    share = partial(share_concat, padding=padding)
    after, (matched,) = rewritten(before, share)
    event(f"shares: {matched > 0}, with a frame: {'linalg.fill' in after}")
    arguments: list[Array] = random(argument_shapes(before))
    expected, results = (interpret(text, arguments) for text in (before, after))
    assert [result.tobytes() for result in results] == [result.tobytes() for result in expected]
    assert_left_alone(after, share)
    if not matched:
        assert after == printed(before)
