"""Peers: engines that are measured beside IREE on the same model, known by their registered names.

A peer is one small module that registers a `Peer` under the entry-point group `harness.peers`. Everything heavy is
imported inside its functions: `missing` is asked while a suite is planned, `refuses` once its models are there, and
`prepare` in a worker.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, TypeVar

from numpy.typing import NDArray

from harness.models.model import Input

P = TypeVar("P")

Array = NDArray[Any]


@dataclass(frozen=True, kw_only=True)
class PeerModel:
    """A model in the forms that peers read.

    Attributes:
        builder: Registered name of the builder that writes it; None for files.
        params: All of the builder's parameters, defaults included, as values of JSON.
        onnx: The same function as an ONNX file, where it has that form.
        inputs: Shapes and element types of its arguments, in order.
    """

    name: str
    builder: str | None
    params: Mapping[str, Any] = field(default_factory=dict)
    onnx: Path | None = None
    inputs: tuple[Input, ...]


@dataclass(frozen=True, kw_only=True)
class Setting:
    """Where a peer works.

    Attributes:
        threads: How many it may use; its process is held on as many cores, where the device says so.
        cache: A folder of this peer's own that lasts, for what it compiles.
    """

    threads: int
    cache: Path


@dataclass(frozen=True, kw_only=True)
class Ready:
    """A model that a peer has made ready to be called again and again.

    Attributes:
        call: One synchronous call; its results are complete when it returns.
        outputs: Copies of the last call's results, in the entry function's order and shapes; bf16 as float32.
    """

    call: Callable[[], object]
    outputs: Callable[[], Sequence[Array]]


@dataclass(frozen=True, kw_only=True)
class Peer(Generic[P]):
    """A registered engine.

    Attributes:
        title: Its name as reports write it: `ONNX Runtime`.
        install: The command that installs it.
        options: A frozen keyword-only dataclass with a default for every field; see harness.plugins.options.
        missing: Why it cannot be used here, as a phrase; None: it can. Asked while planning: it imports nothing heavy.
        version: Of the engine that is installed.
        refuses: Why it has no program for a model, as a phrase; None: it has one.
        prepare: Makes a model ready, in a worker process that is pinned as the device says. The arrays are the
            arguments, bf16 ones as float32 values that bf16 has. Whatever it raises fails the case.
    """

    name: str
    title: str
    description: str
    install: str
    options: type[P]
    missing: Callable[[], str | None]
    version: Callable[[], str]
    refuses: Callable[[PeerModel, P], str | None]
    prepare: Callable[[PeerModel, Sequence[Array], Setting, P], Ready]
