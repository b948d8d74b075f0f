"""Run directories: written record by record, read back as they were, and closed for good.

What cannot be used is one sentence with what, where, and what to do. Of a run that was killed, or had no disk left, at
most the line in flight is lost.
"""

import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path

import pytest

from harness.errors import RunError
from harness.records.run import Build, Failure, HostRecord, Lost, Peak, Placed, Run, Work
from harness.store.folders import is_id
from harness.store.run_directory import RECORDS, Record, RunDirectory, load_rounds, load_run, new_run_id
from tests.builders import make_header, make_round
from tests.report.builders import make_full_run
from tests.store.made import contents, edit, room_for

FAILURE = Failure(stage="compile", message="no", stderr="two\nlines, ü")
BUILD = Build(case="net/fast@cpu", command=("iree-compile",), cache_key="ab", failure=FAILURE)
Spoil = Callable[[Path], object]


def test_every_kind_of_record_comes_back_as_it_was(tmp_path: Path) -> None:
    sections = {"machine": {"id": "ü\n", "cores": 3, "load": 0.1 + 0.2, "more": [None, {"x": True}]}}
    made = replace(
        make_full_run(),
        finished=False,
        work=(Work(model="net", operations=7, uncounted={"math.exp": 2}),),
        peaks=(Peak(device="cpu", threads=2, operations_per_s=1e9, measured={"copy": 0.5}, host="ash"),),
        hosts=(HostRecord(name="ash", environment=sections),),
    )
    with RunDirectory.create(tmp_path, made.header) as directory:
        for field in RECORDS:
            for record in getattr(made, field):
                directory.append(record)
    assert load_run(directory.path) == made
    assert all(getattr(made, field) for field in RECORDS if field != "placed")


def test_what_is_recorded_of_a_group_before_it_moved_stays_on_disk_and_does_not_count(tmp_path: Path) -> None:
    with RunDirectory.create(tmp_path, make_header()) as directory:
        for host in ("ash", "elm"):
            directory.append(HostRecord(name=host, environment={"machine": {"id": host}}))
        for attempt, host in enumerate(("ash", "elm", "ash", "elm")):
            directory.append(Placed(group="net@cpu", host=host, attempt=attempt))
            directory.append(replace(make_round(0, wall_ns=1000 + attempt), host=host, attempt=attempt))
            directory.append(Lost(case="net/fast@cpu", generation=0, failure=FAILURE, host=host, attempt=attempt))
    run = load_run(directory.path)
    assert [(measured.host, measured.turns[0].wall_ns) for measured in run.rounds] == [("elm", 1003)]
    assert run.rounds == load_rounds(directory.path)
    assert [lost.attempt for lost in run.lost] == [3]
    assert len((directory.path / "rounds.jsonl").read_text().splitlines()) == 4
    case = run.header.cases[0]
    assert (run.host_of(case), run.environment_of(case)) == ("elm", {"machine": {"id": "elm"}})
    assert run.environment_of(replace(case, model="other")) == run.header.environment


@pytest.mark.parametrize(
    ("suite", "name"),
    [("a_2.x+g", "a_2.x+g"), ("../../etc", "etc"), ("nul\0", "nul-"), ("", "suite"), ("L" * 999, "L" * 150)],
)
def test_a_suite_of_any_name_gives_runs_names_of_their_own_that_can_be_merged(
    tmp_path: Path, suite: str, name: str
) -> None:
    run_id = new_run_id(suite, datetime(2026, 11, 21, 3, 50, 12, tzinfo=timezone.utc))
    assert run_id == f"20261121-035012-{name}"
    assert is_id(f"{run_id}-compare")
    paths = [RunDirectory.create(tmp_path, make_header(run_id)).path for _ in range(2)]
    assert [load_run(path).header.id for path in paths] == [run_id, f"{run_id}-2"]


def test_finishing_writes_the_report_of_the_finished_run_and_drops_the_lock(tmp_path: Path) -> None:
    seen: list[Run] = []

    def report(run: Run) -> str:
        seen.append(run)
        return f"{len(run.rounds)} rounds, ü\n"

    def fails(_: Run) -> str:
        raise ZeroDivisionError

    with RunDirectory.create(tmp_path, make_header()) as directory, pytest.raises(ZeroDivisionError):
        directory.finish(fails)
    with RunDirectory.resume(directory.path)[0] as directory:  # it was left open
        directory.append(make_round(0))
        directory.finish(report)
    assert list(contents(directory.path)) == ["finished.json", "report.md", "rounds.jsonl", "run.json"]
    assert (directory.path / "report.md").read_text(encoding="utf-8") == "1 rounds, ü\n"
    assert seen == [load_run(directory.path)]
    assert seen[0].finished
    for attempt in (lambda: RunDirectory.resume(directory.path), directory.__enter__):
        with pytest.raises(RunError, match="this run is finished and is not written again; start a new one"):
            attempt()


def test_a_second_writer_is_refused_and_drops_nothing(tmp_path: Path) -> None:
    with RunDirectory.create(tmp_path, make_header()) as directory:
        with (directory.path / "rounds.jsonl").open("ab") as rounds:
            rounds.write(b'{"a line in flight')
        with pytest.raises(RunError, match="another harness is writing this run; wait for it or stop it"):
            RunDirectory.resume(directory.path)
        assert (directory.path / "rounds.jsonl").read_bytes() == b'{"a line in flight'


# --- Folders that cannot be used ---


def write(name: str, content: bytes) -> Spoil:
    return lambda run: (run / name).write_bytes(content)


NO_VERSIONS = (b'{"schema_version": "1"}', b'{"schema_version": %b}' % (b"9" * 5000))
NO_HEADERS = (b"", b"[]", b"{}", b"\xff\xfe", b"[" * 200_000, *NO_VERSIONS)
NO_HEADER = "run.json: is damaged; take the run from a backup"
NO_FILE = "checks.jsonl: is no plain file; take it away, or take the file from a backup"
REMEDY = "remove that line or take the run from a backup"


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (
            write("lost.jsonl", b"\n"),
            f"line 1 is damaged (Invalid JSON: EOF while parsing a value at column 0); {REMEDY}",
        ),
        (write("lost.jsonl", b'{"case": "g"}\n'), f"line 1 is damaged (generation: Field required); {REMEDY}"),
        *((write("run.json", content), NO_HEADER) for content in NO_HEADERS),
        (write("run.json", b'{"schema_version": 2}'), "run.json: has schema 2, and this harness reads 1; upgrade it"),
        (lambda run: edit(run / "run.json", cases=[{"name": "x"}]), "run.json: is damaged (cases.0.id: Field required"),
        (lambda run: (run / "checks.jsonl").mkdir(), NO_FILE),
        (lambda run: os.mkfifo(run / "checks.jsonl"), NO_FILE),
        (lambda run: (run / "checks.jsonl").symlink_to("gone"), "cannot be read (No such file or directory)"),
        (lambda run: (run / "run.json").unlink(), "is not a run directory (it has no run.json); `ls "),
        (shutil.rmtree, "there is no such folder; `harness run SUITE` makes a run"),
    ],
)
def test_what_cannot_be_used_is_one_sentence(tmp_path: Path, spoil: Spoil, said: str) -> None:
    directory = RunDirectory.create(tmp_path / "results", make_header())
    spoil(directory.path)
    for attempt in (load_run, RunDirectory.resume):
        with pytest.raises(RunError) as caught:
            attempt(directory.path)
        assert str(caught.value).startswith(str(directory.path))
        assert said in str(caught.value)
        assert "\n" not in str(caught.value)


def test_a_finished_run_that_lost_its_turns_is_not_one_that_never_had_any(tmp_path: Path) -> None:
    for rounds in (0, 1):
        with RunDirectory.create(tmp_path, make_header()) as directory:
            for number in range(rounds):
                directory.append(make_round(number))
            directory.finish(lambda _: "# Report\n")
        assert len(load_run(directory.path).rounds) == rounds
    (directory.path / "rounds.jsonl").unlink()
    with pytest.raises(RunError, match=r"rounds.jsonl: is gone; take it from a backup"):
        load_run(directory.path)


# --- Killed, and out of disk ---


@pytest.mark.parametrize("last", [BUILD, make_round(1)], ids=["builds", "rounds"])
def test_a_file_that_was_cut_at_any_byte_of_its_last_line_loses_that_line_only(tmp_path: Path, last: Record) -> None:
    with RunDirectory.create(tmp_path, make_header()) as directory:
        for record in (make_round(0), last):
            directory.append(record)
    file = directory.path / ("builds.jsonl" if last is BUILD else "rounds.jsonl")
    whole = file.read_bytes()
    start = whole.rfind(b"\n", 0, -1) + 1
    complete = load_run(directory.path)
    for length in range(start, len(whole), 7):
        file.write_bytes(whole[:length])
        shorter = load_run(directory.path)
        assert shorter != complete
        assert file.stat().st_size == length, "reading changes nothing"
        resumed, run = RunDirectory.resume(directory.path)
        assert run == shorter
        assert file.read_bytes() == whole[:start]
        with resumed:
            resumed.append(last)
        assert file.read_bytes() == whole
        assert load_run(directory.path) == complete


@pytest.mark.parametrize("more", [0, 50])
def test_a_line_of_which_only_a_part_fits_is_taken_back(tmp_path: Path, more: int) -> None:
    with RunDirectory.create(tmp_path, make_header()) as directory:
        directory.append(make_round(0))
        file = directory.path / "rounds.jsonl"
        before = file.read_bytes()
        with room_for(len(before) + more), pytest.raises(RunError) as caught:
            directory.append(make_round(1))
        assert str(caught.value) == (
            f"{directory.path}: cannot be written (File too large); make room or mend its permissions, "
            f"then go on with `harness run --resume {directory.path}`"
        )
        assert file.read_bytes() == before
        directory.append(make_round(1))
    assert load_run(directory.path).rounds == (make_round(0), make_round(1))


def test_a_disk_without_room_keeps_no_half_header_and_ends_no_run(tmp_path: Path) -> None:
    results = tmp_path / "results"
    advice = r"cannot be written \(File too large\); make room or choose another folder with --results"
    with room_for(10), pytest.raises(RunError, match=advice):
        RunDirectory.create(results, make_header())
    assert list(results.iterdir()) == []
    go_on = r"go on with `harness run --resume .*`$"
    with RunDirectory.create(results, make_header()) as directory, room_for(10), pytest.raises(RunError, match=go_on):
        directory.finish(lambda _: "a long report")
    assert sorted(path.name for path in directory.path.iterdir()) == ["run.json"]


def test_a_failure_that_is_not_the_cases_own_is_not_recorded(tmp_path: Path) -> None:
    def refuse() -> None:
        raise RunError("the cache is gone")

    with RunDirectory.create(tmp_path, make_header()) as directory:
        directory.before_failure = refuse
        directory.append(make_round(0))
        with pytest.raises(RunError, match="the cache is gone"):
            directory.append(BUILD)
    run = load_run(directory.path)
    assert (len(run.rounds), run.builds) == (1, ())
