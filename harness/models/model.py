"""What a model is: where its program comes from, what it is called with, and what its outputs are held against."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

Fill = Literal["random", "constant", "npy"]


@dataclass(frozen=True, kw_only=True)
class Input:
    """One argument of a model's entry function.

    Attributes:
        shape: Static sizes, outermost first; () is a scalar tensor.
        scalar: Whether the argument is a number that is passed by value, `%n: i32`, and no tensor.
        dtype: MLIR's name of the element type: f32, f16, bf16, f64, i1, i8, i16, i32, i64; of a scalar also index;
            "" where an .npy file says it.
        fill: `random` (standard normal, or integers 0..9, from `seed`), `constant` (`value`), or `npy` (`path`).
        demoted: Whether its values are those of an f64 argument, rounded.
        integers: Whether random floats are whole numbers, up to 8 in f32 and f64, 4 in f16, 2 in bf16.
    """

    shape: tuple[int, ...] = ()
    scalar: bool = False
    dtype: str = "f32"
    fill: Fill = "random"
    seed: int = 0
    value: float = 0.0
    path: Path | None = None
    integers: bool = False
    demoted: bool = False


@dataclass(frozen=True, kw_only=True)
class Tolerance:
    """Outputs agree when |a - b| <= absolute + relative * |b| everywhere, NaN and inf matching.

    Attributes:
        absolute: None: `relative` times the root mean square of the right values.
    """

    relative: float = 1e-4
    absolute: float | None = None


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
        check: `none`: outputs are held against nothing. `vmvx` and `plain` are read in suites written so far, and are
            `auto`: the evaluator judges, or else IREE's interpreter.
        check_seconds: What the evaluator may take.
        why: The reason for `check = "none"`.
        integers: Whether random floats are small whole numbers, for which outputs are exact.
        tolerance: By how much outputs may be off in any case; None: by what the program's own rounding gives.
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
    check: Literal["auto", "none", "plain", "vmvx"] = "auto"
    check_seconds: float = 20.0
    why: str = ""
    integers: bool = False
    tolerance: Tolerance | None = None
    expectation: Expectation | None = None
    tags: tuple[str, ...] = ()
