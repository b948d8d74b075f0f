"""A results folder is not believed: nothing in it changes another run's figures, and no query changes it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from harness.errors import UsageError
from harness.history.open import History, open_history
from harness.history.parquet import RowsError, compacted_comparisons, compacted_runs, merge_parts, write_parts
from harness.history.tables import comparison_rows, tables_of
from harness.history.values import ComparisonRow
from harness.progress import Silent
from harness.store.compact import compact
from harness.store.place import open_place
from tests.archive.made import a_comparison, contents
from tests.history.made import make_night, make_nights, night_id, store
from tests.report.comparison.conftest import make_comparison, make_row

HALF = "half \ud800"


def figures(results: Path) -> str:
    """All latencies and all turns, as text."""
    with open_history(str(results)) as history:
        latencies = history.query("SELECT value FROM points WHERE metric = 'latency' ORDER BY ALL")
        return latencies.to_csv() + history.query("SELECT * FROM turns ORDER BY ALL").to_csv()


def notes(results: Path) -> tuple[str, ...]:
    with open_history(str(results)) as history:
        return history.notes


# --- Names of folders are names ---


def test_a_path_that_looks_like_columns_sets_none(tmp_path: Path) -> None:
    results = tmp_path / "suite=evil" / "case=boo" / "value=1"
    for run in make_nights(2):
        write_parts(results, [tables_of(run)])
    with open_history(str(results)) as history:
        before = history.query("FROM points ORDER BY ALL")
    assert set(before["suite"]) == {"nightly"}
    assert "boo" not in set(before["case"])
    merge_parts(results)
    with open_history(str(results)) as history:
        assert history.query("FROM points ORDER BY ALL").equals(before)


@pytest.mark.parametrize("name", ["g*", "g?", "g[HX]", "g[", "{gX,gY}", "it's"])
def test_a_folder_with_a_pattern_for_a_name_is_read_and_its_neighbour_is_not(tmp_path: Path, name: str) -> None:
    write_parts(tmp_path / name, [tables_of(make_night(0))])
    shutil.copytree(tmp_path / name / "history", tmp_path / "gX" / "history")
    store(tmp_path / name, make_night(1))
    with open_history(str(tmp_path / name)) as history:
        assert list(history.runs()["run"]) == [night_id(0), night_id(1)]
        assert set(history.query("SELECT DISTINCT run FROM turns")["run"]) == {night_id(0), night_id(1)}
        assert not history.query("SELECT count(*) AS n FROM points GROUP BY run, series HAVING n > 1").size


# --- Queries read ---


@pytest.fixture
def history(results: Path) -> Iterator[History]:
    write_parts(results, [tables_of(make_night())])
    with open_history(str(results)) as history:
        yield history


@pytest.mark.parametrize(
    "statement",
    [
        "COPY (SELECT 1) TO '{}/index.json'",
        "COPY (PIVOT (SELECT 1 AS a, 2 AS b) ON a USING sum(b)) TO '{}/index.json'",
        "EXPLAIN ANALYZE COPY (SELECT 1) TO '{}/index.json'",
        "explain (analyze) COPY (SELECT 1) TO '{}/index.json'",
        "EXPLAIN /* ( */ ANALYZE COPY (SELECT 1) TO '{}/index.json'",
        "EXPLAIN ANALYZE EXPLAIN ANALYZE COPY (SELECT 1) TO '{}/index.json'",
        "EXPLAIN ANALYZE COPY (PIVOT (SELECT 1 AS a, 2 AS b) ON a USING sum(b)) TO '{}/index.json'",
        "SELECT 1; COPY (SELECT 1) TO '{}/index.json'",
        "EXPORT DATABASE '{}'",
        "ATTACH '{}/other.db'",
        "INSERT INTO unfinished_runs SELECT * FROM runs",
        "DROP VIEW points",
        "PREPARE one AS COPY (SELECT 1) TO '{}/index.json'",
        "SET memory_limit = '100GB'",
        "",
        "-- nothing",
    ],
)
def test_a_statement_that_would_write_is_refused_and_nothing_is_written(
    history: History, results: Path, statement: str
) -> None:
    before = contents(results)
    with pytest.raises(UsageError, match="the query cannot be answered") as caught:
        history.query(statement.format(results / "history"))
    assert "a query only reads: give one SELECT" in str(caught.value) or "Parser Error" in str(caught.value)
    assert contents(results) == before


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT count(*) FROM points;",
        "FROM runs",
        "WITH one AS (FROM points) SELECT * FROM one",
        "-- a word before\nSELECT 1",
        "DESCRIBE points",
        "SUMMARIZE points",
        "SHOW TABLES",
        "VALUES (1)",
        "EXPLAIN SELECT * FROM points",
        "EXPLAIN ANALYZE SELECT * FROM points",
        "PIVOT points ON metric USING avg(value) GROUP BY suite",
        "FROM (PIVOT points ON metric USING avg(value))",
        "SELECT * FROM points WHERE suite = ?",
    ],
)
def test_whatever_reads_is_answered(history: History, statement: str) -> None:
    assert len(history.query(statement, ["nightly"] if "?" in statement else []))


# --- What is kept of a run is what it was finished with ---


def tampered(results: Path, *, same_size: bool) -> Path:
    """The folder of a run whose turns took longer than those that it was finished with."""
    folder = store(results, make_night())
    file = folder / "rounds.jsonl"
    slower = file.read_text().replace('"wall_ns":1', '"wall_ns":9' if same_size else '"wall_ns":91')
    assert slower != file.read_text()
    file.write_text(slower)
    return folder


@pytest.mark.parametrize("same_size", [True, False])
@pytest.mark.parametrize("first", ["bad", "good"])
def test_a_copy_with_other_turns_never_shows_in_the_run_itself(tmp_path: Path, first: str, same_size: bool) -> None:
    run = store(tmp_path / "good", make_night())
    alone = figures(tmp_path / "good")
    shutil.rmtree(tmp_path / "cache")
    tampered(tmp_path / "bad", same_size=same_size)
    for name in (first, "bad"):
        figures(tmp_path / name)

    assert figures(tmp_path / "good") == alone
    assert notes(tmp_path / "good") == ()
    assert run.is_dir()


def test_a_run_that_is_not_as_it_was_finished_is_told(results: Path) -> None:
    folder = tampered(results, same_size=True)
    told = (
        f"{folder.name}: its rounds.jsonl is not as it was when it was finished, so its figures may be anything; "
        "`harness results verify` says more"
    )
    assert notes(results) == (told,)
    assert notes(results) == (told,)  # nothing was kept


def test_without_hashes_a_run_is_kept_by_its_files_sizes_and_times(results: Path) -> None:
    folder = store(results, make_night())
    (folder / "finished.json").write_text("{}")
    before = figures(results)
    file = folder / "rounds.jsonl"
    file.write_text(file.read_text().replace('"wall_ns":1', '"wall_ns":9'))
    assert figures(results) != before


def test_a_copy_of_a_finished_run_is_not_put_into_tables_again(
    tmp_path: Path, results: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store(results, make_night())
    before = figures(results)
    shutil.copytree(results, tmp_path / "copy", copy_function=shutil.copyfile)  # with times of its own
    monkeypatch.setattr("harness.history.folders.load_run", None)
    assert figures(tmp_path / "copy") == before


# --- One folder's text costs no other's ---


def a_comparison_of_half_a_pair(results: Path) -> Path:
    folder = a_comparison(results, day=1)
    document = json.loads((folder / "comparison.json").read_text())
    document["rows"][0]["reason"] = HALF
    (folder / "comparison.json").write_text(json.dumps(document))
    (folder / "finished.json").unlink()
    return folder


def test_a_comparison_with_half_a_surrogate_pair_is_left_out_and_told(results: Path) -> None:
    good, bad = a_comparison(results), a_comparison_of_half_a_pair(results)
    with open_history(str(results)) as history:
        assert set(history.query("SELECT comparison FROM comparisons")["comparison"]) == {good.name}
        assert history.notes[0].startswith(f"{bad.name} is left out: ")
        assert "is damaged (half a surrogate pair)" in history.notes[0]
    compacted = compact(open_place(str(results)), Silent())
    assert compacted.comparisons == (good.name,)
    assert "is damaged (half a surrogate pair)" in compacted.left_out[bad.name]


def halves(rows: list[ComparisonRow]) -> list[ComparisonRow]:
    return [replace(row, reason=HALF) if row.created > "2026-01-02" else row for row in rows]


def test_rows_that_no_table_takes_cost_only_their_own_folder(results: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    good, bad = a_comparison(results), a_comparison(results, day=1)
    run = store(results, make_night())
    for module in ("harness.history.folders", "harness.history.tables"):
        monkeypatch.setattr(f"{module}.comparison_rows", lambda comparison: halves(comparison_rows(comparison)))

    with open_history(str(results)) as history:
        assert set(history.query("SELECT comparison FROM comparisons")["comparison"]) == {good.name}
        assert list(history.runs()["run"]) == [run.name]
        assert [note for note in history.notes if note.startswith(f"{bad.name} is left out: it cannot be put into")]
    compacted = compact(open_place(str(results)), Silent())
    assert (compacted.runs, compacted.comparisons) == ((run.name,), (good.name,))
    assert "cannot be put into tables" in compacted.left_out[bad.name]
    assert len(list((results / "history" / "comparisons").glob("*.parquet"))) == 1  # nothing half written stays


def test_rows_that_no_table_takes_are_told_apart_from_a_full_disk(results: Path) -> None:
    rows = halves(comparison_rows(make_comparison([make_row("net/stock@cpu")], id="x", created="2026-02-01")))
    with pytest.raises(RowsError, match="cannot be written or read"):
        write_parts(results, [], rows)
    assert compacted_runs(results) | compacted_comparisons(results) == frozenset()
