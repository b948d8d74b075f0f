"""A case's folder: one module, its arguments and its weights under fixed names, linked and not copied."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from harness.models.bench_folder import MODULE_FILE, BenchFolder, input_files, lay_out
from harness.models.inputs import Argument
from harness.models.model import Input
from tests.builders import make_artifact


@pytest.fixture
def module(tmp_path: Path) -> Path:
    path = tmp_path / "cache" / "ab" / "module.vmfb"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"a module")
    return path


@pytest.fixture
def mlir(tmp_path: Path) -> Path:
    path = tmp_path / "models" / "model.mlir"
    path.parent.mkdir()
    path.touch()
    return path


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_all_that_a_command_line_names_is_in_the_folder(tmp_path: Path, module: Path, mlir: Path) -> None:
    weights = tmp_path / "weights.irpa"
    weights.write_bytes(b"weights")
    inputs = [Input(shape=(2,), fill="constant", value=3.0), Input(shape=(2,), dtype="bf16")]
    artifact = make_artifact(mlir, inputs=inputs, parameters={"model": weights})
    bench = lay_out(tmp_path / "deep" / "bench", module, artifact)
    assert bench == BenchFolder(
        folder=tmp_path / "deep" / "bench",
        inputs=("@input0.npy", "2xbf16=@input1.bin"),
        parameters=("model=parameters0.irpa",),
    )
    assert names(bench.folder) == ["input0.npy", "input1.bin", MODULE_FILE, "parameters0.irpa"]
    assert (bench.folder / MODULE_FILE).read_bytes() == b"a module"
    assert (bench.folder / "parameters0.irpa").read_bytes() == b"weights"
    assert np.load(bench.folder / "input0.npy").tolist() == [3.0, 3.0]


def test_a_case_without_arguments_has_its_module_only(tmp_path: Path, module: Path, mlir: Path) -> None:
    bench = lay_out(tmp_path / "bench", module, make_artifact(mlir))
    assert (bench.inputs, bench.parameters) == ((), ())
    assert names(bench.folder) == [MODULE_FILE]


def test_scopes_of_any_name_get_files_of_their_own(tmp_path: Path, module: Path, mlir: Path) -> None:
    weights = {"": "a.irpa", "parameters": "b.irpa", "with/slash": "c.gguf"}
    for name in weights.values():
        (tmp_path / name).write_text(name)
    parameters = {scope: tmp_path / name for scope, name in weights.items()}
    bench = lay_out(tmp_path / "bench", module, make_artifact(mlir, parameters=parameters))
    assert bench.parameters == ("parameters0.irpa", "parameters=parameters1.irpa", "with/slash=parameters2.gguf")
    files = [flag.rpartition("=")[2] for flag in bench.parameters]
    assert [(bench.folder / name).read_text() for name in files] == list(weights.values())
    assert names(bench.folder) == [MODULE_FILE, *files]


def test_what_a_command_line_reads_is_known_before_there_is_a_folder(tmp_path: Path, module: Path, mlir: Path) -> None:
    """So that the same files can be handed to a user who runs the command line by hand."""
    weights = tmp_path / "weights.irpa"
    weights.touch()
    artifact = make_artifact(mlir, inputs=[Input(shape=(2,))], parameters={"model": weights})
    bench = lay_out(tmp_path / "bench", module, artifact)
    assert {MODULE_FILE, *input_files(artifact)} == set(names(bench.folder))


def test_files_are_links_so_that_large_weights_cost_nothing(tmp_path: Path, module: Path, mlir: Path) -> None:
    bench = lay_out(tmp_path / "bench", module, make_artifact(mlir, inputs=[Input(shape=(2,))]))
    assert all(path.is_symlink() for path in bench.folder.iterdir())


def test_links_hold_wherever_the_paths_were_relative_to(
    tmp_path: Path, module: Path, mlir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    bench = lay_out(tmp_path / "bench", module.relative_to(tmp_path), make_artifact(mlir))
    monkeypatch.chdir("/")
    assert (bench.folder / MODULE_FILE).read_bytes() == b"a module"


def test_an_argument_that_is_used_twice_is_linked_once(tmp_path: Path, module: Path, mlir: Path) -> None:
    file = tmp_path / "x.npy"
    np.save(file, np.zeros(2, np.float32))
    twice = [Argument(file=file, flag="@x.npy", shape=(2,), dtype="f32")] * 2
    bench = lay_out(tmp_path / "bench", module, make_artifact(mlir, arguments=twice))
    assert bench.inputs == ("@x.npy", "@x.npy")
    assert names(bench.folder) == [MODULE_FILE, "x.npy"]


def test_a_folder_is_laid_out_once(tmp_path: Path, module: Path, mlir: Path) -> None:
    """Outputs of an earlier case in the same place would be taken for this one's."""
    lay_out(tmp_path / "bench", module, make_artifact(mlir))
    with pytest.raises(FileExistsError):
        lay_out(tmp_path / "bench", module, make_artifact(mlir))
