"""`harness run`, from the command line to what it leaves on disk, with the real compiler and runtime."""

import os
import re
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.records.case import Gate
from harness.store.run_directory import load_run
from tests.end_to_end.command import Harness, document, timed
from tests.end_to_end.suites import BUILDER, DOUBLE, GPU, PARAMS, PIPELINE

Change = Callable[..., Harness]
STOCK, CHANNELS_LAST, INERT = "tiny/stock@cpu", "tiny/channels-last@cpu", "tiny/inert@cpu"
NO_SUCH_PASS = (f"{PIPELINE}(func.func(", f"{PIPELINE}(util.func(no-such-pass,")


def test_a_run_measures_every_distinct_case_and_keeps_everything_a_number_needs(small_run: Harness) -> None:
    run = small_run.run()
    assert run.finished
    assert run.header.floors == {"latency": 0.02}
    assert run.header.gates == (Gate(name="copies", metric="copies", cases="*@cpu"),)
    assert [case.name for case in run.header.cases] == [STOCK, CHANNELS_LAST, INERT]
    builds = {build.case: build for build in run.builds}
    for build in builds.values():
        assert build.command[:4] == ("iree-compile", "model.mlir", "-o", "module.vmfb")
        assert build.failure is None and build.compile_ns and build.sizes
        assert build.statistics and build.statistics.dispatches > 0
    assert builds[INERT].module_sha256 == builds[STOCK].module_sha256
    assert {check.case: check.failure for check in run.checks} == dict.fromkeys(builds)
    assert timed(run) == {STOCK, CHANNELS_LAST}  # the inert one is known without measuring
    assert {one_round.generation for one_round in run.rounds} == {0, 1, 2}
    assert {reference.case for reference in run.references} == timed(run)
    assert all(len(reference.real_time_ns) >= 3 for reference in run.references)
    assert {"machine", "cpu", "memory", "load", "process"} <= run.header.environment.keys()
    assert run.header.environment["devices"] == {"cpu": "this CPU, on the thread that calls"}
    content = b"".join(file.read_bytes() for file in small_run.runs()[0].rglob("*") if file.is_file())
    assert str(small_run.folder).encode() not in content, "no path of this machine is kept"
    assert f"{Path.home()}/".encode() not in content


def test_the_report_is_printed_again_in_every_format(small_run: Harness) -> None:
    assert small_run("report", "latest").stdout == (small_run.folder / "printed.txt").read_text()
    assert "channels-last" in small_run("report", "latest", "--format", "markdown").stdout
    assert len(document(small_run("report", "latest", "--format", "json"))["rows"]) == 3
    assert len(small_run("report", "latest", "--format", "csv").stdout.splitlines()) == 1 + 3


def test_the_commands_in_the_report_work_as_they_are(small_copy: Harness) -> None:
    rows = document(small_copy("report", "latest", "--format", "json"))["rows"]
    (row,) = [row for row in rows if row["variant"] == "channels-last"]
    done = small_copy.shell("\n".join(row["repro"]))
    assert done.returncode == 0, done.stderr
    assert "BM_main" in done.stdout


def test_a_run_is_held_against_the_machine_it_was_made_on(small_run: Harness) -> None:
    (work,), (peak,) = small_run.run().work, small_run.run().peaks
    pixels, products = 4 * 4, 9 * sum((8 + 4 * layer) * (4 if layer < 4 else 8) for layer in range(5))
    assert 2 * pixels * products < work.operations < 2.2 * pixels * products
    assert 0 < work.compulsory_bytes <= work.footprint_bytes
    assert (peak.device, peak.threads, peak.failure) == ("cpu", 1, None)
    rows = {row["variant"]: row for row in document(small_run("report", "latest", "--format", "json"))["rows"]}
    assert 0 < rows["stock"]["share_of_roof"] < 1.5
    assert rows["inert"]["operations_per_s"] == rows["stock"]["operations_per_s"]


def test_a_case_that_does_not_compile_fails_and_the_others_are_measured(suite_with: Change) -> None:
    """Though the compiler exits with 0."""
    harness = suite_with(NO_SUCH_PASS)
    ended = harness("run", "small.toml")
    (failed,) = [build for build in harness.run().builds if build.failure]
    assert (ended.returncode, failed.case) == (3, INERT)
    (log,) = (harness.runs()[0] / "logs").iterdir()
    assert "no-such-pass" in ended.stdout and "no-such-pass" in log.read_text()
    assert timed(harness.run()) == {STOCK, CHANNELS_LAST}


@pytest.mark.vulkan
def test_cpu_and_vulkan_in_one_run(suite_with: Change) -> None:
    sums = 'mlir = "sums.mlir"\nfunction = "main"\ninputs = [{ shape = [4] }]\n'
    harness = suite_with((f"{BUILDER}\n{PARAMS}", sums), ("[measure]", f"{GPU}\n[measure]"))
    (harness.folder / "sums.mlir").write_text(DOUBLE)
    ended = harness("run", "small.toml", "--generations", "1", "--filter", "*/stock@*", "--filter", "*/inert@*")
    assert ended.returncode == 0, ended.stdout + ended.stderr
    run = harness.run()
    assert {one_round.group for one_round in run.rounds} == {"tiny@cpu", "tiny@gpu"}
    against = {check.case: check.against for check in run.checks}
    assert len(set(against.values())) == 1  # a driver that computes something else is noticed


def test_a_second_run_takes_its_modules_from_the_cache_and_a_filter_keeps_the_baseline(small_copy: Harness) -> None:
    ended = small_copy("run", "small.toml", "--no-measure", "--filter", "*/channels-last@*")
    second = load_run(small_copy.runs()[-1])
    assert ended.returncode == 0, ended.stderr
    assert {case.variant for case in second.header.cases} == {"stock", "channels-last"}
    assert all(build.cached for build in second.builds)


@pytest.mark.parametrize("after", ["builds.jsonl", "references.jsonl", "rounds.jsonl"])
def test_a_run_that_was_killed_goes_on_where_it_stopped(harness: Harness, after: str) -> None:
    _, path = harness.killed(signal.SIGKILL, after, "run", "small.toml", "--budget", "1")
    before = load_run(path)
    assert not before.finished
    ended = harness("run", "--resume", str(path))
    assert ended.returncode == 0, ended.stderr
    run = load_run(path)
    assert run.finished
    for records in ("builds", "checks", "references", "rounds"):
        earlier = getattr(before, records)
        assert getattr(run, records)[: len(earlier)] == earlier, "nothing is repeated"
    for each_once in (run.builds, run.checks):
        assert sorted(one.case for one in each_once) == [CHANNELS_LAST, INERT, STOCK]
    assert sorted(one.case for one in run.references) == [CHANNELS_LAST, STOCK]
    assert {one_round.generation for one_round in run.rounds} == {0, 1, 2}


def test_an_interrupted_run_says_how_to_go_on(harness: Harness) -> None:
    ended, path = harness.killed(signal.SIGINT, "rounds.jsonl", "run", "small.toml", "--budget", "60")
    assert ended.returncode == 130
    assert "This run is not finished" in ended.stdout
    assert f"harness run --resume {path.relative_to(harness.folder)}" in ended.stderr
    assert not load_run(path).finished


@pytest.mark.parametrize(
    ("file", "old", "new", "words"),
    [
        ("run.json", 'compiler_sha256": "', 'compiler_sha256": "0', "this run began with another build of IREE "),
        (
            "../../small.toml",
            "width = 4",
            "width = 5",
            "its cases are no longer those of small.toml with this toolchain",
        ),
        (
            "../../small.toml",
            "budget_s = 0.3",
            "budget_s = 0.4",
            "small.toml has changed since this run began; start a",
        ),
    ],
    ids=["another compiler", "other cases", "another suite"],
)
def test_a_run_that_cannot_go_on(small_copy: Harness, file: str, old: str, new: str, words: str) -> None:
    (path,) = small_copy.runs()
    text = (path / file).read_text()
    assert old in text
    (path / file).write_text(text.replace(old, new))
    (path / "finished.json").unlink()
    ended = small_copy("run", "--resume", str(path))
    assert (ended.returncode, ended.stdout) == (2, "")
    assert words in ended.stderr


def test_a_check_is_told_and_every_later_report_carries_it(
    harness: Harness, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Of its own is what the check leaves; what was compiled is everybody's.
    cache, shared = tmp_path / "cache", Path(os.environ["HARNESS_CACHE"])
    cache.mkdir()
    for name in ("builds", "ir", "models", "peaks", "toolchains"):
        (shared / name).mkdir(parents=True, exist_ok=True)
        (cache / name).symlink_to(shared / name)
    monkeypatch.setenv("HARNESS_CACHE", str(cache))
    one = ("small.toml", "--filter", "*/stock@*")
    checked = harness("selfcheck", *one, "--rows", "2", "--row-budget", "1").words
    said = re.search(r"on this machine: (\d of 2 A/A rows flagged \(at most \d+ % by the 95 % bound\); dete)", checked)
    assert said is not None
    assert said[1] in harness("run", *one).words
