"""A dashboard only ever replaces a dashboard, and only once the new one is whole."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.dashboard.folder import MARKER, replaced
from harness.errors import UsageError


def write(out: Path, text: str = "new") -> None:
    with replaced(out) as folder:
        (folder / "index.html").write_text(text)


def test_a_new_folder_is_made_with_its_parents_and_can_be_read_by_a_server(tmp_path: Path) -> None:
    write(tmp_path / "a" / "site")
    assert (tmp_path / "a" / "site" / "index.html").read_text() == "new"
    assert (tmp_path / "a" / "site").stat().st_mode & 0o777 == 0o755


def test_an_empty_folder_and_a_former_dashboard_are_replaced_whole(tmp_path: Path) -> None:
    (tmp_path / "site").mkdir()
    write(tmp_path / "site", "old")
    (tmp_path / "site" / "gone.html").write_text("of an older harness")
    write(tmp_path / "site")
    assert sorted(path.name for path in (tmp_path / "site").iterdir()) == [MARKER, "index.html"]
    assert [path.name for path in tmp_path.iterdir()] == ["site"]


@pytest.mark.parametrize("name", ["thesis.tex", ".git"])
def test_other_files_are_left_alone(tmp_path: Path, name: str) -> None:
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / name).write_text("mine")
    with pytest.raises(UsageError, match="holds other files than a dashboard; name a folder that is empty"):
        write(tmp_path / "site")
    assert (tmp_path / "site" / name).read_text() == "mine"


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "site").write_text("mine")
    with pytest.raises(UsageError, match="is no folder"):
        write(tmp_path / "site")


def test_a_crash_leaves_the_old_dashboard_and_nothing_else(tmp_path: Path) -> None:
    write(tmp_path / "site", "old")
    with pytest.raises(KeyboardInterrupt), replaced(tmp_path / "site") as folder:
        (folder / "index.html").write_text("half")
        raise KeyboardInterrupt
    assert (tmp_path / "site" / "index.html").read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["site"]


def test_what_somebody_puts_there_meanwhile_is_left_alone(tmp_path: Path) -> None:
    def write_while_somebody_else_does() -> None:
        with replaced(tmp_path / "site"):
            (tmp_path / "site").mkdir()
            (tmp_path / "site" / "mine").write_text("mine")

    with pytest.raises(UsageError, match="holds other files"):
        write_while_somebody_else_does()
    assert (tmp_path / "site" / "mine").read_text() == "mine"


def test_a_link_to_a_folder_stays_a_link(tmp_path: Path) -> None:
    write(tmp_path / "real", "old")
    (tmp_path / "site").symlink_to(tmp_path / "real")
    write(tmp_path / "site")
    assert (tmp_path / "site").is_symlink()
    assert (tmp_path / "real" / "index.html").read_text() == "new"


def test_a_disk_that_is_full_is_told_in_one_sentence(tmp_path: Path) -> None:
    def fail() -> None:
        with replaced(tmp_path / "site"):
            raise OSError(28, "No space left on device")

    with pytest.raises(UsageError, match=r"site: cannot be written \(No space left on device\); make room"):
        fail()
