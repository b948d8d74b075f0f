"""A results folder as tables to ask: compacted runs from Parquet, the others from their folders."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from harness.errors import HarnessError, RunError, UsageError
from harness.history import memo as memos
from harness.history.database import columns, connect, create_table, lock, parquet
from harness.history.folders import read_folders
from harness.history.frames import TABLES, Table, shape, turns_frame
from harness.history.index import history_folder, part_file
from harness.history.memo import Memo
from harness.history.memo_check import changed_file, changed_note
from harness.history.reading import ONLY_READS, only_reads
from harness.history.series_view import SERIES_VIEW, SeriesRow
from harness.history.usable import usable_index
from harness.history.values import Point, RunRow
from harness.progress import Progress, Silent
from harness.store.run_directory import load_run
from harness.text import one_line

if TYPE_CHECKING:
    import pandas as pd

NOTHING_YET = "There is no run here yet; `harness run SUITE` adds one, and from the second on there is a history."
_NAMED = 3
_QUOTES = 'the columns "case" and "group" need their quotes, since they are words of SQL'
_TURNS = re.compile(r"\bturns\b", re.IGNORECASE)


class History:
    """Every run and comparison of one results folder, as views to query; a context manager.

    Attributes:
        notes: What was left out and why, and what else bears on the figures, a sentence each.
    """

    def __init__(self, results: Path, names: Sequence[str], notes: Sequence[str], progress: Progress) -> None:
        import pandas  # noqa: F401 (an interruption while DuckDB imports it would read as if it were missing)

        self.results = results
        self._names = names
        self._progress = progress
        self._spill = tempfile.TemporaryDirectory(prefix="harness-history-")
        self._connection = connect(Path(self._spill.name))
        self._notes = list(notes)
        try:
            self._index = usable_index(self._connection, results, self._notes)
            self._found = read_folders(self._connection, results, names, self._index, progress)
            self._notes += self._found.notes
            self._files = self._memo_files()
            self._make_views()
            self._turns_loaded = False
            lock(self._connection, (history_folder(results), memos.memo_folder()))
            self._notes += self._notes_on_runs()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> History:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the database."""
        self._connection.close()
        self._spill.cleanup()

    @property
    def notes(self) -> tuple[str, ...]:
        """What was left out and why, a sentence each."""
        return tuple(self._notes)

    def query(self, sql: str, parameters: Sequence[Any] = ()) -> pd.DataFrame:
        """What a statement gives.

        Args:
            sql: Over the views runs, points, cases, turns, comparisons and series, in DuckDB's dialect.
            parameters: Values for its `?`.

        Raises:
            UsageError: It is no statement that can be executed here, or one that would write.
        """
        import duckdb

        try:
            if not only_reads(self._connection, sql):
                raise ValueError(ONLY_READS)
            if _TURNS.search(sql):
                self._load_turns()
            frame: pd.DataFrame = self._connection.execute(sql, list(parameters) or None).df()
        except (duckdb.Error, UnicodeError, ValueError) as error:
            message = " ".join(str(error).split())[:300]
            advice = _QUOTES if "Parser Error" in message else "`harness history --columns` lists the tables"
            raise UsageError(f"the query cannot be answered: {message}; {advice}") from None
        return frame

    def runs(self) -> pd.DataFrame:
        """All runs in order of time: the columns of RunRow."""
        return shape(RunRow, self.query("SELECT * FROM runs ORDER BY started, run"))

    def series(self) -> pd.DataFrame:
        """All series: the columns of SeriesRow, in order of suite, case and metric."""
        order = "suite, case_id, metric, machine_class, role, series"
        return shape(SeriesRow, self.query(f"SELECT * FROM series ORDER BY {order}"))  # noqa: S608 (no input in it)

    def points(self, series: str) -> pd.DataFrame:
        """One series in order of time: the columns of Point.

        Args:
            series: Its id.
        """
        return shape(Point, self.query("SELECT * FROM points WHERE series = ? ORDER BY started, run", [series]))

    def _memo_files(self) -> dict[Table, Path]:
        import duckdb

        kept = list(self._found.memos.values())
        try:
            return memos.together(self._connection, kept)
        except (OSError, duckdb.Error):  # a memo is damaged, or the cache is full: read the folders again
            memos.forget(kept)
            self._found = read_folders(self._connection, self.results, self._names, self._index, self._progress)
            try:
                return memos.together(self._connection, list(self._found.memos.values()))
            except (OSError, duckdb.Error) as error:
                raise RunError(f"{memos.memo_folder()}: cannot be used ({error}); make room or delete it") from None

    def _make_views(self) -> None:
        for table, row in TABLES.items():
            create_table(self._connection, f"unfinished_{table}", row)
        for frames in self._found.frames:
            self._insert_all(frames)
        for table in TABLES:
            files = [part_file(self.results, table, part) for part in self._index.parts if table in part.bytes]
            if table in self._files:
                files.append(self._files[table])
            self._make_view(table, files)
        self._connection.execute(SERIES_VIEW)

    def _make_view(self, table: Table, files: Sequence[Path]) -> None:
        row = TABLES[table]
        stored = f"SELECT {columns(row)} FROM {parquet(files)} UNION ALL " if files else ""  # noqa: S608
        self._connection.execute(f"CREATE OR REPLACE VIEW {table} AS {stored} SELECT * FROM unfinished_{table}")  # noqa: S608

    def _insert_all(self, frames: Mapping[Table, pd.DataFrame]) -> None:
        """Put one folder's rows beside the others, or none of them and a note."""
        import duckdb

        self._connection.begin()
        try:
            for table, frame in frames.items():
                self._insert(table, frame)
        except (duckdb.Error, UnicodeError) as error:
            self._connection.rollback()
            name = next(str(frame.iloc[0, 0]) for frame in frames.values() if len(frame))
            self._found.folders.pop(name, None)
            self._notes.append(f"{name} is left out: it cannot be put into tables ({one_line(str(error))[:200]})")
        else:
            self._connection.commit()

    def _insert(self, table: Table, frame: pd.DataFrame) -> None:
        self._connection.register("given", frame)
        self._connection.execute(f"INSERT INTO unfinished_{table} SELECT {columns(TABLES[table])} FROM given")  # noqa: S608
        self._connection.unregister("given")

    def _load_turns(self) -> None:
        """Put the turns of the runs that are not compacted beside the others: only now, since they are many."""
        if self._turns_loaded:
            return
        self._turns_loaded = True
        files = [part_file(self.results, "turns", part) for part in self._index.parts if "turns" in part.bytes]
        if self._found.folders:
            self._progress.stage("Reading turns", len(self._found.folders))
        for name, folder in self._found.folders.items():
            memo = self._found.memos.get(name)
            if memo is not None and memo.file("turns").is_file():
                files.append(memo.file("turns"))
            else:
                try:
                    files += self._turns_of(folder, memo)
                except HarnessError as error:
                    self._notes.append(f"The turns of {name} are left out: {one_line(str(error))}")
                except Exception as error:  # a folder may hold anything, and must not cost the others
                    detail = one_line(f"{type(error).__name__}: {error}")[:200]
                    self._notes.append(f"The turns of {name} are left out: they cannot be put into a table ({detail})")
            self._progress.step(name)
        self._make_view("turns", files)

    def _turns_of(self, folder: Path, memo: Memo | None) -> list[Path]:
        """Put one run's turns into a file, or into memory where there is no place for one."""
        frame = turns_frame(load_run(folder))
        if memo is not None and (changed := changed_file(folder)):
            self._notes.append(changed_note(folder.name, changed))
        elif memo is not None and len(frame):
            return [memos.keep_table(self._connection, memo, "turns", frame)]
        self._insert("turns", frame)
        return []

    def _notes_on_runs(self) -> list[str]:
        wrong = self.query("SELECT run, clock FROM runs WHERE clock <> '' ORDER BY started, run")
        notes = [
            f"The clock of {run} was wrong ({clock}), so it is left out where change points are looked for."
            for run, clock in zip(wrong["run"][:_NAMED], wrong["clock"][:_NAMED], strict=True)
        ]
        if len(wrong) > _NAMED:
            notes.append(f"So are {len(wrong) - _NAMED:,} more, whose column `clock` says why.")
        if self.query("SELECT run FROM runs LIMIT 1").empty:
            notes.append(NOTHING_YET)
        return notes


class _Told(Silent):
    """Tells each stage in a sentence, to callers that have no progress to draw."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        self._tell = tell

    def stage(self, title: str, total: int) -> None:
        """Tell it, where there is something to do."""
        if total:
            self._tell(f"{title}: {total}")


def open_history(
    place: str, *, on_progress: Callable[[str], None] | None = None, progress: Progress | None = None
) -> History:
    """Open the history of a results folder.

    Args:
        place: A folder, or any URL that fsspec knows.
        on_progress: Told in a sentence what is being read.
        progress: Instead of that, who draws how far it is.

    Raises:
        UsageError: There is no such folder, or no such protocol.
        RunError: It cannot be read, or is a run and no folder of runs.
    """
    from harness.store.place import open_place

    opened = open_place(place)
    opened.fetch()
    names = opened.names()
    if (opened.local / "run.json").is_file():
        raise RunError(f"{opened.address}: is one run; give the folder that it lies in")
    refused = [f"{one_line(name)[:80]} is left out: {one_line(why)}" for name, why in opened.refused.items()]
    told = progress or (_Told(on_progress) if on_progress is not None else Silent())
    return History(opened.local.resolve(), names, refused, told)
