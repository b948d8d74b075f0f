"""Variants as bars and latency against memory: what is drawn of a run, and what is counted instead."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.errors import RunError
from harness.plots.canvas import DARK, LIGHT
from harness.plots.memory import MemoryPoint, draw_memory, memory_panels, on_front
from harness.plots.race import draw_race, race_axis
from harness.plots.variants import bar_panels, draw_variants
from harness.records.run import Run
from harness.records.tuning import TimedCandidate
from harness.report.run_report import build_report
from tests.plots.conftest import assert_readable, make_report, make_run, texts_of
from tests.report.tunings import MOMENTS, make_tuning

MB = 2**20
TIMES = {"stock": 9.0, "tiled": 4.0, "slow": 12.0, "onnxruntime": 3.0}


def make_variants(**more: float) -> Run:
    """A fast variant, a slow one, a peer, one with the baseline's module, and one that failed."""
    return make_run({**TIMES, **more}, peers=["onnxruntime"], twins=["twin"], broken=["broken"])


def test_a_bar_for_each_variant_the_fastest_first_and_the_foot_says_what_looks_different() -> None:
    (panel,) = bar_panels(build_report(make_variants()))
    assert [bar.label for bar in panel.bars] == ["onnxruntime", "tiled", "stock", "twin", "slow"]
    assert panel.rest == "without a bar: 1 failed"
    svg = draw_variants(build_report(make_variants())).file(LIGHT, "svg")
    texts = texts_of(svg)
    assert {"mm @ local-sync", "baseline", "= same module as stock", "faster than the baseline", "slower"} <= set(texts)
    assert any(text.startswith("▼ 0.44") for text in texts)
    assert any(text.startswith("▲ 1.33") for text in texts)
    assert "the same" not in texts  # in the legend: no variant is
    assert "Hatched: other engines. Pale: the module is another variant's." in " ".join(texts[-3:])
    assert b"<pattern" in svg and b"opacity: 0.35" in svg
    plain = draw_variants(make_report({"stock": 2.0, "tiled": 1.0})).file(LIGHT, "svg")
    assert b"<pattern" not in plain and b"opacity: 0.35" not in plain
    assert "Hatched" not in " ".join(texts_of(plain))


def test_of_many_the_fastest_and_the_baseline_are_drawn_and_the_rest_is_counted() -> None:
    (panel,) = bar_panels(build_report(make_variants(**{f"v{number}": 20 + number / 10 for number in range(40)})))
    assert len(panel.bars) == 24
    assert panel.rest.startswith("without a bar: 21 slower")
    (panel,) = bar_panels(build_report(make_variants(**{f"v{number}": 1 + number / 10 for number in range(30)})))
    assert len(panel.bars) == 25
    assert panel.bars[-1].row.baseline
    run = make_variants()
    assert bar_panels(build_report(Run(header=run.header, builds=run.builds, finished=True))) == []
    svg = draw_variants(make_report(TIMES, models=["a", "b", "c", "d", "e"]), 2).file(LIGHT, "svg")
    assert "Not drawn: 3 more models or devices." in texts_of(svg)


# --- Latency against memory ---


def point(memory: float, latency: float) -> MemoryPoint:
    return MemoryPoint(label="x", memory_bytes=memory, latency_ns=latency, baseline=False)


@given(st.lists(st.builds(point, st.integers(0, 5), st.integers(1, 5)), min_size=1, max_size=12))
def test_a_point_is_on_the_front_exactly_if_none_beats_it(points: list[MemoryPoint]) -> None:
    places = {(own.memory_bytes, own.latency_ns) for own in points}
    for own in points:
        at = own.memory_bytes, own.latency_ns
        assert on_front(own, points) == (not any(x <= at[0] and y <= at[1] for x, y in places - {at}))


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
    # Equal memory is nothing to draw.
    assert memory_panels(make_report({"stock": 4.0, "tiled": 2.0}, memory={"stock": MB, "tiled": MB})) == []
    assert memory_panels(make_report({"stock": 4.0}, memory={"stock": MB})) == []


def test_every_variant_with_room_is_named_and_no_name_covers_another() -> None:
    names = [f"variant-{number}" for number in range(14)]
    times = {name: 4.0 * (1 + number) for number, name in enumerate(names)}
    memory = {name: (number % 4 + 1) * MB for number, name in enumerate(names)}
    svg = draw_memory(make_report(times, memory=memory)).file(LIGHT, "svg")
    assert_readable(svg)
    assert {*names, "transient memory, MiB"} <= set(texts_of(svg))
    crowd = [f"{number:02}-{'x' * 60}" for number in range(40)]
    memory = {name: MB + number % 2 for number, name in enumerate(crowd)}
    svg = draw_memory(make_report(dict.fromkeys(crowd, 4.0), memory=memory)).file(LIGHT, "svg")
    assert_readable(svg)
    assert any(text.endswith("without room for a name") for text in texts_of(svg))
    models = {"models": ["a", "b", "c", "d"], "memory": {"stock": 0, "lean": 1024}}
    svg = draw_memory(make_report({"stock": 4.0, "lean": 8.0}, **models), 3).file(LIGHT, "svg")  # beside each other
    assert_readable(svg)
    assert any("1 more model or devices" in text for text in texts_of(svg))


# --- The race of a tuning ---


def test_a_winner_far_below_all_others_lies_on_the_axis() -> None:
    others = tuple(TimedCandidate(seconds=float(at), name="x", ratio=0.99, best=False) for at in range(40))
    found = make_tuning(moments=(*others, replace(MOMENTS[-1], ratio=0.01)))
    assert race_axis(found).low < 0.01


def test_it_names_the_winner() -> None:
    svg = draw_race([make_tuning()]).file(LIGHT, "svg")
    assert_readable(svg)
    assert {"tuned-rdb 0.338", "spent of the budget (min)"} <= set(texts_of(svg))


def test_each_model_of_several_has_a_panel() -> None:
    short = make_tuning(model="mlp", budget_s=60.0, spent_s=55.0, moments=MOMENTS[:1], answer="budget too small")
    svg = draw_race([make_tuning(), short, make_tuning(moments=())], 2).file(DARK, "svg")
    assert_readable(svg)
    texts = texts_of(svg)
    assert {"rdb on cpu, beside stock", "mlp on cpu, beside stock", "spent of the budget (s)"} <= set(texts)
    assert "Not drawn" not in " ".join(texts)
    with pytest.raises(RunError, match="nothing was timed"):
        draw_race([make_tuning(moments=())])
