"""A results folder as tables to ask: each finished run and comparison keeps its own rows, and DuckDB reads them all.

    <results>/<run>/tables/{runs,points,cases}.parquet        written before finished.json, which has their hashes
    <results>/<comparison>/tables/comparisons.parquet
    <results>/history/tables-<8 hex>/<table>.parquet          all of them once more, by `harness results compact`

A finished run never changes, and neither do its tables. A run of a harness that wrote none gets them when it is read
first; where its folder cannot be written, its rows stay in memory. Turns are in rounds.jsonl, and are read when a
query names them.
"""

from __future__ import annotations

import contextlib
import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from datetime import datetime, timezone
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from harness.errors import HarnessError, RunError, UsageError
from harness.progress import Progress
from harness.records.run import Round
from harness.store.clock import AHEAD
from harness.store.database import (
    ONLY_READS,
    Rows,
    RowsOf,
    connect,
    id_column,
    lock,
    only_reads,
    parquet,
    pattern,
    text,
    texts,
    try_to_write_tables,
)
from harness.store.files import (
    TURNS_FILE,
    describe_file,
    read_manifest,
)
from harness.store.folders import is_name
from harness.store.kinds import COMPARISON, EXPLANATION
from harness.store.marks import Marks, RunChoice, choose_runs, read_marks, tags_of
from harness.store.parquet_files import (
    STORED,
    Source,
    compacted_sources,
    fault_of,
    is_finished,
    require_own_history,
    tables_of,
)
from harness.store.remote import open_place
from harness.store.run_directory import HEADER_FILE, load_rounds, load_run
from harness.store.schema import COMPARISON_TABLES, LATER, RUN_TABLES, SERIES_VIEW, TABLES, create_tables, insert_rows
from harness.store.sides_directory import comparison_rows
from harness.text import one_line, shown

if TYPE_CHECKING:
    import pandas as pd

NOTHING_YET = "There is no run here yet; `harness run SUITE` adds one, and from the second on there is a history."
_NAMED = 3
_QUOTES = 'the columns "case" and "group" need their quotes, since they are words of SQL'
_TURNS = re.compile(r"\bturns\b", re.IGNORECASE)


def rows_in(folder: Path, rows_of: RowsOf) -> tuple[str, Rows, str]:
    """A folder's own id, its rows made of its records, and when its raw turns were deleted ("": they were not)."""
    if (folder / COMPARISON.file).exists():
        comparison = COMPARISON.load(folder)
        return comparison.id, {"comparisons": comparison_rows(comparison)}, ""
    run = load_run(folder)
    return run.header.id, rows_of(run), run.turns_dropped


class Tables:
    """Every run and comparison of one results folder, as views to query; a context manager.

    Attributes:
        results: The folder; of a URL, its mirror.
        connection: The database; of `open_tables`, it reads no file outside the folder.
        sources: Where rows in Parquet are from.
        ids: Of all runs and comparisons that have rows.
        marks: What people said of runs and changes.
    """

    marks = Marks()

    def __init__(
        self,
        results: Path,
        names: Sequence[str],
        notes: Sequence[str],
        rows_of: RowsOf,
        progress: Progress,
        choice: RunChoice | None = None,
    ) -> None:
        import pandas  # noqa: F401 (an interruption while DuckDB imports it would read as if it were missing)

        self.results = results
        self.sources: list[Source] = []
        self._rows_of = rows_of
        self._progress = progress
        self._notes = list(notes)
        self.ids: set[str] = set()
        self._folders: dict[str, Path] = {}  # of runs, by id
        self._turns_loaded = False
        self._spill = tempfile.TemporaryDirectory(prefix="harness-history-")
        self.connection = connect(Path(self._spill.name))
        try:
            self._read_compacted()
            self._read_folders(names)
            self._make_views()
            left_out = self._read_tags(choice)
            self._notes += self._notes_on_runs()
            if not left_out and self.query("SELECT run FROM runs LIMIT 1").empty:
                self._notes.append(NOTHING_YET)
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Tables:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the database."""
        self.connection.close()
        self._spill.cleanup()

    @property
    def notes(self) -> tuple[str, ...]:
        """What was left out and why, and what else bears on the figures, a sentence each."""
        return tuple(self._notes)

    def query(self, sql: str, parameters: Sequence[Any] = ()) -> pd.DataFrame:
        """What a statement gives."""
        import duckdb

        try:
            if not only_reads(self.connection, sql):
                raise ValueError(ONLY_READS)
            if _TURNS.search(sql):
                self.load_turns()
            frame: pd.DataFrame = self.connection.execute(sql, list(parameters) or None).df()
        except (duckdb.Error, UnicodeError, ValueError) as error:
            message = " ".join(str(error).split())[:300]
            advice = _QUOTES if "Parser Error" in message else "`harness history --columns` lists the tables"
            raise UsageError(f"the query cannot be answered: {message}; {advice}") from None
        return frame

    def runs(self) -> pd.DataFrame:
        """All runs in order of time: the columns of the table `runs`."""
        return self.query("SELECT * FROM runs ORDER BY started, run")

    def series(self) -> pd.DataFrame:
        """All series, in order of suite, case and metric: the columns of the view `series`."""
        return self.query("SELECT * FROM series ORDER BY suite, case_id, metric, machine_class, role, series")

    def points(self, series: str) -> pd.DataFrame:
        """One series in order of time: the columns of the table `points`."""
        return self.query("SELECT * FROM points WHERE series = ? ORDER BY started, run", [series])

    def load_turns(self) -> None:
        """Read the turns of all runs that have a folder: only when they are asked for, since they are many."""
        if self._turns_loaded:
            return
        self._turns_loaded = True
        compacted = {str(run) for (run,) in self.connection.execute("SELECT DISTINCT run FROM turns").fetchall()}
        folders = {run: folder for run, folder in self._folders.items() if run not in compacted}
        if folders:
            self._progress.stage("Reading turns", len(folders))
        for run, folder in folders.items():
            with self._guarded(f"The turns of {run} are left out"):
                insert_rows(self.connection, "turns", turn_rows(run, load_rounds(folder)), schema="fresh")
            self._progress.step(run)

    def _read_compacted(self) -> None:
        try:
            require_own_history(self.results)
            sources = compacted_sources(self.results)
        except RunError as error:
            self._notes.append(f"The compacted tables are left out: {error}")
            return
        for source in sources:
            faults = {table: fault_of(self.connection, table, [file]) for table, file in source.files.items()}
            if any(faults.values()):
                fault = next(f"its {table}: {why}" for table, why in faults.items() if why)
                self._notes.append(
                    f"{shown(source.name)} is left out: it cannot be read ({fault}); take it from a backup"
                )
                continue
            for table in ("runs", "comparisons"):
                if table in source.files:
                    rows = f"SELECT DISTINCT {id_column(table)} FROM {parquet([source.files[table]])}"  # noqa: S608
                    source.ids.update(str(name) for (name,) in self.connection.execute(rows).fetchall())
            source.hidden.update(source.ids & self.ids)
            source.ids.difference_update(source.hidden)
            self.ids |= source.ids
            self.sources.append(source)

    def _read_folders(self, names: Sequence[str]) -> None:
        """Take in the folders: of what is compacted the turns alone, of the others their tables or their records."""
        self.connection.execute("CREATE SCHEMA fresh; USE fresh")
        create_tables(self.connection)
        self.connection.execute("USE main")
        self._folders = {name: self.results / name for name in names if name in self.ids and self._has_turns(name)}
        others = (self.results / name for name in names if name not in self.ids)
        new = [folder for folder in others if not EXPLANATION.is_at(folder)]  # of which no table has rows
        if new:  # of a compacted history there may be none
            self._progress.stage("Reading runs", len(new))
        stored: dict[Path, dict[str, Path]] = {}
        for folder in new:
            with self._guarded(f"{folder.name} is left out"):
                if files := self._tables_or_rows(folder):
                    stored[folder] = files
            self._progress.step(folder.name)
        owners = self._owners(stored)
        for folder, files in stored.items():
            with self._guarded(f"{folder.name} is left out"):
                if folder in owners:
                    self._claim(folder, owners[folder])
                    self.sources.append(Source(name=folder.name, files=files, ids={owners[folder]}))
                else:
                    self._notes.append(
                        f"The tables of {folder.name} are not its own or cannot be read, so its rows are made of its "
                        "records; `harness results verify` says more"
                    )
                    self._insert(folder, *rows_in(folder, self._rows_of)[:2])

    def _has_turns(self, name: str) -> bool:
        return (self.results / name / HEADER_FILE).is_file() and (self.results / name / TURNS_FILE).is_file()

    @contextlib.contextmanager
    def _guarded(self, what: str) -> Iterator[None]:
        """Make a note of what cannot be read: one folder costs no other."""
        try:
            yield
        except HarnessError as error:
            self._notes.append(f"{what}: {one_line(str(error))}")
        except Exception as error:  # a folder may hold anything
            detail = one_line(f"{type(error).__name__}: {error}")[:200]
            self._notes.append(f"{what}: it cannot be put into tables ({detail})")

    def _tables_or_rows(self, folder: Path) -> dict[str, Path]:
        """A finished folder's tables, made where it has none; {}: its rows are in memory now."""
        finished = is_finished(folder)
        if finished and (files := tables_of(folder)):
            return files
        name, rows, dropped = rows_in(folder, self._rows_of)
        if dropped:  # these rows are not those that the run had when it was finished
            self._notes.append(
                f"{folder.name} has no latencies here: `harness results gc` deleted its turns ({dropped[:10]}), "
                "and its tables, which had them, are gone"
            )
        elif finished and (changed := _changed_record(folder)):
            self._notes.append(
                f"{folder.name}: its {changed} is not as it was when it was finished, so its figures may be anything; "
                "`harness results verify` says more"
            )
        elif finished:
            try_to_write_tables(folder, rows)
            if files := tables_of(folder):  # they may be another process's of this moment
                return files
        self._insert(folder, name, rows)
        return {}

    def _owners(self, stored: Mapping[Path, Mapping[str, Path]]) -> dict[Path, str]:
        """Whose rows each folder's tables have; without folders whose tables cannot be read or have several owners."""
        ids: dict[Path, set[str]] = {folder: set() for folder in stored}
        for table in (*RUN_TABLES, *COMPARISON_TABLES):
            folders = {files[table]: folder for folder, files in stored.items() if table in files}
            if folders and fault_of(self.connection, table, list(folders)):  # of one of them
                for file, folder in list(folders.items()):
                    if fault_of(self.connection, table, [file]):
                        ids.pop(folder, None)
                        del folders[file]
            if folders:
                own, source = id_column(table), parquet(list(folders), ", filename = true")
                rows = f"SELECT filename, min({own}), max({own}) FROM {source} GROUP BY filename"  # noqa: S608
                for file, *ends in self.connection.execute(rows).fetchall():
                    ids.get(folders[Path(file)], set()).update(map(str, ends))
        return {folder: next(iter(found)) for folder, found in ids.items() if len(found) == 1}

    def _insert(self, folder: Path, name: str, rows: Rows) -> None:
        """Hold a folder's rows in memory: all of them, or none."""
        self.connection.begin()
        try:
            for table, of_table in rows.items():
                insert_rows(self.connection, table, of_table, schema="fresh")
            self._claim(folder, name)
        except BaseException:
            self.connection.rollback()
            raise
        self.connection.commit()

    def _claim(self, folder: Path, name: str) -> None:
        """Let a folder be the run or the comparison that it says it is."""
        if not is_name(name):
            raise RunError(f"it says that it is {shown(name)!r}, which is no name of a run")
        if name in self.ids:
            raise RunError(f"it says that it is {shown(name)}, which is there already")
        self.ids.add(name)
        if (folder / HEADER_FILE).is_file():
            self._folders[name] = folder

    def _make_views(self) -> None:
        for table in STORED:
            select = f"SELECT {', '.join(column.quoted for column in TABLES[table].columns)}"
            sources = [source for source in self.sources if table in source.files]
            whole = [source.files[table] for source in sources if not source.hidden]
            selects = [f"{select} FROM {rows}" for rows in (f"fresh.{table}", *self._stored_rows(table, whole))]
            for source in sources:
                if source.hidden:
                    others = f"{id_column(table)} NOT IN ({texts(sorted(source.hidden))})"
                    stored = self._stored_rows(table, [source.files[table]])
                    selects += [f"{select} FROM {rows} WHERE {others}" for rows in stored]
            rows = " UNION ALL ".join(selects)
            if table == "runs":  # a run cannot know that its own clock is ahead
                latest = text((datetime.now(timezone.utc) + AHEAD).isoformat(timespec="seconds"))
                future = "'it started on ' || started[:10] || ', which is in the future'"
                clock = f"CASE WHEN clock = '' AND started > {latest} THEN {future} ELSE clock END AS clock"
                rows = f"SELECT * REPLACE ({clock}) FROM ({rows})"  # noqa: S608 (no input in it)
            self.connection.execute(f"CREATE VIEW {table} AS {rows}")
        self.connection.execute("CREATE VIEW tags AS FROM fresh.tags")
        self.connection.execute(SERIES_VIEW)

    def _stored_rows(self, table: str, files: Sequence[Path]) -> list[str]:
        """What stands after FROM for Parquet files: those of older harnesses have the columns that they lack added."""
        later = LATER.get(table, {})
        if not later or not files:
            return [parquet(files)] if files else []
        having = self._having(list(later), files)
        alike: dict[tuple[str, ...], list[Path]] = {}
        for file in files:
            alike.setdefault(tuple(name for name in later if name not in having.get(file, ())), []).append(file)
        return [_with_columns({name: later[name] for name in lacking}, group) for lacking, group in alike.items()]

    def _having(self, columns: Sequence[str], files: Sequence[Path]) -> dict[Path, set[str]]:
        """Which of these columns files have; a file that has none need not be there."""
        names = f"parquet_schema([{texts([pattern(file) for file in files])}])"
        found = f"SELECT DISTINCT file_name, name FROM {names} WHERE name IN ({texts(columns)})"  # noqa: S608 (quoted)
        having: dict[Path, set[str]] = {}
        for file, name in self.connection.execute(found).fetchall():
            having.setdefault(Path(file), set()).add(str(name))
        return having

    def _read_tags(self, choice: RunChoice | None) -> list[str]:
        """Fill the table `tags`, and let no view have the runs that are left out; their ids."""
        self.marks = marks = read_marks(self.results)
        self._notes += marks.notes
        born = self.connection.execute("SELECT run, purpose, started FROM runs WHERE purpose <> ''").fetchall()
        tags = tags_of(born, marks.taggings)
        insert_rows(self.connection, "tags", list(map(asdict, tags)), schema="fresh")
        if choice is None:
            return []
        runs = {str(run) for (run,) in self.connection.execute("SELECT run FROM runs").fetchall()}
        left, notes = choose_runs(choice, runs, tags)
        self._notes += notes
        if left:
            self._folders = {run: folder for run, folder in self._folders.items() if run not in set(left)}
            self.connection.execute("CREATE TABLE fresh.left_out AS SELECT unnest(?::VARCHAR[]) AS run", [left])
            for table in (*RUN_TABLES, "turns"):
                self.connection.execute(f"ALTER VIEW {table} RENAME TO all_{table}")
                self.connection.execute(
                    f"CREATE VIEW {table} AS FROM all_{table} WHERE run NOT IN (FROM fresh.left_out)"
                )
        return left

    def _notes_on_runs(self) -> list[str]:
        wrong = self.query("SELECT run, clock FROM runs WHERE clock <> '' ORDER BY started, run")
        notes = [
            f"The clock of {run} was wrong ({clock}), so it is left out where change points are looked for."
            for run, clock in zip(wrong["run"][:_NAMED], wrong["clock"][:_NAMED], strict=True)
        ]
        if len(wrong) > _NAMED:
            notes.append(f"So are {len(wrong) - _NAMED:,} more, whose column `clock` says why.")
        return notes


def _with_columns(added: Mapping[str, str], files: Sequence[Path]) -> str:
    """What stands after FROM for files that lack these columns, which have what stands for them."""
    if not added:
        return parquet(files)
    columns = ", ".join(f"{sql} AS {name}" for name, sql in added.items())
    return f"(SELECT *, {columns} FROM {parquet(files)})"  # noqa: S608 (quoted)


def _changed_record(folder: Path) -> str:
    """Name of a file of records that is not as it was when the folder was finished; "" where none is known to be."""
    for path, record in (read_manifest(folder) or {}).items():
        is_record = path.endswith(".jsonl") or path in (HEADER_FILE, COMPARISON.file)
        if is_record and describe_file(folder / path) != record:
            return path
    return ""


_OF_ACCOUNT = (
    "thread_ns",
    "delayed_ns",
    "voluntary",
    "involuntary",
    "minor_faults",
    "major_faults",
    "core",
    "throttled",
)


def turn_rows(run: str, rounds: Sequence[Round]) -> list[dict[str, Any]]:
    """The rows of the table `turns`, in the order in which they ran."""
    return [
        {
            "run": run,
            "case": turn.case,
            "group": each.group,
            "generation": each.generation,
            "round": each.round,
            "place": place,
            "started_unix_ns": each.started_unix_ns,
            "calls": turn.calls,
            "wall_ns": turn.wall_ns,
            "cpu_ns": turn.cpu_ns,
            **{name: getattr(turn.account, name, None) for name in _OF_ACCOUNT},
        }
        for each in rounds
        for place, turn in enumerate(each.turns)
    ]


def open_tables(place: str, rows_of: RowsOf, progress: Progress, choice: RunChoice | None = None) -> Tables:
    """Open a results folder as tables."""
    opened = open_place(place)
    opened.fetch()
    names = opened.names()
    if (opened.local / HEADER_FILE).is_file():
        raise RunError(f"{opened.address}: is one run; give the folder that it lies in")
    refused = [f"{one_line(name)[:80]} is left out: {one_line(why)}" for name, why in opened.refused.items()]
    tables = Tables(opened.local.resolve(), names, refused, rows_of, progress, choice)
    lock(tables.connection, tables.results)
    return tables
