"""What pictures share: readable themes, texts that fit, names beside points that cover nothing."""

from __future__ import annotations

import matplotlib as mpl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.plots.canvas import (
    HOLLOW,
    LIGHT,
    MARKERS,
    THEMES,
    Box,
    Canvas,
    Theme,
    cut,
    cut_end,
    drawable,
    paint,
    place_labels,
    width_px,
    wrapped,
)
from harness.report.forest import TONES
from tests.plots.conftest import assert_readable, texts_of

GITHUB = {"light": "#ffffff", "dark": "#0d1117"}
BOUNDS = Box(left=0, bottom=0, right=400, top=300)
POINTS = st.lists(st.tuples(st.floats(10, 390), st.floats(10, 290)), max_size=20)


def luminance(color: str) -> float:
    """Relative luminance, as WCAG 2.2 defines it."""
    parts = [int(color[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(color: str, other: str) -> float:
    low, high = sorted((luminance(color), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("theme", THEMES.values(), ids=THEMES)
def test_texts_and_marks_stand_out_from_the_ground(theme: Theme) -> None:
    assert theme.ground == GITHUB[theme.name]
    for ground in (theme.ground, theme.stripe):
        for text in (theme.ink, theme.muted, *theme.tones.values()):
            assert contrast(text, ground) >= 4.5, (text, ground)
    for mark in (theme.axis, *theme.series):
        assert contrast(mark, theme.ground) >= 3, mark
    # The band has to be seen, and to leave what lies on it readable.
    assert contrast(theme.band, theme.ground) > 1.15
    assert min(contrast(mark, theme.band) for mark in theme.tones.values()) >= 3


def test_no_two_tones_have_the_same_shape() -> None:
    assert len({(MARKERS[tone], tone in HOLLOW) for tone in TONES}) == len(TONES)


def test_settings_of_the_user_change_nothing_and_stay_as_they_are() -> None:
    def draw(canvas: Canvas, y: float) -> None:
        canvas.axes(50, y, 300, 80).plot([1, 2], [1, 2])

    def picture() -> bytes:
        return paint(LIGHT, "svg", draw, kind="k", title="t", lines=["l"], above=9, height=99, foot=["f"])

    plain = picture()
    with mpl.rc_context({"axes.grid": True, "font.size": 40, "svg.fonttype": "path", "lines.linewidth": 9}):
        assert picture() == plain
        assert mpl.rcParams["font.size"] == 40
    assert_readable(plain)
    assert {"t", "l", "f"} <= set(texts_of(plain))


@pytest.mark.parametrize(
    ("text", "drawn"),
    [
        ("a 🚀 日本 é", "a □ □□ é"),
        ("a\u202eb\u200bc\x1b[31md\n\te\ud800", "abcd e"),
        ("e\u0301", "é"),
    ],
    ids=["characters that the font lacks", "characters that nobody sees", "accents that are apart"],
)
def test_any_text_can_be_drawn(text: str, drawn: str) -> None:
    assert drawable(text) == drawn
    assert width_px(text, 13) == width_px(drawn, 13) < width_px(text, 13, bold=True)


def test_a_long_name_loses_its_middle() -> None:
    name = cut("residual-dense-block-with-a-long-name@local-task", 200, 13)
    assert name.startswith("residual")
    assert "…" in name
    assert name.endswith("task")
    assert width_px(cut("x" * 10_000, 300, 13), 13) <= 300


@settings(max_examples=60, deadline=None)
@given(st.text(max_size=80), st.floats(30, 400))
def test_what_is_cut_fits(text: str, room: float) -> None:
    for part in (cut(text, room, 13), cut_end(text, room, 13), *wrapped(text, room, 13)):
        assert width_px(part, 13) <= room


def test_a_sentence_is_broken_between_words_and_its_end_is_marked() -> None:
    lines = wrapped("one two three four five six seven eight nine ten", 120, 13, most=2)
    assert lines[0] == "one two three"
    assert len(lines) == 2
    assert lines[1].endswith("…")


# --- Names beside points ---


@settings(deadline=None)
@given(POINTS, st.floats(10, 200))
def test_names_never_overlap(points: list[tuple[float, float]], width: float) -> None:
    places = place_labels(points, [(width, 14.0)] * len(points), BOUNDS)
    boxes = [place.box for place in places if place is not None]
    assert len(places) == len(points)
    for number, box in enumerate(boxes):
        assert BOUNDS.holds(box)
        assert not any(box.overlaps(other) for other in boxes[number + 1 :])
        assert not any(box.left < x < box.right and box.bottom < y < box.top for x, y in points)


def test_a_lone_name_stands_beside_its_point_on_the_side_with_room() -> None:
    (place,) = place_labels([(100, 100)], [(50.0, 14.0)], BOUNDS)
    assert place is not None
    assert not place.far
    assert place.box.left > 100
    assert place.box.bottom < 100 < place.box.top
    (place,) = place_labels([(390, 100)], [(50.0, 14.0)], BOUNDS)
    assert place is not None
    assert place.box.right < 390


def test_a_line_is_left_free_where_another_place_is_as_near() -> None:
    line = Box(left=0, right=400, bottom=99, top=101)
    (place,) = place_labels([(100, 100)], [(50.0, 14.0)], BOUNDS, [line])
    assert place is not None
    assert not place.box.overlaps(line)


def test_of_many_at_one_place_those_without_room_have_no_name() -> None:
    places = place_labels([(200, 150)] * 200, [(120.0, 14.0)] * 200, BOUNDS)
    assert None in places
    assert sum(place is not None and place.far for place in places) > 5
