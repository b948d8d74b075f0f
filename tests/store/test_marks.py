"""Tags of runs: they lie beside the runs, survive every command on a folder, and are merged without loss."""

import hashlib
import json
import shutil
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from harness.cli import run_command_line
from harness.history.series import open_history
from harness.progress import Silent
from harness.report.rows import rows_of
from harness.store.check import verify
from harness.store.marks import RunChoice, Tagging, choose_runs, mark_files, read_marks, tags_of, write_marks
from harness.store.merging import merge
from harness.store.place import open_place
from tests.store.made import contents, runs

ALL = RunChoice(everything=True)


def tag(results: Path | str, run: str, tag: str = "quiet", **fields: Any) -> None:
    place = open_place(str(results))
    place.fetch(["marks"])
    write_marks(place, [Tagging(run=run, tag=tag, **{"who": "anna", **fields})], read_marks(place.local))


def tagged(results: Path | str) -> list[tuple[str, str, str]]:
    with open_history(str(results), choice=ALL) as tables:
        return list(tables.query("SELECT run, tag, who FROM tags ORDER BY ALL").itertuples(index=False, name=None))


# --- Which tags a run has ---


def said(*words: str) -> list[Tagging]:
    """`+quiet` gives the run `a` a tag, `-quiet` takes it away, one after the other."""
    return [Tagging(run="a", tag=word[1:], removed=word[0] == "-", who="anna", when="t") for word in words]


@pytest.mark.parametrize(
    ("words", "tags"),
    [
        ([], ["experiment"]),
        (["+quiet"], ["experiment", "quiet"]),
        (["+quiet", "-quiet"], ["experiment"]),
        (["-experiment"], []),
        (["-experiment", "+experiment"], ["experiment"]),
        (["-never"], ["experiment"]),
    ],
)
def test_the_last_word_about_a_tag_holds(words: list[str], tags: list[str]) -> None:
    assert [found.tag for found in tags_of([("a", "bench", "")], said(*words))] == tags


TAGS = [
    Tagging(run=run, tag=name, who=who)
    for run, name, who in [
        ("a", "experiment", "harness bench"),
        ("b", "experiment", "harness bench"),
        ("c", "experiment", "anna"),
        ("b", "quiet", "anna"),
        ("d", "quiet", "anna"),
        ("gone", "other", "anna"),
    ]
]


@pytest.mark.parametrize(
    ("choice", "left", "notes"),
    [
        (
            RunChoice(),
            ["a", "b", "c"],
            ["3 runs with the tag experiment are left out; --all takes them in."],
        ),
        (ALL, [], []),
        (RunChoice(everything=True, leave_out=("quiet",)), ["b", "d"], ["2 runs with the tag quiet are left out."]),
        (RunChoice(only=("quiet",)), ["a", "c", "e"], ["Only runs with the tag quiet are read: 2 of 5."]),
        (
            RunChoice(everything=True, leave_out=("other",)),
            [],
            ["No run here has the tag other; `harness results list` shows the tags."],
        ),
    ],
)
def test_runs_are_left_out_by_their_tags_with_a_sentence(choice: RunChoice, left: list[str], notes: list[str]) -> None:
    assert choose_runs(choice, ["a", "b", "c", "d", "e"], TAGS) == (left, notes)


# --- Where they lie ---


def test_merging_loses_no_tag_in_either_order(tmp_path: Path) -> None:
    (name,) = runs(tmp_path / "one", 1)
    shutil.copytree(tmp_path / "one", tmp_path / "other")
    tag(tmp_path / "one", name, "quiet")
    tag(tmp_path / "other", name, "loud")
    tag(tmp_path / "other", name, "loud", removed=True, who="bert")
    tag(tmp_path / "one", name, "cold")
    both = []
    for order in (["one", "other"], ["other", "one"]):
        into = tmp_path / "-".join(order)
        outcomes = merge([str(tmp_path / place) for place in order], str(into), rows_of, str, Silent())
        assert {outcome.why for outcome in outcomes if outcome.name == "marks/"} == {
            "2 statements about runs and changes"
        }
        both.append(contents(into / "marks"))
        assert [found[1] for found in tagged(into)] == ["cold", "quiet"]
        again = merge([str(tmp_path / "one")], str(into), rows_of, str, Silent())
        assert [outcome.fate for outcome in again] == ["already there"]
    assert both[0] == both[1]


def test_a_statement_is_later_than_all_that_were_there_whatever_the_clock_says(results: Path) -> None:
    tag(results, "a")
    (file,) = mark_files(results)
    ahead = (datetime.now(timezone.utc) + timedelta(hours=9)).isoformat(timespec="microseconds")
    forged(file, when=ahead)
    tag(results, "a", removed=True)
    assert [found.removed for found in read_marks(results).taggings] == [False, True]


# --- Files that mean harm ---


def forged(file: Path, **fields: object) -> Path:
    """The statement with other fields, under the name that its content then has."""
    content = json.dumps({**json.loads(file.read_text()), **fields}).encode()
    file.unlink()
    other = file.with_name(f"{file.name[:16]}{hashlib.sha256(content).hexdigest()[:16]}.json")
    other.write_bytes(content)
    return other


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
def test_a_file_that_is_no_statement_costs_no_other(tmp_path: Path, harm: Callable[[Path], object], why: str) -> None:
    results = tmp_path / "results"
    tag(results, "a", "quiet")
    (file,) = mark_files(results)
    harm(file)
    tag(results, "a", "loud")

    marks = read_marks(results)
    assert [found.tag for found in marks.taggings] == ["loud"]
    (note,) = marks.notes
    sound, wrong = verify(open_place(str(results)), Silent())
    assert (sound.state, wrong.state) == ("ok", "damaged")
    refused, copied = merge([str(results)], str(tmp_path / "into"), rows_of, str, Silent())
    assert (refused.fate, copied.fate) == ("refused", "copied")
    for sentence in (note, wrong.why, refused.why):
        assert why in sentence
        assert "\n" not in sentence
    assert len(mark_files(tmp_path / "into")) == 1


def test_a_folder_of_statements_that_is_a_link_is_not_followed(tmp_path: Path) -> None:
    tag(tmp_path / "elsewhere", "a")
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "marks").symlink_to(tmp_path / "elsewhere" / "marks")
    marks = read_marks(tmp_path / "results")
    assert (marks.taggings, len(marks.notes)) == ((), 1)
    (outcome,) = merge([str(tmp_path / "results")], str(tmp_path / "into"), rows_of, str, Silent())
    (finding,) = verify(open_place(str(tmp_path / "results")), Silent())
    assert (outcome.fate, finding.state) == ("refused", "damaged")
    assert "is a symbolic link, which is not followed" in outcome.why


# --- The commands ---


def test_runs_are_tagged_by_any_of_their_names_and_listed_with_their_tags(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("getpass.getuser", lambda: "anna")
    first, second, third = runs(Path("results"), 3)
    assert run_command_line(["results", "tag", "latest", f"results/{first}", "20260102", "quiet"]) == 0
    assert run_command_line(["results", "tag", "latest", "quiet"]) == 0
    assert run_command_line(["results", "untag", "@-1", "quiet", "--who", "Bert B."]) == 0
    assert run_command_line(["results", "untag", "@-1", "quiet"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        f"{third} has the tag quiet.",
        f"{first} has the tag quiet.",
        f"{second} has the tag quiet.",
        f"{third} has the tag quiet already.",
        f"{second} no longer has the tag quiet.",
        f"{second} does not have the tag quiet.",
    ]
    assert tagged("results") == [(first, "quiet", "anna"), (third, "quiet", "anna")]
    assert run_command_line(["results", "list", "--format", "json"]) == 0
    listed = json.loads(capsys.readouterr().out)["runs"]
    assert {run["run"]: run["tags"] for run in listed} == {third: ["quiet"], second: [], first: ["quiet"]}
    assert run_command_line(["results", "list"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "3 runs (2 quiet)."


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["latest"], "give a run and a tag, as in `harness results tag latest quiet`"),
        (["latest", "two words"], "'two words' is no tag; write letters, digits and . _ + -, at most 64"),
        (["latest", "x", "--who", "a\tb"], "--who 'a b' is no name; write a line of at most 100 characters"),
        (["2027", "x"], "results: '2027' is no run of it; `harness results list results` lists them"),
    ],
)
def test_a_tag_that_cannot_be_given_is_one_sentence(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    why: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    runs(Path("results"), 1)
    assert run_command_line(["results", "tag", *arguments]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert why in captured.err.splitlines()[-1]
    assert not (tmp_path / "results" / "marks").exists()
