"""Runs that were cut short: killed, out of disk. At most the line in flight is lost, and the run can go on."""

from __future__ import annotations

import resource
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from harness.errors import RunError
from harness.records.run import Build, Check, Failure, Lost, Reference
from harness.store.run_directory import Record, RunDirectory, load_run
from tests.builders import make_header, make_round

_APPEND_UNTIL_KILLED = """
import itertools, sys
from pathlib import Path
from dataclasses import replace
from harness.store.run_directory import RunDirectory, load_run

directory, run = RunDirectory.resume(Path(sys.argv[1]))
pattern = run.rounds[0]
with directory:
    print("ready", flush=True)
    for number in itertools.count(len(run.rounds)):
        directory.append(replace(pattern, round=number))
"""

LAST: dict[str, Record] = {
    "builds.jsonl": Build(
        case="net/fast@cpu",
        command=("iree-compile",),
        cache_key="ab",
        failure=Failure(stage="compile", message="no", stderr="two\nlines, ü"),
    ),
    "checks.jsonl": Check(
        case="net/fast@cpu", against="net/stock@cpu", command=(), relative_tolerance=1e-4, absolute_tolerance=1e-5
    ),
    "references.jsonl": Reference(case="net/fast@cpu", command=(), real_time_ns=(1.5, 2.5)),
    "rounds.jsonl": make_round(1),
    "lost.jsonl": Lost(case="net/fast@cpu", generation=0, failure=Failure(stage="measure", message="died")),
}


@pytest.mark.parametrize("name", LAST)
def test_a_file_that_was_cut_at_any_byte_of_its_last_line_loses_that_line_only(tmp_path: Path, name: str) -> None:
    with RunDirectory.create(tmp_path, make_header()) as directory:
        for record in (make_round(0), LAST[name]):
            directory.append(record)
    file = directory.path / name
    whole = file.read_bytes()
    start = whole.rfind(b"\n", 0, -1) + 1
    complete = load_run(directory.path)
    for length in range(start, len(whole)):
        file.write_bytes(whole[:length])
        shorter = load_run(directory.path)
        assert shorter != complete
        assert file.stat().st_size == length, "reading changes nothing"
        resumed, run = RunDirectory.resume(directory.path)
        assert run == shorter
        assert file.read_bytes() == whole[:start]
        with resumed:
            resumed.append(LAST[name])
        assert file.read_bytes() == whole
        assert load_run(directory.path) == complete


def test_a_run_that_was_cut_before_its_first_record_can_go_on(tmp_path: Path) -> None:
    path = RunDirectory.create(tmp_path, make_header()).path
    directory, run = RunDirectory.resume(path)
    assert (run.rounds, run.finished) == ((), False)
    with directory:
        directory.append(make_round(0))
    assert load_run(path).rounds == (make_round(0),)


def test_a_killed_run_keeps_every_whole_line_and_goes_on(tmp_path: Path) -> None:
    with RunDirectory.create(tmp_path, make_header()) as directory:
        directory.append(make_round(0))
    kept = 1
    for milliseconds in (1, 20, 50, 5):
        child = subprocess.Popen(
            [sys.executable, "-c", _APPEND_UNTIL_KILLED, str(directory.path)], stdout=subprocess.PIPE
        )
        assert child.stdout is not None
        with child.stdout:
            assert child.stdout.readline() == b"ready\n"
            with pytest.raises(RunError, match="another harness is writing this run"):
                RunDirectory.resume(directory.path)
            time.sleep(milliseconds / 1000)
            child.send_signal(signal.SIGKILL)
            child.wait()
        numbers = [one.round for one in load_run(directory.path).rounds]
        assert numbers == list(range(len(numbers)))
        assert len(numbers) >= kept
        kept = len(numbers)
    assert kept > 1
    resumed, run = RunDirectory.resume(directory.path)
    with resumed:
        resumed.append(make_round(kept))
        resumed.finish(lambda run: f"{len(run.rounds)} rounds")
    assert (directory.path / "report.md").read_text() == f"{len(run.rounds) + 1} rounds"


def test_a_full_disk_is_told_in_one_sentence_and_earlier_lines_stay(tmp_path: Path) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("needs a device that is always full")
    build = Build(case="net/stock@cpu", command=(), cache_key="")
    with RunDirectory.create(tmp_path, make_header()) as directory:
        directory.append(build)
        (directory.path / "rounds.jsonl").symlink_to("/dev/full")
        with pytest.raises(RunError) as caught:
            directory.append(make_round(0))
        (directory.path / "rounds.jsonl").unlink()
    assert str(caught.value) == (
        f"{directory.path}: cannot be written (No space left on device); make room or mend its permissions, "
        f"then go on with `harness run --resume {directory.path}`"
    )
    assert load_run(directory.path).builds == (build,)
    assert load_run(directory.path).rounds == ()


@contextmanager
def room_for(size: int) -> Iterator[None]:
    """Let no file of this process grow beyond a size, as a disk that has so much room left."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize("more", [0, 1, 50])
def test_a_line_of_which_only_a_part_fits_is_taken_back(tmp_path: Path, more: int) -> None:
    with RunDirectory.create(tmp_path, make_header()) as directory:
        directory.append(make_round(0))
        file = directory.path / "rounds.jsonl"
        before = file.read_bytes()
        with room_for(len(before) + more), pytest.raises(RunError, match="cannot be written"):
            directory.append(make_round(1))
        assert file.read_bytes() == before
        directory.append(make_round(1))
    assert load_run(directory.path).rounds == (make_round(0), make_round(1))


def test_a_disk_without_room_for_a_header_gets_no_half_run(tmp_path: Path) -> None:
    with room_for(10), pytest.raises(RunError) as caught:
        RunDirectory.create(tmp_path / "results", make_header())
    assert str(caught.value) == (
        f"{tmp_path / 'results'}: cannot be written (File too large); make room or choose another with --results"
    )
    assert list((tmp_path / "results").iterdir()) == []


def test_a_disk_without_room_for_the_report_leaves_the_run_open(tmp_path: Path) -> None:
    advice = r"go on with `harness run --resume .*`$"
    with RunDirectory.create(tmp_path, make_header()) as directory, room_for(10), pytest.raises(RunError, match=advice):
        directory.finish(lambda _: "a long report")
    assert sorted(path.name for path in directory.path.iterdir()) == ["run.json"]
    assert not load_run(directory.path).finished
