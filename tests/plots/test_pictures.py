"""Every kind of picture: readable in both themes, equal for equal values, inert whatever names hold."""

import io
from collections.abc import Callable
from dataclasses import replace

import pytest
from PIL import Image, ImageColor

from harness.errors import RunError, UsageError
from harness.plots.canvas import LIGHT, THEMES, Format, Theme
from harness.plots.pictures import RUN_KINDS, Kind, draw, pictures_of, published
from harness.records.comparison import Comparison
from harness.records.run import Run
from harness.report.run_report import Report, build_report
from tests.plots.conftest import NASTY_NAME, SVG, assert_readable, make_report, root_of, size_of, texts_of
from tests.plots.test_roofline import PEAK, WORK
from tests.report.builders import make_comparison, make_nasty_comparison, make_row, make_timed

Draw = Callable[[Theme, Format], bytes]


@pytest.fixture
def report(full_run: Run) -> Report:
    return build_report(full_run)


@pytest.fixture(params=[*RUN_KINDS, "comparison"])
def picture(request: pytest.FixtureRequest) -> Draw:
    """Every kind, of names that are attacks."""
    times = {"stock": 9.0, NASTY_NAME: 4.0, "y" * 10_000: 12.0}
    memory = {name: (number + 1) * 2**20 for number, name in enumerate(times)}
    report = make_report(times, memory=memory, work=(WORK,))
    sections = tuple(replace(section, peak=PEAK) for section in report.sections)
    nasty = replace(report, sections=sections, facts=replace(report.facts, suite_name=NASTY_NAME))

    def drawn(theme: Theme, form: Format) -> bytes:
        if request.param == "comparison":
            return draw("forest", make_nasty_comparison(), theme, form)
        return draw(request.param, nasty, theme, form)

    return drawn


def test_every_picture_is_readable_in_both_themes_and_equal_for_equal_values(picture: Draw) -> None:
    for theme in THEMES.values():
        svg = picture(theme, "svg")
        assert_readable(svg)
        assert 900 <= size_of(svg)[0] <= 1000
        assert theme.ground.encode() in svg
        assert b"<script" not in svg
        title = root_of(svg).find(f"{SVG}title")
        assert title is not None
        assert ": " in (title.text or "")
    assert picture(theme, "svg") == svg


@pytest.mark.parametrize("theme", THEMES.values(), ids=THEMES)
def test_a_png_has_two_pixels_for_each_of_a_page_and_keeps_the_colours_of_the_theme(theme: Theme) -> None:
    rows = [make_timed("m/slow@d", 2.4, 1.08, "regressed"), make_timed("m/fast@d", 2.4, 0.9, "improved")]
    content = draw("forest", make_comparison(rows), theme, "png")
    assert content == draw("forest", make_comparison(rows), theme, "png")
    png = Image.open(io.BytesIO(content))
    assert png.mode == "P"
    assert png.width == round(2 * size_of(draw("forest", make_comparison(rows), theme, "svg"))[0])
    assert png.info["Title"].startswith("Ratios: esrgan")
    colors = {color for _, color in png.convert("RGB").getcolors(256) or []}
    for color in (theme.ground, theme.ink, theme.muted, theme.tones["worse"], theme.tones["better"]):
        assert ImageColor.getrgb(color) in colors


def test_a_comparisons_forest_and_a_runs_pictures(full_comparison: Comparison, report: Report) -> None:
    pictures = pictures_of(full_comparison, themes=("dark",), formats=("svg",))
    assert list(pictures) == ["forest-dark.svg"]
    assert "esrgan: IREE 3.13.0 against IREE 3.12.0" in texts_of(pictures["forest-dark.svg"])
    own = pictures_of(report, themes=("light",), formats=("svg",))
    assert list(own) == ["forest-light.svg", "variants-light.svg", "memory-light.svg"]
    assert "esrgan: variants against stock" in texts_of(own["forest-light.svg"])
    both = pictures_of(report, kinds=("variants",), formats=("svg",))
    assert list(both) == ["variants-light.svg", "variants-dark.svg"]


def test_what_has_nothing_on_it_is_left_out() -> None:
    same = make_comparison([make_row("mm/v@cpu", verdict="identical")])
    assert pictures_of(same) == {}
    with pytest.raises(
        RunError, match=r"^results/c: has no ratio to draw \(not drawn: 1 identical\); see harness report results/c$"
    ):
        draw("forest", same, LIGHT, "svg", where="results/c")


def test_what_cannot_be_drawn_is_told_in_a_sentence(full_comparison: Comparison, full_run: Run) -> None:
    kinds: tuple[Kind, ...] = ("variants", "memory", "roofline", "timeline")
    for kind in kinds:
        with pytest.raises(UsageError, match="c: is a comparison, which can be drawn as forest; give --kind forest"):
            draw(kind, full_comparison, LIGHT, "svg", where="c")
    empty = build_report(replace(full_run, rounds=()))
    for kind in RUN_KINDS:
        with pytest.raises(RunError, match=r"^results/r: (nothing was measured|has no ratio).*; see harness report"):
            draw(kind, empty, LIGHT, "svg", where="results/r")


def test_a_picture_in_a_sentence(full_comparison: Comparison, report: Report) -> None:
    (picture,) = published(full_comparison, "https://e.org/{}".format)
    assert (picture.light_url, picture.dark_url) == ("https://e.org/forest-light.png", "https://e.org/forest-dark.png")
    assert picture.alt.startswith("Ratios with their intervals: Outputs differ in 1 case; 1 gate violated; 2 ")
    assert "\n" not in published(report, str)[0].alt
