"""A results folder as tables to ask: each finished run and comparison keeps its own rows, and DuckDB reads them all.

A finished run never changes, and neither do its rows, which are Parquet files in its folder `tables`. Where there are
none, or those that are there cannot be read or have other columns than this harness writes, they are made of the run's
records when it is read first. Turns are in rounds.jsonl, and are read when a query names them.
"""

from __future__ import annotations

import contextlib
import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, fields
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.errors import HarnessError, RunError, UsageError
from harness.progress import Progress
from harness.records.run import Account, Round
from harness.store.evidence import AHEAD
from harness.store.files import FINISHED_FILE, TABLES_FOLDER
from harness.store.folders import COMPARISON, EXPLANATION
from harness.store.marks import Marks, RunChoice, choose_runs, read_marks, tags_of
from harness.store.place import open_place
from harness.store.run_directory import HEADER_FILE, load_rounds, load_run
from harness.store.schema import (
    COMPARISON_TABLES,
    RUN_TABLES,
    TABLES,
    Rows,
    RowsOf,
    connect,
    create_tables,
    insert_rows,
    lock,
    parquet,
    write_tables,
)
from harness.store.work_directory import comparison_rows
from harness.text import one_line, shown

if TYPE_CHECKING:
    import pandas as pd

NOTHING_YET = "There is no run here yet; `harness run SUITE` adds one, and from the second on there is a history."
_NAMED = 3
_QUOTES = 'the columns "case" and "group" need their quotes, since they are words of SQL'
_ONLY_READS = "a query only reads, and `harness history --columns` lists the tables"
_TURNS = re.compile(r"\bturns\b", re.IGNORECASE)
# A run cannot know that its own clock is ahead.
_FUTURE = """
UPDATE runs SET clock = 'it started on ' || started[:10] || ', which is in the future' WHERE clock = '' AND started > ?
"""


def rows_in(folder: Path, rows_of: RowsOf) -> tuple[str, Rows]:
    """A folder's own id, and its rows made of its records."""
    if (folder / COMPARISON.file).exists():
        comparison = COMPARISON.load(folder)
        return comparison.id, {"comparisons": comparison_rows(comparison)}
    run = load_run(folder)
    return run.header.id, rows_of(run)


def tables_of(folder: Path) -> dict[str, Path]:
    """The Parquet files of a finished run's or comparison's folder, by table; {} where one is missing."""
    is_comparison = (folder / COMPARISON.file).exists()
    wanted = COMPARISON_TABLES if is_comparison else RUN_TABLES
    files = {table: folder / TABLES_FOLDER / f"{table}.parquet" for table in wanted}
    return files if _is_finished(folder) and all(file.is_file() for file in files.values()) else {}


def _is_finished(folder: Path) -> bool:
    return (folder / COMPARISON.file).is_file() or (folder / FINISHED_FILE).is_file()


class Tables:
    """Every run and comparison of one results folder, in tables to query; a context manager."""

    marks = Marks()  # What people said of runs and changes

    def __init__(self, place: str, rows_of: RowsOf, progress: Progress, choice: RunChoice | None = None) -> None:
        import pandas  # noqa: F401 (an interruption while DuckDB imports it would read as if it were missing)

        opened = open_place(place)
        opened.fetch()
        names = opened.names()
        if (opened.local / HEADER_FILE).is_file():
            raise RunError(f"{opened.address}: is one run; give the folder that it lies in")
        self.results = opened.local.resolve()  # Of a URL, its mirror
        self.ids: set[str] = set()  # Of all runs and comparisons that have rows
        self._rows_of = rows_of
        self._progress = progress
        # What was left out and why, and what else bears on the figures, a sentence each.
        self.notes = [f"{one_line(name)[:80]} is left out: {one_line(why)}" for name, why in opened.refused.items()]
        self._folders: dict[str, Path] = {}  # of runs, by id
        self._turns_loaded = False
        self._spill = tempfile.TemporaryDirectory(prefix="harness-history-")
        self.connection = connect(Path(self._spill.name))
        try:
            create_tables(self.connection)
            self._read_folders(names)
            latest = (datetime.now(timezone.utc) + AHEAD).isoformat(timespec="seconds")
            self.connection.execute(_FUTURE, [latest])
            left_out = self._read_tags(choice)
            self._note_wrong_clocks()
            if not left_out and self.query("SELECT run FROM runs LIMIT 1").empty:
                self.notes.append(NOTHING_YET)
            lock(self.connection)
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Tables:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the database."""
        self.connection.close()
        self._spill.cleanup()

    def query(self, sql: str, parameters: Sequence[Any] = ()) -> pd.DataFrame:
        """What a statement gives, which only reads: else the tables would no longer be what the folder says."""
        import duckdb

        try:
            if len(self.connection.extract_statements(sql)) != 1:
                raise ValueError("give one statement")
            if _TURNS.search(sql):
                self.load_turns()
            self.connection.execute("BEGIN TRANSACTION READ ONLY")
            try:
                frame: pd.DataFrame = self.connection.execute(sql, list(parameters) or None).df()
            finally:
                self.connection.execute("ROLLBACK")
        except (duckdb.Error, UnicodeError, ValueError) as error:
            message = " ".join(str(error).split())[:300]
            advice = _QUOTES if "Parser Error" in message else _ONLY_READS
            raise UsageError(f"the query cannot be answered: {message}; {advice}") from None
        return frame

    def folder_of(self, run: str) -> Path:
        """The folder of a run, by its id; its name may be another."""
        return self._folders[run]

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
        self._progress.stage("Reading turns", len(self._folders))
        for run, folder in self._folders.items():
            with self._guarded(f"The turns of {run} are left out"):
                insert_rows(self.connection, "turns", turn_rows(run, load_rounds(folder)))
            self._progress.step(run)

    def _read_folders(self, names: Sequence[str]) -> None:
        """Take in the rows of all folders: their own tables, or else what their records give."""
        folders = [self.results / name for name in names]
        folders = [folder for folder in folders if not EXPLANATION.is_at(folder)]  # of which no table has rows
        self._progress.stage("Reading runs", len(folders))
        read = self._take_tables({folder: files for folder in folders if (files := tables_of(folder))})
        for folder in folders:
            if folder not in read:
                with self._guarded(f"{folder.name} is left out"):
                    self._take_records(folder)
            self._progress.step(folder.name)

    def _take_tables(self, stored: Mapping[Path, Mapping[str, Path]]) -> set[Path]:
        """Take in the rows of folders' own tables; those folders of which they could be read."""
        import duckdb

        if not stored:
            return set()
        self.connection.begin()
        try:
            owners = self._owners(stored)
            first = {name: folder for folder, name in reversed(owners.items()) if name not in self.ids}
            for table in (*RUN_TABLES, *COMPARISON_TABLES):
                if files := [stored[folder][table] for folder in first.values() if table in stored[folder]]:
                    rows = f"SELECT {TABLES[table].select} FROM {parquet(files)}"  # noqa: S608 (our names)
                    self.connection.execute(f"INSERT INTO {table} {rows}")
            self.connection.commit()
        except duckdb.Error:  # of one of them: each is tried by itself
            self.connection.rollback()
            alone = [{folder: files} for folder, files in stored.items()] if len(stored) > 1 else []
            return set[Path]().union(*map(self._take_tables, alone))
        for folder, name in owners.items():
            with self._guarded(f"{folder.name} is left out"):
                self._claim(folder, name)
        return set(stored)

    def _owners(self, stored: Mapping[Path, Mapping[str, Path]]) -> dict[Path, str]:
        """The id of the run or the comparison that each folder's tables are of, in the order of the folders."""
        ids: dict[Path, str] = {}
        for table, own in (("runs", "run"), ("comparisons", "comparison")):
            folders = {files[table]: folder for folder, files in stored.items() if table in files}
            if folders:
                rows = f"SELECT DISTINCT filename, {own} FROM {parquet(folders, ', filename = true')}"  # noqa: S608
                ids |= {folders[Path(file)]: str(name) for file, name in self.connection.execute(rows).fetchall()}
        return {folder: ids[folder] for folder in stored if folder in ids}

    def _take_records(self, folder: Path) -> None:
        """Take in what a folder's records give: all rows, or none; a finished one gets its tables."""
        name, rows = rows_in(folder, self._rows_of)
        self.connection.begin()
        try:
            for table, of_table in rows.items():
                insert_rows(self.connection, table, of_table)
            self._claim(folder, name)
        except BaseException:
            self.connection.rollback()
            raise
        self.connection.commit()
        if _is_finished(folder):
            write_tables(folder, rows)

    def _claim(self, folder: Path, name: str) -> None:
        """Let a folder be the run or the comparison that it says it is."""
        if name in self.ids:
            raise RunError(f"it says that it is {shown(name)}, which is there already")
        self.ids.add(name)
        if (folder / HEADER_FILE).is_file():
            self._folders[name] = folder

    @contextlib.contextmanager
    def _guarded(self, what: str) -> Iterator[None]:
        """Make a note of what cannot be read: one folder, which may hold anything, costs no other."""
        try:
            yield
        except Exception as error:
            text = str(error) if isinstance(error, HarnessError) else f"{type(error).__name__}: {error}"[:200]
            self.notes.append(f"{what}: {one_line(text)}")

    def _read_tags(self, choice: RunChoice | None) -> list[str]:
        """Fill the table `tags`, and take the runs that are left out from the others; their ids."""
        self.marks = marks = read_marks(self.results)
        self.notes += [f"{name} is left out: {one_line(why)}" for name, why in marks.wrong.items()]
        born = self.connection.execute("SELECT run, purpose, started FROM runs WHERE purpose <> ''").fetchall()
        tags = tags_of(born, marks.taggings)
        insert_rows(self.connection, "tags", [{**asdict(tag), "since": tag.when} for tag in tags])
        if choice is None:
            return []
        runs = {str(run) for (run,) in self.connection.execute("SELECT run FROM runs").fetchall()}
        left, notes = choose_runs(choice, runs, tags)
        self.notes += notes
        for run in left:
            self._folders.pop(run, None)
        for table in RUN_TABLES if left else ():
            rows = f"DELETE FROM {table} WHERE run IN (SELECT unnest(?::VARCHAR[]))"  # noqa: S608 (our names)
            self.connection.execute(rows, [left])
        return left

    def _note_wrong_clocks(self) -> None:
        rows = self.query("SELECT run, clock FROM runs WHERE clock <> '' ORDER BY started, run")
        if wrong := [f"{run} ({clock})" for run, clock in zip(rows["run"], rows["clock"], strict=True)]:
            more = f" and {len(wrong) - _NAMED:,} more" if len(wrong) > _NAMED else ""
            named = f"{', '.join(wrong[:_NAMED])}{more}"
            self.notes.append(f"With a wrong clock, and left out where change points are looked for: {named}.")


_OF_ACCOUNT = tuple(field.name for field in fields(Account) if field.name != "on_calling_thread")


def turn_rows(run: str, rounds: Sequence[Round]) -> list[dict[str, Any]]:
    """The rows of the table `turns`, in the order in which they ran."""
    return [
        {
            "run": run,
            "place": place,
            **vars(each),
            **vars(turn),
            **{name: getattr(turn.account, name, None) for name in _OF_ACCOUNT},
        }
        for each in rounds
        for place, turn in enumerate(each.turns)
    ]
