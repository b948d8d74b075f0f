"""The site in a real browser: every page in both themes, tables that filter and sort, charts that zoom."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from harness.dashboard.encode import figure, level
from harness.dashboard.kept import explanation_file, tuning_facts
from tests.dashboard.made import (
    COMPARISON,
    EVIL,
    EXPLAINED,
    HOSTILE,
    NIGHTS,
    OVER,
    STEP_AT,
    digest,
    key_of_series,
    run_id,
    toolchain,
)
from tests.report.tunings import make_nothing, make_tuning

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

Open = Callable[..., "Page"]

COMPARED = f"comparison.html?id={digest(COMPARISON)}"
RUN = f"run.html?id={digest(run_id(STEP_AT))}"
SERIES = f"series.html?id={key_of_series('rdb/stock@cpu')}"
LISTS = ("index.html", "changes.html", "all-series.html", "runs.html", "comparisons.html", "variants.html")
TUNINGS = tuple(tuning_facts(found)["file"] for found in (make_tuning(), make_nothing(model=EVIL, id=EVIL)))
EXPLANATION = explanation_file(EXPLAINED)
ADDRESSES = (
    *LISTS,
    EXPLANATION,
    "tunings.html",
    "machines.html",
    SERIES,
    RUN,
    COMPARED,
    *TUNINGS,
    f"run.html?id={digest(OVER)}",
)
HOSTILE_ADDRESSES = (
    *(f"series.html?id={key_of_series(case, suite=EVIL)}" for case in HOSTILE),
    f"run.html?id={digest(run_id(3, EVIL))}",
)

# Texts whose contrast to what is behind them is below 4.5, as WCAG 2 counts it.
_FAINT = """() => {
  const linear = (part) => (part /= 255) <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  const light = ([red, green, blue]) => 0.2126 * linear(red) + 0.7152 * linear(green) + 0.0722 * linear(blue);
  const parts = (color) => color.match(/[\\d.]+/g).map(Number);
  const behind = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const color = parts(getComputedStyle(at).backgroundColor);
      if (color.length < 4 || color[3] > 0) return color;
    }
    return [255, 255, 255];
  };
  const faint = [];
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const element = texts.currentNode.parentElement;
    if (!texts.currentNode.data.trim() || !element.checkVisibility()) continue;
    const [one, other] = [light(parts(getComputedStyle(element).color)), light(behind(element))].sort((a, b) => b - a);
    if ((one + 0.05) / (other + 0.05) < 4.5) faint.push(`${element.className}: ${element.textContent}`);
  }
  return faint;
}"""
_RIGHTMOST_EDGE = """() => Math.max(
  ...[...document.querySelectorAll("table, svg, h1, p")].map((part) => part.getBoundingClientRect().right))"""
_WIDER_THAN_THE_SCREEN = "document.documentElement.scrollWidth > innerWidth"


@pytest.mark.parametrize("address", [*ADDRESSES, *HOSTILE_ADDRESSES])
def test_a_page_shows_its_names_as_text_in_both_themes_on_a_narrow_screen_and_on_paper(
    open_page: Open, address: str
) -> None:
    page = open_page(address, color_scheme="light")
    assert page.locator("h1").inner_text().strip()
    assert page.locator(".problem:visible").count() == 0
    assert page.evaluate("typeof window.broken") == "undefined"
    assert page.locator("img:not(.race)").count() == 0
    assert page.locator("body script").count() == 0
    assert page.evaluate(_FAINT) == []
    page.emulate_media(color_scheme="dark")
    page.wait_for_selector("html[data-theme=dark]")
    assert page.evaluate(_FAINT) == []
    page.set_viewport_size({"width": 390, "height": 800})
    assert not page.evaluate(_WIDER_THAN_THE_SCREEN)
    page.set_viewport_size({"width": 794, "height": 1123})  # A4
    page.emulate_media(media="print")
    page.wait_for_selector("html[data-theme=light]")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert not page.locator("nav").is_visible()
    assert page.locator("select:visible, input:visible").count() == 0
    assert page.get_by_role("button", name="Copy").locator("visible=true").count() == 0
    assert page.evaluate(_RIGHTMOST_EDGE) <= 795


def test_an_address_of_nothing_is_told_in_a_sentence_and_what_is_put_into_a_page_does_not_run(
    browser: Browser, site: Path
) -> None:
    page = browser.new_page()  # where a missing file or a refused script is no failure of the test, as on others
    refused: list[str] = []
    page.on("console", lambda message: refused.append(message.text))
    page.goto(f"{site.as_uri()}/series.html?id=../../x")
    page.wait_for_selector("html[data-ready]", state="attached")
    assert page.locator(".problem:visible").inner_text().startswith("Nothing to show: ")
    page.evaluate("""() => {
      const script = document.createElement("script");
      script.textContent = "window.broken = 1";
      document.body.append(script);
      document.body.insertAdjacentHTML("beforeend", "<img src=x onerror='window.broken = 1'>");
    }""")
    page.wait_for_timeout(100)
    assert page.evaluate("typeof window.broken") == "undefined"
    page.close()
    assert any("Content Security Policy" in text for text in refused)


def test_the_keyboard_reaches_the_content_the_chosen_theme_is_kept_and_commands_can_be_copied(open_page: Open) -> None:
    page = open_page("all-series.html", color_scheme="light")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the content"
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.type") == "search"
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    page.get_by_role("button", name="Dark theme").click()
    page.goto(page.url.replace("all-series.html", TUNINGS[0]))
    assert page.get_attribute("html", "data-theme") == "dark"
    assert page.locator("#theme").inner_text() == "Light theme"  # what it leads to
    assert page.get_by_role("button", name="Copy").count() == 3
    assert page.locator(".race:visible").evaluate("(picture) => picture.naturalWidth") > 500
    assert page.get_by_role("group").filter(has_text="when each was last timed").locator("tbody tr").count() == 3


# --- The first page: models x variants, and means over time ---


def test_a_cell_says_all_of_itself_where_it_is_pointed_at_and_leads_to_its_series_or_its_failure(
    open_page: Open,
) -> None:
    page = open_page("index.html")
    cell = page.get_by_role("link", name="0.619 conv, data-tiling: 0.619 [0.616, 0.622] of the time of stock")
    width = "(words) => words.getBoundingClientRect().width"
    assert cell.locator(".words").evaluate(width) == 1
    cell.focus()
    assert cell.locator(".words").evaluate(width) > 200
    cell.click()
    page.wait_for_url("**/series.html?id=*")
    assert "conv/data-tiling@cpu" in page.inner_text("h1")
    page.go_back()
    page.get_by_role("link", name="✗ failed conv, fused: failed at compile: iree-compile exited").click()
    assert page.inner_text("#failures :focus") == "conv/fused@cpu"
    page.go_back()
    page.get_by_role("region", name="What fails").get_by_role("link", name="mlp/fused@cpu").click()
    assert page.inner_text("#failures :focus") == "mlp/fused@cpu"


def test_means_over_time_are_a_chart_with_lines_to_choose_and_a_table(open_page: Open) -> None:
    page = open_page("index.html")
    settle(page)
    assert page.evaluate(_INK, "series-1") > 300
    page.get_by_role("checkbox", name="data-tiling").uncheck()
    settle(page)
    assert page.evaluate(_INK, "series-1") == 0
    assert "2026-03-01 02:00" in readout(page)
    assert "winograd0.672 of 3 cases" in readout(page)
    page.get_by_role("combobox", name="Figure").select_option("Latency")
    page.get_by_text("The same as a table").click()
    first = " ".join(page.locator("#content tbody tr").first.inner_text().split())
    assert first.startswith("2026-03-01 02:00 3.14.0rc20260301")
    assert first.count(" of 3") == 4


# --- Tables: filtered, sorted and unfolded by mouse and keyboard, and kept in the address ---


def cells(page: Page, column: int) -> list[str]:
    """A column of the table with rows, as it stands there."""
    rows = page.locator(".controls ~ .scroll tbody tr:not(.details)")
    texts: list[str] = rows.evaluate_all(f"(rows) => rows.map((row) => row.children[{column}].textContent.trim())")
    return texts


def test_words_and_choices_filter_and_stay_in_the_address(open_page: Open) -> None:
    page = open_page("all-series.html")
    assert len(cells(page, 0)) == 45  # those of the newest toolchains, which is where the list begins
    page.get_by_label("Find").fill("rdb latency baseline")
    assert set(cells(page, 0)) == {"rdb/data-tiling@cpu", "rdb/winograd@cpu"}
    assert "2 of 54 series" in (page.text_content(".told") or "")
    comparison = open_page(COMPARED)
    comparison.get_by_role("combobox", name="Verdict").select_option("improved")
    assert cells(comparison, 1) == ["mlp/stock@cpu"]
    assert comparison.url.endswith("#verdict=improved")
    again = open_page(f"{COMPARED}#verdict=improved")
    assert cells(again, 1) == ["mlp/stock@cpu"]
    assert again.get_by_role("combobox", name="Verdict").input_value() == "improved"
    odd = open_page(f"{COMPARED}#verdict=wonderful&sort=-nonsense&find=%3Cscript%3E")
    assert odd.get_by_role("combobox", name="Verdict").input_value() == ""
    assert cells(odd, 1)[0].startswith(EVIL)


def test_a_comparison_has_failures_first_sorts_by_keyboard_and_draws_its_forest_to_one_scale(open_page: Open) -> None:
    comparison = open_page(COMPARED)
    first, second = (" ".join(text.split()) for text in comparison.locator("#causes > li").all_inner_texts())
    assert first.startswith("≠ outputs differ 2 cases: head's output 0 differs in 4 of 6 values, worst at [1]: ")
    assert first.endswith("is base's conv/data-tiling@cpu conv/winograd@cpu")
    assert second == f"✗ failed conv/fused@cpu: fails at compile {EVIL}"
    assert comparison.inner_text("h1").startswith("IREE 3.12.0 and 3.14.0rc20260210 against IREE 3.12.0 and ")
    head = comparison.get_by_role("columnheader", name="Ratio [95 %]")
    head.get_by_role("button").focus()
    for order, ratio in ("descending", "1.100 [1.089, 1.111]"), ("ascending", "0.951 [0.941, 0.961]"):
        comparison.keyboard.press("Enter")
        assert head.get_attribute("aria-sort") == order
        assert cells(comparison, 6)[0] == ratio
    assert cells(comparison, 6)[-1] == "-"  # what has no ratio stays last
    assert comparison.url.endswith("#sort=ratio")
    comparison.get_by_label("Find").fill("rdb")
    lines = comparison.locator("td.forest-cell svg")
    assert lines.count() == 2
    one = float(lines.first.locator(".one").get_attribute("x1") or 0)
    points = [float(lines.nth(at).locator("rect.point").get_attribute("x") or 0) + 3.5 for at in range(2)]
    by_verdict = dict(zip(cells(comparison, 3), points, strict=True))
    assert by_verdict["▲ regressed"] > one + 20
    assert abs(by_verdict["= unchanged"] - one) < 8
    comparison.get_by_label("Find").fill("rdb/stock")
    button = comparison.get_by_role("button", name="Details")
    button.focus()
    comparison.keyboard.press("Enter")
    assert button.get_attribute("aria-expanded") == "true"
    assert "confirmed in 16 fresh generations" in (comparison.locator("tr.details").text_content() or "")


def test_a_run_tells_of_cases_failures_changes_and_comparisons(open_page: Open) -> None:
    page = open_page(RUN)
    page.get_by_label("Find").fill("rdb/fused 3.14")
    page.get_by_role("button", name="Details").click()
    assert page.locator("tr.details pre").text_content() == (
        "harness export suites/blocks.toml rdb\n# IREE 3.14.0rc20260210\niree-compile m.mlir"
    )
    failures = " ".join(page.inner_text("#failures").split())
    assert failures == "✗ failed 2 cases with 3.14.0rc20260210 at compile: iree-compile exited with status 1 " + (
        "conv/fused@cpu rdb/fused@cpu"
    )
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
    assert rows[3].endswith("1.783 s 794 KiB 15 18.1 MiB 19.4 MiB 2026-03-01")


# --- The chart of a series: drawn, zoomed, moved by keys, printed ---

# How many pixels of the first canvas are near a colour of the page, by its name.
_INK = """(name) => {
  const canvas = document.querySelector(".plot canvas");
  const probe = document.createElement("canvas").getContext("2d");
  probe.fillStyle = dashboard.color(name);
  probe.fillRect(0, 0, 1, 1);
  const [red, green, blue] = probe.getImageData(0, 0, 1, 1).data;
  const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
  let count = 0;
  for (let at = 0; at < data.length; at += 4) {
    const apart = Math.abs(data[at] - red) + Math.abs(data[at + 1] - green) + Math.abs(data[at + 2] - blue);
    if (data[at + 3] > 200 && apart < 24) count += 1;
  }
  return count;
}"""
_VIEW = "(() => { const { min, max } = dashboard.charts[0].scales.x; return [min, max]; })()"


@pytest.fixture
def chart(open_page: Open) -> Page:
    """The page of the series with a step."""
    return open_page(SERIES)


def settle(page: Page) -> None:
    """Wait until what was asked for is drawn."""
    page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")


def view(page: Page) -> list[float]:
    settle(page)
    found: list[float] = page.evaluate(_VIEW)
    return found


def readout(page: Page) -> str:
    return " ".join((page.text_content(".readout") or "").split())


def press(page: Page, *keys: str) -> None:
    page.focus(".plot")
    for key in keys:
        page.keyboard.press(key)
        settle(page)


def test_a_chart_has_its_line_the_reference_and_the_change(chart: Page, open_page: Open) -> None:
    settle(chart)
    assert chart.evaluate("dashboard.charts.length") == 1
    for color, least in {"line": 500, "reference": 300, "mark-line": 100, "level": 50}.items():
        assert chart.evaluate(_INK, color) > least, color
    assert "fastest to slowest generation" in (chart.text_content("#legend") or "")
    flat = open_page(f"series.html?id={key_of_series('conv/stock@cpu', 'dispatches')}")
    settle(flat)
    assert flat.evaluate(_INK, "line") > 300
    assert "No step and no drift was found." in (flat.text_content("#changes") or "")


def test_dragging_zooms_keys_read_every_point_and_enter_opens_its_run(chart: Page) -> None:
    assert "Run 2026-03-01 02:00" in readout(chart).replace("Run2", "Run 2")
    press(chart, "ArrowLeft")
    assert "2026-02-28 02:00" in readout(chart)
    assert view(chart) == [0, NIGHTS - 1]
    box = chart.locator(".plot .u-over").bounding_box()
    assert box is not None
    middle = box["y"] + box["height"] / 2
    chart.mouse.move(box["x"] + box["width"] * 0.5, middle)
    chart.mouse.down()
    chart.mouse.move(box["x"] + box["width"] * 0.8, middle, steps=4)
    chart.mouse.up()
    assert view(chart) == pytest.approx([0.5 * (NIGHTS - 1), 0.8 * (NIGHTS - 1)], abs=1)
    chart.locator(".plot .u-over").dblclick()
    assert view(chart) == [0, NIGHTS - 1]
    press(chart, "Home", *["PageDown"] * 4)
    for fact in ("3.14.0rc20260210", "step of +8.0 %, compiler", "3f2a91c04b7e"):
        assert fact in readout(chart)
    with chart.expect_navigation():
        chart.keyboard.press("Enter")
    assert chart.url.endswith(f"run.html?id={digest(run_id(STEP_AT))}")


def test_scripts_write_figures_as_the_rest_of_the_harness_does(chart: Page) -> None:
    values = [0, 1, 64, 999, 1023, 1024, 10_205, 812_345, 19_003_904, 2**31, 0.25, 1234.56, 9.9996, 76_590_123.4]
    given = [(value, unit) for unit in ("ns", "bytes", "count", "instructions", "") for value in values]
    given += [(ratio, "ratio") for ratio in (0.1, 0.25, 0.9996, 1, 9.9996, 64, 1234.5)]
    found = chart.evaluate("(given) => given.map((pair) => dashboard.format.figure(...pair))", given)
    assert dict(zip(given, found, strict=True)) == {pair: figure(*pair) for pair in given}
    pairs = [(812_345, 812_409, "bytes"), (10_205, 10_269, "bytes"), (19_003_904, 19_003_905, "bytes"),
             (2e6, 2.0001e6, "ns"), (0, 3, "count"), (7, 7, "count"), (1.0, 1.02, "ratio")]  # fmt: skip
    found = chart.evaluate("(given) => given.map((three) => dashboard.format.level(...three))", pairs)
    assert found == [level(*three) for three in pairs]
    assert found[:2] == ["793.3 KiB → 793.4 KiB", "9.97 KiB → 10.03 KiB"]


def test_a_step_leads_to_its_line_over_releases_and_a_cell_to_another(open_page: Open) -> None:
    page = open_page("index.html")
    assert page.locator(".steps .spark line").count() == 2  # where each step lies
    page.get_by_role("link", name="rdb/stock@local-sync").click()
    page.wait_for_selector("html[data-ready]", state="attached")
    assert page.locator("#line-title").inner_text() == "rdb/stock@local-sync, latency"
    told = page.locator("#line .readout")
    assert "latency, 3.10.0: 2.00" in told.inner_text() and "as slow from 3.9.0" in told.inner_text()
    page.get_by_role("link", name="✗ fails").click()
    page.wait_for_function("document.querySelector('#line .readout').textContent.includes('fails: failed at compile')")
    assert page.locator("#line-title").inner_text() == f"{EVIL}/stock@local-sync, latency"


def test_an_address_tells_which_release_a_series_shows(open_page: Open) -> None:
    page = open_page(f"{SERIES}#metric=latency&release={toolchain(STEP_AT)}")
    assert toolchain(STEP_AT) in page.locator(".readout").inner_text()
    span = page.evaluate("dashboard.charts[0].scales.x.max - dashboard.charts[0].scales.x.min")
    assert span == NIGHTS - 1  # all of them stay in view
