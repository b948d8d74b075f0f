"""A made-up history -> a results folder whose runs have their tables alone, by DuckDB, since there are millions.

Noise is a hash of series and run, so that the same size gives the same figures.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.history import made
from benchmarks.history.made import KINDS, Night, Size, digest, made_cases, nights
from harness.store.files import FINISHED_FILE, TABLES_FOLDER, finished_document
from harness.store.run_directory import HEADER_FILE
from harness.store.schema import connect, copy_rows

if TYPE_CHECKING:
    import duckdb

_COMMAND = f"harness run suites/{made.SUITE}.toml --toolchain {made.REFERENCE} --toolchain newest"
_MACHINE_CLASS = f"{made.CPU}, {made.CORES} cores, {made.SYSTEM}"


def write_history(results: Path, size: Size) -> None:
    """Write a folder for each run, with the tables that a finished run has."""
    every = nights(size.runs)
    with tempfile.TemporaryDirectory(prefix="harness-") as spill, connect(Path(spill)) as connection:
        _fill(connection, "cases_made", _cases(size))
        _fill(connection, "series_made", _series(size))
        _fill(connection, "runs_made", [_run(night) for night in every])
        connection.execute(_FUNCTIONS)
        for night in every:
            _write_run(connection, results, night)


def _fill(connection: duckdb.DuckDBPyConnection, table: str, rows: Sequence[dict[str, Any]]) -> None:
    import pandas as pd

    connection.register("rows_made", pd.DataFrame(rows))
    connection.execute(f"CREATE TABLE {table} AS SELECT * FROM rows_made")  # noqa: S608 (names of our own)
    connection.unregister("rows_made")


def _cases(size: Size) -> list[dict[str, Any]]:
    return [
        {
            "number": case.number,
            "case_name": case.name,
            "case_id": case.id,
            "model": case.model,
            "variant": case.variant,
            "latency_ns": case.latency_ns,
            "dispatches": case.dispatches,
            "fate": case.fate,
            "at": case.at,
        }
        for case in made_cases(size.cases, size.runs)
    ]


def _series(size: Size) -> list[dict[str, Any]]:
    found = []
    for number in range(size.series):
        kind = KINDS[number % len(KINDS)]
        text = f"{made.SUITE} {number // len(KINDS)} {kind.metric} {kind.role}"
        found.append({"case_number": number // len(KINDS), "series": digest(text, 16), **asdict(kind)})
    return found


def _run(night: Night) -> dict[str, Any]:
    return {
        "number": night.number,
        "run": night.run,
        "started": night.started.isoformat(timespec="seconds"),
        "started_unix_ns": int(night.started.timestamp()) * 10**9,
        "toolchain": night.toolchain,
        "revision": night.revision,
    }


def _write_run(connection: duckdb.DuckDBPyConnection, results: Path, night: Night) -> None:
    """The folder of a run, with tables by the store's own writer of files."""
    folder = results / night.run
    (folder / TABLES_FOLDER).mkdir(parents=True)
    for table, select in {"runs": _RUNS, "points": _POINTS, "cases": _CASES}.items():
        file = folder / TABLES_FOLDER / f"{table}.parquet"
        copy_rows(connection, table, f"({select} WHERE n.number = {night.number})", file)
    (folder / HEADER_FILE).write_text("{}")
    (folder / FINISHED_FILE).write_bytes(finished_document({}))


_FUNCTIONS = f"""
CREATE MACRO uniform(a, b, salt) AS (hash(a, b, salt) >> 11)::DOUBLE / 9007199254740992.0;
CREATE MACRO gauss(a, b) AS sqrt(-2 * ln(1 - uniform(a, b, 1))) * cos(2 * pi() * uniform(a, b, 2));
CREATE MACRO level(fate, first, run_number, role) AS CASE
    WHEN run_number < first OR (role = 'reference' AND fate <> 'machine') THEN 1.0
    WHEN fate = 'drift' THEN 1 + {made.DRIFT - 1:g} * least(1.0, (run_number - first + 1) / {made.DRIFT_RUNS}.0)
    WHEN fate IN ('step', 'machine') THEN {made.STEP:g} ELSE 1.0 END;
CREATE MACRO upset(fate, series, run_number) AS CASE
    WHEN fate = 'spikes' AND uniform(series, run_number, 3) < 0.02 THEN 1.5
    WHEN fate = 'two states' AND uniform(series, run_number, 3) < 0.3 THEN 1.04 ELSE 1.0 END;
"""

_RUNS = f"""
SELECT run, '{made.SUITE}' AS suite, 'suites/{made.SUITE}.toml' AS suite_file, started, true AS finished,
    '{_MACHINE_CLASS}' AS machine_class, '{made.MACHINE}' AS machine, '{made.CPU}' AS cpu, {made.CORES} AS cores,
    '6.1.0' AS kernel, toolchain, revision, '{made.REFERENCE}' AS reference, '0.1.0' AS harness_version,
    substr(sha256('harness' || (n.number // 30)), 1, 40) AS harness_commit,
    2 * (SELECT count(*) FROM cases_made) AS cases, 2 * (SELECT count(*) FROM cases_made) AS measured, 0 AS failed,
    0 AS missing, {made.NOISE} * (0.8 + 0.4 * uniform(number, 0, 4)) AS noise, uniform(number, 0, 5) AS load_1min,
    (uniform(number, 0, 6) < 0.05)::INTEGER AS selfcheck_flagged, 40 AS selfcheck_rows, 0.088 AS selfcheck_bound,
    0.02 AS selfcheck_detects, started AS selfcheck_when, '{_COMMAND}' AS command, '' AS clock,
    '{made.DEVICE}: {made.DEVICE_FACTS}' AS devices, '' AS purpose
FROM runs_made n
"""  # noqa: S608 (constants of our own)

_POINTS = f"""
SELECT n.run, n.started, s.series, '{made.SUITE}' AS suite, c.case_name AS "case", c.case_id, c.model, c.variant,
    '{made.DEVICE}' AS device, '' AS peer, s.role,
    if(s.role = 'reference', '{made.REFERENCE}', n.toolchain) AS toolchain,
    if(s.role = 'reference', '{digest(made.REFERENCE, 40)}', n.revision) AS revision,
    '{_MACHINE_CLASS}' AS machine_class, '{made.MACHINE}' AS machine, s.metric, s.unit,
    CASE s.metric
        WHEN 'latency' THEN c.latency_ns * level(c.fate, c.at, n.number, s.role) * upset(c.fate, s.series, n.number)
            * exp({made.NOISE} * gauss(s.series, n.number))
        WHEN 'latency-vs-baseline' THEN (0.7 + 0.1 * (c.number % 5)) * level(c.fate, c.at, n.number, s.role)
            * exp({made.NOISE / 2} * gauss(s.series, n.number))
        WHEN 'latency-vs-reference' THEN level(c.fate, c.at, n.number, 'newest')
            / level(c.fate, c.at, n.number, 'reference') * exp({made.NOISE / 2} * gauss(s.series, n.number))
        WHEN 'dispatches' THEN c.dispatches + (c.fate = 'step' AND n.number >= c.at)::INTEGER
        WHEN 'module-size' THEN 800000 + 9000 * c.dispatches + if(c.fate = 'spikes', 64 * (n.number // 90), 0)
        ELSE 1048576 * (1 + c.dispatches // 3) END::DOUBLE AS value,
    if(s.unit IN ('ns', 'ratio'), value * 0.995, NULL) AS low,
    if(s.unit IN ('ns', 'ratio'), value * 1.005, NULL) AS high,
    sha256(c.case_id || s.role || if(s.role = 'reference', '', n.toolchain)) AS module_sha256
FROM series_made s JOIN cases_made c ON c.number = s.case_number CROSS JOIN runs_made n
"""  # noqa: S608 (constants of our own)

_CASES = f"""
SELECT n.run, n.started, '{made.SUITE}' AS suite, c.case_name AS "case", c.case_id, c.model, c.variant,
    '{made.DEVICE}' AS device, '' AS peer, role, if(role = 'reference', '{made.REFERENCE}', n.toolchain) AS toolchain,
    'measured' AS status, '' AS stage, '' AS message,
    '--iree-hal-target-device=local --iree-hal-local-target-device-backends=llvm-cpu' AS flags,
    '{_COMMAND} --filter ' || c.case_name AS repro
FROM cases_made c CROSS JOIN runs_made n CROSS JOIN (VALUES ('newest'), ('reference')) AS roles(role)
"""  # noqa: S608 (constants of our own)
