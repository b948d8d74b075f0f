"""Is a machine fit to measure: what is there, what is missing, what makes times noisy; as a page and as JSON."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property, partial
from typing import Any, Literal

from harness import __version__, process
from harness.errors import SuiteError, ToolchainError
from harness.measure import account, counters
from harness.peers.peer import PEERS, AppliedPeer, find_peer
from harness.report.data import to_json
from harness.report.page import Code, Heading, Page, Paragraph, Part, Tone
from harness.suite.load import Suite
from harness.text import plural
from harness.toolchain.devices import (
    DRIVERS,
    PROCESSORS,
    VULKAN_DRIVERS,
    DeviceProbe,
    driver_of,
    probe_driver,
    probe_vulkan_driver,
)
from harness.toolchain.fetched import LIMIT_BYTES, wheels_in_cache
from harness.toolchain.find import Environment as InstalledEnvironment
from harness.toolchain.find import Toolchain, bytes_below
from harness.toolchain.host_cpu import environment_here

Level = Literal["ok", "note", "warning", "missing"]
Topic = Literal["toolchain", "devices", "peers", "machine", "processor", "memory", "process", "counters"]
# With their titles, in order.
TOPICS: dict[Topic, str] = {
    "toolchain": "Toolchain",
    "devices": "Devices",
    "peers": "Other engines",
    "machine": "Machine",
    "processor": "Processor",
    "memory": "Memory",
    "process": "This process",
    "counters": "Hardware counters",
}
Environment = dict[str, dict[str, Any]]


@dataclass(frozen=True)
class Finding:
    """One thing that the doctor found."""

    level: Level  # `ok`; `note`: good to know; `warning`: makes times noisy or wrong; `missing`: not there at all
    what: str  # A sentence without a full stop
    advice: str | None = None  # What to do about it, where something can be done; a sentence without a full stop
    command: str | None = None  # The shell command that does it, where one does


_ok, _note, _warning, _missing = (partial(Finding, level) for level in ("ok", "note", "warning", "missing"))


@dataclass(frozen=True, kw_only=True)
class PeerHere:
    """An engine that suites may name beside IREE."""

    name: str
    version: str | None = None  # Its title and version; None where it is not here
    missing: str | None = None  # Why it is not, with what to do, as a sentence


@dataclass(frozen=True, kw_only=True)
class Diagnosis:
    """The facts of a machine, and what the doctor finds in them."""

    environment: Environment  # What harness.machine.environment captured
    toolchain: Toolchain | str  # The compiler and runtime to use, or the sentence that says why there are none
    probes: tuple[DeviceProbe, ...]  # What each driver offers; () where there was no toolchain to ask
    counters: str | None  # Why hardware counters are unavailable; None where they work
    own_time: str | None = None  # Why turns have no own time here; None where they have
    environments: tuple[InstalledEnvironment, ...] = ()  # The toolchains that were installed for `--toolchain`
    fetched_bytes: int = 0  # What wheels of CI take in the cache, and environments of any wheels
    # What each of the drivers that suites ask for by name offers
    vulkan_drivers: dict[str, DeviceProbe] = field(default_factory=dict)
    peers: tuple[PeerHere, ...] = ()  # All that installed packages register
    # Drivers, and drivers of Vulkan, that somebody wants to be here; others that are not here are notes
    asked: frozenset[str] = frozenset()

    @cached_property
    def findings(self) -> Mapping[Topic, Sequence[Finding]]:
        """Everything that the doctor finds, by topic; silent on what is not known."""
        machine, cpu, load = (self.environment[name] for name in ("machine", "cpu", "load"))
        process = self.environment["process"]
        return {
            "toolchain": [*_toolchain(self)],
            "devices": [*_devices(self)],
            "peers": [*_peers(self.peers)],
            "machine": [*_machine(machine, load, cpu.get("logical_cores", 1))],
            "processor": [*_processor(cpu)],
            "memory": [*_memory(self.environment["memory"], process)],
            "process": [*_process(process, self.own_time)],
            "counters": [_counters(self.counters)],
        }

    def count(self, level: Level) -> int:
        """How many findings have a level."""
        return sum(finding.level == level for found in self.findings.values() for finding in found)


FEW_CORES = 4
STEAL_NOTICED_PERCENT = 1.0
SWAP_NOTICED_BYTES = 64 * 2**20
MEMORY_WANTED_BYTES = 2 * 2**30


def _gib(size_bytes: int) -> str:
    return f"{size_bytes / 2**30:.1f} GiB"


def _machine(machine: dict[str, Any], load: dict[str, Any], cores: int) -> Iterator[Finding]:
    if machine.get("virtual"):
        kind = f" ({machine['hypervisor']})" if "hypervisor" in machine else ""
        yield _warning(
            f"this is a virtual machine{kind}: neighbours slow its cores and caches, unseen from here",
            "compare what one run measured side by side, not figures of two days or two machines",
        )
    if "class" in machine:
        yield _ok(f"figures belong to machine {machine.get('id')}, of the class: {machine['class']}")
    steal_percent = load.get("steal_percent", 0)
    if steal_percent > STEAL_NOTICED_PERCENT:
        yield _warning(
            f"since it started, the host gave {steal_percent:.1f} % of the CPU time wanted here to others (steal)",
            "measure when the host is quiet, or on another one",
        )
    load_1min = load.get("load_1min", 0.0)
    said = f"the load of the last minute is {load_1min:.2f}"
    if load_1min >= min(1.0, cores / 4):  # a whole core, or a quarter of a small machine
        yield _warning(f"something else is running: {said}", "find it and let it end before measuring", "top")
    elif load:
        yield _ok(f"little else is running: {said}")


def _processor(cpu: dict[str, Any]) -> Iterator[Finding]:
    logical, usable = cpu.get("logical_cores"), cpu.get("usable_cores")
    cores = usable or logical
    if cores is not None:
        of = f" of {logical}, by its affinity" if logical and logical != cores else ""
        what = f"{cpu.get('model', 'unknown processor')}: this process may use {plural(cores, 'core')}{of}"
        if cores < FEW_CORES:
            yield _warning(
                f"{what}; what is timed shares {'it' if cores == 1 else 'them'} with all else that runs",
                "leave the machine alone while it measures; local-task suffers before local-sync",
            )
        else:
            yield _ok(what)
    if "cores_by_kind" in cpu:
        fastest, *slower = cpu["cores_by_kind"]
        yield _warning(
            f"its cores are of {1 + len(slower)} kinds: the same call takes longer on {' and '.join(slower)} than on"
            f" {fastest}",
            "keep `pin` of devices that compute on one thread, which gives them a fast core; for devices with threads"
            " start the harness on the fast cores alone",
            f"taskset --cpu-list {fastest} harness run ...",
        )
    if cpu.get("smt"):
        yield _warning(
            "simultaneous multithreading is on: two threads share a core, and each slows the other",
            "turn it off while measuring",
            "echo off | sudo tee /sys/devices/system/cpu/smt/control",
        )
    governor = cpu.get("governor")
    if governor == "performance":
        yield _ok("the frequency governor is performance")
    elif governor is not None:
        span = f" between {cpu['min_mhz']:g} and {cpu['max_mhz']:g} MHz" if {"min_mhz", "max_mhz"} <= cpu.keys() else ""
        yield _warning(
            f"the frequency governor is {governor}: cores change speed with their load{span}",
            "hold it while measuring",
            "sudo cpupower frequency-set --governor performance",
        )
    if cpu.get("turbo"):
        # Two interfaces for the same thing, by the driver in charge.
        is_intel = str(cpu.get("frequency_driver", "")).startswith("intel")
        switch = "1 | sudo tee .../intel_pstate/no_turbo" if is_intel else "0 | sudo tee .../cpufreq/boost"
        yield _warning(
            "turbo is on: a core's speed depends on how warm it is and on what other cores do",
            "turn it off while measuring",
            f"echo {switch.replace('...', '/sys/devices/system/cpu')}",
        )


def _memory(memory: dict[str, Any], process: dict[str, Any]) -> Iterator[Finding]:
    limit = process.get("memory_limit_bytes")
    available = memory.get("available_bytes")
    usable = min((size for size in (limit, available) if size is not None), default=None)
    if usable is not None:
        what = f"{_gib(usable)} of memory is free"
        what += f" (a container's limit: {_gib(limit)})" if limit is not None else ""
        if usable < MEMORY_WANTED_BYTES:
            yield _warning(
                f"{what}; compiling a model of some size takes more",
                "end other programs, or compile fewer cases at a time",
            )
        else:
            yield _ok(what)
    swap_used = memory.get("swap_used_bytes", 0)
    if swap_used >= SWAP_NOTICED_BYTES:
        yield _warning(
            f"{_gib(swap_used)} of memory is swapped out, and may be read back while something is timed",
            "end what takes the memory, then empty the swap",
            "sudo swapoff -a && sudo swapon -a",
        )
    if memory.get("transparent_huge_pages") == "always":
        yield _note(
            "the kernel hands out huge pages as it sees fit, so that equal buffers differ from process to process",
            "let programs ask for them",
            "echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/enabled",
        )


def _process(process: dict[str, Any], no_own_time: str | None) -> Iterator[Finding]:
    if "cpu_limit_cores" in process:
        stopped = process.get("cpu_throttled_periods", 0)
        so_far = f", {stopped} times so far" if stopped else ""
        yield _warning(
            f"a container's limit lets this process use {process['cpu_limit_cores']:g} cores' worth of time, and"
            f" stops it until the next period when that is spent{so_far}",
            "give it whole cores in place of a share of all",
            "docker run --cpuset-cpus=2,3 ...",
        )
    if process.get("niceness", 0) > 0:
        yield _warning(
            f"this process has niceness {process['niceness']}: all that runs without goes first",
            "start the harness without nice",
        )
    if process.get("aslr") is False:
        yield _note(
            "address space randomisation is off: every process has one layout, and its luck looks like a result",
            "turn it on, so that generations sample layouts",
            "sudo sysctl kernel.randomize_va_space=2",
        )
    if no_own_time is not None:
        yield _note(
            no_own_time, "wall time decides, and what other processes take is in it: leave the machine alone meanwhile"
        )


def _toolchain(diagnosis: Diagnosis) -> Iterator[Finding]:
    toolchain, process = diagnosis.toolchain, diagnosis.environment["process"]
    if isinstance(toolchain, str):
        yield _missing(toolchain)
    else:
        revision = f", revision {toolchain.revision[:12]}" if toolchain.revision else ""
        yield _ok(f"IREE {toolchain.version}{revision}")
    if "python" in process:
        yield _ok(f"Python {process['python']}")
    for extra in diagnosis.environments:
        size = f"{extra.disk_bytes / 1e6:,.0f} MB in the cache"
        yield _ok(f"IREE {extra.version} for --toolchain {extra.version}, {size}")
    if diagnosis.fetched_bytes:
        size = f"{diagnosis.fetched_bytes / 1e6:,.0f} of {LIMIT_BYTES / 1e6:,.0f} MB, beyond which the oldest go"
        yield _ok(f"wheels of CI, and environments of wheels: {size}")


def _devices(diagnosis: Diagnosis) -> Iterator[Finding]:
    """What each driver offers, those of Vulkan by name too; no GPU is a fault only where somebody asks for one."""
    if not diagnosis.probes:
        yield _missing("no device can be looked for without IREE's tools")
    named = [(probe.driver, probe.driver, probe) for probe in diagnosis.probes]
    named += [(name, f'vulkan_driver = "{name}"', probe) for name, probe in diagnosis.vulkan_drivers.items()]
    for name, title, probe in named:
        if probe.reason is not None:
            detail = f" ({probe.detail})" if probe.detail else ""
            kind = _missing if name in diagnosis.asked or name in PROCESSORS else _note
            yield kind(f"{title}: {probe.reason}{detail}", probe.advice)
        for device in probe.devices:
            # Of several devices, a suite says which one by its URI.
            what = f"{title if len(probe.devices) == 1 else device.uri}: {device.facts}"
            if device.is_software and name == probe.driver:
                advice = "use it to see that things work: its times say nothing about a GPU"
                yield _note(f"{what}; a software device, played by the CPU", advice)
            else:
                yield _ok(what)


def _peers(peers: Sequence[PeerHere]) -> Iterator[Finding]:
    """A peer that is not here is no fault of the machine: its cases are skipped."""
    for peer in peers:
        if peer.missing is None:
            yield _ok(f"{peer.name}: {peer.version}")
        else:
            reason, _, advice = peer.missing.partition("; ")
            yield _note(f"{peer.name}: {reason}", advice or None)


def _counters(reason: str | None) -> Finding:
    if reason is None:
        return _ok("hardware counters work, and are read beside the time")
    advice = "times are measured all the same; instruction counts, which repeat exactly, are left out"
    return _note(reason, advice)


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
    environments: Sequence[InstalledEnvironment] = (),
    *,
    limits: process.Limits,
    asked: frozenset[str] = frozenset(),
) -> Diagnosis:
    """Look at this machine; this never fails for what it finds or misses."""
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
        fetched_bytes=sum(bytes_below(folder) for _, folder in wheels_in_cache()),
        probes=probes,
        vulkan_drivers=vulkan_drivers,
        peers=tuple(map(_peer_here, PEERS.names)),
        counters=counters.unavailable_reason(),
        own_time=account.unavailable_reason(),
        asked=asked,
    )


def _peer_here(name: str) -> PeerHere:
    try:
        peer = AppliedPeer(peer=find_peer(name), label=name, options={})
    except SuiteError as error:
        return PeerHere(name=name, missing=str(error))
    missing = peer.missing
    return PeerHere(name=name, version=peer.version if missing is None else None, missing=missing)


# --- The page, and the document for programs ---

# A mark and a word each, since colours do not reach everybody, nor every log.
_MARKS: dict[Level, tuple[str, Tone]] = {
    "ok": ("+", "good"),
    "note": ("i", "new"),
    "warning": ("!", "open"),
    "missing": ("x", "bad"),
}


def diagnosis_page(diagnosis: Diagnosis) -> Page:
    """The findings by topic, each with its level as mark and word and with what to do; a summary ends them."""
    parts: list[Part] = []
    for topic, title in TOPICS.items():
        findings = diagnosis.findings[topic]
        if findings:
            parts.append(Heading(title))
        for finding in findings:
            mark, tone = _MARKS[finding.level]
            parts.append(Paragraph(f"{mark} {finding.level}: {finding.what}", tone))
            if finding.advice:
                parts.append(Paragraph(f"-> {finding.advice}{':' if finding.command else ''}"))
            if finding.command:
                parts.append(Code(finding.command, "sh"))
    counts: list[tuple[int, Level]] = [(diagnosis.count(level), level) for level in _MARKS]
    same = ("ok", "missing")  # words without a plural of their own
    found = ", ".join(plural(count, level, level if level in same else "") for count, level in counts if count)
    if isinstance(diagnosis.toolchain, str):
        conclusion = "Nothing can be compiled or measured here before the toolchain is there."
    elif diagnosis.count("warning"):
        conclusion = "Measuring works, but times are noisier than they need be: see the warnings."
    else:
        conclusion = "Nothing was found that makes times noisy."
    parts += [Heading("Summary"), Paragraph(f"{found}. {conclusion}")]
    return Page(parts=parts)


def render_json(diagnosis: Diagnosis) -> str:
    """The findings and the facts behind them as one JSON document with `schema_version`."""
    toolchain = diagnosis.toolchain
    return to_json(
        {
            "harness_version": __version__,
            "toolchain": {
                "version": toolchain.version,
                "revision": toolchain.revision,
                "compiler_sha256": toolchain.compiler_sha256,
            }
            if isinstance(toolchain, Toolchain)
            else None,
            "extra_toolchains": [
                {"version": extra.version, "disk_bytes": extra.disk_bytes} for extra in diagnosis.environments
            ],
            "devices": [asdict(probe) for probe in diagnosis.probes],
            "vulkan_drivers": {name: asdict(probe) for name, probe in diagnosis.vulkan_drivers.items()},
            "peers": [asdict(peer) for peer in diagnosis.peers],
            "counters": {"unavailable": diagnosis.counters},
            "environment": diagnosis.environment,
            "findings": [
                {"topic": topic, **asdict(finding)} for topic, found in diagnosis.findings.items() for finding in found
            ],
        }
    )
