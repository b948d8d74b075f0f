"""Merges results folders: copies what the target does not have, whole or not at all, and says what became of each.

Runs of `harness run --shard` are joined into the run that they are parts of; alone they would be nights of which most
cases are missing.
"""

from __future__ import annotations

import contextlib
import itertools
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Literal

from harness.errors import HarnessError, RunError, UsageError
from harness.progress import Progress
from harness.records.run import Run
from harness.store.archive import compacted_tables, write_set
from harness.store.check import WRONG, check_folder, check_history, why_not_mergeable
from harness.store.database import RowsOf
from harness.store.files import (
    DROPPED_FILE,
    TURNS_FILE,
    writing,
)
from harness.store.folders import HISTORY_FOLDER, MARKS_FOLDER, is_id, kind_of, look_into
from harness.store.journal import require_writable
from harness.store.kinds import RUN
from harness.store.marks import mark_files, parse_mark, put_mark
from harness.store.parquet_files import compacted_sources, require_own_history, tables_of
from harness.store.place import (
    Place,
    archive_lock,
    is_url,
    without_password,
)
from harness.store.remote import open_place
from harness.store.run_directory import HEADER_FILE, load_run
from harness.store.shards import ShardRun, is_shard, join_shards, shard_run, write_joined
from harness.text import plural, shown

Fate = Literal["copied", "joined", "already there", "left out", "refused"]


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What became of one folder in a merge."""

    name: str
    source: str  # The place it is from
    fate: Fate
    why: str = ""  # Why it was left out or refused; a remark where it was copied; what it was joined to


def merge(
    sources: Sequence[str], into: str, rows_of: RowsOf, report_of: Callable[[Run], str], progress: Progress
) -> list[Outcome]:
    """Copy finished folders of several places into one, and join shards.

    What cannot be read is refused with a reason; everything else is merged all the same.
    """
    target = open_place(into)
    if not is_url(into):
        require_own_history(target.local)
        require_writable(target.local, "choose another folder with --into")
    with _Shards() as shards:
        outcomes = [
            outcome for source in sources for outcome in _merge_place(source, target, rows_of, shards, progress)
        ]
        return [*outcomes, *shards.join(target, report_of, rows_of)]


class _Shards:
    """The shards that a merge has met; a context manager, which holds a copy of each that nobody else can change."""

    def __init__(self) -> None:
        self._stack = contextlib.ExitStack()
        self._numbers = itertools.count()
        self._found: list[tuple[ShardRun, Place]] = []

    def __enter__(self) -> _Shards:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    @cached_property
    def _scratch(self) -> Path:
        """Made when the first shard is met."""
        with writing(Path(tempfile.gettempdir())):
            return Path(self._stack.enter_context(tempfile.TemporaryDirectory(prefix="harness-shards-")))

    def keep(self, name: str, place: Place, check: Callable[[Path], None]) -> None:
        """Copy a shard's folder and look at the copy."""
        own = Place("", self._scratch / str(next(self._numbers)))  # shards of one second have one name
        own.put(place.local / name, check)
        folder = own.local / name
        self._found.append((shard_run(f"{place.address}/{name}", folder, load_run(folder)), place))

    def join(self, target: Place, report_of: Callable[[Run], str], rows_of: RowsOf) -> Iterator[Outcome]:
        """Join the shards of each suite."""
        suites: dict[str, list[tuple[ShardRun, Place]]] = {}
        for shard, place in self._found:
            suites.setdefault(shard.run.header.suite_name, []).append((shard, place))
        for suite, found in suites.items():
            shards = [shard for shard, _ in found]
            fate: Fate = "joined"
            try:
                run = join_shards(shards)
                whole, becomes = run.header.id, f"of {run.header.id}"
                folder = write_joined(run, shards, self._scratch / "joined", report_of, rows_of)
                new = _put_joined(run, folder, target)
                why = f"joined from {plural(len(shards), 'shard')}"
                result = Outcome(name=whole, source=why, fate="copied" if new else "already there")
            except HarnessError as error:
                fate, becomes = "left out", "of a run that is not joined"
                source = plural(len(shards), "shard")
                result = Outcome(name=shown(suite), source=source, fate="refused", why=str(error))
            for shard, place in found:
                name = shown(shard.run.header.id)
                yield Outcome(name=name, source=place.address, fate=fate, why=f"shard {shard.shard} {becomes}")
            yield result


def _put_joined(run: Run, folder: Path, target: Place) -> bool:
    """Copy a joined run to its place; False: it is there already, though its files tell another time of joining."""
    try:
        return target.put(folder, partial(_require_sound, name=folder.name))
    except RunError:
        there = target.local / folder.name
        if (there / HEADER_FILE).is_file() and load_run(there, rounds=False).header == run.header:
            return False
        raise


def _require_sound(copy: Path, name: str) -> None:
    """Refuse a folder that is not what a harness leaves behind."""
    finding = check_folder(copy, name=name)
    if finding.state != "ok":
        raise RunError(finding.why)


def _merge_place(source: str, target: Place, rows_of: RowsOf, shards: _Shards, progress: Progress) -> Iterator[Outcome]:
    try:
        place, names, whole = _folders_of(source)
        if place.local.resolve() == target.local.resolve():
            raise UsageError(f"{place.address}: is the folder that is merged into; give another")
    except (RunError, UsageError) as error:
        yield Outcome(name="-", source=without_password(shown(source)), fate="refused", why=str(error))
        return
    progress.stage(f"Merging {shown(place.address)}", len(names))
    for name in names:
        if (outcome := _merge_folder(name, place, target, shards)) is not None:
            yield outcome
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


def _merge_folder(name: str, place: Place, target: Place, shards: _Shards) -> Outcome | None:
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
        if contents.kind is RUN and is_shard(folder):
            shards.keep(name, place, check)
            return None
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
