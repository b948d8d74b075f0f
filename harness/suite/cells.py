"""One variant, or one peer, on one device: the flags, files, identity and expected failures of its cases."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from packaging.specifiers import SpecifierSet

from harness.errors import SuiteError
from harness.models.model import Expectation, Model
from harness.plugins import Applied
from harness.plugins.chain import Arranged, arrange
from harness.records.case import ID_DIGITS, Case
from harness.suite.flags import normalised
from harness.suite.schema import ExpectTable
from harness.suite.toml_file import shown
from harness.suite.values import Device, FlagSet, Suite, Variant
from harness.toolchain.tools import merge_flags


@dataclass(frozen=True, kw_only=True)
class Cell:
    """What every case of one variant on one device has.

    Attributes:
        digest: Hash (sha256, hex) of how it is compiled and run, without names and without the toolchain.
        threads: That a peer gets on this device; None: one for each core.
        environment: Variables that its processes need.
        skip: Why it is not run here, as a sentence; None: it is run.
    """

    variant: Variant
    device: Device
    compile_flags: tuple[str, ...]
    run_flags: tuple[str, ...]
    digest: str
    threads: int | None
    environment: Mapping[str, str]
    skip: str | None


def threads_of(device: Device) -> int | None:
    """How many threads a peer gets on a device; None: one for each core."""
    return device.threads or (1 if device.pin or set(device.uris) == {"local-sync"} else None)


def chain_of(suite: Suite, variant: Variant, device: Device, plugins: Sequence[Applied]) -> Arranged:
    """What a variant's plugins come to on a device.

    Raises:
        SuiteError: They cannot work together in this order.
    """
    return arrange(plugins, _own_flags(variant, device), f"{suite.path}: [variants.{variant.name}] plugins")


def cell_of(
    suite: Suite,
    variant: Variant,
    device: Device,
    toolchain: str,
    plugins: Sequence[Applied],
    unavailable: Mapping[str, str],
    environments: Mapping[str, Mapping[str, str]],
) -> Cell:
    """Join a variant's flags and plugins with a device's.

    Args:
        plugins: The variant's, in order, with their options.
        unavailable: Why a device is not there, as a sentence, by device name.
        environments: Variables that processes on a device need, by device name.

    Raises:
        SuiteError: The plugins cannot work together in this order.
    """
    arranged = chain_of(suite, variant, device, plugins)
    compile_flags = merge_flags(_own_flags(variant, device), arranged.compile_flags)
    run_flags = merge_flags(
        _thread_flags(device),
        device.run_flags,
        *(one.run for one in variant.flag_sets),
        variant.run_flags,
        arranged.run_flags,
    )
    identity = [
        device.uri,
        device.pin,
        list(normalised(compile_flags)),
        list(normalised(run_flags)),
        [[one.name, one.plugin.version, one.options] for one in plugins],
        # Only where they are there, so that what older harnesses could say keeps its identity.
        *([{"more_uris": device.more_uris}] if device.more_uris else []),
        *([{"vulkan_driver": device.vulkan_driver}] if device.vulkan_driver else []),
    ]
    return Cell(
        variant=variant,
        device=device,
        compile_flags=compile_flags,
        run_flags=run_flags,
        digest=hashlib.sha256(json.dumps(identity, sort_keys=True, separators=(",", ":")).encode()).hexdigest(),
        threads=threads_of(device),
        environment=dict(environments.get(device.name, {})),
        skip=unavailable.get(device.name) or _not_applicable(variant, device, toolchain, plugins),
    )


def _thread_flags(device: Device) -> tuple[str, ...]:
    """What gives the pools of local-task devices their number of threads."""
    local = any(uri.split("://", 1)[0] == "local-task" for uri in device.uris)
    return (f"--task_topology_group_count={device.threads}",) if device.threads and local else ()


def _own_flags(variant: Variant, device: Device) -> tuple[str, ...]:
    return merge_flags(device.compile_flags, *(one.compile for one in variant.flag_sets), variant.compile_flags)


def suits(flag_set: FlagSet, toolchain: str) -> bool:
    """Whether a flag set is for this release of IREE."""
    return _covers(flag_set.toolchains, toolchain)


def _covers(toolchains: str, toolchain: str) -> bool:
    return not toolchains or SpecifierSet(toolchains).contains(toolchain, prereleases=True)


def _not_applicable(variant: Variant, device: Device, toolchain: str, plugins: Sequence[Applied]) -> str | None:
    limited = [(f"flag set {one.name}", one.backends, one.toolchains) for one in variant.flag_sets]
    limited += [(f"plugin {one.name}", one.plugin.backends, one.plugin.toolchains) for one in plugins]
    for what, backends, toolchains in limited:
        if backends and device.backend not in backends:
            return f"{what} is for {', '.join(backends)}, and device {device.name} is {device.backend}"
        if not _covers(toolchains, toolchain):
            return f"{what} is for IREE {toolchains}, and this is {toolchain}"
    return None


_MISMATCH = "mismatch"
_FAIL = "fail:"


def case_expectation(table: ExpectTable, where: str) -> Expectation:
    """One [[expect]] table.

    Args:
        where: File and table, for error messages.

    Raises:
        SuiteError: It has both of fails and mismatch, or neither.
    """
    if (table.fails is not None) == table.mismatch:
        found = "both" if table.mismatch else "neither"
        raise SuiteError(f"{where} needs exactly one of fails and mismatch = true, and has {found}")
    return Expectation(cases=table.cases, message=table.fails)


def model_expectation(model: str, text: str | None, where: str) -> Expectation | None:
    """What a model's `expect` says of all its cases; None where it has none.

    Raises:
        SuiteError: It is neither `mismatch` nor `fail: part of the message`.
    """
    if text is None:
        return None
    if text == _MISMATCH:
        return Expectation(cases=f"{model}/*", message=None)
    message = text.removeprefix(_FAIL).strip()
    if not text.startswith(_FAIL) or not message:
        raise SuiteError(f"{where}: {shown(text)} must be 'mismatch', or 'fail: ' and a part of the message")
    return Expectation(cases=f"{model}/*", message=message)


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
