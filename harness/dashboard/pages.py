"""Pages of the site, by jinja2 with every value escaped; what they show of single things comes by script."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.dashboard.words import count, cut, day
from harness.records.comparison import VERDICTS
from harness.report.comparison.words import MARKS

if TYPE_CHECKING:
    from jinja2 import Environment

TEMPLATES = Path(__file__).parent / "templates"
STATIC = Path(__file__).parent / "static"

# Nothing but the site's own files, no script or style in a page, no form and no frame.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'"
)


@dataclass(frozen=True, kw_only=True)
class Page:
    """One page.

    Attributes:
        file: Its file's name; its template is called the same.
        nav: Which entry of the menu it belongs to.
        data: Scripts with data that it loads at once.
        scripts: Of static/, after those that all pages have.
    """

    file: str
    title: str
    nav: str
    data: tuple[str, ...] = ()
    scripts: tuple[str, ...] = ()


_UPLOT = "vendor/uplot/uPlot.iife.min.js"
_CHART = (_UPLOT, "bands.js", "chart.js", "chart_keys.js")
PAGES = (
    Page(file="index.html", title="Overview", nav="index.html"),
    Page(file="changes.html", title="Changes", nav="changes.html", data=("runs", "changes"), scripts=("changes.js",)),
    Page(file="all-series.html", title="Series", nav="all-series.html", data=("runs", "series"),
         scripts=("all_series.js",)),
    Page(file="series.html", title="Series", nav="all-series.html", data=("runs",),
         scripts=(*_CHART, "series_tables.js", "series.js")),
    Page(file="runs.html", title="Runs", nav="runs.html", data=("runs",), scripts=("runs.js",)),
    Page(file="run.html", title="Run", nav="runs.html", data=("runs", "series"), scripts=("run.js",)),
    Page(file="comparisons.html", title="Comparisons", nav="comparisons.html", data=("comparisons",),
         scripts=("comparisons.js",)),
    Page(file="comparison.html", title="Comparison", nav="comparisons.html", scripts=("forest.js", "comparison.js")),
    Page(file="variants.html", title="Variants", nav="variants.html", data=("runs", "series"),
         scripts=("variants.js",)),
    Page(file="machines.html", title="Machines", nav="machines.html", data=("runs",), scripts=(*_CHART, "machines.js")),
)  # fmt: skip
_NAV = ("index.html", "changes.html", "all-series.html", "runs.html", "comparisons.html", "variants.html",
        "machines.html")  # fmt: skip


def render_pages(shared: Mapping[str, Any]) -> dict[str, str]:
    """File name -> HTML of every page.

    Args:
        shared: What templates show, by name.
    """
    environment = _environment()
    titles = {page.file: page.title for page in PAGES}
    nav = [(file, titles[file]) for file in _NAV]
    return {
        page.file: environment.get_template(page.file).render(page=page, nav=nav, policy=POLICY, **shared)
        for page in PAGES
    }


def _environment() -> Environment:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(cut=cut, day=day, count=count)
    environment.tests["revision"] = lambda text: re.fullmatch(r"[0-9a-f]{7,40}", text) is not None
    environment.globals.update(marks=MARKS, verdicts=VERDICTS)
    return environment
