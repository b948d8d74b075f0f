"""Hosts as a scheduler tells of them, and a suite for them."""

from dataclasses import replace
from typing import Any

from harness.fleet.offer import Offer, OfferedToolchain, OfferedVulkan, own_versions, to_text
from harness.toolchain.devices import DeviceInfo, DeviceProbe
from harness.toolchain.host_cpu import TargetCpu

# Of one model; each of the variants says how its compiler makes its code.
SUITE = """\
name = "small"
baseline = "stock"
[models.a]
mlir = "models/a/model.mlir"
function = "main"
inputs = [{ shape = [4] }]
[devices.cpu]
uri = "local-sync"
backend = "llvm-cpu"
compile_flags = ["--iree-hal-target-device=local", "--iree-llvmcpu-target-cpu=host"]
"""
_GPU = DeviceInfo(uri="cuda://GPU-1", name="NVIDIA H100", api="compute capability 9.0", driver_version="CUDA 12.8")
NO_VULKAN = DeviceProbe(driver="vulkan", reason="no Vulkan device", advice="install a Vulkan driver")


def make_offer(name: str = "host-a", **changes: Any) -> Offer:
    """A host with a GPU that CUDA finds, and without Vulkan."""
    cpu = TargetCpu(name="znver3", features="+avx2")
    local = DeviceProbe(driver="local-sync", devices=(DeviceInfo(uri="local-sync", name="this CPU"),))
    offer = Offer(
        name=name,
        address="tls://10.0.0.1:4000",
        versions=own_versions(),
        host_cpu="AMD EPYC 7B13 ['avx2']",
        cores=8,
        environment={
            "machine": {"system": "Linux", "architecture": "x86_64"},
            "cpu": {"model": "AMD EPYC 7B13", "usable_cores": 8, "flags": ["avx2"]},
        },
        drivers={"local-sync": local, "cuda": DeviceProbe(driver="cuda", devices=(_GPU,)), "vulkan": NO_VULKAN},
        vulkan_drivers={"lavapipe": OfferedVulkan(probe=NO_VULKAN, environment={"VK_DRIVER_FILES": "/there.json"})},
        toolchains={"3.13.0": OfferedToolchain(compiler_sha256="5e" * 32, cpu=cpu)},
    )
    return replace(offer, **changes)


def told(offer: Offer, /, **changes: Any) -> dict[str, Any]:
    """A host in the facts of a scheduler."""
    host: dict[str, Any] = {
        "name": offer.name,
        "address": offer.address,
        "offer": to_text(offer),
        "doing": [],
        "clock_behind_s": 0.0,
        "unseen_s": 0.5,
    }
    return {**host, **changes}


def make_facts(*hosts: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """A scheduler's facts."""
    return {"hosts": hosts, "clients": 0, "waits": [], **changes}
