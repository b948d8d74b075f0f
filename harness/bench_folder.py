"""A folder with one case's module and inputs under fixed names, so that every command line in it is relative."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from harness.models.materialize import ModelArtifact

MODULE_FILE = "module.vmfb"


@dataclass(frozen=True, kw_only=True)
class BenchFolder:
    """Where IREE's tools run a case.

    Attributes:
        inputs: What follows --input=, one an argument.
        parameters: What follows --parameters=, one a scope.
    """

    folder: Path
    inputs: tuple[str, ...]
    parameters: tuple[str, ...]


def lay_out(folder: Path, module: Path, artifact: ModelArtifact) -> BenchFolder:
    """Link a module, its arguments and its external weights into a new folder.

    Raises:
        OSError: The folder cannot be written.
    """
    folder.mkdir(parents=True)
    _link(folder / MODULE_FILE, module)
    for file in {argument.file for argument in artifact.arguments}:
        _link(folder / file.name, file)
    parameters = []
    for scope, file in artifact.parameters.items():
        name = f"{scope or 'parameters'}{file.suffix}"
        _link(folder / name, file)
        parameters.append(f"{scope}={name}" if scope else name)
    return BenchFolder(
        folder=folder,
        inputs=tuple(argument.flag for argument in artifact.arguments),
        parameters=tuple(parameters),
    )


def _link(link: Path, target: Path) -> None:
    link.symlink_to(target.resolve())
