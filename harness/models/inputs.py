"""Arguments of entry functions: from what a suite says to files that IREE's tools and iree.runtime read.

A tool takes a .npy file as `--input=@input0.npy`. numpy has no bf16, so that is raw little-endian elements,
`--input=4x8xbf16=@input0.bin`. A scalar is written out, `--input=1.5`; a file keeps it for workers.
"""

import hashlib
import io
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import psutil
from numpy.typing import NDArray
from pydantic import TypeAdapter

from harness.cache import write_atomically
from harness.errors import SuiteError
from harness.files import NPY_ERRORS, file_sha256
from harness.models.model import Input

Array = NDArray[Any]

# What holds the values of each element type in this process; bf16 is held as f32 values that bf16 has.
HELD_AS: dict[str, np.dtype[Any]] = {
    "f16": np.dtype("<f2"),
    "bf16": np.dtype("<f4"),
    "f32": np.dtype("<f4"),
    "f64": np.dtype("<f8"),
    "i1": np.dtype(np.bool_),
    "i8": np.dtype("<i1"),
    "i16": np.dtype("<i2"),
    "i32": np.dtype("<i4"),
    "i64": np.dtype("<i8"),
    "index": np.dtype("<i8"),
}
# Sums of products of so small numbers stay exact for long.
_LARGEST_INTEGER = {"f16": 4, "bf16": 2}
# The element type of an .npy file by what it holds.
_TYPE_OF = {held: name for name, held in HELD_AS.items() if name not in ("bf16", "index")}


@dataclass(frozen=True, kw_only=True)
class Argument:
    """One argument of an entry function, in a file."""

    file: Path  # A .npy file; for bf16 a .bin file of raw little-endian elements
    # What follows `--input=` when a tool runs in the file's folder: `@input0.npy`, `4x8xbf16=@input0.bin`, or a
    # scalar's value
    flag: str
    shape: tuple[int, ...]
    dtype: str  # MLIR's name of the element type
    scalar: bool = False  # Whether it is passed by value

    def for_worker(self) -> dict[str, Any]:
        """As a worker's `load` takes it, see harness.measure.worker."""
        if self.dtype == "bf16":
            return {"file": str(self.file), "raw": True, "shape": list(self.shape), "element_type": "BFLOAT_16"}
        return {"file": str(self.file), **({"scalar": True} if self.scalar else {})}


# As other processes are told of them.
ARGUMENTS = TypeAdapter(tuple[Argument, ...])


def describe(value: Input) -> str:
    """One line as a person would write it: `1x64x90x62xf32 random seed 0`, `f32 constant 1.5`, `4xi8 from x.npy`."""
    if value.scalar:
        return f"{value.dtype} {value.value:{'g' if HELD_AS[value.dtype].kind == 'f' else '.0f'}}"
    if value.fill == "random":
        source = f"random {'integers ' if value.integers else ''}seed {value.seed}"
    elif value.fill == "constant":
        source = f"constant {value.value:g}"
    else:
        source = f"from {value.path.name if value.path else '?'}"
    return f"{_type(value)} {source}"


def definition(value: Input) -> dict[str, object]:
    """What tells inputs apart, without making them, as values of JSON."""
    found: dict[str, object] = {"shape": value.shape, "dtype": value.dtype or "f32", "fill": value.fill}
    if value.scalar:  # only where it is one, so that the cases of older suites keep their identity
        found["scalar"] = True
    match value.fill:
        case "random":
            found["seed"] = value.seed
        case "constant":
            found["value"] = value.value
        case "npy":
            found["file"] = file_sha256(value.path) if value.path else None
    return found


def resolve(value: Input, where: str = "input") -> Input:
    """The same input with its shape and type known: an .npy file's own where the suite says none."""
    if value.fill != "npy":
        return value
    array = _load_npy(value, where)
    return replace(value, shape=array.shape, dtype=value.dtype or _TYPE_OF[array.dtype])


def make_array(value: Input, where: str = "input") -> Array:
    """The values of an input, the same for equal inputs; of bf16 as float32, rounded to the nearest that bf16 has."""
    value = resolve(value, where)
    held = HELD_AS[value.dtype]
    if value.fill == "npy":
        array: Array = np.array(_load_npy(value, where), order="C").astype(held)
    elif value.fill == "constant":
        array = np.full(value.shape, _constant(value, where), dtype=held)
    else:
        array = _random(value, held)
    return from_bf16_bits(bf16_bits(array)) if value.dtype == "bf16" else array


def write_arguments(inputs: Sequence[Input], folder: Path, where: str = "inputs") -> tuple[Argument, ...]:
    """Write the values of all inputs as input0.npy, input1.npy, ... into a folder of their own within `folder`."""
    for position, value in enumerate(inputs):
        needed = math.prod(value.shape) * HELD_AS[value.dtype].itemsize
        if value.fill != "npy" and 2 * needed > psutil.virtual_memory().total:
            raise SuiteError(
                f"{where}[{position}] shape: {_type(value)} takes {needed / 2**30:.4g} GiB, which this machine's "
                "memory cannot hold twice; give smaller sizes"
            )
    content = json.dumps([definition(value) | {"is": [value.integers, value.demoted]} for value in inputs])
    own_folder = folder.absolute() / f"inputs-{hashlib.sha256(content.encode()).hexdigest()[:16]}"
    return tuple(
        _write_argument(value, own_folder / f"input{position}", f"{where}[{position}]")
        for position, value in enumerate(inputs)
    )


def load_argument(argument: Argument) -> Array:
    """The values of an argument's file; bf16 as float32 values."""
    if argument.dtype == "bf16":
        return from_bf16_bits(np.fromfile(argument.file, dtype="<u2").reshape(argument.shape))
    array: Array = np.load(argument.file, allow_pickle=False)
    return array


def _type(value: Input) -> str:
    return "x".join([*map(str, value.shape), value.dtype])


def _write_argument(value: Input, stem: Path, where: str) -> Argument:
    is_bf16 = value.dtype == "bf16"
    file = stem.with_suffix(".bin" if is_bf16 else ".npy")
    if not file.exists():
        array = make_array(value, where)
        buffer = io.BytesIO()
        if is_bf16:
            buffer.write(bf16_bits(array).tobytes())
        else:
            np.save(buffer, array, allow_pickle=False)
        write_atomically(file, buffer.getvalue())
    flag = f"{_type(value)}=@{file.name}" if is_bf16 else f"@{file.name}"
    if value.scalar:
        number = np.load(file, allow_pickle=False).item()
        flag = f"{int(number) if isinstance(number, bool) else number}"
    return Argument(file=file, flag=flag, shape=value.shape, dtype=value.dtype, scalar=value.scalar)


def _random(value: Input, held: np.dtype[Any]) -> Array:
    rng = np.random.default_rng(value.seed)
    if value.dtype == "i1":
        return np.asarray(rng.integers(0, 2, size=value.shape, dtype=np.uint8), dtype=np.bool_)
    if held.kind == "i":
        return np.asarray(rng.integers(0, 10, size=value.shape, dtype=held.type))
    if value.integers:
        most = _LARGEST_INTEGER.get(value.dtype, 8)
        return np.asarray(rng.integers(-most, most + 1, size=value.shape)).astype(held)
    precision = np.float64 if value.dtype == "f64" or value.demoted else np.float32
    return np.asarray(rng.standard_normal(value.shape, dtype=precision)).astype(held)


def _constant(value: Input, where: str) -> float | int:
    """The constant, if the element type can hold it."""
    constant, held = value.value, HELD_AS[value.dtype]
    if held.kind == "f":
        with np.errstate(over="ignore"):
            overflows = math.isfinite(constant) and not math.isfinite(held.type(constant))
        if overflows:
            raise SuiteError(f"{where} value: {constant:g} is beyond what {value.dtype} can hold; give a smaller one")
        return constant
    limits = np.iinfo(np.int8 if value.dtype == "i1" else held)
    low, high = (0, 1) if value.dtype == "i1" else (int(limits.min), int(limits.max))
    if not (math.isfinite(constant) and constant == int(constant) and low <= int(constant) <= high):
        raise SuiteError(
            f"{where} value: {value.dtype} cannot hold {constant:g}; give a whole number from {low} to {high}"
        )
    return int(constant)


def _load_npy(value: Input, where: str) -> Array:
    """An input's .npy file, mapped rather than read, once its type and shape are found right."""
    assert value.path is not None  # noqa: S101 (loading a suite made sure)
    try:
        with np.errstate(over="raise"):
            array: Array = np.lib.format.open_memmap(value.path, mode="r")
    # A header may claim any shape: more than an address, or than any number, can hold.
    except (OSError, *NPY_ERRORS) as error:
        raise SuiteError(f"{where} npy: {value.path} is not a whole .npy file ({error}); write it again") from None
    if not value.dtype and array.dtype not in _TYPE_OF:
        raise SuiteError(
            f"{where} npy: {value.path} holds {array.dtype}, which no argument is; convert it to one of "
            f"{', '.join(str(held) for held in _TYPE_OF)}"
        )
    expected = "f64" if value.demoted else value.dtype
    if value.dtype and array.dtype != (held := HELD_AS[expected]):
        raise SuiteError(
            f"{where} npy: {value.path} holds {array.dtype} where {value.dtype} needs {held}; "
            f"convert the file, or leave dtype out where {array.dtype} is meant"
        )
    if value.shape and array.shape != value.shape:
        shapes = [" x ".join(map(str, shape)) or "a scalar" for shape in (array.shape, value.shape)]
        raise SuiteError(f"{where} npy: {value.path} is {shapes[0]}, not {shapes[1]}; correct shape, or leave it out")
    return array


def bf16_bits(values: NDArray[Any]) -> NDArray[np.uint16]:
    """Round float32 values to bf16, ties to even; its 16 bits, little-endian."""
    single = np.asarray(values, dtype="<f4")
    bits = single.view("<u4")
    rounded = (bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))) >> np.uint32(16)
    return np.asarray(np.where(np.isnan(single), np.uint32(0x7FC0), rounded), dtype="<u2")


def from_bf16_bits(bits: NDArray[np.uint16]) -> NDArray[np.float32]:
    """The float32 values of 16 bits each."""
    return np.asarray(np.asarray(bits, dtype="<u4") << np.uint32(16), dtype="<u4").view("<f4")
