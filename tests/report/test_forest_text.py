"""The forest in plain text: snapshots to look at, and columns that stand below each other whatever is in them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from harness.records.comparison import Comparison, Row
from harness.report.forest import forest_of
from harness.report.forest_text import forest_text
from tests.report.compared import make_comparison, make_row, make_timed

RATIO = st.floats(1e-9, 1e9)
VERDICT = st.sampled_from(["regressed", "improved", "unchanged", "inconclusive"])


FOREST = """
Median Latency: faster ◂ 1 ▸ slower; ░ below the floor (1 %)
rdb @ cpu
  im2col           ●                      ░│░                    ▼ 0.681 [0.678, 0.684]
  pad-consumers                           ░│░●                   ▲ 1.028 [1.023, 1.033]
mm @ cpu
  stock                                   ░│░               ●    ▲ 1.300 [1.294, 1.306]
  tiled                                   ░●┤                    = 1.001 [0.996, 1.006]
                            0.8           1.0         1.2
"""


def text_of(*rows: Row, **given: Any) -> str:
    return forest_text(forest_of(make_comparison(rows)), **given)


def test_groups() -> None:
    text = text_of(
        make_timed("rdb/im2col@cpu", 2.0, 0.681, "improved"),
        make_timed("rdb/pad-consumers@cpu", 2.0, 1.028, "regressed"),
        make_timed("mm/stock@cpu", 2.0, 1.3, "regressed"),
        make_timed("mm/tiled@cpu", 2.0, 1.001, "unchanged"),
    )
    assert f"\n{text}\n" == FOREST


def test_foreign_names_stay_on_their_line(nasty_comparison: Comparison) -> None:
    assert all(line.isprintable() for line in forest_text(forest_of(nasty_comparison)).splitlines())


def test_wide_characters_stand_in_columns() -> None:
    rows = [
        make_timed("日本語のモデル/変種@装置", 1.0, 1.1, "regressed"),
        make_timed("🚀🚀/v@d", 1.0, 0.95, "improved"),
        make_timed("plain/v@d", 1.0, 1.02, "regressed"),
    ]
    text = text_of(*rows)
    axes = [cell_len(line[: line.index("│")]) for line in text.splitlines() if "│" in line]
    assert len(axes) == 3
    assert len(set(axes)) == 1


def test_only_given_rows_and_only_so_many() -> None:
    rows = [make_timed(f"m{n}/v@d", 1.0, 1.1 + n / 100, "regressed") for n in range(9)]
    text = forest_text(forest_of(make_comparison(rows), rows[:4], top=2))
    assert [line.split()[0] for line in text.splitlines() if line.startswith("  m")] == ["m3/v@d", "m2/v@d"]
    assert text.endswith("Not drawn: 2 regressed.")


def test_nothing_to_draw_is_nothing() -> None:
    assert text_of() == ""
    assert text_of(make_row("m/v@d", verdict="identical")) == ""
    assert text_of(make_row("m/v@d", verdict="failed")) == ""


@pytest.mark.parametrize(("ratio", "end"), [(1e9, "►"), (1e-9, "◄")])
def test_what_lies_beyond_the_axis_is_an_arrow(ratio: float, end: str) -> None:
    near = [make_timed(f"m{n}/v@d", 1.0, 1.1, "regressed") for n in range(9)]
    line = next(
        line
        for line in text_of(*near, make_row("far/v@d", verdict="regressed", ratio=ratio)).splitlines()
        if "far" in line
    )
    assert end in line


def test_what_became_nothing_is_an_arrow_to_the_left() -> None:
    text = text_of(
        make_row("a/v@d", "copies", "improved", base_value=13, head_value=0),
        make_row("b/v@d", "copies", "improved", base_value=13, head_value=4),
    )
    line = next(line for line in text.splitlines() if "a/v@d" in line)
    assert line.split("│")[0].split()[1] == "◄"
    assert line.endswith("▼ 0")


@settings(max_examples=60)
@given(
    st.lists(st.tuples(st.text(max_size=60), RATIO, RATIO, RATIO, VERDICT, st.floats(0, 1)), min_size=1, max_size=12),
    st.integers(0, 200),
)
def test_no_line_is_wider_than_asked(rows: list[tuple[Any, ...]], width: int) -> None:
    made = [
        make_timed(f"{name}/v@d", 1.0, ratio, verdict, ci_low=low, ci_high=high, floor=floor)
        for name, ratio, low, high, verdict, floor in rows
    ]
    text = text_of(*made, width=width)
    assert "\x1b" not in text
    assert max(cell_len(line) for line in text.splitlines()) <= min(max(width, 60), 100)
    assert sum(line.startswith("  ") and "[" in line for line in text.splitlines()) == len(made)
