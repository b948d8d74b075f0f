"""A harness that is killed leaves nothing running: not what computes, not what is held still, not their children."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from harness import process

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
# A harness with one such child that is held still and one that is not; prints them and the reaper, and waits.
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
    sys.stdin.read()
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


def _is_gone(pid: int) -> bool:
    try:
        return bool(psutil.Process(pid).status() == psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return True


def _wait_until(happened: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not happened():
        assert time.monotonic() < deadline, "it never happened"
        time.sleep(0.02)


def test_what_computes_and_what_is_held_still_ends_with_a_harness_that_is_killed() -> None:
    command = [sys.executable, "-c", _HARNESS]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as harness:
        assert harness.stdout is not None
        *family, reaper = (int(word) for word in harness.stdout.readline().split())
        still = [True, True, False, False]
        _wait_until(lambda: [psutil.Process(pid).status() == psutil.STATUS_STOPPED for pid in family] == still)
        harness.kill()
    _wait_until(lambda: all(map(_is_gone, (*family, reaper))))


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


def test_what_has_ended_is_released_since_its_number_may_become_anothers(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    monkeypatch.setattr(process._reaper, "_tell", told.append)
    process.run([sys.executable, "-c", "pass"])
    watched, released = told
    assert (watched[0], released) == ("+", f"-{watched[1:]}")
