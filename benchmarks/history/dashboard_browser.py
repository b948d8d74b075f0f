"""A Chromium to look at pages with, where there is one."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.sync_api import Browser

_NAMES = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome")
# In a container there is neither a sandbox nor a GPU, and a browser that is looked at has nobody to call.
_ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


def find_chromium() -> str | None:
    """Path of the first one on PATH; None: there is none."""
    return next((path for name in _NAMES if (path := shutil.which(name)) is not None), None)


@contextlib.contextmanager
def chromium(path: str) -> Iterator[Browser]:
    """A browser without a window, closed at the end."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=list(_ARGUMENTS))
        try:
            yield browser
        finally:
            browser.close()
