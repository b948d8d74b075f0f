"""What is kept of a bisect, and that a line that was cut short costs one measurement and nothing else."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from harness.errors import RunError
from harness.records.bisection import Bisection, Trial
from harness.report.bisect_page import bisect_json
from harness.store.kinds import BISECT
from harness.store.search_directory import TRIALS_FILE, BegunBisect, BisectDirectory, KeptSentence, earlier_bisect
from tests.builders import make_bisection

BEGUN = BegunBisect(
    created="2026-11-22T03:50:12+00:00",
    machine="a machine",
    noise=0.01,
    options={"suite": "x.toml"},
    command=("harness", "bisect"),
    history=("3.6.0", "3.7.0"),
)
TRIAL = Trial(base="3.6.0", head="3.7.0", floor=0.1 + 0.2, verdict="unchanged", ratio=1.0001)
OPEN = replace(TRIAL, head="3.8.0", verdict="inconclusive")


@pytest.fixture
def directory(tmp_path: Path) -> BisectDirectory:
    return BisectDirectory.create(tmp_path / "results", "small", BEGUN)


def end(directory: BisectDirectory, *trials: Trial) -> Bisection:
    """Come to the end with these measurements."""
    with directory:
        for trial in trials:
            directory.keep_trial(trial)
        found = make_bisection(id=directory.path.name, trials=trials, attempt=directory.begun.attempt)
        directory.finish(bisect_json(found), "the answer")
    return found


def test_what_was_kept_is_there_again(directory: BisectDirectory) -> None:
    with directory:
        directory.keep_run("3.6.0", Path("results/a-run"))
        directory.keep_sentence("3.6.0..3.7.0", KeptSentence(text="It tiles otherwise.", explanation="an-id"))
        directory.keep_trial(TRIAL)
        assert directory.answer(TRIAL.key) == TRIAL
    assert directory.path.name == "20261122-035012-small-bisect"
    with BisectDirectory.resume(directory.path) as again:
        assert again.begun == directory.begun
        assert again.begun.runs == {"3.6.0": "results/a-run"}
        assert again.kept == [TRIAL]


def test_a_line_that_was_cut_short_is_measured_again(directory: BisectDirectory) -> None:
    with directory:
        directory.keep_trial(TRIAL)
    file = directory.path / TRIALS_FILE
    file.write_bytes(file.read_bytes() + b'{"base": "3.6')
    with BisectDirectory.resume(directory.path) as again:
        assert again.kept == [TRIAL]
        again.keep_trial(OPEN)
    with BisectDirectory.resume(directory.path) as last:
        assert last.kept == [TRIAL, OPEN]


def test_what_stayed_open_is_measured_again_once_the_bisect_had_come_to_its_end(directory: BisectDirectory) -> None:
    with directory:
        directory.keep_trial(OPEN)
    with BisectDirectory.resume(directory.path) as killed:
        assert killed.answer(OPEN.key) == OPEN, "it was stopped, and has not come to its end"
    end(directory, TRIAL, OPEN)
    with BisectDirectory.resume(directory.path) as again:
        assert (again.answer(TRIAL.key), again.answer(OPEN.key)) == (TRIAL, None)
        kept = again.keep_trial(OPEN)
        assert kept.attempt == 1
    with BisectDirectory.resume(directory.path) as killed:
        assert killed.answer(OPEN.key) == kept, "it was measured in this attempt"
        assert killed.kept == [OPEN, TRIAL, OPEN, kept], "what was measured stays there"


def test_one_harness_at_a_time_writes_it(directory: BisectDirectory) -> None:
    with directory, pytest.raises(RunError, match="another harness is writing this bisect"):
        BisectDirectory.resume(directory.path).__enter__()


def test_what_cannot_go_on_is_said(directory: BisectDirectory, tmp_path: Path) -> None:
    found = end(directory, TRIAL)
    assert BISECT.load(directory.path) == found
    with pytest.raises(RunError, match=r"this bisect has its answer; `harness report \S+` prints it"):
        BisectDirectory.resume(directory.path)
    (directory.path / BISECT.file).write_text('{"schema_version": 1}')
    with pytest.raises(RunError, match=r"bisection\.json: is damaged at id; make the bisect again"):
        BISECT.load(directory.path)
    (directory.path / BISECT.file).unlink()
    (directory.path / TRIALS_FILE).write_text("nonsense\n")
    with pytest.raises(RunError, match=r"line 1 is damaged \(.*\); remove it, and what it says is measured again"):
        BisectDirectory.resume(directory.path).__enter__()
    with pytest.raises(RunError, match="is no bisect that can go on"):
        BisectDirectory.resume(tmp_path)
    (directory.path / "begun.json").write_text("{}")
    with pytest.raises(RunError, match=r"begun\.json: is damaged; begin the bisect again"):
        BisectDirectory.resume(directory.path)


def test_an_earlier_one_with_the_same_options_is_found(directory: BisectDirectory) -> None:
    results, asked = directory.path.parent, {"suite": "x.toml"}
    with directory:
        pass
    assert earlier_bisect(results, asked, "a machine") == directory.path
    assert earlier_bisect(results, {"suite": "y.toml"}, "a machine") is None
    assert earlier_bisect(results, asked, "another machine") is None, "it cannot go on there"
    directory.finish(bisect_json(make_bisection()), "")
    assert earlier_bisect(results, asked, "another machine") == directory.path
    directory.finish(bisect_json(make_bisection(finished=False)), "")
    assert earlier_bisect(results, asked, "another machine") is None, "it cannot go on there"
    (directory.path / BISECT.begun_file).write_text("{")
    assert earlier_bisect(results, asked, "a machine") is None
