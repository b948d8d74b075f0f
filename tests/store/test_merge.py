"""Merging: finished folders of other places are copied whole, once, and never over anything.

Places that mean harm, disks that are full and processes that are killed: a sentence says so, and nothing is lost.
"""

import os
import shutil
from pathlib import Path

import pytest

from harness.errors import RunError
from harness.store import files
from tests.store.made import (
    a_comparison,
    a_run,
    an_unfinished_run,
    contents,
    fates,
    finished_as_it_is,
    merged,
    room_for,
    runs,
    why,
)


def test_folders_of_several_places_are_copied_once_and_get_tables_of_their_own_records(tmp_path: Path) -> None:
    one, other, into = tmp_path / "one", tmp_path / "other", tmp_path / "deep" / "into"
    names = [a_run(one, 0).name, a_comparison(one).name, a_run(other, 1).name]
    expected = {**contents(one), **contents(other)}
    (one / names[0] / "tables" / "points.parquet").write_text("theirs")
    shutil.rmtree(other / names[2] / "tables")
    outcomes = merged(one, other, into=into)
    assert fates(outcomes) == dict.fromkeys(names, "copied")
    assert contents(into) == expected
    before = {file: file.stat().st_mtime_ns for file in into.rglob("*.json*")}
    assert set(fates(merged(one, other, into=into)).values()) == {"already there"}
    assert before == {file: file.stat().st_mtime_ns for file in into.rglob("*.json*")}


def test_a_run_that_is_unfinished_or_was_renamed_is_left_out_or_refused(tmp_path: Path) -> None:
    unfinished = an_unfinished_run(tmp_path / "from")
    assert "is not finished" in why(merged(tmp_path / "from", into=tmp_path / "into"))
    shutil.rmtree(unfinished)
    a_run(tmp_path / "from").rename(tmp_path / "from" / "baseline")
    assert "'baseline' is no id of a run" in why(merged(tmp_path / "from", into=tmp_path / "into"))
    (tmp_path / "from" / "baseline").rename(tmp_path / "from" / "20300101-000000-nightly")
    assert "under another name" in why(merged(tmp_path / "from", into=tmp_path / "into"))
    assert contents(tmp_path / "into") == {}


def test_places_that_hold_nothing_or_are_not_there(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    outcomes = merged(tmp_path / "empty", tmp_path / "gone", tmp_path / "into", into=tmp_path / "into")
    assert [(outcome.fate, outcome.why) for outcome in outcomes] == [
        ("left out", "there is no run and no comparison in it"),
        ("refused", f"{tmp_path / 'gone'}: there is no such folder; give one that holds runs"),
        ("refused", f"{tmp_path / 'into'}: is the folder that is merged into; give another"),
    ]
    (tmp_path / "file").write_text("")
    with pytest.raises(RunError, match=r"file: cannot be written \(File exists\); choose another folder with --into"):
        merged(tmp_path / "empty", into=tmp_path / "file")


# --- Hostile places and full disks ---


def test_a_folder_that_is_too_large_is_refused_and_the_others_are_merged(tmp_path: Path) -> None:
    bad, good = runs(tmp_path / "from", 2)
    os.truncate(tmp_path / "from" / bad / "rounds.jsonl", 5 * 2**30)
    outcomes = merged(tmp_path / "from", into=tmp_path / "into")
    assert fates(outcomes) == {bad: "refused", good: "copied"}
    assert "is 5.0 GiB, and more than 2 GiB is not copied" in outcomes[0].why
    assert sorted(path.name for path in (tmp_path / "into").glob("[!.]*")) == [good]


@pytest.mark.parametrize("name", ["a\nb", "|x|`y`<script>", "-rf", "a" * 250], ids=["newline", *"abc"])
def test_hostile_names_of_folders_are_refused_on_one_line(tmp_path: Path, name: str) -> None:
    a_run(tmp_path / "from").rename(tmp_path / "from" / name)
    for outcome in merged(tmp_path / "from", into=tmp_path / "into"):
        assert outcome.fate in ("refused", "left out")
        assert "\n" not in outcome.name + outcome.why
        assert len(outcome.name) < 100
    assert contents(tmp_path / "into") == {}


def test_a_link_in_a_folders_place_is_neither_read_nor_written_through(tmp_path: Path) -> None:
    folder = a_run(tmp_path / "elsewhere")
    (tmp_path / "from").mkdir()
    (tmp_path / "from" / folder.name).symlink_to(folder)
    assert "is a symbolic link, which is not followed" in why(merged(tmp_path / "from", into=tmp_path / "into"))
    (tmp_path / "into" / folder.name).symlink_to(tmp_path / "nowhere")
    assert fates(merged(tmp_path / "elsewhere", into=tmp_path / "into")) == {folder.name: "refused"}
    assert not (tmp_path / "nowhere").exists()


def test_a_folder_that_changes_while_it_is_copied_is_looked_at_as_it_was_copied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    a_run(tmp_path / "from")
    real = files.open_plain

    def swap(file: Path, *, follow: bool = True) -> object:
        if file.name == "report.md" and not file.is_symlink():
            file.unlink()
            file.symlink_to("/etc/passwd")
        return real(file, follow=follow)

    monkeypatch.setattr("harness.store.place.open_plain", swap)
    assert "report.md: cannot be read" in why(merged(tmp_path / "from", into=tmp_path / "into"))
    assert contents(tmp_path / "into") == {}


def test_a_disk_that_is_full_keeps_nothing_of_a_folder_and_says_so(tmp_path: Path) -> None:
    large, small = a_run(tmp_path / "from"), a_comparison(tmp_path / "from")
    (tmp_path / "into").mkdir()
    (large / "report.md").write_text("long " * 20_000)
    finished_as_it_is(large)
    with room_for(50_000):
        outcomes = merged(tmp_path / "from", into=tmp_path / "into")
    assert fates(outcomes) == {large.name: "refused", small.name: "copied"}
    assert "cannot be written (File too large); make room" in outcomes[0].why
    assert contents(tmp_path / "into") == {f"{small.name}/{name}": data for name, data in contents(small).items()}
    assert set(fates(merged(tmp_path / "from", into=tmp_path / "into")).values()) == {"copied", "already there"}


def test_what_a_killed_merge_left_half_copied_is_removed_by_the_next(tmp_path: Path) -> None:
    name = a_run(tmp_path / "from").name
    half = tmp_path / "into" / ".copying-half"
    shutil.copytree(tmp_path / "from" / name / "tables", half)
    os.utime(half, (0, 0))
    assert fates(merged(tmp_path / "from", into=tmp_path / "into")) == {name: "copied"}
    assert not half.exists()
