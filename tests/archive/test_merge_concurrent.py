"""Several processes that merge into one folder, and one that is killed in the middle."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

from harness.progress import Silent
from harness.store.merge import merge
from tests.archive.made import contents, fates, runs

_MERGE = """
import sys
from harness.store.merge import merge
from harness.progress import Silent
for one in merge([sys.argv[1]], sys.argv[2], Silent()):
    print(one.fate)
"""
_KILLED = """
import os, signal, sys
from pathlib import Path
from harness.store import transfer
real, seen = transfer._copy_file, []
def copy(source, target):
    seen.append(source)
    if len(seen) == 7:
        os.kill(os.getpid(), signal.SIGKILL)
    real(source, target)
transfer._copy_file = copy
"""


def start(code: str, *arguments: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[2])


def test_two_processes_at_once_copy_every_run_once(tmp_path: Path) -> None:
    runs(tmp_path / "from", 12)
    processes = [start(_MERGE, tmp_path / "from", tmp_path / "into") for _ in range(3)]
    told = [process.communicate(timeout=120)[0].split("\n") for process in processes]
    assert [process.returncode for process in processes] == [0, 0, 0]
    fates_told = [fate for lines in told for fate in lines if fate]
    assert (fates_told.count("copied"), fates_told.count("already there")) == (12, 24)
    assert contents(tmp_path / "into") == contents(tmp_path / "from")


def test_a_merge_that_was_killed_leaves_whole_folders_and_the_next_one_goes_on(tmp_path: Path) -> None:
    first, second = runs(tmp_path / "from", 2)
    process = start(_KILLED + _MERGE, tmp_path / "from", tmp_path / "into")
    process.communicate(timeout=120)
    assert process.returncode == -signal.SIGKILL
    assert sorted(path.name for path in (tmp_path / "into").glob("[!.]*")) == [first]
    assert len(list((tmp_path / "into").glob(".copying-*"))) == 1
    assert fates(merge([str(tmp_path / "from")], str(tmp_path / "into"), Silent())) == {
        first: "already there",
        second: "copied",
    }
    assert contents(tmp_path / "into") == contents(tmp_path / "from")
