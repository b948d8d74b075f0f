"""A results folder -> a dashboard: the line from the history to a folder of pages, with every value escaped."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shlex
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from harness.dashboard.comparisons import comparison_facts, comparison_files, comparison_list
from harness.dashboard.encode import Payload, cut, day, figure, key_of, level, metric_title, moved, script
from harness.dashboard.gather import gather
from harness.dashboard.kept import explanation_facts, pieces, side_by_side, tuning_facts
from harness.dashboard.overview import LATELY_DAYS, LEGEND, OUTCOME_DAYS, is_small, known_changes, machines, suites
from harness.dashboard.steps import step_facts
from harness.dashboard.tables import change_list, mean_panels, run_files, run_list, series_files, series_list
from harness.errors import UsageError
from harness.history.changes import Change
from harness.metrics import FLOORS
from harness.plots.canvas import THEMES
from harness.plots.race import draw_race
from harness.progress import Progress
from harness.records.comparison import VERDICTS
from harness.records.explanation import Explanation
from harness.records.tuning import Tuning
from harness.report.comparison import MARKS
from harness.report.page import plain
from harness.report.releases import Releases
from harness.report.units import share, unit_rules
from harness.scratch import scratch_folder
from harness.text import plural, printable

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
PARTS = ("base.html", "macros.html", "parts.html", "heat_map.html")  # that pages are made of
ONE_EACH = {"tuning": "tuning.html", "explanation": "explanation.html"}  # a page for each of them
# Nothing but the site's own files, no script or style in a page, no form and no frame.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'"
)


def make_dashboard(
    history: History,
    changes: Sequence[Change],
    out: Path,
    progress: Progress,
    *,
    place: str = "results",
    tunings: Sequence[Tuning] = (),
    explanations: Sequence[Explanation] = (),
    releases: Mapping[str, Releases] = MappingProxyType({}),
    title: str = "IREE benchmarks",
    made: datetime,
) -> None:
    """Write the site in the place of the one that was there; commands on its pages name `place`."""
    with replaced(out) as folder:
        progress.stage("Reading the history", 1)
        gathered = gather(history, place, changes)
        progress.step(f"{len(gathered.points):,} points")
        total = len(gathered.runs) + len(gathered.series) + gathered.comparisons["comparison"].nunique() + 1
        progress.stage("Writing pages", total)
        shutil.copytree(STATIC, folder / "static")
        compared = comparison_facts(gathered)
        _write_many(folder, "run", run_files(gathered, releases), progress)
        _write_many(folder, "series", series_files(gathered), progress)
        _write_many(folder, "comparison", comparison_files(gathered, compared), progress)
        shown_tunings, explained = list(map(tuning_facts, tunings)), list(map(explanation_facts, explanations))
        for shown in (shown for shown in shown_tunings if shown["found"].moments):
            for mode, theme in THEMES.items():
                picture = folder / "data" / f"race-{shown['key']}-{mode}.svg"
                picture.write_bytes(draw_race(shown["found"]).file(theme, "svg"))
        lists = {
            "runs": run_list(gathered),
            "series": series_list(gathered),
            "changes": change_list(gathered),
            "comparisons": comparison_list(compared),
            "means": mean_panels(gathered),
            "rules": {"units": unit_rules(), "marks": MARKS},
        }
        for name, payload in lists.items():
            _write(folder / "data" / f"{name}.js", script(name, payload))
        facts: dict[str, Any] = {
            "site_title": title,
            "policy": POLICY,
            "made": made,
            "place": place,
            "place_argument": shlex.quote(place),
            "gathered": gathered,
            "suites": suites(gathered),
            "steps": step_facts(gathered, releases, explanations),
            "known": known_changes(gathered),
            "legend": LEGEND.items(),
            "outcome_days": OUTCOME_DAYS,
            "lately_days": LATELY_DAYS,
            "small": sum(map(is_small, gathered.changes)),
            "size_floor": share(FLOORS["module-size"]),
            "comparisons": compared,
            "tunings": shown_tunings,
            "explanations": explained,
            "machines": machines(gathered),
        }
        environment = _environment()
        for name in environment.list_templates(filter_func=lambda name: name not in (*PARTS, *ONE_EACH.values())):
            _write(folder / name, environment.get_template(name).render(file=name, **facts))
        for kind, each in (("tuning", shown_tunings), ("explanation", explained)):
            for shown in each:
                text = environment.get_template(ONE_EACH[kind]).render(file=shown["file"], shown=shown, **facts)
                _write(folder / shown["file"], text)
        progress.step("pages")


def _write_many(folder: Path, kind: str, files: Iterable[tuple[str, Payload]], progress: Progress) -> None:
    (folder / "data" / kind).mkdir(parents=True)
    for key, payload in files:
        _write(folder / "data" / kind / f"{key}.js", script(f"{kind}/{key}", payload))
        progress.step(kind)


def _write(path: Path, text: str) -> None:
    path.write_bytes(text.encode("utf-8", "replace"))  # a name may hold half of a surrogate pair


def _environment() -> Environment:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    for function in (cut, day, figure, level, metric_title, moved, plain, plural, printable):
        environment.filters[function.__name__] = function
    environment.filters["key"] = key_of
    environment.tests["revision"] = lambda text: re.fullmatch(r"[0-9a-f]{7,40}", text) is not None
    environment.filters["kind"] = lambda part: type(part).__name__
    environment.globals.update(marks=MARKS, verdicts=VERDICTS, pieces=pieces, side_by_side=side_by_side)
    return environment
