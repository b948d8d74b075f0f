"""The harness's end of a worker: start it, ask it, notice when it dies."""

from __future__ import annotations

import json
import os
import queue
import subprocess
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, Any

from harness.errors import CaseError
from harness.process import Finished, Limits, forget, spawn, stop
from harness.toolchain.messages import status_text, tail

_START_LIMIT_S = 120.0


class WorkerDied(CaseError):
    """The worker process ended or had to be stopped; `case` is what it was at work on, or ""."""

    def __init__(self, message: str, stderr: str, case: str) -> None:
        super().__init__("measure", message, stderr)
        self.case = case


class WorkerRefused(CaseError):
    """The worker answered that it cannot do what it was asked; it lives on."""

    def __init__(self, message: str) -> None:
        super().__init__("measure", message)


class WorkerSession:
    """One worker process, as a context manager; it is stopped at the end whatever happens.

    Args:
        command: What starts the worker.
        opening: What the worker's `open` takes: the device and the runtime's flags, or the peer and its threads.
        cpus: Cores to hold it on; None: wherever the system puts it.
        cwd: Folder that it runs in, where flags that name files find them.
        env: Variables to add to this process's own.
        limits: For each answer.
    """

    def __init__(
        self,
        *,
        command: Sequence[str],
        opening: Mapping[str, Any],
        cpus: frozenset[int] | None,
        limits: Limits,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
    ) -> None:
        self._open = {"op": "open", **opening, "cpus": sorted(cpus or ())}
        self._command = list(command)
        self._limits = limits
        self._cwd = cwd
        self._env = env
        self._answers: queue.Queue[str | None] = queue.Queue()

    def __enter__(self) -> WorkerSession:
        self._stderr = tempfile.TemporaryFile()
        handle, marker = tempfile.mkstemp(prefix="harness-worker-")
        os.close(handle)
        self._marker = Path(marker)
        self._child = spawn(
            self._command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._stderr,
            cwd=self._cwd,
            env=self._env,
        )
        assert self._child.stdout is not None  # noqa: S101 (asked for a pipe)
        threading.Thread(target=self._read, args=(self._child.stdout,), daemon=True).start()
        try:
            self.ask(**self._open, marker=marker, limit_s=_START_LIMIT_S)
        except BaseException:
            self.__exit__(None, None, None)
            raise
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
            if pipe is not None:
                try:
                    pipe.close()
                except BrokenPipeError:
                    continue
        self._stderr.close()
        self._marker.unlink(missing_ok=True)

    def load(self, case: str, request: Mapping[str, Any]) -> None:
        """Hold a case's program and inputs.

        Raises:
            WorkerRefused: The program or an input does not load.
            WorkerDied: The worker ended.
        """
        self.ask(op="load", case=case, **request)

    def ask(self, *, limit_s: float | None = None, **request: Any) -> Mapping[str, Any]:
        """Send one request and wait for its answer.

        Raises:
            WorkerRefused: The worker answered with an error.
            WorkerDied: The worker ended, or took longer than the limit and was stopped.
        """
        self._send(request)
        limit = limit_s if limit_s is not None else self._limits.seconds
        try:
            line = self._answers.get(timeout=limit)
        except queue.Empty:
            stop(self._child)
            raise self._died(f"took longer than the limit of {limit:g} s and was stopped (--call-timeout)") from None
        if line is None:
            self._child.wait()
            ended = Finished(
                command=(), returncode=self._child.returncode, stdout="", stderr="", wall_ns=0, peak_rss_bytes=None
            )
            raise self._died(ended.how_it_ended())
        answer = json.loads(line)
        if not answer["ok"]:
            raise WorkerRefused(status_text(answer["error"]))
        return dict(answer)

    def at_work_on(self) -> str:
        """The case that the worker last began to load, warm up or time; "" before the first."""
        return self._marker.read_text()

    def _send(self, request: Mapping[str, Any]) -> None:
        assert self._child.stdin is not None  # noqa: S101 (asked for a pipe)
        try:
            self._child.stdin.write(json.dumps(request).encode() + b"\n")
            self._child.stdin.flush()
        except BrokenPipeError:
            return  # the reader thread reports its end

    def _read(self, stdout: IO[bytes]) -> None:
        try:
            for line in stdout:
                self._answers.put(line.decode())
        except ValueError:  # closed while reading, at the end of a session
            pass
        self._answers.put(None)

    def _died(self, how: str) -> WorkerDied:
        self._stderr.seek(0)
        case = self.at_work_on()
        during = f" while it was at work on {case}" if case else " while it opened the device"
        printed = tail(self._stderr.read().decode(errors="replace"))
        return WorkerDied(f"the worker {how}{during}", printed, case)
