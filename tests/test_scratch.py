"""Scratch folders end with their process, and what a killed one left is swept by the next."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from harness.scratch import own_temporary_folder, scratch_folder, shared_temporary_folder, sweep

pytestmark = pytest.mark.skipif(os.name != "posix", reason="folders cannot be locked there")

_HOLDER = """
import sys
from pathlib import Path
from harness.scratch import scratch_folder
with scratch_folder(Path(sys.argv[1])) as folder:
    (folder / "module.vmfb").touch()
    print(folder, flush=True)
    sys.stdin.read()
"""


def _age(folder: Path, seconds: float) -> None:
    then = folder.stat().st_mtime - seconds
    os.utime(folder, (then, then))


def test_a_folder_is_removed_at_the_end_and_may_have_become_something_else(tmp_path: Path) -> None:
    with scratch_folder(tmp_path) as folder:
        (folder / "file").touch()
    with scratch_folder(tmp_path) as moved:
        moved.replace(tmp_path / "kept")
    assert [path.name for path in tmp_path.iterdir()] == ["kept"]


def test_what_a_killed_process_left_is_swept_and_what_a_living_one_has_is_not(tmp_path: Path) -> None:
    command = [sys.executable, "-c", _HOLDER, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        folder = Path(child.stdout.readline().strip())
        _age(folder, 3 * 24 * 3600)
        sweep(tmp_path)
        assert folder.is_dir(), "as old as it may be"
        child.kill()
        child.wait()
        os.utime(folder)
        sweep(tmp_path)
        assert folder.is_dir(), "one that was just made is locked a moment later"
        _age(folder, 120)
        sweep(tmp_path)
        assert not folder.exists()


def test_all_temporary_files_of_a_process_lie_in_one_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with own_temporary_folder():
        (own,) = (tmp_path / f"iree-harness-{os.getuid()}").iterdir()
        handle, file = tempfile.mkstemp()
        os.close(handle)
        assert Path(file).parent == own
        assert shared_temporary_folder() == tmp_path
    assert (own.exists(), tempfile.tempdir) == (False, str(tmp_path))
    assert shared_temporary_folder() == tmp_path


def test_a_temporary_folder_that_cannot_be_written_stops_no_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "gone"))
    with own_temporary_folder():
        assert tempfile.tempdir == str(tmp_path / "gone")
