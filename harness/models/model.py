"""What a model is: where its program comes from, what it is called with, and what its outputs are held against."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

Fill = Literal["random", "constant", "npy"]


@dataclass(frozen=True, kw_only=True)
class Input:
    """One argument of a model's entry function."""

    shape: tuple[int, ...] = ()  # Static sizes, outermost first; () is a scalar tensor
    scalar: bool = False  # Whether the argument is a number that is passed by value, `%n: i32`, and no tensor
    # MLIR's name of the element type: f32, f16, bf16, f64, i1, i8, i16, i32, i64; of a scalar also index; "" where an
    # .npy file says it
    dtype: str = "f32"
    # `random` (standard normal, or integers 0..9, from `seed`), `constant` (`value`), or `npy` (`path`)
    fill: Fill = "random"
    seed: int = 0
    value: float = 0.0
    path: Path | None = None
    integers: bool = False  # Whether random floats are whole numbers, up to 8 in f32 and f64, 4 in f16, 2 in bf16
    demoted: bool = False  # Whether its values are those of an f64 argument, rounded


@dataclass(frozen=True, kw_only=True)
class Tolerance:
    """Outputs agree when |a - b| <= absolute + relative * |b| everywhere, NaN and inf matching."""

    relative: float = 1e-4
    absolute: float | None = None  # None: `relative` times the root mean square of the right values


@dataclass(frozen=True, kw_only=True)
class Expectation:
    """Cases that are known to fail: with a message, or by running and giving wrong outputs."""

    cases: str  # A shell pattern on case names
    message: str | None  # A part of what they say; None: they give wrong outputs


@dataclass(frozen=True, kw_only=True)
class Model:
    """A program to compile: exactly one of `builder`, `mlir` and `onnx` is set."""

    name: str
    description: str = ""
    builder: str | None = None
    params: dict[str, Any]
    mlir: Path | None = None
    onnx: Path | None = None
    opset: int | None = None
    static: bool = False  # Whether the inputs' shapes are written into an ONNX graph whose own are dynamic
    function: str | None = None  # Entry function; None: the builder's own, or the only public function of an ONNX model
    inputs: tuple[Input, ...] = ()  # Arguments; empty: the builder's own
    parameters: dict[str, Path]  # External weights by scope: {"model": weights.irpa}
    # .npy files with the right outputs, in order; empty: compare with the baseline variant
    expected: tuple[Path, ...] = ()
    # What outputs are compared with otherwise: `baseline`, `onnxruntime`, or `auto`: ONNX Runtime for an ONNX model
    # where it is installed, else the baseline; `expected`: with the expected files alone
    reference: Literal["auto", "baseline", "onnxruntime", "expected"] = "auto"
    # `auto`: the evaluator judges, or else IREE's interpreter; `none`: outputs are held against nothing.
    check: Literal["auto", "none"] = "auto"
    check_seconds: float = 20.0  # What the evaluator may take
    why: str = ""  # The reason for `check = "none"`
    integers: bool = False  # Whether random floats are small whole numbers, for which outputs are exact
    # By how much outputs may be off in any case; None: by what the program's own rounding gives
    tolerance: Tolerance | None = None
    # How IREE is known to fail on it; what the suite says of single cases comes before
    expectation: Expectation | None = None
    tags: tuple[str, ...] = ()
