"""What can be timed, a session with the worker that times it, and the lock by which one harness measures at a time."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import shlex
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Protocol

from filelock import FileLock, Timeout

from harness.cache import read_memo, write_memo
from harness.errors import CaseError
from harness.measure.worker import ON_CALLING_THREAD
from harness.process import Finished, forget, spawn, stop
from harness.scratch import shared_temporary_folder
from harness.text import shown
from harness.toolchain import Toolchain
from harness.toolchain.tools import status_text, tail

WORKER = Path(__file__).with_name("worker.py")


class Loadable(Protocol):
    """A case with all that a worker needs to call it."""

    @property
    def name(self) -> str:
        """The case's."""

    @property
    def home(self) -> Hashable:
        """Cases with equal homes live in one worker."""

    def worker(self, group: Group, limit_s: float | None) -> WorkerSession:
        """A worker for this case and others of the same home, not started yet."""

    def request(self) -> Mapping[str, Any]:
        """What the worker's `load` takes besides the case."""


@dataclass(frozen=True, kw_only=True)
class LoadableModule:
    """A compiled case."""

    name: str
    module: Path
    function: str
    # One mapping an argument: {"file": path} of an .npy, or of raw bytes with "raw", "shape" and "element_type" for
    # types that numpy lacks; with "scalar" the number is passed by value
    arguments: tuple[Mapping[str, Any], ...]
    parameters: Mapping[str, Path]  # External weights by scope
    run_flags: tuple[str, ...]  # Runtime flags; cases with other flags live in another worker
    toolchain: Toolchain
    # Whether it lives in one context with others of its module, and so has its memory in common with them
    shares_context: bool = False

    @property
    def home(self) -> Hashable:
        """Flags are read once by a runtime, so cases with other flags need another one."""
        return self.toolchain.python, self.run_flags

    def worker(self, group: Group, limit_s: float | None) -> WorkerSession:
        """A worker of this case's toolchain on the group's devices."""
        return WorkerSession(
            command=[*self.toolchain.python_command, "-u", str(WORKER)],
            opening={"uris": [group.uri, *group.more_uris], "flags": list(self.run_flags)},
            cpus=group.cpus,
            env=group.environment,
            cwd=self.module.parent,
            limit_s=limit_s,
        )

    def request(self) -> Mapping[str, Any]:
        """The module, its entry function, its arguments and weights."""
        return {
            "module": str(self.module.absolute()),
            "function": self.function,
            "arguments": [dict(argument) for argument in self.arguments],
            "parameters": {scope: str(file.absolute()) for scope, file in self.parameters.items()},
            **({"shares_context": True} if self.shares_context else {}),
        }


@dataclass(frozen=True, kw_only=True)
class Group:
    """Cases that are measured against each other on one device."""

    name: str
    uri: str  # The device, or of several the one where arguments are put
    more_uris: tuple[str, ...] = ()  # The other devices of programs that run on several, in order
    environment: Mapping[str, str] = field(default_factory=dict)  # Variables that the workers need
    cases: tuple[Loadable, ...]
    cpus: frozenset[int] | None  # Cores to hold the workers on; None: wherever the system puts them

    @property
    def on_calling_thread(self) -> bool:
        """Whether the device computes on the thread that calls."""
        return {self.uri, *self.more_uris} == {ON_CALLING_THREAD}


@dataclass(frozen=True, kw_only=True)
class Settings:
    """How long and how carefully to measure."""

    seconds: float  # Budget of timed rounds for one generation of one group
    seed: int = 0
    # Calls shorter than this are batched until a turn takes about this long. Driving a call through iree.runtime costs
    # some tens of microseconds and a clock read less than one, so 1 ms keeps both small.
    target_turn_ns: int = 1_000_000
    least_rounds: int = 2  # Rounds that a generation has even where they take longer than its budget; even, for balance
    # A round that takes longer is the only one of its generation, in the order of the generation before backwards;
    # None: there are at least `least_rounds`, however long they take
    long_round_s: float | None = None
    call_limit_s: float = 300.0  # A turn that takes longer is stopped


_START_LIMIT_S = 120.0


class WorkerDied(CaseError):
    """The worker process ended or had to be stopped; `case` is what it was at work on, or "" before its first load."""

    def __init__(self, message: str, stderr: str, case: str) -> None:
        super().__init__("measure", message, stderr)
        self.case = case


class WorkerRefused(CaseError):
    """The worker answered that it cannot do what it was asked; it lives on."""


@dataclass(kw_only=True, eq=False)
class WorkerSession:
    """One worker process, as a context manager; it is stopped at the end whatever happens."""

    command: Sequence[str]
    opening: Mapping[str, Any]  # What the request `open` says, but for the cores
    cpus: frozenset[int] | None
    limit_s: float | None  # After which an answer is waited for no longer, unless a request says otherwise
    cwd: Path | None = None
    env: Mapping[str, str] | None = None

    def __enter__(self) -> WorkerSession:
        self._answers: queue.Queue[str | None] = queue.Queue()
        self._stderr = tempfile.TemporaryFile()
        handle, marker = tempfile.mkstemp(prefix="harness-worker-")
        os.close(handle)
        self._marker = Path(marker)
        pipe, stderr = subprocess.PIPE, self._stderr
        self._child = spawn(self.command, stdin=pipe, stdout=pipe, stderr=stderr, cwd=self.cwd, env=self.env)
        assert self._child.stdout is not None  # noqa: S101 (asked for a pipe)
        threading.Thread(target=self._read, args=(self._child.stdout,), daemon=True).start()
        self.is_open = False
        self._send({"op": "open", **self.opening, "cpus": sorted(self.cpus or ()), "marker": marker})
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._child.poll() is None and kind is None:
            self._send({"op": "quit"})
            deadline = time.monotonic() + 1.0
            while self._child.poll() is None and time.monotonic() < deadline:
                time.sleep(0.005)
        if self._child.poll() is None:
            stop(self._child)
        forget(self._child)
        for pipe in (self._child.stdin, self._child.stdout):
            with contextlib.suppress(BrokenPipeError):
                if pipe is not None:
                    pipe.close()
        self._stderr.close()
        self._marker.unlink(missing_ok=True)

    def wait_until_open(self) -> None:
        """Wait for its devices; workers that are entered one after the other start side by side."""
        if not self.is_open:
            self._answer(_START_LIMIT_S)
            self.is_open = True

    def ask(self, *, limit_s: float | None = None, **request: Any) -> Mapping[str, Any]:
        """Send one request and wait for its answer."""
        self.wait_until_open()
        self._send(request)
        return self._answer(limit_s if limit_s is not None else self.limit_s)

    def _answer(self, limit: float | None) -> Mapping[str, Any]:
        try:
            line = self._answers.get(timeout=limit)
        except queue.Empty:
            stop(self._child)
            raise self._died(f"took longer than the limit of {limit:g} s and was stopped (--call-timeout)") from None
        if line is None:
            self._child.wait()
            code = self._child.returncode
            ended = Finished(command=(), returncode=code, stdout="", stderr="", wall_ns=0, peak_rss_bytes=None)
            raise self._died(ended.how_it_ended())
        answer = json.loads(line)
        if not answer["ok"]:
            raise WorkerRefused("measure", status_text(answer["error"]))
        return dict(answer)

    def at_work_on(self) -> str:
        """The case that the worker last began to load, warm up or time; "" before the first."""
        return self._marker.read_text()

    def _send(self, request: Mapping[str, Any]) -> None:
        assert self._child.stdin is not None  # noqa: S101 (asked for a pipe)
        with contextlib.suppress(BrokenPipeError):  # the reader thread reports its end
            self._child.stdin.write(json.dumps(request).encode() + b"\n")
            self._child.stdin.flush()

    def _read(self, stdout: IO[bytes]) -> None:
        with contextlib.suppress(ValueError):  # closed while reading, at the end of a session
            for line in stdout:
                self._answers.put(line.decode())
        self._answers.put(None)

    def _died(self, how: str) -> WorkerDied:
        self._stderr.seek(0)
        case = self.at_work_on()
        during = f" while it was at work on {case}" if case else " while it opened the device"
        printed = tail(self._stderr.read().decode(errors="replace"))
        return WorkerDied(f"the worker {how}{during}", printed, case)


@contextlib.contextmanager
def only_one_measures(note: Callable[[str], None], *, wait: bool = True) -> Iterator[None]:
    """Wait until no other harness of this user measures here; the lock goes with the process that holds it."""
    path = shared_temporary_folder() / f"iree-harness-{os.getuid()}-measures.lock"
    lock, holder = FileLock(path), path.with_suffix(".json")
    try:
        lock.acquire(timeout=0)
    except Timeout:
        if not wait:
            note(f"{_who(holder)}; this one measures beside it, so figures of both are disturbed")
            yield
            return
        note(f"{_who(holder)}; waiting for it (--no-wait measures beside it, which disturbs both)")
        lock.acquire()
    try:
        now = datetime.now().astimezone().isoformat(timespec="seconds")
        write_memo(holder, {"pid": os.getpid(), "command": shlex.join(["harness", *sys.argv[1:]]), "since": now})
        yield
    finally:
        holder.unlink(missing_ok=True)
        lock.release()


def _who(holder: Path) -> str:
    """`Another harness is measuring on this machine since 08:31:02: pid 4711, harness run suites/esrgan.toml`."""
    sentence = "Another harness is measuring on this machine"
    known: Any = read_memo(holder)
    try:
        since = datetime.fromisoformat(known["since"]).strftime("%H:%M:%S")
        return f"{sentence} since {since}: pid {int(known['pid'])}, {shown(str(known['command']))}"
    except (KeyError, TypeError, ValueError):  # it has only just begun, or is of an older harness
        return sentence
