"""A folder with one case's module and inputs under fixed names, so that every command line in it is relative."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.models.materialize import ModelArtifact

MODULE_FILE = "module.vmfb"


@dataclass(frozen=True, kw_only=True)
class BenchFolder:
    """Where IREE's tools run a case."""

    folder: Path
    inputs: tuple[str, ...]  # What follows --input=, one an argument
    parameters: tuple[str, ...]  # What follows --parameters=, one a scope


def input_files(artifact: ModelArtifact) -> dict[str, Path]:
    """Files that a case of this model reads beside its module, by the name under which command lines know them."""
    arguments = {argument.file.name: argument.file for argument in artifact.arguments}
    weights = dict(zip(_weight_names(artifact), artifact.parameters.values(), strict=True))
    return {**arguments, **weights}


def _weight_names(artifact: ModelArtifact) -> list[str]:
    """Names of the files of external weights; a scope may hold any character, so they are numbered."""
    return [f"parameters{number}{file.suffix}" for number, file in enumerate(artifact.parameters.values())]


def lay_out(folder: Path, module: Path, artifact: ModelArtifact, files: Sequence[Path] = ()) -> BenchFolder:
    """Link a module, its arguments and its external weights into a new folder."""
    folder.mkdir(parents=True)
    plugin_files = {path.name: path for path in files}
    for name, file in {MODULE_FILE: module, **input_files(artifact), **plugin_files}.items():
        (folder / name).symlink_to(file.resolve())
    scopes = zip(artifact.parameters, _weight_names(artifact), strict=True)
    return BenchFolder(
        folder=folder,
        inputs=tuple(argument.flag for argument in artifact.arguments),
        parameters=tuple(f"{scope}={name}" if scope else name for scope, name in scopes),
    )
