"""Each kind of picture: what is in it, what stands for what is missing, and what is counted instead of drawn."""

import math
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from harness.errors import RunError
from harness.plots.canvas import DARK, LIGHT, Drawing, Theme
from harness.plots.forest import draw_forest
from harness.plots.heatmap import draw_heatmap, shade
from harness.plots.memory import MemoryPoint, draw_memory, memory_panels, on_front
from harness.plots.pictures import kind_of_comment
from harness.plots.race import draw_race
from harness.plots.releases import MARKS, draw_releases, release_panels
from harness.plots.roofline import draw_roofline, panels_of
from harness.plots.timeline import Timeline, draw_timeline
from harness.plots.variants import bar_panels, draw_variants
from harness.plots.waterfall import axis_begin_ns, draw_waterfall, waterfall_steps
from harness.records.comparison import Comparison
from harness.records.explanation import Elsewhere
from harness.records.run import Failure, Peak, Work
from harness.report.run_report import Report, build_report
from harness.report.run_rows import Row, Section
from harness.stats.intervals import Estimate, Latency, Location
from tests.plots.conftest import (
    SVG,
    assert_readable,
    change_at,
    contrast,
    luminance,
    make_points,
    make_report,
    root_of,
    texts_of,
    written_in,
)
from tests.report.builders import (
    FAILS,
    SKIPPED,
    WRONG,
    make_case,
    make_comparison,
    make_header,
    make_release_run,
    make_rounds,
    make_row,
    make_timed,
)
from tests.report.explanations import PIPELINE, make_explanation, make_part
from tests.report.tunings import MOMENTS, make_tuning

MB = 2**20


def drawn(drawing: Drawing) -> bytes:
    """A picture that is readable."""
    svg = drawing.file(LIGHT, "svg")
    assert_readable(svg)
    return svg


# --- Forest ---


def forest_of(*rows: Any, top: int | None = None) -> bytes:
    return drawn(draw_forest(make_comparison(rows), top))


def styles(svg: bytes) -> list[str]:
    return [element.attrib.get("style", "") for element in root_of(svg).iter(f"{SVG}path")]


def test_a_comparison_is_told_by_words_shapes_and_colours(full_comparison: Comparison) -> None:
    svg = drawn(draw_forest(full_comparison))
    texts = texts_of(svg)
    assert set(texts) >= {
        "esrgan: IREE 3.13.0 against IREE 3.12.0", "Median Latency", "rdb/stock@local-sync", "1.103 [1.098, 1.109]",
        "76.591 → 84.511", "ratio [95 % interval]", "◂ faster", "from nothing", "outputs differ, failed, missing",
        "Not drawn: 1 new, 1 unchanged, 2 identical.",
    }  # fmt: skip
    verdicts = ["regressed", "improved", "unchanged", "inconclusive"]
    assert [text for text in texts if text in verdicts] == verdicts
    colors = {text.color for text in written_in(svg)}
    assert {LIGHT.ink, LIGHT.muted, LIGHT.tones["worse"], LIGHT.tones["better"]} <= colors


def test_of_many_ratios_the_first_thirty_are_drawn_and_odd_ones_all() -> None:
    rows = [make_timed(f"m{n % 9}/v{n}@d", 2.4, 1.02 + n / 500, "regressed") for n in range(100)]
    assert "Not drawn: 70 regressed." in texts_of(forest_of(*rows))
    assert {f"v{n}" for n in range(50)} <= set(texts_of(forest_of(*rows[:50], top=50)))
    odd_rows = [
        make_row("a/v@d", "dispatches", "regressed", base_value=0, head_value=3, ratio=None),
        make_timed("b/v@d", 1.0, 1.02, "regressed", ci_low=-1.0, ci_high=1e308),
        make_row("c/v@d", verdict="improved", ratio=1e-300),
    ]
    for row in odd_rows:
        forest_of(row)
    svg = forest_of(make_row("a/v@d", "copies", "improved", base_value=13, head_value=0))  # an arrow with a zero
    assert {"0", "13 → 0"} <= set(texts_of(svg))


def test_without_an_interval_there_is_no_line_that_looks_like_one() -> None:
    def lines(svg: bytes, color: str) -> list[str]:
        return [style for style in styles(svg) if "fill: none" in style and f"stroke: {color}" in style]

    timed = make_timed("a/v@d", 1.0, 1.2, "inconclusive")
    assert lines(forest_of(timed), LIGHT.tones["open"])
    assert not lines(forest_of(replace(timed, ci_low=None, ci_high=None)), LIGHT.tones["open"])
    counted = forest_of(make_row("a/v@d", "dispatches", "regressed", base_value=4, head_value=5))
    assert not lines(counted, LIGHT.tones["worse"])
    (dotted,) = lines(counted, LIGHT.axis)
    assert "stroke-dasharray" in dotted
    # Each row has its own floor where they differ.
    rows = [make_timed(f"m/v{n}@d", 2.4, 1.02, "regressed") for n in range(3)]
    apart = [replace(row, floor=0.01 * (n + 1)) for n, row in enumerate(rows)]
    bands = [sum(f"fill: {LIGHT.band}" in style for style in styles(forest_of(*each))) for each in (rows, apart)]
    assert bands == [1, 3]


# --- Variants and memory ---


TIMES = {"stock": 9.0, "tiled": 4.0, "slow": 12.0, "onnxruntime": 3.0}


def make_variants(**more: float) -> Report:
    """A fast variant, a slow one, a peer, one with the baseline's module, and one that failed."""
    return make_report({**TIMES, **more}, peer="onnxruntime", twins=["twin"], broken=["broken"])


def test_a_bar_for_each_variant_the_fastest_first() -> None:
    (panel,) = bar_panels(make_variants())
    assert [bar.label for bar in panel.bars] == ["onnxruntime", "tiled", "stock", "twin", "slow"]
    assert panel.rest == "without a bar: 1 failed"
    svg = drawn(draw_variants(make_variants()))
    texts = texts_of(svg)
    assert {"mm @ local-sync", "baseline", "= same module as stock", "faster than the baseline", "slower"} <= set(texts)
    assert any(text.startswith("▼ 0.44") for text in texts)
    assert any(text.startswith("▲ 1.33") for text in texts)
    assert "the same" not in texts  # in the legend: no variant is
    assert b"<pattern" in svg and b"opacity: 0.35" in svg
    # Of many the fastest and the baseline are drawn, and the rest is counted.
    (panel,) = bar_panels(make_variants(**{f"v{number}": 20 + number / 10 for number in range(40)}))
    assert (len(panel.bars), panel.rest[:26]) == (24, "without a bar: 21 slower, ")
    (panel,) = bar_panels(make_variants(**{f"v{number}": 1 + number / 10 for number in range(30)}))
    assert panel.bars[-1].row.baseline
    svg = drawn(draw_variants(make_report(TIMES, models=["a", "b", "c", "d", "e"]), 2))
    assert "Not drawn: 3 more models or devices." in texts_of(svg)


def test_a_point_is_on_the_front_exactly_if_none_beats_it() -> None:
    places = [(1, 9), (2, 5), (2, 5), (2, 7), (3, 5), (4, 1), (5, 1)]
    points = [MemoryPoint(label="x", memory_bytes=x, latency_ns=y, baseline=False) for x, y in places]
    assert [on_front(own, points) for own in points] == [True, True, True, False, False, True, False]


def test_memory_is_the_schedules_where_that_is_known_and_else_the_devices_peak() -> None:
    times = {"stock": 4.0, "lean": 8.0, "fat": 12.0}
    (stated,) = memory_panels(make_report(times, memory={"stock": 4 * MB, "lean": MB, "fat": 8 * MB}))
    assert (stated.memory, stated.rest) == ("transient memory", 0)
    assert [own.baseline for own in stated.points] == [True, False, False]
    peaks = {"stock": 5 * MB, "lean": MB}
    (measured,) = memory_panels(make_report(times, memory={"stock": None, "lean": MB, "fat": None}, peaks=peaks))
    assert (measured.memory, measured.rest) == ("peak device memory", 1)
    assert [own.memory_bytes for own in measured.points] == [5 * MB, MB]
    with pytest.raises(RunError, match="no model with two measured variants that take different memory"):
        draw_memory(make_report({"stock": 4.0, "tiled": 2.0}, memory={"stock": MB, "tiled": MB}))


def test_every_variant_with_room_is_named_and_no_name_covers_another() -> None:
    names = [f"variant-{number}" for number in range(14)]
    times = {name: 4.0 * (1 + number) for number, name in enumerate(names)}
    memory = {name: (number % 4 + 1) * MB for number, name in enumerate(names)}
    assert {*names, "transient memory, MiB"} <= set(texts_of(drawn(draw_memory(make_report(times, memory=memory)))))
    crowd = [f"{number:02}-{'x' * 60}" for number in range(40)]
    memory = {name: MB + number % 2 for number, name in enumerate(crowd)}
    texts = texts_of(drawn(draw_memory(make_report(dict.fromkeys(crowd, 4.0), memory=memory, models=["a", "b"]), 1)))
    assert any(text.endswith("without room for a name") for text in texts)
    assert "Not drawn: 1 more model or devices." in texts


# --- Race, waterfall ---


def test_a_race_names_its_winner() -> None:
    texts = set(texts_of(drawn(draw_race(make_tuning()))))
    assert {"rdb on cpu, beside stock", "tuned-rdb 0.338", "spent of the budget (min)"} <= texts
    short = make_tuning(budget_s=60.0, spent_s=55.0, moments=MOMENTS[:1], answer="budget too small")
    assert "spent of the budget (s)" in texts_of(drawn(draw_race(short)))
    with pytest.raises(RunError, match="nothing was timed"):
        draw_race(make_tuning(moments=()))


def test_each_bar_begins_where_the_last_one_ended_and_the_last_change_ends_at_head() -> None:
    base, *changes, head = waterfall_steps(make_explanation())
    assert [step.name for step in changes] == ["conv_a", "conv_b", "pad", "1 other part", "copies", "host and waits"]
    assert changes[0].start_ns == base.end_ns
    for step, following in pairwise(changes):
        assert following.start_ns == pytest.approx(step.end_ns)
    assert changes[-1].end_ns == pytest.approx(head.end_ns)
    assert [step.tone for step in changes[:4]] == ["better", "better", "worse", "same"]
    odd = Elsewhere(device_ns={}, host_ns=0.0, profiled_ratio=1.0)
    assert waterfall_steps(make_explanation(head_elsewhere=odd))[-2].name == "medians that do not add up"
    with pytest.raises(RunError, match="no bar can begin where another one ends"):
        waterfall_steps(make_explanation(base_elsewhere=replace(odd, host_ns=-1e8)))


def test_the_axis_begins_at_zero_unless_changes_would_be_too_small_to_see() -> None:
    assert axis_begin_ns(waterfall_steps(make_explanation())) == 0.0
    small = make_explanation(make_part("conv", 100.0, 101.0, "regressed", what=("x" * 2_000,)))
    steps = waterfall_steps(small)
    assert 0.9 * steps[0].end_ns < axis_begin_ns(steps) < steps[0].end_ns
    assert any("The axis begins at" in text for text in texts_of(drawn(draw_waterfall(small))))
    texts = texts_of(drawn(draw_waterfall(make_explanation())))
    assert {"rdb/stock@cpu: IREE 3.12.0 against IREE 3.10.0", "conv_a", PIPELINE} <= set(texts)
    assert any(text.startswith("-300.000 ms (-42.4 %)") for text in texts)


# --- Releases ---


LATENCY = Latency(median_ns=1e6, low_ns=1e6, high_ns=1e6, spread=0.0, generations=5, rounds=40)


def a_row(variant: str, toolchain: str, ratio: float | None, **given: Any) -> Row:
    """A case under a release; its ratio is to the baseline, and None where it has none."""
    where = Location(centre=math.log(ratio or 1), low=math.log((ratio or 1) / 1.1), high=math.inf, p=0.01, size=5)
    facts: dict[str, Any] = {
        "case": f"net/{variant}@cpu:{toolchain}", "group": "net@cpu", "model": "net", "variant": variant,
        "device": "cpu", "toolchain": toolchain, "baseline": False, "status": "measured", "latency": LATENCY,
        "estimate": Estimate(where=where, confidence=0.95, rounds=40),
    }  # fmt: skip
    if ratio is None:
        facts |= {"status": "failed", "latency": None, "estimate": None}
    return Row(**{**facts, **given})


def a_report(*rows: Row) -> Report:
    section = Section(group="net@cpu", model="net", device="cpu", device_facts="", call="", baseline="stock:3.6.0",
                      rounds=(40,), rows=rows)  # fmt: skip
    return replace(make_report({"stock": 1.0}), sections=(section,))


def test_a_line_for_each_variant_over_releases_and_a_mark_where_it_fails_or_is_wrong() -> None:
    report = a_report(
        a_row("stock", "3.6.0", 1.0, baseline=True, estimate=None),
        a_row("stock", "3.7.0", 1.5),
        a_row("stock", "3.8.0", None, failure=Failure(stage="compile", message="it aborts")),
        a_row("tiled", "3.6.0", None, failure=Failure(stage="verify", message="it is wrong", mismatch=True)),
        a_row("tiled", "3.7.0", 0.5),
        a_row("tiled", "3.8.0", None, status="skipped"),
        a_row("late", "3.8.0", None, status="skipped"),
        a_row("onnxruntime", "", 0.2, peer="onnxruntime"),
    )
    (panel,) = release_panels(report)
    assert list(panel.lines) == ["stock", "tiled"]
    stock, tiled = panel.lines.values()
    assert [one.ratio for one in stock] == [1.0, pytest.approx(1.5), None]
    assert [MARKS.get(one.state, "") for one in (*stock, *tiled)] == ["", "", "✗", "≠", "", "∅"]
    texts = set(texts_of(drawn(draw_releases(report))))
    assert {"net @ cpu, beside stock:3.6.0", "stock", "tiled", "3.6.0", "3.7.0", "3.8.0", "✗", "≠"} <= texts
    many = a_report(*(a_row(f"v-{n}", f"3.{release}.0", 1 + n / 10) for n in range(10) for release in range(60)))
    (panel,) = release_panels(many)
    assert (len(panel.lines), panel.rest) == (8, 2)
    texts = set(texts_of(drawn(draw_releases(many))))
    assert {"3.59.0", "Not drawn: 2 more variants."} <= texts
    assert "3.58.0" not in texts


# --- Roofline ---


PEAK = Peak(
    device="local-sync", threads=1, operations_per_s=117e9, operations_by="FMA loop", bytes_per_s=33e9, bytes_by="dot"
)
WORK = Work(model="mm", operations=268_435_456, compulsory_bytes=3_145_728)
ROOF_TIMES = {"stock": 9.0, "data-tiling": 4.0, "onnxruntime": 3.0}


def roofline_report(**given: Any) -> Report:
    """Two variants and a peer on one core, and one variant on a device without a peak."""
    run = make_report(ROOF_TIMES, peer="onnxruntime", **{"work": (WORK,), **given}).run
    far = make_case("mm", "stock", "gpu", uri="cuda")
    rounds = (*run.rounds, *make_rounds(far.group, {far.name: 1e5}, generations=2, rounds=2))
    return build_report(replace(run, header=make_header((*run.header.cases, far)), rounds=rounds, peaks=(PEAK,)))


def test_a_roofline_has_a_panel_for_each_device_and_a_point_for_each_measured_case() -> None:
    near, far = panels_of(roofline_report())
    points = [(one.label, one.peer) for one in near.points]
    assert points == [("stock", False), ("data-tiling", False), ("onnxruntime", True)]
    assert near.points[0].operations_per_s == pytest.approx(268_435_456 / 9e-3, rel=0.1)
    assert near.points[0].intensity == pytest.approx(268_435_456 / 3_145_728)
    assert (near.peak, far.peak) == (PEAK, None)
    texts = texts_of(drawn(draw_roofline(roofline_report())))
    near_roof = "local-sync: one core, 117 GFLOP/s, f32 (FMA loop), 33 GB/s (dot)"
    assert {"esrgan", "mm", *ROOF_TIMES, near_roof, "gpu (peak not measured)"} <= set(texts)
    for work, why in (
        ((), r"^no arithmetic was counted; run its suite again with this harness, or"),
        ((Work(model="mm", failure=Failure(stage="ir", message="odd")),), r"no arithmetic was counted \(odd\)"),
    ):
        with pytest.raises(RunError, match=why):
            panels_of(roofline_report(work=work))


def test_variants_are_told_apart_by_their_marks_and_a_peer_has_a_ring() -> None:
    def marks(count: int, peer: str = "") -> int:
        """How many different marks there are of so many variants."""
        report = make_report({f"v{number}": 9.0 for number in range(count)}, peer=peer, work=(WORK,))
        uses = root_of(drawn(draw_roofline(report))).iter(f"{SVG}use")
        return len({value for use in uses for name, value in use.attrib.items() if name.endswith("href")})

    assert marks(24) > marks(12) > marks(1) + 10
    assert marks(2, peer="v1") > marks(2)


# --- Timeline ---


VALUES = [level + 1e5 * (number % 3) for level in (76e6, 80.5e6) for number in range(12)]
STEP = change_at(12, 11, 13, 76e6, 80.5e6)
DRIFT = change_at(5, 3, 8, 76e6, 80e6, kind="drift", until="run-18", cause="machine")


def test_a_timeline_tells_its_changes_days_toolchains_and_reference() -> None:
    line = Timeline(make_points(VALUES), [STEP, DRIFT], None)
    assert line.verdict == "1 step and 1 drift in 24 runs."
    releases = ["3.12.0"] * 9 + ["3.13.0"] * 15
    svg = drawn(draw_timeline(make_points(VALUES, releases), [STEP], make_points([78e6] * 24)))
    texts = set(texts_of(svg))
    assert {
        "rdb/stock@cpu: median latency",
        "▲ +5.9 %, compiler",
        "median latency, ms",
        "2026-06-01",
        *releases,
    } <= texts
    assert LIGHT.tones["worse"] in {text.color for text in written_in(svg)}
    assert "No step or drift in 1 run." in texts_of(drawn(draw_timeline(make_points(VALUES[:1]), [])))
    # A lone spike does not press the others into a line.
    assert Timeline(make_points([*VALUES[:12], 5e9, *VALUES[:12]]), [], None).limits()[1] < 100


def test_many_changes_and_many_toolchains_leave_no_text_on_another() -> None:
    values = np.repeat([60e6, 70e6, 65e6, 75e6] * 10, 6)
    changes = [change_at(at, at, at, float(values[at - 1]), float(values[at])) for at in range(6, len(values), 6)]
    points = make_points(list(values), [f"3.14.0rc{number}" for number in range(len(values))])
    assert "40 steps" not in texts_of(drawn(draw_timeline(points, changes)))


# --- Heat map ---


def test_a_heat_map_has_each_line_beside_its_best_release_in_the_order_of_changes() -> None:
    releases = ("3.5.0", "3.6.0", "3.7.0", "3.8.0rc1")
    lines: dict[str, list[float | str]] = {
        "even": [1.0, 1.0, 1.0, 1.0],
        "broken": [FAILS, 1.0, WRONG, 1.0],
        "late": [SKIPPED, 1.0, 1.0, 1.5],
        "early": [4.0, 1.0, 1.0, 1.0],
    }
    report = build_report(make_release_run(lines, *releases))
    svg = drawn(draw_heatmap(report))
    texts = texts_of(svg)
    in_order = ["early/stock", "late/stock", "broken/stock", "even/stock"]
    assert [text for text in texts if text.endswith("/stock")] == in_order
    assert {"3.5", "3.8", "rc1", "✗", "≠"} <= {*texts} and sum(text in ("4.00", "1.50") for text in texts) == 2
    assert "1.00" not in texts
    assert kind_of_comment(report) == "heatmap"
    few = texts_of(drawn(draw_heatmap(report, 1)))
    assert "early/stock" in few and "late/stock" not in few
    assert "Not drawn: 3 more lines, which change less." in few


@pytest.mark.parametrize("theme", [LIGHT, DARK])
def test_a_longer_time_is_a_stronger_shade_that_the_themes_ink_can_be_read_on(theme: Theme) -> None:
    grounds = [luminance(shade(theme, ratio)) for ratio in (1.0, 1.1, 2.0, 8.0, 16.0, 400.0)]
    distances = [abs(ground - luminance(theme.ground)) for ground in grounds]
    assert distances == sorted(distances) and distances[0] < 0.01 and distances[-1] > 0.1
    assert all(contrast(shade(theme, ratio), theme.ink) >= 4.5 for ratio in (1.0, 2.0, 400.0))
