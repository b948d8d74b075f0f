"""What a simulated host does instead of compiling and measuring: it waits, and gives made-up records of real sizes.

`install` replaces the tasks of harness.fleet.tasks in a host's own process, and the toolchains that these find. As on a
real host, compilers stand still while something is timed.
"""

import hashlib
import itertools
import json
import random
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from distributed.worker import get_worker
from pydantic import TypeAdapter

from benchmarks.fleet.sizes import COMPILER, RELEASE, Work
from harness.cache import cache_root
from harness.compile import BuildCache, CompileRequest
from harness.compile.iree_compile import MODULE_FILE, compile_command
from harness.fleet import packing, tasks
from harness.fleet.packing import Item, unpack
from harness.fleet.tasks import Answer, GroupTask
from harness.records.case import Case
from harness.records.run import (
    Account,
    Build,
    Check,
    OutputRecord,
    Peak,
    Reference,
    Round,
    Sizes,
    Statistics,
    Turn,
)
from harness.stages.measure import Wanted
from harness.toolchain import Toolchain

COMPILE, CHECK, MEASURE = "compile", "check", "measure"
_BUILD = TypeAdapter(Build)
_STATISTICS = Statistics(
    dispatches=10,
    copies=13,
    fills=5,
    awaits=2,
    submissions=1,
    executables=10,
    transient_bytes=19_796_992,
    constant_bytes=958_464,
    variable_bytes=0,
)


# What hosts find: it is never started.
_TOOLCHAIN = Toolchain(
    version=RELEASE,
    revision="",
    compiler_sha256=COMPILER,
    python=Path(),
    compiler_tools=Path(),
    runtime_tools=Path(),
)


class Machine:
    """A simulated host: what it is at, and the files that it has.

    Args:
        on_disk: Whether its files lie in this process's cache; else many hosts share the process, and each has but a
            note of what its cache would hold.
    """

    def __init__(self, name: str, work: Work, events: Path, *, on_disk: bool) -> None:
        self.name, self.work = name, work
        self._events, self._on_disk = events, on_disk
        self._still = threading.Condition()
        self._times_something = False
        self._has: set[Item] = set()

    @contextmanager
    def compiling(self, seconds: float) -> Iterator[None]:
        """So many seconds of a compiler that stands still while something is timed."""
        with self._noted(COMPILE):
            with self._still:
                left = seconds
                while left > 0:
                    while self._times_something:
                        self._still.wait()
                    began = time.monotonic()
                    self._still.wait(left)
                    left -= time.monotonic() - began
            yield

    @contextmanager
    def checking(self, seconds: float) -> Iterator[None]:
        """So many seconds beside the compilers."""
        with self._noted(CHECK):
            time.sleep(seconds)
            yield

    def measures(self, seconds: float) -> None:
        """So many seconds alone."""
        with self._noted(MEASURE):
            self._hold_still(True)
            time.sleep(seconds)
            self._hold_still(False)

    def _hold_still(self, times_something: bool) -> None:
        with self._still:
            self._times_something = times_something
            self._still.notify_all()

    @contextmanager
    def _noted(self, what: str) -> Iterator[None]:
        began = time.time()
        yield
        line = json.dumps({"host": self.name, "what": what, "began": began, "ended": time.time()})
        with self._events.open("a") as events:
            events.write(f"{line}\n")

    def keep(self, place: str, data: bytes) -> Item:
        """Have a file that was made here."""
        item = Item(place=place, sha256=hashlib.sha256(data).hexdigest(), size=len(data))
        if self._on_disk:
            path = cache_root() / place
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        else:
            self._has.add(item)
        return item

    def lacking(self, items: tuple[Item, ...]) -> tuple[Item, ...]:
        """Those that it lacks."""
        return tuple(item for item in items if item not in self._has)

    def receive(self, items: Iterable[Item]) -> None:
        """Files have come."""
        self._has.update(items)

    def receive_small(self, contents: Mapping[Item, bytes]) -> None:
        """Files have come along with a task."""
        if self._on_disk:
            packing.write_small(contents)
        self.receive(contents)


_machines: dict[str, Machine] = {}
_make: Callable[[str], Machine] | None = None
_lock = threading.Lock()


def install(work: Work, events: Path, *, on_disk: bool) -> None:
    """Simulate the hosts of this process from here on.

    Args:
        events: Gets a line of JSON for each piece of work that has come to its end.
        on_disk: As of a Machine; files are then sent and kept by the harness's own tasks.
    """
    global _make
    _make = partial(Machine, work=work, events=events, on_disk=on_disk)
    replaced = [compile_case, check_group, measure]
    for task in replaced if on_disk else [*replaced, lacking, receive]:
        setattr(tasks, task.__name__, task)
    changed: Any = packing
    changed.get_toolchains = lambda *_, **__: (_TOOLCHAIN,)


def here() -> Machine:
    """The host on which a task runs."""
    name = str(get_worker().name)
    with _lock:
        assert _make is not None
        if name not in _machines:
            _machines[name] = _make(name)
        return _machines[name]


def random_bytes(seed: str, size: int) -> bytes:
    """Bytes that nothing compresses, always the same of a seed."""
    return random.Random(seed).randbytes(size)  # noqa: S311 (no secret)


def _with(contents: Mapping[Item, bytes]) -> Machine:
    """The host on which a task runs, with the small files that came along with it."""
    machine = here()
    machine.receive_small(contents)
    return machine


# --- the tasks, by the names that they have in harness.fleet.tasks ---


def lacking(items: tuple[Item, ...]) -> Answer:
    """As the task of that name."""
    return Answer(value=here().lacking(items))


def receive(item: Item, offset: int, chunk: bytes, sender: str) -> Answer:  # noqa: ARG001 (the task's signature)
    """As the task of that name."""
    here().receive([item])
    return Answer()


def compile_case(data: bytes, items: tuple[Item, ...], contents: Mapping[Item, bytes]) -> Answer:  # noqa: ARG001
    """As the task of that name."""
    machine = _with(contents)
    request: CompileRequest
    request, key = unpack(data)
    seconds = machine.work.compile_of(request.case.name)
    module = random_bytes(key, machine.work.module_bytes)
    with machine.compiling(seconds):
        build = Build(
            case=request.case.name,
            command=compile_command(request.case.compile_flags),
            cache_key=key,
            compile_ns=round(seconds * 1e9),
            peak_rss_bytes=150_933_504,
            module_sha256=hashlib.sha256(module).hexdigest(),
            sizes=Sizes(
                module_bytes=machine.work.module_bytes,
                vm_bytes=9_020,
                constant_bytes=machine.work.module_bytes - 23_236,
                dispatch_bytes={"model_linked_embedded_elf_x86_64.so": 14_216},
            ),
            statistics=_STATISTICS,
            outputs=1,
        )
        folder = BuildCache(cache_root()).folder(key).relative_to(cache_root()).as_posix()
        made = {MODULE_FILE: module, "stderr.txt": b"", BuildCache.FACTS_FILE: _BUILD.dump_json(build)}
        kept = {machine.keep(f"{folder}/{name}", data): data for name, data in made.items()}
    return Answer(value=(build, ""), items=tuple(kept), contents=kept)


def check_group(data: bytes, items: tuple[Item, ...], contents: Mapping[Item, bytes]) -> Answer:  # noqa: ARG001
    """As the task of that name."""
    machine = _with(contents)
    task: GroupTask
    task, _ = unpack(data)
    cases = [case for case in task.cases if case.name not in task.checks]
    with machine.checking(machine.work.check_s * len(cases)):
        outputs = {case.name: random_bytes(case.name, machine.work.output_bytes) for case in cases}
        kept = {name: machine.keep(_place_of_output(name), output) for name, output in outputs.items()}
    checks = tuple(
        Check(
            case=case.name,
            against=task.cases[0].name,
            command=("iree-run-module", "--module=module.vmfb", "--device=local-sync", "--function=main"),
            relative_tolerance=1e-4,
            absolute_tolerance=1e-5,
            max_absolute=3.1e-6,
            max_relative=2.2e-6,
            outputs=(OutputRecord(file=kept[case.name].place),),
            other_inputs=True,
        )
        for case in cases
    )
    made = {kept[name]: output for name, output in outputs.items()}
    return Answer(value=(checks, ()), items=tuple(made), contents=made)


def _place_of_output(case: str) -> str:
    return f"outputs/{hashlib.sha256(case.encode()).hexdigest()[:32]}.npy"


def measure(data: bytes, items: tuple[Item, ...], contents: Mapping[Item, bytes]) -> Answer:  # noqa: ARG001
    """As the task of that name."""
    machine = _with(contents)
    task: GroupTask
    wanted: Wanted | None
    asked: set[str]
    task, wanted, asked, toolchain = unpack(data)
    machine.measures(machine.work.reference_s * len(asked) + machine.work.peak_s * (toolchain is not None))
    references = tuple(
        Reference(
            case=name,
            command=("iree-benchmark-module", "--module=module.vmfb", "--device=local-sync", "--function=main"),
            real_time_ns=(1.01e8, 1.02e8, 1.0e8),
            host_peak_bytes=20_000_000,
            device_peak_bytes=0,
            load_1min=0.5,
        )
        for name in sorted(asked)
    )
    device = task.cases[0].device
    peak = Peak(device=device, threads=1, operations_per_s=9e10, bytes_per_s=2e10)
    results = [] if wanted is None else _rounds(task, wanted, machine)
    return Answer(value=(references, None if toolchain is None else peak, results))


def _rounds(task: GroupTask, wanted: Wanted, machine: Machine) -> list[Round]:
    turn_s = machine.work.turn_s
    rounds = max(round(wanted.seconds / (turn_s * len(task.cases))), 1)
    started_ns = time.time_ns()
    machine.measures(machine.work.start_s + rounds * turn_s * len(task.cases))
    return [
        Round(
            group=wanted.group,
            generation=wanted.generation,
            round=number,
            started_unix_ns=started_ns,  # of the whole generation: tells two attempts at it apart
            turns=tuple(_turn(case, turn_s) for case in task.cases),
        )
        for number in itertools.islice(itertools.count(wanted.first_round), rounds)
    ]


def _turn(case: Case, turn_s: float) -> Turn:
    wall_ns = round(turn_s * 1e9)
    return Turn(
        case=case.name,
        calls=1,
        wall_ns=wall_ns,
        cpu_ns=wall_ns,
        counters={"instructions": 300_123_456, "cycles": 150_123_456, "cache_misses": 12_345, "branch_misses": 1_234},
        account=Account(
            on_calling_thread=True,
            thread_ns=wall_ns,
            delayed_ns=1_234,
            voluntary=0,
            involuntary=1,
            minor_faults=12,
            major_faults=0,
            core=1,
        ),
    )
