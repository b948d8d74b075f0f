"""What `harness results merge`, `compact`, `verify` and `gc` do."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path
from typing import Literal

from harness.errors import ExitCode
from harness.progress import Progress, Terminal
from harness.store.address import is_url
from harness.store.place import Place, open_place

Format = Literal["terminal", "json"]


def merge_command(sources: tuple[str, ...], into: str, output_format: Format) -> int:
    """`harness results merge`: exit status 2 if something was refused."""
    from harness.report.rows import rows_of
    from harness.store.archive import merge
    from harness.store.lines import merged_json, merged_text

    with Terminal() as progress:
        outcomes = merge(sources, into, rows_of, progress)
    sys.stdout.write(
        merged_json(outcomes) if output_format == "json" else merged_text(outcomes, width=_width(), color=_color())
    )
    return int(ExitCode.USAGE if any(one.fate == "refused" for one in outcomes) else ExitCode.OK)


def compact_command(results: str, output_format: Format) -> int:
    """`harness results compact`."""
    from harness.report.rows import rows_of
    from harness.store.archive import compact
    from harness.store.lines import compacted_json, compacted_text

    with Terminal() as progress, _changeable(results, progress) as place:
        done = compact(place, rows_of, progress)
    sys.stdout.write(
        compacted_json(done) if output_format == "json" else compacted_text(done, width=_width(), color=_color())
    )
    return int(ExitCode.OK)


def verify_command(results: str, output_format: Format) -> int:
    """`harness results verify`: exit status 2 if something is damaged, changed or of a later harness."""
    from harness.store.check import WRONG, verify
    from harness.store.lines import verified_json, verified_text

    with Terminal() as progress, _changeable(results, progress) as place:
        found = verify(place, progress)
    sys.stdout.write(
        verified_json(found) if output_format == "json" else verified_text(found, width=_width(), color=_color())
    )
    return int(ExitCode.USAGE if any(one.state in WRONG for one in found) else ExitCode.OK)


def gc_command(results: str, older_than: str, output_format: Format, *, dry_run: bool) -> int:
    """`harness results gc`."""
    from harness.report.rows import rows_of
    from harness.store.archive import drop_turns
    from harness.store.clock import parse_age
    from harness.store.lines import dropped_json, dropped_text

    age, now = parse_age(older_than), datetime.now(timezone.utc)
    with Terminal() as progress, _changeable(results, progress) as place:
        report = drop_turns(place, age, now, rows_of, progress, dry_run=dry_run)
    sys.stdout.write(
        dropped_json(report) if output_format == "json" else dropped_text(report, width=_width(), color=_color())
    )
    return int(ExitCode.OK)


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
        place.fetch(place.names(), progress.step)
        before = _files(place.local)
        yield place
        after = _files(place.local)
        written = [path for path in after if before.get(path) != after[path]]
        # What makes a folder whole comes last, and what it stands for goes after it.
        last = ("runs.parquet", "finished.json")
        place.apply(sorted(written, key=lambda path: path.endswith(last)), sorted(before.keys() - after.keys()))


def _files(folder: Path) -> dict[str, tuple[int, int]]:
    """Size and time of every file that is not hidden, by its path."""
    return {
        file.relative_to(folder).as_posix(): (file.stat().st_size, file.stat().st_mtime_ns)
        for file in folder.rglob("*")
        if file.is_file() and not any(part.startswith(".") for part in file.relative_to(folder).parts)
    }


def _width() -> int:
    return shutil.get_terminal_size((120, 24)).columns


def _color() -> bool:
    return sys.stdout.isatty() and "NO_COLOR" not in os.environ
