"""The race of a tuning: the best so far over the budget."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest

from harness.errors import RunError
from harness.plots.canvas import DARK, LIGHT, THEMES, Theme
from harness.plots.pictures import pictures_of
from harness.plots.race import best_so_far, draw_race, race_axis
from harness.records.tuning import Moment
from tests.plots.conftest import assert_readable, texts_of
from tests.report.tunings import MOMENTS, make_tuning


def test_the_line_falls_from_the_start_to_the_winner_and_lasts_as_long_as_the_search() -> None:
    line = best_so_far(make_tuning())
    assert line[0] == (0.0, 1.0)
    assert line[-1] == (884.0, 0.338)
    assert all(seconds <= later and ratio >= lower for (seconds, ratio), (later, lower) in pairwise(line))


def test_a_winner_far_below_all_others_lies_on_the_axis() -> None:
    others = tuple(Moment(seconds=float(at), name="x", ratio=0.99, best=False) for at in range(40))
    found = make_tuning(moments=(*others, replace(MOMENTS[-1], ratio=0.01)))
    assert race_axis(found).low < 0.01


@pytest.mark.parametrize("theme", THEMES.values(), ids=THEMES)
def test_it_is_readable_and_names_the_winner(theme: Theme) -> None:
    svg = draw_race([make_tuning()], theme, "svg")
    assert_readable(svg)
    texts = texts_of(svg)
    assert "tuned-rdb 0.338" in texts and "spent of the budget (min)" in texts
    assert draw_race([make_tuning()], theme, "svg") == svg


def test_each_model_of_several_has_a_panel() -> None:
    short = make_tuning(model="mlp", budget_s=60.0, spent_s=55.0, moments=MOMENTS[:1], answer="budget too small")
    svg = draw_race([make_tuning(), short, make_tuning(moments=())], DARK, "svg", top=2)
    assert_readable(svg)
    texts = texts_of(svg)
    assert {"rdb on cpu, beside stock", "mlp on cpu, beside stock", "spent of the budget (s)"} <= set(texts)
    assert "Not drawn" not in " ".join(texts)


def test_one_in_which_nothing_was_timed_has_no_picture() -> None:
    with pytest.raises(RunError, match="nothing was timed"):
        draw_race([make_tuning(moments=())], LIGHT, "svg")
    assert pictures_of(make_tuning(moments=())) == {}
    assert set(pictures_of(make_tuning())) == {"race-light.png", "race-dark.png"}
