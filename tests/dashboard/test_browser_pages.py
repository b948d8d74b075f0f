"""All pages in a real browser: from disk and from a server, in both themes, on a narrow screen, with hostile names."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.dashboard.made import (
    EVIL,
    HOSTILE,
    STEP_AT,
    Made,
    digest,
    key_of_series,
    make_comparison_key,
    make_site,
    run_id,
)

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

Open = Callable[..., "Page"]

ADDRESSES = (
    "index.html",
    "changes.html",
    "all-series.html",
    f"series.html?id={key_of_series('rdb/stock@cpu')}",
    "runs.html",
    f"run.html?id={digest(run_id(STEP_AT))}",
    "comparisons.html",
    f"comparison.html?id={make_comparison_key()}",
    "variants.html",
    "machines.html",
)
HOSTILE_ADDRESSES = (
    *(f"series.html?id={digest(f'{case} hostile')}" for case in HOSTILE),
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
    assert page.locator("img").count() == 0
    assert page.locator("body script").count() == 0
    assert page.evaluate(_FAINT) == []
    page.emulate_media(color_scheme="dark")
    page.wait_for_selector("html[data-theme=dark]")
    assert page.evaluate(_FAINT) == []
    page.set_viewport_size({"width": 400, "height": 800})
    assert not page.evaluate(_WIDER_THAN_THE_SCREEN)
    page.set_viewport_size({"width": 794, "height": 1123})  # A4
    page.emulate_media(media="print")
    page.wait_for_selector("html[data-theme=light]")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert not page.locator("nav").is_visible()
    assert page.locator("select:visible, input:visible").count() == 0
    assert page.get_by_role("button", name="Copy").locator("visible=true").count() == 0
    assert page.evaluate(_RIGHTMOST_EDGE) <= 795


@pytest.mark.parametrize("address", [ADDRESSES[0], ADDRESSES[3], ADDRESSES[7]])
def test_a_page_from_a_server_is_the_same(open_page: Open, server: str, address: str) -> None:
    page = open_page(address, base=server)
    assert page.locator("h1").inner_text().strip()
    assert page.locator("tbody tr").count() > 3


def test_the_name_of_a_hostile_case_is_whole_on_its_own_page(open_page: Open) -> None:
    page = open_page(HOSTILE_ADDRESSES[0])
    assert page.locator("h1 .name").text_content() == HOSTILE[0]
    assert len(open_page(HOSTILE_ADDRESSES[3]).locator("h1 .name").text_content() or "") == 10_000


@pytest.mark.parametrize("address", ["series.html", "series.html?id=../../x", "run.html?id=0123456789abcdef"])
def test_an_address_of_nothing_is_told_in_a_sentence(browser: Browser, site: Path, address: str) -> None:
    page = browser.new_page()  # where a missing file is no failure of the test, as it is on others
    page.goto(f"{site.as_uri()}/{address}")
    page.wait_for_selector("html[data-ready]", state="attached")
    message = page.locator(".problem:visible").inner_text()
    page.close()
    assert message.startswith("Nothing to show: ")


def test_the_keyboard_reaches_the_content_and_shows_where_it_is(open_page: Open) -> None:
    page = open_page("all-series.html")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the content"
    assert (page.locator(".skip").bounding_box() or {"x": -1})["x"] >= 0
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.type") == "search"
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"


def test_the_chosen_theme_is_kept(open_page: Open) -> None:
    page = open_page("index.html", color_scheme="light")
    page.get_by_role("button", name="Dark theme").click()
    page.goto(page.url.replace("index.html", "runs.html"))
    assert page.get_attribute("html", "data-theme") == "dark"
    assert page.locator("#theme").inner_text() == "Light theme"  # what it leads to


def test_what_is_put_into_a_page_does_not_run(browser: Browser, site: Path) -> None:
    page = browser.new_page()
    refused: list[str] = []
    page.on("console", lambda message: refused.append(message.text))
    page.goto(f"{site.as_uri()}/index.html")
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


def test_the_pages_of_an_empty_history_work(open_page: Open, tmp_path: Path) -> None:
    empty = make_site(tmp_path / "empty", Made()).as_uri()
    page = open_page("index.html", base=empty)
    for address in [address for address in ADDRESSES if "?" not in address]:
        page.goto(f"{empty}/{address}")
        page.wait_for_load_state()
        assert page.locator("h1").inner_text().strip()
        assert page.locator(".problem:visible").count() == 0
