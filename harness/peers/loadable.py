"""A peer's case as measuring takes it: which worker it needs, and what that is told."""

from __future__ import annotations

import sys
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from harness.machine.pinning import thread_variables
from harness.measure.session import WorkerSession
from harness.measure.values import Group
from harness.peers.registry import AppliedPeer
from harness.peers.values import PeerModel
from harness.process import Limits

_MODEL = TypeAdapter(PeerModel)


@dataclass(frozen=True, kw_only=True)
class LoadablePeer:
    """A model that a peer runs.

    Attributes:
        name: The case's.
        arguments: As in `harness.measure.LoadableModule`.
        cache: A folder of the peer's own that lasts.
    """

    name: str
    peer: AppliedPeer
    model: PeerModel
    arguments: tuple[Mapping[str, Any], ...]
    threads: int
    cache: Path

    @property
    def home(self) -> Hashable:
        """Engines do not share a process, nor do two settings of one."""
        return "peer", self.peer.label

    def worker(self, group: Group, limits: Limits) -> WorkerSession:
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
            limits=limits,
        )

    def request(self) -> Mapping[str, Any]:
        """The model and its arguments."""
        return {
            "model": _MODEL.dump_python(self.model, mode="json"),
            "arguments": [dict(argument) for argument in self.arguments],
        }
