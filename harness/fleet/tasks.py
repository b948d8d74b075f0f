"""What runs on a host: functions of an order, with the host's own toolchains, plugins, peers and cache.

Each gives what came of it, or Trouble: why this host could not do it, while another might.
"""

from __future__ import annotations

import functools
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from harness.cache import cache_root, environments_root
from harness.compare.samplers import Module, group_of_row, measure_both, sample_compiles, settings_of_row
from harness.compile import BuildCache, CompileRequest
from harness.errors import CaseError, HarnessError, RunError
from harness.fleet import files
from harness.fleet.files import Item, unpack
from harness.fleet.here import doing, host, limits_here, tell_that_it_waits
from harness.fleet.orders import (
    Checked,
    Compiled,
    CompileOrder,
    GroupOrder,
    LookOrder,
    Measured,
    NamedPlugin,
    Trouble,
)
from harness.fleet.row_orders import RowMeasured, RowModule, RowOrder
from harness.ir.roofline import measure_peak, peak_threads
from harness.measure import Known, last_core
from harness.measure.alone import only_one_measures
from harness.peers.peer import apply_peer
from harness.plugins import Applied, apply_plugin
from harness.process import Limits, give_way, hold_still
from harness.records.case import Case
from harness.records.run import Failure, Lost, Peak, Reference, Round, ToolchainRecord
from harness.stages.check import run_checks, run_reference, runnable_module, runnable_peer
from harness.stages.count import Found, look_at
from harness.stages.ir import Compiled as CompiledCase
from harness.stages.measure import Wanted, call_group_again, run_generation
from harness.suite.present import why_gone
from harness.text import one_line
from harness.toolchain import Toolchain, find_toolchain, get_toolchains
from harness.toolchain.install import DISK_FULL
from harness.verify import AnyRunnable, References, Runnable

_P = ParamSpec("_P")
_T = TypeVar("_T")
_LONGEST = 400
_DISK_IS_FULL = "its disk is full; make room there, or set HARNESS_CACHE or TMPDIR"


def _answering(work: Callable[_P, _T]) -> Callable[_P, _T | Trouble]:
    """The same function, which gives Trouble where it would raise what is the host's."""

    @functools.wraps(work)
    def answer(*args: _P.args, **kwargs: _P.kwargs) -> _T | Trouble:
        try:
            return work(*args, **kwargs)
        except HarnessError as error:
            return Trouble(message=one_line(str(error))[:_LONGEST])
        except OSError as error:
            if DISK_FULL.search(str(error)):
                return Trouble(message=_DISK_IS_FULL)
            where = f"{error.filename}: " if error.filename else ""
            return Trouble(message=f"{where}{error.strerror or error}; make room there, or mend its permissions")
        except MemoryError:
            return Trouble(message="its memory is full")

    return answer


@_answering
def lacking(items: tuple[Item, ...]) -> tuple[Item, ...]:
    """Those of the files that this host lacks."""
    return _lacking(items)


def _lacking(items: tuple[Item, ...]) -> tuple[Item, ...]:
    for item in items:
        files.use(item)
    files.trim_sent()
    return files.lacking_here(items, "the asker's machine", "this one")


@_answering
def receive(item: Item, offset: int, chunk: bytes, sender: str) -> None:
    """Keep a part of a file."""
    files.write_chunk(item, offset, chunk, sender)


@_answering
def receive_small(contents: Mapping[Item, bytes], sender: str) -> None:
    """Keep several files that come whole, those that this host lacks."""
    for item in _lacking(tuple(contents)):
        files.write_chunk(item, 0, contents[item], sender)


@_answering
def send(item: Item, offset: int, size: int) -> bytes:
    """A part of a file of this host's cache."""
    return files.read_chunk(item, offset, size)


@_answering
def compile_case(order: CompileOrder) -> Compiled | Trouble:
    """Compile a case, or take its build from this host's cache."""
    order, flag_files = unpack(replace(order, flag_files={})), order.flag_files
    here = {theirs: str(cache_root() / ours) for theirs, ours in flag_files.items()}
    cache = BuildCache(cache_root())
    with doing("compile", order.case.name), give_way():
        build = cache.find(order.key, order.case.name)
        stderr = ""
        if build is None:
            _require_files(order.files)
            request = CompileRequest(
                case=replace(order.case, compile_flags=_renamed(order.case.compile_flags, here)),
                toolchain=_toolchain(order.toolchain),
                model=order.model,
                model_sha256=order.model_sha256,
                function=order.function,
                host_cpu=order.host_cpu,
                limits=limits_here(order.limits),
                plugins=tuple(_plugin(plugin) for plugin in order.plugins),
                arranged=order.arranged,
            )
            build, stderr = cache.compile(request, order.key)
            if build.failure is not None and DISK_FULL.search(f"{build.failure.message} {stderr}"):
                return Trouble(message=_DISK_IS_FULL)
        theirs = {ours: their for their, ours in here.items()}
        build = replace(build, command=_renamed(build.command, theirs))
        items = () if build.failure is not None else files.build_items(order.key, build.module_sha256)
        return Compiled(build=build, stderr=stderr, items=items, contents=files.small_ones(items))


def _renamed(flags: tuple[str, ...], names: Mapping[str, str]) -> tuple[str, ...]:
    """Flags in which files have the names that they have on another machine."""

    def renamed(flag: str) -> str:
        name, equals, value = flag.partition("=")
        return f"{name}{equals}{names.get(value, value)}"

    return tuple(renamed(flag) for flag in flags)


@_answering
def look(order: LookOrder) -> Found:
    """Count what a build's IR has."""
    _require_files(order.files)
    order = unpack(order)
    compiled = CompiledCase(
        build=order.build,
        mlir=order.model,
        shapes=order.shapes,
        toolchain=_toolchain(order.toolchain),
        limits=limits_here(order.limits),
    )
    with doing("compile", f"{order.build.case} once more for its IR"), give_way():
        return look_at(compiled, order.wanted, storage=order.storage)


@_answering
def check_group(order: GroupOrder) -> Checked:
    """Check the cases of a group; those of baselines again where others need their outputs."""
    order = unpack(order)
    with doing("check", order.group), _runnable(order) as (runnable, scratch):
        open_cases = {item.case.name for item in runnable if item.case.name not in order.checks}
        wanted = [
            item
            for item in runnable
            if item.case.name in open_cases
            or (item.case.baseline and open_cases and order.checks[item.case.name].failure is None)
        ]
        references = References(
            models={order.model.name: order.model},
            scratch=scratch,
            compile_limits=limits_here(order.compile_limits),
            call_limits=limits_here(Limits(seconds=order.call_timeout_s)),
        )
        done = frozenset(order.checks)
        found = [check for check in run_checks(wanted, done, references, order.given_up) if check.case not in done]
        if any(check.failure is not None for check in found):
            _require_device(order.cases[0])
    kept = {output.file for check in found for output in check.outputs}
    items = tuple(files.item_of(file) for file in sorted(kept))
    return Checked(checks=tuple(found), items=items, contents=files.small_ones(items))


@_answering
def call_again(order: GroupOrder) -> tuple[Lost, ...]:
    """Hold a later call of each case against its first, and time nothing."""
    with doing("check", order.group), _runnable(order) as (runnable, _):
        lost = tuple(call_group_again(order.group, runnable, order.checks, order.call_timeout_s))
        if lost:
            _require_device(order.cases[0])
        return lost


@_answering
def ask_reference(order: GroupOrder) -> tuple[Reference, ...]:
    """What iree-benchmark-module says of each of the cases."""
    with _alone(), doing("measure", order.group), _runnable(order) as (runnable, _):
        compiled = [item for item in runnable if isinstance(item, Runnable)]
        found = [replace(run_reference(item, order.call_timeout_s), host=host().name) for item in compiled]
        if any(reference.failure is not None for reference in found):
            _require_device(order.cases[0])
        return tuple(found)


@_answering
def find_peak(case: Case, toolchain: ToolchainRecord) -> Peak | None:
    """What this host's processors reach with as many threads as a case's device has; None where it has others too."""
    threads = peak_threads(case)
    if threads is None:
        return None
    with _alone(), doing("measure", f"peaks of {case.device}"):
        cache = cache_root() / "peaks"
        peak = measure_peak(case.device, threads, _toolchain(toolchain), host_cpu=host().host_cpu, cache=cache)
        return replace(peak, host=host().name)


@_answering
def measure(order: GroupOrder, wanted: Wanted) -> Measured:
    """Measure one generation of a group."""
    with _alone(), doing("measure", order.group), _runnable(order) as (runnable, _):
        results = tuple(map(_of_this_host, run_generation(wanted, runnable, order.checks, order.given_up)))
        if any(not isinstance(result, Round) for result in results):
            _require_device(order.cases[0])
        return Measured(results=results)


def _of_this_host(result: Any) -> Any:
    """A round, or losses, with this host's name."""
    if isinstance(result, tuple):
        return tuple(replace(lost, host=host().name) for lost in result)
    return replace(result, host=host().name)


@_answering
def measure_row(order: RowOrder, number: int, known: Mapping[str, Known]) -> RowMeasured:
    """Measure one generation of a row of a comparison: both its sides, in turns; or one compile of each."""
    with _alone(), doing("measure", order.row):
        base, head = (_module(order, side) for side in (order.base, order.head))
        rounds: list[Round] = []
        try:
            if order.limits is not None:
                generation = sample_compiles(base, head, last_core(), limits_here(order.limits), number)
            else:
                group = group_of_row(order.row, base, head)
                settings = settings_of_row(order.seed, order.call_limit_s)
                generation, known = measure_both(group, number, settings, known, rounds.append)
        except CaseError as error:
            _require_device(order.base.case)
            return RowMeasured(failure=Failure.of(error))
    return RowMeasured(
        generation=replace(generation, host=host().name),
        rounds=tuple(_of_this_host(measured) for measured in rounds),
        known=known,
    )


def _require_device(case: Case) -> None:
    """After a failure, see that the device is still here: else it is the host's, and other hosts may do the case."""
    if why := why_gone(case.uris, find_toolchain(), case.environment):
        raise RunError(f"its {why}")


def _module(order: RowOrder, side: RowModule) -> Module:
    """One side of a row, as it lies here."""
    _require_files(order.files)
    flag_files, here = side.flag_files or {}, unpack(replace(side, flag_files={}))
    command = _renamed(side.build.command, {theirs: str(cache_root() / ours) for theirs, ours in flag_files.items()})
    return here.module(_toolchain(side.toolchain), command)


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


@contextmanager
def _runnable(order: GroupOrder) -> Iterator[tuple[list[AnyRunnable], Path]]:
    """The cases of an order, unpacked or not, ready to run, and a folder for the time."""
    order = unpack(order)
    toolchains = {version: _toolchain(record) for version, record in order.toolchains.items()}
    peers = {label: apply_peer(name, options, label) for label, (name, options) in order.peers.items()}
    _require_files(order.files)
    with tempfile.TemporaryDirectory(prefix="harness-fleet-", ignore_cleanup_errors=True) as scratch:
        runnable: list[AnyRunnable] = []
        for number, case in enumerate(order.cases):
            if case.peer is not None:
                runnable.append(runnable_peer(case, peers[case.variant], order.model, order.artifact))
            else:
                toolchain, folder = toolchains[case.toolchain], Path(scratch) / str(number)
                runnable.append(runnable_module(case, order.builds[case.name], order.artifact, toolchain, folder))
        yield runnable, Path(scratch)


def _require_files(items: tuple[Item, ...]) -> None:
    """Refuse an order whose files somebody has deleted here."""
    gone = [item.place for item in items if not files.use(item)]
    if gone:
        raise RunError(f"{cache_root() / gone[0]} is gone, which was sent here; leave the cache alone while it is used")


def _toolchain(wanted: ToolchainRecord) -> Toolchain:
    """The toolchain of that version, installed here if need be."""
    (toolchain,) = get_toolchains((wanted.version,), root=environments_root())
    if toolchain.compiler_sha256 != wanted.compiler_sha256:
        raise RunError(
            f"its IREE {wanted.version} is another build than the asker's; install the same packages on both"
        )
    return toolchain


def _plugin(wanted: NamedPlugin) -> Applied:
    """The plugin of that name with those options."""
    applied = apply_plugin(wanted.name, wanted.options)
    if NamedPlugin.of(applied) != wanted:
        raise RunError(f"its plugin {wanted.name} is another than the asker's; install the same package on both")
    return applied
