"""The pure judgement: facts in, findings out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from harness.doctor.noise import Environment, judge_noise
from harness.doctor.values import TOPICS, Diagnosis, ExtraToolchain, Finding, KnownPeer
from harness.records.run import ToolchainRecord
from harness.toolchain.environments import Environment as InstalledEnvironment
from harness.toolchain.probe import DeviceInfo, DeviceProbe
from harness.toolchain.values import Toolchain


def examine(
    *,
    environment: Environment,
    toolchain: Toolchain | str,
    probes: Sequence[DeviceProbe],
    counters: str | None,
    environments: Sequence[InstalledEnvironment] = (),
    vulkan_drivers: Mapping[str, DeviceProbe] | None = None,
    peers: Sequence[KnownPeer] = (),
) -> Diagnosis:
    """Judge a machine for measuring on it.

    Args:
        environment: What harness.machine.environment captured.
        toolchain: The compiler and runtime to use, or the sentence that says why there are none.
        probes: What each driver offers; () where there was no toolchain to ask.
        counters: Why hardware counters are unavailable; None where they work.
        environments: The toolchains that were installed for `--toolchain`.
        vulkan_drivers: What each of the drivers that suites ask for by name offers.
        peers: The engines that suites may name.

    Returns:
        Findings grouped by topic, and the facts they come from.
    """
    findings = [
        *_toolchain(toolchain, environment),
        *_environments(environments),
        *_devices(probes),
        *_vulkan_drivers(vulkan_drivers or {}),
        *_peers(peers),
        *judge_noise(environment),
        *_counters(counters),
    ]
    record = None
    if isinstance(toolchain, Toolchain):
        record = ToolchainRecord(
            version=toolchain.version, revision=toolchain.revision, compiler_sha256=toolchain.compiler_sha256
        )
    return Diagnosis(
        findings=tuple(sorted(findings, key=lambda finding: TOPICS.index(finding.topic))),
        toolchain=record,
        extra_toolchains=tuple(ExtraToolchain(version=one.version, disk_bytes=one.disk_bytes) for one in environments),
        probes=tuple(probes),
        vulkan_drivers=dict(vulkan_drivers or {}),
        peers=tuple(peers),
        counters=counters,
        environment=environment,
    )


def _toolchain(toolchain: Toolchain | str, environment: Environment) -> Iterator[Finding]:
    if isinstance(toolchain, str):
        yield Finding(topic="toolchain", level="missing", what=toolchain)
    else:
        revision = f", revision {toolchain.revision[:12]}" if toolchain.revision else ""
        yield Finding(topic="toolchain", level="ok", what=f"IREE {toolchain.version}{revision}")
    if "python" in environment["process"]:
        yield Finding(topic="toolchain", level="ok", what=f"Python {environment['process']['python']}")


def _environments(environments: Sequence[InstalledEnvironment]) -> Iterator[Finding]:
    for one in environments:
        size = f"{one.disk_bytes / 1e6:,.0f} MB in the cache"
        yield Finding(topic="toolchain", level="ok", what=f"IREE {one.version} for --toolchain {one.version}, {size}")


def _devices(probes: Sequence[DeviceProbe]) -> Iterator[Finding]:
    if not probes:
        yield Finding(topic="devices", level="missing", what="no device can be looked for without IREE's tools")
    for probe in probes:
        if probe.reason is not None:
            detail = f" ({probe.detail})" if probe.detail else ""
            yield Finding(
                topic="devices", level="missing", what=f"{probe.driver}: {probe.reason}{detail}", advice=probe.advice
            )
        for device in probe.devices:
            # Where there are several, a suite has to say which one.
            yield _device(device, title=probe.driver if len(probe.devices) == 1 else device.uri)


def _vulkan_drivers(probes: Mapping[str, DeviceProbe]) -> Iterator[Finding]:
    """What `vulkan` comes to for devices of suites that say which driver."""
    for name, probe in probes.items():
        key = f'vulkan_driver = "{name}"'
        if probe.reason is not None:
            yield Finding(topic="devices", level="missing", what=f"{key}: {probe.reason}", advice=probe.advice)
        for device in probe.devices:
            yield Finding(topic="devices", level="ok", what=f"{key}: {device.facts}")


def _peers(peers: Sequence[KnownPeer]) -> Iterator[Finding]:
    """A peer that is not here is no fault of the machine: its cases are skipped."""
    for one in peers:
        if one.missing is None:
            yield Finding(topic="peers", level="ok", what=f"{one.name}: {one.version}")
        else:
            reason, _, advice = one.missing.partition("; ")
            yield Finding(topic="peers", level="note", what=f"{one.name}: {reason}", advice=advice or None)


def _device(device: DeviceInfo, *, title: str) -> Finding:
    if device.is_software:
        return Finding(
            topic="devices",
            level="note",
            what=f"{title}: {device.facts}; a software device, played by the CPU",
            advice="use it to see that things work: its times say nothing about a GPU",
        )
    return Finding(topic="devices", level="ok", what=f"{title}: {device.facts}")


def _counters(reason: str | None) -> Iterator[Finding]:
    if reason is None:
        yield Finding(topic="counters", level="ok", what="hardware counters work, and are read beside the time")
    else:
        yield Finding(
            topic="counters",
            level="note",
            what=reason,
            advice="times are measured all the same; instruction counts, which repeat exactly, are left out",
        )
