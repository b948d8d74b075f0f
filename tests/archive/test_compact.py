"""Compacting: every finished run goes to Parquet once, whatever happens on the way."""

from __future__ import annotations

import resource
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from harness.errors import RunError
from harness.history.index import read_index
from harness.history.open import open_history
from harness.history.parquet import compacted_comparisons, compacted_runs
from harness.progress import Silent
from harness.store.check_history import check_history, stray_files
from harness.store.compact import PARTS_LIMIT, compact
from harness.store.dropped import mark_dropped
from harness.store.manifest import describe_file
from harness.store.place import open_place
from harness.store.values import Compacted
from tests.archive.made import a_comparison, a_run, an_unfinished_run, contents, runs


def done(results: Path) -> Compacted:
    return compact(open_place(str(results)), Silent())


def table(results: Path, name: str) -> str:
    """A table of a history, as text."""
    with open_history(str(results)) as history:
        return history.query(f"SELECT * FROM {name} ORDER BY ALL").to_csv()  # noqa: S608 (a name of this file)


def test_the_history_says_the_same_before_and_after(tmp_path: Path) -> None:
    names = runs(tmp_path, 3)
    compared = a_comparison(tmp_path).name
    tables = ("runs", "points", "cases", "turns", "comparisons")
    before = {name: table(tmp_path, name) for name in tables}
    compacted = done(tmp_path)
    assert (compacted.runs, compacted.comparisons) == (tuple(names), (compared,))
    assert compacted_runs(tmp_path) == set(names)
    assert compacted_comparisons(tmp_path) == {compared}
    assert {name: table(tmp_path, name) for name in tables} == before
    for name in names:
        shutil.rmtree(tmp_path / name)  # the figures are in Parquet now
    assert {name: table(tmp_path, name) for name in tables} == before


def test_a_second_time_does_nothing(tmp_path: Path) -> None:
    runs(tmp_path, 2)
    first = done(tmp_path)
    before = contents(tmp_path)
    second = done(tmp_path)
    assert (second.runs, second.left_out, second.merged_parts) == ((), {}, 0)
    assert contents(tmp_path) == before
    assert first.before_bytes == 0
    assert second.before_bytes == second.after_bytes == first.after_bytes > 0


def test_folders_are_only_read(tmp_path: Path) -> None:
    (name,) = runs(tmp_path, 1)
    before = contents(tmp_path / name)
    done(tmp_path)
    assert contents(tmp_path / name) == before


def test_what_is_unfinished_or_damaged_is_left_out_and_told(tmp_path: Path) -> None:
    good, damaged, dropped = runs(tmp_path, 3)
    with (tmp_path / damaged / "builds.jsonl").open("a") as file:
        file.write("{}\n")
    mark_dropped(tmp_path / dropped, describe_file(tmp_path / dropped / "rounds.jsonl"))
    (tmp_path / dropped / "rounds.jsonl").unlink()
    unfinished = an_unfinished_run(tmp_path).name
    compacted = done(tmp_path)
    assert compacted.runs == (good,)
    assert compacted.left_out.keys() == {damaged, dropped, unfinished}
    assert "builds.jsonl: line" in compacted.left_out[damaged]
    assert "its raw turns were dropped" in compacted.left_out[dropped]
    assert "harness run --resume" in compacted.left_out[unfinished]


def test_a_number_that_no_table_holds_costs_only_its_own_run(tmp_path: Path) -> None:
    first, second = runs(tmp_path, 2)
    file = tmp_path / first / "rounds.jsonl"
    file.write_text(file.read_text().replace('"started_unix_ns":', '"started_unix_ns":99999999999999999999', 1))
    (tmp_path / first / "finished.json").write_text("{}")
    compacted = done(tmp_path)
    assert compacted.runs == (second,)
    assert list(compacted.left_out) == [first]


def test_many_parts_become_one(tmp_path: Path) -> None:
    for night in range(PARTS_LIMIT + 1):
        a_run(tmp_path, night)
        last = done(tmp_path)
    assert (last.merged_parts, last.parts) == (PARTS_LIMIT + 1, 1)
    assert len(compacted_runs(tmp_path)) == PARTS_LIMIT + 1
    assert [one.state for one in check_history(tmp_path)] == ["ok"]
    assert stray_files(tmp_path) == []


# --- Stopped in the middle ---

_COMPACT = """
import os, signal, sys
from pathlib import Path
from harness.store import compact
from harness.store.place import open_place
from harness.progress import Silent
compact._BATCH_RUNS, compact.PARTS_LIMIT = 2, 2
real, seen, at = Path.replace, [], int(sys.argv[2])
def replace(self, target):
    seen.append(target)
    if len(seen) == at:
        os.kill(os.getpid(), signal.SIGKILL)
    return real(self, target)
Path.replace = replace
compact.compact(open_place(sys.argv[1]), Silent())
"""


@pytest.fixture(scope="module")
def six_runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A results folder, and what its points are when nothing goes wrong."""
    results = tmp_path_factory.mktemp("six")
    runs(results, 6)
    done(shutil.copytree(results, results.with_name("compacted")))
    return results, table(results.with_name("compacted"), "points")


# Of three batches, each four tables and an index: before the first index, in the second part, and of what the three
# parts become before its index.
@pytest.mark.parametrize("at", [5, 8, 20])
def test_a_killed_compaction_loses_nothing_and_the_next_one_goes_on(
    tmp_path: Path, six_runs: tuple[Path, str], at: int
) -> None:
    source, points = six_runs
    results = Path(shutil.copytree(source, tmp_path / "results"))
    command = [sys.executable, "-c", _COMPACT, str(results), str(at)]
    killed = subprocess.run(command, timeout=120, cwd=Path(__file__).parents[2], check=False)
    assert killed.returncode == -signal.SIGKILL

    left = contents(results)
    assert {name: data for name, data in left.items() if not name.startswith("history/")} == contents(source)
    assert not [one for one in check_history(results) if one.state != "ok"]
    done(results)
    assert len(compacted_runs(results)) == 6
    assert stray_files(results) == []
    assert table(results, "points") == points


def test_a_disk_that_is_full_leaves_the_history_as_it_was(tmp_path: Path) -> None:
    a_run(tmp_path, 0)
    done(tmp_path)
    a_run(tmp_path, 1)
    before = contents(tmp_path)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))
    try:
        with pytest.raises(RunError, match=r"history: cannot be written"):
            done(tmp_path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert contents(tmp_path) == before
    assert len(done(tmp_path).runs) == 1


# --- Histories that are not what they should be ---


def test_a_history_that_was_tampered_with_is_found(tmp_path: Path) -> None:
    runs(tmp_path, 2)
    done(tmp_path)
    (part,) = read_index(tmp_path).parts
    file = tmp_path / "history" / "runs" / f"{part.name}.parquet"
    original = file.read_bytes()

    file.write_bytes(original[:-1] + b"?")
    assert [one.state for one in check_history(tmp_path)] == ["changed"]
    file.unlink()
    assert [(one.state, one.why) for one in check_history(tmp_path)] == [
        ("damaged", f"{file}: is gone; take it from a backup")
    ]
    file.symlink_to("/etc/passwd")
    assert [one.state for one in check_history(tmp_path)] == ["damaged"]
    file.unlink()
    file.write_bytes(original)
    assert [(one.state, one.hashed) for one in check_history(tmp_path)] == [("ok", True)]


def test_without_hashes_a_part_that_holds_other_runs_is_found_all_the_same(tmp_path: Path) -> None:
    runs(tmp_path, 1)
    done(tmp_path)
    index = tmp_path / "history" / "index.json"
    text = index.read_text()
    index.write_text(text.replace('20260101-020000-nightly"', '20260109-020000-nightly"').replace("sha256", "md5"))
    (finding,) = check_history(tmp_path)
    assert (finding.state, "holds other runs than its index says" in finding.why) == ("damaged", True)


@pytest.mark.parametrize(("text", "state"), [("{", "damaged"), ('{"schema_version": 9}', "future schema")])
def test_an_index_that_cannot_be_read_is_told_and_nothing_is_written(tmp_path: Path, text: str, state: str) -> None:
    runs(tmp_path, 1)
    (tmp_path / "history").mkdir()
    (tmp_path / "history" / "index.json").write_text(text)
    assert [one.state for one in check_history(tmp_path)] == [state]
    before = contents(tmp_path)
    with pytest.raises(RunError, match=r"index.json"):
        done(tmp_path)
    assert contents(tmp_path) == before


def test_a_file_that_a_killed_compaction_left_is_told_and_removed(tmp_path: Path) -> None:
    runs(tmp_path, 1)
    done(tmp_path)
    stray = tmp_path / "history" / "runs" / ".writing-abc.parquet"
    stray.write_bytes(b"PAR1")
    assert [one.state for one in check_history(tmp_path)] == ["ok", "ok"]
    assert "in no index and not read" in check_history(tmp_path)[1].why
    done(tmp_path)
    assert not stray.exists()
