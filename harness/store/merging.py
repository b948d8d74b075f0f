"""Merges results folders: copies what the target does not have, whole or not at all, and says what became of each.

Runs of `harness run --shard` are joined into the run that they are parts of; alone they would be nights of which most
cases are missing.
"""

import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal

from harness.errors import HarnessError, RunError, UsageError
from harness.progress import Progress
from harness.records.run import Run
from harness.store.check import check_folder, why_not_mergeable
from harness.store.database import RowsOf, write_tables
from harness.store.folders import MARKS_FOLDER, kind_of, look_into
from harness.store.journal import require_writable
from harness.store.kinds import EXPLANATION, RUN
from harness.store.marks import mark_files, parse_mark, put_mark
from harness.store.place import Place, is_url, open_place, without_password
from harness.store.run_directory import HEADER_FILE, load_run
from harness.store.shards import ShardRun, is_shard, join_shards, shard_run, write_joined
from harness.store.tables import rows_in
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
        require_writable(target.local, "choose another folder with --into")
    shards: list[ShardRun] = []
    outcomes = [outcome for source in sources for outcome in _merge_place(source, target, rows_of, shards, progress)]
    suites: dict[str, list[ShardRun]] = {}
    for shard in shards:
        suites.setdefault(shard.run.header.suite_name, []).append(shard)
    for suite, found in suites.items():
        outcomes += _join(suite, found, target, report_of, rows_of)
    return outcomes


def _join(
    suite: str, shards: Sequence[ShardRun], target: Place, report_of: Callable[[Run], str], rows_of: RowsOf
) -> Iterator[Outcome]:
    """Join the shards of a suite."""
    count = plural(len(shards), "shard")
    fate: Fate = "joined"
    try:
        run = join_shards(shards)
        name, becomes = run.header.id, f"of {run.header.id}"
        new = _put_joined(run, shards, target, report_of, rows_of)
        result = Outcome(name=name, source=f"joined from {count}", fate="copied" if new else "already there")
    except HarnessError as error:
        fate, becomes = "left out", "of a run that is not joined"
        result = Outcome(name=shown(suite), source=count, fate="refused", why=str(error))
    for shard in shards:
        source, _, name = shard.name.rpartition("/")
        yield Outcome(name=shown(name), source=source, fate=fate, why=f"shard {shard.shard} {becomes}")
    yield result


def _put_joined(
    run: Run, shards: Sequence[ShardRun], target: Place, report_of: Callable[[Run], str], rows_of: RowsOf
) -> bool:
    """Copy a joined run to its place; False: it is there already, though its files tell another time of joining."""
    with tempfile.TemporaryDirectory(prefix="harness-shards-") as scratch:
        folder = write_joined(run, shards, Path(scratch), report_of)
        try:
            return target.put(folder, partial(_settle, name=folder.name, rows_of=rows_of))
        except RunError:
            there = target.local / folder.name
            if (there / HEADER_FILE).is_file() and load_run(there, rounds=False).header == run.header:
                return False
            raise


def _settle(copy: Path, name: str, rows_of: RowsOf) -> None:
    """Refuse a folder that is not what a harness leaves behind; else make its tables, of its records."""
    finding = check_folder(copy, name=name)
    if finding.state != "ok":
        raise RunError(finding.why)
    if not EXPLANATION.is_at(copy):  # of which no table has rows
        write_tables(copy, rows_in(copy, rows_of)[1])


def _merge_place(
    source: str, target: Place, rows_of: RowsOf, shards: list[ShardRun], progress: Progress
) -> Iterator[Outcome]:
    try:
        place, names, whole = _folders_of(source)
        if place.local.resolve() == target.local.resolve():
            raise UsageError(f"{place.address}: is the folder that is merged into; give another")
    except (RunError, UsageError) as error:
        yield Outcome(name="-", source=without_password(shown(source)), fate="refused", why=str(error))
        return
    progress.stage(f"Merging {shown(place.address)}", len(names))
    for name in names:
        if (outcome := _merge_folder(name, place, target, rows_of, shards)) is not None:
            yield outcome
        progress.step(name)
    if not whole:
        return
    others = [
        Outcome(name=shown(name), source=place.address, fate="refused", why=place.refused[name])
        for name in sorted(place.refused.keys() - set(names))
    ]
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


def _merge_folder(name: str, place: Place, target: Place, rows_of: RowsOf, shards: list[ShardRun]) -> Outcome | None:
    """Copy a folder, look at the copy, which nobody else can change, and only then give it its name; keep a shard."""

    def outcome(fate: Fate, why: str = "") -> Outcome:
        return Outcome(name=shown(name), source=place.address, fate=fate, why=why)

    folder = place.local / name

    def settle(copy: Path) -> None:
        try:
            _settle(copy, name, rows_of)
        except RunError as error:
            raise RunError(str(error).replace(str(copy), str(folder))) from None

    try:
        place.fetch([name])
        if name in place.refused:
            return outcome("refused", place.refused[name])
        contents = look_into(folder)
        if (reason := why_not_mergeable(contents, name)) is not None:
            return outcome("left out", reason)
        if contents.kind is RUN and is_shard(folder):
            finding = check_folder(folder, name=name)
            if finding.state != "ok":
                return outcome("refused", finding.why)
            shards.append(shard_run(f"{place.address}/{name}", folder, load_run(folder)))
            return None
        copied = target.put(folder, settle)
    except RunError as error:
        return outcome("refused", str(error))
    if not copied:
        return outcome("already there")
    return outcome("copied", f"without {contents.beside}, which no run has" if contents.unknown else "")


def _merge_marks(place: Place, target: Place) -> list[Outcome]:
    """Copy statements about runs and changes that are not there yet; their names tell equal ones."""

    def refused(name: str, error: RunError) -> Outcome:
        return Outcome(name=name, source=place.address, fate="refused", why=str(error))

    outcomes, copied = [], []
    try:
        place.fetch([MARKS_FOLDER])
        files = mark_files(place.local)
        if not files:
            return []
        target.fetch([MARKS_FOLDER])
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
        target.publish(copied)
    except RunError as error:
        return [*outcomes, refused(f"{MARKS_FOLDER}/", error)]
    if copied:
        why = f"{plural(len(copied), 'statement')} about runs and changes"
        outcomes.append(Outcome(name=f"{MARKS_FOLDER}/", source=place.address, fate="copied", why=why))
    return outcomes
