"""A dashboard of a made-up history, and a browser that tells of everything that goes wrong on a page."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import pytest

from benchmarks.history.dashboard_browser import chromium, find_chromium
from tests.dashboard.made import EVIL, EXPLAINED, a_history, acknowledged, make_site, over_releases
from tests.report.tunings import make_nothing, make_tuning

if TYPE_CHECKING:
    from playwright.sync_api import Browser, ConsoleMessage, Page, Request


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A whole site with every kind of page; read only."""
    made = acknowledged(a_history(), "conv/stock@cpu", "acknowledged", f"a kernel {EVIL}")
    tunings = (make_tuning(), make_nothing(model=EVIL, id=EVIL, notes=(EVIL,), command=(EVIL,)))
    given = {"tunings": tunings, "explanations": (EXPLAINED,), "releases": over_releases()}
    return make_site(tmp_path_factory.mktemp("dashboard") / "site", made, **given)


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


@pytest.fixture
def open_page(browser: Browser, site: Path) -> Iterator[Callable[..., Page]]:
    """Open a page of the site by its address there; errors and requests to elsewhere fail the test at its end."""
    opened: list[Page] = []
    problems: list[str] = []

    def hear(message: ConsoleMessage) -> None:
        if message.type == "error":
            problems.append(message.text)

    def see(sent: Request) -> None:
        if not sent.url.startswith((f"{site.as_uri()}/", "data:")):
            problems.append(f"asked for {sent.url}")

    def open_one(address: str, *, color_scheme: Literal["light", "dark"] = "light") -> Page:
        page = browser.new_context(color_scheme=color_scheme, viewport={"width": 1280, "height": 900}).new_page()
        opened.append(page)
        page.set_default_timeout(20_000)
        page.on("console", hear)
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("request", see)
        page.goto(f"{site.as_uri()}/{address}")
        page.wait_for_selector("html[data-ready]", state="attached")
        return page

    yield open_one
    for page in opened:
        page.context.close()
    assert problems == []
