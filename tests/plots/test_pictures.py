"""What all pictures share: readable in both themes, equal for equal values, inert whatever names hold; the command."""

import io
from dataclasses import replace
from pathlib import Path
from typing import Any

import matplotlib as mpl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from harness.cli import run_command_line
from harness.cli.plot import PlotOptions
from harness.cli.plot import plot as plot_command
from harness.errors import RunError, UsageError
from harness.plots.canvas import LIGHT, THEMES, Drawing, Theme, cut, drawable, width_px, wrapped
from harness.plots.pictures import RUN_KINDS, Kind, drawing_of, published
from harness.plots.timeline import draw_timeline
from harness.records.comparison import Comparison
from harness.records.run import Run
from harness.report.data import document_of
from harness.report.run_report import build_report
from tests.plots.conftest import (
    NASTY_NAME,
    SVG,
    assert_readable,
    change_at,
    contrast,
    make_points,
    make_report,
    root_of,
    size_of,
    texts_of,
)
from tests.plots.test_kinds import PEAK, WORK
from tests.report.builders import make_comparison, make_nasty_comparison, make_row, make_side, make_timed
from tests.report.explanations import make_explanation, make_part
from tests.report.tunings import make_tuning

PUBLISHED = Path(__file__).parents[2] / "results" / "published" / "esrgan"
GITHUB = {"light": "#ffffff", "dark": "#0d1117"}
UNCHANGED = make_timed("mm/stock@cpu", 2.4, 1.0007, "unchanged")


@pytest.mark.parametrize(("name", "theme"), THEMES.items(), ids=THEMES)
def test_texts_and_marks_stand_out_from_the_ground(name: str, theme: Theme) -> None:
    assert theme.ground == GITHUB[name]
    for ground in (theme.ground, theme.stripe):
        for text in (theme.ink, theme.muted, *theme.tones.values()):
            assert contrast(text, ground) >= 4.5, (text, ground)
    for mark in (theme.axis, *theme.series):
        assert contrast(mark, theme.ground) >= 3, mark
    # The band has to be seen, and to leave what lies on it readable.
    assert contrast(theme.band, theme.ground) > 1.15
    assert min(contrast(mark, theme.band) for mark in theme.tones.values()) >= 3


@settings(max_examples=60, deadline=None)
@given(st.text(max_size=80), st.floats(30, 400))
def test_any_text_can_be_drawn_and_what_is_cut_fits(text: str, room: float) -> None:
    for part in (cut(text, room, 13), *wrapped(text, room, 13)):
        assert width_px(part, 13) <= room
    assert drawable("a 🚀 日本 e\u0301 b\u202ec\u200b\x1b[31m\n\t\ud800") == "a □ □□ é bc"


def nasty_drawing(kind: Kind) -> Drawing:
    """A picture of that kind whose names are attacks, or very long."""
    if kind == "timeline":
        points = make_points([76e6, 80e6] * 6, [NASTY_NAME] * 12, case=NASTY_NAME, metric=f"odd/{'m' * 300}")
        return draw_timeline(points, [change_at(5, 3, 8, 76e6, 80e6, kind="drift", until="run-9")])
    if kind == "waterfall":
        part = make_part(NASTY_NAME, 4.0, 8.0, "regressed", base=(NASTY_NAME,), what=(NASTY_NAME,) * 2)
        side = make_side(NASTY_NAME, NASTY_NAME)
        return drawing_of(kind, make_explanation(part, case=NASTY_NAME, base=side, head=side, sentence=NASTY_NAME))
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
def test_every_picture_is_readable_in_both_themes_whatever_names_and_settings_the_user_has(kind: Kind) -> None:
    for theme in THEMES.values():
        svg = nasty_drawing(kind).file(theme, "svg")
        assert_readable(svg)
        assert 900 <= size_of(svg)[0] <= 1000
        assert theme.ground.encode() in svg
        assert b"<script" not in svg
        title = root_of(svg).find(f"{SVG}title")
        assert title is not None and ": " in (title.text or "")
    with mpl.rc_context({"axes.grid": True, "font.size": 40, "svg.fonttype": "path", "lines.linewidth": 9}):
        assert nasty_drawing(kind).file(theme, "svg") == svg


def test_a_png_has_two_pixels_for_each_of_a_page() -> None:
    drawing = drawing_of("forest", make_comparison([UNCHANGED]))
    content = drawing.file(LIGHT, "png")
    assert content == drawing.file(LIGHT, "png")
    png = Image.open(io.BytesIO(content))
    assert png.width == round(2 * size_of(drawing.file(LIGHT, "svg"))[0])
    assert png.info["Title"].startswith("Ratios: esrgan")


def test_a_picture_of_nothing_is_refused(full_run: Run, full_comparison: Comparison) -> None:
    same = make_comparison([make_row("mm/v@cpu", verdict="identical")])
    why = r"^results/c: has no ratio to draw \(not drawn: 1 identical\); see harness report results/c$"
    with pytest.raises(RunError, match=why):
        drawing_of("forest", same, where="results/c")
    empty = build_report(replace(full_run, rounds=()))
    for kind in RUN_KINDS:
        with pytest.raises(RunError, match=r"^results/r: (nothing was measured|has no ratio).*; see harness report"):
            drawing_of(kind, empty, where="results/r")
    with pytest.raises(UsageError, match="c: is a comparison, which can be drawn as forest; give --kind forest"):
        drawing_of("memory", full_comparison, where="c")
    (picture,) = published(full_comparison, "https://e.org/{}".format)
    assert (picture.light_url, picture.dark_url) == ("https://e.org/forest-light.png", "https://e.org/forest-dark.png")
    assert picture.alt.startswith("Ratios with their intervals: Outputs differ in 1 case; 1 gate violated; 2 ")


# --- `harness plot` ---


@pytest.fixture
def compared(tmp_path: Path) -> Path:
    """A comparison on disk."""
    folder = tmp_path / "20261121-093000-esrgan-compare"
    folder.mkdir()
    (folder / "comparison.json").write_bytes(document_of(make_comparison([UNCHANGED])))
    return folder


def plot(path: Path | str, out: Path, **options: Any) -> int:
    return plot_command(PlotOptions(str(path), out=out, **options))


def test_one_picture(compared: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one = tmp_path / "picture.PNG"
    latest = str(compared.parent / "latest")
    assert run_command_line(["plot", latest, "--kind", "forest", "--top", "2", "--out", str(one)]) == 0
    assert one.read_bytes().startswith(b"\x89PNG")
    assert capsys.readouterr().err == f"{one}\n"


def test_some_cases_of_a_run_and_a_series_of_a_folder_of_runs(tmp_path: Path) -> None:
    out = tmp_path / "picture.svg"
    assert plot(PUBLISHED, out, kind="variants", theme="dark", patterns=("rdb/*@cpu",)) == 0
    texts = texts_of(out.read_bytes())
    assert any("share-concat" in text for text in texts)
    assert not any("cpu-mt" in text for text in texts)
    assert THEMES["dark"].ground.encode() in out.read_bytes()
    assert plot(PUBLISHED.parent, out, series="rdb/stock@cpu") == 0
    assert "rdb/stock@cpu: median latency" in texts_of(out.read_bytes())


@pytest.mark.parametrize(
    ("folder", "given", "said"),
    [
        (PUBLISHED, {"out": Path("x.gif")}, r"--out x\.gif: does not end in \.svg or \.png; name a file that does"),
        (PUBLISHED, {"series": "x"}, "is a run, which can be drawn as roofline, .*; --series is for the folder"),
        (PUBLISHED, {"kind": "timeline"}, "is a run, .*; a timeline is for the folder that holds the runs"),
        (PUBLISHED, {"patterns": ("nobody/*",)}, r"--filter nobody/\* matches no case"),
        (PUBLISHED.parent, {"kind": "forest"}, "is a folder of runs, which can be drawn as timeline"),
        (PUBLISHED.parent, {"series": "x", "top": 3}, "--top is for runs and comparisons"),
        (PUBLISHED.parent, {"series": "nobody"}, "--series nobody: means no series"),
    ],
)
def test_what_does_not_go_together(folder: Path, given: dict[str, Any], said: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=said):
        plot(folder, given.pop("out", tmp_path / "picture.svg"), **given)


def test_errors_name_the_file(compared: Path, tmp_path: Path) -> None:
    for path, out, said in (
        (tmp_path / "cache", tmp_path / "picture.svg", "there is no such folder"),
        (compared, tmp_path / "none/picture.svg", r"picture\.svg: cannot be written \(No such file or directory"),
    ):
        with pytest.raises(RunError, match=said):
            plot(path, out)
