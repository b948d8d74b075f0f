"""Compacting: the rows of every finished run go into one file a table, whatever happens on the way."""

from __future__ import annotations

import shutil
import signal
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from harness.errors import RunError
from harness.history.open import open_history
from harness.progress import Silent
from harness.report.rows import rows_of
from harness.store.archive import Compacted, compact, drop_turns
from harness.store.check import check_history
from harness.store.merging import merge
from harness.store.remote import open_place
from tests.history.made import compacted, make_nights, night_id, store
from tests.store.made import (
    a_comparison,
    a_run,
    an_old_run,
    an_unfinished_run,
    contents,
    room_for,
    runs,
    start,
    without_turns,
)

TABLES = ("runs", "points", "cases", "turns", "comparisons")
NOW = datetime(2027, 1, 1, tzinfo=timezone.utc)


def done(results: Path) -> Compacted:
    return compact(open_place(str(results)), rows_of, Silent())


def table(results: Path, name: str) -> str:
    """A table, as text."""
    with open_history(str(results)) as tables:
        return tables.query(f"SELECT * FROM {name} ORDER BY ALL").to_csv()  # noqa: S608 (a name of this file)


def states(results: Path) -> list[str]:
    return [finding.state for finding in check_history(results)]


def test_the_tables_say_the_same_before_and_after_and_without_the_folders(tmp_path: Path) -> None:
    names = runs(tmp_path, 3)
    comparison = a_comparison(tmp_path).name
    before = {name: table(tmp_path, name) for name in TABLES}
    compacted = done(tmp_path)
    assert (compacted.runs, compacted.comparisons, compacted.parts) == (tuple(names), (comparison,), 1)
    assert {name: table(tmp_path, name) for name in TABLES} == before
    for name in names:
        shutil.rmtree(tmp_path / name)  # their figures are in the compacted tables
    without = {name: table(tmp_path, name) for name in TABLES}
    assert {**without, "turns": ""} == {**before, "turns": ""}


def test_a_second_time_does_nothing_and_the_same_runs_give_a_set_of_the_same_name(tmp_path: Path) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    runs(here, 2)
    shutil.copytree(here, there)
    first = done(here)
    done(there)
    assert [path.name for path in (here / "history").iterdir()] == [path.name for path in (there / "history").iterdir()]
    before = contents(here)
    second = done(here)
    assert (second.runs, second.left_out, second.merged_parts) == ((), {}, 0)
    assert contents(here) == before
    assert first.before_bytes == 0
    assert second.before_bytes == second.after_bytes == first.after_bytes > 0


def test_new_runs_go_into_the_one_set_and_folders_are_only_read(tmp_path: Path) -> None:
    first = a_run(tmp_path, 0)
    before = contents(first)
    done(tmp_path)
    a_run(tmp_path, 1)
    again = done(tmp_path)
    assert (again.runs, again.parts) == ((night_id(1),), 1)
    assert contents(first) == before
    assert states(tmp_path) == ["ok"]
    assert len(list((tmp_path / "history").iterdir())) == 1


def test_several_sets_are_read_together_and_become_one(tmp_path: Path) -> None:
    nights = make_nights(5)
    for night in nights:
        store(tmp_path / "folders", night)
    compacted(tmp_path / "old", nights[:2])
    compacted(tmp_path / "old", nights[2:4])
    store(tmp_path / "old", nights[3])  # is compacted, and has its folder
    store(tmp_path / "old", nights[4])
    figures = [name for name in TABLES if name != "turns"]  # which stay in folders
    before = {name: table(tmp_path / "folders", name) for name in figures}

    assert {name: table(tmp_path / "old", name) for name in figures} == before
    assert states(tmp_path / "old") == ["ok", "ok"]
    assert done(tmp_path / "old").merged_parts == 2
    assert {name: table(tmp_path / "old", name) for name in figures} == before
    assert len(list((tmp_path / "old" / "history").iterdir())) == 1
    assert states(tmp_path / "old") == ["ok"]


def test_what_is_unfinished_or_damaged_is_left_out_with_its_reason(tmp_path: Path) -> None:
    good, damaged = runs(tmp_path, 2)
    with (tmp_path / damaged / "builds.jsonl").open("a") as file:
        file.write("{}\n")
    dropped = without_turns(an_old_run(tmp_path, 2))
    unfinished = an_unfinished_run(tmp_path).name
    compacted = done(tmp_path)
    assert compacted.runs == (good,)
    assert compacted.left_out.keys() == {damaged, dropped.name, unfinished}
    assert "builds.jsonl: line" in compacted.left_out[damaged]
    assert "its raw turns were dropped" in compacted.left_out[dropped.name]
    assert "harness run --resume" in compacted.left_out[unfinished]


# --- Stopped in the middle ---

_KILLED = """
import os, signal, sys
from pathlib import Path
from harness.progress import Silent
from harness.report.rows import rows_of
from harness.store import archive
from harness.store.remote import open_place
def die(*_, **__):
    os.kill(os.getpid(), signal.SIGKILL)
setattr(archive, sys.argv[2], die)
archive.compact(open_place(sys.argv[1]), rows_of, Silent())
"""


@pytest.mark.parametrize("at", ["finished_document", "_remove"])
def test_a_killed_compaction_loses_nothing_and_the_next_one_goes_on(tmp_path: Path, at: str) -> None:
    compacted(tmp_path, make_nights(2))
    a_run(tmp_path, 2)
    points = table(tmp_path, "points")
    killed = start(_KILLED, tmp_path, at)
    killed.communicate(timeout=120)
    assert killed.returncode == -signal.SIGKILL

    assert set(states(tmp_path)) == {"ok"}
    assert table(tmp_path, "points") == points
    done(tmp_path)
    assert table(tmp_path, "points") == points
    assert len(list((tmp_path / "history").iterdir())) == 1
    assert not list(tmp_path.glob(".copying-*"))


def test_a_disk_that_is_full_leaves_everything_as_it_was(tmp_path: Path) -> None:
    a_run(tmp_path, 0)
    done(tmp_path)
    a_run(tmp_path, 1)
    before = contents(tmp_path)
    with room_for(1000), pytest.raises(RunError, match=r"history: cannot be written"):
        done(tmp_path)
    assert contents(tmp_path) == before
    assert len(done(tmp_path).runs) == 1


# --- Compacted tables that are not what they should be ---


def test_compacted_tables_that_were_changed_are_found(tmp_path: Path) -> None:
    runs(tmp_path, 2)
    done(tmp_path)
    file = next((tmp_path / "history").glob("*/runs.parquet"))
    original = file.read_bytes()

    file.write_bytes(original[:-1] + b"?")
    assert states(tmp_path) == ["changed"]
    file.unlink()
    (finding,) = check_history(tmp_path)
    assert (finding.state, finding.why) == ("damaged", f"{file}: is gone; take it from a backup")
    file.symlink_to("/etc/passwd")
    assert states(tmp_path) == ["damaged"]
    file.unlink()
    file.write_bytes(original)
    assert [(finding.state, finding.hashed) for finding in check_history(tmp_path)] == [("ok", True)]


def test_a_part_that_cannot_be_read_is_left_out_and_its_runs_come_from_their_folders(tmp_path: Path) -> None:
    nights = make_nights(4)
    compacted(tmp_path, nights[:2])
    compacted(tmp_path, nights[2:])
    store(tmp_path, nights[0])
    file = tmp_path / "history" / "tables-00000000" / "points.parquet"
    file.write_bytes(b"x" * file.stat().st_size)
    with open_history(str(tmp_path)) as tables:
        assert list(tables.runs()["run"]) == [night_id(0), night_id(2), night_id(3)]
        (note,) = tables.notes
        assert note.startswith("history/tables-00000000 is left out: it cannot be read (its points: ")
    with pytest.raises(RunError, match="history/tables-00000000 is left out"):  # it would lose what may be mended
        done(tmp_path)


@pytest.mark.parametrize("link", ["history", "history/points", "history/tables-00000000"])
def test_nothing_is_deleted_or_written_through_a_link(tmp_path: Path, link: str) -> None:
    victim = tmp_path / "victim"
    (victim / "points").mkdir(parents=True)
    (victim / "theirs.parquet").write_bytes(b"nothing of ours")
    results = tmp_path / "results"
    a_run(results)
    (results / link).parent.mkdir(exist_ok=True)
    (results / link).symlink_to(victim)
    before = contents(tmp_path)
    place = open_place(str(results))
    for attempt in (
        lambda: done(results),
        lambda: drop_turns(place, timedelta(days=1), NOW, rows_of, Silent(), dry_run=False),
        lambda: merge([str(tmp_path / "from")], str(results), rows_of, str, Silent()),
    ):
        with pytest.raises(RunError) as caught:
            attempt()
        assert "is a symbolic link, which is not followed; put what it leads to in its place" in str(caught.value)
    assert contents(tmp_path) == before
    assert states(results) == ["damaged"]
