"""Peers: engines that are measured beside IREE on the same model, and what those that read ONNX have in common.

A peer is one small module that registers a `Peer` under the entry-point group `harness.peers`. Everything heavy is
imported inside its functions: `missing` is asked while a suite is planned, `refuses` once its models are there, and
`prepare` in a worker.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Generic, TypeVar

from numpy.typing import NDArray

from harness.errors import SuiteError
from harness.models.model import Input
from harness.plugins.options import as_json, check_options
from harness.plugins.registry import Registry

P = TypeVar("P")
Array = NDArray[Any]


@dataclass(frozen=True, kw_only=True)
class PeerModel:
    """A model in the forms that peers read."""

    name: str
    builder: str | None  # Registered name of the builder that writes it; None for files
    # All of the builder's parameters, defaults included, as values of JSON
    params: Mapping[str, Any] = field(default_factory=dict)
    onnx: Path | None = None  # The same function as an ONNX file, where it has that form
    inputs: tuple[Input, ...]  # Shapes and element types of its arguments, in order


@dataclass(frozen=True, kw_only=True)
class Setting:
    """Where a peer works."""

    threads: int  # How many it may use; its process is held on as many cores, where the device says so
    cache: Path  # A folder of this peer's own that lasts, for what it compiles


@dataclass(frozen=True, kw_only=True)
class Ready:
    """A model that a peer has made ready to be called again and again."""

    call: Callable[[], object]  # One synchronous call; its results are complete when it returns
    # Copies of the last call's results, in the entry function's order and shapes; bf16 as float32
    outputs: Callable[[], Sequence[Array]]


@dataclass(frozen=True, kw_only=True)
class Peer(Generic[P]):
    """A registered engine."""

    name: str
    title: str  # Its name as reports write it: `ONNX Runtime`
    description: str
    install: str  # The command that installs it
    options: type[P]  # A frozen keyword-only dataclass with a default for every field; see harness.plugins.options
    # Why it cannot be used here, as a phrase; None: it can. Asked while planning: it imports nothing heavy
    missing: Callable[[], str | None]
    version: Callable[[], str]  # Of the engine that is installed
    refuses: Callable[[PeerModel, P], str | None]  # Why it has no program for a model, as a phrase; None: it has one
    # Makes a model ready, in a worker process that is pinned as the device says. The arrays are the arguments, bf16
    # ones as float32 values that bf16 has. Whatever it raises fails the case
    prepare: Callable[[PeerModel, Sequence[Array], Setting, P], Ready]


def missing_package(module: str, distribution: str = "") -> str | None:
    """Why a package, whose name in the index may be another, cannot be used, as a phrase; None: it is installed."""
    return None if find_spec(module) is not None else f"{distribution or module} is not installed"


def refuses_onnx(model: PeerModel, _: object) -> str | None:
    """Why there is no ONNX file of a model, or none that numpy arrays can be given to; None: there is."""
    if model.onnx is None:
        return "the model has no ONNX form"
    if any(value.dtype == "bf16" for value in model.inputs):
        return "it takes no bf16 arguments"
    return None


def onnx_file(model: PeerModel) -> Path:
    """The ONNX file of a model that `refuses_onnx` does not refuse."""
    if model.onnx is None:
        raise ValueError("the model has no ONNX form")
    return model.onnx


PEERS: Registry[Peer[Any]] = Registry(group="harness.peers", noun="peer", kind=Peer, kind_name="harness.peers.Peer")


@dataclass(frozen=True, kw_only=True)
class AppliedPeer:
    """A peer with the options that a suite gives it."""

    peer: Peer[Any]
    label: str  # What its cases are called, in the place of a variant
    options: Mapping[str, Any]  # All of them, defaults included, as values of JSON

    @property
    def name(self) -> str:
        """The peer's registered name."""
        return self.peer.name

    @property
    def missing(self) -> str | None:
        """Why it cannot be used here, as a sentence with what to do; None: it can."""
        try:
            reason = self.peer.missing()
        except Exception as error:  # whatever a package does wrong concerns its own cases only
            return self._broken("whether it is here", error)
        return None if reason is None else f"{reason}; {self.peer.install}"

    def refuses(self, model: PeerModel) -> str | None:
        """Why it has no program for a model, as a sentence; None: it has one."""
        try:
            reason = self.peer.refuses(model, self.checked)
        except Exception as error:
            return self._broken(f"whether it can run {model.name}", error)
        return None if reason is None else f"{self.peer.title}: {reason}"

    @property
    def version(self) -> str:
        """Its title and version, as far as it can say that."""
        try:
            return f"{self.peer.title} {self.peer.version()}"
        except Exception:
            return f"{self.peer.title} of unknown version"

    def _broken(self, question: str, error: Exception) -> str:
        message = " ".join(str(error).split())[:200]
        return f"{self.peer.title} cannot say {question} ({type(error).__name__}: {message}); ask its package's author"

    @property
    def checked(self) -> Any:
        """The options as the dataclass of the peer."""
        return check_options(self.peer.options, self.options, where=self.label, owner=self.peer.name, noun="option")


def find_peer(name: str, where: str = "peers") -> Peer[Any]:
    """The peer of that registered name; only its package is imported."""
    peer = PEERS.find(name, where)
    if peer.name != name:
        raise SuiteError(f"{where}: peer {name!r} calls itself {peer.name!r}; ask its package's author")
    return peer


def apply_peer(name: str, options: Mapping[str, Any], label: str, where: str = "peers") -> AppliedPeer:
    """A peer, found by its registered name, with options."""
    peer = find_peer(name, where)
    checked = check_options(peer.options, options, where=f"{where}: {name}", owner=f"peer {name!r}", noun="option")
    return AppliedPeer(peer=peer, label=label, options=as_json(checked))
