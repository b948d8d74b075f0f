"""What pictures share: readable themes, texts that fit, names beside points that cover nothing."""

import matplotlib as mpl
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.plots.canvas import LIGHT, THEMES, Canvas, Drawing, Theme, cut, cut_end, drawable, width_px, wrapped
from harness.plots.memory import Box, overlaps, place_labels
from tests.plots.conftest import assert_readable, texts_of

GITHUB = {"light": "#ffffff", "dark": "#0d1117"}
BOUNDS: Box = (0, 0, 400, 300)
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


def test_settings_of_the_user_change_nothing_and_stay_as_they_are() -> None:
    def paint(canvas: Canvas) -> None:
        canvas.axes(50, canvas.down(99), 300, 80).plot([1, 2], [1, 2])
        canvas.foot("f", "")

    drawing = Drawing(kind="k", title="t", lines=["l"], paint=paint)
    plain = drawing.file(LIGHT, "svg")
    with mpl.rc_context({"axes.grid": True, "font.size": 40, "svg.fonttype": "path", "lines.linewidth": 9}):
        assert drawing.file(LIGHT, "svg") == plain
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


@settings(max_examples=60, deadline=None)
@given(st.text(max_size=80), st.floats(30, 400))
def test_what_is_cut_fits(text: str, room: float) -> None:
    for part in (cut(text, room, 13), cut_end(text, room, 13), *wrapped(text, room, 13)):
        assert width_px(part, 13) <= room


# --- Names beside points ---


@settings(deadline=None)
@given(POINTS, st.floats(10, 200))
def test_names_never_overlap_and_cover_no_point(points: list[tuple[float, float]], width: float) -> None:
    places = place_labels(points, [(width, 14.0)] * len(points), BOUNDS)
    boxes = [place[0] for place in places if place is not None]
    assert len(places) == len(points)
    for number, box in enumerate(boxes):
        assert box[0] >= 0 and box[1] >= 0 and box[2] <= 400 and box[3] <= 300
        others = [*boxes[number + 1 :], *((x, y, x, y) for x, y in points)]
        assert not overlaps(np.array([box]), np.array(others).reshape(-1, 4)).any()


@pytest.mark.parametrize(("x", "is_right"), [(100.0, True), (390.0, False)])
def test_a_lone_name_stands_beside_its_point_on_the_side_with_room(x: float, is_right: bool) -> None:
    (place,) = place_labels([(x, 100.0)], [(50.0, 14.0)], BOUNDS)
    assert place is not None
    (left, bottom, right, top), is_far = place
    assert not is_far
    assert (left > x) == is_right and (right < x) != is_right
    assert bottom < 100 < top


def test_of_many_at_one_place_those_without_room_have_no_name() -> None:
    places = place_labels([(200, 150)] * 200, [(120.0, 14.0)] * 200, BOUNDS)
    assert None in places
    assert sum(place is not None and place[1] for place in places) > 5
