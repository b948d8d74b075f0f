"""The untrusted half: what a pull request does, measured in a real repository with the real compiler."""

from __future__ import annotations

import json
import shutil
from typing import Any

import pytest

from harness.store.run_directory import load_run
from tests.workflows.conftest import SUITE, TUNED, Job, commit, git


def comparison(job: Job) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((job.checkout / job.outputs()["upload"] / "comparison.json").read_text())
    return found


def verdicts(job: Job) -> dict[str, str]:
    return {row["case"]: row["verdict"] for row in comparison(job)["rows"] if row["metric"] == "latency"}


def uploaded(job: Job) -> set[str]:
    return {file.name for file in (job.checkout / job.outputs()["upload"]).iterdir()}


# --- A pull request that makes code slower ---


def test_what_it_changes_is_measured_and_nothing_else(measured: Job) -> None:
    outputs = measured.outputs()
    assert (outputs["verdict"], outputs["status"]) == ("regressed", "1")
    assert verdicts(measured) == {TUNED: "regressed", "product/stock@cpu": "identical"}
    assert (measured.checkout / outputs["report"] / "rounds.jsonl").is_file()


def test_base_and_head_are_named_by_their_commits(measured: Job) -> None:
    found = comparison(measured)
    for side, revision in (("base", "HEAD^"), ("head", "HEAD")):
        digits = git(measured.checkout, "rev-parse", "--short=12", revision)
        assert found[side]["label"].startswith(f"harness-results/{side}-{digits}/")
    assert any(TUNED in note and "differently" in note for note in found["notes"])


def test_the_artifact_holds_figures_and_texts_for_people(measured: Job) -> None:
    assert uploaded(measured) == {"comparison.json", "comment.md", "report.md"}


def test_the_jobs_summary_shows_it(measured: Job) -> None:
    assert f"`{TUNED}`" in measured.summary()
    assert "1 regression" in measured.summary()


def test_the_checkout_stays_as_it_was(measured: Job) -> None:
    assert git(measured.checkout, "worktree", "list").count("\n") == 0
    assert git(measured.checkout, "status", "--porcelain") == "?? harness-results/"


# --- Other pull requests, with a harness that does as if ---


def test_base_and_head_are_compiled_then_compared_by_name(fake: Job) -> None:
    finished = fake.measure(HARNESS_ROW_BUDGET="", HARNESS_COMPILE_BUDGET="", HARNESS_CONTROLS="")
    assert finished.returncode == 0, finished.stderr
    base, head = (git(fake.checkout, "rev-parse", "--short=12", one) for one in ("HEAD^", "HEAD"))
    results = fake.checkout / "harness-results"
    assert fake.calls() == [
        ["(base)", "run", "small.toml", "--no-measure", "--results", f"{results}/base-{base}"],
        ["run", "small.toml", "--no-measure", "--results", f"{results}/head-{head}"],
        [
            "compare",
            f"harness-results/base-{base}/2026-0-small",
            f"harness-results/head-{head}/2026-0-small",
            "--by-name",
            *("--results", str(results), "--row-budget", "15", "--compile-budget", "30", "--controls", "2"),
        ],
        [
            *("report", f"{results}/2026-0-small-compare", "--format", "github"),
            *("--step-summary", str(fake.temp / "summary.md")),
            *("--out", f"{results}/upload/comment.md", "--full-out", f"{results}/upload/report.md"),
        ],
    ]


@pytest.mark.parametrize(
    ("status", "verdict"), [("0", "passed"), ("1", "regressed"), ("3", "failed"), ("4", "inconclusive")]
)
def test_the_verdict_is_told_and_the_job_goes_on(fake: Job, status: str, verdict: str) -> None:
    assert fake.measure(FAKE_COMPARE=status).returncode == 0
    assert fake.outputs() == {
        "report": "harness-results/2026-0-small-compare",
        "upload": "harness-results/upload",
        "verdict": verdict,
        "status": status,
    }


@pytest.mark.parametrize("side", ["FAKE_BASE", "FAKE_HEAD"])
def test_cases_that_fail_on_a_side_are_the_comparisons_affair(fake: Job, side: str) -> None:
    assert fake.measure(**{side: "3"}).returncode == 0
    assert uploaded(fake) == {"comparison.json", "comment.md", "report.md"}


def test_each_tree_is_prepared_before_it_is_compiled(fake: Job) -> None:
    prepare = "grep -o 'target-cpu=[a-z]*' small.toml >> $RUNNER_TEMP/prepared"
    assert fake.measure(HARNESS_PREPARE=prepare).returncode == 0
    assert (fake.temp / "prepared").read_text() == "target-cpu=host\ntarget-cpu=generic\n"


def test_a_tree_that_cannot_be_prepared_is_like_one_that_cannot_be_run(fake: Job) -> None:
    finished = fake.measure(
        HARNESS_PREPARE="if [ $(basename $PWD) = harness-base ]; then echo no such package; false; fi"
    )
    assert finished.returncode == 0, finished.stderr
    assert ": no such package; the head is measured alone\n" in finished.stderr


def test_patterns_go_to_every_command(fake: Job) -> None:
    assert fake.measure(HARNESS_FILTER="\nnet/*@cpu\n$(touch harmed)\n").returncode == 0
    for call in fake.calls()[:3]:
        at = call.index("--filter")
        assert call[at : at + 4] == ["--filter", "net/*@cpu", "--filter", "$(touch harmed)"]
    assert not (fake.checkout / "harmed").exists()


def test_used_twice_in_a_job_each_has_folders_of_its_own(fake: Job) -> None:
    for upload in ("harness-results/upload", "harness-results/upload-2"):
        shutil.rmtree(fake.checkout / "harness-results/2026-0-small-compare", ignore_errors=True)
        assert fake.measure().returncode == 0
        assert fake.outputs()["upload"] == upload


def test_two_releases_of_iree(fake: Job) -> None:
    assert fake.measure(HARNESS_BASE_TOOLCHAIN="3.12.0", HARNESS_HEAD_TOOLCHAIN="iree==3.13.0").returncode == 0
    assert fake.calls()[0][:5] == ["compare", "iree==3.12.0", "iree==3.13.0", "--suite", "small.toml"]


# --- Where there is nothing to compare with ---


def test_a_suite_that_the_base_does_not_have_is_measured_alone(job: Job) -> None:
    base = commit(job.checkout, small_toml="")
    commit(job.checkout, small_toml=SUITE)
    finished = job.measure(HARNESS_BASE=base, HARNESS_FILTER="product/stock@cpu")
    assert finished.returncode == 0, finished.stderr
    assert f"small.toml is not there in the base {base[:12]}; the head is measured alone" in finished.stderr
    assert job.summary().startswith(f"Nothing was compared: small.toml is not there in the base {base[:12]}\n\n")
    assert (job.outputs()["verdict"], job.outputs()["status"]) == ("passed", "0")
    assert uploaded(job) >= {"run.json", "builds.jsonl", "rounds.jsonl", "finished.json", "comment.md", "report.md"}
    assert load_run(job.checkout / job.outputs()["upload"]).rounds


@pytest.mark.parametrize(
    ("environment", "why"),
    [
        ({"FAKE_BASE": "2"}, "small.toml cannot be run in the base {base}: it is broken; mend it"),
        ({"FAKE_BASE": "70"}, "small.toml cannot be run in the base {base}: Kept somewhere"),
        ({"FAKE_COMPARE": "2"}, "base {base} and head cannot be compared: it is broken; mend it"),
        ({"HARNESS_BASE": "gone"}, "there is no commit to compare with: gone names no commit here"),
    ],
)
def test_so_is_one_that_cannot_be_compared(fake: Job, environment: dict[str, str], why: str) -> None:
    finished = fake.measure(**environment)
    assert finished.returncode == 0, finished.stderr
    said = why.format(base=git(fake.checkout, "rev-parse", "--short=12", "HEAD^"))
    assert f"\n{said}; the head is measured alone\n" in f"\n{finished.stderr}"
    assert fake.summary() == f"Nothing was compared: {said}\n\nthe report\n"
    assert fake.outputs()["report"] == "harness-results/alone/2026-0-small"
    assert uploaded(fake) == {"run.json", "builds.jsonl", "finished.json", "comment.md", "report.md"}


# --- Where there is nothing to report ---


@pytest.mark.parametrize(
    ("environment", "says"),
    [
        (
            {"HARNESS_SUITE": "other.toml"},
            "suite other.toml: there is no such file in this checkout; correct the input",
        ),
        ({"HARNESS_SUITE": "$(touch harmed)"}, "suite $(touch harmed): there is no such file in this checkout"),
        ({"FAKE_HEAD": "2"}, "it is broken; mend it"),
        ({"FAKE_RUNS": "2"}, "small.toml makes 2 runs; give one suite, not a list of them"),
        (
            {"HARNESS_BASE_TOOLCHAIN": "3.13.0"},
            "base-toolchain and head-toolchain belong together; give both or neither",
        ),
        (
            {"HARNESS_BASE_TOOLCHAIN": "1", "HARNESS_HEAD_TOOLCHAIN": "2", "FAKE_COMPARE": "2"},
            "it is broken; mend it",
        ),
    ],
)
def test_the_job_fails_with_a_sentence(fake: Job, environment: dict[str, str], says: str) -> None:
    finished = fake.measure(**environment)
    assert finished.returncode == 2
    assert finished.stderr.strip().splitlines()[-1].startswith(says), finished.stderr
    assert not (fake.temp / "output").exists()
    assert not (fake.checkout / "harmed").exists()
