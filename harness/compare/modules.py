"""A recorded case -> what a worker loads and what a compiler compiles, from the cache."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from harness.compare.pairs import Side
from harness.compile import BuildCache
from harness.errors import ToolchainError
from harness.measure import LoadableModule
from harness.models.inputs import Argument
from harness.records.case import Case
from harness.records.run import Build, ModelRecord, ToolchainRecord
from harness.toolchain import Toolchain


class Gone(Exception):
    """Something that a run left in the cache is no longer there; the message says what, as part of a sentence."""


@dataclass(frozen=True, kw_only=True)
class Module:
    """One side of a pair, ready to be measured here.

    Attributes:
        mlir: What was compiled: the model's program, or what plugins made of it.
        files: That plugins gave to the tools.
        build: What the run says of the module.
    """

    case: Case
    loadable: LoadableModule
    mlir: Path
    files: tuple[Path, ...]
    build: Build


def find_module(side: Side, case: Case, toolchain: Toolchain, cache: Path) -> Module:
    """Find a compiled case's module, arguments and weights in the cache.

    Args:
        toolchain: That of the case, on this machine.
        cache: The cache folder.

    Raises:
        Gone: One of them is not there, or no longer what the run recorded.
    """
    build, model = side.evidence.builds[case.name], side.evidence.models[case.model]
    builds = BuildCache(cache)
    kept = builds.find(build.cache_key, case.name)
    if kept is None or kept.module_sha256 != build.module_sha256:
        raise Gone(f"the module of {case.name} in {side.label} is no longer in the cache")
    if not model.mlir or not (cache / model.mlir).is_file():
        raise Gone(f"the model of {case.name} in {side.label} is no longer in the cache")
    return Module(
        case=case,
        build=build,
        mlir=builds.program(build) or cache / model.mlir,
        files=builds.files(build),
        loadable=LoadableModule(
            name=case.name,
            module=builds.module(build),
            function=model.function,
            arguments=tuple(argument.for_worker() for argument in _arguments(side, case, model, cache)),
            parameters=_parameters(side, case, model),
            run_flags=case.run_flags,
            toolchain=toolchain,
        ),
    )


def _arguments(side: Side, case: Case, model: ModelRecord, cache: Path) -> list[Argument]:
    if len(model.arguments) != len(model.inputs):
        raise Gone(f"{side.label} was made by a harness that did not keep what {case.name} is called with")
    arguments = [Argument(file=cache / one.file, flag="", shape=one.shape, dtype=one.dtype) for one in model.arguments]
    for argument in arguments:
        if not argument.file.is_file():
            raise Gone(f"the inputs of {case.name} in {side.label} are no longer in the cache")
    return arguments


def _parameters(side: Side, case: Case, model: ModelRecord) -> dict[str, Path]:
    folder = Path(side.run.header.suite).parent
    files = {scope: folder / file for scope, file in model.parameter_files.items()}
    for scope, file in files.items():
        if not file.is_file():
            raise Gone(f"the weights {scope!r} of {case.name} in {side.label} are not at {file}")
    return files


def require_same(toolchain: Toolchain, recorded: ToolchainRecord, label: str) -> Toolchain:
    """The toolchain, if it is the one that a run recorded.

    Raises:
        ToolchainError: Its compiler has other bytes.
    """
    if toolchain.compiler_sha256 != recorded.compiler_sha256:
        raise ToolchainError(
            f"{label}: IREE {recorded.version} here has another compiler than the run's; make the run again"
        )
    return toolchain
