"""`harness export`: a program, as it is or as plugins make it, with all that command lines of it name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from iree.compiler import ir

from harness.errors import CaseError, UsageError
from harness.plugins import Flags, Plugin, Rewrite, TransformSpec
from harness.stages.build import export_program
from tests.builders import PRODUCT, a_plugin, example_file, register

SUITE = """\
name = "small"
baseline = "stock"

[models.net]
mlir = "net.mlir"
function = "main"
inputs = [{ shape = [10, 20] }, { shape = [20, 30] }, { shape = [10, 30], dtype = "bf16" }]

[variants.stock]

[variants.plus]
plugins = ["plus", "spec"]

[variants.idle]
plugins = ["idle"]

[variants.broken]
plugins = ["broken"]

[devices.cpu]
uri = "local-sync"
backend = "llvm-cpu"
compile_flags = ["--iree-hal-target-device=local", "--iree-hal-local-target-device-backends=llvm-cpu"]

[devices.other]
uri = "local-task"
backend = "llvm-cpu"
compile_flags = ["--iree-hal-target-device=local", "--iree-hal-local-target-device-backends=vmvx"]

[matrix]
exclude = ["net/plus@cpu", "net/broken@other"]
"""
SPEC = example_file("generic_product.mlir")


def _rewrite(name: str, function: str) -> Plugin[Any]:
    return a_plugin(name, Rewrite(function=f"fake_rewrites:{function}"))


PLUGINS = {
    "plus": _rewrite("plus", "plus"),
    "idle": _rewrite("idle", "nothing"),
    "broken": _rewrite("broken", "raises"),
    "spec": a_plugin("spec", TransformSpec(file=SPEC), Flags(compile=("--iree-opt-level=O2",))),
}


@pytest.fixture
def suite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A suite with three variants on two devices, whose plugins are installed."""
    register(monkeypatch, "harness.plugins", *PLUGINS.items())
    monkeypatch.syspath_prepend(str(Path(__file__).parents[1] / "fakes"))
    (tmp_path / "net.mlir").write_text(PRODUCT)
    path = tmp_path / "small.toml"
    path.write_text(SUITE)
    return path


def test_a_models_own_program_with_its_inputs(suite: Path, tmp_path: Path) -> None:
    out = tmp_path / "deep" / "out"
    exported = export_program(suite, "net", out)
    assert exported.files == ("model.mlir", "input0.npy", "input1.npy", "input2.bin")
    assert {path.name for path in out.iterdir()} == set(exported.files)
    assert (out / "model.mlir").read_text() == PRODUCT
    assert (exported.function, exported.effects) == ("main", ())


def test_the_program_as_plugins_make_it_and_their_files(suite: Path, tmp_path: Path) -> None:
    exported = export_program(suite, "net", tmp_path / "out", variant="plus", device="other")
    assert exported.files[0] == "model.mlir"
    assert exported.files[-1] == SPEC.unique_name
    assert {path.name for path in (tmp_path / "out").iterdir()} == set(exported.files)
    assert (tmp_path / "out" / SPEC.unique_name).read_bytes() == SPEC.data
    (effect,) = exported.effects
    assert (effect.name, effect.changed) == ("plus", True)
    with ir.Context():
        program = str(ir.Module.parse((tmp_path / "out" / "model.mlir").read_bytes()))
    assert "util.func public @main" in program or "func.func @main" in program
    assert "linalg.matmul" in program, "what the compiler does itself is in its flags, and not done yet"


def test_where_plugins_change_nothing_it_is_the_models_own(suite: Path, tmp_path: Path) -> None:
    exported = export_program(suite, "net", tmp_path / "out", variant="idle")
    assert (tmp_path / "out" / "model.mlir").read_text() == PRODUCT
    assert [(effect.name, effect.matched, effect.changed) for effect in exported.effects] == [("idle", 0, False)]


@pytest.mark.parametrize(
    ("model", "variant", "device", "sentence"),
    [
        ("nets", "plus", None, "there is no model 'nets'; did you mean \"net\"?"),
        ("net", "plsu", None, "there is no variant 'plsu'; did you mean \"plus\"?"),
        ("net", "plus", "vulkan", "there is no device 'vulkan'; known: cpu, other"),
        ("net", "plus", "cpu", "[matrix] leaves out net/plus@cpu; choose a case of `harness list`"),
    ],
)
def test_what_is_not_there(
    suite: Path, tmp_path: Path, model: str, variant: str, device: str | None, sentence: str
) -> None:
    with pytest.raises(UsageError) as caught:
        export_program(suite, model, tmp_path / "out", variant=variant, device=device)
    assert str(caught.value) == f"{suite}: {sentence}"
    assert not (tmp_path / "out").exists()


def test_a_plugin_that_fails_leaves_nothing_behind(suite: Path, tmp_path: Path) -> None:
    with pytest.raises(CaseError, match=r"^plugin broken raised KeyError"):
        export_program(suite, "net", tmp_path / "out", variant="broken", device="cpu")
    assert not (tmp_path / "out").exists()
