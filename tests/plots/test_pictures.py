"""Which pictures there are of a comparison and of a run, and what each is called."""

from __future__ import annotations

from dataclasses import replace

import pytest

from harness.errors import RunError, UsageError
from harness.plots.look import LIGHT
from harness.plots.pictures import RUN_KINDS, Kind, alt_text, draw, pictures_of
from harness.records.comparison import Comparison
from harness.records.run import Run
from harness.report.table import build_report
from harness.report.values import Report
from tests.plots.conftest import texts_of
from tests.report.comparison.conftest import make_comparison, make_row


@pytest.fixture
def report(full_run: Run) -> Report:
    return build_report(full_run)


def test_a_comparisons_forest_and_its_heads_variants(full_comparison: Comparison, report: Report) -> None:
    found = pictures_of(full_comparison, report, themes=("dark",))
    assert list(found) == ["forest-dark.png", "variants-dark.png", "memory-dark.png"]
    assert all(content.startswith(b"\x89PNG") for content in found.values())


def test_a_comment_needs_the_forest_in_both_themes(quiet_comparison: Comparison) -> None:
    assert list(pictures_of(quiet_comparison)) == ["forest-light.png", "forest-dark.png"]


def test_only_what_is_wanted(full_comparison: Comparison, report: Report) -> None:
    found = pictures_of(full_comparison, report, kinds=("forest",), themes=("dark",), formats=("svg",))
    assert list(found) == ["forest-dark.svg"]
    assert "esrgan: results/new against iree==3.12.0" in texts_of(found["forest-dark.svg"])


def test_a_runs_own_forest_where_there_is_no_comparison(report: Report) -> None:
    found = pictures_of(None, report, kinds=("forest",), themes=("light",), formats=("svg",))
    assert "esrgan: variants against stock" in texts_of(found["forest-light.svg"])


def test_what_has_nothing_on_it_is_left_out() -> None:
    same = make_comparison([make_row("mm/v@cpu", verdict="identical")])
    assert pictures_of(same) == {}
    with pytest.raises(RunError, match=r"^results/c: has no ratio to draw \(not drawn: 1 identical\); see harness"):
        draw("forest", same, LIGHT, "svg", where="results/c")


@pytest.mark.parametrize("kind", ["variants", "memory", "roofline", "timeline"])
def test_a_comparison_has_a_forest_only(full_comparison: Comparison, kind: Kind) -> None:
    with pytest.raises(UsageError, match="c: is a comparison, which can be drawn as forest; give --kind forest"):
        draw(kind, full_comparison, LIGHT, "svg", where="c")


@pytest.mark.parametrize("kind", RUN_KINDS)
def test_a_run_without_measurements_is_told_in_a_sentence(full_run: Run, kind: Kind) -> None:
    report = build_report(replace(full_run, rounds=()))
    with pytest.raises(RunError, match=r"^results/r: (nothing was measured|has no ratio)"):
        draw(kind, report, LIGHT, "svg", where="results/r")


def test_rows_are_chosen_by_their_case(full_comparison: Comparison) -> None:
    svg = draw("forest", full_comparison, LIGHT, "svg", keep=lambda case: case.startswith("mm/"), top=1)
    assert "mm/stock@local-sync" in texts_of(svg)
    assert "rdb/stock@local-sync" not in texts_of(svg)


def test_a_picture_in_a_sentence(full_comparison: Comparison, report: Report) -> None:
    assert alt_text("forest", full_comparison).startswith("Ratios with their intervals: 1 gate violated; 2 regressions")
    assert "\n" not in alt_text("variants", report)
