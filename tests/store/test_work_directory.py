"""What commands keep of comparisons, explanations, bisects and tunings while they go on, and at their end."""

import json
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path

import pytest

from harness.cli import run_command_line
from harness.errors import HarnessError, RunError
from harness.progress import Progress
from harness.records.bisection import Trial
from harness.records.explanation import Explanation
from harness.report import render
from harness.report.data import document_of
from harness.report.rows import rows_of
from harness.store.folders import BISECT, EXPLANATION, TUNING, find_folder, load_result, tunings_in
from harness.store.tables import NOTHING_YET, Tables
from harness.store.work_directory import (
    RECORD_FILE,
    VARIANT_FILE,
    Begun,
    BisectDirectory,
    ComparisonDirectory,
    ExplanationDirectory,
    KeptSentence,
    TuneDirectory,
    earlier_bisect,
)
from tests.builders import make_bisection, make_round
from tests.report.explanations import make_explanation
from tests.report.tunings import make_tuning
from tests.store.made import fates, merged

NOW = datetime(2026, 11, 22, 14, 0, 0, tzinfo=timezone.utc)
BEGUN = Begun(
    created="2026-11-22T03:50:12+00:00",
    machine="a machine",
    noise=0.01,
    options={"suite": "x.toml", "model": "rdb", "without": ("tuned*",)},
    command=("harness", "bisect"),
    history=("3.6.0", "3.7.0"),
)
ROW = "net/fast@cpu"


def a_comparison(results: Path, begun: Begun | None = None) -> ComparisonDirectory:
    return ComparisonDirectory.create(results, "small", NOW, begun)


def keep(results: Path) -> tuple[Path, Explanation]:
    """A finished explanation."""
    with ExplanationDirectory.create(results, "esrgan", NOW) as directory:
        explanation = replace(make_explanation(), id=directory.path.name)
        directory.finish(document_of(explanation), render(explanation, "markdown", full=True))
    return directory.path, explanation


def test_one_that_goes_on_has_what_ended_and_no_round_of_what_was_cut_short(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt), a_comparison(tmp_path, BEGUN) as directory:
        for generation in (0, 1):
            directory.keep_round(replace(make_round(0), group=ROW, generation=generation))
        directory.keep_generation(ROW, "latency", 0, "modules", {"log_ratio": 0.1 + 0.2})
        raise KeyboardInterrupt
    assert directory.command_to_go_on == f"harness compare --resume {directory.path}"
    with pytest.raises(RunError, match="has not come to its end; go on with `harness compare --resume"):
        load_result(directory.path)
    with ComparisonDirectory.resume(directory.path) as again:
        assert again.generations(ROW, "latency", "modules", dict[str, float]) == {0: {"log_ratio": 0.1 + 0.2}}
        assert again.generations(ROW, "compile-time", "others", dict[str, float]) == {}
        assert [kept.generation for kept in again.rounds] == [0]
        again.finish("{}", "report\n")
    files = {file.name: file.read_text() for file in again.path.iterdir()}
    assert files.keys() == {"rounds.jsonl", "comparison.json", "report.md", "finished.json"}
    assert (files["comparison.json"], files["report.md"]) == ("{}", "report\n")
    with pytest.raises(RunError, match="this comparison is finished and is not written again; start a new one"):
        ComparisonDirectory.resume(directory.path)


def test_of_one_that_never_began_nothing_is_left_and_what_was_measured_stays(tmp_path: Path) -> None:
    with pytest.raises(RunError), a_comparison(tmp_path, BEGUN) as directory:
        directory.keep_run("base", tmp_path)
        raise RunError("the modules are gone")
    assert not list(tmp_path.iterdir())
    with pytest.raises(KeyboardInterrupt), a_comparison(tmp_path) as directory:
        directory.keep_round(make_round(0))
        raise KeyboardInterrupt
    assert [file.name for file in directory.path.iterdir()] == ["rounds.jsonl"]


def test_a_folder_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    directory = a_comparison(tmp_path)
    directory.path.rmdir()
    with pytest.raises(RunError, match="was removed while it was written; begin it again"):
        directory.keep_round(make_round(0))

    def fail(path: Path, content: bytes) -> None:
        if path.name == EXPLANATION.file:
            raise OSError(28, "No space left on device")
        path.write_bytes(content)

    monkeypatch.setattr("harness.store.run_directory.write_atomically", fail)
    with pytest.raises(RunError, match=r"cannot be written \(No space left on device\); make room or choose another"):
        keep(tmp_path)
    assert not list(tmp_path.iterdir())


def test_an_explanation_is_found_merged_and_listed_and_has_no_rows(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    folder, explanation = keep(tmp_path / "there")
    assert folder.name == "20261122-140000-esrgan-explain"
    assert find_folder(tmp_path / "there" / "latest", kind="explanation") == folder
    here = tmp_path / "here"
    assert fates(merged(tmp_path / "there", into=here)) == {folder.name: "copied"}
    copy = here / folder.name
    assert EXPLANATION.load(copy) == explanation
    with Tables(str(here), rows_of, Progress()) as tables:
        assert tables.notes == [NOTHING_YET]
    assert run_command_line(["results", "list", str(here)]) == 0
    listed = capsys.readouterr().out
    assert folder.name in listed and explanation.case in listed
    assert listed.endswith("\n1 explanation.\n")
    (copy / EXPLANATION.file).write_text("{}")
    assert run_command_line(["results", "list", str(here), "--format", "json"]) == 0
    printed = capsys.readouterr()
    assert json.loads(printed.out)["explanations"] == []
    assert "explanation.json: is damaged; make the explanation again; it is left out" in printed.err


def test_an_explanation_that_was_stopped_is_known(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt), ExplanationDirectory.create(tmp_path, "esrgan", NOW, BEGUN) as directory:
        directory.keep_generation("row", "profile", 0, "modules", {})
        raise KeyboardInterrupt
    assert find_folder(tmp_path / "latest", kind="explanation", unfinished=True) == directory.path


# --- Bisects ---

TRIAL = Trial(base="3.6.0", head="3.7.0", floor=0.1 + 0.2, verdict="unchanged", ratio=1.0001)
OPEN = replace(TRIAL, head="3.8.0", verdict="inconclusive")


@pytest.fixture
def directory(tmp_path: Path) -> BisectDirectory:
    return BisectDirectory.create(tmp_path / "results", "small", NOW, BEGUN)


def end(directory: BisectDirectory, *trials: Trial) -> None:
    """Come to the end with these measurements."""
    with directory:
        for trial in trials:
            directory.keep_trial(trial)
        found = make_bisection(id=directory.path.name, trials=trials, attempt=directory.attempt)
        directory.finish(document_of(found), "the answer")
    assert BISECT.load(directory.path) == found


def test_what_was_kept_is_there_again(directory: BisectDirectory, tmp_path: Path) -> None:
    run, sentence = tmp_path / "a-run", KeptSentence(text="It tiles otherwise.", explanation="an-id")
    run.mkdir()
    (run / "run.json").touch()
    with directory:
        directory.keep_run("3.6.0", run)
        directory.keep_run("3.7.0", tmp_path / "gone")
        directory.remember("explained/3.6.0..3.7.0", sentence)
        directory.keep_trial(TRIAL)
        assert directory.answer(TRIAL.key) == TRIAL
    with BisectDirectory.resume(directory.path) as again:
        assert again.begun == replace(BEGUN, options={**BEGUN.options, "without": ["tuned*"]})
        assert again.runs() == {"3.6.0": run}
        assert (again.kept, again.sentence("3.6.0..3.7.0")) == ([TRIAL], sentence)


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


def test_what_cannot_go_on_is_said(directory: BisectDirectory, tmp_path: Path) -> None:
    end(directory, TRIAL)
    with pytest.raises(RunError, match=r"this bisect has its answer; `harness report \S+` prints it"):
        BisectDirectory.resume(directory.path)
    (directory.path / BISECT.file).unlink()
    for line, why in (("nonsense", r"line 1 is damaged \(.*\)"), ('{"key": "trial/a", "value": {}}', "is damaged")):
        (directory.path / RECORD_FILE).write_text(f"{line}\n")
        with (
            pytest.raises(RunError, match=rf"{why}.*; remove it, and what it says is done again"),
            BisectDirectory.resume(directory.path) as again,
        ):
            again.answer(TRIAL.key)
    with pytest.raises(RunError, match="is no bisect that can go on"):
        BisectDirectory.resume(tmp_path)
    (directory.path / BISECT.begun_file).write_text("{}")
    with pytest.raises(RunError, match=r"begun\.json: is damaged \(created: Field required\); begin the bisect"):
        BisectDirectory.resume(directory.path)


def test_an_earlier_one_with_the_same_options_is_found(directory: BisectDirectory) -> None:
    results, asked = directory.path.parent, {"suite": "x.toml"}
    assert earlier_bisect(results, asked, "a machine") == directory.path
    assert earlier_bisect(results, {"suite": "y.toml"}, "a machine") is None
    for finished, found in ((None, None), (True, directory.path), (False, None)):
        if finished is not None:
            directory.finish(document_of(make_bisection(finished=finished)), "")
        assert earlier_bisect(results, asked, "another machine") == found, "without an answer it cannot go on there"
    (directory.path / BISECT.begun_file).write_text("{")
    assert earlier_bisect(results, asked, "a machine") is None


# --- Tunings: a line that was cut short costs one piece of work and nothing else ---


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A search in which two pieces of work are done."""
    path = tmp_path / "tuned" / "rdb@cpu"
    with TuneDirectory.open(path, BEGUN) as directory:
        directory.remember("a", {"ratios": (0.5, None)}, 2.0)
        directory.remember("b", "failed", 3.5)
    return path


def test_one_that_goes_on_remembers_what_was_done_but_for_a_line_that_was_cut_short(place: Path) -> None:
    record = place / RECORD_FILE
    record.write_bytes(record.read_bytes()[:-4])
    with TuneDirectory.open(place, replace(BEGUN, created="2026-11-23T03:50:12+00:00")) as directory:
        done = directory.remembered("a")
        assert done is not None and (done.value, done.seconds) == ({"ratios": [0.5, None]}, 2.0)
        assert directory.remembered("b") is None
        assert directory.begun.created == BEGUN.created
        directory.remember("b", "right", 1.0)
        assert directory.remembered("b") is not None


def test_a_folder_of_another_search_or_with_other_things_is_left_alone(place: Path, tmp_path: Path) -> None:
    one, two = (replace(BEGUN, options={**BEGUN.options, "[devices.cpu]": cores}) for cores in ("one", "two"))
    TuneDirectory.open(place, one)  # what an earlier harness did not write down is held against nobody
    for folder, begun, why in (
        (place, two, r"is a search with another \[devices\.cpu\]; give"),
        (place, replace(BEGUN, machine="another"), "is a search of another machine"),
        (tmp_path, BEGUN, "holds something else"),
    ):
        with pytest.raises(HarnessError, match=why):
            TuneDirectory.open(folder, begun)
    assert [file.name for file in tmp_path.iterdir()] == ["tuned"]


def test_what_is_written_at_the_end_is_read_again(place: Path) -> None:
    with pytest.raises(RunError, match="has not come to its end"):
        load_result(place)
    found = make_tuning(spec="#" * 200_000)
    with TuneDirectory.open(place, BEGUN) as directory:
        assert directory.write_suite("singles", "name = 'x'").read_text() == "name = 'x'"
        for text in ("[variants.x]", ""):
            directory.write_or_remove(VARIANT_FILE, text)
            assert (place / VARIANT_FILE).exists() == bool(text)
        directory.finish(render(found, "json"), "# The report")
    assert load_result(place) == found == TUNING.load(place)
    assert tunings_in(place.parent.parent) == tunings_in(place) == [place]
    with pytest.raises(RunError, match=r"tuned: is a folder of tunings; give one of them: .*rdb@cpu$"):
        load_result(place.parent)
