"""What the doctor says, as values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from harness.records.run import ToolchainRecord
from harness.toolchain.probe import DeviceProbe

Level = Literal["ok", "note", "warning", "missing"]
LEVELS: tuple[Level, ...] = ("ok", "note", "warning", "missing")

Topic = Literal["toolchain", "devices", "peers", "machine", "processor", "memory", "process", "counters"]
TOPICS: tuple[Topic, ...] = ("toolchain", "devices", "peers", "machine", "processor", "memory", "process", "counters")


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One thing that the doctor found.

    Attributes:
        level: `ok`; `note`: good to know; `warning`: makes times noisy or wrong; `missing`: not there at all.
        what: A sentence without a full stop.
        advice: What to do about it, where something can be done; a sentence without a full stop.
        command: The shell command that does it, where one does.
    """

    topic: Topic
    level: Level
    what: str
    advice: str | None = None
    command: str | None = None


@dataclass(frozen=True, kw_only=True)
class ExtraToolchain:
    """One that was installed for `--toolchain`; where it lies is nobody else's business."""

    version: str
    disk_bytes: int


@dataclass(frozen=True, kw_only=True)
class KnownPeer:
    """An engine that suites may name beside IREE.

    Attributes:
        version: Its title and version; None where it is not here.
        missing: Why it is not, with what to do, as a sentence.
    """

    name: str
    version: str | None = None
    missing: str | None = None


@dataclass(frozen=True, kw_only=True)
class Diagnosis:
    """Everything that the doctor found, and the facts that it judged.

    Attributes:
        toolchain: None where there is none to use.
        extra_toolchains: Those that were installed for `--toolchain`.
        counters: Why hardware counters are unavailable; None where they work.
        vulkan_drivers: What each driver offers that suites ask for by name.
        peers: All that installed packages register.
    """

    findings: tuple[Finding, ...]
    toolchain: ToolchainRecord | None
    extra_toolchains: tuple[ExtraToolchain, ...]
    probes: tuple[DeviceProbe, ...]
    counters: str | None
    environment: dict[str, dict[str, Any]]
    vulkan_drivers: dict[str, DeviceProbe] = field(default_factory=dict)
    peers: tuple[KnownPeer, ...] = ()

    def count(self, level: Level) -> int:
        """How many findings have a level."""
        return sum(finding.level == level for finding in self.findings)

    def about(self, topic: Topic) -> Sequence[Finding]:
        """The findings of one topic, in the order found."""
        return [finding for finding in self.findings if finding.topic == topic]
