"""Starting, limiting and stopping child processes; the only module that does.

Every child has its own process group, and is stopped with TERM, then KILL; where the harness is killed, its reaper
kills them. Time and memory are limited by a watchdog, so that a limit reads as a limit, not as a crash.
"""

import atexit
import contextlib
import os
import re
import secrets
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import psutil

# Reads +group and -group, a line each, and an empty line from a harness that ends by itself; at the end of its input it
# kills the groups that are left, stopped or not, and, unless that line came, those with the mark. It looks twice, since
# a child has the mark only when its program begins.
_PROGRAM = """
import os, signal, sys, time
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    signal.signal(number, signal.SIG_IGN)
os.chdir("/")
groups = set()
killed = True
for line in sys.stdin.buffer:
    if line == b"\\n":
        killed = False
    else:
        (groups.add if line[:1] == b"+" else groups.discard)(int(line[1:]))
for _ in range(2):
    for name in os.listdir("/proc") if killed and os.path.isdir("/proc") else ():
        try:
            with open(f"/proc/{int(name)}/environ", "rb") as file:
                if os.fsencode(sys.argv[1]) in file.read().split(b"\\0"):
                    groups.add(int(name))
        except (OSError, ValueError):
            pass
    for group in groups:
        try:
            os.killpg(group, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            pass
    groups.clear()
    time.sleep(0.05)
"""
_MARK = "HARNESS_STARTED_BY"
# Tokens of GitHub and of its workflows: compilers, models and pip need none, and may be a stranger's code.
TOKENS = re.compile(r"(GITHUB|GH)(_ENTERPRISE)?_TOKEN|ACTIONS_(RUNTIME|ID_TOKEN_REQUEST)_TOKEN")


def _environment() -> dict[str, str]:
    """What a child inherits."""
    return {name: value for name, value in os.environ.items() if not TOKENS.fullmatch(name)}


class Reaper:
    """The groups of processes that end with this one."""

    def __init__(self) -> None:
        # As long in every process, since the size of its environment moves a program's memory.
        self._mark = f"{os.getpid():010d}-{secrets.token_hex(8)}"
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        atexit.register(self._dismiss)

    def begin(self) -> dict[str, str]:
        """Be there before a child is; the variable that its environment needs."""
        with self._lock:
            if self._process is None:
                with contextlib.suppress(OSError):  # a harness does without it
                    self._process = subprocess.Popen(
                        (sys.executable, "-I", "-S", "-c", _PROGRAM, f"{_MARK}={self._mark}"),
                        stdin=subprocess.PIPE,
                        stdout=subprocess.DEVNULL,
                        stderr=subprocess.DEVNULL,
                        env=_environment(),
                        start_new_session=True,
                    )
        return {_MARK: self._mark}

    def watch(self, group: int) -> None:
        """From now on the group ends with this process."""
        self._tell(f"+{group}\n")

    def release(self, group: int) -> None:
        """The group has ended; its number may become another's."""
        self._tell(f"-{group}\n")

    def _dismiss(self) -> None:
        """What a child left running on purpose, such as a cache's server, stays where this process ends by itself."""
        self._tell("\n")
        if self._process is not None and self._process.stdin is not None:
            self._process.stdin.close()
            self._process.returncode = 0  # it outlives this process, and nobody waits for it

    def _tell(self, line: str) -> None:
        with self._lock:
            if self._process is None or self._process.stdin is None:
                return
            with contextlib.suppress(OSError):  # somebody killed it
                self._process.stdin.write(line.encode())
                self._process.stdin.flush()


KILL_AFTER_S = 2.0
# What is said of a child that took too long.
PAST_TIME = "ran past its limit of"
_WATCH_EVERY_S = 0.05


class _Gate:
    """Which children may be held still (SIGSTOP) while something is timed, and for how long they have been."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._open = threading.Event()
        self._open.set()
        self._children: set[int] = set()
        self._held_ns = 0
        self._since_ns: int | None = None

    def start(self, spawn: Callable[[], subprocess.Popen[bytes]]) -> subprocess.Popen[bytes]:
        """Start a child that may be held still; while others are, it waits."""
        while True:
            self._open.wait()
            with self._lock:
                if self._open.is_set():
                    child = spawn()
                    self._children.add(child.pid)
                    return child

    def end(self, child: subprocess.Popen[bytes]) -> None:
        """A child has ended."""
        with self._lock:
            self._children.discard(child.pid)

    def held_ns(self) -> int:
        """For how long children have been held still, all in all: nanoseconds."""
        with self._lock:
            return self._held_ns + (0 if self._since_ns is None else time.perf_counter_ns() - self._since_ns)

    @contextmanager
    def hold(self) -> Iterator[None]:
        """Hold all of them still, and start none."""
        with self._lock:
            self._open.clear()
            self._since_ns = time.perf_counter_ns()
            self._signal(stop=True)
        try:
            yield
        finally:
            with self._lock:
                self._signal(stop=False)
                self._held_ns += time.perf_counter_ns() - (self._since_ns or time.perf_counter_ns())
                self._since_ns = None
                self._open.set()

    def _signal(self, *, stop: bool) -> None:
        for group in self._children:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(group, signal.SIGSTOP if stop else signal.SIGCONT)


_children: set[subprocess.Popen[bytes]] = set()
_children_lock = threading.Lock()
_gate = _Gate()
_reaper = Reaper()
_thread = threading.local()


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What a child may use; None: as much as it likes."""

    seconds: float | None = None
    memory_bytes: int | None = None  # Resident memory of the child and its descendants together


@dataclass(frozen=True, kw_only=True)
class Finished:
    """How a child ended."""

    command: tuple[str, ...]
    returncode: int  # Exit status; negative: the signal that ended it
    stdout: str
    stderr: str
    wall_ns: int
    # Peak resident memory, where the system counts it. A peak below the harness's own is measured only for children
    # with a memory limit, and misses what they add in their last 50 ms.
    peak_rss_bytes: int | None
    limit: str | None = None  # Why the harness stopped it (`time` or `memory`), else None

    @property
    def ok(self) -> bool:
        """Whether it ended by itself with status 0."""
        return self.returncode == 0 and self.limit is None

    def how_it_ended(self, limits: Limits = Limits()) -> str:
        """A phrase: `exited with status 1`, `was ended by SIGABRT`, `ran past its limit of 600 s`."""
        if self.limit == "time":
            return f"{PAST_TIME} {limits.seconds:g} s"
        if self.limit == "memory":
            return f"used more than its limit of {(limits.memory_bytes or 0) / 2**30:.4g} GiB of memory"
        if self.returncode < 0:
            try:
                name = signal.Signals(-self.returncode).name
            except ValueError:
                name = f"signal {-self.returncode}"
            hint = " (the system may have run out of memory)" if name == "SIGKILL" else ""
            return f"was ended by {name}{hint}"
        return f"exited with status {self.returncode}"


@contextmanager
def _inherited_affinity(cpus: frozenset[int] | None) -> Iterator[None]:
    if cpus is None or not hasattr(os, "sched_setaffinity"):
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cpus)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def spawn(
    command: Sequence[str],
    *,
    stdin: int | IO[bytes],
    stdout: int | IO[bytes],
    stderr: int | IO[bytes],
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    cpus: frozenset[int] | None = None,
) -> subprocess.Popen[bytes]:
    """Start a child in its own process group and remember it until `forget` or `stop`."""
    mark = _reaper.begin()
    with _inherited_affinity(cpus):
        child = subprocess.Popen(
            list(command),
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            cwd=cwd,
            env={**_environment(), **(env or {}), **mark},
            start_new_session=True,
        )
    _reaper.watch(child.pid)
    with _children_lock:
        _children.add(child)
    return child


def forget(child: subprocess.Popen[bytes]) -> None:
    """Take an ended child off the list of those that `stop_all` stops and that end with the harness."""
    _reaper.release(child.pid)
    with _children_lock:
        _children.discard(child)


def _signal_group(child: subprocess.Popen[bytes], number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, number)
        os.killpg(child.pid, signal.SIGCONT)  # a child that is held still acts on no signal but this


def stop(child: subprocess.Popen[bytes]) -> None:
    """Stop a child and its group: TERM, then KILL after two seconds."""
    _signal_group(child, signal.SIGTERM)
    deadline = time.monotonic() + KILL_AFTER_S
    while child.poll() is None and time.monotonic() < deadline:
        time.sleep(0.02)
    _signal_group(child, signal.SIGKILL)
    child.wait()
    forget(child)


def stop_all() -> None:
    """Stop every child that is still running; for an interrupted run."""
    with _children_lock:
        children = list(_children)
    for child in children:
        _signal_group(child, signal.SIGTERM)
    for child in children:
        try:
            stop(child)
        except ChildProcessError:  # the thread that waits for it was faster
            forget(child)


def _resident_bytes(pid: int) -> int:
    total = 0
    with contextlib.suppress(psutil.Error):
        process = psutil.Process(pid)
        for member in (process, *process.children(recursive=True)):
            with contextlib.suppress(psutil.Error):
                total += member.memory_info().rss
    return total


def _high_water_bytes(pid: int) -> int:
    """Peak resident memory of the program that a process runs; 0 where the system does not count it."""
    try:
        found = re.search(r"^VmHWM:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)
    except OSError:
        return 0
    return int(found[1]) * 1024 if found else 0


def _watch(
    child: subprocess.Popen[bytes],
    limits: Limits,
    ended: threading.Event,
    hit: list[str],
    peaks: list[int],
    *,
    pausable: bool,
) -> None:
    started, held_ns = time.monotonic(), _gate.held_ns()
    while True:
        if limits.memory_bytes is not None:
            peaks.append(_high_water_bytes(child.pid))
        if ended.wait(_WATCH_EVERY_S):
            return
        held_s = (_gate.held_ns() - held_ns) / 1e9 if pausable else 0.0
        if limits.seconds is not None and time.monotonic() - started - held_s > limits.seconds:
            hit.append("time")
        elif limits.memory_bytes is not None and _resident_bytes(child.pid) > limits.memory_bytes:
            hit.append("memory")
        if hit:
            _signal_group(child, signal.SIGTERM)
            if not ended.wait(KILL_AFTER_S):
                _signal_group(child, signal.SIGKILL)
            return


def _wait(child: subprocess.Popen[bytes]) -> tuple[int, int | None]:
    """Wait for the child's end; its exit status, and its peak resident memory in bytes, where that is known."""
    try:
        _, status, usage = os.wait4(child.pid, 0)
    except ChildProcessError:  # stop_all was faster
        return child.wait(), None
    # Not read back from the child: its poll() in stop_all takes a status that is gone for 0.
    child.returncode = returncode = os.waitstatus_to_exitcode(status)
    return returncode, usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024)


@contextmanager
def give_way() -> Iterator[None]:
    """Let `hold_still` hold every child that this thread runs, where another thread times something."""
    before = getattr(_thread, "gives_way", False)
    _thread.gives_way = True
    try:
        yield
    finally:
        _thread.gives_way = before


# Hold all children of threads that give way still, and start none, while something is timed.
hold_still = _gate.hold


def run(
    command: Sequence[str],
    *,
    cwd: Path | None = None,
    limits: Limits = Limits(),
    env: Mapping[str, str] | None = None,
    cpus: frozenset[int] | None = None,
) -> Finished:
    """Run a command to its end and keep everything it printed."""
    pausable = getattr(_thread, "gives_way", False)
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:

        def begin() -> subprocess.Popen[bytes]:
            return spawn(command, stdin=subprocess.DEVNULL, stdout=out, stderr=err, cwd=cwd, env=env, cpus=cpus)

        child = _gate.start(begin) if pausable else begin()
        started, held_ns = time.perf_counter_ns(), _gate.held_ns()
        ended, hit, peaks = threading.Event(), list[str](), [0]
        watchdog = None
        if limits != Limits():
            watchdog = threading.Thread(
                target=_watch, args=(child, limits, ended, hit, peaks), kwargs={"pausable": pausable}, daemon=True
            )
            watchdog.start()
        try:
            returncode, rusage_bytes = _wait(child)
        except BaseException:
            stop(child)
            raise
        finally:
            ended.set()
            _gate.end(child)
            if watchdog is not None:
                watchdog.join()
        wall_ns = time.perf_counter_ns() - started - (_gate.held_ns() - held_ns if pausable else 0)
        _signal_group(child, signal.SIGKILL)  # whatever it left behind in its group
        forget(child)
        # A child's rusage begins with its parent's peak, and counts from ten per cent above that.
        is_own = rusage_bytes is not None and rusage_bytes > 1.1 * _high_water_bytes(os.getpid())
        out.seek(0)
        err.seek(0)
        return Finished(
            command=tuple(command),
            returncode=returncode,
            stdout=out.read().decode(errors="replace"),
            stderr=err.read().decode(errors="replace"),
            wall_ns=wall_ns,
            peak_rss_bytes=rusage_bytes if is_own else max(peaks) or None,
            limit=hit[0] if hit else None,
        )
