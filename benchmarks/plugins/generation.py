"""One generation: a fresh process that holds all programs of a group, and prints one JSON line a round.

    python -m benchmarks.plugins.generation job.json

It expects to be held on one core, and BLAS and Halide to be told by their environment to use one thread.
"""

import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import TypeAdapter

from benchmarks.plugins import engines
from benchmarks.plugins.compiled import Module
from benchmarks.plugins.recorded import Round, iree_program, line
from harness.measure.generation import balanced_orders
from harness.measure.worker import Loaded, Session

Array = NDArray[np.float32]

# Calls shorter than this are batched until a turn takes about as long.
_TURN_NS = 50_000_000
# A program that takes so many times as long as the fastest has its turn in the first round only.
_SLOW = 10
# Results agree where no value is further off than this share of the largest. Sums in another order differ by less.
_TOLERANCE = 1e-4


@dataclass(frozen=True, kw_only=True)
class Job:
    """What a generation measures.

    Attributes:
        parameters: Of the builder of the group's models, for the engines beside IREE.
        modules: IREE's; the first is what the others' results are compared with.
        cores: That the process is held on already; IREE's worker asks for them.
    """

    benchmark: engines.Benchmark
    group: str
    generation: int
    rounds: int
    parameters: dict[str, Any]
    modules: tuple[Module, ...]
    cores: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class Timed:
    """A program that was called already, with right results.

    Attributes:
        call: Makes so many calls; nanoseconds that they took.
        calls: In a turn.
        ns: Of one call, roughly.
    """

    call: Callable[[int], int]
    calls: int
    ns: float


def main(job_file: str) -> None:
    """Measure a job."""
    job = TypeAdapter(Job).validate_json(Path(job_file).read_bytes())
    with tempfile.NamedTemporaryFile() as marker:
        session = Session({"uris": ["local-sync"], "flags": [], "cpus": list(job.cores), "marker": marker.name})
        for one in rounds(job, _programs(job, session)):
            sys.stdout.write(line(one))
            sys.stdout.flush()


def rounds(job: Job, programs: Mapping[str, Timed]) -> Iterator[Round]:
    """The rounds of a generation: the turns of a pair of rounds are in a random order, and then in its reverse."""
    fastest = min(one.ns for one in programs.values())
    for number, order in enumerate(balanced_orders(tuple(programs), f"{job.group}/{job.generation}")):
        if number == job.rounds:
            return
        turns = [name for name in order if number == 0 or programs[name].ns < _SLOW * fastest]
        ns = {name: programs[name].call(programs[name].calls) / programs[name].calls for name in turns}
        yield Round(group=job.group, generation=job.generation, round=number, ns=ns)


def _programs(job: Job, session: Session) -> dict[str, Timed]:
    found: dict[str, Timed] = {}
    expected: Array | None = None
    for module in job.modules:
        loaded = Loaded(session, {**asdict(module), "module": module.path, "parameters": {}})
        name = iree_program(module.model, module.variant)
        result = _result(session, loaded)
        expected = result if expected is None else expected
        _require_equal(name, result, expected)
        found[name] = _timed(loaded.call)
    x = np.load(str(job.modules[0].arguments[0]["file"]))
    for program in engines.programs(job.benchmark, job.parameters, x):
        program.run()
        if program.result is not None and expected is not None:
            _require_equal(program.name, program.result(), expected)
        found[program.name] = _timed(partial(_call, program.run))
    return found


def _result(session: Session, loaded: Loaded) -> Array:
    runtime = session.runtime
    results = runtime.VmVariantList(1)
    loaded.context.invoke(loaded.function, loaded.arguments, results)
    view = results.get_as_object(0, runtime.HalBufferView)
    return np.array(runtime.DeviceArray(session.devices[0], view, implicit_host_transfer=True).to_host())


def _require_equal(name: str, result: Array, expected: Array) -> None:
    off = float(np.abs(result - expected).max() / np.abs(expected).max())
    if not off <= _TOLERANCE:
        raise ValueError(f"{name}: its result is off by {off:.1e} of the largest value")


def _timed(call: Callable[[int], int]) -> Timed:
    ns = min(call(1), call(1))  # the first call also maps memory
    return Timed(call=call, calls=max(1, round(_TURN_NS / ns)), ns=ns)


def _call(run: Callable[[], object], calls: int) -> int:
    started = time.perf_counter_ns()
    for _ in range(calls):
        run()
    return time.perf_counter_ns() - started


if __name__ == "__main__":
    main(sys.argv[1])
