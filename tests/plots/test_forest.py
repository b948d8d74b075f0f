"""The forest plot: what is in it, and how rows without an interval, or beyond the axis, are drawn."""

from dataclasses import replace

from harness.plots.canvas import LIGHT
from harness.plots.forest import draw_forest
from harness.records.comparison import Comparison, Row
from tests.plots.conftest import SVG, assert_readable, root_of, size_of, texts_of, written_in
from tests.report.builders import make_comparison, make_row, make_timed


def drawn(*rows: Row, top: int | None = None) -> bytes:
    svg = draw_forest(make_comparison(rows), top).file(LIGHT, "svg")
    assert_readable(svg)
    return svg


def styles(svg: bytes) -> list[str]:
    return [element.attrib.get("style", "") for element in root_of(svg).iter(f"{SVG}path")]


def test_a_comparison_is_told_by_words_shapes_and_colours(full_comparison: Comparison) -> None:
    svg = draw_forest(full_comparison).file(LIGHT, "svg")
    texts = texts_of(svg)
    assert set(texts) >= {
        "esrgan: IREE 3.13.0 against IREE 3.12.0",
        "Median Latency",
        "rdb/stock@local-sync",
        "1.103 [1.098, 1.109]",
        "76.591 → 84.511",
        "ratio [95 % interval]",
        "gate violated",
        "◂ faster",
        "from nothing",
        "Not drawn: 1 new, 1 unchanged, 2 identical.",
        "outputs differ, failed, missing",
    }
    verdicts = ["regressed", "improved", "unchanged", "inconclusive"]
    assert [text for text in texts if text in verdicts] == verdicts
    colors = {text.color for text in written_in(svg)}
    assert {LIGHT.ink, LIGHT.muted, LIGHT.tones["worse"], LIGHT.tones["better"]} <= colors


def test_one_row_and_very_many() -> None:
    drawn(make_timed("m/v@d", 2.4, 1.08, "regressed"))
    rows = [make_timed(f"m{n % 9}/v{n}@d", 2.4, 1.02 + n / 500, "regressed") for n in range(100)]
    assert "Not drawn: 70 regressed." in texts_of(drawn(*rows))
    every = drawn(*rows[:50], top=50)
    assert size_of(every)[1] > 50 * 20
    assert {f"v{n}" for n in range(50)} <= set(texts_of(every))


def test_ratios_without_an_interval_or_beyond_every_axis_are_drawn() -> None:
    odd_rows = [
        make_row("a/v@d", "dispatches", "regressed", base_value=0, head_value=3, ratio=None),
        make_row("b/v@d", verdict="regressed", ratio=1.2),
        make_timed("c/v@d", 1.0, 1.02, "regressed", ci_low=-1.0, ci_high=1e308),
        make_row("d/v@d", verdict="regressed", ratio=1e308),
        make_row("e/v@d", verdict="improved", ratio=1e-300),
    ]
    for rows in (*([row] for row in odd_rows), odd_rows):
        drawn(*rows)
    svg = drawn(make_row("a/v@d", "copies", "improved", base_value=13, head_value=0))  # an arrow with a zero
    assert {"0", "13 → 0"} <= set(texts_of(svg))
    assert f"stroke: {LIGHT.tones['better']}".encode() in svg


def test_without_an_interval_there_is_no_line_that_looks_like_one_and_the_foot_says_why() -> None:
    def lines(svg: bytes, color: str) -> list[str]:
        return [style for style in styles(svg) if "fill: none" in style and f"stroke: {color}" in style]

    timed = make_timed("a/v@d", 1.0, 1.2, "inconclusive")
    whole, bare = drawn(timed), drawn(replace(timed, ci_low=None, ci_high=None))
    counted = drawn(make_row("a/v@d", "dispatches", "regressed", base_value=4, head_value=5))
    assert lines(whole, LIGHT.tones["open"])
    assert not lines(bare, LIGHT.tones["open"])
    assert not lines(counted, LIGHT.tones["worse"])
    (dotted,) = lines(counted, LIGHT.axis)
    assert "stroke-dasharray" in dotted
    feet = [" ".join(texts_of(svg)[-3:]) for svg in (whole, bare, counted)]
    assert ["A mark alone: no interval yet." in foot for foot in feet] == [False, True, False]
    assert ["Dotted from 1: counted, which has no interval." in foot for foot in feet] == [False, False, True]


def test_each_row_has_its_own_floor_where_they_differ() -> None:
    rows = [make_timed(f"m/v{n}@d", 2.4, 1.02, "regressed") for n in range(3)]
    apart = [replace(row, floor=0.01 * (n + 1)) for n, row in enumerate(rows)]
    bands = [sum(f"fill: {LIGHT.band}" in style for style in styles(drawn(*each))) for each in (rows, apart)]
    assert bands == [1, 3]
