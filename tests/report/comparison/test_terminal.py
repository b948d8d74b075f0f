"""What a terminal shows of a comparison, at the widths people have."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from rich.cells import cell_len
from syrupy.assertion import SnapshotAssertion

from harness.records.comparison import VERDICTS, Comparison
from harness.report.comparison import render_comparison
from harness.report.comparison.words import MARKS
from tests.report.comparison.conftest import make_comparison, make_row, make_timed

# Commands and next steps stay on one line each, however long, so that they can be copied.
UNWRAPPED = re.compile(r"  (harness|iree-\S+) |- ")


def shown(comparison: Comparison, width: int, *, color: bool = False) -> str:
    return render_comparison(comparison, "terminal", width=width, color=color)


@pytest.mark.parametrize("width", [80, 120])
def test_everything_that_can_happen(full_comparison: Comparison, width: int, snapshot: SnapshotAssertion) -> None:
    assert shown(full_comparison, width) == snapshot


@pytest.mark.parametrize("name", ["quiet_comparison", "recorded_comparison", "nasty_comparison"])
def test_odd_comparisons(name: str, request: pytest.FixtureRequest, snapshot: SnapshotAssertion) -> None:
    assert shown(request.getfixturevalue(name), 100) == snapshot


@pytest.mark.parametrize("width", [40, 60, 80, 100, 120, 160, 240])
@pytest.mark.parametrize("name", ["full_comparison", "quiet_comparison", "recorded_comparison", "nasty_comparison"])
def test_no_line_is_wider_than_the_terminal(name: str, width: int, request: pytest.FixtureRequest) -> None:
    for line in shown(request.getfixturevalue(name), width).splitlines():
        assert cell_len(line) <= width or UNWRAPPED.match(line), line
        assert line == line.rstrip()


def test_every_verdict_has_a_mark_of_its_own_beside_its_word(full_comparison: Comparison) -> None:
    assert set(MARKS) == set(VERDICTS)
    assert len(set(MARKS.values())) == len(VERDICTS)
    text = shown(full_comparison, 120)
    for verdict, mark in MARKS.items():
        assert f"{mark} {verdict}" in text


def test_colours_only_repeat_what_is_written(full_comparison: Comparison) -> None:
    colored = shown(full_comparison, 120, color=True)
    assert "\x1b[31m▲ regressed" in colored
    plain = re.sub(r"\x1b\[[0-9;]*m", "", colored)
    assert "".join(f"{line.rstrip()}\n" for line in plain.splitlines()) == shown(full_comparison, 120)


def test_of_many_rows_only_those_that_matter_are_listed() -> None:
    rows = [make_timed(f"m/v{index}@d", 1.0, 1.0, "unchanged") for index in range(60)]
    rows += [make_row(f"m/i{index}@d", verdict="identical") for index in range(5)]
    rows.append(make_timed("m/slow@d", 1.0, 1.2, "regressed"))
    rows.append(make_row("m/gone@d", verdict="missing"))
    text = shown(make_comparison(rows), 120)
    assert "Not listed: 60 unchanged, 5 identical rows." in text
    assert "m/slow@d" in text
    assert "m/gone@d" in text
    assert "m/v1@d" not in text


def test_where_the_full_report_only_counts_unchanged_figures_the_csv_has_them() -> None:
    rows = [make_row(f"m/v{index}@d", "copies", base_value=1.0, head_value=1.0) for index in range(1_001)]
    assert "Not listed: 1,001 unchanged rows. --format csv has every row." in shown(make_comparison(rows), 120)
    fewer = shown(make_comparison(rows[:1_000]), 120)
    assert "Not listed: 1,000 unchanged rows. --format markdown --full has every row." in fewer


def test_of_thousands_that_matter_the_largest_regressions_are_listed_and_the_others_counted() -> None:
    rows = [make_timed(f"m/u{index}@d", 1.0, 1.3, "inconclusive", reason="too wide") for index in range(1500)]
    rows += [make_timed(f"m/r{index}@d", 1.0, 1.1 + index / 1000, "regressed") for index in range(120)]
    rows += [make_row(f"m/l{index}@d", verdict="missing") for index in range(130)]
    text = shown(make_comparison(rows), 120)
    assert "m/r119@d" in text
    assert "m/r19@d" not in text
    assert "m/l99@d" in text
    assert "m/l100@d" not in text
    assert "Not listed: 20 regressed, 1,500 inconclusive rows. --format markdown --full has every row." in text
    assert "Not listed: 30 missing rows." in text
    assert len(text.splitlines()) < 500


def test_a_reason_that_rows_share_is_said_once() -> None:
    rows = [make_timed(f"m/v{index}@d", 1.0, 1.0, "inconclusive", reason="too wide") for index in range(3)]
    assert "m/v0@d, m/v1@d, m/v2@d: too wide" in shown(make_comparison(rows), 120)


def test_a_comparison_that_was_not_kept_has_no_name(quiet_comparison: Comparison) -> None:
    assert f"Comparison {quiet_comparison.id}: IREE" in shown(quiet_comparison, 200)
    assert "\nComparison: IREE" in shown(replace(quiet_comparison, id=""), 200)
