"""`harness run`, from the command line to what it leaves on disk, with the real compiler and runtime."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.records.case import Gate
from harness.records.run import Run
from harness.store.run_directory import load_run
from tests.end_to_end.conftest import Harness

_GPU = """
[devices.gpu]
uri = "vulkan"
backend = "vulkan-spirv"
compile_flags = ["--iree-hal-target-device=vulkan"]
"""
_LIMITS = """
[floors]
latency = 0.02
[gates.copies]
metric = "copies"
cases = "*@cpu"
"""
_PIPELINE = "--iree-preprocessing-pass-pipeline=builtin.module"


def test_a_run_measures_every_distinct_case_and_keeps_everything_a_number_needs(harness: Harness) -> None:
    with (harness.folder / "small.toml").open("a") as suite:
        suite.write(_LIMITS)
    finished = harness("run", "small.toml")
    assert finished.returncode == 0, finished.stderr
    run = harness.run()
    assert run.finished
    assert run.header.floors == {"latency": 0.02}
    assert run.header.gates == (Gate(name="copies", metric="copies", cases="*@cpu"),)
    assert [case.name for case in run.header.cases] == ["tiny/stock@cpu", "tiny/channels-last@cpu", "tiny/inert@cpu"]
    builds = {build.case: build for build in run.builds}
    for build in builds.values():
        assert build.failure is None
        assert build.command[:4] == ("iree-compile", "model.mlir", "-o", "module.vmfb")
        assert build.compile_ns
        assert build.sizes
        assert build.statistics
        assert build.statistics.dispatches > 0
    assert builds["tiny/inert@cpu"].module_sha256 == builds["tiny/stock@cpu"].module_sha256
    assert {check.case: check.failure for check in run.checks} == dict.fromkeys(builds)
    timed = {turn.case for one in run.rounds for turn in one.turns}
    assert timed == {"tiny/stock@cpu", "tiny/channels-last@cpu"}  # the inert one is known without measuring
    assert {one.generation for one in run.rounds} == {0, 1, 2}
    assert {reference.case for reference in run.references} == timed
    assert all(len(reference.real_time_ns) >= 3 for reference in run.references)
    assert {"machine", "cpu", "memory", "load", "process"} <= run.header.environment.keys()
    assert run.header.environment["devices"] == {"cpu": "this CPU, on the thread that calls"}
    assert "inert" in finished.stdout


def test_no_path_of_this_machine_is_kept(harness: Harness) -> None:
    harness("run", "small.toml")
    (path,) = harness.runs()
    for file in path.rglob("*"):
        if file.is_file():
            text = file.read_text()
            assert str(harness.folder) not in text
            assert str(Path.home()) + "/" not in text


def test_json_on_stdout_is_one_document_and_nothing_else(harness: Harness) -> None:
    finished = harness("run", "small.toml", "--format", "json")
    document = json.loads(finished.stdout)
    assert document["schema_version"] == 1
    assert len(document["rows"]) == 3
    again = harness("report", str(harness.runs()[0]), "--format", "json")
    assert json.loads(again.stdout) == document


@pytest.mark.parametrize("output_format", ["terminal", "markdown", "csv"])
def test_a_report_is_printed_again_in_every_format(harness: Harness, output_format: str) -> None:
    harness("run", "small.toml")
    (path,) = harness.runs()
    printed = harness("report", str(path), "--format", output_format)
    assert printed.returncode == 0
    assert "channels-last" in printed.stdout
    if output_format == "csv":
        assert len(list(csv.DictReader(io.StringIO(printed.stdout)))) == 3


def test_the_commands_in_the_report_work_as_they_are(harness: Harness) -> None:
    harness("run", "small.toml")
    (path,) = harness.runs()
    rows = json.loads(harness("report", str(path), "--format", "json").stdout)["rows"]
    (row,) = [row for row in rows if row["variant"] == "channels-last"]
    script = "set -e\n" + "\n".join(row["repro"])
    tools = Path(harness.command()[0]).parent
    environment = {**os.environ, "PATH": f"{tools}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(["sh", "-c", script], cwd=harness.folder, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    assert "BM_main" in done.stdout


def test_a_pipeline_that_the_compiler_cannot_parse_fails_its_case_though_the_compiler_exits_with_0(
    suite_with: Callable[..., Harness],
) -> None:
    harness = suite_with((f"{_PIPELINE}(func.func(", f"{_PIPELINE}(util.func(no-such-pass,"))
    finished = harness("run", "small.toml")
    assert finished.returncode == 3
    (failed,) = [build for build in harness.run().builds if build.failure]
    assert failed.case == "tiny/inert@cpu"
    assert failed.failure
    assert "though it exited with status 0" in failed.failure.message
    assert "'no-such-pass' does not refer to a registered pass" in failed.failure.message
    assert "no-such-pass" in finished.stdout
    timed = {turn.case for one in harness.run().rounds for turn in one.turns}
    assert timed == {"tiny/stock@cpu", "tiny/channels-last@cpu"}
    (log,) = (harness.runs()[0] / "logs").iterdir()
    assert "no-such-pass" in log.read_text()


def test_an_expected_failure_is_shown_and_is_no_failure(suite_with: Callable[..., Harness]) -> None:
    harness = suite_with(
        (f"{_PIPELINE}(func.func(", f"{_PIPELINE}(util.func(no-such-pass,"),
        append='[[expect]]\ncases = "tiny/inert@cpu"\nfails = "does not refer to a registered pass"\n',
    )
    finished = harness("run", "small.toml")
    assert finished.returncode == 0
    assert "expected" in finished.stdout


def test_a_failure_with_other_words_than_the_expected_ones_is_a_failure(suite_with: Callable[..., Harness]) -> None:
    harness = suite_with(
        (f"{_PIPELINE}(func.func(", f"{_PIPELINE}(util.func(no-such-pass,"),
        append='[[expect]]\ncases = "tiny/inert@cpu"\nfails = "something else"\n',
    )
    assert harness("run", "small.toml").returncode == 3


def test_wrong_outputs_fail_the_case_before_it_is_timed(suite_with: Callable[..., Harness]) -> None:
    harness = suite_with(
        (
            "params = { height = 4, width = 4, channels = 8, growth = 4 }",
            "params = { height = 4, width = 4, channels = 8, growth = 4 }\ntolerance = { relative = 0, absolute = 0 }",
        )
    )
    finished = harness("run", "small.toml")
    assert finished.returncode == 3
    (wrong,) = [check for check in harness.run().checks if check.failure]
    assert wrong.case == "tiny/channels-last@cpu"  # it adds in another order, and the tolerance is zero
    assert wrong.failure
    assert re.search(r"its output 0 differs in \d+ of 128 values, worst at \[", wrong.failure.message)
    timed = {turn.case for one in harness.run().rounds for turn in one.turns}
    assert timed == {"tiny/stock@cpu"}


def test_a_device_that_is_not_there_is_skipped_with_the_reason_and_what_to_do(
    suite_with: Callable[..., Harness],
) -> None:
    harness = suite_with(("[measure]", f"{_GPU}\n[measure]"))
    without_driver = {**os.environ, "VK_DRIVER_FILES": str(harness.folder / "none.json")}
    finished = subprocess.run(
        harness.command("run", "small.toml"),
        cwd=harness.folder,
        capture_output=True,
        text=True,
        env=without_driver,
        timeout=240,
    )
    assert finished.returncode == 0, finished.stderr
    assert "no Vulkan device" in finished.stdout
    assert "mesa-vulkan-drivers" in finished.stdout


def test_nothing_measured_is_never_success(suite_with: Callable[..., Harness]) -> None:
    harness = suite_with(('uri = "local-sync"', 'uri = "cuda"'), ("pin = true", ""))
    finished = harness("run", "small.toml")
    if "skipped" not in finished.stdout:
        pytest.skip("there is a CUDA device here")
    assert finished.returncode == 3


@pytest.mark.vulkan
def test_cpu_and_vulkan_in_one_run(suite_with: Callable[..., Harness]) -> None:
    harness = suite_with(("[measure]", f"{_GPU}\n[measure]"))
    finished = harness("run", "small.toml")
    assert finished.returncode == 0, finished.stdout + finished.stderr
    run = harness.run()
    assert {one.group for one in run.rounds} == {"tiny@cpu", "tiny@gpu"}
    against = {check.case: check.against for check in run.checks}
    assert against["tiny/stock@gpu"] == "tiny/stock@cpu"  # a driver that computes something else is noticed
    assert against["tiny/channels-last@gpu"] == "tiny/stock@gpu"


def test_a_second_run_takes_its_modules_from_the_cache(harness: Harness) -> None:
    harness("run", "small.toml")
    harness("run", "small.toml")
    second = load_run(harness.runs()[1])
    assert all(build.cached for build in second.builds)


def test_a_filter_keeps_the_baseline(harness: Harness) -> None:
    harness("run", "small.toml", "--filter", "*/channels-last@*")
    assert {case.variant for case in harness.run().header.cases} == {"stock", "channels-last"}


@pytest.mark.parametrize("after", ["builds.jsonl", "checks.jsonl", "references.jsonl", "rounds.jsonl"])
def test_a_run_that_was_killed_goes_on_where_it_stopped(harness: Harness, after: str) -> None:
    path, before = killed_run(harness, after, "--budget", "6")
    finished = harness("run", "--resume", str(path))
    assert finished.returncode == 0, finished.stderr
    run = load_run(path)
    assert run.finished
    for records, earlier in (
        (run.builds, before.builds),
        (run.checks, before.checks),
        (run.references, before.references),
        (run.rounds, before.rounds),
    ):
        assert records[: len(earlier)] == earlier  # not a line lost, and none repeated
    assert len({build.case for build in run.builds}) == len(run.builds) == 3
    assert len({check.case for check in run.checks}) == len(run.checks) == 3
    assert len({reference.case for reference in run.references}) == len(run.references) == 2
    assert {one.generation for one in run.rounds} == {0, 1, 2}


def killed_run(harness: Harness, after: str, *arguments: str) -> tuple[Path, Run]:
    """A run of the small suite that was killed once a file of it was there, and what it holds."""
    child = subprocess.Popen(
        harness.command("run", "small.toml", *arguments),
        cwd=harness.folder,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    wait_for(lambda: bool(list(harness.folder.glob(f"results/*/{after}"))))
    child.send_signal(signal.SIGKILL)
    child.wait()
    (path,) = harness.runs()
    before = load_run(path)
    assert not before.finished
    return path, before


def wait_for(condition: Callable[[], bool], limit_s: float = 120) -> None:
    deadline = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < deadline, "it never came to that"
        time.sleep(0.01)


def test_an_interrupted_run_says_how_to_go_on_and_leaves_no_process_behind(harness: Harness) -> None:
    child = subprocess.Popen(
        harness.command("run", "small.toml", "--budget", "60"),
        cwd=harness.folder,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        # Some shells start background jobs with SIGINT ignored, and children inherit that.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    wait_for(lambda: bool(list(harness.folder.glob("results/*/rounds.jsonl"))))
    child.send_signal(signal.SIGINT)
    _, stderr = child.communicate(timeout=60)
    assert child.returncode == 130
    assert "Traceback" not in stderr
    assert "--resume" in stderr
    assert not load_run(harness.runs()[0]).finished


def test_a_run_that_times_nothing_is_compiled_checked_and_good_for_comparing(harness: Harness) -> None:
    finished = harness("run", "small.toml", "--no-measure")

    run = harness.run()
    assert finished.returncode == 0, finished.stderr
    assert (run.finished, run.rounds, len(run.builds), len(run.checks)) == (True, (), 3, 3)
    assert "3 compiled and right, not timed" in finished.stdout
    assert "leave out no_measure" in harness("run", "--resume", "results/none", "--no-measure").stderr
