"""`harness bench`: what suite comes of a file and sets of flags, and what it refuses."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.cli import run_command_line
from harness.errors import UsageError
from harness.stages.benching import name_variants, write_bench
from harness.stages.options import BenchOptions
from harness.store.run_directory import load_run
from harness.suite.load import load_suite

DOUBLE = """
func.func private @helper(%x: tensor<4xf32>) -> tensor<4xf32>
func.func @main(%x: tensor<4x8xf32> {a.b = 1}, %n: !torch.vtensor<[2,3],f16>, %e: tensor<i8>) -> tensor<4x8xf32> {
  %y = arith.addf %x, %x : tensor<4x8xf32>
  return %y : tensor<4x8xf32>
}
util.func public @later(%x: tensor<?xf32>, %n: i32) { util.return }
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x.mlir").write_text(DOUBLE)
    return tmp_path


def bench(*flags: str, model: str = "x.mlir", **options: object) -> Path:
    return write_bench(BenchOptions(Path(model), flags=flags, **options))  # type: ignore[arg-type]


def test_sets_of_flags_have_names_of_their_own() -> None:
    assert name_variants(["--a=b --c", "", "--a=b --d"]) == {"a-b-c": "--a=b --c", "stock": "", "a-b-d": "--a=b --d"}
    assert name_variants(["--a"]) == {"stock": "", "a": "--a"}, "one alone is compared with no flags"
    long = "--" + "f" * 60
    assert list(name_variants([f"{long}=1", f"{long}=2"])) == ["f" * 40, f"{'f' * 40}+2"]


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        (["--a", "--a "], "--flags: two sets are equal, so there is nothing to compare; give each set of flags once"),
        ([""], "--flags: two sets are equal, so there is nothing to compare; give each set of flags once"),
        (["--a='b"], '--flags "--a=\'b": No closing quotation; close the quotation'),
    ],
)
def test_sets_of_flags_that_cannot_be_compared(flags: list[str], sentence: str) -> None:
    with pytest.raises(UsageError) as caught:
        name_variants(flags)
    assert str(caught.value) == sentence


def test_function_and_arguments_come_from_the_file(folder: Path) -> None:
    suite = load_suite(bench("--a --b", "--c")).suite
    assert [(variant.name, variant.compile_flags) for variant in suite.variants] == [
        ("a-b", ("--a", "--b")),
        ("c", ("--c",)),
    ]
    (model,) = suite.models
    assert (model.function, suite.baseline) == ("main", "a-b")
    assert [(value.shape, value.dtype) for value in model.inputs] == [((4, 8), "f32"), ((2, 3), "f16"), ((), "i8")]
    assert model.mlir is not None
    assert model.mlir.resolve() == folder / "x.mlir"


def test_arguments_can_be_given(folder: Path) -> None:
    given = ("4xf32", "2x3xf16=1.5", "i32=3", "x.npy")
    (model,) = load_suite(bench("--a", function="later", model_inputs=given[:3])).suite.models
    assert model.function == "later"
    assert [(value.shape, value.dtype, value.fill, value.value, value.scalar) for value in model.inputs] == [
        ((4,), "f32", "random", 0.0, False),
        ((2, 3), "f16", "constant", 1.5, False),
        ((), "i32", "constant", 3.0, True),
    ]
    assert '"../x.npy"' in bench("--a", model_inputs=given).read_text()


def test_the_suite_is_saved_where_that_is_asked_for(folder: Path) -> None:
    path = bench("--a", save=Path("suites/mine.toml"))
    assert path == Path("suites/mine.toml")
    assert load_suite(path).suite.name == "mine"
    with pytest.raises(UsageError, match=r"^suites/mine.toml: is there already; give --save a new file$"):
        bench("--a", save=path)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"model": "y.mlir"}, "y.mlir: there is no such file; give one that ends in .mlir, .mlirbc or .onnx"),
        ({"model": "x.txt"}, "x.txt: is no model's file; give one that ends in .mlir, .mlirbc or .onnx"),
        (
            {"function": "lost"},
            "x.mlir: no function @lost is found in it; give --function, and --model-input for each argument",
        ),
        (
            {"function": "later"},
            "x.mlir: @later has an argument of type tensor<?xf32>; give --model-input for each argument, as in 4x8xf32",
        ),
        (
            {"model_inputs": ("4xf33",)},
            "--model-input '4xf33': is no argument; write 4x8xf32, 4x8xf32=1.5, i32=3 or values.npy",
        ),
        (
            {"model_inputs": ("i32",)},
            "--model-input 'i32': is no argument; write 4x8xf32, 4x8xf32=1.5, i32=3 or values.npy",
        ),
    ],
)
def test_what_cannot_be_measured(options: dict[str, object], sentence: str, folder: Path) -> None:
    with pytest.raises(UsageError) as caught:
        bench("--a", **options)  # type: ignore[arg-type]
    assert str(caught.value) == sentence
    assert not list(folder.glob("results/*"))


def test_two_sets_of_flags_in_a_line(folder: Path) -> None:
    """The command itself; flags begin with dashes."""
    (folder / "x.mlir").write_text(
        "func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {\n"
        "  %y = arith.addf %x, %x : tensor<4xf32>\n  return %y : tensor<4xf32>\n}\n"
    )
    options = ("--budget", "0.1", "--generations", "1")
    assert run_command_line(["bench", "x.mlir", "--flags", "", "--flags", "--iree-opt-level=O3", *options]) == 0
    (path,) = [path for path in (folder / "results").iterdir() if path.is_dir()]
    run = load_run(path)
    assert (run.header.baseline, [case.variant for case in run.header.cases]) == (
        "stock",
        ["stock", "iree-opt-level-O3"],
    )
    assert run.finished
