"""Asking this machine for the facts that a diagnosis judges."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from harness import process
from harness.doctor.examine import Diagnosis, PeerHere
from harness.errors import SuiteError, ToolchainError
from harness.measure import account, counters
from harness.peers.peer import PEERS, AppliedPeer, find_peer
from harness.suite.load import Suite
from harness.toolchain.devices import (
    DRIVERS,
    VULKAN_DRIVERS,
    DeviceProbe,
    driver_of,
    probe_driver,
    probe_vulkan_driver,
)
from harness.toolchain.find import Environment, Toolchain
from harness.toolchain.host_cpu import environment_here


def devices_of(suites: Iterable[Suite]) -> frozenset[str]:
    """The drivers that suites' devices are of; where a device says which driver of Vulkan, that one."""
    return frozenset(
        device.vulkan_driver if driver == "vulkan" and device.vulkan_driver is not None else driver
        for suite in suites
        for device in suite.devices
        for driver in map(driver_of, device.uris)
    )


def diagnose(
    toolchain: Toolchain | ToolchainError,
    environments: Sequence[Environment] = (),
    *,
    limits: process.Limits,
    asked: frozenset[str] = frozenset(),
) -> Diagnosis:
    """Look at this machine; this never fails for what it finds or misses.

    Args:
        toolchain: The one that would be used, or why there is none.
        environments: The toolchains that were installed for `--toolchain`.
        limits: For each child that looks for devices; ten seconds are plenty.
        asked: The drivers that somebody wants to use, as `devices_of` gives them.
    """
    environment = environment_here()  # before the children below add to the load
    probes: tuple[DeviceProbe, ...] = ()
    vulkan_drivers: dict[str, DeviceProbe] = {}
    if isinstance(toolchain, Toolchain):
        probes = tuple(probe_driver(toolchain, driver, limits=limits) for driver in DRIVERS)
        vulkan_drivers = {
            name: probe_vulkan_driver(toolchain, driver, limits=limits) for name, driver in VULKAN_DRIVERS.items()
        }
    return Diagnosis(
        environment=environment,
        toolchain=toolchain if isinstance(toolchain, Toolchain) else str(toolchain),
        environments=tuple(environments),
        probes=probes,
        vulkan_drivers=vulkan_drivers,
        peers=tuple(map(_peer, PEERS.names)),
        counters=counters.unavailable_reason(),
        own_time=account.unavailable_reason(),
        asked=asked,
    )


def _peer(name: str) -> PeerHere:
    try:
        peer = AppliedPeer(peer=find_peer(name), label=name, options={})
    except SuiteError as error:
        return PeerHere(name=name, missing=str(error))
    missing = peer.missing
    return PeerHere(name=name, version=peer.version if missing is None else None, missing=missing)
