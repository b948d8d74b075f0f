"""Latency against memory: the front, and a picture in which every variant is named."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from harness.plots.canvas import LIGHT
from harness.plots.memory import MemoryPoint, draw_memory, memory_panels, on_front
from tests.plots.conftest import assert_readable, make_report, texts_of

MB = 2**20


def point(memory: float, latency: float) -> MemoryPoint:
    return MemoryPoint(label="x", memory_bytes=memory, latency_ns=latency, baseline=False)


@given(st.lists(st.builds(point, st.integers(0, 5), st.integers(1, 5)), min_size=1, max_size=12))
def test_a_point_is_on_the_front_exactly_if_none_beats_it(points: list[MemoryPoint]) -> None:
    for own in points:
        better = [
            other
            for other in points
            if (other.memory_bytes <= own.memory_bytes and other.latency_ns < own.latency_ns)
            or (other.memory_bytes < own.memory_bytes and other.latency_ns <= own.latency_ns)
        ]
        assert on_front(own, points) == (not better)
    assert any(on_front(own, points) for own in points)


def test_memory_is_the_schedules_where_that_is_known_and_else_the_devices_peak() -> None:
    times = {"stock": 4.0, "lean": 8.0, "fat": 12.0}
    (stated,) = memory_panels(make_report(times, memory={"stock": 4 * MB, "lean": MB, "fat": 8 * MB}))
    assert (stated.memory, stated.rest) == ("transient memory", 0)
    assert [(own.label, on_front(own, stated.points), own.baseline) for own in stated.points] == [
        ("stock", True, True),
        ("lean", True, False),
        ("fat", False, False),
    ]
    peaks = {"stock": 5 * MB, "lean": MB}
    (measured,) = memory_panels(make_report(times, memory={"stock": None, "lean": MB, "fat": None}, peaks=peaks))
    assert (measured.memory, measured.rest) == ("peak device memory", 1)
    assert [own.memory_bytes for own in measured.points] == [5 * MB, MB]


def test_equal_memory_is_nothing_to_draw() -> None:
    assert memory_panels(make_report({"stock": 4.0, "tiled": 2.0}, memory={"stock": MB, "tiled": MB})) == []
    assert memory_panels(make_report({"stock": 4.0}, memory={"stock": MB})) == []


def test_every_variant_is_named_and_no_name_covers_another() -> None:
    names = [f"variant-{number}" for number in range(14)]
    times = {name: 4.0 * (1 + number) for number, name in enumerate(names)}
    memory = {name: (number % 4 + 1) * MB for number, name in enumerate(names)}
    svg = draw_memory(make_report(times, memory=memory), LIGHT, "svg")
    assert_readable(svg)
    assert {*names, "transient memory, MiB"} <= set(texts_of(svg))


def test_names_without_room_are_counted() -> None:
    names = [f"{number:02}-{'x' * 60}" for number in range(90)]
    memory = {name: MB + number % 2 for number, name in enumerate(names)}
    svg = draw_memory(make_report(dict.fromkeys(names, 4.0), memory=memory), LIGHT, "svg")
    assert_readable(svg)
    assert any(text.endswith("without room for a name") for text in texts_of(svg))


def test_panels_of_few_points_stand_beside_each_other() -> None:
    models = {"models": ["a", "b", "c", "d"], "memory": {"stock": 0, "lean": 1024}}
    svg = draw_memory(make_report({"stock": 4.0, "lean": 8.0}, **models), LIGHT, "svg", 3)
    assert_readable(svg)
    assert any("1 more model or devices" in text for text in texts_of(svg))
