"""Every kind of picture: readable in both themes, equal for equal values, inert whatever names hold."""

import io
from dataclasses import replace

import pytest
from PIL import Image, ImageColor

from harness.errors import RunError, UsageError
from harness.plots.canvas import LIGHT, THEMES, Drawing, Theme
from harness.plots.pictures import RUN_KINDS, Kind, drawing_of, drawings_of, published
from harness.plots.timeline import draw_timeline
from harness.records.comparison import Comparison
from harness.records.run import Run
from harness.report.run_report import build_report
from tests.plots.conftest import NASTY_NAME, SVG, assert_readable, make_report, root_of, size_of, texts_of
from tests.plots.test_roofline import PEAK, WORK
from tests.plots.test_timeline import DRIFT, STEP, VALUES, make_points
from tests.report.builders import make_comparison, make_nasty_comparison, make_row, make_timed
from tests.report.explanations import make_nasty_explanation
from tests.report.tunings import make_tuning


def nasty_drawing(kind: Kind) -> Drawing:
    """A picture of that kind whose names are attacks, or very long."""
    if kind == "timeline":
        points = make_points(VALUES, case=NASTY_NAME, metric=f"odd/{'m' * 300}", toolchain=lambda _: (NASTY_NAME,) * 2)
        return draw_timeline(points, [STEP, DRIFT])
    if kind == "waterfall":
        return drawing_of(kind, make_nasty_explanation(NASTY_NAME))
    if kind == "race":
        return drawing_of(kind, make_tuning(model=NASTY_NAME, sentence=NASTY_NAME))
    if kind == "forest":
        return drawing_of(kind, make_nasty_comparison())
    times = {"stock": 9.0, NASTY_NAME: 4.0, "y" * 10_000: 12.0}
    memory = {name: (number + 1) * 2**20 for number, name in enumerate(times)}
    report = make_report(times, memory=memory, work=(WORK,))
    sections = tuple(replace(section, peak=PEAK) for section in report.sections)
    run = replace(report.run, header=replace(report.header, suite_name=NASTY_NAME))
    return drawing_of(kind, replace(report, sections=sections, run=run))


@pytest.mark.parametrize("kind", [*RUN_KINDS, "timeline", "waterfall", "race"])
def test_every_picture_is_readable_in_both_themes_and_equal_for_equal_values(kind: Kind) -> None:
    for theme in THEMES.values():
        svg = nasty_drawing(kind).file(theme, "svg")
        assert_readable(svg)
        assert 900 <= size_of(svg)[0] <= 1000
        assert theme.ground.encode() in svg
        assert b"<script" not in svg
        title = root_of(svg).find(f"{SVG}title")
        assert title is not None and ": " in (title.text or "")
    assert nasty_drawing(kind).file(theme, "svg") == svg


@pytest.mark.parametrize("theme", THEMES.values(), ids=THEMES)
def test_a_png_has_two_pixels_for_each_of_a_page_and_keeps_the_colours_of_the_theme(theme: Theme) -> None:
    rows = [make_timed("m/slow@d", 2.4, 1.08, "regressed"), make_timed("m/fast@d", 2.4, 0.9, "improved")]
    drawing = drawing_of("forest", make_comparison(rows))
    content = drawing.file(theme, "png")
    assert content == drawing.file(theme, "png")
    png = Image.open(io.BytesIO(content))
    assert png.mode == "P"
    assert png.width == round(2 * size_of(drawing.file(theme, "svg"))[0])
    assert png.info["Title"].startswith("Ratios: esrgan")
    colors = {color for _, color in png.convert("RGB").getcolors(256) or []}
    for color in (theme.ground, theme.ink, theme.muted, theme.tones["worse"], theme.tones["better"]):
        assert ImageColor.getrgb(color) in colors


def test_all_pictures_are_those_that_have_anything_on_them(full_run: Run) -> None:
    drawings = drawings_of(build_report(full_run))
    assert list(drawings) == ["forest", "variants", "memory"]
    assert "esrgan: variants against stock" in texts_of(drawings["forest"].file(LIGHT, "svg"))
    same = make_comparison([make_row("mm/v@cpu", verdict="identical")])
    assert drawings_of(same) == drawings_of(make_tuning(moments=())) == {}
    why = r"^results/c: has no ratio to draw \(not drawn: 1 identical\); see harness report results/c$"
    with pytest.raises(RunError, match=why):
        drawing_of("forest", same, where="results/c")
    empty = build_report(replace(full_run, rounds=()))
    for kind in RUN_KINDS:
        with pytest.raises(RunError, match=r"^results/r: (nothing was measured|has no ratio).*; see harness report"):
            drawing_of(kind, empty, where="results/r")


def test_a_kind_of_something_else_is_told_in_a_sentence(full_comparison: Comparison) -> None:
    with pytest.raises(UsageError, match="c: is a comparison, which can be drawn as forest; give --kind forest"):
        drawing_of("memory", full_comparison, where="c")


def test_a_picture_in_a_sentence(full_comparison: Comparison, full_run: Run) -> None:
    (picture,) = published(full_comparison, "https://e.org/{}".format)
    assert (picture.light_url, picture.dark_url) == ("https://e.org/forest-light.png", "https://e.org/forest-dark.png")
    assert picture.alt.startswith("Ratios with their intervals: Outputs differ in 1 case; 1 gate violated; 2 ")
    assert "\n" not in published(build_report(full_run), str)[0].alt
