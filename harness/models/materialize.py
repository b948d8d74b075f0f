"""Model -> ModelArtifact: its MLIR and its arguments as files in content-addressed folders, made once."""

import hashlib
import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from harness import process
from harness.errors import SuiteError
from harness.files import file_sha256
from harness.models.builder import check_params, find_builder
from harness.models.inputs import Argument, definition, describe, resolve, write_arguments
from harness.models.model import Input, Model
from harness.models.sources import MLIR_NAME, Maker
from harness.records.run import ArgumentRecord, ModelRecord
from harness.toolchain.find import Toolchain

MODULE_FILE = "module.vmfb"


@dataclass(frozen=True, kw_only=True)
class ModelArtifact:
    """A model that is ready to be compiled and run."""

    name: str
    mlir: Path  # The program, always named model.mlir, in a folder of its own
    sha256: str  # Hash of the MLIR's bytes; with external weights, of that hash and each scope's and its file's hash
    mlir_bytes: int
    function: str
    inputs: tuple[Input, ...]  # What the arguments are, all shapes known
    # A file each, input0.npy and so on; their flags are for a tool that runs in the folder of these files
    arguments: tuple[Argument, ...]
    parameters: dict[str, Path]  # External weights by scope, where the suite has them
    onnx: Path | None = None  # The same function in ONNX, where the model has that form and it was asked for

    @property
    def parameter_flags(self) -> tuple[str, ...]:
        """What follows --parameters=, one a scope, for a tool that runs in a folder with `input_files`."""
        scopes = zip(self.parameters, files_by_name((), self.parameters.values()), strict=True)
        return tuple(f"{scope}={name}" if scope else name for scope, name in scopes)


def materialize(
    model: Model, *, store: Path, toolchain: Toolchain, limits: process.Limits, with_onnx: bool = False
) -> ModelArtifact:
    """Make a model's MLIR and arguments, or find them in the store, a folder that processes may share.

    SuiteError where the model's table is wrong, CaseError (stage `model`) where its file is broken or a tool fails.
    """
    maker = Maker(model=model, store=store, toolchain=toolchain, limits=limits)
    where, program = maker.where, maker.program()
    if program.unknown_inputs and not model.inputs:
        raise SuiteError(f"{where} inputs are missing, because {program.unknown_inputs}")
    weights = maker.weights()
    folder = store / program.sha256
    # The MLIR's own hash where there are no weights, so that sha256sum of model.mlir shows it.
    hashed = [program.sha256, *(f"{sha256} {scope}" for scope, sha256 in sorted(weights.items()))]
    inputs = tuple(
        replace(resolve(value, f"{where} inputs[{position}]"), integers=model.integers and value.fill == "random")
        for position, value in enumerate(model.inputs or program.inputs)
    )
    return ModelArtifact(
        name=model.name,
        mlir=folder / MLIR_NAME,
        sha256=hashlib.sha256("\n".join(hashed).encode()).hexdigest() if weights else program.sha256,
        mlir_bytes=program.size,
        function=program.function,
        inputs=inputs,
        arguments=write_arguments(inputs, folder, f"{where} inputs"),
        parameters=dict(model.parameters),
        onnx=maker.onnx() if with_onnx or program.from_onnx else None,
    )


def record(artifact: ModelArtifact, *, cache: Path, suite_folder: Path) -> ModelRecord:
    """What a run directory keeps of a model."""
    return ModelRecord(
        name=artifact.name,
        mlir_sha256=artifact.sha256,
        mlir_bytes=artifact.mlir_bytes,
        function=artifact.function,
        inputs=tuple(describe(value) for value in artifact.inputs),
        parameters=tuple(sorted(artifact.parameters)),
        mlir=_relative(artifact.mlir, cache),
        arguments=tuple(
            ArgumentRecord(file=_relative(one.file, cache), shape=one.shape, dtype=one.dtype, scalar=one.scalar)
            for one in artifact.arguments
        ),
        parameter_files={scope: _relative(file, suite_folder) for scope, file in artifact.parameters.items()},
    )


def model_id(model: Model, suite: Path) -> str:
    """Hash (sha256, hex) of what the model computes and is called with."""
    facts: dict[str, object] = {
        "function": model.function,
        "inputs": [definition(value) for value in model.inputs],
        "parameters": {scope: file_sha256(path) for scope, path in sorted(model.parameters.items())},
    }
    if model.integers:
        facts["values"] = "integers"
    if model.builder is not None:
        where = f"{suite}: [models.{model.name}]"
        builder = find_builder(model.builder, f"{where} builder")
        params = asdict(check_params(builder, model.params, f"{where} params"))
        facts["builder"] = [builder.name, builder.version, params]
    else:
        source = model.mlir or model.onnx
        assert source is not None  # noqa: S101 (loading a suite made sure)
        facts["file"] = [file_sha256(source), model.opset, *(["static"] if model.static else [])]
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()


def _relative(file: Path, folder: Path) -> str:
    return Path(os.path.relpath(file, folder)).as_posix()


def input_files(artifact: ModelArtifact) -> dict[str, Path]:
    """Files that a case of this model reads beside its module, by the name under which command lines know them."""
    return files_by_name([argument.file for argument in artifact.arguments], artifact.parameters.values())


def files_by_name(arguments: Iterable[Path], weights: Iterable[Path]) -> dict[str, Path]:
    """Arguments by their own names; a scope of weights may hold any character, so those are numbered."""
    numbered = {f"parameters{number}{file.suffix}": file for number, file in enumerate(weights)}
    return {**{file.name: file for file in arguments}, **numbered}


def lay_out(folder: Path, module: Path, artifact: ModelArtifact, files: Sequence[Path] = ()) -> Path:
    """Link a module, its arguments and its external weights into a new folder, where IREE's tools run; the folder."""
    folder.mkdir(parents=True)
    plugin_files = {path.name: path for path in files}
    for name, file in {MODULE_FILE: module, **input_files(artifact), **plugin_files}.items():
        (folder / name).symlink_to(file.resolve())
    return folder
