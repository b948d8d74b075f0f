"""Children: what they print is kept, how they end is told, and nothing of them is left behind."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import psutil
import pytest

from harness import process
from harness.cache import sweep_writing, write_atomically
from harness.process import Finished, Limits, give_way, hold_still, run, stop_all
from harness.scratch import lock_file, own_temporary_folder, shared_temporary_folder, sweep

MIB = 2**20
# Far more than any child here takes; what is asserted is that they end, not when.
PATIENCE_S = 60

FOREVER = "import time\nprint('ready', flush=True)\ntime.sleep(600)"
IGNORES_TERM = f"import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n{FOREVER}"


def python(code: str, **options: Any) -> Finished:
    return run([sys.executable, "-c", textwrap.dedent(code)], **options)


def wait_until(happened: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not happened():
        assert time.monotonic() < deadline, "it never happened"
        time.sleep(0.02)


def is_gone(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


# --- Output and status ---


def test_no_child_has_a_token(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GITHUB_TOKEN", "GH_TOKEN", "ACTIONS_ID_TOKEN_REQUEST_TOKEN"):
        monkeypatch.setenv(name, "ghs_secret")
    ours = process.Reaper()
    ours.begin()
    assert ours._process is not None
    environments = [python("import os; print(dict(os.environ))").stdout]
    environments.append(Path(f"/proc/{ours._process.pid}/environ").read_text())
    assert all("PATH" in environment and "ghs_secret" not in environment for environment in environments)


def test_what_a_child_prints_is_kept() -> None:
    finished = python("import sys; sys.stdout.buffer.write(b'a\\xffb'); sys.stderr.write('y' * 1_000_000)")
    assert finished.stdout == "a\ufffdb"
    assert len(finished.stderr) == 1_000_000, "more than a pipe holds"
    assert (finished.returncode, finished.limit, finished.ok) == (0, None, True)
    with pytest.raises(OSError, match="no-such-program"):
        run(["no-such-program"])


@pytest.mark.parametrize(
    ("code", "returncode", "phrase"),
    [
        ("raise SystemExit(3)", 3, "exited with status 3"),
        ("os.abort()", -signal.SIGABRT, "was ended by SIGABRT"),
        ("os.kill(os.getpid(), 9)", -9, "was ended by SIGKILL (the system may have run out of memory)"),
    ],
)
def test_how_a_child_ended(code: str, returncode: int, phrase: str) -> None:
    finished = python(f"import os; {code}")
    assert (finished.returncode, finished.ok) == (returncode, False)
    assert finished.how_it_ended() == phrase


# --- Environment ---


def test_a_child_has_a_folder_a_process_group_more_variables_and_no_input(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FROM_HERE", "1")
    code = """
        import json, os, sys
        variables = [os.environ[name] for name in ("FROM_HERE", "ADDED")]
        print(json.dumps([os.getcwd(), variables, sys.stdin.read(), os.getpid(), os.getpgrp()]))
    """
    folder, variables, typed, pid, group = json.loads(python(code, cwd=tmp_path, env={"ADDED": "2"}).stdout)
    assert (Path(folder), variables, typed) == (tmp_path.resolve(), ["1", "2"], "")
    assert pid == group != os.getpgrp()
    assert "ADDED" not in os.environ


# --- Limits ---


ANSWERS_TERM = f"import signal, sys\nsignal.signal(signal.SIGTERM, lambda *_: sys.exit(print('asked')))\n{FOREVER}"


@pytest.mark.parametrize(
    ("code", "words", "returncode"),
    [(ANSWERS_TERM, ["ready", "asked"], 0), (IGNORES_TERM, ["ready"], -signal.SIGKILL)],
)
def test_a_child_that_takes_too_long_is_asked_to_stop_before_it_is_killed(
    monkeypatch: pytest.MonkeyPatch, code: str, words: list[str], returncode: int
) -> None:
    monkeypatch.setattr(process, "KILL_AFTER_S", 0.5 if code == IGNORES_TERM else 10.0)
    finished = python(code, limits=Limits(seconds=3))
    assert finished.stdout.split() == words
    assert (finished.returncode, finished.limit, finished.ok) == (returncode, "time", False)
    assert finished.how_it_ended(Limits(seconds=3)) == "ran past its limit of 3 s"


HOARDS = f"import time; block = bytearray(b'x') * (256 * {MIB}); time.sleep(600)"


def test_a_child_that_uses_too_much_memory_with_its_children_is_stopped() -> None:
    limits = Limits(seconds=PATIENCE_S, memory_bytes=128 * MIB)
    finished = python(f"import subprocess, sys; subprocess.run([sys.executable, '-c', {HOARDS!r}])", limits=limits)
    assert (finished.limit, finished.ok) == ("memory", False)
    assert finished.how_it_ended(limits) == "used more than its limit of 0.125 GiB of memory"


@pytest.mark.skipif(sys.platform != "linux", reason="Linux tells a program's own peak")
def test_the_peak_of_memory_is_the_childs_own() -> None:
    ours = bytearray(b"x") * (192 * MIB)  # a child's rusage on Linux begins with the peak of whoever started it
    limits = Limits(memory_bytes=2048 * MIB)
    rest = "import time; time.sleep(0.3)"
    small = python(rest, limits=limits).peak_rss_bytes
    large = python(f"block = bytearray(b'x') * (96 * {MIB}); {rest}", limits=limits).peak_rss_bytes
    assert small is not None and large is not None
    assert MIB < small < 64 * MIB < 96 * MIB < large < len(ours)


# --- Left behind ---


def test_what_a_child_leaves_running_is_killed() -> None:
    leaving = f"""
        import os, subprocess, sys
        child = subprocess.Popen([sys.executable, "-c", {IGNORES_TERM!r}], stdout=subprocess.PIPE)
        child.stdout.readline()
        print(child.pid, flush=True)
        os._exit(0)
    """
    grandchild = int(python(leaving).stdout)
    wait_until(lambda: is_gone(grandchild))


def test_a_child_that_another_thread_waits_for_does_not_end_well_when_all_are_stopped() -> None:
    before = set(process._children)
    ended: list[Finished] = []
    threads = [threading.Thread(target=lambda: ended.append(python(FOREVER))) for _ in range(4)]
    for thread in threads:
        thread.start()
    wait_until(lambda: len(process._children - before) == len(threads))
    stop_all()
    for thread in threads:
        thread.join(PATIENCE_S)
    assert [finished.how_it_ended() for finished in ended] == ["was ended by SIGTERM"] * 4
    assert process._children == before


# --- Compilers that are held still while something is timed: they stop, lose no time, and go on whatever happens ---

_WAITING = """
import os, pathlib, sys, time
folder = pathlib.Path(sys.argv[1])
(folder / "pid").write_text(str(os.getpid()))
while not (folder / "stop").exists():
    time.sleep(0.01)
"""


def in_background(folder: Path, ended: list[Finished]) -> threading.Thread:
    """A child that waits for a stop file, in a thread that gives way as compiles do."""

    def compiling() -> None:
        with give_way():
            ended.append(run([sys.executable, "-c", _WAITING, str(folder)], limits=Limits(seconds=20.0)))

    thread = threading.Thread(target=compiling)
    thread.start()
    return thread


def test_a_child_stands_still_which_counts_neither_as_its_time_nor_for_its_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, ended, pid = Mock(wraps=time, ahead_s=0), list[Finished](), tmp_path / "pid"
    clock.monotonic = lambda: time.monotonic() + clock.ahead_s
    clock.perf_counter_ns = lambda: time.perf_counter_ns() + clock.ahead_s * 10**9
    monkeypatch.setattr(process, "time", clock)
    thread = in_background(tmp_path, ended)
    wait_until(lambda: pid.exists() and pid.read_text() != "")
    child = psutil.Process(int(pid.read_text()))
    with hold_still():
        wait_until(lambda: child.status() == psutil.STATUS_STOPPED)  # a signal takes a moment to arrive
        while clock.ahead_s < 25:  # more than its limit
            clock.ahead_s += 1
            time.sleep(0.01)
        assert child.status() == psutil.STATUS_STOPPED
    (tmp_path / "stop").touch()
    thread.join()
    assert ended[0].ok and ended[0].limit is None
    assert ended[0].wall_ns < 20e9


def test_no_child_of_a_thread_that_gives_way_starts_while_others_are_held(tmp_path: Path) -> None:
    ended: list[Finished] = []
    with hold_still():
        thread = in_background(tmp_path, ended)
        assert run([sys.executable, "-c", "print(1)"]).stdout == "1\n"
        assert not (tmp_path / "pid").exists()
    (tmp_path / "stop").touch()
    thread.join()
    assert ended[0].ok and (tmp_path / "pid").exists()


# --- A harness that is killed leaves nothing running ---

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
    print(*words, process._reaper._process.pid, flush=True)
    sys.stdin.read()
"""
# A harness that is killed as soon as it has a child, which it could not tell the reaper; the child keeps stdout open.
_SUDDEN = """
import os, signal, subprocess, sys
from harness import process
process._reaper.watch = lambda group: os.kill(os.getpid(), signal.SIGKILL)
process.spawn([sys.executable, "-c", "import time; time.sleep(600)"], stdin=subprocess.DEVNULL, stdout=1, stderr=2)
"""


def test_what_computes_and_what_is_held_still_ends_with_a_harness_that_is_killed() -> None:
    command = [sys.executable, "-c", _HARNESS]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as harness:
        assert harness.stdout is not None
        *family, reaper = (int(word) for word in harness.stdout.readline().split())
        still = [True, True, False, False]
        wait_until(lambda: [psutil.Process(pid).status() == psutil.STATUS_STOPPED for pid in family] == still)
        harness.kill()
    wait_until(lambda: all(map(is_gone, (*family, reaper))))


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="no list of processes here")
def test_a_child_of_the_last_moment_ends_too() -> None:
    done = subprocess.run([sys.executable, "-c", _SUDDEN], capture_output=True, timeout=PATIENCE_S)
    assert done.returncode == -signal.SIGKILL
    assert done.stdout == done.stderr == b""


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
