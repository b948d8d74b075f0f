"""Values of upstream's tests: raw little-endian elements, formulas, constants; and what may be off of them."""

import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from harness.errors import UsageError
from harness.models.inputs import HELD_AS, Array, from_bf16_bits
from harness.upstream.forms import Formula

# What iree-run-module takes for --input= and --expected_output=: `4x8xf32=@input_0.bin`, `4x8xf32=1.5`, `4x8xi64`.
_FLAG = re.compile(r"(?P<sizes>(?:\d{1,12}x)*)(?P<dtype>[a-z]+\d+)(?:=(?P<given>.+))?")
# By how much iree-run-module lets elements be off, see runtime/src/iree/tooling/comparison.cc of IREE.
_ABSOLUTE = {"f32": 1e-4, "f64": 1e-4, "f16": 1e-3, "bf16": 1e-2}
_STORED_AS: dict[str, np.dtype[Any]] = {"bf16": np.dtype("<u2"), "i1": np.dtype(np.uint8)}
# Where a parameter archive says that its values begin: runtime/src/iree/schemas/parameter_archive.h of IREE.
_STORAGE_OFFSET = slice(72, 80)
_MOST_ELEMENTS = 2**28
_THRESHOLD = re.compile(r"--expected_(?P<dtype>f16|f32|f64|bf16)_threshold=(?P<most>[0-9.e+-]+)f?")


@dataclass(frozen=True, kw_only=True)
class Elements:
    """An argument or a result."""

    shape: tuple[int, ...]
    dtype: str
    file: Path | None = None  # Of raw elements
    archived: bool = False  # Whether the file is a parameter archive with this tensor alone
    constant: float = 0.0  # Without a file

    def array(self) -> Array:
        """What the file holds; of bf16 as float32."""
        assert self.file is not None  # noqa: S101 (the caller's contract)
        stored = _STORED_AS.get(self.dtype, HELD_AS[self.dtype])
        try:
            data = self.file.read_bytes()
            begin = int.from_bytes(data[_STORAGE_OFFSET], "little") if self.archived else 0
            count = math.prod(self.shape) if self.archived else -1
            array: Array = np.frombuffer(data, dtype=stored, count=count, offset=begin).reshape(self.shape)
        except (OSError, ValueError):
            size = "x".join([*map(str, self.shape), self.dtype])
            raise UsageError(f"{self.file} does not hold {size}") from None
        if self.dtype == "bf16":
            return from_bf16_bits(array)
        return array != 0 if self.dtype == "i1" else array


def elements_of(text: str, file: Path | None = None) -> Elements:
    """`4x8xf32=@input_0.bin` as a value, or UsageError; a file of its own comes before what the text says."""
    found = _FLAG.fullmatch(text)
    if found is None or found["dtype"] not in HELD_AS:
        raise UsageError(f"{text[:100]!r} is no value of iree-run-module that the harness reads")
    shape = tuple(int(size) for size in found["sizes"].split("x")[:-1])
    given = found["given"] or "0"
    if file is not None or given.startswith("@"):
        return Elements(shape=shape, dtype=found["dtype"], file=file or Path(given[1:]))
    try:
        return Elements(shape=shape, dtype=found["dtype"], constant=float(given))
    except ValueError:
        raise UsageError(f"{text[:100]!r} lists elements, which the harness reads from files alone") from None


def values_of(formulas: Iterable[Formula], seed: int) -> Iterator[Array]:
    """Inputs of a test of torch_ops, one after the other from its seed."""
    random = np.random.RandomState(seed)  # numpy's old generator, as upstream draws them
    for formula in formulas:
        if math.prod(formula.shape) > _MOST_ELEMENTS:
            raise UsageError(f"an input of shape {formula.shape} is larger than the harness draws")
        yield np.asarray(formula.coeff * random.rand(*formula.shape) + formula.offset).astype(formula.dtype)


def tolerance(dtypes: Iterable[str], flags: Iterable[str] = ()) -> dict[str, float]:
    """What iree-run-module allows outputs of these element types, given its flags, as a suite's table."""
    allowed = _ABSOLUTE | {found["dtype"]: float(found["most"]) for found in map(_THRESHOLD.match, flags) if found}
    return {"relative": 1e-5, "absolute": max((allowed.get(dtype, 0.0) for dtype in dtypes), default=0.0)}
