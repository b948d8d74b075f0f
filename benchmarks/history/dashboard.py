"""How long a dashboard takes to build, how large it is, and how soon its pages can be used.

Chromium opens every page from disk, each time in a context of its own, so that nothing is cached. A page can be used
when its script has drawn its charts and tables and the next frame is on the screen; the clock begins with the
navigation. `loaded` is every byte that the page asks for, its own included.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from benchmarks.documents import replace_between
from benchmarks.history.dashboard_browser import chromium, find_chromium
from benchmarks.history.made import Size
from benchmarks.history.made_tables import write_history

if TYPE_CHECKING:
    from playwright.sync_api import Browser

BEGIN = "<!-- made by `python -m benchmarks.history dashboard`: begin -->"
END = "<!-- made by `python -m benchmarks.history dashboard`: end -->"

BUILD_GOAL_S = 30.0
LOADED_GOAL_BYTES = 1_000_000
READY_GOAL_MS = 1000.0
_TIMES = 5

_READY = """() => new Promise((told) => {
  const [mark] = performance.getEntriesByName("ready");
  requestAnimationFrame(() => setTimeout(() => told(mark ? mark.startTime : performance.now())));
})"""


@dataclass(frozen=True, kw_only=True)
class PageFigures:
    """One page.

    Attributes:
        ready_ms: Median from navigation to use; None without a browser.
        worst_ms: The slowest of five.
    """

    name: str
    loaded_bytes: int
    ready_ms: float | None
    worst_ms: float | None


@dataclass(frozen=True, kw_only=True)
class DashboardFigures:
    """A whole site."""

    series: int
    runs: int
    build_s: float
    files: int
    site_bytes: int
    pages: tuple[PageFigures, ...]


def print_dashboard(series: int, runs: int, document: Path) -> None:
    """Make a history of that size up, print the figures of its dashboard, and put them between the document's marks."""
    with tempfile.TemporaryDirectory(prefix="history-") as scratch:
        write_history(Path(scratch), Size(series=series, runs=runs))
        text = table(measure_dashboard(Path(scratch), series=series, runs=runs))
    print(text)
    replace_between(document, BEGIN, END, text)


def measure_dashboard(results: Path, *, series: int, runs: int) -> DashboardFigures:
    """Build the dashboard of a results folder in a process of its own, as a user does, and open its pages."""
    with tempfile.TemporaryDirectory(prefix="dashboard-") as scratch:
        site = Path(scratch) / "site"
        started = time.perf_counter()
        harness = Path(sys.executable).with_name("harness")
        command = [str(harness), "dashboard", str(results), "--out", str(site)]
        subprocess.run(command, check=True, capture_output=True)
        build_s = time.perf_counter() - started
        files = [path for path in site.rglob("*") if path.is_file()]
        return DashboardFigures(
            series=series,
            runs=runs,
            build_s=build_s,
            files=len(files),
            site_bytes=sum(path.stat().st_size for path in files),
            pages=tuple(_pages(site)),
        )


def table(figures: DashboardFigures) -> str:
    """The figures as Markdown."""
    heading = f"{figures.series:,} series x {figures.runs:,} runs"
    lines = [
        f"| {heading} | goal | measured |",
        "| --- | --- | --- |",
        f"| built | under {BUILD_GOAL_S:.0f} s | {figures.build_s:.1f} s |",
        f"| the whole site | | {figures.site_bytes / 1e6:.1f} MB in {figures.files:,} files |",
        "",
        f"| page | loaded (goal: the first under {LOADED_GOAL_BYTES / 1e6:.0f} MB) "
        f"| usable after (goal: {READY_GOAL_MS / 1000:.0f} s) | slowest of {_TIMES} |",
        "| --- | --- | --- | --- |",
    ]
    for page in figures.pages:
        ready = "no browser here" if page.ready_ms is None else f"{page.ready_ms:.0f} ms"
        worst = "" if page.worst_ms is None else f"{page.worst_ms:.0f} ms"
        lines.append(f"| {page.name} | {page.loaded_bytes / 1000:,.0f} kB | {ready} | {worst} |")
    return "\n".join(lines)


def _pages(site: Path) -> Iterator[PageFigures]:
    path = find_chromium()
    if path is None:
        return
    with chromium(path) as browser:
        for address in _addresses(site):
            yield _page(browser, site, address)


def _addresses(site: Path) -> list[str]:
    """Every kind of page; of those with an id, the one with the most to show."""
    found = ["index.html", "changes.html", "all-series.html", "runs.html", "variants.html", "machines.html"]
    for kind in ("series", "run", "comparison"):
        sizes = {path.stem: path.stat().st_size for path in (site / "data" / kind).iterdir()}
        if sizes:
            found.append(f"{kind}.html?id={max(sizes, key=lambda key: sizes[key])}")
    return found


def _page(browser: Browser, site: Path, address: str) -> PageFigures:
    visits = [_visit(browser, site, address) for _ in range(_TIMES)]
    times = [ready_ms for ready_ms, _ in visits]
    return PageFigures(
        name=address.partition("?")[0],
        loaded_bytes=visits[-1][1],
        ready_ms=statistics.median(times),
        worst_ms=max(times),
    )


def _visit(browser: Browser, site: Path, address: str) -> tuple[float, int]:
    """Milliseconds until a page can be used, and all bytes that it loads."""
    asked: list[str] = []
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    page = context.new_page()
    page.on("request", lambda request: asked.append(request.url))
    page.goto(f"{site.as_uri()}/{address}")
    page.wait_for_selector("html[data-ready]", state="attached")
    ready_ms = float(page.evaluate(_READY))
    page.wait_for_timeout(500)  # what a page asks for once it is in use, as the other figures of a case
    context.close()
    files = [Path(unquote(urlsplit(url).path)) for url in asked if url.startswith("file:")]
    return ready_ms, sum(file.stat().st_size for file in files)
