"""Peers beside that of numpy_peer.py: one that goes wrong as it is told to, and one that is absent."""

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Literal

from harness.peers import Peer, PeerModel, Ready, Setting
from harness.peers.peer import Array

from . import numpy_peer


@dataclass(frozen=True, kw_only=True)
class UnluckyOptions:
    """What becomes of it."""

    fate: Literal["refuses", "raises", "dies", "hangs", "wrong", "shape", "dies late"]


def _refuses(_: PeerModel, options: UnluckyOptions) -> str | None:
    return "it has a headache" if options.fate == "refuses" else None


def _prepare(model: PeerModel, arguments: Sequence[Array], setting: Setting, options: UnluckyOptions) -> Ready:
    if options.fate == "raises":
        raise ValueError("no such operation: Frobnicate")
    if options.fate == "dies":
        os.abort()
    if options.fate == "hangs":
        time.sleep(3600)
    right = numpy_peer.prepare(model, arguments, setting, numpy_peer.Options())
    calls = count(1)

    def call() -> None:
        if options.fate == "dies late" and next(calls) == 10:
            os.abort()
        right.call()

    def outputs() -> list[Array]:
        right_ones = list(right.outputs())
        if options.fate == "wrong":
            return [2 * array for array in right_ones]
        return [array.T for array in right_ones] if options.fate == "shape" else right_ones

    return Ready(call=call, outputs=outputs)


UNLUCKY = Peer(
    name="unlucky",
    title="Unlucky",
    description="goes wrong as it is told to",
    install="pip install luck",
    options=UnluckyOptions,
    missing=lambda: None,
    version=lambda: "0",
    refuses=_refuses,
    prepare=_prepare,
)
ABSENT = replace(
    numpy_peer.PEER,
    name="absent",
    title="Absent",
    install="pip install 'iree-harness[absent]'",
    missing=lambda: "absent is not installed",
)
