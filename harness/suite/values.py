"""What a suite says, as plain values: the result of loading and checking a TOML file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

Fill = Literal["random", "constant", "npy"]
Direction = Literal["increase", "decrease", "any"]


@dataclass(frozen=True, kw_only=True)
class Input:
    """One argument of a model's entry function.

    Attributes:
        shape: Static sizes, outermost first; () is a scalar tensor.
        dtype: MLIR's name of the element type: f32, f16, bf16, f64, i1, i8, i16, i32, i64.
        fill: `random` (standard normal, or integers 0..9, from `seed`), `constant` (`value`), or `npy` (`path`).
    """

    shape: tuple[int, ...] = ()
    dtype: str = "f32"
    fill: Fill = "random"
    seed: int = 0
    value: float = 0.0
    path: Path | None = None


@dataclass(frozen=True, kw_only=True)
class Tolerance:
    """Outputs agree when |a - b| <= absolute + relative * |b| everywhere (numpy.allclose), NaN and inf matching."""

    relative: float = 1e-4
    absolute: float = 1e-5


@dataclass(frozen=True, kw_only=True)
class Expectation:
    """Cases that are known to fail: with a message, or by running and giving wrong outputs.

    Attributes:
        cases: A shell pattern on case names.
        message: A part of what they say; None: they give wrong outputs.
    """

    cases: str
    message: str | None


@dataclass(frozen=True, kw_only=True)
class Model:
    """A program to compile: exactly one of `builder`, `mlir` and `onnx` is set.

    Attributes:
        parameters: External weights by scope: {"model": weights.irpa}.
        expected: .npy files with the right outputs, in order; empty: compare with the baseline variant.
        reference: What outputs are compared with otherwise: `baseline`, `onnxruntime`, or `auto`: ONNX Runtime for an
            ONNX model where it is installed, else the baseline.
        expectation: How IREE is known to fail on it; what the suite says of single cases comes before.
        static: Whether the inputs' shapes are written into an ONNX graph whose own are dynamic.
        function: Entry function; None: the builder's own, or the only public function of an ONNX model.
        inputs: Arguments; empty: the builder's own.
    """

    name: str
    description: str = ""
    builder: str | None = None
    params: dict[str, Any]
    mlir: Path | None = None
    onnx: Path | None = None
    opset: int | None = None
    static: bool = False
    function: str | None = None
    inputs: tuple[Input, ...] = ()
    parameters: dict[str, Path]
    expected: tuple[Path, ...] = ()
    reference: Literal["auto", "baseline", "onnxruntime"] = "auto"
    tolerance: Tolerance = Tolerance()
    expectation: Expectation | None = None
    tags: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class FlagSet:
    """A named list of flags, from flagsets/*.toml.

    Attributes:
        backends: Compiler backends it applies to; empty: all.
        toolchains: A PEP 440 specifier of the releases it applies to ("" means all).
    """

    name: str
    description: str = ""
    compile: tuple[str, ...] = ()
    run: tuple[str, ...] = ()
    backends: tuple[str, ...] = ()
    toolchains: str = ""


@dataclass(frozen=True, kw_only=True)
class PluginUse:
    """A plugin by its registered name, and the options that a variant gives it."""

    name: str
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """How reports name it: `tuned(vector_width = 16)`, or the bare name."""
        given = ", ".join(f"{key} = {_toml(value)}" for key, value in self.options.items())
        return f"{self.name}({given})" if given else self.name


def _toml(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else repr(value)


@dataclass(frozen=True, kw_only=True)
class PeerUse:
    """A peer by its registered name, the options that a suite gives it, and what its cases are called."""

    name: str
    label: str
    options: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Variant:
    """A named way to compile and run: flag sets first, then its own flags, then plugins."""

    name: str
    description: str = ""
    flag_sets: tuple[FlagSet, ...] = ()
    compile_flags: tuple[str, ...] = ()
    run_flags: tuple[str, ...] = ()
    plugins: tuple[PluginUse, ...] = ()
    tags: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Device:
    """Where a module runs.

    Attributes:
        uri: What iree-run-module takes as --device: `local-sync`, `local-task`, `vulkan`, `cuda://0`, ...
        more_uris: Of the other devices of a program that runs on several, in their order; the first one, where
            arguments are put, is `uri`.
        vulkan_driver: The only driver that the Vulkan loader is shown: `lavapipe`, `swiftshader`; None: all of them.
        threads: That each local-task device and peers get; None: IREE's choice, and see `Case.threads`.
        backend: The compiler backend that its flags choose: llvm-cpu, vmvx, vulkan-spirv, cuda, ...
        pin: Hold the process on one core.
    """

    name: str
    description: str = ""
    uri: str
    more_uris: tuple[str, ...] = ()
    vulkan_driver: str | None = None
    threads: int | None = None
    backend: str
    compile_flags: tuple[str, ...] = ()
    run_flags: tuple[str, ...] = ()
    pin: bool = False
    tags: tuple[str, ...] = ()

    @property
    def uris(self) -> tuple[str, ...]:
        """All of its devices, the first one first."""
        return (self.uri, *self.more_uris)


@dataclass(frozen=True, kw_only=True)
class VariantGroup:
    """Variants that a report shows side by side, the first being the one compared with."""

    title: str
    variants: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Gate:
    """How much a metric of some cases may change before a comparison fails.

    With both limits the wider one counts; with none, any change in the direction is too much.

    Attributes:
        metric: Its registered name, see harness.compare.metrics.
        cases: A shell pattern on case names.
        direction: Of the change that may fail; all metrics are better when smaller.
        relative: Allowed change as a share of the base, such as 0.05.
        absolute: Allowed change in the metric's unit: nanoseconds, bytes, instructions or a plain number.
    """

    name: str
    metric: str
    cases: str = "*"
    direction: Direction = "increase"
    relative: float | None = None
    absolute: float | None = None


@dataclass(frozen=True, kw_only=True)
class Suite:
    """A checked suite: every name in it refers to something that exists.

    Attributes:
        floors: By metric, the relative change below which nothing is called changed, in place of the metric's own.
        ir: By phase of the compiler, the ops that are counted; see harness.ir.
        storage: Whether to tell what encoded tensors cost in memory.
    """

    name: str
    description: str
    path: Path
    baseline: str
    models: tuple[Model, ...]
    variants: tuple[Variant, ...]
    devices: tuple[Device, ...]
    peers: tuple[PeerUse, ...] = ()
    include: tuple[str, ...] = ("*",)
    exclude: tuple[str, ...] = ()
    expectations: tuple[Expectation, ...] = ()
    groups: tuple[VariantGroup, ...] = ()
    floors: Mapping[str, float] = field(default_factory=dict)
    gates: tuple[Gate, ...] = ()
    ir: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    storage: bool = False
    budget_s: float = 120.0
    generations: int = 5


@dataclass(frozen=True, kw_only=True)
class SuiteList:
    """Suites that are run one after the other, each into a run of its own.

    Attributes:
        suites: Their files, as paths from the current folder.
        budget_s: Seconds of timed rounds for each of them; None: its own.
        generations: Likewise.
    """

    name: str
    description: str
    path: Path
    suites: tuple[Path, ...]
    budget_s: float | None = None
    generations: int | None = None
