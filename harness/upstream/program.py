"""One test of upstream's, as what a suite needs of it."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from harness.metrics import LATENCY
from harness.models.inputs import Array
from harness.suite.schema import DeviceTable
from harness.upstream.values import Elements


@dataclass(frozen=True, kw_only=True)
class Program:
    """A program, what it is called with, and what is right."""

    name: str
    device: DeviceTable  # What it is compiled for and runs on
    mlir: Path
    function: str
    inputs: Sequence[Elements | Array] = ()
    expected: Sequence[Elements | Path] = ()  # Raw elements, or .npy files
    parameters: Mapping[str, Path] = field(default_factory=dict)
    more: Mapping[str, Any] = field(default_factory=dict)  # Further keys of the model's table
    limits: Mapping[str, float] = field(default_factory=dict)  # What a metric may be at most, in its unit
    without: str = ""  # Why upstream's right outputs are not there


class NotHere(Exception):
    """A file that a test needs cannot be had; the message says why."""


# By name each test, which is made where it is written, or why it is left out.
Tests: TypeAlias = Iterator[tuple[str, Callable[[], Program] | str]]


# The backend of devices that are no CPU.
_BACKENDS = {"hip": "rocm", "amdgpu": "rocm", "cuda": "cuda", "vulkan": "vulkan-spirv", "metal": "metal-spirv"}
# Upstream's tests write statistics of the compiler into a file; here every compile counts its dispatches.
_STATISTICS = "--iree-scheduling-dump-statistics"


def device_of(compile_flags: Sequence[str], run_flags: Sequence[str]) -> DeviceTable:
    """The device that flags of iree-compile and of iree-run-module choose."""
    pairs = (flag.lstrip("-").partition("=") for flag in reversed((*compile_flags, *run_flags)))
    values = {name: value for name, _, value in pairs}
    device = values.get("iree-hal-target-device", "local").partition("[")[0]
    backend = values.get("iree-hal-target-backends") or values.get("iree-hal-local-target-device-backends")
    return DeviceTable(
        uri=(values.get("device") or "local-task",),
        backend=_BACKENDS.get(device) or backend or "llvm-cpu",
        compile_flags=tuple(flag for flag in compile_flags if not flag.startswith(_STATISTICS)),
        run_flags=tuple(flag for flag in run_flags if not flag.startswith("--device=")),
    )


def first_function(mlir: Path) -> str:
    """The name of the first function in a text of MLIR."""
    return mlir.read_text(encoding="utf-8", errors="replace").partition("func.func @")[2].partition("(")[0]


def latency_limit(golden_ms: float | None, factor: float) -> dict[str, float]:
    """A golden time and its tolerance, as a limit in nanoseconds."""
    return {} if golden_ms is None else {LATENCY.name: golden_ms * factor * 1e6}
