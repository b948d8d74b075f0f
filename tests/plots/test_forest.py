"""The forest plot: what is in it, that it can be read, and that names stay names."""

from __future__ import annotations

import io
from dataclasses import replace
from xml.etree import ElementTree

import pytest
from PIL import Image, ImageColor

from harness.plots.forest import draw_forest
from harness.plots.look import DARK, LIGHT, THEMES, Theme
from harness.records.comparison import Comparison, Row
from harness.records.run import Run
from harness.report.comparison.forest import forest_of
from harness.report.run_forest import forest_of_run
from harness.report.table import build_report
from tests.plots.conftest import NASTY_NAME, SVG, assert_readable, root_of, size_of, texts_of, written_in
from tests.report.comparison.conftest import make_comparison, make_row, make_timed


@pytest.mark.parametrize("theme", THEMES.values(), ids=THEMES)
def test_a_comparison_in_both_themes(full_comparison: Comparison, theme: Theme) -> None:
    svg = draw_forest(forest_of(full_comparison), theme, "svg")
    assert_readable(svg)
    texts = texts_of(svg)
    for shown in (
        "esrgan: results/new against iree==3.12.0",
        "Median Latency",
        "rdb/stock@local-sync",
        "1.103 [1.098, 1.109]",
        "76.591 → 84.511",
        "ratio [95 % interval]",
        "gate violated",
        "◂ faster",
        "from nothing",
        "Not drawn: 1 new, 1 unchanged, 2 identical.",
    ):
        assert shown in texts
    colors = {one.color for one in written_in(svg)}
    assert {theme.ink, theme.muted, theme.tones["worse"], theme.tones["better"]} <= colors


def test_a_verdict_is_told_by_colour_and_by_shape(full_comparison: Comparison) -> None:
    texts = texts_of(draw_forest(forest_of(full_comparison), LIGHT, "svg"))
    assert [text for text in texts if text in ("regressed", "improved", "unchanged", "inconclusive")] == [
        "regressed",
        "improved",
        "unchanged",
        "inconclusive",
    ]
    assert "failed or missing" in texts


def test_a_screen_reader_has_a_title(full_comparison: Comparison) -> None:
    root = root_of(draw_forest(forest_of(full_comparison), LIGHT, "svg"))
    title = root.find(f"{SVG}title")
    assert title is not None
    assert title.text == "Ratios: esrgan: results/new against iree==3.12.0"


def test_equal_values_give_equal_bytes(quiet_comparison: Comparison) -> None:
    for picture in ("svg", "png"):
        first, second = (draw_forest(forest_of(quiet_comparison), DARK, picture) for _ in range(2))
        assert first == second
        assert first != draw_forest(forest_of(quiet_comparison), LIGHT, picture)


def test_a_png_has_two_pixels_for_each_of_the_pages(quiet_comparison: Comparison) -> None:
    png = draw_forest(forest_of(quiet_comparison), LIGHT, "png")
    width, _ = size_of(draw_forest(forest_of(quiet_comparison), LIGHT, "svg"))
    assert 900 <= width <= 1000
    assert int.from_bytes(png[16:20], "big") == round(2 * width)


def test_hostile_texts_are_texts(nasty_comparison: Comparison) -> None:
    rows = [make_timed(NASTY_NAME, 1.0, 1.5, "regressed"), make_timed("x" * 10_000, 1.0, 0.8, "improved")]
    for comparison in (nasty_comparison, make_comparison(rows)):
        svg = draw_forest(forest_of(comparison), DARK, "svg")
        assert_readable(svg)
        assert b"<script" not in svg
        assert draw_forest(forest_of(comparison), DARK, "png").startswith(b"\x89PNG")


def test_sixty_characters_are_not_cut_where_there_is_a_group() -> None:
    variants = [f"a-name-of-a-variant-that-has-sixty-characters-and-not-one-{number:02}" for number in range(4)]
    rows = [make_timed(f"rdb/{variant}@cpu", 1.0, 1.2, "regressed") for variant in variants]
    svg = draw_forest(forest_of(make_comparison(rows)), LIGHT, "svg")
    assert_readable(svg)
    assert set(variants) <= set(texts_of(svg))


def test_one_row_and_very_many() -> None:
    one = draw_forest(forest_of(make_comparison([make_timed("m/v@d", 2.4, 1.08, "regressed")])), LIGHT, "svg")
    assert_readable(one)
    rows = [make_timed(f"m{n % 9}/v{n}@d", 2.4, 1.02 + n / 500, "regressed") for n in range(500)]
    cut = draw_forest(forest_of(make_comparison(rows)), LIGHT, "svg")
    assert "Not drawn: 470 regressed." in texts_of(cut)
    whole = draw_forest(forest_of(make_comparison(rows[:120]), top=None), LIGHT, "svg")
    assert size_of(whole)[1] > 120 * 20
    assert {f"v{n}" for n in range(120)} <= set(texts_of(whole))


def test_ratios_without_an_interval_or_beyond_every_axis_are_drawn() -> None:
    rows = [
        make_row("a/v@d", "dispatches", "regressed", base_value=0, head_value=3, ratio=None),
        make_row("b/v@d", verdict="regressed", ratio=1.2),
        make_timed("c/v@d", 1.0, 1.02, "regressed", ci_low=-1.0, ci_high=1e308),
        make_row("d/v@d", verdict="regressed", ratio=1e308),
        make_row("e/v@d", verdict="improved", ratio=1e-300),
    ]
    for row in rows:
        assert_readable(draw_forest(forest_of(make_comparison([row])), LIGHT, "svg"))
    assert_readable(draw_forest(forest_of(make_comparison(rows)), LIGHT, "svg"))


def test_without_an_interval_there_is_no_line_that_looks_like_one() -> None:
    timed = make_timed("a/v@d", 1.0, 1.2, "inconclusive")
    bare = replace(timed, ci_low=None, ci_high=None)
    counted = make_row("a/v@d", "dispatches", "regressed", base_value=4, head_value=5)
    color = LIGHT.tones["open"]
    assert lines_of(timed, color)
    assert not lines_of(bare, color)
    assert not lines_of(counted, LIGHT.tones["worse"])
    dotted = lines_of(counted, LIGHT.axis)
    assert len(dotted) == 1
    assert "stroke-dasharray" in dotted[0]


def lines_of(row: Row, color: str) -> list[str]:
    """Styles of all lines of that colour but those around marks."""
    svg = draw_forest(forest_of(make_comparison([row])), LIGHT, "svg")
    styles = [element.attrib.get("style", "") for element in root_of(svg).iter(f"{SVG}path")]
    return [style for style in styles if "fill: none" in style and f"stroke: {color}" in style]


def test_the_foot_says_what_a_mark_without_an_interval_means() -> None:
    bare = make_timed("a/v@d", 1.0, 1.2, "inconclusive", ci_low=None, ci_high=None)
    counted = make_row("a/v@d", "dispatches", "regressed", base_value=4, head_value=5)

    def foot(row: Row) -> str:
        return " ".join(texts_of(draw_forest(forest_of(make_comparison([row])), LIGHT, "svg"))[-3:])

    assert "A mark alone: no interval yet." in foot(bare)
    assert "Dotted from 1: counted, which has no interval." in foot(counted)
    assert "A mark alone" not in foot(counted)
    assert "no interval" not in foot(make_timed("a/v@d", 1.0, 1.2, "regressed"))


def test_what_became_nothing_is_drawn_as_an_arrow_with_a_zero() -> None:
    row = make_row("a/v@d", "copies", "improved", base_value=13, head_value=0)
    svg = draw_forest(forest_of(make_comparison([row])), LIGHT, "svg")
    assert_readable(svg)
    assert {"0", "13 → 0"} <= set(texts_of(svg))
    blue = f"stroke: {LIGHT.tones['better']}".encode()
    assert blue in svg


def test_a_png_has_a_palette_and_keeps_the_colours_of_the_theme(full_comparison: Comparison) -> None:
    for theme in THEMES.values():
        png = Image.open(io.BytesIO(draw_forest(forest_of(full_comparison), theme, "png")))
        assert png.mode == "P"
        assert png.info["Title"].startswith("Ratios: esrgan")
        found = {color for _, color in png.convert("RGB").getcolors(256) or []}
        for color in (theme.ground, theme.ink, theme.muted, theme.tones["worse"], theme.tones["better"]):
            assert ImageColor.getrgb(color) in found


def test_each_row_has_its_own_floor_where_they_differ(full_comparison: Comparison) -> None:
    alike = [make_timed(f"m/v{n}@d", 2.4, 1.02, "regressed") for n in range(3)]
    apart = [replace(row, floor=0.01 * (n + 1)) for n, row in enumerate(alike)]
    theme = LIGHT

    def bands(rows: list) -> int:  # type: ignore[type-arg]  # of rows
        svg = draw_forest(forest_of(make_comparison(rows)), theme, "svg")
        return sum(f"fill: {theme.band}" in element.attrib.get("style", "") for element in root_of(svg).iter())

    assert bands(alike) == 1
    assert bands(apart) == 3


def test_a_runs_variants_against_its_baseline(full_run: Run) -> None:
    svg = draw_forest(forest_of_run(build_report(full_run)), DARK, "svg")
    assert_readable(svg)
    texts = texts_of(svg)
    assert "esrgan: variants against stock" in texts
    assert any(text.startswith("baseline → variant") for text in texts)


def test_nasty_runs_too(nasty_run: Run) -> None:
    forest = forest_of_run(build_report(nasty_run))
    if forest.has_ratios:
        ElementTree.fromstring(draw_forest(forest, LIGHT, "svg"))  # noqa: S314 (our own)
