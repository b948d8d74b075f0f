"""What runs on a host, with the host's own toolchains, plugins, peers and cache: each task gives an Answer."""

import functools
import tempfile
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from harness.cache import cache_root
from harness.compare.samplers import Module, group_of_row, measure_both, sample_compiles, settings_of_row
from harness.compile import BuildCache, CompileRequest
from harness.errors import CaseError, HarnessError, RunError
from harness.fleet import packing, processes
from harness.fleet.packing import Item, Packed, build_items, item_of, pack, read_chunk, small_ones, unpack, write_chunk
from harness.fleet.processes import limits_here
from harness.ir.roofline import measure_peak, peak_threads
from harness.machine.environment import processor_identity
from harness.measure import Calibration, last_core
from harness.measure.session import only_one_measures
from harness.models.materialize import ModelArtifact
from harness.models.model import Model
from harness.peers.peer import AppliedPeer
from harness.process import Limits, give_way, hold_still
from harness.records.case import Case
from harness.records.run import Build, Check, Failure, Round
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
from harness.stages.prepare import GivenUp
from harness.suite.devices import why_gone
from harness.text import one_line
from harness.toolchain import Toolchain, find_toolchain
from harness.toolchain.install import DISK_FULL
from harness.verify import AnyRunnable, References, Runnable

_LONGEST = 400
_TRIM_EVERY_S = 3600.0


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
        except (HarnessError, OSError, MemoryError) as error:
            return Answer(trouble=one_line(str(error) or type(error).__name__)[:_LONGEST])

    return answer


def _task(work: Callable[..., Answer]) -> Callable[[bytes, tuple[Item, ...], Mapping[Item, bytes]], Answer]:
    """The same function, of what `pack` made of its arguments, and the files that these name."""

    @functools.wraps(work)
    def answer(data: bytes, items: tuple[Item, ...], contents: Mapping[Item, bytes]) -> Answer:
        packing.write_small(contents)
        gone = [item.place for item in items if not packing.use(item)]
        if gone:
            where = cache_root() / gone[0]
            raise RunError(f"{where} is gone, which was sent here; leave the cache alone while it is used")
        packing.trim_sent(int(time.monotonic() // _TRIM_EVERY_S))  # a worker goes on for months
        found = work(*unpack(data))
        return replace(found, contents=small_ones({item: cache_root() / item.place for item in found.items}))

    return _answering(answer)


# --- Files that are too large to go along with a task or an answer ---


@_answering
def lacking(items: tuple[Item, ...]) -> Answer:
    """Those of the files that this host lacks."""
    for item in items:
        packing.use(item)
    return Answer(value=packing.lacking(items))


@_answering
def receive(item: Item, offset: int, chunk: bytes, sender: str) -> Answer:
    """Keep a part of a file that comes."""
    write_chunk(item, offset, chunk, sender)
    return Answer()


@_answering
def send(item: Item, offset: int, size: int) -> Answer:
    """A part of a file of this host's cache."""
    return Answer(value=read_chunk(cache_root() / item.place, offset, size))


# --- Cases ---


@_task
def compile_case(request: CompileRequest, key: str) -> Answer:
    """Compile a case, or take its build from this host's cache; its value is the build, and what was printed."""
    with give_way():
        limited = replace(request, limits=limits_here(request.limits))
        build, stderr = BuildCache(cache_root()).compile(limited, key)
    if build.failure is None:
        return Answer(value=(build, stderr), items=build_items(build))
    if DISK_FULL.search(f"{build.failure.message} {stderr}"):
        return Answer(trouble="its disk is full; make room there, or set HARNESS_CACHE or TMPDIR")
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
    with only_one_measures(lambda _: None), hold_still():
        yield


@_task
def check_group(task: GroupTask, again: bool) -> Answer:
    """Check the cases of a group; those of baselines again where others need their outputs.

    Where nothing will be timed, a later call of each case is held against its first `again`. Its value are checks, and
    cases that are lost.
    """
    with _runnable(task) as (runnable, _):
        open_cases = {item.case.name for item in runnable if item.case.name not in task.checks}
        wanted = [
            item
            for item in runnable
            if item.case.name in open_cases
            or (item.case.baseline and open_cases and task.checks[item.case.name].failure is None)
        ]
        references = References(
            models={task.model.name: task.model},
            compile_limits=limits_here(task.compile_limits),
            call_limits=limits_here(Limits(seconds=task.call_timeout_s)),
        )
        done = frozenset(task.checks)
        found = [check for check in run_checks(wanted, done, references, task.given_up) if check.case not in done]
        checks = {**task.checks, **{check.case: check for check in found}}
        right = distinct([item for item in runnable if checks[item.case.name].failure is None]) if again else []
        lost = tuple(call_group_again(task.cases[0].group, right, checks, task.call_timeout_s)) if right else ()
        if lost or any(check.failure is not None for check in found):
            _require_device(task.cases[0])
    kept = sorted({output.file for check in found for output in check.outputs})
    return Answer(value=(tuple(found), lost), items=tuple(map(item_of, kept)))


@_task
def measure(task: GroupTask, wanted: Wanted | None, asked: Collection[str], toolchain: Toolchain | None) -> Answer:
    """Measure one generation of a group, or none.

    Before that, ask what iree-benchmark-module says of some cases, and what the processors reach if a toolchain is
    there for that: the peak is with as many threads as the cases' device has, and None where it has others than
    processors too. Its value are references, the peak, and rounds with losses in their place among them.
    """
    with _alone(), _runnable(task) as (runnable, _):
        compiled = [item for item in runnable if isinstance(item, Runnable) and item.case.name in asked]
        references = tuple(run_reference(item, task.call_timeout_s) for item in compiled)
        case, peak = task.cases[0], None
        threads = peak_threads(case)
        if toolchain is not None and threads is not None:
            host_cpu = processor_identity(processes.this_host.offer.environment)
            peak = measure_peak(case.device, threads, toolchain, host_cpu=host_cpu, cache=cache_root() / "peaks")
        results: list[Round | Losses] = []
        if wanted is not None:
            results.extend(run_generation(wanted, runnable, task.checks, task.given_up))
        is_lost = any(not isinstance(result, Round) for result in results)
        if is_lost or any(reference.failure is not None for reference in references):
            _require_device(case)
        return Answer(value=(references, peak, results))


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

    def packed(self, number: int, known: Mapping[str, Calibration], environment: Mapping[str, str]) -> Packed:
        """What a generation of it takes on a host; programs go along only where they are compiled."""

        def there(side: Module) -> Module:
            case = replace(side.case, environment=dict(environment))
            return replace(side, case=case) if self.limits else replace(side, case=case, mlir=Path(), files=())

        return pack(replace(self, base=there(self.base), head=there(self.head)), number, known)


@_task
def measure_row(row: RowTask, number: int, known: Mapping[str, Calibration]) -> Answer:
    """Measure a generation of a row; its value is a Failure, or the generation, its rounds, and what fills a turn."""
    rounds: list[Round] = []
    with _alone():
        try:
            if row.limits is not None:
                generation = sample_compiles(row.base, row.head, last_core(), limits_here(row.limits), number)
            else:
                group = group_of_row(row.name, row.base, row.head)
                settings = settings_of_row(row.seed, row.call_limit_s)
                generation, known = measure_both(group, number, settings, known, rounds.append)
        except CaseError as error:
            _require_device(row.base.case)
            return Answer(value=Failure.of(error))
    return Answer(value=(generation, tuple(rounds), known))
