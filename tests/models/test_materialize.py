"""Models and their arguments in the store: identity, memoisation, and what is said of broken files."""

import hashlib
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import iree.runtime
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness import process
from harness.errors import CaseError, SuiteError
from harness.models import Builder, BuiltModel, sources
from harness.models.inputs import HELD_AS, bf16_bits, describe, load_argument, make_array, resolve, write_arguments
from harness.models.materialize import MODULE_FILE, input_files, lay_out, record
from harness.models.model import Input, Model
from harness.models.residual_dense_block import BUILDER
from harness.plugins.options import NoOptions
from harness.toolchain.find import Toolchain
from tests.builders import make_artifact
from tests.models.conftest import Make, RunMain
from tests.programs import WEIGHTED, program

ADD = program("main a:4\nr = addf a a\nreturn r")
BLOCK = Model(
    name="rdb",
    builder="residual-dense-block",
    params={"height": 4, "width": 5, "channels": 8, "growth": 4},
    parameters={},
)


def mlir(path: Path, **changes: Any) -> Model:
    model = Model(name="net", mlir=path, function="main", inputs=(Input(shape=(4,)),), params={}, parameters={})
    return replace(model, **changes)


@pytest.fixture
def add(tmp_path: Path) -> Path:
    path = tmp_path / "add.mlir"
    path.write_text(ADD)
    return path


# --- Builders ---


def test_what_was_built_lies_in_the_store_by_its_content_and_is_not_built_again(
    make: Make, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    artifact = make(BLOCK)
    assert artifact.mlir == store / artifact.sha256 / "model.mlir"
    assert hashlib.sha256(artifact.mlir.read_bytes()).hexdigest() == artifact.sha256
    assert artifact.inputs == (Input(shape=(1, 8, 4, 5)),)
    recorded = record(artifact, cache=store.parent, suite_folder=store.parent)
    assert (recorded.mlir, recorded.inputs) == (
        f"store/{artifact.sha256}/model.mlir",
        ("1x8x4x5xf32 random seed 0",),
    )
    assert not list(store.rglob(".*"))

    def fail(_: object) -> BuiltModel:
        raise AssertionError("built again")

    fail.__module__ = BUILDER.build.__module__
    monkeypatch.setattr(sources, "find_builder", lambda *_: replace(BUILDER, build=fail))
    assert make(BLOCK) == artifact
    assert make(replace(BLOCK, name="other", params={**BLOCK.params, "blocks": 1})).mlir == artifact.mlir
    with pytest.raises(CaseError, match="built again"):
        make(replace(BLOCK, params={**BLOCK.params, "seed": 1}))


def test_a_builder_that_fails_is_one_failed_model(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    def build(_: NoOptions) -> BuiltModel:
        raise ZeroDivisionError("division by zero")

    builder = Builder(name="broken", description="", parameters=NoOptions, build=build)
    monkeypatch.setattr(sources, "find_builder", lambda *_: builder)
    failed = (
        r"^\[models.m\] builder 'broken' failed \(ZeroDivisionError: division by zero\); change params or repair it$"
    )
    with pytest.raises(CaseError, match=failed):
        make("broken")


# --- MLIR files ---

SEVERAL = """
util.global private @unused = dense<2.0> : tensor<4xf32>
func.func @other(%a: tensor<4xf32>) -> tensor<4xf32> {
  %w = util.global.load @unused : tensor<4xf32>
  return %w : tensor<4xf32>
}
func.func @called(%a: tensor<4xf32>) -> tensor<4xf32> {
  %r = arith.addf %a, %a : tensor<4xf32>
  return %r : tensor<4xf32>
}
func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {
  %r = call @called(%a) : (tensor<4xf32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}
"""


@pytest.mark.parametrize("suffix", [".mlir", ".mlirbc"])
def test_of_several_public_functions_the_entry_function_and_what_it_calls_are_compiled(
    make: Make, run_main: RunMain, toolchain: Toolchain, tmp_path: Path, suffix: str
) -> None:
    path = tmp_path / "several.mlir"
    path.write_text(SEVERAL)
    opt = str(toolchain.compiler_tools / "iree-opt")
    if suffix == ".mlirbc":
        assert process.run([opt, "--emit-bytecode", str(path), "-o", str(path.with_suffix(suffix))]).ok
    artifact = make(mlir(path.with_suffix(suffix)))
    assert artifact.mlir.read_bytes().startswith(b"ML\xefR") == (suffix == ".mlirbc")
    text = process.run([opt, str(artifact.mlir)]).stdout
    assert "func.func @main" in text and "func.func private @called" in text
    assert "unused" not in text and "other" not in text
    (output,) = run_main(artifact)
    np.testing.assert_allclose(output, 2 * np.load(artifact.arguments[0].file))
    with pytest.raises(CaseError, match=r"has no public function 'mine'; did you mean .main.\?$"):
        make(mlir(path.with_suffix(suffix), function="mine"))


LONG = ADD + f' {{-# dialect_resources: {{ builtin: {{ w: "0x04000000{"00" * 50_000}" }} #-}}'


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("empty.mlir", "", r"is empty; write it again$"),
        ("lfs.mlir", "version https://git-lfs.github.com/spec/v1\n", "is a pointer of Git LFS; `git lfs pull` gets"),
        ("page.mlir", "<html>@main</html>", r"is no MLIR that IREE \S+ reads: model\.mlir:1:1: error: expected"),
        ("other.mlir", ADD.replace("@main", "@other"), r"has no function 'main'; correct the name$"),
        ("net.txt", ADD, r"net\.txt does not end in \.mlir or \.mlirbc; name a file that does$"),
        ("long.mlir", LONG, "is no MLIR"),  # whose diagnostic repeats a weight
    ],
)
def test_broken_files_fail_the_model(make: Make, tmp_path: Path, name: str, content: str, message: str) -> None:
    path = tmp_path / name
    path.write_text(content)
    with pytest.raises((CaseError, SuiteError), match=message) as caught:
        make(mlir(path))
    assert str(caught.value).startswith("[models.net] ")
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 1000
    assert len(getattr(caught.value, "stderr", "")) < 10_000


def test_external_weights_are_used_count_in_the_identity_and_are_read_before(
    make: Make, run_main: RunMain, tmp_path: Path
) -> None:
    weights, path = tmp_path / "weights.irpa", tmp_path / "weighted.mlir"
    index = iree.runtime.ParameterIndex()
    index.add_buffer("w", np.full(4, 3.0, np.float32).tobytes())
    index.create_archive_file(str(weights))
    path.write_text(WEIGHTED)
    bare, weighted = make(mlir(path)), make(mlir(path, parameters={"model": weights}))
    assert weighted.mlir == bare.mlir
    assert record(weighted, cache=tmp_path, suite_folder=tmp_path).parameter_files == {"model": weights.name}
    (output,) = run_main(weighted)
    np.testing.assert_allclose(output, np.load(weighted.arguments[0].file) + 3.0)
    other = make(mlir(path, parameters={"other": weights}))
    weights.write_bytes(weights.read_bytes() + b"\0")
    changed = make(mlir(path, parameters={"model": weights}))
    assert len({model.sha256 for model in (bare, weighted, other, changed)}) == 4
    for broken in (b"", b"IRPA", b"x" * 500):
        weights.write_bytes(broken)
        with pytest.raises(CaseError, match=r"^\[models\.net\] parameters\.model: .*weights\.irpa is "):
            make(mlir(path, parameters={"model": weights}))
    with pytest.raises(SuiteError, match=r"weighted\.mlir does not end in \.irpa or \.gguf or \.safetensors"):
        make(mlir(path, parameters={"model": path}))


def test_all_that_a_command_line_names_is_linked_into_the_folder(
    tmp_path: Path, add: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Scopes of weights may hold any character; what is read is known before, for users who run a line by hand."""
    weights = {"": "a.irpa", "with/slash": "c.gguf"}
    for name in (*weights.values(), "kept.vmfb"):
        (tmp_path / name).write_text(name)
    inputs = [Input(shape=(2,), fill="constant", value=3.0), Input(shape=(2,), dtype="bf16")]
    parameters = {scope: tmp_path / name for scope, name in weights.items()}
    artifact, folder = make_artifact(add, inputs=inputs, parameters=parameters), tmp_path / "deep" / "bench"
    monkeypatch.chdir(tmp_path)
    assert lay_out(folder, Path("kept.vmfb"), artifact) == folder
    monkeypatch.chdir("/")  # links hold wherever paths were relative to
    assert artifact.parameter_flags == ("parameters0.irpa", "with/slash=parameters1.gguf")
    files = [flag.rpartition("=")[2] for flag in artifact.parameter_flags]
    assert [(folder / name).read_text() for name in (*files, MODULE_FILE)] == [*weights.values(), "kept.vmfb"]
    assert np.load(folder / "input0.npy").tolist() == [3.0, 3.0]
    assert {path.name for path in folder.iterdir()} == {MODULE_FILE, *input_files(artifact)}
    with pytest.raises(FileExistsError):  # outputs of an earlier case would be taken for this one's
        lay_out(folder, Path("kept.vmfb"), artifact)


# --- Arguments ---

INPUTS = st.builds(
    Input,
    shape=st.lists(st.integers(0, 5), max_size=4).map(tuple),
    dtype=st.sampled_from(list(HELD_AS)),
    fill=st.sampled_from(["random", "constant"]),
    seed=st.integers(0, 2**32),
    value=st.sampled_from([0.0, 1.0]),
)


@given(INPUTS)
def test_an_input_says_its_array(value: Input) -> None:
    array = make_array(value)
    assert (array.shape, array.dtype) == (value.shape, HELD_AS[value.dtype])
    assert make_array(value).tobytes() == array.tobytes()


def test_files_are_written_once(tmp_path: Path) -> None:
    inputs = (Input(shape=(2, 3)), Input(shape=(2, 3)), Input(shape=(4,), dtype="bf16"))
    arguments = write_arguments(inputs, tmp_path)
    assert [argument.flag for argument in arguments] == ["@input0.npy", "@input1.npy", "4xbf16=@input2.bin"]
    before = [argument.file.stat().st_mtime_ns for argument in arguments]
    assert write_arguments(inputs, tmp_path) == arguments
    assert [argument.file.stat().st_mtime_ns for argument in arguments] == before
    others = write_arguments((*inputs[:2], Input(shape=(4,), dtype="bf16", seed=1)), tmp_path)
    assert others[0].file != arguments[0].file


def test_bf16_ties_go_to_even() -> None:
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


def test_an_npy_file_says_its_shape_and_type(tmp_path: Path) -> None:
    path, array = tmp_path / "x.npy", np.arange(6, dtype=np.float32).reshape(2, 3).T
    np.save(path, array)
    value = resolve(Input(dtype="", fill="npy", path=path))
    assert value == Input(shape=(3, 2), dtype="f32", fill="npy", path=path)
    (argument,) = write_arguments([value], tmp_path)
    np.testing.assert_array_equal(load_argument(argument), array)
    assert make_array(value).flags.c_contiguous


WRONG_NPY: list[tuple[Any, Input, str]] = [
    (
        np.zeros((2, 3)),
        Input(fill="npy"),
        "holds float64 where f32 needs float32; convert the file, or leave dtype out where float64 is meant$",
    ),
    (np.zeros(2, np.uint16), Input(dtype="", fill="npy"), "holds uint16, which no argument is; convert it to one of"),
    (np.zeros((2, 3)), Input(shape=(3, 2), dtype="f64", fill="npy"), "is 2 x 3, not 3 x 2; correct shape"),
    *((broken, Input(fill="npy"), r"x\.npy is not a whole \.npy file") for broken in (slice(0), slice(-1))),
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
    ("value", "message"),
    [
        (Input(dtype="i32", value=1.5, fill="constant"), "value: i32 cannot hold 1.5; give a whole number from -21474"),
        (Input(dtype="i64", value=math.inf, fill="constant"), "value: i64 cannot hold inf; give a whole number from"),
        (Input(dtype="f16", value=1e6, fill="constant"), r"value: 1e\+06 is beyond what f16 can hold; give a smaller"),
        (Input(shape=(2**40, 4)), r"shape: 1099511627776x4xf32 takes 1.638e\+04 GiB, which this"),
    ],
)
def test_what_a_type_or_the_memory_cannot_hold_is_refused(tmp_path: Path, value: Input, message: str) -> None:
    with pytest.raises(SuiteError, match=rf"^inputs\[0\] {message}"):
        write_arguments((value,), tmp_path)
    assert not list(tmp_path.rglob("*.npy"))
