"""A results folder is opened whatever lies in it: what can be read is there, and what cannot is told."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.errors import RunError, UsageError
from harness.history import folders
from harness.history.frames import TABLES, kinds_of
from harness.history.index import part_file, read_index
from harness.history.open import History, open_history
from harness.history.series import SeriesRow
from harness.history.tables import tables_of
from harness.records.run import Run
from harness.store.run_directory import load_run
from tests.history.made import compacted, make_night, make_nights, night_id, store


@pytest.fixture
def opened(results: Path) -> Iterator[Any]:
    def opening() -> History:
        made.append(open_history(str(results)))
        return made[-1]

    made: list[History] = []
    yield opening
    for one in made:
        one.close()


def edit(run: Path, **given: object) -> None:
    """Change the header of a run on disk."""
    header = json.loads((run / "run.json").read_text())
    (run / "run.json").write_text(json.dumps({**header, **given}))


def ids(history: History) -> list[str]:
    return list(history.runs()["run"])


def test_compacted_runs_and_folders_are_one_history(results: Path, opened: Any) -> None:
    runs = make_nights(6)
    compacted(results, runs[:4])
    for run in runs[3:]:  # the fourth is in Parquet and still has its folder
        store(results, run)

    history = opened()

    assert ids(history) == [night_id(night) for night in range(6)]
    assert history.notes == ()
    assert history.query("SELECT count(*) AS n FROM turns")["n"].item() == 6 * 3 * 4 * 4
    for series in history.series().itertuples():
        assert len(history.points(series.series)) == series.points == 6


def test_points_are_in_order_of_time_however_runs_were_added(results: Path, opened: Any) -> None:
    runs = make_nights(8)
    runs = runs[5:] + runs[2:5][::-1] + runs[:2]
    compacted(results, runs[:3])
    compacted(results, runs[3:5])
    for run in runs[5:]:
        store(results, run)
    history = opened()

    for series in history.series()["series"]:
        points = history.points(series)
        assert list(points["run"]) == [night_id(night) for night in range(8)]
        assert points["started"].is_monotonic_increasing


def test_an_empty_history_has_its_tables_and_says_that_there_is_nothing_yet(results: Path, opened: Any) -> None:
    results.mkdir()

    history = opened()

    for table, row in TABLES.items():
        assert list(history.query(f"FROM {table}").columns) == list(kinds_of(row))
    assert list(history.series().columns) == list(kinds_of(SeriesRow))
    assert history.notes == (
        "There is no run here yet; `harness run SUITE` adds one, and from the second on there is a history.",
    )


def test_a_finished_run_is_put_into_tables_once(results: Path, opened: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for run in make_nights(3):
        store(results, run)
    first = opened().query("SELECT * FROM points ORDER BY ALL")

    def nobody(*_: object) -> None:
        raise AssertionError("a run was read again")

    monkeypatch.setattr(folders, "load_run", nobody)

    assert opened().query("SELECT * FROM points ORDER BY ALL").equals(first)


def test_a_run_that_goes_on_is_read_each_time(results: Path, opened: Any) -> None:
    path = store(results, replace(make_night(), finished=False))
    before = opened().query("SELECT count(*) AS n FROM turns")["n"].item()

    with (path / "rounds.jsonl").open("a") as file:
        file.write((path / "rounds.jsonl").read_text().splitlines()[0] + "\n")
    after = opened()

    assert after.query("SELECT count(*) AS n FROM turns")["n"].item() == before + 4
    assert list(after.runs()["finished"]) == [False]


def test_a_damaged_cache_costs_time_and_nothing_else(results: Path, opened: Any, tmp_path: Path) -> None:
    for run in make_nights(2):
        store(results, run)
    before = opened().query("SELECT * FROM points ORDER BY ALL")

    for file in (tmp_path / "cache").rglob("*.parquet"):
        file.write_bytes(b"PAR1, but no more")
    for file in (tmp_path / "cache").rglob("sets/*"):
        file.unlink()

    history = opened()
    assert history.query("SELECT * FROM points ORDER BY ALL").equals(before)
    assert history.notes == ()


def test_a_cache_that_cannot_be_written_is_done_without(results: Path, opened: Any, tmp_path: Path) -> None:
    store(results, make_night())
    (tmp_path / "cache").write_text("no folder")

    history = opened()

    assert ids(history) == [night_id(0)]
    assert history.query("SELECT count(*) AS n FROM turns")["n"].item() == 3 * 4 * 4


def _truncated(run: Path) -> None:
    (run / "run.json").write_text((run / "run.json").read_text()[:100])


def _of_the_future(run: Path) -> None:
    edit(run, schema_version=99)


def _damaged_line(run: Path) -> None:
    (run / "rounds.jsonl").write_text('{"group": 3}\n')


def _deep(run: Path) -> None:
    (run / "run.json").write_text("[" * 100_000)


def _of_other_types(run: Path) -> None:
    edit(run, environment={"cpu": 7})


def _elsewhere(run: Path) -> None:
    edit(run, id="../../../etc/passwd")


def _two_of_a_name(run: Path) -> None:
    cases = json.loads((run / "run.json").read_text())["cases"]
    edit(run, cases=[*cases, {**cases[0], "model": "another", "device": "gpu"}])


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (_truncated, "is damaged; take the run from a backup"),
        (_of_the_future, "has schema 99, and this harness reads 1; upgrade it"),
        (_damaged_line, "line 1 is damaged"),
        (_deep, "is damaged"),
        (_of_other_types, "is damaged"),
        (_elsewhere, "'../../../etc/passwd', which is no name of a run"),
    ],
)
def test_a_run_that_cannot_be_read_is_one_note_and_costs_no_other(
    results: Path, opened: Any, damage: Any, said: str
) -> None:
    paths = [store(results, run) for run in make_nights(3)]
    damage(paths[1])

    history = opened()

    assert ids(history) == [night_id(0), night_id(2)]
    (note,) = history.notes
    assert note.startswith(f"{night_id(1)} is left out: ")
    assert said in note
    assert "\n" not in note


def test_names_that_mean_something_to_sql_are_names(results: Path, opened: Any) -> None:
    evil = "'; DROP TABLE runs; --\n\"<script>|`x` 😀" + "A" * 10_000
    store(results, make_night(suite_name=evil, harness_commit=evil))

    history = opened()

    assert list(history.runs()["suite"]) == [evil]
    assert set(history.series()["suite"]) == {evil}


def test_a_copy_of_a_run_is_no_second_run(results: Path, opened: Any) -> None:
    path = store(results, make_night())
    copy = results / "zz-copy"
    copy.mkdir()
    for file in path.iterdir():
        if file.is_file():
            (copy / file.name).write_bytes(file.read_bytes())

    history = opened()

    assert ids(history) == [night_id(0)]
    assert history.notes == (f"zz-copy is left out: it says that it is {night_id(0)}, which is there already",)


def test_a_number_that_fits_nowhere_costs_a_run_its_turns_and_no_other(results: Path, opened: Any) -> None:
    paths = [store(results, run) for run in make_nights(2)]
    text = (paths[0] / "rounds.jsonl").read_text()
    (paths[0] / "rounds.jsonl").write_text(text.replace('"cpu_ns":', '"cpu_ns":9999999999999999999999'))

    history = opened()

    assert set(history.query("SELECT run FROM turns")["run"]) == {night_id(1)}
    assert any(note.startswith(f"The turns of {night_id(0)} are left out") for note in history.notes)
    assert ids(history) == [night_id(0), night_id(1)]


def test_a_wrong_clock_is_told(results: Path, opened: Any) -> None:
    for night in range(6):
        store(results, make_night(night, started=f"20{90 + night}-01-01T00:00:00Z"))

    notes = opened().notes

    assert notes[0] == (
        f"The clock of {night_id(0)} was wrong (it started on 2090-01-01, which is in the future), so it is left out "
        "where change points are looked for."
    )
    assert len(notes) == 4
    assert notes[3] == "So are 3 more, whose column `clock` says why."


@pytest.mark.parametrize("damage", ["missing", "shorter", "other"])
def test_a_part_that_is_not_as_the_index_says_is_left_out_and_its_runs_come_from_their_folders(
    results: Path, opened: Any, damage: str
) -> None:
    runs = make_nights(4)
    compacted(results, runs[:2])
    compacted(results, runs[2:])
    store(results, runs[0])
    file = part_file(results, "points", read_index(results).parts[0])
    if damage == "missing":
        file.unlink()
    elif damage == "shorter":
        file.write_bytes(file.read_bytes()[:-1])
    else:
        file.write_bytes(b"x" * file.stat().st_size)

    history = opened()

    assert ids(history) == [night_id(0), night_id(2), night_id(3)]
    (note,) = history.notes
    assert "of the compacted history is left out: its points" in note


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT * FROM read_text('/etc/passwd')",
        "COPY runs TO '/tmp/stolen.csv'",
        "ATTACH '/tmp/other.db'",
        "INSTALL httpfs",
        "SET enable_external_access = true",
        "SET memory_limit = '100GB'",
        "SELECT case FROM points",
        "SELECT * FROM nothing",
        "",
        ";",
    ],
)
def test_statements_reach_nothing_but_the_history(results: Path, opened: Any, statement: str) -> None:
    store(results, make_night())

    with pytest.raises(UsageError, match="the query cannot be answered"):
        opened().query(statement)


def test_words_of_sql_that_are_columns_are_explained(results: Path, opened: Any) -> None:
    results.mkdir()

    with pytest.raises(UsageError, match='the columns "case" and "group" need their quotes'):
        opened().query("SELECT case FROM points")


def test_turns_are_read_only_when_they_are_asked_for(
    results: Path, opened: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    store(results, make_night())
    opened()
    history = opened()
    read: list[str] = []

    def reading(path: Path) -> Run:
        read.append(path.name)
        return load_run(path)

    monkeypatch.setattr("harness.history.open.load_run", reading)

    history.query("SELECT * FROM points")
    assert read == []
    history.query("SELECT * FROM TURNS")
    history.query("SELECT * FROM turns")
    assert read == [night_id(0)]


def test_what_is_no_folder_of_runs_is_told(tmp_path: Path, results: Path) -> None:
    run = store(results, make_night())

    with pytest.raises(RunError, match="is one run; give the folder that it lies in"):
        open_history(str(run))
    with pytest.raises(UsageError, match="there is no such folder"):
        open_history(str(tmp_path / "nowhere"))


def test_who_asks_is_told_what_is_read(results: Path) -> None:
    store(results, make_night())
    told: list[str] = []

    open_history(str(results), on_progress=told.append).close()

    assert told == ["Reading runs: 1"]


def test_a_run_with_two_cases_of_one_name_is_read_or_told_and_never_a_traceback(results: Path, opened: Any) -> None:
    paths = [store(results, run) for run in make_nights(2)]
    _two_of_a_name(paths[0])

    assert night_id(1) in ids(opened())


def test_rows_of_a_history_are_those_of_its_runs(results: Path, opened: Any) -> None:
    run = make_night()
    store(results, run)

    points = opened().query("SELECT * FROM points")

    assert sorted(points["series"]) == sorted(point.series for point in tables_of(run).points)
