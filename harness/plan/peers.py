"""Cases of peers: each is measured beside the variants of every model, on the devices that peers run on."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence

from harness.models.model import Model
from harness.peers.registry import AppliedPeer
from harness.records.case import ID_DIGITS, Case
from harness.suite.cell import threads_of
from harness.suite.values import Device

# Peers run on this machine's CPU: beside what llvm-cpu makes for one local device.
_BACKEND = "llvm-cpu"
_TAG = "peer"


def peer_cases(
    model: Model,
    model_id: str,
    device: Device,
    peers: Sequence[AppliedPeer],
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
            id=_identity(model_id, device, one),
            name=f"{model.name}/{one.label}@{device.name}",
            model=model.name,
            variant=one.label,
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
            skip=unavailable or missing.get(one.label),
            peer=one.peer.name,
        )
        for one in peers
    ]


def _identity(model_id: str, device: Device, one: AppliedPeer) -> str:
    definition = [model_id, "peer", one.peer.name, dict(one.options), device.uri, device.pin, threads_of(device)]
    text = json.dumps(definition, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:ID_DIGITS]
