"""A dashboard only ever replaces a dashboard, and only once the new one is whole."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from harness.dashboard.folder import MARKER, replaced
from harness.errors import UsageError


def write(out: Path, text: str = "new") -> None:
    with replaced(out) as folder:
        (folder / "index.html").write_text(text)


def there(folder: Path) -> list[str]:
    """What lies in a folder, but for the lock, which stays."""
    return sorted(path.name for path in folder.iterdir() if not path.name.endswith(".lock"))


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
    assert there(tmp_path) == ["site"]


@pytest.mark.parametrize(
    ("place", "message"),
    [("site/thesis.tex", "holds other files than a dashboard; name a folder that is empty"),
     ("site/.git", "holds other files"), ("site", "is no folder")],
)  # fmt: skip
def test_what_is_no_dashboard_is_left_alone(tmp_path: Path, place: str, message: str) -> None:
    (tmp_path / place).parent.mkdir(exist_ok=True)
    (tmp_path / place).write_text("mine")
    with pytest.raises(UsageError, match=message):
        write(tmp_path / "site")
    assert (tmp_path / place).read_text() == "mine"


def test_a_crash_leaves_the_old_dashboard_and_nothing_else(tmp_path: Path) -> None:
    write(tmp_path / "site", "old")
    with pytest.raises(KeyboardInterrupt), replaced(tmp_path / "site") as folder:
        (folder / "index.html").write_text("half")
        raise KeyboardInterrupt
    assert (tmp_path / "site" / "index.html").read_text() == "old"
    assert there(tmp_path) == ["site"]


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


# --- A process that is killed ---

KILLED = """
import os, pathlib, signal, sys
from harness.dashboard.folder import replaced

moment, out = sys.argv[1], pathlib.Path(sys.argv[2])
rename = pathlib.Path.rename

def rename_and_die(self, target):
    rename(self, target)
    os.kill(os.getpid(), signal.SIGKILL)

with replaced(out) as folder:
    (folder / "index.html").write_text("half")
    if moment == "writing":
        os.kill(os.getpid(), signal.SIGKILL)
    pathlib.Path.rename = rename_and_die
"""


def killed(out: Path, moment: str) -> None:
    done = subprocess.run([sys.executable, "-c", KILLED, moment, str(out)], timeout=60, env=dict(os.environ))
    assert done.returncode == -signal.SIGKILL


def test_what_a_killed_process_began_is_removed_by_the_next(tmp_path: Path) -> None:
    write(tmp_path / "site", "old")
    killed(tmp_path / "site", "writing")
    assert len(there(tmp_path)) == 2
    assert (tmp_path / "site" / "index.html").read_text() == "old"
    write(tmp_path / "site")
    assert there(tmp_path) == ["site"]
    assert (tmp_path / "site" / "index.html").read_text() == "new"


def test_a_dashboard_that_a_killed_process_had_set_aside_comes_back(tmp_path: Path) -> None:
    """Between the two renames there is none; where the next one fails as well, there is the old one again."""
    write(tmp_path / "site", "old")
    killed(tmp_path / "site", "swapping")
    assert "site" not in there(tmp_path)
    with pytest.raises(KeyboardInterrupt), replaced(tmp_path / "site"):
        raise KeyboardInterrupt
    assert (tmp_path / "site" / "index.html").read_text() == "old"
    assert there(tmp_path) == ["site"]


def test_what_is_called_otherwise_is_left_alone(tmp_path: Path) -> None:
    others = [".site-new", ".site2.harness-new", "site.harness-new"]
    for name in others:
        (tmp_path / name).mkdir()
    write(tmp_path / "site")
    assert there(tmp_path) == sorted([*others, "site"])
    long = "x" * 255  # as a file system takes
    write(tmp_path / long)
    assert there(tmp_path) == sorted([*others, "site", long])


def test_a_second_dashboard_waits_for_the_first(tmp_path: Path) -> None:
    """Else it would remove what the first is about to finish."""
    code = (
        "import pathlib, sys; from harness.dashboard.folder import replaced\n"
        "with replaced(pathlib.Path(sys.argv[1])): pass"
    )
    with replaced(tmp_path / "site") as folder:
        other = subprocess.Popen([sys.executable, "-c", code, tmp_path / "site"], stderr=subprocess.PIPE, text=True)
        assert other.stderr is not None
        assert other.stderr.readline() == f"Another harness writes {tmp_path / 'site'}; waiting for it\n"
        assert folder.is_dir()
        assert other.poll() is None
    other.communicate(timeout=60)
