"""`harness results merge`, `compact`, `verify` and `gc`."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator
from dataclasses import asdict
from datetime import datetime, timezone
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import App, Parameter

from harness.cli.app import app
from harness.cli.output import print_page, print_text
from harness.errors import ExitCode
from harness.progress import Progress, Terminal
from harness.report.data import to_json
from harness.report.page import Page
from harness.report.results_page import compacted_page, dropped_page, merged_page, verified_page
from harness.report.rows import rows_of
from harness.store.archive import compact as compact_folders
from harness.store.archive import drop_turns
from harness.store.archive import merge as merge_folders
from harness.store.check import WRONG
from harness.store.check import verify as verify_folders
from harness.store.clock import parse_age
from harness.store.place import Place, is_url
from harness.store.remote import open_place

results_app = App(name="results", help="Keep many runs: merge, check, compact to Parquet, drop old raw turns.")
app.command(results_app)

_Format = Literal["terminal", "json"]


@results_app.command
def merge(
    sources: Annotated[list[str], Parameter(negative="")],
    /,
    *,
    into: str = "results",
    format: _Format = "terminal",  # noqa: A002 (the option's name)
) -> int:
    """Copy finished runs and comparisons of other machines into a results folder.

    Each is looked at before it is let in: its records, its hashes, and that nothing in it leads out of its folder. What
    is there already is left as it is. The exit status is 2 if anything was refused; everything else is merged all the
    same.

    Args:
        sources: Results folders, or single runs: paths, or URLs such as s3://bucket/results or zip://::results.zip.
        into: The results folder that they are copied into, a path or a URL; it is made where it is not there.
        format: How to print what became of each.
    """
    with Terminal() as progress:
        outcomes = merge_folders(sources, into, rows_of, progress)
    _print("merged", [asdict(outcome) for outcome in outcomes], merged_page(outcomes), format)
    return ExitCode.USAGE if any(outcome.fate == "refused" for outcome in outcomes) else ExitCode.OK


@results_app.command
def compact(
    results: str = "results",
    *,
    format: _Format = "terminal",  # noqa: A002 (the option's name)
) -> int:
    """Put the tables of finished runs and comparisons into few files, which `harness history` reads quicker.

    Folders get tables where they have none, and nothing else of them changes. It may be stopped at any time.

    Args:
        results: The results folder, a path or a URL.
        format: How to print what was done.
    """
    with Terminal() as progress, _changeable(results, progress) as place:
        done = compact_folders(place, rows_of, progress)
    _print("compacted", asdict(done), compacted_page(done), format)
    return ExitCode.OK


@results_app.command
def verify(
    results: str = "results",
    *,
    format: _Format = "terminal",  # noqa: A002 (the option's name)
) -> int:
    """Check that every run, every comparison and the compacted history are what they were when they were written.

    The exit status is 2 if anything is damaged, has changed, or is of a later harness.

    Args:
        results: The results folder, a path or a URL; of a URL everything is fetched anew.
        format: How to print what was found.
    """
    with Terminal() as progress, _changeable(results, progress) as place:
        findings = verify_folders(place, progress)
    _print("verified", [asdict(finding) for finding in findings], verified_page(findings), format)
    return ExitCode.USAGE if any(finding.state in WRONG for finding in findings) else ExitCode.OK


@results_app.command
def gc(
    results: str = "results",
    *,
    older_than: str,
    dry_run: Annotated[bool, Parameter(negative="")] = False,
    format: _Format = "terminal",  # noqa: A002 (the option's name)
) -> int:
    """Delete the raw turns of old runs; their reports stay as they are, and their figures stay in their tables.

    Only of runs and comparisons that are finished and whole. A run whose clock was wrong keeps its turns.

    Args:
        results: The results folder, a path or a URL.
        older_than: Age by the run's own start: days, weeks or years, as in 90d, 12w or 2y.
        dry_run: Delete nothing, and say what would be.
        format: How to print what was done.
    """
    age, now = parse_age(older_than), datetime.now(timezone.utc)
    with Terminal() as progress, _changeable(results, progress) as place:
        report = drop_turns(place, age, now, rows_of, progress, dry_run=dry_run)
    _print("dropped", asdict(report), dropped_page(report), format)
    return ExitCode.OK


def _print(name: str, record: Any, page: Page, output_format: _Format) -> None:
    """Print what was done: its record as JSON, or the page."""
    if output_format == "json":
        print_text(to_json({name: record}))
    else:
        print_page(page, "terminal")


@contextlib.contextmanager
def _changeable(results: str, progress: Progress) -> Iterator[Place]:
    """A place whose `local` may be changed: of a URL a fresh copy, whose changes are made there when all went well."""
    if not is_url(results):
        place = open_place(results)
        place.names()  # says so where there is no such folder
        yield place
        return
    with tempfile.TemporaryDirectory(prefix="harness-results-") as folder:
        place = open_place(results, mirror=Path(folder))
        if place.local != Path(folder):  # file:// is a path
            yield place
            return
        place.fetch_history()
        progress.stage("Fetching", len(place.names()))
        for name in place.names():
            progress.step(name)
            place.fetch([name])
        before = _files(place.local)
        yield place
        after = _files(place.local)
        written = [path for path in after if before.get(path) != after[path]]
        place.apply(written, sorted(before.keys() - after.keys()))


def _files(folder: Path) -> dict[str, tuple[int, int]]:
    """Size and time of every file that is not hidden, by its path."""
    return {
        file.relative_to(folder).as_posix(): (file.stat().st_size, file.stat().st_mtime_ns)
        for file in folder.rglob("*")
        if file.is_file() and not any(part.startswith(".") for part in file.relative_to(folder).parts)
    }
