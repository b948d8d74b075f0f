"""Merging from a place that means harm, or onto a disk that is full: told in a sentence, and nothing is lost."""

from __future__ import annotations

import errno
import json
import os
import resource
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.progress import Silent
from harness.store import bounded
from harness.store.compact import compact
from harness.store.folders import FOLDER_LIMIT_BYTES
from harness.store.merge import merge
from harness.store.place import open_place
from harness.store.values import Outcome
from tests.archive.made import a_comparison, a_run, contents, fates, runs, why


def merged(tmp_path: Path) -> list[Outcome]:
    return merge([str(tmp_path / "from")], str(tmp_path / "into"), Silent())


def link_report(folder: Path) -> None:
    (folder / "report.md").unlink()
    (folder / "report.md").symlink_to("/etc/passwd")


def link_logs(folder: Path) -> None:
    (folder / "logs").symlink_to("/etc", target_is_directory=True)


def link_beside(folder: Path) -> None:
    (folder / "deep").mkdir()
    (folder / "deep" / "anything").symlink_to("/etc/shadow")


def pipe(folder: Path) -> None:
    os.mkfifo(folder / "lost.jsonl")


def cut(folder: Path) -> None:
    os.truncate(folder / "rounds.jsonl", (folder / "rounds.jsonl").stat().st_size - 9)


def zeros(folder: Path) -> None:
    os.truncate(folder / "rounds.jsonl", 200 * 2**20)


def huge(folder: Path) -> None:
    os.truncate(folder / "rounds.jsonl", 5 * 2**30)


def future(folder: Path) -> None:
    header = json.loads((folder / "run.json").read_text())
    (folder / "run.json").write_text(json.dumps({**header, "schema_version": 2}))


def nested(folder: Path) -> None:
    (folder / "run.json").write_text("[" * 200_000)


def both(folder: Path) -> None:
    (folder / "comparison.json").write_text("{}")


def path_in_manifest(folder: Path) -> None:
    document = json.loads((folder / "finished.json").read_text())
    document["files"]["../../../etc/passwd"] = {"sha256": "0" * 64, "bytes": 1}
    (folder / "finished.json").write_text(json.dumps(document))


@pytest.mark.parametrize(
    ("spoil", "told"),
    [
        (link_report, "report.md is a symbolic link, which no run has; take it away"),
        (link_logs, "logs is a symbolic link"),
        (link_beside, "deep/anything is a symbolic link"),
        (pipe, "lost.jsonl is a pipe, a socket or a device"),
        (cut, "rounds.jsonl: its last line is cut short; take it from a backup"),
        (zeros, "is longer than 64 MiB, which no record is"),
        (huge, "rounds.jsonl: makes this folder 5.0 GiB, and more than 2 GiB is not copied"),
        (future, "run.json: has schema 2, and this harness reads 1; upgrade it"),
        (nested, "run.json: is damaged"),
        (both, "has both run.json and comparison.json, which no folder does"),
        (path_in_manifest, "finished.json: is damaged; take it from a backup"),
    ],
)
def test_a_hostile_folder_is_refused_and_the_others_are_merged(
    tmp_path: Path, spoil: Callable[[Path], None], told: str
) -> None:
    bad, good = runs(tmp_path / "from", 2)
    spoil(tmp_path / "from" / bad)
    outcomes = merged(tmp_path)
    assert fates(outcomes) == {bad: "refused", good: "copied"}
    assert told in outcomes[0].why
    assert ".copying-" not in outcomes[0].why
    assert sorted(path.name for path in (tmp_path / "into").glob("[!.]*")) == [good]
    assert not list((tmp_path / "into").glob(".copying-*"))


def test_the_whole_folder_may_be_a_link(tmp_path: Path) -> None:
    folder = a_run(tmp_path / "elsewhere")
    (tmp_path / "from").mkdir()
    (tmp_path / "from" / folder.name).symlink_to(folder)
    assert "is a symbolic link, which is not followed" in why(merged(tmp_path))


def test_a_link_in_the_target_is_not_written_through(tmp_path: Path) -> None:
    folder = a_run(tmp_path / "from")
    (tmp_path / "into").mkdir()
    (tmp_path / "into" / folder.name).symlink_to(tmp_path / "elsewhere")
    outcomes = merged(tmp_path)
    assert outcomes[0].fate == "refused"
    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.parametrize(
    "name", ["a\nb", "|x|`y`<script>", "😀", "-rf", "a" * 250, "2026 1121", "..."], ids=["newline", *"abcdef"]
)
def test_hostile_names_of_folders_are_refused_on_one_line(tmp_path: Path, name: str) -> None:
    a_run(tmp_path / "from").rename(tmp_path / "from" / name)
    outcomes = merged(tmp_path)
    for outcome in outcomes:
        assert outcome.fate in ("refused", "left out")
        assert "\n" not in outcome.name + outcome.why
        assert len(outcome.name) < 100
    assert contents(tmp_path / "into") == {}


def test_an_id_inside_that_leads_elsewhere_is_refused(tmp_path: Path) -> None:
    folder = a_comparison(tmp_path / "from")
    (folder / "finished.json").unlink()
    document = json.loads((folder / "comparison.json").read_text())
    (folder / "comparison.json").write_text(json.dumps({**document, "id": "../../" + "x" * 10_000}))
    sentence = why(merged(tmp_path))
    assert "under another name" in sentence
    assert len(sentence) < 300
    assert contents(tmp_path / "into") == {}


def test_a_history_behind_a_link_is_refused(tmp_path: Path) -> None:
    (name,) = runs(tmp_path / "from", 1)
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "from" / "history").symlink_to(tmp_path / "elsewhere")
    outcomes = merged(tmp_path)
    assert fates(outcomes) == {name: "copied", "history": "refused"}


def test_a_history_of_more_rows_than_runs_have_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = runs(tmp_path / "from", 1)
    compact(open_place(str(tmp_path / "from")), Silent())
    shutil.rmtree(tmp_path / "from" / names[0])
    monkeypatch.setattr("harness.store.merge_history._BATCH_ROWS", 3)
    assert "has more than 3 rows of 1 runs" in why(merged(tmp_path))


def test_a_folder_that_changes_while_it_is_copied_is_looked_at_as_it_was_copied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = a_run(tmp_path / "from")
    real = bounded.open_plain

    def swap(file: Path, *, follow: bool = True) -> object:
        if file.name == "report.md" and not file.is_symlink():
            link_report(folder)
        return real(file, follow=follow)

    monkeypatch.setattr("harness.store.transfer.open_plain", swap)
    assert "report.md: cannot be read" in why(merged(tmp_path))
    assert contents(tmp_path / "into") == {}


def test_a_disk_that_is_full_keeps_nothing_of_a_folder_and_says_so(tmp_path: Path) -> None:
    large, small = a_run(tmp_path / "from"), a_comparison(tmp_path / "from")
    (tmp_path / "into").mkdir()
    room = max(file.stat().st_size for file in small.iterdir())
    assert room < (large / "run.json").stat().st_size
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (room, before[1]))
    try:
        outcomes = merged(tmp_path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert fates(outcomes) == {large.name: "refused", small.name: "copied"}
    assert "cannot be written (File too large); make room" in outcomes[0].why
    assert contents(tmp_path / "into") == {f"{small.name}/{name}": data for name, data in contents(small).items()}
    assert set(fates(merged(tmp_path)).values()) == {"copied", "already there"}


def test_a_folder_that_cannot_be_written_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    a_run(tmp_path / "from")

    def read_only(*_: object, **__: object) -> str:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    monkeypatch.setattr("tempfile.mkdtemp", read_only)
    assert "cannot be written (Read-only file system); make room or mend its permissions" in why(merged(tmp_path))


def test_the_limit_of_a_folder_lets_real_ones_through() -> None:
    assert FOLDER_LIMIT_BYTES > 5000 * 231_228  # the largest rounds.jsonl of results/published
