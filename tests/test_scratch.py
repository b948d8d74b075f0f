"""Scratch folders end with their process, and what a killed one left is swept by the next."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from harness.cache import sweep_writing, write_atomically
from harness.scratch import lock_file, own_temporary_folder, scratch_folder, shared_temporary_folder, sweep

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


def test_only_what_has_the_prefix_is_swept_and_a_folder_with_one_sweeps_its_like(tmp_path: Path) -> None:
    for name in (".importing-dead", "programs", ".importing-young", ".fetching-dead"):
        (tmp_path / name).mkdir()
    for name in (".importing-dead", "programs", ".fetching-dead"):
        _age(tmp_path / name, 120)
    with scratch_folder(tmp_path, ".importing-") as own:
        assert own.name.startswith(".importing-")
        left = {path.name for path in tmp_path.iterdir()} - {own.name}
    assert left == {"programs", ".importing-young", ".fetching-dead"}


def test_a_file_that_a_killed_process_was_writing_is_swept_and_a_living_ones_is_not(tmp_path: Path) -> None:
    memos = tmp_path / "memos"
    write_atomically(memos / "memo", b"1")
    for folder in (memos, tmp_path / "environments"):
        folder.mkdir(exist_ok=True)
        for name in (".writing-dead", ".writing-living", "memo"):
            (folder / name).touch()
            _age(folder / name, 120)
    (memos / ".writing-link").symlink_to("memo")
    with (memos / ".writing-living").open("rb") as stream:
        lock_file(stream.fileno())
        sweep_writing(tmp_path)
        assert {path.name for path in memos.iterdir()} == {".writing-living", ".writing-link", "memo"}
    assert len(list((tmp_path / "environments").iterdir())) == 3, "too many files to look at"


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
