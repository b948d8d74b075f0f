"""What IREE makes of functions, beside what the reference says of them."""

import hashlib
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.outputs.building import Array, Function, Value
from harness.verify.evaluate import evaluate, tolerances
from harness.verify.interpreter import Exported
from harness.verify.rounding import FACTOR

TOOLS = Path(sys.executable).parent
TARGETS = ("x86-64-v3", "host")
FLAG_SETS = (
    (),
    ("--iree-opt-level=O1",),
    ("--iree-opt-level=O2",),
    ("--iree-opt-level=O3",),
    ("--iree-opt-data-tiling",),
)
DEVICE = ("--iree-hal-target-device=local",)
# Nothing but code is in a module: what is the same code has the same bytes.
_CODE_ONLY = (
    *DEVICE,
    "--iree-hal-local-target-device-backends=llvm-cpu",
    "--iree-hal-executable-debug-level=0",
    "--iree-vm-bytecode-module-strip-source-map",
    "--iree-llvmcpu-debug-symbols=false",
)
# What one evaluation may take, with all samples.
_SECONDS = 60.0


class CompileError(Exception):
    """IREE does not compile it; its text is the first error."""


def _tool(name: str, text: str, *flags: str) -> str:
    ended = subprocess.run([TOOLS / name, "-", *flags], input=text, capture_output=True, text=True, check=False)
    if ended.returncode:
        lines = [line for line in ended.stderr.splitlines() if "error" in line] or [ended.stderr[-200:], ""]
        raise CompileError(lines[0].strip())
    return ended.stdout


def linalg_of(text: str, flags: Sequence[str] = ()) -> str:
    """A program as the reference evaluates it."""
    return _tool("iree-compile", text, "--compile-to=input", *DEVICE, *flags)


def configured(text: str, target: str, flags: Sequence[str]) -> str:
    """A program with everything decided that precedes code generation; equal texts give equal modules."""
    return _tool("iree-compile", text, "--compile-to=executable-configurations", *_CODE_ONLY, *_cpu(target), *flags)


def _cpu(target: str) -> tuple[str, ...]:
    return (f"--iree-llvmcpu-target-cpu={target}",)


def compiled(text: str, target: str, flags: Sequence[str], *, phase: str = "") -> Path:
    """A module, from the program or from where `configured` left it; the caller removes it."""
    begin = (f"--compile-from={phase}",) if phase else ()
    with tempfile.NamedTemporaryFile(suffix=".vmfb", delete=False) as file:
        path = Path(file.name)
    _tool("iree-compile", text, "-o", str(path), *begin, *_CODE_ONLY, *_cpu(target), *flags)
    return path


class Runner:
    """Calls functions of modules in this process."""

    def __init__(self) -> None:
        from iree import runtime

        self.rt = runtime
        self.instance = runtime.VmInstance()
        self.device = runtime.get_device("local-sync")
        self.hal = runtime.create_hal_module(self.instance, self.device)

    def call(self, module: Path, functions: Sequence[Function]) -> Iterator[list[Array]]:
        """The outputs of each function of a module."""
        loaded = self.rt.VmModule.mmap(self.instance, str(module))
        context = self.rt.VmContext(self.instance, [self.hal, loaded])
        for function in functions:
            given = self.rt.VmVariantList(len(function.arguments))
            for value, held in function.arguments:
                given.push_ref(self._buffer(value, held))
            results = self.rt.VmVariantList(len(function.results))
            context.invoke(loaded.lookup_function(function.name), given, results)
            yield [
                self._read(results.get_as_object(at, self.rt.HalBufferView), value)
                for at, value in enumerate(function.results)
            ]

    def _buffer(self, value: Value, held: Array) -> Any:
        rt = self.rt
        element = rt.HalElementType.BFLOAT_16 if value.kind == "bf16" else None
        if value.kind == "bf16":
            held = (held.view(np.uint32) >> 16).astype(np.uint16)
        return self.device.allocator.allocate_buffer_copy(
            memory_type=int(rt.MemoryType.DEVICE_LOCAL),
            allowed_usage=int(rt.BufferUsage.DEFAULT),
            device=self.device,
            buffer=np.require(held, requirements="C"),
            element_type=element or rt.array_interop.map_dtype_to_element_type(held.dtype),
        )

    def _read(self, view: Any, value: Value) -> Array:
        if value.kind != "bf16":
            return np.array(self.rt.DeviceArray(self.device, view).to_host())
        bits = np.array(view.map().asarray(value.shape, np.dtype(np.uint16)))
        return (bits.astype(np.uint32) << 16).view(np.float32)


@dataclass(frozen=True, kw_only=True)
class Judged:
    """One output set beside the reference.

    Attributes:
        beyond: Elements that are refused.
        spreads: The largest error in spreads, of elements that have one; infinite where an exact element is wrong.
        at: Where that is, what is there and what is right.
    """

    beyond: int
    elements: int
    spreads: float
    at: str

    @property
    def is_right(self) -> bool:
        """Whether it is accepted."""
        return not self.beyond


def reference(text: str, function: Function) -> list[Exported]:
    """What the reference says of a function of a program that linalg_of made."""
    return evaluate(text, function.name, [held for _, held in function.arguments], {}, _SECONDS).outputs


def judged(right: Sequence[Exported], got: Sequence[Array]) -> Judged:
    """Outputs as the reference judges them, the worst of them."""
    verdicts = [_judged(one, values) for one, values in zip(right, got, strict=True)]
    worst = max(verdicts, key=lambda verdict: (verdict.beyond > 0, verdict.spreads))
    return Judged(
        beyond=sum(verdict.beyond for verdict in verdicts),
        elements=sum(verdict.elements for verdict in verdicts),
        spreads=worst.spreads,
        at=worst.at,
    )


def _judged(output: Exported, got: Array) -> Judged:
    exact, allowed = tolerances(output)
    got = got.reshape(exact.shape)
    if exact.dtype == bool:
        got = got.astype(bool)
    with np.errstate(all="ignore"):
        off = np.abs(got.astype(np.float64) - exact.astype(np.float64))
        same = (got == exact) | (np.isnan(got) & np.isnan(exact)) if exact.dtype.kind == "f" else got == exact
        off = np.where(same | np.isposinf(allowed), 0.0, off)
        beyond = ~(off <= allowed)
        spreads = np.where(off == 0, 0.0, np.where(np.isnan(off), np.inf, off / (allowed / FACTOR)))
    if not spreads.size:
        return Judged(beyond=0, elements=0, spreads=0.0, at="")
    place = np.unravel_index(int(np.argmax(spreads)), spreads.shape)
    where = f"[{', '.join(str(int(d)) for d in place)}] is {got[place]!s}, right is {exact[place]!s}"
    return Judged(beyond=int(beyond.sum()), elements=int(got.size), spreads=float(spreads[place]), at=where)


def content(*parts: str) -> str:
    """A short name for texts."""
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]
