"""Asking this machine for the facts that `examine` judges."""

from __future__ import annotations

from collections.abc import Sequence

from harness import process
from harness.doctor.examine import Diagnosis, KnownPeer, examine
from harness.errors import SuiteError, ToolchainError
from harness.machine.environment import capture_environment
from harness.measure.counters import unavailable_reason
from harness.peers.registry import AppliedPeer, find_peer, registered_peers
from harness.toolchain.devices import DRIVERS, VULKAN_DRIVERS, DeviceProbe, probe_driver, probe_vulkan_driver
from harness.toolchain.find import Environment, Toolchain


def diagnose(
    toolchain_or_error: Toolchain | ToolchainError,
    environments: Sequence[Environment] = (),
    *,
    limits: process.Limits,
) -> Diagnosis:
    """Look at this machine and judge it.

    Args:
        toolchain_or_error: The toolchain that would be used, or why there is none.
        environments: The toolchains that were installed for `--toolchain`.
        limits: For each child that looks for devices; ten seconds are plenty.

    Returns:
        Findings and facts; this never fails for what it finds or misses.
    """
    environment = capture_environment()  # before the children below add to the load
    vulkan_drivers: dict[str, DeviceProbe] = {}
    if isinstance(toolchain_or_error, Toolchain):
        probes = [probe_driver(toolchain_or_error, driver, limits=limits) for driver in DRIVERS]
        vulkan_drivers = {
            name: probe_vulkan_driver(toolchain_or_error, driver, limits=limits)
            for name, driver in VULKAN_DRIVERS.items()
        }
        toolchain: Toolchain | str = toolchain_or_error
    else:
        probes, toolchain = [], str(toolchain_or_error)
    return examine(
        environment=environment,
        toolchain=toolchain,
        environments=environments,
        probes=probes,
        vulkan_drivers=vulkan_drivers,
        peers=[_known_peer(name) for name in registered_peers()],
        counters=unavailable_reason(),
    )


def _known_peer(name: str) -> KnownPeer:
    try:
        peer = AppliedPeer(peer=find_peer(name), label=name, options={})
    except SuiteError as error:
        return KnownPeer(name=name, missing=str(error))
    missing = peer.missing
    return KnownPeer(name=name, version=peer.version if missing is None else None, missing=missing)
