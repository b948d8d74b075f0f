"""What runs on a host, with the host's own toolchains, plugins, peers and cache: each task gives an Answer."""

import functools
import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

from harness.cache import cache_root
from harness.compare.samplers import Module, group_of_row, measure_both, sample_compiles, settings_of_row
from harness.compile import BuildCache, CompileRequest
from harness.errors import CaseError, HarnessError, RunError
from harness.fleet import files
from harness.fleet.files import Item, Message
from harness.fleet.here import doing, host, limits_here, tell_that_it_waits
from harness.fleet.packing import Packed, pack, unpack
from harness.ir.roofline import measure_peak, peak_threads
from harness.measure import Known, last_core
from harness.measure.alone import only_one_measures
from harness.models.materialize import ModelArtifact
from harness.models.model import Model
from harness.peers.peer import AppliedPeer
from harness.process import Limits, give_way, hold_still
from harness.records.case import Case
from harness.records.run import Build, Check, Failure, Round
from harness.stages.context import GivenUp
from harness.stages.measure import (
    Losses,
    Wanted,
    call_group_again,
    distinct,
    run_checks,
    run_generation,
    run_reference,
    runnable_module,
    runnable_peer,
)
from harness.suite.present import why_gone
from harness.text import one_line
from harness.toolchain import Toolchain, find_toolchain
from harness.toolchain.install import DISK_FULL
from harness.verify import AnyRunnable, References, Runnable

_LONGEST = 400
_DISK_IS_FULL = "its disk is full; make room there, or set HARNESS_CACHE or TMPDIR"
_Recorded = TypeVar("_Recorded")


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What came of a task."""

    value: Any = None
    trouble: str = ""  # Why this host could not do it, while another might: a sentence which does not name the host
    items: tuple[Item, ...] = ()  # Files that were made, as they lie in the host's cache
    contents: Mapping[Item, bytes] = field(default_factory=dict)  # Of the small ones among them


def _answering(work: Callable[..., Answer]) -> Callable[..., Answer]:
    """The same function, which says what goes wrong on this host."""

    @functools.wraps(work)
    def answer(*arguments: Any) -> Answer:
        try:
            return work(*arguments)
        except HarnessError as error:
            return Answer(trouble=one_line(str(error))[:_LONGEST])
        except OSError as error:
            if DISK_FULL.search(str(error)):
                return Answer(trouble=_DISK_IS_FULL)
            where = f"{error.filename}: " if error.filename else ""
            return Answer(trouble=f"{where}{error.strerror or error}; make room there, or mend its permissions")
        except MemoryError:
            return Answer(trouble="its memory is full")

    return answer


def _task(work: Callable[..., Answer]) -> Callable[[bytes, tuple[Item, ...]], Answer]:
    """The same function, of what `pack` made of its arguments."""

    @functools.wraps(work)
    def answer(data: bytes, items: tuple[Item, ...]) -> Answer:
        gone = [item.place for item in items if not files.use(item)]
        if gone:
            where = cache_root() / gone[0]
            raise RunError(f"{where} is gone, which was sent here; leave the cache alone while it is used")
        found = work(*unpack(data))
        return replace(found, contents=files.small_ones(found.items))

    return _answering(answer)


# --- Files ---


@_answering
def lacking(items: tuple[Item, ...]) -> Answer:
    """Those of the files that this host lacks."""
    return Answer(value=_lacking(items))


def _lacking(items: tuple[Item, ...]) -> tuple[Item, ...]:
    for item in items:
        files.use(item)
    files.trim_sent()
    return files.lacking_here(items, "the client's machine", "this one")


@_answering
def receive(message: Message, sender: str) -> Answer:
    """Keep files that come, or parts of them, as far as this host lacks them."""
    needed = set(_lacking(tuple({item for item, *_ in message})))
    for item, offset, chunk in message:
        if item in needed:
            files.write_chunk(item, offset, chunk, sender)
    return Answer()


@_answering
def send(item: Item, offset: int, size: int) -> Answer:
    """A part of a file of this host's cache."""
    return Answer(value=files.read_chunk(item, offset, size))


# --- Cases ---


@_task
def compile_case(request: CompileRequest, key: str) -> Answer:
    """Compile a case, or take its build from this host's cache; its value is the build, and what was printed."""
    with doing("compile", request.case.name), give_way():
        limited = replace(request, limits=limits_here(request.limits))
        build, stderr = BuildCache(cache_root()).compile(limited, key)
    if build.failure is None:
        return Answer(value=(build, stderr), items=files.build_items(build))
    if DISK_FULL.search(f"{build.failure.message} {stderr}"):
        return Answer(trouble=_DISK_IS_FULL)
    return Answer(value=(build, stderr))


@dataclass(frozen=True, kw_only=True)
class GroupTask:
    """What a host needs to know of a group whose cases are compiled."""

    cases: tuple[Case, ...]  # Those that are alive, in the plan's order; their environment is the host's
    model: Model
    artifact: ModelArtifact
    builds: Mapping[str, Build]  # By case; of peers there are none
    toolchains: Mapping[str, Toolchain]  # By version
    peers: Mapping[str, AppliedPeer]  # By label
    compile_limits: Limits
    call_timeout_s: float
    given_up: GivenUp  # What is not tried since another case timed out
    checks: Mapping[str, Check]  # That were done, by case

    @property
    def group(self) -> str:
        """Its name."""
        return self.cases[0].group


@contextmanager
def _runnable(task: GroupTask) -> Iterator[tuple[list[AnyRunnable], Path]]:
    """The cases, ready to run, and a folder for the time."""
    with tempfile.TemporaryDirectory(prefix="harness-fleet-", ignore_cleanup_errors=True) as scratch:
        runnable: list[AnyRunnable] = []
        for number, case in enumerate(task.cases):
            if case.peer is not None:
                runnable.append(runnable_peer(case, task.peers[case.variant], task.model, task.artifact))
            else:
                toolchain, folder = task.toolchains[case.toolchain], Path(scratch) / str(number)
                runnable.append(runnable_module(case, task.builds[case.name], task.artifact, toolchain, folder))
        yield runnable, Path(scratch)


@contextmanager
def _alone() -> Iterator[None]:
    """Nothing else of the harness computes on this host; another harness on it is waited for."""
    with ExitStack() as waits:

        def wait(_: str) -> None:
            waits.enter_context(doing("wait", "for another harness that measures there"))
            tell_that_it_waits()

        with only_one_measures(wait), hold_still():
            waits.close()
            yield


@_task
def check_group(task: GroupTask, again: bool) -> Answer:
    """Check the cases of a group; those of baselines again where others need their outputs.

    Where nothing will be timed, a later call of each case is held against its first `again`. Its value are checks, and
    cases that are lost.
    """
    with doing("check", task.group), _runnable(task) as (runnable, scratch):
        open_cases = {item.case.name for item in runnable if item.case.name not in task.checks}
        wanted = [
            item
            for item in runnable
            if item.case.name in open_cases
            or (item.case.baseline and open_cases and task.checks[item.case.name].failure is None)
        ]
        references = References(
            models={task.model.name: task.model},
            scratch=scratch,
            compile_limits=limits_here(task.compile_limits),
            call_limits=limits_here(Limits(seconds=task.call_timeout_s)),
        )
        done = frozenset(task.checks)
        found = [check for check in run_checks(wanted, done, references, task.given_up) if check.case not in done]
        checks = {**task.checks, **{check.case: check for check in found}}
        right = distinct([item for item in runnable if checks[item.case.name].failure is None]) if again else []
        lost = tuple(call_group_again(task.group, right, checks, task.call_timeout_s)) if right else ()
        if lost or any(check.failure is not None for check in found):
            _require_device(task.cases[0])
    kept = sorted({output.file for check in found for output in check.outputs})
    return Answer(value=(tuple(found), lost), items=tuple(map(files.item_of, kept)))


@_task
def ask_reference(task: GroupTask, asked: Collection[str], toolchain: Toolchain | None) -> Answer:
    """What iree-benchmark-module says of some cases, and what the processors reach if a toolchain is there for that.

    The peak is with as many threads as the cases' device has, and None where it has others than processors too.
    """
    with _alone(), doing("measure", task.group), _runnable(task) as (runnable, _):
        compiled = [item for item in runnable if isinstance(item, Runnable) and item.case.name in asked]
        found = tuple(_of_this_host(run_reference(item, task.call_timeout_s)) for item in compiled)
        if any(reference.failure is not None for reference in found):
            _require_device(task.cases[0])
        case, peak = task.cases[0], None
        threads = peak_threads(case)
        if toolchain is not None and threads is not None:
            cache = cache_root() / "peaks"
            measured = measure_peak(case.device, threads, toolchain, host_cpu=host().host_cpu, cache=cache)
            peak = _of_this_host(measured)
        return Answer(value=(found, peak))


@_task
def measure(task: GroupTask, wanted: Wanted) -> Answer:
    """Measure one generation of a group; its value are rounds, and losses in their place among them."""
    with _alone(), doing("measure", task.group), _runnable(task) as (runnable, _):
        results: list[Round | Losses] = []
        for result in run_generation(wanted, runnable, task.checks, task.given_up):
            of_here = _of_this_host(result) if isinstance(result, Round) else tuple(map(_of_this_host, result))
            results.append(of_here)
        if any(not isinstance(result, Round) for result in results):
            _require_device(task.cases[0])
        return Answer(value=results)


def _of_this_host(record: _Recorded) -> _Recorded:
    """A record with this host's name."""
    named: _Recorded = replace(record, host=host().name)  # type: ignore[type-var]
    return named


def _require_device(case: Case) -> None:
    """After a failure, see that the device is still here: else it is the host's, and other hosts may do the case."""
    if why := why_gone(case.uris, find_toolchain(), case.environment):
        raise RunError(f"its {why}")


# --- Rows of a comparison ---


@dataclass(frozen=True, kw_only=True)
class RowTask:
    """A row: both its sides, to be measured in turns, or to be compiled where `limits` says what that may use."""

    name: str
    base: Module
    head: Module
    seed: int = 0  # Of the order of turns
    call_limit_s: float = 0.0  # Seconds after which a turn is stopped
    limits: Limits | None = None

    def packed(self, number: int, known: Mapping[str, Known]) -> Packed:
        """What a generation of it takes."""
        base, head = (_to_send(side, with_program=self.limits is not None) for side in (self.base, self.head))
        return pack(replace(self, base=base, head=head), number, known)


def _to_send(module: Module, *, with_program: bool) -> Module:
    """A side with its arguments' files as paths, so that they go along; its program only where it is compiled."""
    arguments = tuple({**argument, "file": Path(argument["file"])} for argument in module.loadable.arguments)
    sent = replace(module, loadable=replace(module.loadable, arguments=arguments))
    return sent if with_program else replace(sent, mlir=Path(), files=())


def _arrived(module: Module) -> Module:
    arguments = tuple({**argument, "file": str(argument["file"])} for argument in module.loadable.arguments)
    return replace(module, loadable=replace(module.loadable, arguments=arguments))


@dataclass(frozen=True, kw_only=True)
class RowMeasured:
    """What came of a generation of a row."""

    generation: Any  # Of harness.compare.engine
    rounds: tuple[Round, ...] = ()  # In their order
    known: Mapping[str, Known] = field(default_factory=dict)  # What the first one on a host tells the others there


@_task
def measure_row(row: RowTask, number: int, known: Mapping[str, Known]) -> Answer:
    """Measure one generation of a row of a comparison; its value is RowMeasured, or a Failure."""
    base, head = _arrived(row.base), _arrived(row.head)
    rounds: list[Round] = []
    with _alone(), doing("measure", row.name):
        try:
            if row.limits is not None:
                generation = sample_compiles(base, head, last_core(), limits_here(row.limits), number)
            else:
                group, settings = group_of_row(row.name, base, head), settings_of_row(row.seed, row.call_limit_s)
                generation, known = measure_both(group, number, settings, known, rounds.append)
        except CaseError as error:
            _require_device(row.base.case)
            return Answer(value=Failure.of(error))
    named = tuple(map(_of_this_host, rounds))
    return Answer(value=RowMeasured(generation=_of_this_host(generation), rounds=named, known=known))
