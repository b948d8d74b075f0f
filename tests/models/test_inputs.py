"""Arguments: their values, their files, and what the tools make of these."""

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from harness.errors import SuiteError
from harness.models import describe, load_argument
from harness.models.inputs import HELD_AS, bf16_bits, make_array, resolve, write_arguments
from harness.models.model import Input, Model
from tests.models.conftest import Make, RunMain

inputs = st.builds(
    Input,
    shape=st.lists(st.integers(0, 5), max_size=4).map(tuple),
    dtype=st.sampled_from(list(HELD_AS)),
    fill=st.sampled_from(["random", "constant"]),
    seed=st.integers(0, 2**32),
    value=st.sampled_from([0.0, 1.0]),
)


@given(inputs)
def test_an_input_says_its_array(value: Input) -> None:
    array = make_array(value)
    assert array.shape == value.shape
    assert array.dtype == HELD_AS[value.dtype]
    assert make_array(value).tobytes() == array.tobytes()


def test_files_are_written_once(tmp_path: Path) -> None:
    inputs = (Input(shape=(2, 3)), Input(shape=(2, 3)), Input(shape=(4,), dtype="bf16"))
    arguments = write_arguments(inputs, tmp_path)
    assert [argument.flag for argument in arguments] == ["@input0.npy", "@input1.npy", "4xbf16=@input2.bin"]
    assert [argument.npy is None for argument in arguments] == [False, False, True]
    before = [argument.file.stat().st_mtime_ns for argument in arguments]
    assert write_arguments(inputs, tmp_path) == arguments
    assert [argument.file.stat().st_mtime_ns for argument in arguments] == before
    others = write_arguments((*inputs[:2], Input(shape=(4,), dtype="bf16", seed=1)), tmp_path)
    assert others[0].file != arguments[0].file
    assert len(list(tmp_path.rglob("*.npy"))) == 4


def test_bf16_ties_go_to_even(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.array([1.0, 1.001, -3.0], np.float32))
    assert make_array(Input(dtype="bf16", fill="npy", path=tmp_path / "x.npy")).tolist() == [1.0, 1.0, -3.0]
    values = np.array([0x3F80_0000, 0x3F80_8000, 0x3F81_8000, 0x3F80_8001, 0xBF80_7FFF, 0x0000_0001], np.uint32)
    rounded = bf16_bits(values.view(np.float32))
    assert [hex(bits) for bits in rounded] == ["0x3f80", "0x3f80", "0x3f82", "0x3f81", "0xbf80", "0x0"]


def test_numbers_reach_a_module_by_value_and_come_back(make: Make, run_main: RunMain, tmp_path: Path) -> None:
    values = {"f32": 0.1, "f64": 0.25, "i64": -(2.0**40), "i16": 300.0, "i8": -2.0, "i1": 1.0, "index": 3.0}
    names = [f"%a{n}" for n in range(len(values))]
    arguments = ", ".join(f"{name}: {dtype}" for name, dtype in zip(names, values, strict=True))
    path = tmp_path / "numbers.mlir"
    path.write_text(
        f"func.func @main({arguments}) -> ({', '.join(values)}) {{ return {', '.join(names)} : {', '.join(values)} }}"
    )
    inputs = tuple(Input(scalar=True, dtype=dtype, fill="constant", value=value) for dtype, value in values.items())
    artifact = make(Model(name="numbers", mlir=path, function="main", inputs=inputs, params={}, parameters={}))
    assert [describe(value) for value in artifact.inputs][1:3] == ["f64 0.25", "i64 -1099511627776"]
    assert artifact.arguments[2].flag == "-1099511627776"
    outputs = run_main(artifact, len(values))
    np.testing.assert_array_equal(np.array(outputs, np.float64), [np.float32(0.1), *list(values.values())[1:]])


@pytest.mark.parametrize(
    ("array", "dtype"),
    [
        (np.arange(6, dtype=np.float32).reshape(2, 3).T, "f32"),
        (np.float32(1.5), "f32"),
        (np.zeros((0, 3), "f8"), "f64"),
        (np.ones(2, "i8"), "i64"),
        (np.ones(2, "?"), "i1"),
    ],
)
def test_an_npy_file_says_its_shape_and_type(tmp_path: Path, array: NDArray[Any], dtype: str) -> None:
    path = tmp_path / "x.npy"
    np.save(path, array)
    value = resolve(Input(dtype="", fill="npy", path=path))
    assert value == Input(shape=np.shape(array), dtype=dtype, fill="npy", path=path)
    (argument,) = write_arguments([value], tmp_path)
    np.testing.assert_array_equal(load_argument(argument), array)
    assert make_array(value).flags.c_contiguous


WRONG_NPY: list[tuple[Any, Input, str]] = [
    (
        np.zeros((2, 3)),
        Input(fill="npy"),
        "holds float64 where f32 needs float32; convert the file, or leave dtype out where float64 is meant$",
    ),
    (
        np.zeros(2, np.uint16),
        Input(dtype="", fill="npy"),
        "holds uint16, which no argument is; convert it to one of float16, float32",
    ),
    (np.zeros((2, 3)), Input(shape=(3, 2), dtype="f64", fill="npy"), "is 2 x 3, not 3 x 2; correct shape"),
    *((broken, Input(fill="npy"), r"x\.npy is not a whole \.npy file") for broken in (slice(0), slice(40), slice(-1))),
]


@pytest.mark.parametrize(("array", "value", "message"), WRONG_NPY)
def test_wrong_npy_files_are_named(tmp_path: Path, array: Any, value: Input, message: str) -> None:
    path = tmp_path / "x.npy"
    np.save(path, np.zeros((2, 3), np.float32) if isinstance(array, slice) else array)
    if isinstance(array, slice):
        path.write_bytes(path.read_bytes()[array])
    with pytest.raises(SuiteError, match=message):
        resolve(replace(value, path=path), "[models.net] inputs[0]")


@pytest.mark.parametrize(
    ("dtype", "value", "message"),
    [
        ("i32", 1.5, "i32 cannot hold 1.5; give a whole number from -2147483648 to 2147483647"),
        ("i1", 2.0, "i1 cannot hold 2; give a whole number from 0 to 1"),
        ("i64", math.inf, "i64 cannot hold inf; give a whole number from"),
        ("f16", 1e6, r"1e\+06 is beyond what f16 can hold; give a smaller one"),
    ],
)
def test_a_constant_must_fit_its_type(dtype: str, value: float, message: str) -> None:
    with pytest.raises(SuiteError, match=rf"^inputs\[0\] value: {message}"):
        make_array(Input(dtype=dtype, value=value, fill="constant"), "inputs[0]")


def test_an_input_that_no_memory_holds_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SuiteError, match=r"^inputs\[0\] shape: 1099511627776x4xf32 takes 1.638e\+04 GiB, which this"):
        write_arguments((Input(shape=(2**40, 4)),), tmp_path)
    assert list(tmp_path.iterdir()) == []
