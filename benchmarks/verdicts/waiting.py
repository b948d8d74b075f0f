"""A head that waits instead of computing: the module's call, then a wait that is a known share of it.

python -m benchmarks.verdicts.waiting      (the worker, which harness.measure drives)
"""

import mmap
import os
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from harness.compare.engine import BASE, HEAD
from harness.measure import Group, LoadableModule
from harness.measure.session import WorkerSession
from harness.measure.worker import Callee, Session, serve

Wait = Literal["sleep", "pipe", "lock", "pages"]

_CALIBRATING_CALLS = 20


@dataclass(frozen=True, kw_only=True)
class WaitingModule:
    """A module whose calls each wait for a share of what they take; 0: they do not."""

    name: str
    module: LoadableModule
    wait: Wait
    share: float

    @property
    def home(self) -> Hashable:
        """Both sides live in one worker, as modules of one toolchain do."""
        return "waiting", self.wait

    def worker(self, group: Group, limit_s: float | None) -> WorkerSession:
        """The worker of this file."""
        return WorkerSession(
            command=[sys.executable, "-u", "-m", "benchmarks.verdicts.waiting"],
            opening={"uris": [group.uri], "flags": [], "wait": self.wait},
            cpus=group.cpus,
            cwd=Path(__file__).parents[2],
            limit_s=limit_s,
        )

    def request(self) -> Mapping[str, Any]:
        """The module's, and its share."""
        return {**self.module.request(), "share": self.share}


def waiting_pair(base: LoadableModule, wait: Wait, share: float) -> tuple[WaitingModule, WaitingModule]:
    """The same module on both sides; the head's calls wait."""
    return (
        WaitingModule(name=BASE, module=base, wait=wait, share=0.0),
        WaitingModule(name=HEAD, module=base, wait=wait, share=share),
    )


class _Waits:
    """A callee whose calls end with a wait of so many seconds."""

    def __init__(self, inner: Callee, wait: Callable[[float], None], share: float) -> None:
        self._inner = inner
        self._wait = wait
        self._seconds = share * min(_seconds_on_core(inner) for _ in range(_CALIBRATING_CALLS))

    def call(self, calls: int) -> int:
        """Time a batch of calls; nanoseconds."""
        started = time.perf_counter_ns()
        for _ in range(calls):
            self._inner.call(1)
            if self._seconds:
                self._wait(self._seconds)
        return time.perf_counter_ns() - started

    def results(self) -> list[Any]:
        """Those of the module."""
        return self._inner.results()


def _seconds_on_core(callee: Callee) -> float:
    """CPU time of a call, so that the wait is as long beside others as it is alone."""
    started = time.thread_time()
    callee.call(1)
    return time.thread_time() - started


class WaitingSession(Session):
    """A worker's session whose modules wait."""

    def __init__(self, request: dict[str, Any]) -> None:
        super().__init__(request)
        self._wait = _WAITS[request["wait"]]()

    def load(self, request: dict[str, Any]) -> dict[str, Any]:
        """Hold one module, with its wait."""
        answer = super().load(request)
        case = request["case"]
        self.cases[case] = _Waits(self.cases[case], self._wait, request["share"])
        return answer


def _sleeper() -> Callable[[float], None]:
    return time.sleep


def _pipe() -> Callable[[float], None]:
    """Waits for a byte from another process, which sleeps before it writes."""
    there, ask = os.pipe()
    answer, back = os.pipe()
    if os.fork() == 0:
        os.sched_setaffinity(0, range(os.cpu_count() or 1))
        os.close(ask)
        while seconds := os.read(there, 32):
            time.sleep(float(seconds))
            os.write(back, b".")
        os._exit(0)

    def wait(seconds: float) -> None:
        os.write(ask, f"{seconds:.9f}".encode())
        os.read(answer, 1)

    return wait


def _lock() -> Callable[[float], None]:
    """Waits for a lock that another thread holds while it sleeps."""
    wanted, held, lock = threading.Semaphore(0), threading.Semaphore(0), threading.Lock()
    seconds_asked = [0.0]

    def hold() -> None:
        while True:
            wanted.acquire()
            with lock:
                held.release()
                time.sleep(seconds_asked[0])

    threading.Thread(target=hold, daemon=True).start()

    def wait(seconds: float) -> None:
        seconds_asked[0] = seconds
        wanted.release()
        held.acquire()
        with lock:
            return

    return wait


def _pages() -> Callable[[float], None]:
    """Reads pages of a file that the system has put away, until so much time has passed."""
    file = tempfile.TemporaryFile(dir=Path.cwd())  # noqa: SIM115 (lives as long as the process)
    file.write(os.urandom(64 << 20))
    file.flush()
    os.fsync(file.fileno())
    mapped = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
    place = [0]

    def wait(seconds: float) -> None:
        until = time.perf_counter() + seconds
        while time.perf_counter() < until:
            if place[0] == 0:
                mapped.madvise(mmap.MADV_DONTNEED)
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            mapped[place[0]]
            place[0] = (place[0] + (1 << 17)) % len(mapped)

    return wait


_WAITS: Mapping[str, Callable[[], Callable[[float], None]]] = {
    "sleep": _sleeper,
    "pipe": _pipe,
    "lock": _lock,
    "pages": _pages,
}


if __name__ == "__main__":
    serve(WaitingSession)
