"""A results folder -> a dashboard: the line from the history to a folder of pages, with every value escaped."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shlex
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.dashboard.comparisons import comparison_facts, comparison_files, comparison_list
from harness.dashboard.encode import Payload, count, cut, day, figure, key_of, level, metric_title, moved, script
from harness.dashboard.gather import Gathered, Known, gather
from harness.dashboard.heat_map import LEGEND, OUTCOME_DAYS
from harness.dashboard.overview import (
    LATELY_DAYS,
    SPARK_HEIGHT,
    SPARK_WIDTH,
    controls,
    is_small,
    known_changes,
    lately,
    machine_changes,
    machines,
    suites,
)
from harness.dashboard.tables import Commands, change_list, mean_panels, run_files, run_list, series_files, series_list
from harness.dashboard.tunings import kind_of_part, pieces, race_pictures, tuning_facts
from harness.errors import UsageError
from harness.history.changes import Change
from harness.metrics import FLOORS
from harness.progress import Progress
from harness.records.comparison import VERDICTS
from harness.records.tuning import Tuning
from harness.report.units import share, unit_rules
from harness.report.verdicts import MARKS
from harness.scratch import scratch_folder
from harness.text import printable

if TYPE_CHECKING:
    from jinja2 import Environment

    from harness.history.series import History


MARKER = ".harness-dashboard"


def require_replaceable(out: Path) -> None:
    """Refuse a place that holds anything but a dashboard."""
    try:
        if not out.exists() and not out.is_symlink():
            return
        if not out.is_dir():
            raise UsageError(f"--out {out}: is no folder; name one that is empty or not there yet")
        if any(out.iterdir()) and not (out / MARKER).is_file():
            raise UsageError(f"--out {out}: holds other files than a dashboard; name a folder that is empty")
    except OSError as error:
        raise _unwritable(out, error) from None


@contextlib.contextmanager
def replaced(out: Path) -> Iterator[Path]:
    """A new folder to write into, which takes the place of `out` when the block ends without an error."""
    require_replaceable(out)
    place = out.resolve()
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        with scratch_folder(place.parent, f"{MARKER}-") as scratch:
            making = scratch / "new"
            making.mkdir()
            yield making
            (making / MARKER).write_text(json.dumps({"made_by": "harness dashboard", "schema_version": 1}) + "\n")
            require_replaceable(out)  # again: somebody may have put something there meanwhile
            if place.exists():
                place.rename(scratch / "old")
            making.rename(place)
    except OSError as error:
        raise _unwritable(out, error) from None


def _unwritable(out: Path, error: OSError) -> UsageError:
    reason = error.strerror or os.strerror(error.errno or 0)
    return UsageError(f"--out {out}: cannot be written ({reason}); make room or name another folder")


TEMPLATES = Path(__file__).parent / "templates"
STATIC = Path(__file__).parent / "static"

# Nothing but the site's own files, no script or style in a page, no form and no frame.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'"
)
_LISTED_COMPARISONS = 8  # on the first page


@dataclass(frozen=True, kw_only=True)
class Page:
    """One page."""

    file: str  # Its file's name; its template is called the same, but that of a tuning is one for all
    title: str
    nav: str  # Which entry of the menu it belongs to
    data: tuple[str, ...] = ()  # Scripts with data that it loads at once
    scripts: tuple[str, ...] = ()  # Of static/, after those that all pages have


_UPLOT = "vendor/uplot/uPlot.iife.min.js"
_CHART = (_UPLOT, "bands.js", "releases.js", "chart.js", "chart_keys.js")
_TUNING = ("tunings.js",)
PAGES = (
    Page(file="index.html", title="Overview", nav="index.html", data=("means",), scripts=(*_CHART, "means.js")),
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
    Page(file="tunings.html", title="Tunings", nav="tunings.html", scripts=_TUNING),
    Page(file="machines.html", title="Machines", nav="machines.html", data=("runs",), scripts=(*_CHART, "machines.js")),
)  # fmt: skip
_NAV = ("index.html", "changes.html", "all-series.html", "runs.html", "comparisons.html", "variants.html",
        "tunings.html", "machines.html")  # fmt: skip


def make_dashboard(
    history: History,
    changes: Sequence[Change],
    out: Path,
    progress: Progress,
    *,
    place: str = "results",
    tunings: Sequence[Tuning] = (),
    title: str = "IREE benchmarks",
    made: datetime,
) -> None:
    """Write the site, and put it in the place of the one that was there.

    Args:
        changes: All that the history's series show.
        place: The results folder, as commands on the pages name it.
        tunings: The newest first.
        made: Shown at the foot of every page.

    Raises:
        UsageError: `out` holds something else, or cannot be written.
    """
    with replaced(out) as folder:
        progress.stage("Reading the history", 1)
        gathered = gather(history, place, changes)
        progress.step(f"{len(gathered.points):,} points")
        total = len(gathered.runs) + len(gathered.series) + gathered.comparisons["comparison"].nunique() + 1
        progress.stage("Writing pages", total)
        _write_site(gathered, folder, progress, title, made, tunings)


def _write_site(
    gathered: Gathered, folder: Path, progress: Progress, title: str, made: datetime, tunings: Sequence[Tuning]
) -> None:
    shutil.copytree(STATIC, folder / "static")
    (folder / "data").mkdir()
    commands = Commands()
    known = Known(gathered)
    compared = comparison_facts(gathered)
    _write_many(folder, "run", run_files(gathered, commands), progress)
    _write_many(folder, "series", series_files(gathered, commands, known), progress)
    _write_many(folder, "comparison", comparison_files(gathered, compared), progress)
    _write_many(folder, "commands", commands.files(), None)
    for name, picture in race_pictures(tunings):
        (folder / "data" / name).write_bytes(picture)
    lists = {
        "runs": run_list(gathered),
        "series": series_list(gathered),
        "changes": change_list(gathered, known),
        "comparisons": comparison_list(compared),
        "means": mean_panels(gathered),
        "rules": {"units": unit_rules(), "marks": MARKS},
    }
    for name, payload in lists.items():
        _write(folder / "data" / f"{name}.js", script(name, payload))
    facts: dict[str, Any] = {
        "title": title,
        "made": made,
        "place": gathered.place,
        "place_argument": shlex.quote(gathered.place),
        "runs": len(gathered.runs),
        "series": len(gathered.series),
        "newest": gathered.run_rows[-1]["started"] if gathered.run_rows else "",
        "suites": suites(gathered, known),
        "known": known_changes(gathered, known),
        "legend": LEGEND.items(),
        "outcome_days": OUTCOME_DAYS,
        "changes": len(gathered.changes),
        "lately_days": LATELY_DAYS,
        "small": sum(map(is_small, gathered.changes)),
        "size_floor": share(FLOORS["module-size"]),
        "is_lately": bool(lately(gathered)),
        "spark": (SPARK_WIDTH, SPARK_HEIGHT),
        "comparisons": compared[:_LISTED_COMPARISONS],
        "compared": len(compared),
        "tunings": list(map(tuning_facts, tunings)),
        "machines": machines(gathered),
        "controls": controls(compared),
        "machine_changes": machine_changes(gathered),
        "clocks": [row for row in gathered.run_rows if row["clock"]],
        "notes": gathered.notes,
    }
    for name, html in _render_pages(facts).items():
        _write(folder / name, html)
    progress.step("pages")


def _write_many(folder: Path, kind: str, files: Iterable[tuple[str, Payload]], progress: Progress | None) -> None:
    (folder / "data" / kind).mkdir()
    for key, payload in files:
        _write(folder / "data" / kind / f"{key}.js", script(f"{kind}/{key}", payload))
        if progress is not None:
            progress.step(kind)


def _write(path: Path, text: str) -> None:
    path.write_bytes(text.encode("utf-8", "replace"))  # a name may hold half of a surrogate pair


def _render_pages(facts: Mapping[str, Any]) -> dict[str, str]:
    """File name -> HTML of every page; facts are what templates show, by name."""
    environment = _environment()
    titles = {page.file: page.title for page in PAGES}
    shared = {**facts, "nav": [(file, titles[file]) for file in _NAV], "policy": POLICY}
    pages = {page.file: environment.get_template(page.file).render(page=page, **shared) for page in PAGES}
    one_tuning = environment.get_template("tuning.html")
    for tuning in facts["tunings"]:
        page = Page(file=tuning["file"], title="Tuning", nav="tunings.html", scripts=_TUNING)
        pages[page.file] = one_tuning.render(page=page, tuning=tuning, **shared)
    return pages


def _environment() -> Environment:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        cut=cut,
        day=day,
        count=count,
        figure=figure,
        level=level,
        key=key_of,
        metric_title=metric_title,
        moved=moved,
        printable=printable,
    )
    environment.tests["revision"] = lambda text: re.fullmatch(r"[0-9a-f]{7,40}", text) is not None
    environment.globals.update(marks=MARKS, verdicts=VERDICTS, pieces=pieces, kind_of_part=kind_of_part)
    return environment
