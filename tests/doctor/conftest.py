"""A few machines as the doctor meets them: what was captured, which toolchain there is, what the drivers said."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest

from harness.doctor import Diagnosis, examine
from harness.toolchain.devices import DeviceInfo, DeviceProbe
from harness.toolchain.find import Environment as InstalledEnvironment
from harness.toolchain.find import Toolchain

Environment = dict[str, dict[str, Any]]

TOOLCHAIN = Toolchain(
    version="3.13.0",
    revision="89ece87b89852100c0a4ac3d515e14842d090967",
    compiler_sha256="5e" * 32,
    python=Path("bin/python"),
    compiler_tools=Path("compiler"),
    runtime_tools=Path("runtime"),
)
LOCAL = (
    DeviceProbe(
        driver="local-sync", devices=(DeviceInfo(uri="local-sync", name="this CPU, on the thread that calls"),)
    ),
    DeviceProbe(driver="local-task", devices=(DeviceInfo(uri="local-task", name="this CPU, on a pool of threads"),)),
)
NO_CUDA = DeviceProbe(
    driver="cuda",
    reason="no CUDA device",
    advice="install the NVIDIA driver (libcuda)",
    detail="UNAVAILABLE: CUDA driver library 'libcuda.so'/'nvcuda.dll' not available",
)
NO_HIP = DeviceProbe(driver="hip", reason="no HIP device", advice="install AMD's ROCm runtime (libamdhip64)")
NO_VULKAN = DeviceProbe(
    driver="vulkan",
    reason="no Vulkan device",
    advice="install a Vulkan driver",
    detail="UNAVAILABLE: [vkCreateInstance] VK_ERROR_INCOMPATIBLE_DRIVER",
)
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
TWO_H200 = DeviceProbe(
    driver="cuda",
    devices=tuple(
        DeviceInfo(uri=uri, name="NVIDIA H200", driver_version="CUDA 12.8", api="compute capability 9.0")
        for uri in ("cuda://GPU-aaaa", "cuda://GPU-bbbb")
    ),
)

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

_LAPTOP: Environment = {
    "machine": {"id": "0123456789ac", "system": "Linux", "virtual": False, "container": False},
    "cpu": {
        "model": "Intel(R) Core(TM) i7-1165G7 @ 2.80GHz",
        "logical_cores": 8,
        "physical_cores": 4,
        "usable_cores": 8,
        "smt": True,
        "max_mhz": 4700,
        "min_mhz": 400,
        "governor": "powersave",
        "frequency_driver": "intel_pstate",
        "turbo": True,
    },
    "memory": {
        "total_bytes": 16 * 2**30,
        "available_bytes": 5 * 2**29,
        "swap_used_bytes": 2**30,
        "transparent_huge_pages": "always",
    },
    "load": {"load_1min": 1.85, "load_5min": 1.1, "load_15min": 0.9, "steal_percent": 0.0},
    "process": {"python": "3.13.1", "python_implementation": "CPython", "aslr": True, "niceness": 5},
}

_CONTAINER: Environment = {
    "machine": {"id": "0123456789ad", "system": "Linux", "virtual": True, "hypervisor": "KVM", "container": True},
    "cpu": {"model": "AMD EPYC 7B13", "logical_cores": 2, "physical_cores": 2, "usable_cores": 1, "smt": False},
    "memory": {"total_bytes": 8 * 2**30, "available_bytes": 7 * 2**30, "swap_used_bytes": 0},
    "load": {"load_1min": 0.1, "load_5min": 0.1, "load_15min": 0.1, "steal_percent": 3.2},
    "process": {
        "python": "3.10.14",
        "aslr": False,
        "niceness": 0,
        "cpu_limit_cores": 1.5,
        "cpu_throttled_periods": 12,
        "memory_limit_bytes": 2**30,
    },
}

_SILENT: Environment = {"machine": {}, "cpu": {}, "memory": {}, "load": {}, "process": {}}


OLDER = InstalledEnvironment(version="3.12.0", folder=Path("somewhere"), disk_bytes=627_181_843)


@pytest.fixture
def quiet() -> Environment:
    """The environment of a machine as benchmarks wish it."""
    return copy.deepcopy(_QUIET)


@pytest.fixture
def diagnoses() -> dict[str, Diagnosis]:
    """Four machines: made for it, a laptop in use, a throttled container without IREE, one that tells nothing."""
    return {
        "server": examine(
            environment=_QUIET,
            toolchain=TOOLCHAIN,
            environments=(OLDER,),
            probes=(*LOCAL, NO_VULKAN, TWO_H200, NO_HIP),
            counters=None,
        ),
        "laptop": examine(
            environment=_LAPTOP,
            toolchain=TOOLCHAIN,
            probes=(*LOCAL, LAVAPIPE, NO_CUDA, NO_HIP),
            counters="hardware counters are forbidden: kernel.perf_event_paranoid is 3; "
            "set it to 2 with: sudo sysctl kernel.perf_event_paranoid=2",
        ),
        "container": examine(
            environment=_CONTAINER,
            toolchain="no IREE compiler in this Python environment: install it with pip install iree-base-compiler",
            probes=(),
            counters="this (virtual) machine exposes no hardware counters",
        ),
        "silent": examine(environment=_SILENT, toolchain=TOOLCHAIN, probes=LOCAL, counters=None),
    }
