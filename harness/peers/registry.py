"""Peers by registered name: entry points of the group `harness.peers`, from installed packages only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from harness.errors import SuiteError
from harness.peers.peer import Peer, PeerModel
from harness.plugins.options import as_json, check_options
from harness.plugins.registry import Registry

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
