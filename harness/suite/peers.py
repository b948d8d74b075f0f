"""Cases of peers: each is measured beside the variants of every model, on the devices that peers run on."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from harness.models.model import Model
from harness.records.case import ID_DIGITS, Case
from harness.suite.cell import threads_of
from harness.suite.values import Device

# Peers run on this machine's CPU: beside what llvm-cpu makes for one local device.
_BACKEND = "llvm-cpu"
_TAG = "peer"


class SuitePeer(Protocol):
    """What a case holds of a peer with the options that a suite gives it: harness.peers.registry.AppliedPeer."""

    @property
    def name(self) -> str:
        """The peer's registered name."""

    @property
    def label(self) -> str:
        """What its cases are called, in the place of a variant."""

    @property
    def options(self) -> Mapping[str, Any]:
        """All of them, defaults included, as values of JSON."""


def peer_cases(
    model: Model,
    model_id: str,
    device: Device,
    peers: Sequence[SuitePeer],
    missing: Mapping[str, str],
    unavailable: str | None,
) -> list[Case]:
    """The cases of all peers for one model on one device; [] where peers do not run.

    Args:
        missing: Why a peer cannot be used here, as a sentence, by label.
        unavailable: Why the device is not there.
    """
    if device.backend != _BACKEND or device.more_uris:
        return []
    return [
        Case(
            id=_identity(model_id, device, peer),
            name=f"{model.name}/{peer.label}@{device.name}",
            model=model.name,
            variant=peer.label,
            device=device.name,
            toolchain="",
            baseline=False,
            uri=device.uri,
            threads=threads_of(device),
            backend=device.backend,
            pin=device.pin,
            compile_flags=(),
            run_flags=(),
            plugins=(),
            tags=tuple(dict.fromkeys((*model.tags, _TAG, *device.tags))),
            skip=unavailable or missing.get(peer.label),
            peer=peer.name,
        )
        for peer in peers
    ]


def _identity(model_id: str, device: Device, peer: SuitePeer) -> str:
    definition = [model_id, "peer", peer.name, dict(peer.options), device.uri, device.pin, threads_of(device)]
    text = json.dumps(definition, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:ID_DIGITS]
