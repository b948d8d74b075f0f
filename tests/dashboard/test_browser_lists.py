"""Tables in a real browser: filtered, sorted and unfolded by mouse and keyboard, and kept in the address."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from tests.dashboard.made import EVIL, STEP_AT, digest, make_comparison_key, run_id

if TYPE_CHECKING:
    from playwright.sync_api import Page

Open = Callable[..., "Page"]


@pytest.fixture
def comparison(open_page: Open) -> Page:
    """The page of the comparison with every kind of row."""
    return open_page(f"comparison.html?id={make_comparison_key()}")


def cells(page: Page, column: int) -> list[str]:
    """A column of the table with rows, as it stands there."""
    rows = page.locator(".controls ~ .scroll tbody tr:not(.details)")
    texts: list[str] = rows.evaluate_all(f"(rows) => rows.map((row) => row.children[{column}].textContent.trim())")
    return texts


def test_words_filter_as_they_are_typed(open_page: Open) -> None:
    page = open_page("all-series.html")
    page.get_by_label("Find").fill("rdb latency baseline")
    assert set(cells(page, 0)) == {"rdb/data-tiling@cpu", "rdb/winograd@cpu"}
    assert "2 of 51 series" in (page.text_content(".told") or "")
    page.get_by_label("Find").fill("")
    assert len(cells(page, 0)) == 42  # those of the newest toolchains, which is where the list begins


def test_choices_filter_and_stay_in_the_address(comparison: Page, open_page: Open) -> None:
    comparison.get_by_role("combobox", name="Verdict").select_option("improved")
    assert cells(comparison, 1) == ["mlp/stock@cpu"]
    assert comparison.url.endswith("#verdict=improved")
    again = open_page(f"comparison.html?id={make_comparison_key()}#verdict=improved")
    assert cells(again, 1) == ["mlp/stock@cpu"]
    assert again.get_by_role("combobox", name="Verdict").input_value() == "improved"


def test_all_metrics_stay_in_the_address_too(comparison: Page) -> None:
    assert set(cells(comparison, 2)) == {"Latency"}
    comparison.get_by_role("combobox", name="Metric").select_option("")
    assert set(cells(comparison, 2)) == {"Latency", "Dispatch count"}
    comparison.reload()
    comparison.wait_for_selector("html[data-ready]", state="attached")
    assert set(cells(comparison, 2)) == {"Latency", "Dispatch count"}


def test_a_verdicts_count_leads_to_its_rows(comparison: Page) -> None:
    comparison.locator("#verdicts").get_by_role("row", name="Dispatch count").get_by_role("link").click()
    assert cells(comparison, 1) == ["rdb/stock@cpu"]
    assert cells(comparison, 3) == ["▲ regressed gate"]


def test_an_address_that_makes_no_sense_is_no_problem(open_page: Open) -> None:
    page = open_page(f"comparison.html?id={make_comparison_key()}#verdict=wonderful&sort=-nonsense&find=%3Cscript%3E")
    assert page.get_by_role("combobox", name="Verdict").input_value() == ""
    assert cells(page, 1)[0].startswith(EVIL)


def test_columns_sort_by_keyboard_and_say_so(comparison: Page) -> None:
    head = comparison.get_by_role("columnheader", name="Ratio [95 %]")
    assert head.get_attribute("aria-sort") == "none"
    head.get_by_role("button").focus()
    comparison.keyboard.press("Enter")
    assert head.get_attribute("aria-sort") == "descending"
    assert cells(comparison, 6)[0] == "1.100 [1.089, 1.111]"
    comparison.keyboard.press("Enter")
    assert head.get_attribute("aria-sort") == "ascending"
    assert cells(comparison, 6)[0] == "0.951 [0.941, 0.961]"
    assert cells(comparison, 6)[-1] == "-"  # what has no ratio stays last
    assert comparison.url.endswith("#sort=ratio")


def test_the_forest_is_drawn_to_one_scale(comparison: Page) -> None:
    comparison.get_by_label("Find").fill("rdb")
    lines = comparison.locator("td.forest-cell svg")
    assert lines.count() == 2
    one = float(lines.first.locator(".one").get_attribute("x1") or 0)
    points = [float(lines.nth(at).locator("rect.point").get_attribute("x") or 0) + 3.5 for at in range(2)]
    by_verdict = dict(zip(cells(comparison, 3), points, strict=True))
    assert by_verdict["▲ regressed"] > one + 20
    assert abs(by_verdict["= unchanged"] - one) < 8
    floor = lines.first.locator(".floor").bounding_box()
    assert floor is not None
    assert floor["width"] > 4


def test_a_forest_has_ticks_where_its_rows_are(comparison: Page) -> None:
    for ratios, ticks in (
        ((0.98, 1.03), [0.97, 0.98, 0.99, 1, 1.01, 1.02, 1.03, 1.04]),
        ((0.17, 1.0), [0.2, 0.3, 0.5, 0.7, 1]),  # all below 1, on both sides of which an axis goes as far as it must
        ((1.0, 6.0), [1, 1.5, 2, 3, 5, 7]),
        ((0.1, 10.0), [0.1, 0.2, 0.5, 1, 2, 5, 10]),
        ((), [0.98, 0.99, 1, 1.01, 1.02]),
    ):
        rows = [{"ratio": ratio, "low": ratio * 0.99, "high": ratio * 1.01} for ratio in ratios]
        found = comparison.evaluate("(rows) => dashboard.forestTicks(dashboard.forestAxis(rows))", rows)
        assert [round(tick, 6) for tick in found] == ticks


def test_rows_unfold_with_reason_and_command(comparison: Page) -> None:
    comparison.get_by_label("Find").fill("rdb/stock")
    button = comparison.get_by_role("button", name="Details")
    button.focus()
    comparison.keyboard.press("Enter")
    assert button.get_attribute("aria-expanded") == "true"
    details = comparison.locator("tr.details")
    assert "confirmed in 16 fresh generations" in (details.text_content() or "")
    assert f"{run_id(STEP_AT)} --filter rdb/stock@cpu" in (details.locator("pre").text_content() or "")
    comparison.keyboard.press("Enter")
    assert details.count() == 0


def test_a_cases_commands_come_when_it_is_unfolded(open_page: Open) -> None:
    page = open_page(f"run.html?id={digest(run_id(STEP_AT))}")
    page.get_by_label("Find").fill("rdb/stock 3.14")
    page.get_by_role("button", name="Details").click()
    page.wait_for_selector("tr.details pre")
    assert page.locator("tr.details pre").text_content() == (
        "harness export suites/blocks.toml rdb\n# IREE 3.14.0rc20260210\niree-compile m.mlir"
    )


def test_a_run_tells_of_failures_changes_and_comparisons(open_page: Open) -> None:
    page = open_page(f"run.html?id={digest(run_id(STEP_AT))}")
    assert "conv/fused@cpu with 3.14.0rc20260210 at compile: iree-compile exited" in page.inner_text("#failures")
    assert "+8.0 % step rdb/stock@cpu latency compiler" in " ".join(page.inner_text("#changes").split())
    assert page.locator("#comparisons li").count() == 1
    page.get_by_role("link", name="the run before").click()
    page.wait_for_selector("html[data-ready]", state="attached")
    assert run_id(STEP_AT - 1) in page.inner_text("h1")


def test_variants_stand_side_by_side_with_bars_and_ratios(open_page: Open) -> None:
    page = open_page("variants.html")
    page.get_by_role("combobox", name="Model").select_option("rdb")
    rows = [" ".join(row.split()) for row in page.locator("tbody tr").all_inner_texts()]
    assert [row.split()[0] for row in rows] == ["data-tiling", "onnxruntime", "winograd", "stock"]
    assert rows[3].split()[1:4] == ["43.50", "ms", "baseline"]
    widths = page.locator(".share rect").evaluate_all("(bars) => bars.map((bar) => bar.getBBox().width)")
    assert widths == sorted(widths)
    assert widths[-1] == 200


def test_changes_are_filtered_by_cause(open_page: Open) -> None:
    page = open_page("changes.html")
    page.get_by_role("combobox", name="Cause").select_option("machine")
    assert cells(page, 2) == ["conv/stock@cpu"]
    page.get_by_role("button", name="Details").click()
    assert "The kernel changed from 6.1.0-25 to 6.1.0-28" in page.inner_text("tr.details")
