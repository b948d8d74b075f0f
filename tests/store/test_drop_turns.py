"""Deleting raw turns by age: figures stay in the run's tables, and whoever reads the run hears of it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from harness.cli import run_command_line
from harness.errors import ExitCode, RunError, UsageError
from harness.history.open import open_history
from harness.progress import Silent
from harness.report import render
from harness.report.rows import rows_of
from harness.report.run_report import build_report, exit_code
from harness.store import archive
from harness.store.archive import GarbageReport, drop_turns
from harness.store.check import check_folder
from harness.store.clock import parse_age
from harness.store.files import TURNS_FILE
from harness.store.remote import open_place
from harness.store.run_directory import load_run
from tests.history.made import FIRST_NIGHT, make_night, store
from tests.store.made import a_comparison, a_run, an_old_run, an_unfinished_run, contents, killed_at, runs

LATER = FIRST_NIGHT + timedelta(days=100)


def drop(results: Path, days: int, *, now: datetime = LATER, dry_run: bool = False) -> GarbageReport:
    return drop_turns(open_place(str(results)), timedelta(days=days), now, rows_of, Silent(), dry_run=dry_run)


def turns_of(results: Path) -> set[str]:
    """Runs that still have raw turns in the history."""
    with open_history(str(results)) as history:
        return set(history.query("SELECT DISTINCT run FROM turns")["run"])


def with_turns(results: Path) -> set[str]:
    """Folders that still have raw turns."""
    return {file.parent.name for file in results.glob(f"*/{TURNS_FILE}")}


def test_turns_go_by_the_age_that_the_run_itself_says(tmp_path: Path) -> None:
    names = [a_run(tmp_path, night).name for night in (0, 9, 11)]
    report = drop(tmp_path, 90)
    assert [(row.name, row.dropped) for row in report.rows] == [(names[0], True), (names[1], True)]
    assert with_turns(tmp_path) == turns_of(tmp_path) == {names[2]}


@pytest.mark.parametrize("make", [a_run, a_comparison])
def test_figures_stay_and_the_folder_still_verifies(tmp_path: Path, make: Callable[[Path], Path]) -> None:
    name = make(tmp_path).name
    with open_history(str(tmp_path)) as history:
        before = history.query("SELECT * FROM points ORDER BY ALL")
    size = (tmp_path / name / TURNS_FILE).stat().st_size
    report = drop(tmp_path, 1)
    assert [(row.bytes, row.dropped) for row in report.rows] == [(size, True)]
    with open_history(str(tmp_path)) as history:
        assert history.query("SELECT * FROM points ORDER BY ALL").equals(before)
    assert check_folder(tmp_path / name, name=name).state == "ok"
    assert drop(tmp_path, 1).rows == ()


def test_a_dry_run_changes_nothing_and_says_the_same(tmp_path: Path) -> None:
    runs(tmp_path, 3)
    before = contents(tmp_path)
    planned = drop(tmp_path, 1, dry_run=True)
    assert contents(tmp_path) == before
    assert drop(tmp_path, 1).rows == planned.rows


def test_unfinished_damaged_and_published_ones_are_kept(tmp_path: Path) -> None:
    good, damaged = runs(tmp_path, 2)
    unfinished = an_unfinished_run(tmp_path, "20260102-000000-small").name
    (tmp_path / unfinished / "run.json").write_text(
        (tmp_path / unfinished / "run.json").read_text().replace("2026-11-21", "2026-01-02")
    )
    shutil.copytree(tmp_path / good, tmp_path / "published" / "small")
    (tmp_path / damaged / "report.md").write_text("changed\n")
    rows = {row.name: row for row in drop(tmp_path, 1).rows}
    assert {name: row.dropped for name, row in rows.items()} == {good: True, damaged: False, unfinished: False}
    assert rows[damaged].why.startswith("changed: ")
    assert rows[unfinished].why.startswith("unfinished: ")
    assert with_turns(tmp_path) == {damaged, unfinished}
    assert (tmp_path / "published" / "small" / TURNS_FILE).is_file()


@pytest.mark.parametrize(
    ("started", "told"),
    [
        ("1970-01-01T00:00:12+00:00", "it started in 1970"),
        ("yesterday", "is no time"),
    ],
)
def test_a_run_whose_clock_was_wrong_is_kept_and_told(tmp_path: Path, started: str, told: str) -> None:
    run = make_night(0)
    folder = store(tmp_path, replace(run, header=replace(run.header, started=started)))
    (row,) = drop(tmp_path, 1).rows
    assert (row.dropped, row.why.startswith("its age is not known: "), told in row.why) == (False, True, True)
    assert (folder / TURNS_FILE).is_file()


def test_a_clock_that_went_back_within_the_run_is_wrong_too(tmp_path: Path) -> None:
    run = make_night(0)
    last = replace(run.rounds[-1], started_unix_ns=run.rounds[-1].started_unix_ns - 10**13)
    store(tmp_path, replace(run, rounds=(*run.rounds[:-1], last)))
    (row,) = drop(tmp_path, 1).rows
    assert (row.dropped, "its clock went back" in row.why) == (False, True)


def test_stopped_in_the_middle_it_goes_on_the_next_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = runs(tmp_path, 3)
    with killed_at(monkeypatch, archive, "mark_dropped", after=1):
        drop(tmp_path, 1)
    for name in names:
        assert check_folder(tmp_path / name, name=name).state == "ok"
    drop(tmp_path, 1)
    assert with_turns(tmp_path) == turns_of(tmp_path) == set()
    assert len(list(tmp_path.glob("*/turns-dropped.json"))) == 3


def test_a_folder_that_cannot_be_written_keeps_its_turns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (name,) = runs(tmp_path, 1)

    def read_only(*_: object) -> None:
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(archive, "mark_dropped", read_only)
    before = contents(tmp_path)
    (row,) = drop(tmp_path, 1).rows
    assert (row.dropped, "cannot be written (Read-only file system)" in row.why) == (False, True)
    assert contents(tmp_path) == before
    assert turns_of(tmp_path) == {name}


def test_the_report_says_that_turns_were_dropped_and_where_figures_are(tmp_path: Path) -> None:
    (name,) = runs(tmp_path, 1)
    drop(tmp_path, 1)
    run = load_run(tmp_path / name)
    when = json.loads((tmp_path / name / "turns-dropped.json").read_text())["dropped"][:10]
    report = build_report(run)
    assert report.notes[0] == (
        f"Its raw turns were dropped on {when}; figures are in the history, and in report.md of its folder."
    )
    assert {row.status for row in report.rows()} == {"turns dropped"}
    assert (report.summary.turns_dropped, report.summary.missing) == (4, 0)
    assert exit_code(report.summary) == ExitCode.OK
    text = render(run, "terminal", full=False, width=120, color=False)
    assert "4 cases: 4 measured, with their turns dropped since." in text
    assert "nothing was measured" not in text


def test_a_comparison_of_what_was_recorded_says_that_turns_were_dropped(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (name,) = runs(tmp_path, 1)
    drop(tmp_path, 1)
    run_command_line(
        ["compare", "--within", str(tmp_path / name), "--no-remeasure", "--results", str(tmp_path / "compared")]
    )
    told = " ".join(capsys.readouterr().out.split())
    assert f"The raw turns of the base's run {name} were dropped on " in told
    assert "its latencies are compared only where both sides are measured again" in told


def test_ages_are_days_weeks_and_years() -> None:
    assert [parse_age(text).days for text in ("90d", "12w", "2y", " 0d ")] == [90, 84, 730, 0]
    for bad in ("", "90", "-1d", "1.5d", "3m", "d", "1" * 10 + "d", "１d"):  # noqa: RUF001 (a wide digit)
        with pytest.raises(UsageError, match=r"is no age; write days, weeks or years, as in 90d, 12w or 2y"):
            parse_age(bad)


def test_a_run_of_version_0_1_gets_its_tables_before_its_turns_go(tmp_path: Path) -> None:
    folder = an_old_run(tmp_path)
    assert [row.dropped for row in drop(tmp_path, 1, dry_run=True).rows] == [True]
    assert not (folder / "tables").exists()
    assert [row.dropped for row in drop(tmp_path, 1).rows] == [True]
    with open_history(str(tmp_path)) as tables:
        assert "latency" in set(tables.query("SELECT metric FROM points")["metric"])


def test_turns_that_nobody_can_put_into_tables_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = an_old_run(tmp_path)

    def fails(*_: object) -> None:
        raise RunError("no")

    monkeypatch.setattr(archive, "write_tables", fails)
    (row,) = drop(tmp_path, 1).rows
    assert (row.dropped, row.why) == (False, "no")
    assert (folder / TURNS_FILE).is_file()
