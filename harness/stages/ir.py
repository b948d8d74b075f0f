"""`harness ir`: a case's IR at the phases of the compiler, and where that of two differs.

A case is one of a suite, of a run, or under a release of IREE; it is compiled, or found in the cache.
"""

from __future__ import annotations

import glob
import shlex
import tempfile
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from harness.cache import cache_root
from harness.compare.pairs import TOOLCHAIN_PREFIX, Side, is_toolchain
from harness.compare.samplers import CacheMiss, Module, find_module
from harness.compare.sides import toolchains_here
from harness.compile import BuildCache
from harness.errors import CaseError, RunError, ToolchainError, UsageError
from harness.ir.counts import Inspected, count_files
from harness.ir.differences import EXECUTABLE_PHASES, PROGRAM_PHASES, ComparedCase, IrComparison, compare_ir, read_parts
from harness.ir.dump import LacksPhase, UnreadPhase, check_phases, dump_phases, entry_phase, print_ir
from harness.machine.environment import processor_identity
from harness.metrics import PHASES
from harness.models.materialize import ModelArtifact
from harness.process import Limits
from harness.progress import Progress
from harness.records.case import Case
from harness.records.run import Build, Failure, ModelRecord
from harness.stages.build import request_for
from harness.stages.models import materialize_models, writing_the_cache
from harness.stages.options import IrOptions, compile_limits
from harness.stages.prepare import prepare
from harness.store.folders import find_folder
from harness.store.run_directory import HEADER_FILE, load_run
from harness.suite.cases import Selection, case_names
from harness.text import did_you_mean, plural, such_as
from harness.toolchain import Toolchain, toolchain_named
from harness.toolchain.fetched import is_fetched
from harness.toolchain.host_cpu import environment_here
from harness.toolchain.own import kind_named

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Compiled:
    """A build that did not fail, with what it was made of."""

    build: Build
    mlir: Path  # The model's program
    shapes: list[list[int]]  # Of its arguments
    toolchain: Toolchain
    limits: Limits  # What another compile of it may use

    @classmethod
    def of(
        cls, build: Build, model: ModelArtifact | ModelRecord, mlir: Path, toolchain: Toolchain, limits: Limits
    ) -> Compiled:
        """A build of a model, whose program may be what plugins made of it."""
        shapes = [list(argument.shape) for argument in model.arguments]
        return cls(build=build, mlir=mlir, shapes=shapes, toolchain=toolchain, limits=limits)

    @property
    def flags(self) -> tuple[str, ...]:
        """The flags with which it was compiled, without those that name its output."""
        position = self.build.command.index("-o")
        flags = (*self.build.command[2:position], *self.build.command[position + 2 :])
        return tuple(flag for flag in flags if not flag.startswith("--iree-scheduling-dump-statistics"))

    def reached(self, phases: Iterable[str]) -> list[str]:
        """Those of the phases that it went through: a program that was rewritten at a phase begins there."""
        entry = PHASES.index(entry_phase(self.build.command))
        return [phase for phase in phases if PHASES.index(phase) >= entry]

    @contextmanager
    def ir(self, phases: Collection[str]) -> Iterator[dict[str, Path]]:
        """Its IR at phases of the compiler, in files that are there for as long as the context is."""
        cache = BuildCache(cache_root())
        with tempfile.TemporaryDirectory(prefix="harness-ir-", ignore_cleanup_errors=True) as folder:
            yield dump_phases(
                self.flags,
                cache.program(self.build) or self.mlir,
                phases,
                toolchain=self.toolchain,
                folder=Path(folder),
                limits=self.limits,
                files=cache.files(self.build),
            )


def at_readable_phases(
    phases: Sequence[str], look: Callable[[Sequence[str]], T], *, exactly: bool = False
) -> tuple[T, dict[str, str]]:
    """What a look at the IR of these phases gives, without those that a compiler lacks or that cannot be read back."""
    left, unread = list(phases), dict[str, str]()
    while True:
        try:
            return look(left), unread
        except (LacksPhase, UnreadPhase) as error:
            if exactly or error.phase not in left:
                raise
            left.remove(error.phase)
            if isinstance(error, UnreadPhase):
                unread[error.phase] = error.why


# --- what a user calls a case -> the case, compiled ---


_FORM = "give one case or two, each as SUITE CASE, RUN:CASE, SUITE:CASE, or iree==3.12.0 with --suite and --case"


@dataclass(frozen=True, kw_only=True)
class NamedCase:
    """A case as a user calls it."""

    place: Path  # A suite's file or a run's folder
    case: str
    release: str = ""  # Under which a suite's case is compiled, as in `iree==3.12.0`; "": the one that is installed


@dataclass(frozen=True, kw_only=True)
class IrSide:
    """One case whose IR is asked for."""

    case: Case
    name: str  # What the user calls it, without the release
    label: str  # What tells it from the other one, if there is one; else its name
    compiled: Compiled


def named_cases(options: IrOptions) -> tuple[NamedCase, ...]:
    """The case that a user asks for, or the two.

    A side is `SUITE:CASE`, `RUN:CASE` or a release, or with --suite a case's name; the case of sides that name none may
    stand behind them. What a side lacks, --case and --suite say, and else the other side.
    """
    sides, case = [(word, *_parts(word)) for word in options.sides], options.case
    if case is None and any(place or release for _, place, release, _ in sides):
        _, place, release, last = sides[-1]
        if not (place or release):
            case = last
            sides.pop()
            if all(own for *_, own in sides):
                raise UsageError(f"{last}: is no suite, run or release; {_FORM}")
    elif not sides and options.suite is not None:
        sides = [(str(options.suite), options.suite, "", "")]
    if len(sides) not in (1, 2):
        raise UsageError(f"{plural(len(sides), 'case is', 'cases are')} given; {_FORM}")
    suite = options.suite or next((_suite_of(place) for _, place, _, _ in sides if place), None)
    case = case or next((own for _, _, _, own in sides if own), None)
    named = []
    for word, place, release, own in sides:
        of_place = place or suite
        if of_place is None or not (place or release or options.suite):
            raise UsageError(f"{word}: {'is of no suite' if release else 'is no suite, run or release'}; {_FORM}")
        named.append(
            NamedCase(place=of_place, case=own or case or the_case(None, cases_in(of_place), word), release=release)
        )
    return tuple(named)


def _parts(word: str) -> tuple[Path | None, str, str]:
    """Where a case is, its release, and its name, as far as a word says; a file that ends in .toml may be missing."""
    plain = word.removeprefix(TOOLCHAIN_PREFIX)
    for where, case in ((plain, ""), plain.rpartition(":")[::2]):
        if is_fetched(where):
            return None, f"{TOOLCHAIN_PREFIX}{where}", case
    if is_toolchain(word):
        release, _, case = word.partition(":")
        return None, release, case
    for where, case in ((word, ""), word.partition(":")[::2]):
        if kind_named(where) is not None:
            return None, f"{TOOLCHAIN_PREFIX}{where}", case
        folder = find_folder(where, kind="run")
        if folder.suffix == ".toml" or _is_run(folder) or folder.is_file():
            return folder, "", case
    return None, "", word


def _is_run(place: Path) -> bool:
    return (place / HEADER_FILE).is_file()


def _suite_of(place: Path) -> Path:
    return Path(load_run(place, rounds=False).header.suite) if _is_run(place) else place


def cases_in(place: Path) -> list[str]:
    """The cases of IREE in a run's folder or a suite's file."""
    if _is_run(place):
        return [case.name for case in load_run(place, rounds=False).header.cases if case.peer is None]
    return case_names(place, peers=False)


def the_case(case: str | None, names: Sequence[str], where: object, all_of_them: str = "") -> str:
    """The case that is named, or the only one; `all_of_them` is a command that shows their names."""
    if case is None and len(names) != 1:
        raise UsageError(f"{where}: which case is not said; give it with --case{such_as(names)}")
    if case is not None and case not in names:
        hint = f"; `{all_of_them}` shows them all" if all_of_them else None
        raise UsageError(f"{where}: there is no case {case!r}{did_you_mean(case, names, hint)}")
    return names[0] if case is None else case


def compile_sides(named: Sequence[NamedCase], limits: Limits, progress: Progress) -> tuple[IrSide, ...]:
    """Compile cases, or find their builds in the cache; cases of one suite have one text of each model."""
    found: dict[NamedCase, tuple[Case, Compiled]] = {}
    for place in dict.fromkeys(name.place for name in named):
        here = [name for name in dict.fromkeys(named) if name.place == place]
        if _is_run(place):
            found |= {name: _case_of_run(name, limits, progress) for name in here}
        else:
            found |= _cases_of_suite(place, here, limits, progress)
    columns = [
        [name.case for name in named],
        [found[name][1].toolchain.version for name in named],
        [name.place.name for name in named],
    ]
    telling = [column for column in columns if len(set(column)) > 1] or columns[:1]
    return tuple(
        IrSide(case=found[name][0], name=name.case, label=" of ".join(words), compiled=found[name][1])
        for name, words in zip(named, zip(*telling, strict=True), strict=True)
    )


def _cases_of_suite(
    suite: Path, named: Sequence[NamedCase], limits: Limits, progress: Progress
) -> dict[NamedCase, tuple[Case, Compiled]]:
    toolchains = {name.release: toolchain_named(name.release or None, progress.note) for name in named}
    versions = {toolchain.version: toolchain for toolchain in toolchains.values()}
    for name in named:
        the_case(name.case, case_names(suite), suite, f"harness list {suite}")
    prepared = prepare(
        suite, Selection(patterns=tuple(glob.escape(name.case) for name in named)), tuple(versions.values())
    )
    chosen: dict[NamedCase, Case] = {}
    for name in named:
        release = toolchains[name.release].version
        names = (name.case, f"{name.case}:{release}") if len(prepared.toolchains) > 1 else (name.case,)
        case = chosen[name] = next(case for case in prepared.cases if case.name in names)
        _require_variant(case, suite)
        if case.skip is not None:
            raise CaseError("compile", f"{case.name} is skipped here: {case.skip}")
    prepared = replace(prepared, cases=tuple(chosen.values()))
    artifacts = materialize_models(prepared, limits, progress)
    progress.stage("Compile", len(chosen))
    found = {}
    for name, case in chosen.items():
        artifact = artifacts[case.model]
        if isinstance(artifact, Failure):
            raise CaseError(artifact.stage, f"{case.name}: {artifact.message}", artifact.stderr)
        with writing_the_cache():
            request = request_for(prepared, case, artifact, processor_identity(environment_here()), limits)
            build, _ = BuildCache(cache_root()).compile(request)
        progress.step(case.name)
        if build.failure is not None:
            raise CaseError(build.failure.stage, f"{case.name}: {build.failure.message}", build.failure.stderr)
        found[name] = case, Compiled.of(build, artifact, artifact.mlir, prepared.toolchain_of(case), limits)
    return found


def _require_variant(case: Case, where: Path) -> None:
    if case.peer is not None:
        raise UsageError(f"{where}: {case.name} is run by the peer {case.peer!r}, which has no IR; name another case")


def _case_of_run(named: NamedCase, limits: Limits, progress: Progress) -> tuple[Case, Compiled]:
    folder = named.place
    side = Side(load_run(folder, rounds=False), str(folder))
    cases = {case.name: case for case in side.run.header.cases}
    case = cases[the_case(named.case, [*cases], folder, f"harness report {folder}")]
    _require_variant(case, folder)
    toolchain = toolchains_here([side], progress.note)[side.toolchains[case.toolchain]]
    return case, compiled_in_run(side, case, toolchain, limits)[1]


def compiled_in_run(side: Side, case: Case, toolchain: Toolchain, limits: Limits) -> tuple[Module, Compiled]:
    """A case of a run, as the cache of this machine has what the run compiled."""
    build = side.evidence.builds.get(case.name)
    if build is None or build.module_sha256 is None:
        why = build.failure.message if build is not None and build.failure is not None else case.skip
        raise CaseError("compile", f"{side.label}: {case.name} was not compiled ({why or 'it was left out'})")
    if toolchain.compiler_is_gone:
        what = f"commit {toolchain.revision[:10]}" if toolchain.revision else "it"
        raise ToolchainError(
            f"{side.label}: IREE {case.toolchain} was built again since, and IR comes from the compiler that made the "
            f"module; build {what} again where it was, or name two builds in folders of their own as sides"
        )
    try:
        module = find_module(side, case, toolchain)
    except CacheMiss as error:
        suite = shlex.quote(side.run.header.suite)
        raise RunError(f"{error}; make the run again with `harness run {suite}`") from None
    model = side.evidence.models[case.model]
    return module, Compiled.of(module.build, model, module.mlir, module.loadable.toolchain, limits)


# --- `harness ir`: what one case's IR is at the phases of the compiler, and where that of two differs ---


# Where the compiler's decisions show: the program as it comes in, dispatches, the schedule, and code in dispatches.
TELLING_PHASES = ("input", "flow", "stream", "bufferized", "executable-targets")
_COMPARED_PHASES = tuple(phase for phase in PHASES if phase in (*PROGRAM_PHASES, *EXECUTABLE_PHASES))


def inspect_case(named: NamedCase, options: IrOptions, progress: Progress) -> Inspected:
    """Compile a case, or find it in the cache, and look at its IR: its ops, and as MLIR is asked for its text."""
    check_phases(options.phases)
    limits = compile_limits(options.compile_timeout_s)
    (side,) = compile_sides((named,), limits, progress)
    compiled = side.compiled
    progress.stage("IR", 1)
    with compiled.ir(options.phases or compiled.reached(TELLING_PHASES)) as files:
        counts = count_files(files, toolchain=compiled.toolchain, limits=limits)
        texts = _texts(files, side, options)
    progress.step(side.case.name)
    return Inspected(case=side.case, counts=counts, texts=texts)


def compare_cases(named: Sequence[NamedCase], options: IrOptions, progress: Progress) -> IrComparison:
    """Compile two cases, or find them in the cache, and compare the IR of both at phases that both have."""
    check_phases(options.phases)
    sides = compile_sides(named, compile_limits(options.compile_timeout_s), progress)
    phases = list(options.phases)
    if not phases:
        wanted = dict.fromkeys((*TELLING_PHASES, *_COMPARED_PHASES))
        common = set.intersection(*(set(side.compiled.reached(wanted)) for side in sides))
        phases = [phase for phase in PHASES if phase in common]
    progress.stage("IR", len(sides))
    (base, head), unread = at_readable_phases(
        phases, lambda left: [_look(side, left, options, progress) for side in sides], exactly=bool(options.phases)
    )
    return compare_ir(base, head, unread=unread)


def _look(side: IrSide, phases: Sequence[str], options: IrOptions, progress: Progress) -> ComparedCase:
    compiled, limits = side.compiled, side.compiled.limits
    with compiled.ir(phases) as files:
        counted = {phase: file for phase, file in files.items() if options.phases or phase in TELLING_PHASES}
        compared = ComparedCase(
            name=side.name,
            label=side.label,
            toolchain=compiled.toolchain.version,
            counts=count_files(counted, toolchain=compiled.toolchain, limits=limits),
            parts=read_parts(files, toolchain=compiled.toolchain, limits=limits),
            sizes=compiled.build.sizes,
            texts=_texts(files, side, options),
        )
    progress.step(side.case.name)
    return compared


def _texts(files: dict[str, Path], side: IrSide, options: IrOptions) -> dict[str, str]:
    toolchain, limits = side.compiled.toolchain, side.compiled.limits
    printed = files if options.format == "mlir" else {}
    return {phase: print_ir(file, toolchain=toolchain, limits=limits) for phase, file in printed.items()}
