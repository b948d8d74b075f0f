"""A forest of ratios: which rows it shows and in which order, its axis, and the same in plain text."""

import math
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from harness.records.comparison import Comparison, Row
from harness.report.forest import ForestRow, RatioAxis, forest_of, forest_text, ratio_axis
from harness.report.run_report import build_report
from tests.report.builders import make_comparison, make_nasty_comparison, make_refused_run, make_row, make_timed


def rows_of(*rows: Row) -> list[ForestRow]:
    return list(forest_of(make_comparison(rows)).rows())


def test_latency_comes_first_then_compile_time_then_the_rest(full_comparison: Comparison) -> None:
    forest = forest_of(full_comparison)
    titles = ["Median Latency", "Compilation Time", "Transient Memory", "Copies", "Dispatch Count", "Instructions"]
    assert [block.title for block in forest.blocks] == titles
    assert forest.rest == "Not drawn: 1 new, 1 unchanged, 2 identical."


def test_changes_come_first_the_largest_on_top() -> None:
    rows = rows_of(
        make_timed("a/v@d", 1.0, 1.0, "unchanged"),
        make_timed("b/v@d", 1.0, 1.3, "inconclusive"),
        make_timed("c/v@d", 1.0, 1.05, "regressed"),
        make_timed("d/v@d", 1.0, 0.5, "improved"),
        make_row("e/v@d", verdict="failed"),
        make_row("f/v@d", verdict="outputs differ"),
    )
    assert [row.label for row in rows] == ["f/v@d", "d/v@d", "c/v@d", "e/v@d", "b/v@d", "a/v@d"]


def test_what_lies_beyond_every_axis() -> None:
    rows = rows_of(
        make_row("a/v@d", "copies", "improved", base_value=13, head_value=4),
        make_row("b/v@d", "copies", "improved", base_value=13, head_value=0),
        make_row("m/v@d", "copies", "regressed", base_value=0, head_value=3, ratio=None),
    )
    assert {row.label: (row.beyond, row.figure, row.values) for row in rows} == {
        "m/v@d": ("right", "from nothing", "0 → 3"),
        "b/v@d": ("left", "0", "13 → 0"),
        "a/v@d": (None, "0.308", "13 → 4"),
    }
    nasty = forest_of(make_nasty_comparison()).rows()
    assert all(row.ratio is None or 0 < row.ratio < float("inf") for row in nasty)


def test_variants_and_peers_against_the_baseline_the_largest_first() -> None:
    report = build_report(make_refused_run())
    (block,) = forest_of(report).blocks
    assert [(row.label, row.word, row.tone, row.peer) for row in block.rows] == [
        ("onnxruntime", "faster", "better", True),
        ("quick", "faster", "better", False),
        ("stock", "failed", "lost", False),
    ]
    assert block.values == "baseline → variant, ms" and block.rows[1].values.startswith("4.0")
    assert [row.label for row in forest_of(report, keep=lambda row: row.variant == "quick").rows()] == [
        "mm/quick@local-sync"
    ]
    assert forest_of(report, top=2).rest == "Not drawn: 1 failed, 1 identical."
    assert block.groups[0][0] == "mm @ local-sync, vs fast (stock is refused: wrong output)"


# --- The axis ---

RATIOS = st.lists(st.floats(1e-300, 1e300), max_size=20)


def axis_of(*ratios: float, floor: float = 0.01, most_ticks: int = 7) -> RatioAxis:
    return ratio_axis([(ratio, None, None) for ratio in ratios], floor, most_ticks=most_ticks)


def ticks_of(axis: RatioAxis) -> list[str]:
    return [text for _, text in axis.ticks]


def test_an_axis_has_round_figures_and_shows_the_floor_and_whole_intervals() -> None:
    assert ticks_of(axis_of(0.97, 1.05)) == ["0.98", "1.00", "1.02", "1.04"]
    assert ticks_of(axis_of(0.2, 5)) == ["0.2", "0.5", "1", "2", "5"]
    assert axis_of(1.0).low < 1 / 1.03 and axis_of(1.0).high > 1.03
    whole = ratio_axis([(1.3, 0.9, 1.8)], 0.01, most_ticks=7)
    assert whole.low < 0.9 and whole.high > 1.8
    assert 1.04 < axis_of(1.02, 0.97, 1.03, 1.01, 50.0).high < 1.3, "one far away does not press the others together"


@given(RATIOS, st.floats(0, 2) | st.just(1e308), st.integers(3, 9))
def test_every_axis_has_1_and_both_its_sides_and_a_few_ticks(ratios: list[float], floor: float, most: int) -> None:
    axis = axis_of(*ratios, floor=floor, most_ticks=most)
    assert 0 < axis.low < 1 < axis.high < math.inf
    assert 0.15 < axis.share(1.0) < 0.85
    assert floor > 2 or axis.low <= 1 / (1 + floor) <= 1 + floor <= axis.high
    places = [ratio for ratio, _ in axis.ticks]
    assert 1 <= len(places) <= most and places == sorted(set(places))
    assert all(axis.low * (1 - 1e-9) <= place <= axis.high * (1 + 1e-9) for place in places)
    assert len(set(ticks_of(axis))) == len(places)


FOREST = """
Median Latency: faster ◂ 1 ▸ slower; ░ below the floor (1 %)
rdb @ cpu
  im2col           ●                      ░│░                    ▼ 0.681 [0.678, 0.684]
  pad-consumers                           ░│░●                   ▲ 1.028 [1.023, 1.033]
mm @ cpu
  stock                                   ░│░               ●    ▲ 1.300 [1.294, 1.306]
  tiled                                   ░●─                    = 1.001 [0.996, 1.006]
                            0.8           1.0         1.2
"""


def test_rows_of_one_model_and_device_stand_together() -> None:
    rows = [
        make_timed("rdb/im2col@cpu", 2.0, 0.681, "improved"),
        make_timed("rdb/pad-consumers@cpu", 2.0, 1.028, "regressed"),
        make_timed("mm/stock@cpu", 2.0, 1.3, "regressed"),
        make_timed("mm/tiled@cpu", 2.0, 1.001, "unchanged"),
    ]
    assert f"\n{forest_text(forest_of(make_comparison(rows)))}\n" == FOREST
    without_ratio = [make_row("m/v@d", verdict="identical")]
    assert forest_text(forest_of(make_comparison(without_ratio))) == ""


WIDE = st.floats(1e-9, 1e9)
VERDICTS = st.sampled_from(["regressed", "improved", "unchanged", "inconclusive"])


@settings(max_examples=40)
@given(st.lists(st.tuples(st.text(max_size=60), WIDE, WIDE, WIDE, VERDICTS), min_size=1, max_size=12), st.integers(0))
def test_no_line_is_wider_than_asked_or_holds_what_a_terminal_obeys(rows: list[tuple[Any, ...]], width: int) -> None:
    timed = [
        make_timed(f"{name}/v@d", 1.0, ratio, verdict, ci_low=low, ci_high=high)
        for name, ratio, low, high, verdict in rows
    ]
    for comparison in (make_comparison(timed), make_nasty_comparison()):
        lines = forest_text(forest_of(comparison), width).splitlines()
        assert all(line.isprintable() for line in lines)
        assert max(map(cell_len, lines)) <= min(max(width, 60), 100)
