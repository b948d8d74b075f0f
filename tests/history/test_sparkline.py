"""A series in one line of text."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from harness.history.sparkline import sparkline


def test_a_step_is_seen_and_marked() -> None:
    assert sparkline([1.0] * 5 + [2.0] * 5, [5], 60) == ("▁▁▁▁▁█████", "     ^")


def test_a_level_series_is_a_level_line() -> None:
    assert sparkline([3.0, 3.0, 3.0], [], 60) == ("▁▁▁", "")


def test_a_spike_does_not_flatten_everything_else() -> None:
    values = [1.0 + 0.01 * (place % 2) for place in range(200)]
    values[77] = 1000.0

    assert set(sparkline(values, [], 200)[0]) >= {"▁", "█"}


def test_nothing_is_no_line() -> None:
    assert sparkline([], [], 60) == ("", "")


@given(st.lists(st.floats(1e-3, 1e9), min_size=1, max_size=300), st.integers(1, 80), st.data())
def test_it_fits_and_every_change_has_its_mark(values: list[float], width: int, data: st.DataObject) -> None:
    change = data.draw(st.integers(0, len(values) - 1))

    line, marks = sparkline(values, [change], width)

    assert 1 <= len(line) <= min(width, len(values))
    assert marks.count("^") == 1
    assert len(marks) <= len(line)
    assert marks.index("^") == min(change * len(line) // len(values), len(line) - 1) or len(values) > len(line)
