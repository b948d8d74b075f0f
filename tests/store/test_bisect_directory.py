"""What is kept of a bisect, and that a line that was cut short costs one measurement and nothing else."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from harness.errors import RunError, UsageError
from harness.records.bisection import Trial
from harness.store.bisect_directory import (
    BEGUN_FILE,
    TRIALS_FILE,
    BegunBisect,
    BisectDirectory,
    earlier_bisect,
    find_bisect,
)

BEGUN = BegunBisect(
    created="2026-11-22T03:50:12+00:00",
    machine="a machine",
    noise=0.01,
    options={"suite": "x.toml"},
    command=("harness", "bisect"),
    history=("3.6.0", "3.7.0"),
)
TRIAL = Trial(base="3.6.0", head="3.7.0", floor=0.1 + 0.2, verdict="unchanged", ratio=1.0001)


@pytest.fixture
def directory(tmp_path: Path) -> BisectDirectory:
    return BisectDirectory.create(tmp_path / "results", "small", BEGUN)


def test_what_was_kept_is_there_again(directory: BisectDirectory) -> None:
    with directory:
        directory.keep_run("3.6.0", Path("results/a-run"))
        directory.keep_trial(TRIAL)
        assert directory.trials == {TRIAL.key: TRIAL}
    assert directory.path.name == "20261122-035012-small-bisect"
    with BisectDirectory.resume(directory.path) as again:
        assert again.begun == replace(BEGUN, runs={"3.6.0": "results/a-run"})
        assert again.trials == {TRIAL.key: TRIAL}


def test_a_line_that_was_cut_short_is_measured_again(directory: BisectDirectory) -> None:
    other = replace(TRIAL, head="3.8.0")
    with directory:
        directory.keep_trial(TRIAL)
    file = directory.path / TRIALS_FILE
    file.write_bytes(file.read_bytes() + b'{"base": "3.6')
    with BisectDirectory.resume(directory.path) as again:
        assert list(again.trials.values()) == [TRIAL]
        again.keep_trial(other)
    with BisectDirectory.resume(directory.path) as last:
        assert list(last.trials.values()) == [TRIAL, other]


def test_one_harness_at_a_time_writes_it(directory: BisectDirectory) -> None:
    with directory, pytest.raises(RunError, match="another harness is writing this bisect"):
        BisectDirectory.resume(directory.path).__enter__()


def test_what_cannot_go_on_is_said(directory: BisectDirectory, tmp_path: Path) -> None:
    with directory:
        directory.keep_trial(TRIAL)
    (directory.path / TRIALS_FILE).write_text("nonsense\n")
    with pytest.raises(RunError, match="line 1 is damaged; remove it, and what it says is measured again"):
        BisectDirectory.resume(directory.path).__enter__()
    with pytest.raises(RunError, match="is no bisect that can go on"):
        BisectDirectory.resume(tmp_path)
    (directory.path / "begun.json").write_text("{}")
    with pytest.raises(RunError, match=r"begun\.json: is damaged; begin the bisect again"):
        BisectDirectory.resume(directory.path)
    directory.finish("{}", "the answer")
    with pytest.raises(RunError, match=r"this bisect is finished; .*report\.md has its answer"):
        BisectDirectory.resume(directory.path)


def test_a_user_names_it_by_path_by_name_or_as_the_latest(directory: BisectDirectory, tmp_path: Path) -> None:
    results = tmp_path / "results"
    later = BisectDirectory.create(results, "small", replace(BEGUN, created="2026-11-23T03:50:12+00:00"))
    assert find_bisect(directory.path, results) == directory.path
    assert find_bisect(Path(directory.path.name), results) == directory.path
    assert find_bisect(Path("latest"), results) == later.path
    later.finish("{}", "")
    assert find_bisect(Path("latest"), results) == directory.path
    with pytest.raises(UsageError, match=r"nowhere: .*results has no bisect that it could mean"):
        find_bisect(Path("nowhere"), results)
    with pytest.raises(UsageError, match="latest: "):
        find_bisect(Path("latest"), tmp_path / "none")


def test_an_earlier_one_with_the_same_options_is_found(directory: BisectDirectory) -> None:
    results, asked = directory.path.parent, {"suite": "x.toml"}
    with directory:
        pass
    assert earlier_bisect(results, asked, "a machine") == directory.path
    assert earlier_bisect(results, {"suite": "y.toml"}, "a machine") is None
    assert earlier_bisect(results, asked, "another machine") is None, "it cannot go on there"
    directory.finish("{}", "")
    assert earlier_bisect(results, asked, "another machine") == directory.path
    (directory.path / BEGUN_FILE).write_text("{")
    assert earlier_bisect(results, asked, "a machine") is None
