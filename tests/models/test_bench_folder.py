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


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_all_that_a_command_line_names_is_linked_into_the_folder(tmp_path: Path, module: Path, mlir: Path) -> None:
    """Scopes of weights may hold any character; what is read is known before, for users who run a line by hand."""
    weights = {"": "a.irpa", "parameters": "b.irpa", "with/slash": "c.gguf"}
    for name in weights.values():
        (tmp_path / name).write_text(name)
    inputs = [Input(shape=(2,), fill="constant", value=3.0), Input(shape=(2,), dtype="bf16")]
    parameters = {scope: tmp_path / name for scope, name in weights.items()}
    artifact = make_artifact(mlir, inputs=inputs, parameters=parameters)
    bench = lay_out(tmp_path / "deep" / "bench", module, artifact)
    assert bench == BenchFolder(
        folder=tmp_path / "deep" / "bench",
        inputs=("@input0.npy", "2xbf16=@input1.bin"),
        parameters=("parameters0.irpa", "parameters=parameters1.irpa", "with/slash=parameters2.gguf"),
    )
    files = [flag.rpartition("=")[2] for flag in bench.parameters]
    assert [(bench.folder / name).read_text() for name in files] == list(weights.values())
    assert np.load(bench.folder / "input0.npy").tolist() == [3.0, 3.0]
    assert names(bench.folder) == {"input0.npy", "input1.bin", MODULE_FILE, *files}
    assert names(bench.folder) == {MODULE_FILE, *input_files(artifact)}
    assert all(path.is_symlink() for path in bench.folder.iterdir())


def test_links_hold_wherever_the_paths_were_relative_to(
    tmp_path: Path, module: Path, mlir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    bench = lay_out(tmp_path / "bench", module.relative_to(tmp_path), make_artifact(mlir))
    monkeypatch.chdir("/")
    assert (bench.folder / MODULE_FILE).read_bytes() == b"a module"
    assert (bench.inputs, bench.parameters, names(bench.folder)) == ((), (), {MODULE_FILE})


def test_an_argument_that_is_used_twice_is_linked_once(tmp_path: Path, module: Path, mlir: Path) -> None:
    file = tmp_path / "x.npy"
    np.save(file, np.zeros(2, np.float32))
    twice = [Argument(file=file, flag="@x.npy", shape=(2,), dtype="f32")] * 2
    bench = lay_out(tmp_path / "bench", module, make_artifact(mlir, arguments=twice))
    assert bench.inputs == ("@x.npy", "@x.npy")
    assert names(bench.folder) == {MODULE_FILE, "x.npy"}


def test_a_folder_is_laid_out_once(tmp_path: Path, module: Path, mlir: Path) -> None:
    """Outputs of an earlier case in the same place would be taken for this one's."""
    lay_out(tmp_path / "bench", module, make_artifact(mlir))
    with pytest.raises(FileExistsError):
        lay_out(tmp_path / "bench", module, make_artifact(mlir))
