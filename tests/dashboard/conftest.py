"""A dashboard of a made-up history, and a browser that tells of everything that goes wrong on a page."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import urlsplit

import pytest

from benchmarks.history.dashboard_browser import chromium, find_chromium
from tests.dashboard.made import EVIL, a_history, acknowledged, make_site
from tests.report.tunings import make_nothing, make_tuning

if TYPE_CHECKING:
    from playwright.sync_api import Browser, ConsoleMessage, Error, Page, Request


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A whole site with every kind of page; read only."""
    made = acknowledged(a_history(), "conv/stock@cpu", "acknowledged", f"a kernel {EVIL}")
    tunings = (make_tuning(), make_nothing(model=EVIL, id=EVIL, notes=(EVIL,), command=(EVIL,)))
    return make_site(tmp_path_factory.mktemp("dashboard") / "site", made, tunings=tunings)


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Chromium; tests that need it are skipped without, and fail where CI says that there must be one."""
    path = find_chromium()
    if path is None:
        if os.environ.get("HARNESS_REQUIRE_BROWSER"):
            pytest.fail("HARNESS_REQUIRE_BROWSER is set, and there is no Chromium")
        pytest.skip("no Chromium; `sh scripts/install-chromium.sh` installs one")
    with chromium(path) as running:
        yield running


@pytest.fixture(scope="session")
def first_page(browser: Browser) -> Iterator[Page]:
    """The page that each test opens first: a process of its own for each would take most of a test's time."""
    context = browser.new_context()
    yield context.new_page()
    context.close()


@pytest.fixture
def open_page(browser: Browser, first_page: Page, site: Path) -> Iterator[Callable[..., Page]]:
    """Open a page of the site by its address there; errors and requests to elsewhere fail the test at its end."""
    opened: list[Page] = []
    homes: list[str] = []
    problems: list[str] = []

    def hear(message: ConsoleMessage) -> None:
        if message.type == "error":
            problems.append(message.text)

    def fail(error: Error) -> None:
        problems.append(str(error))

    def see(sent: Request) -> None:
        if not any(_inside(sent.url, home) for home in homes):
            problems.append(f"asked for {sent.url}")

    listeners: dict[Any, Any] = {"console": hear, "pageerror": fail, "request": see}

    def open_one(address: str, *, base: str | None = None, color_scheme: Literal["light", "dark"] = "light") -> Page:
        page = browser.new_context().new_page() if opened else first_page
        opened.append(page)
        homes.append(base or site.as_uri())
        page.set_default_timeout(20_000)
        page.set_viewport_size({"width": 1280, "height": 900})
        page.emulate_media(color_scheme=color_scheme, media="screen")
        for event, listener in listeners.items():
            page.on(event, listener)
        page.goto(f"{homes[-1]}/{address}")
        page.wait_for_selector("html[data-ready]", state="attached")
        return page

    yield open_one
    for page in opened:
        for event, listener in listeners.items():
            page.remove_listener(event, listener)
        if page is first_page:
            page.evaluate("localStorage.clear()")  # with the theme that was chosen
            page.goto("about:blank")
        else:
            page.context.close()
    assert problems == []


def _inside(url: str, home: str) -> bool:
    return urlsplit(url).scheme == "data" or url.startswith(f"{home}/")
