"""A dashboard of a made-up history, and a browser that tells of everything that goes wrong on a page."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest

from benchmarks.history.dashboard_browser import chromium, find_chromium
from tests.dashboard.made import EVIL, a_history, acknowledged, make_site

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Page


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A whole site with every kind of page; read only."""
    made = acknowledged(a_history(), "conv/stock@cpu", "acknowledged", f"a kernel {EVIL}")
    return make_site(tmp_path_factory.mktemp("dashboard") / "site", made)


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
    contexts: list[BrowserContext] = []
    problems: list[str] = []
    start = site.as_uri()

    def opened(address: str, *, base: str | None = None, **settings: Any) -> Page:
        context = browser.new_context(**{"viewport": {"width": 1280, "height": 900}, **settings})
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(20_000)
        home = base or start
        page.on("console", lambda message: problems.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("request", lambda sent: None if _inside(sent.url, home) else problems.append(f"asked for {sent.url}"))
        page.goto(f"{home}/{address}")
        page.wait_for_selector("html[data-ready]", state="attached")
        return page

    yield opened
    for context in contexts:
        context.close()
    assert problems == []


def _inside(url: str, home: str) -> bool:
    return urlsplit(url).scheme == "data" or url.startswith(f"{home}/")


@pytest.fixture(scope="module")
def server(site: Path) -> Iterator[str]:
    """The site's address on a web server of this machine."""

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_: Any) -> None:
            """Nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(site))) as httpd:
        threading.Thread(target=httpd.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{httpd.server_address[1]}"
        httpd.shutdown()
