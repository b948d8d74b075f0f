"""Tags of runs: they lie beside the runs, survive every command on a folder, and are merged without loss."""

import hashlib
import json
import shutil
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from harness.cli import run_command_line
from harness.history.series import open_history
from harness.progress import Progress
from harness.store.marks import RunChoice, Tagging, choose_runs, read_marks, tags_of, write_marks
from harness.store.merging import verify
from harness.store.place import open_place
from tests.store.made import contents, merged, runs

ALL = RunChoice(everything=True)


def tag(results: Path, run: str, tag: str = "quiet", *, removed: bool = False, who: str = "anna") -> None:
    place = open_place(str(results))
    write_marks(place, [Tagging(run=run, tag=tag, removed=removed, who=who)], read_marks(place.local))


def mark(results: Path) -> Path:
    """The file of the only statement."""
    (file,) = (results / "marks").glob("2*.json")
    return file


def forged(file: Path, **fields: object) -> None:
    """The statement with other fields, under the name that its content then has."""
    content = json.dumps({**json.loads(file.read_text()), **fields}).encode()
    file.unlink()
    file.with_name(f"{file.name[:16]}{hashlib.sha256(content).hexdigest()[:16]}.json").write_bytes(content)


def test_the_last_word_about_a_tag_holds() -> None:
    said = [Tagging(run="a", tag=tag, removed=removed) for tag, removed in (("x", False), ("y", False), ("x", True))]
    assert [found.tag for found in tags_of([("a", "bench", "")], said)] == ["experiment", "y"]
    assert tags_of([("a", "bench", "")], [Tagging(run="a", tag="experiment", removed=True)]) == []


TAGS = [
    Tagging(run=run, tag=name, who="anna")
    for run, name in (*((run, "experiment") for run in "abc"), ("b", "quiet"), ("d", "quiet"), ("gone", "other"))
]
NONE = "No run here has the tag other; `harness results list` shows the tags."


@pytest.mark.parametrize(
    ("choice", "left", "notes"),
    [
        (RunChoice(), "abc", ["3 runs with the tag experiment are left out; --all takes them in."]),
        (ALL, "", []),
        (RunChoice(everything=True, leave_out=("quiet",)), "bd", ["2 runs with the tag quiet are left out."]),
        (RunChoice(only=("quiet",)), "ace", ["Only runs with the tag quiet are read: 2 of 5."]),
        (RunChoice(everything=True, leave_out=("other",)), "", [NONE]),
    ],
)
def test_runs_are_left_out_by_their_tags_with_a_sentence(choice: RunChoice, left: str, notes: list[str]) -> None:
    assert choose_runs(choice, list("abcde"), TAGS) == (list(left), notes)


def test_merging_loses_no_tag_in_either_order(tmp_path: Path) -> None:
    (name,) = runs(tmp_path / "one", 1)
    shutil.copytree(tmp_path / "one", tmp_path / "other")
    tag(tmp_path / "one", name, "quiet")
    tag(tmp_path / "other", name, "loud")
    tag(tmp_path / "other", name, "loud", removed=True, who="bert")
    both = []
    for order in (["one", "other"], ["other", "one"]):
        into = tmp_path / "-".join(order)
        outcomes = merged(*(tmp_path / place for place in order), into=into)
        assert "2 statements about runs and changes" in {outcome.why for outcome in outcomes}
        both.append(contents(into / "marks"))
        with open_history(str(into), choice=ALL) as tables:
            assert list(tables.query("SELECT tag FROM tags")["tag"]) == ["quiet"]
        again = merged(tmp_path / "one", into=into)
        assert [outcome.fate for outcome in again] == ["already there"]
    assert both[0] == both[1]


def test_a_statement_is_later_than_all_that_were_there_whatever_the_clock_says(results: Path) -> None:
    tag(results, "a")
    forged(mark(results), when=(datetime.now(timezone.utc) + timedelta(hours=9)).isoformat(timespec="microseconds"))
    tag(results, "a", removed=True)
    assert [found.removed for found in read_marks(results).taggings] == [False, True]


# --- Files that mean harm ---


@pytest.mark.parametrize(
    ("harm", "why"),
    [
        (lambda file: file.write_text(file.read_text() + " "), "is not as it was when it was written"),
        (lambda file: file.write_text(" " * 300_000), "is larger than 0.25 MiB"),
        (lambda file: forged(file, kind="song"), "is damaged (Tagging.kind: "),
        (lambda file: forged(file, who="\x1b[31mred"), "is damaged (Tagging.who: "),
        (lambda file: forged(file, who="x" * 301), "is damaged (Tagging.who: "),
        (lambda file: forged(file, tag="<script>"), "is damaged (Tagging.tag: "),
        (lambda file: forged(file, when="yesterday"), "is damaged (Tagging.when: "),
        (lambda file: forged(file, when="9999-12-31T23:59:59.999999+00:00"), "which is in the future"),
        (lambda file: (file.unlink(), file.symlink_to("/etc/passwd")), "is a symbolic link"),
    ],
)
def test_a_file_that_is_no_statement_costs_no_other(results: Path, harm: Callable[[Path], object], why: str) -> None:
    tag(results, "a", "quiet")
    harm(mark(results))
    tag(results, "a", "loud")
    marks = read_marks(results)
    assert ([found.tag for found in marks.taggings], len(marks.files)) == (["loud"], 1)
    sound, wrong = verify(open_place(str(results)), Progress())
    assert (sound.state, wrong.state) == ("ok", "damaged")
    into = results.parent / "into"
    refused, copied = merged(results, into=into)
    assert (refused.fate, copied.fate) == ("refused", "copied")
    for sentence in (*marks.wrong.values(), wrong.why, refused.why):
        assert why in sentence
        assert "\n" not in sentence
    assert len(read_marks(into).files) == 1


def test_a_folder_of_statements_that_is_a_link_is_not_followed(results: Path, tmp_path: Path) -> None:
    tag(tmp_path / "elsewhere", "a")
    results.mkdir()
    (results / "marks").symlink_to(tmp_path / "elsewhere" / "marks")
    marks = read_marks(results)
    assert (marks.taggings, len(marks.wrong)) == ((), 1)
    (outcome,) = merged(results, into=tmp_path / "into")
    (finding,) = verify(open_place(str(results)), Progress())
    assert (outcome.fate, finding.state) == ("refused", "damaged")
    assert "is a symbolic link, which is not followed" in outcome.why


# --- The commands ---


def test_runs_are_tagged_by_any_of_their_names_and_listed_with_their_tags(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("getpass.getuser", lambda: "anna")
    first, second, third = runs(Path("results"), 3)
    for words in (
        ["tag", "latest", f"results/{first}", "20260102", "quiet"],
        ["tag", "latest", "quiet"],
        ["untag", "@-1", "quiet", "--who", "Bert B."],
        ["untag", "@-1", "quiet"],
    ):
        assert run_command_line(["results", *words]) == 0
    assert capsys.readouterr().out.splitlines() == [
        f"{third} has the tag quiet.",
        f"{first} has the tag quiet.",
        f"{second} has the tag quiet.",
        f"{third} has the tag quiet already.",
        f"{second} no longer has the tag quiet.",
        f"{second} does not have the tag quiet.",
    ]
    assert [said.who for said in read_marks(Path("results")).taggings] == ["anna"] * 3 + ["Bert B."]
    assert run_command_line(["results", "list", "--format", "json"]) == 0
    listed = json.loads(capsys.readouterr().out)["runs"]
    assert {run["run"]: run["tags"] for run in listed} == {third: ["quiet"], second: [], first: ["quiet"]}
