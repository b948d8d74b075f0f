"""What travels between an asker and a host for a row of a comparison: its two modules, and what a generation gave."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from harness.cache import cache_root
from harness.compare.engine import Generation
from harness.compare.remeasure import Work
from harness.compare.samplers import Module
from harness.compile import BuildCache
from harness.fleet.files import Item, Luggage
from harness.fleet.orders import flag_files_of, named
from harness.measure import Known, LoadableModule
from harness.process import Limits
from harness.records.case import Case
from harness.records.run import Build, Failure, Round, ToolchainRecord
from harness.toolchain import Toolchain

_MLIR, _FILES = "mlir", "files"


@dataclass(frozen=True, kw_only=True)
class RowModule:
    """One side of a row; a host makes a Module of it again."""

    case: Case  # Its environment is the host's
    toolchain: ToolchainRecord
    build: Build
    function: str  # Its entry
    arguments: tuple[Mapping[str, Any], ...] = ()  # As a LoadableModule has them, each file a Path
    parameters: Mapping[str, Path] | None = None
    # What its compile takes, where that is timed: the program as `mlir`, and `files`
    compiled: Mapping[str, Any] | None = None
    flag_files: Mapping[str, Path] | None = None  # Files that flags name, by the path that the asker's flags have

    def module(self, toolchain: Toolchain, command: tuple[str, ...]) -> Module:
        """The module as it lies on this machine."""
        builds, compiled = BuildCache(cache_root()), self.compiled or {_MLIR: Path(), _FILES: ()}
        return Module(
            case=self.case,
            build=replace(self.build, command=command),
            mlir=compiled[_MLIR],
            files=tuple(compiled[_FILES]),
            loadable=LoadableModule(
                name=self.case.name,
                module=builds.module(self.build),
                function=self.function,
                arguments=tuple({**argument, "file": str(argument["file"])} for argument in self.arguments),
                parameters=self.parameters or {},
                run_flags=self.case.run_flags,
                toolchain=toolchain,
            ),
        )


@dataclass(frozen=True, kw_only=True)
class RowOrder:
    """Measure generations of a row: its latencies, or its compile times where `limits` says what a compile may use."""

    row: str
    base: RowModule
    head: RowModule
    seed: int = 0  # Of the order of turns
    call_limit_s: float = 0.0  # Seconds after which a turn is stopped
    limits: Limits | None = None
    files: tuple[Item, ...] = ()


@dataclass(frozen=True, kw_only=True)
class RowMeasured:
    """What came of a generation of a row."""

    generation: Generation | None = None  # None: a side could not be measured, and `failure` says why
    rounds: tuple[Round, ...] = ()  # In their order
    known: Mapping[str, Known] | None = None  # What the first generation on a host tells the others there
    failure: Failure | None = None


def latency_order(
    work: Work, environment: Mapping[str, str], *, seed: int, call_limit_s: float
) -> tuple[RowOrder, Luggage]:
    """The order for a row's latencies, and what it takes along."""
    luggage = Luggage()
    base, head = (_loaded(module, environment) for module in (work.base, work.head))
    packed = luggage.pack(RowOrder(row=work.name, base=base, head=head, seed=seed, call_limit_s=call_limit_s))
    for module in (work.base, work.head):
        luggage.add_build(module.build)
    return replace(packed, files=luggage.items), luggage


def compile_times_order(work: Work, limits: Limits) -> tuple[RowOrder, Luggage]:
    """The order for a row's compile times, and what it takes along."""
    luggage = Luggage()
    base, head = (_compiled(module) for module in (work.base, work.head))
    packed = luggage.pack(RowOrder(row=work.name, base=base, head=head, limits=limits))
    return replace(packed, files=luggage.items), luggage


def _side(module: Module) -> RowModule:
    loadable = module.loadable
    return RowModule(
        case=module.case, toolchain=named(loadable.toolchain), build=module.build, function=loadable.function
    )


def _loaded(module: Module, environment: Mapping[str, str]) -> RowModule:
    loadable = module.loadable
    return replace(
        _side(module),
        case=replace(module.case, environment=dict(environment)),
        arguments=tuple({**argument, "file": Path(argument["file"])} for argument in loadable.arguments),
        parameters=dict(loadable.parameters),
    )


def _compiled(module: Module) -> RowModule:
    return replace(
        _side(module),
        compiled={_MLIR: module.mlir, _FILES: tuple(module.files)},
        flag_files=flag_files_of(module.build.command),
    )
