"""What commands keep of comparisons, explanations, bisects and tunings while they go on, and at their end."""

import json
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest

from harness.cli import run_command_line
from harness.errors import HarnessError, RunError, UsageError
from harness.progress import Silent
from harness.records.bisection import Bisection, Trial
from harness.records.explanation import Explanation
from harness.report import render
from harness.report.bisect_page import bisect_json
from harness.report.explanation_page import explanation_document
from harness.report.rows import rows_of
from harness.store.check import check_folder
from harness.store.folders import find_folder
from harness.store.journal import Begun
from harness.store.kinds import BISECT, COMPARISON, EXPLANATION, TUNING, Kind, load_result, tunings_in
from harness.store.merging import merge
from harness.store.search_directory import (
    RECORD_FILE,
    TRIALS_FILE,
    VARIANT_FILE,
    BegunBisect,
    BisectDirectory,
    KeptSentence,
    TuneDirectory,
    earlier_bisect,
    remembered_in,
)
from harness.store.sides_directory import ComparisonDirectory, ExplanationDirectory, KeptGeneration
from harness.store.tables import NOTHING_YET, open_tables
from tests.builders import make_bisection, make_round
from tests.report.explanations import make_explanation
from tests.report.tunings import make_tuning

NOW = datetime(2026, 11, 22, 14, 0, 0, tzinfo=timezone.utc)


def a_directory(results: Path) -> ComparisonDirectory:
    return ComparisonDirectory.create(results, "small", NOW)


def keep(results: Path) -> tuple[Path, Explanation]:
    """A finished explanation."""
    with ExplanationDirectory.create(results, "esrgan", NOW) as directory:
        explanation = replace(make_explanation(), id=directory.path.name)
        directory.finish(explanation_document(explanation), render(explanation, "markdown", full=True))
    return directory.path, explanation


def test_every_turn_and_every_compile_is_one_line_at_once(tmp_path: Path) -> None:
    with a_directory(tmp_path) as directory:
        for number in range(2):
            directory.keep_round(make_round(number))
            directory.keep_compile("net/fast@cpu", {"generation": number, "base_ns": 1.0, "head_ns": 2.0})
        rounds = [json.loads(line) for line in (directory.path / "rounds.jsonl").read_text().splitlines()]
        assert [measured["round"] for measured in rounds] == [0, 1]
        compiles = [json.loads(line) for line in (directory.path / "compiles.jsonl").read_text().splitlines()]
        assert compiles[1] == {"case": "net/fast@cpu", "generation": 1, "base_ns": 1.0, "head_ns": 2.0}
        assert not COMPARISON.is_at(directory.path)
        directory.finish(b"{}\n", "report\n")
    assert COMPARISON.is_at(directory.path)
    assert (directory.path / COMPARISON.file).read_text() == "{}\n"
    assert (directory.path / "report.md").read_text() == "report\n"


def test_of_one_that_never_began_nothing_is_left_and_what_was_measured_stays(tmp_path: Path) -> None:
    with pytest.raises(RunError), a_directory(tmp_path):
        raise RunError("the modules are gone")
    assert not list(tmp_path.iterdir())
    with pytest.raises(KeyboardInterrupt), a_directory(tmp_path) as directory:
        directory.keep_round(make_round(0))
        raise KeyboardInterrupt
    assert [file.name for file in directory.path.iterdir()] == ["rounds.jsonl"]


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    directory = a_directory(tmp_path)
    directory.path.rmdir()
    with pytest.raises(RunError) as caught:
        directory.keep_round(make_round(0))
    assert str(caught.value) == f"{directory.path}: was removed while it was written; begin it again"
    (directory.path / "rounds.jsonl").mkdir(parents=True)
    with pytest.raises(RunError) as caught:
        directory.keep_round(make_round(0))
    assert str(caught.value) == (
        f"{directory.path}: cannot be written (Is a directory); make room or choose another folder with --results"
    )


def test_nothing_is_left_where_the_end_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(path: Path, content: bytes) -> None:
        if path.name == EXPLANATION.file:
            raise OSError(28, "No space left on device")
        path.write_bytes(content)

    monkeypatch.setattr("harness.store.journal.write_atomically", fail)
    said = "cannot be written \\(No space left on device\\); make room or choose another"
    with pytest.raises(RunError, match=said):
        keep(tmp_path)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("kind", [COMPARISON, EXPLANATION], ids=lambda kind: kind.name)
def test_one_that_was_stopped_says_how_it_goes_on(tmp_path: Path, kind: Kind[object]) -> None:
    (tmp_path / kind.begun_file).write_text("{}")
    with pytest.raises(RunError, match=f"has not come to its end; go on with `harness {kind.command} --resume"):
        load_result(tmp_path)


def test_one_that_was_stopped_is_told_from_what_is_none(tmp_path: Path) -> None:
    begun = Begun(created=NOW.isoformat(), machine="m", options={}, command=())
    with pytest.raises(KeyboardInterrupt), ExplanationDirectory.create(tmp_path, "esrgan", NOW, begun) as directory:
        directory.keep_generation(KeptGeneration(row="r", metric="alone", modules="m", generation=0))
        raise KeyboardInterrupt
    folder = directory.path
    finding = check_folder(folder, name=folder.name)
    assert (finding.state, finding.why) == ("unfinished", "an explanation that was stopped")
    assert find_folder(tmp_path / "latest", kind="explanation", unfinished=True) == folder
    with pytest.raises(UsageError):
        find_folder(tmp_path / "latest", kind="comparison", unfinished=True)


def test_an_explanation_is_read_found_verified_and_merged_and_has_no_rows(tmp_path: Path) -> None:
    folder, explanation = keep(tmp_path / "there")
    assert folder.name == "20261122-140000-esrgan-explain"
    assert EXPLANATION.load(folder) == explanation
    assert {file.name for file in folder.iterdir()} == {EXPLANATION.file, "report.md", "finished.json"}
    for name in ("latest", "2026"):
        assert find_folder(tmp_path / "there" / name, kind="explanation") == folder
    assert find_folder(tmp_path / "there" / "2026", kind="run") == tmp_path / "there" / "2026"
    (outcome,) = merge([str(tmp_path / "there")], str(tmp_path / "here"), rows_of, str, Silent())
    assert (outcome.name, outcome.fate) == (folder.name, "copied")
    copy = tmp_path / "here" / folder.name
    assert EXPLANATION.load(copy) == explanation
    with open_tables(str(tmp_path / "here"), rows_of, Silent()) as tables:
        assert tables.notes == (NOTHING_YET,)
    assert check_folder(copy, name=folder.name).state == "ok"
    (copy / "report.md").write_text("another\n")
    assert check_folder(copy, name=folder.name).state == "changed"


def test_an_explanation_is_listed_and_a_damaged_one_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    folder, explanation = keep(tmp_path)
    assert run_command_line(["results", "list", str(tmp_path)]) == 0
    listed = capsys.readouterr().out
    assert folder.name in listed and explanation.case in listed
    assert listed.endswith("0 runs, 1 explanation.\n")
    (folder / EXPLANATION.file).write_text("{}")
    assert run_command_line(["results", "list", str(tmp_path), "--format", "json"]) == 0
    printed = capsys.readouterr()
    assert json.loads(printed.out)["explanations"] == []
    assert "is no explanation of schema version 1" in printed.err


# --- Bisects and tunings: a line that was cut short costs one piece of work and nothing else ---

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
    with pytest.raises(RunError, match=r"begun\.json: is damaged \(created: Field required\); begin the bisect"):
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


# --- Tunings ---

SEARCH = Begun(
    created="2026-11-22T03:50:12+00:00",
    machine="a machine",
    options={"model": "rdb", "without": ("tuned*",)},
    command=("harness", "tune"),
)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A search in which two pieces of work are done."""
    path = tmp_path / "tuned" / "rdb@cpu"
    with TuneDirectory.create(path, SEARCH) as directory:
        directory.remember("a", {"ratios": (0.5, None)}, 2.0)
        directory.remember("b", "failed", 3.5)
    return path


def kept(directory: TuneDirectory, key: str) -> tuple[Any, float] | None:
    """What is remembered under a key, with its seconds."""
    done = directory.remembered(key)
    return None if done is None else (done.value, done.seconds)


def test_one_that_goes_on_remembers_what_was_done(place: Path) -> None:
    later = replace(SEARCH, created="2026-11-23T03:50:12+00:00")
    with TuneDirectory.create(place, later) as directory:
        assert kept(directory, "a") == ({"ratios": [0.5, None]}, 2.0)
        assert kept(directory, "c") is None
        assert directory.begun.created == SEARCH.created
    assert remembered_in(place, SEARCH.machine)["b"] == "failed"
    assert remembered_in(place, "another machine") == {}
    assert remembered_in(place, SEARCH.machine, {"model": "rdb", "[devices.cpu]": "not written then"})
    assert remembered_in(place, SEARCH.machine, {"model": "mlp"}) == {}


def test_a_line_that_was_cut_short_is_done_again_and_nothing_else(place: Path) -> None:
    record = place / RECORD_FILE
    record.write_bytes(cut := record.read_bytes()[:-4])
    assert [*remembered_in(place, SEARCH.machine)] == ["a"]
    assert record.read_bytes() == cut, "who only looks leaves the line to the harness that may be writing it"
    with TuneDirectory.create(place, SEARCH) as directory:
        assert (kept(directory, "a"), kept(directory, "b")) == (({"ratios": [0.5, None]}, 2.0), None)
        directory.remember("b", "right", 1.0)
    with TuneDirectory.create(place, SEARCH) as directory:
        assert kept(directory, "b") == ("right", 1.0)


def test_what_an_earlier_harness_did_not_write_down_is_held_against_nobody_and_known_from_then_on(place: Path) -> None:
    def now(device: str) -> Begun:
        return replace(SEARCH, options={**SEARCH.options, "[devices.cpu]": device})

    TuneDirectory.create(place, now("one core"))
    with pytest.raises(HarnessError, match=r"is a search with another \[devices\.cpu\]; give"):
        TuneDirectory.create(place, now("two cores"))
    with pytest.raises(HarnessError, match="is a search of another machine"):
        TuneDirectory.create(place, replace(SEARCH, machine="another"))


def test_a_folder_with_other_things_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("mine")
    with pytest.raises(HarnessError, match="holds something else"):
        TuneDirectory.create(tmp_path, SEARCH)
    assert [file.name for file in tmp_path.iterdir()] == ["thesis.tex"]


def test_what_is_written_at_the_end_is_read_again(place: Path) -> None:
    with pytest.raises(RunError, match="has not come to its end"):
        load_result(place)
    found = make_tuning(spec="#" * 200_000)
    with TuneDirectory.create(place, SEARCH) as directory:
        assert directory.write_suite("singles", "name = 'x'").read_text() == "name = 'x'"
        variant = directory.write_or_remove(VARIANT_FILE, "[variants.x]")
        directory.write_or_remove(VARIANT_FILE, "")
        assert not variant.exists()
        directory.finish(render(found, "json"), "# The report", {"race.svg": b"<svg/>"})
    assert load_result(place) == found == TUNING.load(place)
    assert tunings_in(place.parent.parent) == tunings_in(place) == [place]


def test_a_folder_of_several_is_told_from_a_run(place: Path) -> None:
    for folder in (place, place.parent / "mlp@cpu"):
        folder.mkdir(exist_ok=True)
        (folder / TUNING.file).write_text("{}")
    with pytest.raises(RunError, match=r"tuned: is a folder of tunings; give one of them: .*mlp@cpu, .*rdb@cpu$"):
        load_result(place.parent)
