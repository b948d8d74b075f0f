"""Latency against memory: the front, and a picture in which every variant is named."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.plots.look import LIGHT, THEMES, Theme
from harness.plots.memory import draw_memory
from harness.plots.memory_points import MemoryPanel, MemoryPoint, memory_panels, with_front
from harness.records.run import Run
from harness.report.table import build_report
from tests.plots.conftest import NASTY_NAME, assert_readable, texts_of
from tests.report.made import make_build, make_case, make_header, make_reference, make_rounds

FIGURES = st.lists(st.tuples(st.integers(0, 5), st.integers(1, 5)), min_size=1, max_size=12)


def make_run(memory: dict[str, int | None], *, peak: dict[str, int] | None = None) -> Run:
    """Variants of one model, each slower than the one before."""
    cases = {name: make_case("mm", name) for name in memory}
    first = next(iter(cases.values()))
    return Run(
        header=make_header(tuple(cases.values())),
        builds=tuple(
            make_build(
                cases[name],
                code=f"{number:02x}",
                dispatches=1,
                copies=0,
                transient=transient or 0,
                **({"statistics": None} if transient is None else {}),
            )
            for number, (name, transient) in enumerate(memory.items())
        ),
        references=tuple(
            make_reference(cases[name], 1e6, device_peak_bytes=size) for name, size in (peak or {}).items()
        ),
        rounds=tuple(
            make_rounds(
                first.group,
                {case.name: 4e6 * (1 + number) for number, case in enumerate(cases.values())},
                generations=2,
                rounds=2,
            )
        ),
        finished=True,
    )


def panels(run: Run) -> list[MemoryPanel]:
    return memory_panels(build_report(run))


def point(memory: float, latency: float) -> MemoryPoint:
    return MemoryPoint(label="x", memory_bytes=memory, latency_ns=latency, baseline=False)


@given(FIGURES)
def test_a_point_is_on_the_front_exactly_if_none_beats_it(figures: list[tuple[int, int]]) -> None:
    found = with_front([point(memory, latency) for memory, latency in figures])
    for one in found:
        better = [
            other
            for other in found
            if (other.memory_bytes <= one.memory_bytes and other.latency_ns < one.latency_ns)
            or (other.memory_bytes < one.memory_bytes and other.latency_ns <= one.latency_ns)
        ]
        assert one.on_front == (not better)
    assert any(one.on_front for one in found)


def test_memory_is_the_schedules_where_that_is_known() -> None:
    (panel,) = panels(make_run({"stock": 4 * 2**20, "lean": 2**20, "fat": 8 * 2**20}))
    assert panel.memory == "transient memory"
    assert [(one.label, one.on_front, one.baseline) for one in panel.points] == [
        ("stock", True, True),
        ("lean", True, False),
        ("fat", False, False),
    ]
    assert panel.rest == ""


def test_else_the_devices_peak() -> None:
    run = make_run({"stock": None, "lean": 2**20, "odd": None}, peak={"stock": 5 * 2**20, "lean": 2**20})
    (panel,) = panels(run)
    assert panel.memory == "peak device memory"
    assert [one.memory_bytes for one in panel.points] == [5 * 2**20, 2**20]
    assert panel.rest == "1 without a point"


def test_equal_memory_is_nothing_to_draw() -> None:
    assert panels(make_run({"stock": 2**20, "tiled": 2**20})) == []
    assert panels(make_run({"stock": 2**20})) == []


@pytest.mark.parametrize("theme", THEMES.values(), ids=THEMES)
def test_every_variant_is_named_and_no_name_covers_another(theme: Theme) -> None:
    memory: dict[str, int | None] = {f"variant-{number}": (number % 4 + 1) * 2**20 for number in range(14)}
    svg = draw_memory(panels(make_run(memory)), "matmuls", ["so so"], theme, "svg")
    assert_readable(svg)
    assert set(memory) <= set(texts_of(svg))
    assert "transient memory, MiB" in texts_of(svg)


def test_panels_of_few_points_stand_beside_each_other() -> None:
    (panel,) = panels(make_run({"stock": 0, "lean": 2**10}))
    two = draw_memory([panel, panel], "t", [], LIGHT, "svg")
    four = draw_memory([panel] * 4, "t", [], LIGHT, "svg", top=3)
    assert_readable(two)
    assert_readable(four)
    assert any("1 more model or devices" in text for text in texts_of(four))


def test_equal_runs_give_equal_bytes_and_names_stay_names() -> None:
    run = make_run({"stock": 2**20, NASTY_NAME: 2**22, "z" * 10_000: 2**24})
    for picture in ("svg", "png"):
        first, second = (draw_memory(panels(run), NASTY_NAME, [NASTY_NAME], LIGHT, picture) for _ in range(2))
        assert first == second
    assert_readable(draw_memory(panels(run), NASTY_NAME, [NASTY_NAME], LIGHT, "svg"))
