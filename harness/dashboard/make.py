"""A results folder -> a dashboard: the line from the history to a folder of files."""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Iterable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from harness.dashboard.changes_data import change_list
from harness.dashboard.coding import script
from harness.dashboard.comparison_data import comparison_facts, comparison_files, comparison_list
from harness.dashboard.folder import replaced
from harness.dashboard.gather import Gathered, Source, gather
from harness.dashboard.health import controls, machine_changes, machines
from harness.dashboard.overview import LATELY_DAYS, SPARK_HEIGHT, SPARK_WIDTH, lately, suites
from harness.dashboard.pages import STATIC, render_pages
from harness.dashboard.run_data import Commands, run_files
from harness.dashboard.series_data import Payload, run_list, series_files, series_list
from harness.history.changes import Change
from harness.progress import Progress

_LISTED_COMPARISONS = 8  # on the first page


def make_dashboard(
    source: Source,
    changes: Sequence[Change],
    out: Path,
    progress: Progress,
    *,
    place: str = "results",
    title: str = "IREE benchmarks",
    made: datetime,
) -> None:
    """Write the site, and put it in the place of the one that was there.

    Args:
        changes: All that the history's series show.
        place: The results folder, as commands on the pages name it.
        made: Shown at the foot of every page.

    Raises:
        UsageError: `out` holds something else, or cannot be written.
    """
    with replaced(out) as folder:
        progress.stage("Reading the history", 1)
        gathered = gather(source, place, changes)
        progress.step(f"{len(gathered.points):,} points")
        total = len(gathered.runs) + len(gathered.series) + gathered.comparisons["comparison"].nunique() + 1
        progress.stage("Writing pages", total)
        _write_site(gathered, folder, progress, title, made)


def _write_site(gathered: Gathered, folder: Path, progress: Progress, title: str, made: datetime) -> None:
    shutil.copytree(STATIC, folder / "static")
    (folder / "data").mkdir()
    commands = Commands(gathered.names)
    compared = comparison_facts(gathered)
    _write_many(folder, "run", run_files(gathered, commands), progress)
    _write_many(folder, "series", series_files(gathered, commands.newest()), progress)
    _write_many(folder, "comparison", comparison_files(gathered, compared), progress)
    _write_many(folder, "commands", commands.files(), None)
    lists = {
        "runs": run_list(gathered),
        "series": series_list(gathered),
        "changes": change_list(gathered),
        "comparisons": comparison_list(compared),
    }
    for name, payload in lists.items():
        _write(folder / "data" / f"{name}.js", script(name, payload))
    shown: dict[str, Any] = {
        "title": title,
        "made": made,
        "place": gathered.place,
        "place_argument": shlex.quote(gathered.place),
        "runs": len(gathered.runs),
        "series": len(gathered.series),
        "newest": str(gathered.runs["started"].iloc[-1]) if len(gathered.runs) else "",
        "suites": suites(gathered),
        "changes": len(gathered.changes),
        "lately_days": LATELY_DAYS,
        "is_lately": bool(lately(gathered)),
        "spark": (SPARK_WIDTH, SPARK_HEIGHT),
        "comparisons": compared[:_LISTED_COMPARISONS],
        "compared": len(compared),
        "run_keys": dict(zip(gathered.runs["run"], gathered.runs["key"], strict=True)),
        "machines": machines(gathered),
        "controls": controls(compared),
        "machine_changes": machine_changes(gathered),
        "clocks": gathered.runs[gathered.runs["clock"] != ""].to_dict("records"),
        "notes": gathered.notes,
    }
    for name, html in render_pages(shown).items():
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
