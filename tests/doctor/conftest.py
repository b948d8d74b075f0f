"""Machines as the doctor meets them: what was captured, which toolchain there is, what the drivers said."""

import copy
from pathlib import Path
from typing import Any

import pytest

from harness.doctor import Diagnosis
from harness.doctor.examine import Environment, PeerHere
from harness.toolchain.devices import DeviceInfo, DeviceProbe
from harness.toolchain.find import Environment as InstalledEnvironment
from harness.toolchain.find import Toolchain

TOOLCHAIN = Toolchain(
    version="3.13.0",
    revision="89ece87b89852100c0a4ac3d515e14842d090967",
    compiler_sha256="5e" * 32,
    python=Path("bin/python"),
    compiler_tools=Path("compiler"),
    runtime_tools=Path("runtime"),
)
OLDER = InstalledEnvironment(version="3.12.0", folder=Path("somewhere"), disk_bytes=627_181_843)
NO_TOOLCHAIN = "there is no IREE here: install it"
LOCAL = DeviceProbe(driver="local-sync", devices=(DeviceInfo(uri="local-sync", name="this CPU, on one thread"),))
LAVAPIPE = DeviceProbe(
    driver="vulkan",
    devices=(
        DeviceInfo(
            uri="vulkan://GPU-6d65",
            name="llvmpipe (LLVM 15.0.6, 256 bits)",
            driver_version="Mesa 22.3.6 (LLVM 15.0.6)",
            api="Vulkan 1.3.230",
            kind="cpu",
        ),
    ),
)
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
_QUIET: Environment = {
    "machine": {"id": "0123456789ab", "system": "Linux", "virtual": False, "container": False},
    "cpu": {
        "model": "AMD EPYC 9354P 32-Core Processor",
        "logical_cores": 32,
        "physical_cores": 32,
        "usable_cores": 32,
        "isolated_cores": "2-31",
        "smt": False,
        "max_mhz": 3250,
        "min_mhz": 1500,
        "governor": "performance",
        "frequency_driver": "acpi-cpufreq",
        "turbo": False,
    },
    "memory": {
        "total_bytes": 256 * 2**30,
        "available_bytes": 250 * 2**30,
        "swap_used_bytes": 0,
        "transparent_huge_pages": "madvise",
    },
    "load": {"load_1min": 0.02, "load_5min": 0.05, "load_15min": 0.01, "steal_percent": 0.0},
    "process": {"python": "3.11.2", "python_implementation": "CPython", "aslr": True, "niceness": 0},
}
_BUSY: dict[str, dict[str, Any]] = {
    "machine": {"virtual": True, "hypervisor": "KVM"},
    "cpu": {"usable_cores": 1, "smt": True, "governor": "powersave", "turbo": True},
    "memory": {"available_bytes": 2**30, "swap_used_bytes": 2**30, "transparent_huge_pages": "always"},
    "load": {"load_1min": 1.85, "steal_percent": 3.2},
    "process": {"niceness": 5, "cpu_limit_cores": 1.5, "cpu_throttled_periods": 12},
}


def judge(environment: Environment, **facts: Any) -> Diagnosis:
    """A machine without IREE and GPUs, unless the test says otherwise."""
    return Diagnosis(**{"environment": environment, "toolchain": NO_TOOLCHAIN, "probes": (), "counters": None, **facts})


@pytest.fixture
def quiet() -> Environment:
    """The environment of a machine as benchmarks wish it."""
    return copy.deepcopy(_QUIET)


@pytest.fixture
def busy(quiet: Environment) -> Diagnosis:
    """A machine of which there is something to say about everything."""
    return judge(
        {section: {**facts, **_BUSY[section]} for section, facts in quiet.items()},
        toolchain=TOOLCHAIN,
        environments=(OLDER,),
        probes=(LOCAL, LAVAPIPE, NO_CUDA),
        peers=PEERS,
        counters="this (virtual) machine exposes no hardware counters",
    )
