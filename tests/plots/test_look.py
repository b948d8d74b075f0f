"""Both themes can be read, and look the same whatever the user's matplotlib is set to."""

from __future__ import annotations

import matplotlib as mpl
import pytest

from harness.plots.look import DARK, HOLLOW, LIGHT, MARKERS, THEMES, Theme, drawing, marker_of
from harness.report.forest import TONES

GITHUB = {"light": "#ffffff", "dark": "#0d1117"}


def luminance(color: str) -> float:
    """Relative luminance, as WCAG 2.2 defines it."""
    parts = [int(color[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("theme", [LIGHT, DARK])
def test_texts_and_marks_stand_out_from_the_ground(theme: Theme) -> None:
    for ground in (theme.ground, theme.stripe):
        for text in (theme.ink, theme.muted, *theme.tones.values()):
            assert contrast(text, ground) >= 4.5, (text, ground)
    for mark in (theme.axis, *theme.series):
        assert contrast(mark, theme.ground) >= 3, mark
    # The band has to be seen, and to leave what lies on it readable.
    assert contrast(theme.band, theme.ground) > 1.15
    assert min(contrast(mark, theme.band) for mark in theme.tones.values()) >= 3


def test_a_pictures_ground_is_that_of_the_page_it_is_shown_on() -> None:
    assert {name: theme.ground for name, theme in THEMES.items()} == GITHUB


def test_no_two_tones_have_the_same_shape() -> None:
    assert len({(MARKERS[tone], tone in HOLLOW) for tone in TONES}) == len(TONES)


def test_four_dozen_variants_are_told_apart() -> None:
    assert len({marker_of(number) for number in range(48)}) == 48
    assert marker_of(48) == marker_of(0)
    assert not any(marker_of(number).hollow for number in range(12))
    assert all(marker_of(number).hollow for number in range(12, 24))


def test_settings_of_the_user_change_nothing_and_stay_as_they_are() -> None:
    with mpl.rc_context({"axes.grid": True, "font.size": 40, "text.usetex": True, "svg.fonttype": "path"}):
        with drawing(LIGHT):
            assert mpl.rcParams["svg.fonttype"] == "none"
            assert mpl.rcParams["font.size"] == mpl.rcParamsDefault["font.size"]
            assert not mpl.rcParams["text.usetex"]
            assert not mpl.rcParams["axes.grid"]
        assert mpl.rcParams["font.size"] == 40
