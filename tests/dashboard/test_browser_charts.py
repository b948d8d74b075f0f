"""The chart of a series in a real browser: drawn, zoomed, moved by keys, printed."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from tests.dashboard.made import NIGHTS, STEP_AT, digest, key_of_series, run_id

if TYPE_CHECKING:
    from playwright.sync_api import Page

Open = Callable[..., "Page"]

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
    return open_page(f"series.html?id={key_of_series('rdb/stock@cpu')}")


def settle(page: Page) -> None:
    """Wait until what was asked for is drawn."""
    page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")


def wait_until(page: Page, condition: str) -> None:
    """As Page.wait_for_function, which the pages' policy forbids, since it evaluates a text there."""
    for _ in range(200):
        if page.evaluate(condition):
            return
        page.wait_for_timeout(50)
    pytest.fail(f"never came true: {condition}")


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


def test_a_chart_has_its_line_the_reference_and_the_change(chart: Page) -> None:
    settle(chart)
    assert chart.evaluate("dashboard.charts.length") == 1
    for color, least in {"line": 500, "reference": 300, "mark-line": 100, "level": 50}.items():
        assert chart.evaluate(_INK, color) > least, color
    assert "fastest to slowest generation" in (chart.text_content("#legend") or "")


def test_a_series_that_never_moves_is_drawn_too(open_page: Open) -> None:
    page = open_page(f"series.html?id={key_of_series('conv/stock@cpu', 'dispatches')}")
    settle(page)
    assert page.evaluate(_INK, "line") > 300
    assert "No step and no drift was found." in (page.text_content("#changes") or "")


def test_dragging_zooms_and_a_double_click_shows_all_again(chart: Page) -> None:
    assert view(chart) == [0, NIGHTS - 1]
    box = chart.locator(".plot .u-over").bounding_box()
    assert box is not None
    middle = box["y"] + box["height"] / 2
    chart.mouse.move(box["x"] + box["width"] * 0.5, middle)
    chart.mouse.down()
    chart.mouse.move(box["x"] + box["width"] * 0.8, middle, steps=4)
    chart.mouse.up()
    low, high = view(chart)
    assert (low, high) == pytest.approx((0.5 * (NIGHTS - 1), 0.8 * (NIGHTS - 1)), abs=1)
    chart.mouse.dblclick(box["x"] + box["width"] * 0.5, middle)
    assert view(chart) == [0, NIGHTS - 1]


def test_dragging_with_shift_moves_the_view(chart: Page) -> None:
    press(chart, "+")
    low, high = view(chart)
    box = chart.locator(".plot .u-over").bounding_box()
    assert box is not None
    chart.keyboard.down("Shift")
    chart.mouse.move(box["x"] + 300, box["y"] + 80)
    chart.mouse.down()
    chart.mouse.move(box["x"] + 300 + box["width"] / 2, box["y"] + 80, steps=4)
    chart.mouse.up()
    chart.keyboard.up("Shift")
    moved_low, moved_high = view(chart)
    assert moved_low == pytest.approx(low - (high - low) / 2, abs=0.5)
    assert moved_high - moved_low == pytest.approx(high - low)


def test_buttons_zoom_move_and_show_all(chart: Page) -> None:
    for name in ("Zoom in", "Zoom in", "Earlier"):
        chart.get_by_role("button", name=name).click()
    low, high = view(chart)
    assert high - low == pytest.approx((NIGHTS - 1) / 4)
    assert high < NIGHTS - 1
    chart.get_by_role("button", name="Later").click()
    assert view(chart)[1] == pytest.approx(NIGHTS - 1)
    chart.get_by_role("button", name="Show all").click()
    assert view(chart) == [0, NIGHTS - 1]


def test_arrow_keys_read_every_point(chart: Page) -> None:
    assert "Run 2026-03-01 02:00" in readout(chart).replace("Run2", "Run 2")
    press(chart, "ArrowLeft")
    assert "2026-02-28 02:00" in readout(chart)
    press(chart, "PageUp")
    assert "2026-02-18 02:00" in readout(chart)
    press(chart, "Home")
    assert "2026-01-01 02:00" in readout(chart)
    press(chart, *["PageDown"] * 4)
    for fact in ("3.14.0rc20260210", "step of +8.0 %, compiler", "3f2a91c04b7e"):
        assert fact in readout(chart)
    press(chart, "End", "ArrowRight")
    assert "2026-03-01 02:00" in readout(chart)


def test_keys_zoom_move_and_escape(chart: Page) -> None:
    press(chart, "Home", "+", "+")
    assert view(chart) == pytest.approx([0, (NIGHTS - 1) / 4])
    press(chart, "Shift+ArrowRight")
    assert view(chart)[0] > 0
    press(chart, "End")
    assert view(chart)[1] == pytest.approx(NIGHTS - 1)
    press(chart, "Escape")
    assert view(chart) == [0, NIGHTS - 1]


def test_enter_opens_the_run(chart: Page) -> None:
    press(chart, "Home", *["PageDown"] * 4)
    with chart.expect_navigation():
        chart.keyboard.press("Enter")
    assert chart.url.endswith(f"run.html?id={digest(run_id(STEP_AT))}")


def test_the_pointer_reads_points(chart: Page) -> None:
    box = chart.locator(".plot .u-over").bounding_box()
    assert box is not None
    chart.mouse.move(box["x"] + 1, box["y"] + 50)
    settle(chart)
    assert "2026-01-01 02:00" in readout(chart)


def test_a_wheel_scrolls_the_page_and_zooms_only_with_control(chart: Page) -> None:
    chart.hover(".plot .u-over")
    chart.mouse.wheel(0, 200)
    wait_until(chart, "scrollY > 0")
    assert view(chart) == [0, NIGHTS - 1]
    chart.evaluate("scrollTo(0, 0)")
    chart.keyboard.down("Control")
    chart.mouse.wheel(0, -200)
    chart.keyboard.up("Control")
    wait_until(chart, f"{_VIEW}[1] - {_VIEW}[0] < {NIGHTS - 1}")


def test_the_scale_can_begin_at_zero(chart: Page) -> None:
    lowest = "dashboard.charts[0].scales.y.min"
    assert chart.evaluate(lowest) > 3e7
    chart.get_by_role("combobox", name="Scale").select_option("from zero")
    settle(chart)
    assert chart.evaluate(lowest) == 0


def test_a_chart_takes_the_colours_of_the_theme_and_prints_light(chart: Page) -> None:
    settle(chart)
    light = chart.evaluate("dashboard.color('line')")
    chart.get_by_role("button", name="Dark").click()
    settle(chart)
    assert chart.evaluate("dashboard.color('line')") != light
    assert chart.evaluate(_INK, "line") > 500
    chart.emulate_media(media="print")
    settle(chart)
    assert chart.evaluate("dashboard.color('line')") == light
    assert chart.evaluate(_INK, "line") > 500
    assert not chart.get_by_role("button", name="Zoom in").is_visible()


def test_all_points_are_in_a_table_too(chart: Page) -> None:
    rows = chart.locator("#points tbody tr")
    assert rows.count() == NIGHTS
    step = " ".join(rows.nth(NIGHTS - 1 - STEP_AT).inner_text().split())
    assert step.startswith("2026-02-10 02:00 3.14.0rc20260210 43.")
    assert step.endswith("another step")


def test_the_first_point_has_no_module_before_it(chart: Page) -> None:
    assert chart.locator("#points tbody tr").last.locator("td").nth(4).inner_text() == "-"
    press(chart, "Home")
    assert "Module" not in readout(chart)
    press(chart, "ArrowRight")
    assert "another than before" in readout(chart)


def test_figures_are_written_with_their_unit_and_rounded_nowhere(chart: Page) -> None:
    for values, unit, labels in (
        ([0, 0.25, 0.5], "%", ["0.00 %", "0.25 %", "0.50 %"]),
        ([0, 5, 10], "%", ["0 %", "5 %", "10 %"]),
        ([40e6, 42.5e6], "ns", ["40.0 ms", "42.5 ms"]),
        ([0.1, 0.2, 0.30000000000000004], "", ["0.1", "0.2", "0.3"]),
    ):
        assert chart.evaluate("([values, unit]) => dashboard.format.ticks(values, unit)", [values, unit]) == labels
    # What says that a commit's code differed stays.
    assert chart.evaluate("(text) => dashboard.format.commit(text)", "a" * 40 + "+dirty") == "aaaaaaaaaa+dirty"
    assert chart.evaluate("dashboard.format.commit(null)") == ""


def test_machines_have_charts_of_noise_and_load(open_page: Open) -> None:
    page = open_page("machines.html")
    settle(page)
    assert page.evaluate("dashboard.charts.length") == 2
    assert page.evaluate(_INK, "line") > 300
