"""A results folder is opened whatever lies in it: what can be read is there, and a sentence says what cannot."""

import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path

import pytest

from harness.errors import RunError, UsageError
from harness.history.series import open_history
from harness.records.run import Round
from harness.report.rows import rows_of
from harness.store.evidence import clock_fault
from harness.store.run_directory import load_rounds
from harness.store.schema import TABLES, column_records
from harness.store.tables import NOTHING_YET, Tables
from tests.history.made import make_night, make_nights, night_id, store
from tests.store.made import a_comparison, contents, edit

Opened = Callable[[], Tables]


@pytest.fixture
def opened(results: Path) -> Iterator[Opened]:
    def opening() -> Tables:
        every.append(open_history(str(results)))
        return every[-1]

    every: list[Tables] = []
    yield opening
    for tables in every:
        tables.close()


def ids(tables: Tables) -> list[str]:
    return list(tables.runs()["run"])


def everything(results: Path) -> str:
    """All rows of all tables, as text."""
    with open_history(str(results)) as tables:
        return "".join(tables.query(f"FROM {view} ORDER BY ALL").to_csv() for view in TABLES if view != "tags")


def test_every_column_is_there_and_documented(results: Path, opened: Opened) -> None:
    results.mkdir()
    tables = opened()
    assert tables.notes == [NOTHING_YET]
    for name, table in TABLES.items():
        assert list(tables.query(f"FROM {name}").columns) == [column.name for column in table.columns]
    documentation = (Path(__file__).parents[2] / "docs" / "history.md").read_text().replace("\\", "")
    for record in column_records():
        assert f"| `{record['column']}` | {record['type']} | {record['meaning']} |" in documentation


# --- A finished run has tables, and nobody reads its records again ---


def fails(*_: object) -> None:
    raise OSError(30, "Read-only file system")


def test_rows_are_the_same_from_tables_and_from_records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for run in make_nights(3):
        store(tmp_path / "with", run, rows_of)
        store(tmp_path / "without", run)
    with monkeypatch.context() as patch:
        patch.setattr("harness.store.schema.staging", fails)
        from_memory = everything(tmp_path / "without")
    assert not list((tmp_path / "without").glob("*/tables"))
    a_comparison(tmp_path / "without")
    with open_history(str(tmp_path / "without")):
        pass
    for function in ("tables.load_run", "folders.read_document"):
        monkeypatch.setattr(f"harness.store.{function}", fails)
    assert everything(tmp_path / "with") == from_memory
    with open_history(str(tmp_path / "without")) as tables:
        assert (len(tables.query("FROM comparisons")), tables.notes) == (1, [])


def test_a_run_that_goes_on_is_read_each_time_and_gets_no_tables(results: Path, opened: Opened) -> None:
    path = store(results, replace(make_night(), finished=False))
    before = len(opened().query("FROM turns"))
    with (path / "rounds.jsonl").open("a") as file:
        file.write((path / "rounds.jsonl").read_text().splitlines()[0] + "\n")
    after = opened()
    assert len(after.query("FROM turns")) == before + 4
    assert list(after.runs()["finished"]) == [False]
    assert not (path / "tables").exists()


def test_turns_are_read_once_in_their_order_and_only_when_a_query_names_them(
    results: Path, opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = make_night(generations=2, rounds=3)
    store(results, run)
    tables = opened()
    read: list[str] = []

    def reading(path: Path) -> tuple[Round, ...]:
        read.append(path.name)
        return load_rounds(path)

    monkeypatch.setattr("harness.store.tables.load_rounds", reading)
    tables.query("SELECT * FROM points")
    assert read == []
    tables.query("SELECT * FROM TURNS")
    turns = tables.query('FROM turns ORDER BY "group", generation, round, place')
    assert read == [night_id(0)]
    assert len(turns) == 2 * 3 * 4
    assert list(turns["place"][:4]) == [0, 1, 2, 3]
    assert list(turns["case"][:4]) == [turn.case for turn in run.rounds[0].turns]


# --- One folder costs no other ---


def test_a_run_that_cannot_be_read_is_one_note_and_costs_no_other(results: Path, opened: Opened) -> None:
    paths = [store(results, replace(run, finished=False)) for run in make_nights(3)]
    edit(paths[1] / "run.json", schema_version=99)
    tables = opened()
    assert ids(tables) == [night_id(0), night_id(2)]
    why = f"{paths[1] / 'run.json'}: has schema 99, and this harness reads 1; upgrade it"
    assert tables.notes == [f"{night_id(1)} is left out: {why}"]


@pytest.mark.parametrize("with_tables", [True, False])
def test_a_copy_of_a_run_is_no_second_run(results: Path, opened: Opened, with_tables: bool) -> None:
    path = store(results, make_night(), rows_of if with_tables else None)
    shutil.copytree(path, results / "zz-copy")
    tables = opened()
    assert ids(tables) == [night_id(0)]
    assert tables.notes == [f"zz-copy is left out: it says that it is {night_id(0)}, which is there already"]


def test_a_number_that_fits_nowhere_costs_a_run_its_turns_and_no_other(results: Path, opened: Opened) -> None:
    paths = [store(results, run, rows_of) for run in make_nights(2)]
    text = (paths[0] / "rounds.jsonl").read_text()
    (paths[0] / "rounds.jsonl").write_text(text.replace('"cpu_ns":', '"cpu_ns":9999999999999999999999'))
    tables = opened()
    assert set(tables.query("SELECT run FROM turns")["run"]) == {night_id(1)}
    assert any(note.startswith(f"The turns of {night_id(0)} are left out") for note in tables.notes)
    assert ids(tables) == [night_id(0), night_id(1)]


@pytest.mark.parametrize(
    "damage",
    [
        lambda folder: (folder / "tables" / "points.parquet").write_bytes(b"PAR1, but no more"),
        lambda folder: (folder / "tables" / "points.parquet").unlink(),
        lambda folder: shutil.copy(folder / "tables" / "runs.parquet", folder / "tables" / "points.parquet"),
    ],
)
def test_tables_that_cannot_be_read_are_made_again(
    results: Path, opened: Opened, damage: Callable[[Path], object]
) -> None:
    folders = [store(results, run, rows_of) for run in make_nights(3)]
    before, tables = opened().query("FROM points ORDER BY ALL"), contents(folders[1] / "tables")
    damage(folders[1])
    after = opened()
    assert after.query("FROM points ORDER BY ALL").equals(before)
    assert after.notes == []
    assert contents(folders[1] / "tables") == tables


def test_a_wrong_clock_is_a_note_and_a_clock_ahead_shows_though_the_run_did_not_know(
    results: Path, opened: Opened
) -> None:
    later = datetime(2100, 1, 1, tzinfo=timezone.utc)
    for night in range(4):
        run = make_night(night, started=f"20{90 + night}-01-01T00:00:00Z")
        store(results, run, lambda run: rows_of(run, now=later))
    note, *_ = opened().notes
    first = f"{night_id(0)} (it started on 2090-01-01, which is in the future), {night_id(1)} ("
    assert note.startswith(f"With a wrong clock, and left out where change points are looked for: {first}")
    assert note.endswith(" and 1 more.")


# --- Names are names, and queries read ---


@pytest.mark.parametrize("name", ["g*", "g[HX]", "{gX,gY}", 'we\'ird [b]*? ünd "so"', "suite=evil/value=1"])
def test_a_folder_or_a_suite_with_a_pattern_for_a_name_is_read_and_its_neighbour_is_not(
    tmp_path: Path, name: str
) -> None:
    evil = f"'; DROP TABLE runs; --\n\"<script>|`x` 😀{name}"
    store(tmp_path / name, make_night(0, suite_name=evil), rows_of)
    store(tmp_path / name, make_night(1, suite_name=evil))
    shutil.copytree(tmp_path / name, tmp_path / "gX")
    with open_history(str(tmp_path / name)) as tables:
        assert ids(tables) == [night_id(0), night_id(1)]
        assert set(tables.query("SELECT DISTINCT run FROM turns")["run"]) == {night_id(0), night_id(1)}
        assert set(tables.query("SELECT DISTINCT suite FROM points")["suite"]) == {evil}
        assert tables.query("SELECT count(*) FROM points GROUP BY run, series HAVING count(*) > 1").empty


def test_what_is_no_folder_of_runs_is_an_error(results: Path) -> None:
    run = store(results, make_night())
    with pytest.raises(RunError, match="is one run; give the folder that it lies in"):
        open_history(str(run))


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tables]:
    results = tmp_path_factory.mktemp("queries")
    store(results, make_night(), rows_of)
    with open_history(str(results)) as tables:
        yield tables


@pytest.mark.parametrize(
    ("statement", "why"),
    [
        *(
            (statement, "a query only reads|Parser Error")
            for statement in (
                "COPY (SELECT 1) TO '{}/index.json'",
                "EXPLAIN ANALYZE COPY (PIVOT (SELECT 1 AS a, 2 AS b) ON a USING sum(b)) TO '{}/index.json'",
                "SELECT 1; COPY (SELECT 1) TO '{}/index.json'",
                "COMMIT; DELETE FROM points",
                "COMMIT",
                "ATTACH '{}/other.db'",
                "INSERT INTO runs SELECT * FROM runs",
                "SET enable_external_access = true",
                "",
                "SELECT * FROM read_text('/etc/passwd')",
            )
        ),
        ("SELECT * FROM nothing", "`harness history --columns` lists the tables"),
        ("SELECT case FROM points", 'the columns "case" and "group" need their quotes'),
    ],
)
def test_a_statement_that_would_write_or_makes_no_sense_is_refused_and_nothing_is_written(
    tables: Tables, statement: str, why: str
) -> None:
    before = contents(tables.results)
    with pytest.raises(UsageError, match=f"the query cannot be answered: .*({why})"):
        tables.query(statement.format(tables.results))
    assert contents(tables.results) == before
    assert len(tables.query("PIVOT points ON metric USING avg(value) GROUP BY suite"))


# --- Clocks that cannot be right are told in words ---

NOW = datetime(2026, 11, 21, 12, tzinfo=timezone.utc)


@pytest.mark.parametrize(
    ("started", "fault"),
    [
        ("2026-11-22T11:00:00+00:00", ""),  # a day is not enough to be sure
        ("2026-11-22T13:00:00+00:00", "it started on 2026-11-22, which is in the future"),
        ("1970-01-01T00:00:07+00:00", "it started in 1970, before anything could be measured"),
        ("yesterday", "its start, 'yesterday', is no time"),
        ("0001-01-01T00:00:00+23:00", "its start, '0001-01-01T00:00:00+23:00', is no time"),
    ],
)
def test_a_clock_that_cannot_be_right(started: str, fault: str) -> None:
    assert clock_fault(started, NOW) == fault
