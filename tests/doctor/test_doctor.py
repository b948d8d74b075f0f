"""What the doctor finds in the facts of a machine, as a reader sees it and as one JSON document."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness import __version__
from harness.doctor.examine import (
    TOPICS,
    Diagnosis,
    Environment,
    Finding,
    Level,
    PeerHere,
    devices_of,
    diagnose,
    diagnosis_page,
    render_json,
)
from harness.errors import ToolchainError
from harness.peers.peer import PEERS as REGISTERED
from harness.process import Limits
from harness.report.terminal import to_terminal
from harness.toolchain.devices import DeviceInfo, DeviceProbe
from harness.toolchain.find import Environment as InstalledEnvironment
from tests.builders import a_device, a_suite, a_toolchain

TOOLCHAIN = replace(a_toolchain(), revision="89ece87b89852100c0a4ac3d515e14842d090967")
OLDER = InstalledEnvironment(version="3.12.0", folder=Path("somewhere"), disk_bytes=627_181_843)
NO_TOOLCHAIN = "there is no IREE here: install it"


def probe(*uris: str, **facts: Any) -> DeviceProbe:
    """A driver that offers these devices."""
    devices = tuple(DeviceInfo(**{"uri": uri, "name": "", **facts}) for uri in uris)
    return DeviceProbe(driver=uris[0].partition("://")[0], devices=devices)


LOCAL = probe("local-sync", name="this CPU, on one thread")
MESA = {"driver_version": "Mesa 22.3.6 (LLVM 15.0.6)", "api": "Vulkan 1.3.230", "kind": "cpu"}
LAVAPIPE = probe("vulkan://GPU-6d65", name="llvmpipe (LLVM 15.0.6, 256 bits)", **MESA)
NO_CUDA = DeviceProbe(
    driver="cuda",
    reason="no CUDA device",
    advice="install the NVIDIA driver (libcuda)",
    detail="UNAVAILABLE: CUDA driver library 'libcuda.so'/'nvcuda.dll' not available",
)
PEERS = (
    PeerHere(name="onnxruntime", version="ONNX Runtime 1.31.1"),
    PeerHere(name="halide", missing="halide is not installed; pip install 'iree-harness[halide]'"),
)
SILENT: Environment = {"machine": {}, "cpu": {}, "memory": {}, "load": {}, "process": {}}
QUIET: Environment = {
    "machine": {"id": "0123456789ab", "system": "Linux", "virtual": False, "container": False},
    "cpu": {
        "model": "AMD EPYC",
        "logical_cores": 32,
        "usable_cores": 32,
        "isolated_cores": "2-31",
        "smt": False,
        "governor": "performance",
        "frequency_driver": "acpi-cpufreq",
        "turbo": False,
    },
    "memory": {"available_bytes": 250 * 2**30, "swap_used_bytes": 0, "transparent_huge_pages": "madvise"},
    "load": {"load_1min": 0.02, "steal_percent": 0.0},
    "process": {"python": "3.11.2", "aslr": True, "niceness": 0},
}


def judge(environment: Environment = QUIET, **facts: Any) -> Diagnosis:
    """A machine without IREE and GPUs, unless the test says otherwise."""
    return Diagnosis(**{"environment": environment, "toolchain": NO_TOOLCHAIN, "probes": (), "counters": None, **facts})


def quiet_but(section: str, **facts: Any) -> Environment:
    """The environment of a machine as benchmarks wish it, but for these facts."""
    return {**QUIET, section: {**QUIET[section], **facts}}


def every(diagnosis: Diagnosis) -> list[Finding]:
    return [finding for found in diagnosis.findings.values() for finding in found]


INTEL = {"turbo": True, "frequency_driver": "intel_pstate"}
LIMITED = {"cpu_limit_cores": 2.0, "cpu_throttled_periods": 7}
CHANGES: list[tuple[str, dict[str, Any], Level | None, str, str]] = [
    ("cpu", {"governor": "powersave"}, "warning", "the frequency governor is powersave", "cpupower"),
    ("cpu", {"turbo": True}, "warning", "turbo is on", "echo 0 | sudo tee /sys/devices/system/cpu/cpufreq/boost"),
    ("cpu", INTEL, "warning", "turbo is on", "echo 1 | sudo tee /sys/devices/system/cpu/intel_pstate/no_turbo"),
    ("cpu", {"smt": True}, "warning", "simultaneous multithreading is on", "/smt/control"),
    ("cpu", {"usable_cores": 1, "logical_cores": 1}, "warning", "may use 1 core; what is timed shares it", ""),
    ("cpu", {"usable_cores": 4}, "ok", "this process may use 4 cores of 32, by its affinity", ""),
    ("cpu", {"cores_by_kind": ["0-15", "16-31"]}, "warning", "longer on 16-31 than on 0-15", "--cpu-list 0-15 harness"),
    ("load", {"load_1min": 1.0}, "warning", "the load of the last minute is 1.00", "top"),
    ("load", {"load_1min": 0.99}, "ok", "the load of the last minute is 0.99", ""),
    ("load", {"steal_percent": 1.1}, "warning", "1.1 % of the CPU time", ""),
    ("load", {"steal_percent": 1.0}, None, "steal", ""),
    ("machine", {"virtual": True, "hypervisor": "Xen"}, "warning", "this is a virtual machine (Xen): ", ""),
    ("memory", {"swap_used_bytes": 2**30}, "warning", "1.0 GiB of memory is swapped out", "swapoff"),
    ("memory", {"swap_used_bytes": 2**20}, None, "swap", ""),
    ("memory", {"transparent_huge_pages": "always"}, "note", "huge pages", "echo madvise"),
    ("process", {"memory_limit_bytes": 2**30}, "warning", "is free (a container's limit: 1.0 GiB)", ""),
    ("process", LIMITED, "warning", "spent, 7 times so far", "--cpuset-cpus"),
    ("process", {"niceness": 10}, "warning", "niceness 10", ""),
    ("process", {"aslr": False}, "note", "address space randomisation is off", "randomize_va_space=2"),
]


@pytest.mark.parametrize(("section", "change", "level", "words", "command"), CHANGES)
def test_one_fact(section: str, change: dict[str, Any], level: Level | None, words: str, command: str) -> None:
    found = [finding for finding in every(judge(quiet_but(section, **change))) if words in finding.what]
    assert [finding.level for finding in found] == ([level] if level else [])
    for finding in found:
        assert (finding.advice is None) == (level == "ok")
        assert command in (finding.command or "")


def test_a_quiet_machine_and_one_that_tells_nothing_have_nothing_to_warn_of_and_a_small_one_is_soon_busy() -> None:
    assert {finding.level for finding in every(judge(toolchain=TOOLCHAIN, probes=(LOCAL,)))} == {"ok"}
    assert {topic for topic, found in judge(SILENT).findings.items() if found} == {"toolchain", "devices", "counters"}
    small = {**quiet_but("cpu", logical_cores=2, usable_cores=2), "load": {"load_1min": 0.6}}
    (finding,) = [finding for finding in every(judge(small)) if "0.60" in finding.what]
    assert finding.level == "warning"


H200 = probe("cuda://GPU-aaaa", "cuda://GPU-bbbb", name="NVIDIA H200", api="compute capability 9.0")
NO_CPU = DeviceProbe(driver="local-sync", reason="none", advice="reinstall")
DRIVERS = {
    "lavapipe": probe("vulkan://a", name="llvmpipe", kind="cpu"),
    "swiftshader": DeviceProbe(driver="vulkan", reason="SwiftShader is not here", advice="install Chromium"),
}
ASKED = {"vulkan_drivers": DRIVERS, "asked": frozenset({"swiftshader"})}
SWIFTSHADER = 'vulkan_driver = "swiftshader": SwiftShader is not here'
OWN_TIME = "this kernel counts a thread's time in ticks"


@pytest.mark.parametrize(
    ("facts", "level", "what", "advice"),
    [
        ({"toolchain": TOOLCHAIN}, "ok", "IREE 3.13.0, revision 89ece87b8985", ""),
        ({"environments": (OLDER,)}, "ok", "IREE 3.12.0 for --toolchain 3.12.0, 627 MB in the cache", ""),
        ({"fetched_bytes": 2 * 10**9}, "ok", "wheels of CI, and environments of wheels: 2,000 of 10,000 MB", ""),
        ({}, "missing", "no device can be looked for without IREE's tools", ""),
        ({"probes": (NO_CUDA,), "asked": frozenset({"cuda"})}, "missing", "cuda: no CUDA device (", "install the"),
        # Of several devices, a suite says which one by its URI.
        ({"probes": (H200,)}, "ok", "cuda://GPU-bbbb: NVIDIA H200, compute", ""),
        ({"probes": (probe("cuda://GPU-1"),)}, "ok", "cuda: cuda://GPU-1", ""),
        ({"probes": (LAVAPIPE,)}, "note", "vulkan: llvmpipe (LLVM 15.0.6, 256 bits), Vulkan 1", "times say nothing"),
        ({"vulkan_drivers": DRIVERS}, "ok", 'vulkan_driver = "lavapipe": llvmpipe', ""),
        ({"vulkan_drivers": DRIVERS, "asked": frozenset({"lavapipe"})}, "note", SWIFTSHADER, "install Chromium"),
        (ASKED, "missing", SWIFTSHADER, "install Chromium"),
        ({"probes": (NO_CPU,)}, "missing", "local-sync: none", "reinstall"),
        ({"peers": PEERS}, "ok", "onnxruntime: ONNX Runtime 1.31.1", ""),
        ({"peers": PEERS}, "note", "halide: halide is not installed", "pip install 'iree-harness[halide]'"),
        ({"counters": "no counters here"}, "note", "no counters here", "times are measured all the same"),
        ({"own_time": OWN_TIME}, "note", OWN_TIME, "wall time decides"),
    ],
)
def test_what_is_here_and_what_is_not(facts: dict[str, Any], level: Level, what: str, advice: str) -> None:
    (finding,) = [finding for finding in every(judge(**facts)) if finding.what.startswith(what)]
    assert (finding.level, bool(finding.advice), finding.command) == (level, bool(advice), None)
    assert advice in (finding.advice or "")


LIMITS = Limits(seconds=30)


def test_every_driver_is_asked_for(tmp_path: Path) -> None:
    tool = tmp_path / "iree-run-module"
    tool.write_text('#!/bin/sh\ntest "$1" = --list_devices=hip && echo hip://GPU-1\n')
    tool.chmod(0o755)
    toolchain = replace(TOOLCHAIN, revision="", compiler_tools=tmp_path, runtime_tools=tmp_path)
    diagnosis = diagnose(toolchain, limits=LIMITS)
    assert [probe.driver for probe in diagnosis.probes] == ["local-sync", "local-task", "vulkan", "cuda", "hip"]
    assert [bool(probe.devices) for probe in diagnosis.probes] == [True, True, False, False, True]
    assert diagnosis.findings["toolchain"][0].what == "IREE 3.13.0"
    assert diagnosis.environment["cpu"]["logical_cores"] >= 1


def test_without_a_toolchain_the_machine_and_every_registered_peer_are_judged_all_the_same() -> None:
    diagnosis = diagnose(ToolchainError("there is no IREE here: install it"), limits=LIMITS)
    assert diagnosis.probes == ()
    assert diagnosis.findings["toolchain"][0].what == "there is no IREE here: install it"
    assert diagnosis.findings["processor"]
    assert {peer.name for peer in diagnosis.peers} == set(REGISTERED.names)
    assert all((peer.version is None) == (peer.missing is not None) for peer in diagnosis.peers)


def test_suites_ask_for_the_drivers_of_their_devices() -> None:
    """And for one driver of Vulkan where they say which."""
    both = a_device(uri="cuda://0", more_uris=("hip",))
    soft = a_device(uri="vulkan", vulkan_driver="lavapipe")
    suites = (a_suite(devices=(a_device(), both, soft)), a_suite(devices=(a_device(uri="vulkan://1"),)))
    assert devices_of(suites[:1]) == {"local-sync", "cuda", "hip", "lavapipe"}
    assert devices_of(suites) == {"local-sync", "cuda", "hip", "lavapipe", "vulkan"}


# --- The page and the document ---

NOTHING = """\
Toolchain
x missing: there is no IREE here: install it

Devices
i note: cuda: no CUDA device (UNAVAILABLE: CUDA driver library
'libcuda.so'/'nvcuda.dll' not available)
-> install the NVIDIA driver (libcuda)

Memory
i note: the kernel hands out huge pages as it sees fit, so that equal buffers
differ from process to process
-> let programs ask for them:
  echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/enabled

Hardware counters
+ ok: hardware counters work, and are read beside the time

Summary
1 ok, 2 notes, 1 missing. Nothing can be compiled or measured here before the
toolchain is there.
"""


def test_what_a_reader_sees() -> None:
    environment = {**SILENT, "memory": {"transparent_huge_pages": "always"}}
    assert to_terminal(diagnosis_page(judge(environment, probes=(NO_CUDA,))), width=80) == NOTHING
    noisy = "1 warning. Measuring works, but times are noisier than they need be: see the warnings."
    for smt, last in ((False, "ok. Nothing was found that makes times noisy."), (True, noisy)):
        page = diagnosis_page(judge(quiet_but("cpu", smt=smt), toolchain=TOOLCHAIN, probes=(LOCAL,)))
        assert to_terminal(page, width=300).rstrip().endswith(last)


def test_one_json_document_with_every_finding_and_fact() -> None:
    probes = (LOCAL, LAVAPIPE, NO_CUDA)
    diagnosis = judge(toolchain=TOOLCHAIN, environments=(OLDER,), probes=probes, peers=PEERS, counters="there are none")
    document = json.loads(render_json(diagnosis))
    found = [(topic, finding.what) for topic, found in diagnosis.findings.items() for finding in found]
    assert [(finding["topic"], finding["what"]) for finding in document.pop("findings")] == found
    assert list(diagnosis.findings) == list(TOPICS)
    devices = document.pop("devices")
    assert [probe["driver"] for probe in devices] == ["local-sync", "vulkan", "cuda"]
    assert devices[2] == {**vars(NO_CUDA), "devices": []}
    # Toolchains without their folders, so that the document can be put into an issue.
    assert document == {
        "schema_version": 1,
        "harness_version": __version__,
        "toolchain": {"version": "3.13.0", "revision": TOOLCHAIN.revision, "compiler_sha256": "cc" * 32},
        "extra_toolchains": [{"version": "3.12.0", "disk_bytes": 627_181_843}],
        "vulkan_drivers": {},
        "peers": [{"missing": None, **vars(PEERS[0])}, {"version": None, **vars(PEERS[1])}],
        "counters": {"unavailable": "there are none"},
        "environment": QUIET,
    }
    assert json.loads(render_json(judge(SILENT)))["toolchain"] is None
