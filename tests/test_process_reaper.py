"""A harness that is killed leaves nothing running: not what computes, not what is held still, not their children."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

pytestmark = pytest.mark.skipif(not hasattr(os, "killpg"), reason="no groups of processes here")

PATIENCE_S = 60

# A child that has a child, neither of which heeds TERM; prints both.
_FAMILY = """
import os, signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
print(os.getpid(), child.pid, flush=True)
time.sleep(600)
"""
# A harness with one such child that is held still and one that is not; prints them and the reaper.
_HARNESS = f"""
import subprocess, sys, time
from harness import process
command = [sys.executable, "-c", {_FAMILY!r}]
def begin():
    return process.spawn(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
children = [process._gate.start(begin), begin()]
words = [child.stdout.readline().decode().strip() for child in children]
with process.hold_still():
    print(*words, process._reaper.pid, flush=True)
    for _ in sys.stdin:
        print(process._reaper.pid, flush=True)
"""
# A harness that is killed as soon as it has a child, which it could not tell the reaper; the child keeps stdout open.
_SUDDEN = """
import os, signal, subprocess, sys
from harness import process
process._reaper.watch = lambda group: os.kill(os.getpid(), signal.SIGKILL)
process.spawn([sys.executable, "-c", "import time; time.sleep(600)"], stdin=subprocess.DEVNULL, stdout=1, stderr=2)
"""
# A harness whose child leaves an echo in a session of its own, as compilers leave the server of a cache.
_ECHO = "import sys; sys.stdout.write(sys.stdin.readline())"
_SERVING = f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {_ECHO!r}], start_new_session=True)"
_LEAVING = f"""
import sys
from harness import process
child = process.spawn([sys.executable, "-c", {_SERVING!r}], stdin=0, stdout=1, stderr=2)
child.wait()
process.forget(child)
print(process._reaper.pid)
"""


class Harness:
    """A harness with four processes below it, of which two are held still."""

    def __init__(self, child: subprocess.Popen[str]) -> None:
        self.child = child
        assert child.stdout is not None
        *self.family, self.reaper = (int(word) for word in child.stdout.readline().split())

    def ask_reaper(self) -> int:
        """The pid of its reaper now."""
        assert self.child.stdin is not None
        assert self.child.stdout is not None
        self.child.stdin.write("\n")
        self.child.stdin.flush()
        return int(self.child.stdout.readline())

    def left(self) -> list[int]:
        """What still runs or stands still of its family."""
        return [pid for pid in self.family if not _is_gone(pid)]


@contextmanager
def _harness() -> Iterator[Harness]:
    child = subprocess.Popen([sys.executable, "-c", _HARNESS], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    harness = Harness(child)
    try:
        yield harness
    finally:
        child.kill()
        child.communicate()
        for pid in harness.left():
            os.kill(pid, signal.SIGKILL)


def _is_gone(pid: int) -> bool:
    try:
        return bool(psutil.Process(pid).status() == psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return True


def _is_still(pid: int) -> bool:
    return bool(psutil.Process(pid).status() == psutil.STATUS_STOPPED)


def _wait_until(happened: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not happened():
        assert time.monotonic() < deadline, "it never happened"
        time.sleep(0.02)


def test_what_computes_and_what_is_held_still_ends_with_a_harness_that_is_killed() -> None:
    with _harness() as harness:
        _wait_until(lambda: [_is_still(pid) for pid in harness.family] == [True, True, False, False])
        harness.child.kill()
        _wait_until(lambda: not harness.left())
        _wait_until(lambda: _is_gone(harness.reaper))


def test_a_reaper_that_is_killed_or_asked_to_stop_leaves_no_gap() -> None:
    with _harness() as harness:
        os.kill(harness.reaper, signal.SIGTERM)
        os.kill(harness.reaper, signal.SIGKILL)
        _wait_until(lambda: harness.ask_reaper() != harness.reaper)
        assert len(harness.left()) == 4
        harness.child.kill()
        _wait_until(lambda: not harness.left())


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="no list of processes here")
def test_a_child_of_the_last_moment_ends_too() -> None:
    done = subprocess.run([sys.executable, "-c", _SUDDEN], capture_output=True, timeout=PATIENCE_S)
    assert done.returncode == -signal.SIGKILL
    assert done.stdout == done.stderr == b""


def test_what_a_child_left_on_purpose_outlives_a_harness_that_ends_by_itself() -> None:
    command = [sys.executable, "-c", _LEAVING]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as harness:
        assert harness.stdout is not None
        reaper = int(harness.stdout.readline())
        assert harness.wait(PATIENCE_S) == 0
        _wait_until(lambda: _is_gone(reaper))
        assert harness.communicate("still there\n", timeout=PATIENCE_S)[0] == "still there\n"


def test_what_has_ended_is_released_since_its_number_may_become_anothers() -> None:
    code = """
        import sys
        from harness import process
        process.run([sys.executable, "-c", "pass"])
        print(process._reaper._groups)
    """
    done = subprocess.run([sys.executable, "-c", "\n".join(map(str.strip, code.splitlines()))], capture_output=True)
    assert done.stdout.split() == [b"set()"]
