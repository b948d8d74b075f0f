"""Merges results folders: copies what the target does not have, whole or not at all, and says what became of each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from harness.errors import RunError, UsageError
from harness.progress import Progress
from harness.store.archive import compacted_tables, write_set
from harness.store.check import WRONG, check_folder, check_history, why_not_mergeable
from harness.store.database import RowsOf
from harness.store.files import (
    DROPPED_FILE,
    TURNS_FILE,
)
from harness.store.folders import HISTORY_FOLDER, MARKS_FOLDER, is_id, kind_of, look_into
from harness.store.marks import mark_files, parse_mark, put_mark
from harness.store.parquet_files import compacted_sources, require_own_history, tables_of
from harness.store.place import (
    Place,
    archive_lock,
    is_url,
    without_password,
)
from harness.store.remote import open_place
from harness.store.run_directory import require_writable
from harness.text import plural, shown

Fate = Literal["copied", "already there", "left out", "refused"]


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What became of one folder in a merge.

    Attributes:
        source: The place it is from.
        why: Why it was left out or refused; a remark where it was copied.
    """

    name: str
    source: str
    fate: Fate
    why: str = ""


def merge(sources: Sequence[str], into: str, rows_of: RowsOf, progress: Progress) -> list[Outcome]:
    """Copy finished folders of several places into one.

    What cannot be read is refused with a reason; everything else is merged all the same.

    Args:
        sources: Results folders, or one run's or comparison's folder; paths or URLs of fsspec.
        into: A results folder, made where it is not there.

    Raises:
        HarnessError: The target cannot be used.
    """
    target = open_place(into)
    if not is_url(into):
        require_own_history(target.local)
        require_writable(target.local)
    return [outcome for source in sources for outcome in _merge_place(source, target, rows_of, progress)]


def _merge_place(source: str, target: Place, rows_of: RowsOf, progress: Progress) -> Iterator[Outcome]:
    try:
        place, names, whole = _folders_of(source)
        if place.local.resolve() == target.local.resolve():
            raise UsageError(f"{place.address}: is the folder that is merged into; give another")
    except (RunError, UsageError) as error:
        yield Outcome(name="-", source=without_password(shown(source)), fate="refused", why=str(error))
        return
    progress.stage(f"Merging {shown(place.address)}", len(names))
    for name in names:
        yield _merge_folder(name, place, target)
        progress.step(name)
    if not whole:
        return
    others = [
        Outcome(name=shown(name), source=place.address, fate="refused", why=place.refused[name])
        for name in sorted(place.refused.keys() - set(names))
    ]
    others += _merge_history(place, target, rows_of)
    others += _merge_marks(place, target)
    yield from others
    if not names and not others:
        yield Outcome(name="-", source=place.address, fate="left out", why="there is no run and no comparison in it")


def _folders_of(source: str) -> tuple[Place, list[str], bool]:
    """A place, its folders, and whether all of it is meant; of one run's own folder, where it lies and its name."""
    if not is_url(source):
        path = Path(source).absolute()
        if path.is_dir() and kind_of({entry.name for entry in path.iterdir()}) is not None:
            return open_place(str(path.parent)), [path.name], False
    place = open_place(source)
    return place, place.names(), True


def _merge_folder(name: str, place: Place, target: Place) -> Outcome:
    """Copy a folder, look at the copy, which nobody else can change, and only then give it its name."""

    def outcome(fate: Fate, why: str = "") -> Outcome:
        return Outcome(name=shown(name), source=place.address, fate=fate, why=why)

    remarks: list[str] = []

    def check(copy: Path) -> None:
        finding = check_folder(copy, name=name)
        why = finding.why.replace(str(copy), str(folder))
        if finding.state != "ok":
            raise RunError(why)
        remarks.append(why)

    try:
        place.fetch([name])
        if name in place.refused:
            return outcome("refused", place.refused[name])
        folder = place.local / name
        contents = look_into(folder)
        if (reason := why_not_mergeable(contents, name)) is not None:
            return outcome("left out", reason)
        copied = target.put(folder, check)
    except RunError as error:
        return outcome("refused", str(error))
    if not copied:
        return outcome("already there")
    not_copied = f"without {contents.beside}, which no run has" if contents.unknown else ""
    return outcome("copied", "; ".join(part for part in (*remarks, not_copied) if part))


def _merge_history(place: Place, target: Place, rows_of: RowsOf) -> list[Outcome]:
    """Copy rows that a place has in its compacted tables alone: of runs without a folder there, or without turns."""

    def outcome(name: str, fate: Fate, why: str) -> Outcome:
        return Outcome(name=shown(name), source=place.address, fate=fate, why=why)

    place.fetch_history()
    wrong = next((finding for finding in check_history(place.local) if finding.state in WRONG), None)
    if wrong is not None:
        return [outcome(wrong.name, "refused", wrong.why)]
    if not compacted_sources(place.local):
        return []
    try:
        target.fetch_history()
        with archive_lock(target.local), compacted_tables(place.local, rows_of) as there:
            with compacted_tables(target.local, rows_of) as here:
                lacking = sorted(there.ids - here.ids)
            has_folder = set(target.names())
            lacking = [name for name in lacking if name not in has_folder or not _has_figures(target, name)]
            ids = [name for name in lacking if is_id(name)]
            if ids:
                written = write_set(there, target.local, ids)
                target.apply([path.relative_to(target.local).as_posix() for path in written.iterdir()], [])
    except RunError as error:
        return [outcome(HISTORY_FOLDER, "refused", str(error))]
    outcomes = []
    if ids:
        count = f"{len(ids)} run{'' if len(ids) == 1 else 's'}"
        why = f"figures of {count} that have no folder there, or one without raw turns: {', '.join(ids)}"
        outcomes = [outcome(f"{HISTORY_FOLDER}/ ({count})", "copied", why)]
    bad = [name for name in lacking if not is_id(name)]
    return outcomes + [outcome(name, "refused", "its name in the history is no id") for name in bad]


def _merge_marks(place: Place, target: Place) -> list[Outcome]:
    """Copy statements about runs and changes that are not there yet; their names tell equal ones."""

    def refused(name: str, error: RunError) -> Outcome:
        return Outcome(name=name, source=place.address, fate="refused", why=str(error))

    outcomes, copied = [], []
    try:
        place.fetch_marks()
        files = mark_files(place.local)
        if not files:
            return []
        target.fetch_marks()
        there = {file.name for file in mark_files(target.local)}
        for file in files:
            if file.name in there:
                continue
            try:
                content = parse_mark(file)[1]
            except RunError as error:
                outcomes.append(refused(f"{MARKS_FOLDER}/{file.name}", error))
                continue
            copied.append(f"{MARKS_FOLDER}/{file.name}")
            put_mark(target, copied[-1], content)
        target.apply(copied, [])
    except RunError as error:
        return [*outcomes, refused(f"{MARKS_FOLDER}/", error)]
    if copied:
        why = f"{plural(len(copied), 'statement')} about runs and changes"
        outcomes.append(Outcome(name=f"{MARKS_FOLDER}/", source=place.address, fate="copied", why=why))
    return outcomes


def _has_figures(target: Place, name: str) -> bool:
    """Whether a folder has tables, or the raw turns that they can be made of."""
    target.fetch([name])
    folder = target.local / name
    return bool(tables_of(folder)) or not ((folder / DROPPED_FILE).is_file() and not (folder / TURNS_FILE).is_file())
