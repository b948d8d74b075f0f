"""One variant, or one peer, on one device: the flags, files and identity of its cases."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from packaging.specifiers import SpecifierSet

from harness.models.model import Model
from harness.plugins import Applied
from harness.plugins.chain import Arranged, arrange
from harness.records.case import ID_DIGITS, Case
from harness.suite.flags import normalised
from harness.suite.load import Device, Suite, Variant
from harness.suite.present import Presence
from harness.toolchain.tools import merge_flags


def threads_of(device: Device) -> int | None:
    """How many threads a peer gets on a device; None: one for each core."""
    return device.threads or (1 if device.pin or set(device.uris) == {"local-sync"} else None)


def chain_of(suite: Suite, variant: Variant, device: Device, plugins: Sequence[Applied]) -> Arranged:
    """Put a variant's plugins in order, on top of its flags on a device."""
    return arrange(plugins, _own_flags(variant, device), f"{suite.path}: [variants.{variant.name}] plugins")


def cell_of(
    suite: Suite,
    variant: Variant,
    device: Device,
    here: Presence,
    toolchain: str,
    plugins: Sequence[Applied],
) -> Case:
    """Join a variant's flags and plugins with a device's: what every case of the two has, whatever its model is.

    Args:
        here: What the device is on this machine.
        plugins: The variant's, in order, with their options.

    Returns:
        A case of no model yet; its id is a hash (sha256, hex) of how it is compiled and run, without names and without
        the toolchain.
    """
    arranged = chain_of(suite, variant, device, plugins)
    compile_flags = merge_flags(_own_flags(variant, device), arranged.compile_flags)
    run_flags = merge_flags(
        _thread_flags(device),
        device.run_flags,
        *(flag_set.run for flag_set in variant.flag_sets),
        variant.run_flags,
        arranged.run_flags,
    )
    identity = [
        device.uri,
        device.pin,
        list(normalised(compile_flags)),
        list(normalised(run_flags)),
        [[use.name, use.plugin.version, use.options] for use in plugins],
        # Only where a device has them, so that the cases of older suites keep their identity.
        *([{"more_uris": device.more_uris}] if device.more_uris else []),
        *([{"vulkan_driver": device.vulkan_driver}] if device.vulkan_driver else []),
        *([{"host": device.host}] if device.host else []),
    ]
    return Case(
        id=hashlib.sha256(json.dumps(identity, sort_keys=True, separators=(",", ":")).encode()).hexdigest(),
        name=f"{variant.name}@{device.name}",
        model="",
        variant=variant.name,
        device=device.name,
        toolchain=toolchain,
        baseline=variant.name == suite.baseline,
        uri=device.uri,
        more_uris=device.more_uris,
        threads=threads_of(device),
        environment=dict(here.environment),
        backend=device.backend,
        pin=device.pin,
        compile_flags=compile_flags,
        run_flags=run_flags,
        plugins=tuple(plugin.with_options for plugin in variant.plugins),
        tags=(*variant.tags, *device.tags),
        skip=here.missing or _not_applicable(variant, device, toolchain, plugins),
    )


def _thread_flags(device: Device) -> tuple[str, ...]:
    """What gives the pools of local-task devices their number of threads."""
    local = any(uri.split("://", 1)[0] == "local-task" for uri in device.uris)
    return (f"--task_topology_group_count={device.threads}",) if device.threads and local else ()


def _own_flags(variant: Variant, device: Device) -> tuple[str, ...]:
    return merge_flags(
        device.compile_flags, *(flag_set.compile for flag_set in variant.flag_sets), variant.compile_flags
    )


def suits(variant: Variant, toolchain: str) -> bool:
    """Whether a variant, with its flag sets, is for this release of IREE."""
    specifiers = [variant.toolchains, *(flag_set.toolchains for flag_set in variant.flag_sets)]
    return all(covers(specifier, toolchain) for specifier in specifiers)


def covers(toolchains: str, toolchain: str) -> bool:
    """Whether a PEP 440 specifier, "" for all releases, holds a release of IREE."""
    return not toolchains or SpecifierSet(toolchains).contains(toolchain, prereleases=True)


def _not_applicable(variant: Variant, device: Device, toolchain: str, plugins: Sequence[Applied]) -> str | None:
    limits: list[tuple[str, Sequence[str], str]] = [(f"variant {variant.name}", (), variant.toolchains)]
    limits += [(f"flag set {flag_set.name}", flag_set.backends, flag_set.toolchains) for flag_set in variant.flag_sets]
    limits += [(f"plugin {use.name}", use.plugin.backends, use.plugin.toolchains) for use in plugins]
    for what, backends, toolchains in limits:
        if backends and device.backend not in backends:
            return f"{what} is for {', '.join(backends)}, and device {device.name} is {device.backend}"
        if not covers(toolchains, toolchain):
            return f"{what} is for IREE {toolchains}, and this is {toolchain}"
    return None


# Peers run on this machine's CPU: beside what llvm-cpu makes for one local device.
_BACKEND = "llvm-cpu"
_TAG = "peer"


class SuitePeer(Protocol):
    """What a case holds of a peer with the options that a suite gives it: harness.peers.peer.AppliedPeer."""

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
    definition += [{"host": device.host}] if device.host else []
    text = json.dumps(definition, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:ID_DIGITS]
