"""Engines that are measured beside IREE."""

from harness.peers.peer import Peer, PeerModel, Ready, Setting

__all__ = ["Peer", "PeerModel", "Ready", "Setting"]
