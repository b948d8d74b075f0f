"""A forest in plain text: rows of one model and device stand together, and no line is too wide."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from harness.report.forest import forest_of, forest_text
from tests.report.builders import make_comparison, make_nasty_comparison, make_row, make_timed

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
