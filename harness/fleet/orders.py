"""What travels between an asker and a host: plain frozen values, in which a file is its place below a cache folder.

Code does not travel. A plugin, a peer and a toolchain are named, found again on the host, and compared.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from harness.compile import CompileRequest
from harness.compile.request import cache_key
from harness.fleet.files import Item, Luggage
from harness.models.materialize import ModelArtifact
from harness.models.model import Model
from harness.plugins import Applied
from harness.plugins.chain import Arranged
from harness.process import Limits
from harness.records.case import Case
from harness.records.run import Build, Check, Lost, Round, ToolchainRecord
from harness.stages.context import GivenUp
from harness.stages.ir import Compiled as CompiledCase
from harness.toolchain import Toolchain
from harness.toolchain.host_cpu import TargetCpu, is_of_host, without_host


@dataclass(frozen=True, kw_only=True)
class NamedPlugin:
    """A plugin with options, as a host finds it again."""

    name: str
    options: Mapping[str, Any]
    version: str  # Its own
    sources_sha256: str  # Of its rewrites
    files: tuple[str, ...]  # The unique names of its files, which hold hashes of their bytes

    @classmethod
    def of(cls, applied: Applied) -> NamedPlugin:
        """What names a plugin that is here."""
        return cls(
            name=applied.name,
            options=applied.options,
            version=applied.plugin.version,
            sources_sha256=applied.sources_sha256,
            files=tuple(file.unique_name for file in applied.files),
        )


@dataclass(frozen=True, kw_only=True)
class CompileOrder:
    """Compile one case."""

    key: str  # What its build is kept under, on every machine
    case: Case  # Its flags say no `host`, and have the asker's paths of `flag_files`
    toolchain: ToolchainRecord
    flag_files: Mapping[str, Path]  # Files that flags name, by the path that the asker's flags have
    model: Path  # Its program
    model_sha256: str
    function: str
    host_cpu: str
    limits: Limits
    plugins: tuple[NamedPlugin, ...]
    arranged: Arranged
    files: tuple[Item, ...] = ()


@dataclass(frozen=True, kw_only=True)
class LookOrder:
    """Look at the IR of a build."""

    build: Build
    model: Path  # Its program, as it was before plugins
    shapes: list[list[int]]  # Of its arguments
    toolchain: ToolchainRecord
    limits: Limits
    wanted: tuple[str, ...]  # Phases whose operations are counted
    storage: bool  # Whether encoded tensors are sized
    files: tuple[Item, ...] = ()


@dataclass(frozen=True, kw_only=True)
class GroupOrder:
    """What a host needs to know of a group whose cases are compiled."""

    group: str
    cases: tuple[Case, ...]  # Those that are alive, in the plan's order; their environment is the host's
    model: Model
    artifact: ModelArtifact
    builds: Mapping[str, Build]  # By case; of peers there are none
    peers: Mapping[str, tuple[str, Mapping[str, Any]]]  # Registered name and options of the peers among them, by label
    toolchains: Mapping[str, ToolchainRecord]  # By version
    compile_limits: Limits
    call_timeout_s: float
    given_up: GivenUp  # What is not tried since another case timed out
    checks: Mapping[str, Check] = field(default_factory=dict)  # That were done, by case
    files: tuple[Item, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Trouble:
    """Why a host could not do what it was asked to, though the case itself may be all right."""

    message: str  # A sentence, which does not name the host


@dataclass(frozen=True, kw_only=True)
class Compiled:
    """What came of a compile."""

    build: Build
    stderr: str  # What the compiler printed
    items: tuple[Item, ...] = ()  # The build's files, as they lie in the host's cache; () where it failed
    contents: Mapping[Item, bytes] = field(default_factory=dict)  # Of the small ones among them


@dataclass(frozen=True, kw_only=True)
class Checked:
    """What came of checking a group."""

    checks: tuple[Check, ...]
    items: tuple[Item, ...] = ()  # Right outputs that were kept in the host's cache
    contents: Mapping[Item, bytes] = field(default_factory=dict)  # Of the small ones among them


@dataclass(frozen=True, kw_only=True)
class Measured:
    """What came of one generation: rounds, and losses in their place among them."""

    results: tuple[Round | tuple[Lost, ...], ...]


def named(toolchain: Toolchain) -> ToolchainRecord:
    """What names a toolchain."""
    return ToolchainRecord(
        version=toolchain.version, revision=toolchain.revision, compiler_sha256=toolchain.compiler_sha256
    )


def needs_cpu(case: Case, arranged: Arranged) -> bool:
    """Whether a case's module depends on the CPU that it is for: flags say `host`, or a plugin rewrites it."""
    return bool(arranged.rewrites) or any(map(is_of_host, case.compile_flags))


def flag_files_of(flags: Sequence[str]) -> dict[str, Path]:
    """Files of this machine that flags name, by the path that the flags have."""
    values = {flag.partition("=")[2] for flag in flags}
    return {value: Path(value) for value in sorted(values) if value.startswith("/") and Path(value).is_file()}


def compile_order(request: CompileRequest, cpu: TargetCpu | None, luggage: Luggage) -> CompileOrder:
    """The order that a request becomes."""
    flags = request.case.compile_flags
    case = replace(request.case, compile_flags=flags if cpu is None else without_host(flags, cpu))
    packed = luggage.pack(
        CompileOrder(
            key=cache_key(replace(request, case=case)),
            case=case,
            toolchain=named(request.toolchain),
            flag_files=flag_files_of(case.compile_flags),
            model=request.model,
            model_sha256=request.model_sha256,
            function=request.function,
            host_cpu=request.host_cpu,
            limits=request.limits,
            plugins=tuple(NamedPlugin.of(applied) for applied in request.plugins),
            arranged=request.arranged,
        )
    )
    return replace(packed, files=luggage.items)


def look_order(compiled: CompiledCase, wanted: Collection[str], *, storage: bool, luggage: Luggage) -> LookOrder:
    """The order for the IR of a build that is here."""
    packed = luggage.pack(
        LookOrder(
            build=compiled.build,
            model=compiled.mlir,
            shapes=compiled.shapes,
            toolchain=named(compiled.toolchain),
            limits=compiled.limits,
            wanted=tuple(wanted),
            storage=storage,
        )
    )
    luggage.add_build(compiled.build)
    return replace(packed, files=luggage.items)


def group_order(
    cases: Sequence[Case],
    model: Model,
    artifact: ModelArtifact,
    builds: Mapping[str, Build],
    luggage: Luggage,
    **facts: Any,
) -> GroupOrder:
    """The order for a group."""
    # Where the model came from is of no use there: the artifact is what was made of it.
    plain = replace(model, mlir=None, onnx=None, parameters={}, inputs=())
    own = {case.name: builds[case.name] for case in cases if case.peer is None}
    packed = luggage.pack(artifact)  # nothing else of the order names files by their paths
    order = GroupOrder(group=cases[0].group, cases=tuple(cases), model=plain, artifact=packed, builds=own, **facts)
    for build in {build.cache_key: build for build in own.values()}.values():
        luggage.add_build(build)
    for check in order.checks.values():
        for output in check.outputs:
            luggage.add_kept(output.file)
    return replace(order, files=luggage.items)
