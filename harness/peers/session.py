"""What a peer's worker holds: the engine and the models it made ready.

It answers as harness.measure.worker does, but that `open` names a peer with its options, threads and a folder of its
own, that `load` brings a model instead of a module, and that `outputs` calls a model once and writes its results into a
folder as output0.npy, output1.npy, ...
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import TypeAdapter

from harness.measure.worker import Turns
from harness.models.inputs import from_bf16_bits
from harness.peers.registry import find_peer
from harness.peers.values import Array, PeerModel, Ready, Setting
from harness.plugins.options import check_options

_MODEL = TypeAdapter(PeerModel)


class _Timed:
    """A model that is ready."""

    def __init__(self, ready: Ready) -> None:
        self.ready = ready

    def call(self, calls: int) -> int:
        """Time a batch of calls; nanoseconds."""
        call = self.ready.call
        started = time.perf_counter_ns()
        for _ in range(calls):
            call()
        return time.perf_counter_ns() - started


class PeerTurns(Turns):
    """One engine, with the models that it made ready."""

    def __init__(self, request: dict[str, Any]) -> None:
        super().__init__(request)
        self._peer = find_peer(request["peer"])
        self._options = check_options(
            self._peer.options, request["options"], where="options", owner=self._peer.title, noun="option"
        )
        self._setting = Setting(threads=request["threads"], cache=Path(request["cache"]))
        self._setting.cache.mkdir(parents=True, exist_ok=True)
        self._ready: dict[str, Ready] = {}

    def load(self, request: dict[str, Any]) -> dict[str, Any]:
        """Make one model ready."""
        self.mark(request["case"])
        model = _MODEL.validate_python(request["model"])
        arguments = [_argument(one) for one in request["arguments"]]
        ready = self._peer.prepare(model, arguments, self._setting, self._options)
        self._ready[request["case"]] = ready
        self.cases[request["case"]] = _Timed(ready)
        return {}

    def outputs(self, request: dict[str, Any]) -> dict[str, Any]:
        """Call a model once and write what it gives."""
        self.mark(request["case"])
        ready = self._ready[request["case"]]
        ready.call()
        arrays = ready.outputs()
        for position, array in enumerate(arrays):
            np.save(Path(request["folder"]) / f"output{position}.npy", array, allow_pickle=False)
        return {"outputs": len(arrays)}


def _argument(one: dict[str, Any]) -> Array:
    if one.get("raw"):
        return from_bf16_bits(np.fromfile(one["file"], dtype="<u2").reshape(one["shape"]))
    array: Array = np.load(one["file"], allow_pickle=False)
    return array
