"""Both sides of a peer's worker: the case as measuring takes it, and the process that holds the engine.

The process runs this module under the harness's own Python, where peers are installed, with the variables in its
environment that hold engines to a number of threads. It answers as harness.measure.worker does, but that `open` names a
peer with its options, threads and a folder of its own, and that `load` brings a model instead of a module.
"""

import sys
import time
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from harness.machine.processor import thread_variables
from harness.measure.session import Group, WorkerSession
from harness.measure.worker import Turns, serve
from harness.models.inputs import ARGUMENTS, Argument, load_argument
from harness.peers.peer import AppliedPeer, PeerModel, Ready, Setting, find_peer
from harness.plugins.options import check_options

_MODEL = TypeAdapter(PeerModel)


@dataclass(frozen=True, kw_only=True)
class LoadablePeer:
    """A model that a peer runs."""

    name: str
    peer: AppliedPeer
    model: PeerModel
    arguments: tuple[Argument, ...]
    threads: int
    cache: Path

    @property
    def home(self) -> Hashable:
        """Engines do not share a process, nor do two settings of one."""
        return "peer", self.peer.label

    def worker(self, group: Group, limit_s: float | None) -> WorkerSession:
        """A worker of this peer, under the harness's own Python, on the group's cores."""
        self.cache.mkdir(parents=True, exist_ok=True)
        return WorkerSession(
            command=[sys.executable, "-u", "-m", "harness.peers.worker"],
            opening={
                "peer": self.peer.peer.name,
                "options": dict(self.peer.options),
                "threads": self.threads,
                "cache": str(self.cache.absolute()),
            },
            cpus=group.cpus,
            cwd=self.cache,  # Python would import a `torch` or `onnx` folder of the user's own working folder
            env=thread_variables(self.threads),
            limit_s=limit_s,
        )

    def request(self) -> Mapping[str, Any]:
        """The model and its arguments."""
        return {
            "model": _MODEL.dump_python(self.model, mode="json"),
            "arguments": ARGUMENTS.dump_python(self.arguments, mode="json"),
        }


@dataclass(frozen=True)
class _Timed:
    """A model that is ready."""

    ready: Ready

    def call(self, calls: int) -> int:
        """Time a batch of calls; nanoseconds."""
        call = self.ready.call
        started = time.perf_counter_ns()
        for _ in range(calls):
            call()
        return time.perf_counter_ns() - started

    def results(self) -> list[Any]:
        """Call once, untimed; the results."""
        self.ready.call()
        return list(self.ready.outputs())


class PeerTurns(Turns):
    """One engine, with the models that it made ready."""

    def __init__(self, request: dict[str, Any]) -> None:
        super().__init__(request, on_calling_thread=request["threads"] == 1)
        self._peer = find_peer(request["peer"])
        self._options = check_options(
            self._peer.options, request["options"], where="options", owner=self._peer.title, noun="option"
        )
        self._setting = Setting(threads=request["threads"], cache=Path(request["cache"]))

    def load(self, request: dict[str, Any]) -> dict[str, Any]:
        """Make one model ready."""
        self.mark(request["case"])
        model = _MODEL.validate_python(request["model"])
        arguments = [load_argument(argument) for argument in ARGUMENTS.validate_python(request["arguments"])]
        self.cases[request["case"]] = _Timed(self._peer.prepare(model, arguments, self._setting, self._options))
        return {}


if __name__ == "__main__":
    serve(PeerTurns)
