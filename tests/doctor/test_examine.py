"""The judgement: each fact alone, against a machine that is otherwise as benchmarks wish it."""

from __future__ import annotations

from typing import Any

import pytest

from harness.doctor import Diagnosis, Finding, Level, examine
from harness.doctor.examine import KnownPeer
from harness.toolchain.devices import DeviceInfo, DeviceProbe

Environment = dict[str, dict[str, Any]]

NO_TOOLCHAIN = "there is no IREE here"


def judge(environment: Environment, *, counters: str | None = None, probes: tuple[DeviceProbe, ...] = ()) -> Diagnosis:
    return examine(environment=environment, toolchain=NO_TOOLCHAIN, probes=probes, counters=counters)


def the_finding(diagnosis: Diagnosis, words: str) -> Finding:
    """The only finding whose sentence holds these words."""
    (found,) = [finding for finding in diagnosis.findings if words in finding.what]
    return found


def test_a_quiet_machine_has_nothing_to_warn_of(quiet: Environment) -> None:
    diagnosis = judge(quiet)
    assert diagnosis.count("warning") == 0
    (note,) = [finding for finding in diagnosis.findings if finding.level == "note"]
    assert note.what.startswith("address space randomisation is on")


CHANGES: list[tuple[str, dict[str, Any], Level, str, str | None]] = [
    ("cpu", {"governor": "powersave"}, "warning", "the frequency governor is powersave", "cpupower"),
    ("cpu", {"governor": "performance, schedutil"}, "warning", "performance, schedutil", "cpupower"),
    ("cpu", {"turbo": True}, "warning", "turbo is on", "echo 0 | sudo tee /sys/devices/system/cpu/cpufreq/boost"),
    (
        "cpu",
        {"turbo": True, "frequency_driver": "intel_pstate"},
        "warning",
        "turbo is on",
        "echo 1 | sudo tee /sys/devices/system/cpu/intel_pstate/no_turbo",
    ),
    ("cpu", {"smt": True}, "warning", "simultaneous multithreading is on", "/smt/control"),
    ("cpu", {"usable_cores": 2}, "warning", "this process may use 2 cores of 32, by its affinity", None),
    (
        "cpu",
        {"usable_cores": 1, "logical_cores": 1},
        "warning",
        "this process may use 1 core; what is timed shares it",
        None,
    ),
    ("cpu", {"usable_cores": 4}, "ok", "this process may use 4 cores of 32, by its affinity", None),
    ("load", {"load_1min": 1.0}, "warning", "the load of the last minute is 1.00", "top"),
    ("load", {"load_1min": 0.99}, "ok", "the load of the last minute is 0.99", None),
    ("load", {"steal_percent": 1.1}, "warning", "1.1 % of the CPU time", None),
    ("machine", {"virtual": True}, "warning", "this is a virtual machine: ", None),
    ("machine", {"virtual": True, "hypervisor": "Xen"}, "warning", "this is a virtual machine (Xen): ", None),
    ("memory", {"available_bytes": 2**30}, "warning", "1.0 GiB of memory is free", None),
    ("memory", {"swap_used_bytes": 2**30}, "warning", "1.0 GiB of memory is swapped out", "swapoff"),
    ("memory", {"transparent_huge_pages": "always"}, "note", "huge pages", "echo madvise"),
    ("process", {"memory_limit_bytes": 2**30}, "warning", "is free (a container's limit: 1.0 GiB)", None),
    ("process", {"memory_limit_bytes": 2**33}, "ok", "is free (a container's limit: 8.0 GiB)", None),
    ("process", {"cpu_limit_cores": 1.5}, "warning", "use 1.5 cores' worth of time", "--cpuset-cpus"),
    ("process", {"cpu_limit_cores": 2.0, "cpu_throttled_periods": 7}, "warning", "is spent, 7 times so far", None),
    ("process", {"niceness": 10}, "warning", "niceness 10", None),
    ("process", {"aslr": True}, "note", "address space randomisation is on", None),
    ("process", {"aslr": False}, "note", "address space randomisation is off", "randomize_va_space=2"),
]


@pytest.mark.parametrize(("section", "change", "level", "words", "command"), CHANGES)
def test_one_fact(
    quiet: Environment, section: str, change: dict[str, Any], level: Level, words: str, command: str | None
) -> None:
    quiet[section] |= change
    finding = the_finding(judge(quiet), words)
    assert finding.level == level
    assert (finding.advice is None) == (level == "ok")
    if command is not None:
        assert finding.command is not None
        assert command in finding.command


@pytest.mark.parametrize(
    ("section", "change", "words"),
    [
        ("load", {"steal_percent": 1.0}, "steal"),
        ("memory", {"swap_used_bytes": 2**20}, "swap"),
        ("memory", {"transparent_huge_pages": "never"}, "huge"),
        ("process", {"niceness": -5}, "niceness"),
    ],
)
def test_what_is_harmless_is_not_mentioned(
    quiet: Environment, section: str, change: dict[str, Any], words: str
) -> None:
    quiet[section] |= change
    assert not [finding for finding in judge(quiet).findings if words in finding.what]


def test_on_a_small_machine_a_smaller_load_is_too_much(quiet: Environment) -> None:
    quiet["cpu"] |= {"logical_cores": 2, "usable_cores": 2}
    quiet["load"]["load_1min"] = 0.6
    assert the_finding(judge(quiet), "0.60").level == "warning"


def test_a_machine_that_tells_nothing_gives_no_findings_about_it(diagnoses: dict[str, Diagnosis]) -> None:
    topics = {finding.topic for finding in diagnoses["silent"].findings}
    assert topics == {"toolchain", "devices", "counters"}


def test_toolchains_are_named_by_version_and_revision_and_extra_ones_by_size(diagnoses: dict[str, Diagnosis]) -> None:
    sentences = [finding.what for finding in diagnoses["server"].about("toolchain")]
    assert sentences[0] == "IREE 3.13.0, revision 89ece87b8985"
    assert sentences[-1] == "IREE 3.12.0 for --toolchain 3.12.0, 627 MB in the cache"
    assert diagnoses["laptop"].extra_toolchains == ()


def test_without_a_toolchain_its_own_sentence_stands_and_there_is_no_device(quiet: Environment) -> None:
    diagnosis = judge(quiet)
    assert diagnosis.toolchain is None
    assert diagnosis.about("toolchain")[0] == Finding(topic="toolchain", level="missing", what=NO_TOOLCHAIN)
    assert [finding.level for finding in diagnosis.about("devices")] == ["missing"]


def test_each_device_has_a_sentence_with_its_uri_where_there_are_several(diagnoses: dict[str, Diagnosis]) -> None:
    findings = [(finding.level, finding.what) for finding in diagnoses["server"].about("devices")]
    assert findings[:5] == [
        ("ok", "local-sync: this CPU, on the thread that calls"),
        ("ok", "local-task: this CPU, on a pool of threads"),
        ("missing", "vulkan: no Vulkan device (UNAVAILABLE: [vkCreateInstance] VK_ERROR_INCOMPATIBLE_DRIVER)"),
        ("ok", "cuda://GPU-aaaa: NVIDIA H200, compute capability 9.0, CUDA 12.8"),
        ("ok", "cuda://GPU-bbbb: NVIDIA H200, compute capability 9.0, CUDA 12.8"),
    ]


def test_a_device_without_a_name_has_its_uri_and_a_software_device_is_no_gpu(
    quiet: Environment, diagnoses: dict[str, Diagnosis]
) -> None:
    probe = DeviceProbe(driver="cuda", devices=(DeviceInfo(uri="cuda://GPU-1", name=""),))
    assert judge(quiet, probes=(probe,)).about("devices")[0].what == "cuda: cuda://GPU-1"
    software = the_finding(diagnoses["laptop"], "llvmpipe")
    assert (software.level, software.advice) == (
        "note",
        "use it to see that things work: its times say nothing about a GPU",
    )


def test_counters_are_a_note_at_most(quiet: Environment) -> None:
    assert judge(quiet).about("counters")[0].level == "ok"
    missing = judge(quiet, counters="this machine exposes no hardware counters").about("counters")[0]
    assert (missing.level, missing.what) == ("note", "this machine exposes no hardware counters")


def test_findings_are_plain_sentences(diagnoses: dict[str, Diagnosis]) -> None:
    for diagnosis in diagnoses.values():
        for finding in diagnosis.findings:
            for sentence in filter(None, (finding.what, finding.advice)):
                assert not sentence.endswith((".", " ", ":"))
                assert "  " not in sentence
                assert "None" not in sentence


def test_vulkan_drivers_that_suites_ask_for_have_the_key_that_asks(quiet: Environment) -> None:
    lavapipe = DeviceProbe(driver="vulkan", devices=(DeviceInfo(uri="vulkan://a", name="llvmpipe", kind="cpu"),))
    none = DeviceProbe(driver="vulkan", reason="the Vulkan driver SwiftShader is not here", advice="install Chromium")
    diagnosis = examine(
        environment=quiet,
        toolchain=NO_TOOLCHAIN,
        probes=(),
        counters=None,
        vulkan_drivers={"lavapipe": lavapipe, "swiftshader": none},
    )
    here = the_finding(diagnosis, 'vulkan_driver = "lavapipe"')
    assert (here.level, here.what) == ("ok", 'vulkan_driver = "lavapipe": llvmpipe')
    missing = the_finding(diagnosis, 'vulkan_driver = "swiftshader"')
    assert (missing.level, missing.advice) == ("missing", "install Chromium")


def test_a_missing_engine_is_a_note_with_what_installs_it(quiet: Environment) -> None:
    diagnosis = examine(
        environment=quiet,
        toolchain=NO_TOOLCHAIN,
        probes=(),
        counters=None,
        peers=[
            KnownPeer(name="onnxruntime", version="ONNX Runtime 1.31.1"),
            KnownPeer(name="halide", missing="halide is not installed; pip install 'iree-harness[halide]'"),
        ],
    )
    here, absent = diagnosis.about("peers")
    assert (here.level, here.what) == ("ok", "onnxruntime: ONNX Runtime 1.31.1")
    assert (absent.level, absent.what) == ("note", "halide: halide is not installed")
    assert absent.advice == "pip install 'iree-harness[halide]'"
