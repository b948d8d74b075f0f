"""Merging: finished folders of other places are copied whole, once, and never over anything."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from harness.errors import RunError
from harness.history.open import open_history
from harness.history.parquet import compacted_runs
from harness.progress import Silent
from harness.store.compact import compact
from harness.store.dropped import mark_dropped
from harness.store.manifest import describe_file
from harness.store.merge import merge
from harness.store.place import open_place
from harness.store.values import Outcome
from tests.archive.made import a_comparison, a_run, an_old_run, an_unfinished_run, contents, fates, runs, why


def merged(*sources: Path, into: Path) -> list[Outcome]:
    return merge([str(source) for source in sources], str(into), Silent())


def drop(folder: Path) -> None:
    """What `harness results gc` does to one folder."""
    mark_dropped(folder, describe_file(folder / "rounds.jsonl"))
    (folder / "rounds.jsonl").unlink()


def test_runs_and_comparisons_of_several_places_are_copied_byte_by_byte(tmp_path: Path) -> None:
    one, other, into = tmp_path / "one", tmp_path / "other", tmp_path / "deep" / "into"
    names = [a_run(one, 0).name, a_comparison(one).name, an_old_run(other, 1).name]
    outcomes = merged(one, other, into=into)
    assert fates(outcomes) == dict.fromkeys(names, "copied")
    assert contents(into) == {**contents(one), **contents(other)}
    assert not list(into.glob(".copying-*"))


def test_what_is_there_already_is_left_as_it_is(tmp_path: Path) -> None:
    runs(tmp_path / "from", 2)
    merged(tmp_path / "from", into=tmp_path / "into")
    before = {file: file.stat().st_mtime_ns for file in (tmp_path / "into").rglob("*.json*")}
    assert set(fates(merged(tmp_path / "from", into=tmp_path / "into")).values()) == {"already there"}
    assert before == {file: file.stat().st_mtime_ns for file in (tmp_path / "into").rglob("*.json*")}


def test_another_run_of_the_same_name_is_refused_and_the_others_are_merged(tmp_path: Path) -> None:
    first, second = runs(tmp_path / "from", 2)
    other = an_old_run(tmp_path / "into", 0)
    (other / "report.md").write_text("# Another one\n")
    outcomes = merged(tmp_path / "from", into=tmp_path / "into")
    assert fates(outcomes) == {first: "refused", second: "copied"}
    assert f"{other}: is there already with other content" in outcomes[0].why
    assert (other / "report.md").read_text() == "# Another one\n"


def test_unfinished_runs_are_left_out(tmp_path: Path) -> None:
    an_unfinished_run(tmp_path / "from")
    outcomes = merged(tmp_path / "from", into=tmp_path / "into")
    assert outcomes[0].fate == "left out"
    assert "is not finished" in why(outcomes)


def test_a_run_that_was_renamed_is_left_out_or_refused(tmp_path: Path) -> None:
    a_run(tmp_path / "from").rename(tmp_path / "from" / "baseline")
    assert "'baseline' is no id of a run" in why(merged(tmp_path / "from", into=tmp_path / "into"))
    (tmp_path / "from" / "baseline").rename(tmp_path / "from" / "20300101-000000-nightly")
    assert "under another name" in why(merged(tmp_path / "from", into=tmp_path / "into"))
    assert contents(tmp_path / "into") == {}


def test_one_runs_own_folder_may_be_given(tmp_path: Path) -> None:
    _, second = runs(tmp_path / "from", 2)
    assert fates(merged(tmp_path / "from" / second, into=tmp_path / "into")) == {second: "copied"}


def test_only_the_harnesss_own_files_are_copied(tmp_path: Path) -> None:
    folder = a_run(tmp_path / "from")
    before = contents(folder)
    for name in ("run.sh", "logs/evil.py", "deep/er/run.json", ".hidden"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("x")
    outcomes = merged(tmp_path / "from", into=tmp_path / "into")
    assert outcomes[0].fate == "copied"
    assert outcomes[0].why == "without deep/er/run.json and 2 more, which no run has"
    assert contents(tmp_path / "into" / folder.name) == before


def test_places_that_hold_nothing_or_are_not_there(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    outcomes = merged(tmp_path / "empty", tmp_path / "gone", tmp_path / "into", into=tmp_path / "into")
    assert [one.fate for one in outcomes] == ["left out", "refused", "refused"]
    assert [one.why for one in outcomes] == [
        "there is no run and no comparison in it",
        f"{tmp_path / 'gone'}: there is no such folder; give one that holds runs",
        f"{tmp_path / 'into'}: is the folder that is merged into; give another",
    ]


def test_a_target_that_is_a_file_is_one_sentence(tmp_path: Path) -> None:
    a_run(tmp_path / "from")
    (tmp_path / "into").write_text("")
    with pytest.raises(RunError, match=r"into: cannot be written \(File exists\)"):
        merged(tmp_path / "from", into=tmp_path / "into")


# --- Runs whose raw turns were dropped ---


@pytest.mark.parametrize("where", ["from", "into"])
def test_the_same_run_is_the_same_whether_or_not_its_turns_were_dropped(tmp_path: Path, where: str) -> None:
    folder = a_run(tmp_path / "from")
    shutil.copytree(folder, tmp_path / "into" / folder.name)
    drop(tmp_path / where / folder.name)
    before = contents(tmp_path / "into")
    assert fates(merged(tmp_path / "from", into=tmp_path / "into")) == {folder.name: "already there"}
    assert contents(tmp_path / "into") == before


def test_a_marker_of_other_turns_is_another_run(tmp_path: Path) -> None:
    folder = a_run(tmp_path / "from")
    shutil.copytree(folder, tmp_path / "into" / folder.name)
    drop(folder)
    marker = json.loads((folder / "turns-dropped.json").read_text())
    marker["files"]["rounds.jsonl"]["sha256"] = "0" * 64
    (folder / "turns-dropped.json").write_text(json.dumps(marker))
    assert fates(merged(tmp_path / "from", into=tmp_path / "into")) == {folder.name: "refused"}


def test_figures_that_a_place_has_in_its_history_alone_come_along(tmp_path: Path) -> None:
    dropped, gone, whole = runs(tmp_path / "from", 3)
    compact(open_place(str(tmp_path / "from")), Silent())
    with open_history(str(tmp_path / "from")) as history:
        before = history.query("SELECT * FROM points ORDER BY ALL")
    drop(tmp_path / "from" / dropped)
    shutil.rmtree(tmp_path / "from" / gone)

    outcomes = merged(tmp_path / "from", into=tmp_path / "into")
    assert fates(outcomes) == {dropped: "copied", whole: "copied", "history/ (2 runs)": "copied"}
    assert compacted_runs(tmp_path / "into") == {dropped, gone}
    compact(open_place(str(tmp_path / "into")), Silent())
    with open_history(str(tmp_path / "into")) as history:
        assert history.query("SELECT * FROM points ORDER BY ALL").equals(before)
    assert "history" not in str(fates(merged(tmp_path / "from", into=tmp_path / "into")))


def test_a_history_that_is_damaged_is_refused_and_the_folders_are_merged(tmp_path: Path) -> None:
    (name,) = runs(tmp_path / "from", 1)
    compact(open_place(str(tmp_path / "from")), Silent())
    part = next((tmp_path / "from" / "history" / "points").iterdir())
    part.write_bytes(part.read_bytes()[:-7])
    outcomes = merged(tmp_path / "from", into=tmp_path / "into")
    assert [one.fate for one in outcomes] == ["copied", "refused"]
    assert f"{part}: is not as it was when it was written" in outcomes[1].why
    assert outcomes[0].name == name
