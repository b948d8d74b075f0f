"""The tables that a results folder has, each column said once: as DuckDB makes it, with its meaning behind it.

`harness history --columns` and docs/history.md list what stands here. Times are ISO 8601 in UTC, as text. `series` is
one case's one metric on one class of machines: points of different series are never compared. DuckDB works in memory,
in bounded space, with names of files as text, and for users only to read.
"""

from __future__ import annotations

import contextlib
import re
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from harness.records.run import Run
from harness.store.files import TABLES_FOLDER, staging

if TYPE_CHECKING:
    import duckdb

# What a toolchain is in its run: `newest` is the last that was given, `reference` the first of several, which stays the
# same from night to night, so that what it shows is the machine's; `other` lies between.
Role = Literal["newest", "reference", "other"]
# Stands between what several hosts of a run say of themselves, in the table `runs`.
BETWEEN_HOSTS = " + "

SCHEMA = """
CREATE TABLE runs ( -- one run
    run VARCHAR,                    -- The run's id, the name that its folder was made with.
    suite VARCHAR,                  -- Its name.
    suite_file VARCHAR,             -- Path of its TOML file, as the user gave it.
    started VARCHAR,                -- When the run began.
    finished BOOLEAN,               -- Whether it came to its end; change points are looked for in finished runs
                                    -- only.
    machine_class VARCHAR,          -- What figures may be compared within: processor and instruction set, cores, caches
                                    -- and system, in words; of several hosts each of their classes, ` + ` between.
    machine VARCHAR,                -- 12 hex digits that tell machines apart; of several hosts each, as above, and so
                                    -- are `cpu`, `kernel` and the device's text in `devices`.
    cpu VARCHAR,                    -- The processor's name.
    cores BIGINT,                   -- How many of them the run could use.
    kernel VARCHAR,                 -- Release of the operating system's kernel.
    toolchain VARCHAR,              -- The newest release of IREE in it.
    revision VARCHAR,               -- IREE's commit that this release was built from.
    reference VARCHAR,              -- The release that the others were measured beside; None where there was one
                                    -- only.
    harness_version VARCHAR,        -- Of the harness that made the run.
    harness_commit VARCHAR,         -- Its commit, `+dirty` added where its code differed; "" where nobody
                                    -- knew it.
    cases BIGINT NOT NULL,          -- How many were planned.
    measured BIGINT NOT NULL,       -- Cases with timings of their own.
    failed BIGINT NOT NULL,         -- Cases that failed and were not expected to.
    missing BIGINT NOT NULL,        -- Cases that were neither measured nor failed nor skipped.
    noise DOUBLE,                   -- Median over its cases of the relative spread between generations; None where
                                    -- nothing was measured.
    load_1min DOUBLE,               -- Of the machine as the run began.
    selfcheck_flagged BIGINT,       -- Of the machine's last A/A check: rows that were called changed; None: never
                                    -- checked.
    selfcheck_rows BIGINT,          -- All of its rows.
    selfcheck_bound DOUBLE,         -- Upper end of the 95 % interval of its rate of false alarms, a share; where no
                                    -- row was called changed, of the one-sided interval.
    selfcheck_detects DOUBLE,       -- Smallest change that nine of ten rows find, a share.
    selfcheck_when VARCHAR,         -- When that was.
    command VARCHAR,                -- The command line, quoted for a shell.
    clock VARCHAR,                  -- Why `started` cannot be right, in plain words; "" where it can.
    devices VARCHAR,                -- What the suite's devices are, with their drivers' versions.
    purpose VARCHAR,                -- `compare`, `selfcheck`, `ablate` or `bench`, where that command made the run;
                                    -- "" where `harness run` did.
);

CREATE TABLE points ( -- one figure of one case in one run
    run VARCHAR,                    -- Its run's id.
    started VARCHAR,                -- When that began.
    series VARCHAR,                 -- 16 hex digits: a hash of suite, case id, metric, machine class and role; and
                                    -- of the release for roles whose release stays the same, see harness.report.rows.
    suite VARCHAR,                  -- Name of the suite.
    "case" VARCHAR,                 -- Its name without the toolchain.
    case_id VARCHAR,                -- Of what is compiled and how it runs, without names and without the toolchain.
    model VARCHAR,                  -- Its model's name.
    variant VARCHAR,                -- Its variant's, or the peer's label.
    device VARCHAR,                 -- Its device's.
    peer VARCHAR,                   -- Registered name of the engine that ran it instead of IREE; "" for IREE.
    role VARCHAR,                   -- Of its toolchain: `newest`, `reference` or `other`; of a peer `newest`.
    toolchain VARCHAR,              -- Release of IREE; of a peer, the engine's name and version.
    revision VARCHAR,               -- IREE's commit that this release was built from; "" of a peer.
    machine_class VARCHAR,          -- As in `runs`, of the host that measured the case; of a device that is no CPU,
                                    -- its name too.
    machine VARCHAR,                -- 12 hex digits that tell machines apart.
    metric VARCHAR,                 -- `latency`, `latency-vs-baseline`, `latency-vs-reference`, or one of
                                    -- harness.metrics.
    unit VARCHAR,                   -- `ns`, `bytes`, `count`, `instructions` or `ratio`.
    value DOUBLE,                   -- The figure, in `unit`; for latency the median over generations.
    low DOUBLE,                     -- The fastest generation's, or the lower end of a ratio's 95 % interval; None
                                    -- for counted figures.
    high DOUBLE,                    -- The slowest generation's, or the upper end.
    module_sha256 VARCHAR,          -- Of what ran; "" where nothing was compiled, as of a peer.
);

CREATE TABLE cases ( -- what became of one case in one run
    run VARCHAR,                    -- Its run's id.
    started VARCHAR,                -- When that began.
    suite VARCHAR,                  -- Name of the suite.
    "case" VARCHAR,                 -- Its name without the toolchain.
    case_id VARCHAR,                -- As in `points`.
    model VARCHAR,                  -- Its model's name.
    variant VARCHAR,                -- Its variant's, or the peer's label.
    device VARCHAR,                 -- Its device's.
    peer VARCHAR,                   -- Registered name of the engine that ran it instead of IREE; "" for IREE.
    role VARCHAR,                   -- As in `points`.
    toolchain VARCHAR,              -- As in `points`.
    status VARCHAR,                 -- As in reports: `measured`, `same`, `failed`, `expected failure`, `skipped`,
                                    -- `missing`, ...
    stage VARCHAR,                  -- Where it failed; "" where it did not.
    message VARCHAR,                -- Why, or why it was skipped; "" where nothing was wrong.
    flags VARCHAR,                  -- All flags of iree-compile and of the runtime, quoted for a shell.
    repro VARCHAR,                  -- The command lines that repeat it, one a line.
);

CREATE TABLE turns ( -- one timed batch of calls
    run VARCHAR,                    -- Its run's id.
    "case" VARCHAR,                 -- The case's name in that run, with the toolchain where there were several.
    "group" VARCHAR,                -- Model and device: what was measured in turns.
    generation BIGINT NOT NULL,     -- Number of the fresh set of processes, the independent sample.
    round BIGINT NOT NULL,          -- Number of the round in that generation.
    place BIGINT NOT NULL,          -- Of the turn in its round, from 0.
    started_unix_ns BIGINT NOT NULL, -- When the round began, by the machine's clock.
    calls BIGINT NOT NULL,          -- How many were timed together.
    wall_ns BIGINT NOT NULL,        -- What they took, all together.
    cpu_ns BIGINT NOT NULL,         -- Time on the CPU of the process that called, likewise.
    thread_ns BIGINT,               -- Of this, the thread's that called; this and what follows is None in runs that
                                    -- are older, and where the system does not tell.
    delayed_ns BIGINT,              -- How long it could have run and had no core; of all threads of the process where
                                    -- the device computes on others.
    voluntary BIGINT,               -- How often it gave its core away, to sleep or to wait.
    involuntary BIGINT,             -- How often its core was taken from it.
    minor_faults BIGINT,            -- Pages that were in memory already.
    major_faults BIGINT,            -- Pages that had to be read.
    core BIGINT,                    -- Where it ran at the end.
    throttled BIGINT,               -- How often a container's quota of CPU time stopped it.
);

CREATE TABLE comparisons ( -- one row of one comparison
    comparison VARCHAR,             -- The comparison's id, the name of its folder.
    created VARCHAR,                -- When it was made.
    base_run VARCHAR,               -- Id of the run that the base's modules are from.
    head_run VARCHAR,               -- Likewise the head's.
    machine VARCHAR,                -- In words, as the comparison has it.
    "case" VARCHAR,                 -- Its name.
    model VARCHAR,                  -- Its model's name.
    variant VARCHAR,                -- Its variant's.
    device VARCHAR,                 -- Its device's.
    metric VARCHAR,                 -- One of harness.metrics.
    verdict VARCHAR,                -- `regressed`, `improved`, `unchanged`, `inconclusive`, `identical`,
                                    -- `outputs differ`, `failed`, `missing` or `new`.
    ratio DOUBLE,                   -- Head divided by base; None where one of them has no value.
    ci_low DOUBLE,                  -- Lower end of its 95 % interval; None for counted figures.
    ci_high DOUBLE,                 -- Upper end, likewise.
    p DOUBLE,                       -- Of no difference, corrected for looks and rows; None for counted figures.
    floor DOUBLE,                   -- Relative change below which nothing is called changed.
    base_value DOUBLE,              -- The base's figure, in `unit`.
    head_value DOUBLE,              -- The head's.
    unit VARCHAR,                   -- `ns`, `bytes`, `count` or `instructions`.
    control BOOLEAN,                -- Whether it is a module against itself, measured to test the machine.
    gate VARCHAR,                   -- `passed` or `violated`; "" where no gate of the suite decides.
    reason VARCHAR,                 -- Why the verdict is what it is, in plain words.
    command VARCHAR,                -- The command line that made it, quoted for a shell; "" where none was kept.
    within BOOLEAN,                 -- Whether variants of one run were compared with its baseline.
    base_commit VARCHAR,            -- The commit that the base's suite is of; "" where the base is none.
    head_commit VARCHAR,            -- Likewise the head's.
    explained VARCHAR,              -- Of a regressed latency, what it is made of, as JSON, where `harness compare
                                    -- --explain` was asked for that; "" elsewhere.
);

CREATE TABLE tags ( -- a tag of a run
    run VARCHAR,                    -- The run's id.
    tag VARCHAR,                    -- `experiment`, or another word of people's.
    who VARCHAR,                    -- Who gave it; of what a run has from its beginning, the command that made it.
    since VARCHAR,                  -- When.
);
"""

# Of each series the names that its last run gave, and how far it goes; what is said of its other columns stands above.
SERIES_VIEW = """
CREATE VIEW series AS
SELECT series, suite, latest."case" AS "case", case_id, latest.model AS model, latest.variant AS variant,
       latest.device AS device, peer, role, machine_class, metric, unit, points, first_run,
       latest.run AS last_run, latest.value AS last_value
FROM (
    SELECT series, any_value(suite) AS suite, any_value(case_id) AS case_id, any_value(peer) AS peer,
           any_value("role") AS "role", any_value(machine_class) AS machine_class, any_value(metric) AS metric,
           any_value(unit) AS unit, count(*) AS points, arg_min(run, (started, run)) AS first_run,
           max({'started': started, 'run': run, 'case': "case", 'model': model, 'variant': variant,
                'device': device, 'value': "value"}) AS latest
    FROM points
    GROUP BY series
)
"""
_SERIES_FROM_POINTS = (
    *("series", "suite", "case", "case_id", "model", "variant", "device", "peer", "role", "machine_class", "metric"),
    "unit",
)
_SERIES_OWN = """
    points BIGINT NOT NULL,   -- How many it has.
    first_run VARCHAR,        -- The earliest run with a point of it.
    last_run VARCHAR,         -- The latest.
    last_value DOUBLE,        -- The latest run's.
"""

_TYPES = {
    "VARCHAR": "text",
    "BIGINT NOT NULL": "integer",
    "BIGINT": "integer or null",
    "DOUBLE": "number",
    "BOOLEAN": "true or false",
}
_TABLE = re.compile(r"CREATE TABLE (\w+) \( -- (.*)\n((?:    .*\n)+)\)")
_COLUMN = re.compile(r' {4}"?(\w+)"? ([A-Z ]+), +-- (.*(?:\n {20,}-- .*)*)')


@dataclass(frozen=True, kw_only=True)
class Column:
    """One column of a table."""

    name: str
    sql: str  # DuckDB's type
    type: str  # In words, as `harness history --columns` prints it
    meaning: str  # One sentence

    @property
    def quoted(self) -> str:
        """The name as SQL has it, where some are words of SQL."""
        return f'"{self.name}"'


@dataclass(frozen=True, kw_only=True)
class Table:
    """One table or view."""

    name: str
    summary: str  # What a row of it is, as in `one figure of one case in one run`
    columns: tuple[Column, ...]

    @property
    def select(self) -> str:
        """All columns as a select list, each as its type, whatever a file says that it is."""
        return ", ".join(f"CAST({column.quoted} AS {column.sql}) AS {column.quoted}" for column in self.columns)


def _columns(text: str) -> tuple[Column, ...]:
    return tuple(
        Column(name=name, sql=sql.split()[0], type=_TYPES[sql], meaning=re.sub(r"\n *-- ", " ", meaning))
        for name, sql, meaning in _COLUMN.findall(text)
    )


def _tables() -> dict[str, Table]:
    found = {
        name: Table(name=name, summary=summary, columns=_columns(text))
        for name, summary, text in _TABLE.findall(SCHEMA)
    }
    of_points = {column.name: column for column in found["points"].columns}
    shared = tuple(of_points[name] for name in _SERIES_FROM_POINTS)
    found["series"] = Table(name="series", summary="one series", columns=(*shared, *_columns(_SERIES_OWN)))
    return found


# By name, in the order in which they are listed; the last is the view `series`.
TABLES: Mapping[str, Table] = _tables()
# What a finished run's folder has in Parquet, and a comparison's; the turns are in rounds.jsonl.
RUN_TABLES = ("runs", "points", "cases")
COMPARISON_TABLES = ("comparisons",)


def column_records() -> list[dict[str, str]]:
    """Every column of every table: what `harness history --columns` prints as JSON and CSV."""
    return [
        {"table": table.name, "column": column.name, "type": column.type, "meaning": column.meaning}
        for table in TABLES.values()
        for column in table.columns
    ]


def create_tables(connection: duckdb.DuckDBPyConnection) -> None:
    """Make all tables, without rows, and the view `series`."""
    connection.execute(SCHEMA)
    connection.execute(SERIES_VIEW)


def insert_rows(connection: duckdb.DuckDBPyConnection, table: str, rows: Iterable[Mapping[str, Any]]) -> None:
    """Add rows to a table."""
    listed = list(rows)
    if listed:
        columns = TABLES[table].columns
        names = ", ".join(column.quoted for column in columns)
        values = ", ".join(f"unnest(?::{column.sql}[])" for column in columns)
        connection.execute(
            f"INSERT INTO {table} ({names}) SELECT {values}",
            [[row[column.name] for row in listed] for column in columns],
        )


# --- DuckDB ---

Rows = Mapping[str, Sequence[Mapping[str, Any]]]
# A run's rows of the tables of RUN_TABLES; harness.report.rows has the one.
RowsOf = Callable[[Run], Rows]

# What sorting and grouping may take before it goes to disk; a query's result and Python come on top.
_MEMORY = "1GB"
_GLOB = re.compile(r"[*?\[]")


def connect(folder: Path | None = None) -> duckdb.DuckDBPyConnection:
    """A database in memory; in a folder, where it may be larger than memory."""
    import duckdb

    connection = duckdb.connect(str(folder / "history.duckdb") if folder is not None else ":memory:")
    connection.execute("SET enable_progress_bar = false")
    connection.execute(f"SET memory_limit = {text(_MEMORY)}")
    connection.execute("SET preserve_insertion_order = false")
    connection.execute(f"SET temp_directory = {text(str(folder) if folder is not None else '')}")
    return connection


def lock(connection: duckdb.DuckDBPyConnection) -> None:
    """From here on, statements read and write no files, and cannot change that."""
    for setting in (
        "enable_external_access",
        "python_enable_replacements",
        "autoload_known_extensions",
        "autoinstall_known_extensions",
    ):
        connection.execute(f"SET {setting} = false")
    connection.execute("SET lock_configuration = true")


def text(value: str) -> str:
    """A text as SQL writes it, whatever is in it; for the places of a statement that take no parameter."""
    return "'" + value.replace("'", "''") + "'"


def parquet(files: Iterable[Path], options: str = "") -> str:
    """The rows of Parquet files, as a table of a statement.

    DuckDB takes names for patterns, and `key=value` in a path for a column of that name that every row has; here they
    are names and nothing else.
    """
    names = ", ".join(text(_GLOB.sub(r"[\g<0>]", str(file))) for file in files)
    return f"read_parquet([{names}], hive_partitioning = false{options})"


def copy_rows(connection: duckdb.DuckDBPyConnection, table: str, source: str, file: Path) -> None:
    """Write rows to a Parquet file, sorted."""
    connection.execute(
        f"COPY (SELECT {TABLES[table].select} FROM {source} ORDER BY ALL) "  # noqa: S608 (our names)
        f"TO {text(str(file))} (FORMAT parquet, COMPRESSION zstd)"
    )


def write_tables(folder: Path, rows: Rows) -> None:
    """Put a run's or a comparison's rows beside its records, in place of those that are there: all tables, or none.

    There are none where the folder cannot be written, or a value fits no column: they are made of the records later.
    """
    import duckdb

    with contextlib.suppress(OSError, duckdb.Error, UnicodeError), staging(folder) as copy, connect() as connection:
        create_tables(connection)
        for table, of_table in rows.items():
            insert_rows(connection, table, of_table)
            copy_rows(connection, table, table, copy / f"{table}.parquet")
        shutil.rmtree(folder / TABLES_FOLDER, ignore_errors=True)
        copy.rename(folder / TABLES_FOLDER)
