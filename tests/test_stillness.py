"""Holding compilers still while something is timed: they stop, lose no time, and go on whatever happens."""

from __future__ import annotations

import os
import sys
import threading
import time
from pathlib import Path

import psutil
import pytest

from harness.process import Finished, Limits, hold_still, run

pytestmark = pytest.mark.skipif(not hasattr(os, "killpg"), reason="no groups of processes here")

_NO_LIMITS = Limits()

# Writes its process id, then counts in a file until a stop file is there.
_COUNTING = """
import os, pathlib, sys, time
folder = pathlib.Path(sys.argv[1])
(folder / "pid").write_text(str(os.getpid()))
count = 0
while not (folder / "stop").exists():
    count += 1
    (folder / "count").write_text(str(count))
    time.sleep(0.01)
"""


class Background:
    """A pausable child that counts, in a thread as compiles are."""

    def __init__(self, folder: Path, limits: Limits = _NO_LIMITS) -> None:
        self.folder = folder
        self.finished: Finished | None = None
        self._limits = limits
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        command = [sys.executable, "-c", _COUNTING, str(self.folder)]
        self.finished = run(command, limits=self._limits, pausable=True)

    def count(self) -> int:
        """What it has counted to."""
        text = (self.folder / "count").read_text() if (self.folder / "count").exists() else ""
        return int(text or 0)

    def wait_for_more(self) -> None:
        """Until it has counted on."""
        before, deadline = self.count(), time.monotonic() + 30
        while self.count() <= before:
            assert time.monotonic() < deadline
            time.sleep(0.01)

    def end(self) -> Finished:
        """Let it end."""
        (self.folder / "stop").touch()
        self._thread.join()
        assert self.finished is not None
        return self.finished


def _wait_until_stopped(pid: int) -> None:
    """A signal takes a moment to arrive."""
    deadline = time.monotonic() + 30
    while psutil.Process(pid).status() != psutil.STATUS_STOPPED:
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_child_stands_still_and_then_goes_on(tmp_path: Path) -> None:
    child = Background(tmp_path)
    child.wait_for_more()
    with hold_still():
        _wait_until_stopped(int((tmp_path / "pid").read_text()))
        before = child.count()
        time.sleep(0.2)
        assert child.count() == before
    child.wait_for_more()
    assert child.end().ok


def test_the_time_it_was_held_counts_neither_as_its_own_nor_for_its_limit(tmp_path: Path) -> None:
    child = Background(tmp_path, Limits(seconds=20.0))
    child.wait_for_more()
    started = time.perf_counter_ns()
    with hold_still():
        time.sleep(1.0)
    finished = child.end()
    held_and_after = time.perf_counter_ns() - started
    assert finished.ok
    assert finished.wall_ns < held_and_after + 20e9 - 1e9
    assert finished.limit is None


def test_no_child_starts_while_others_are_held(tmp_path: Path) -> None:
    with hold_still():
        child = Background(tmp_path)
        time.sleep(0.2)
        assert not (tmp_path / "pid").exists()
    child.wait_for_more()
    assert child.end().ok


def test_children_that_are_not_pausable_go_on() -> None:
    with hold_still():
        assert run([sys.executable, "-c", "print(1)"]).stdout == "1\n"
