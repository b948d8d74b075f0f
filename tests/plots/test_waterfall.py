"""The waterfall: bars that lead from base to head, in an axis that shows what changed."""

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from harness.cli import run_command_line
from harness.errors import RunError
from harness.plots.canvas import LIGHT, THEMES, Theme
from harness.plots.waterfall import axis_begin_ns, draw_waterfall, waterfall_steps
from harness.records.explanation import Elsewhere
from harness.report.explanation_page import explanation_document
from harness.store.work_directory import ExplanationDirectory
from tests.plots.conftest import NASTY_NAME, assert_readable, texts_of
from tests.report.explanations import PIPELINE, make_explanation, make_nasty_explanation, make_part


def test_each_bar_begins_where_the_last_one_ended_and_the_last_change_ends_at_head() -> None:
    base, *changes, head = waterfall_steps(make_explanation())
    assert [step.name for step in changes] == ["conv_a", "conv_b", "pad", "1 other part", "copies", "host and waits"]
    assert changes[0].start_ns == base.end_ns
    for step, following in pairwise(changes):
        assert following.start_ns == pytest.approx(step.end_ns)
    assert changes[-1].end_ns == pytest.approx(head.end_ns)
    assert [step.tone for step in changes[:4]] == ["better", "better", "worse", "same"]


def test_medians_that_do_not_add_up_are_a_bar_of_their_own() -> None:
    explanation = make_explanation()
    odd = replace(explanation, head_elsewhere=Elsewhere(device_ns={}, host_ns=0.0, profiled_ratio=1.0))
    assert waterfall_steps(odd)[-2].name == "medians that do not add up"


def test_the_axis_begins_at_zero_unless_changes_would_be_too_small_to_see() -> None:
    assert axis_begin_ns(waterfall_steps(make_explanation())) == 0.0
    small = waterfall_steps(make_explanation(make_part("conv", 100.0, 101.0, "regressed")))
    begin_ns = axis_begin_ns(small)
    assert 0.9 * small[0].end_ns < begin_ns < small[0].end_ns


@pytest.mark.parametrize("theme", THEMES.values(), ids=THEMES)
def test_it_is_readable_and_says_what_each_part_does(theme: Theme) -> None:
    svg = draw_waterfall(make_explanation(), theme, "svg")
    assert_readable(svg)
    texts = texts_of(svg)
    assert "rdb/stock@cpu: IREE 3.12.0 against IREE 3.10.0" in texts
    assert "conv_a" in texts and PIPELINE in texts
    assert any(text.startswith("-300.000 ms (-42.4 %)") for text in texts)
    assert draw_waterfall(make_explanation(), theme, "svg") == svg


def test_small_changes_and_any_name_are_readable() -> None:
    small = make_explanation(make_part("conv", 100.0, 101.0, "regressed", what=("x" * 2_000,)))
    svg = draw_waterfall(small, LIGHT, "svg")
    assert_readable(svg)
    assert any("The axis begins at" in text for text in texts_of(svg))
    assert_readable(draw_waterfall(make_nasty_explanation(NASTY_NAME), LIGHT, "svg"))


def test_parts_that_take_more_than_the_call_are_not_drawn() -> None:
    over = Elsewhere(device_ns={}, host_ns=-1e8, profiled_ratio=1.0)
    with pytest.raises(RunError, match="no bar can begin where another one ends"):
        waterfall_steps(make_explanation(base_elsewhere=over))


@pytest.mark.parametrize("options", [[], ["--kind", "waterfall"]])
def test_the_command_draws_one_that_is_kept(options: list[str], tmp_path: Path) -> None:
    folder = tmp_path / "20261122-140000-esrgan-explain"
    folder.mkdir()
    ExplanationDirectory(folder).finish(explanation_document(make_explanation()), "report")
    out = tmp_path / "waterfall.svg"
    assert run_command_line(["plot", str(tmp_path / "latest"), "--out", str(out), *options]) == 0
    assert "conv_a" in texts_of(out.read_bytes())
