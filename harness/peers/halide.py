"""Halide beside IREE: its conv_layer example, which is the channelled convolution, with its own schedule or the best.

`tutorial` is the schedule that chapter H of MLIR's Transform tutorial reproduces: vectors as wide as the machine's, a
register tile of 4 vectors by 5 columns where there are 32 registers, the reduction unrolled by 2. `best` is the fastest
of that family on this machine, found by a trial when a model is made ready for the first time, and kept.
"""

from __future__ import annotations

import importlib.metadata
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Literal

import numpy as np

from harness.cache import read_memo, write_memo
from harness.models.channelled_convolution import Parameters, weights
from harness.peers.forms import missing_package
from harness.peers.halide_convolution import Program, Schedule, compile_convolution, natural_vector, schedules, tutorial
from harness.peers.values import Array, Peer, PeerModel, Ready, Setting

_TRIALS = 5


@dataclass(frozen=True, kw_only=True)
class HalideOptions:
    """See above."""

    schedule: Literal["tutorial", "best"] = "best"


def _refuses(model: PeerModel, _: HalideOptions) -> str | None:
    known = model.builder == "channelled-convolution"
    return None if known else "it is given programs for the builder channelled-convolution only"


def _prepare(model: PeerModel, arguments: Sequence[Array], setting: Setting, options: HalideOptions) -> Ready:
    filter_, bias = weights(Parameters(**model.params))
    x = np.ascontiguousarray(arguments[0], np.float32)
    filter_ = np.ascontiguousarray(filter_.transpose(2, 0, 1, 3))

    def compiled(schedule: Schedule) -> Program:
        return compile_convolution(x, filter_, bias, schedule, parallel=setting.threads > 1)

    vector = natural_vector()
    if options.schedule == "tutorial":
        chosen = tutorial(vector)
    else:
        chosen = _kept_best(schedules(vector), compiled, [*x.shape, *bias.shape], setting)
    program = compiled(chosen)
    return Ready(call=program.run, outputs=lambda: [program.result.copy()])


def _kept_best(
    candidates: Sequence[Schedule],
    compiled: Callable[[Schedule], Program],
    sizes: Sequence[int],
    setting: Setting,
) -> Schedule:
    """The best schedule for these sizes, so that all processes of a run take the same."""
    memo = setting.cache / f"best-{'x'.join(map(str, sizes))}-{setting.threads}-{_version()}.json"
    kept = read_memo(memo)
    for schedule in candidates:
        if asdict(schedule) == kept:
            return schedule
    # Where others work on the same core, a thread's own time says more than the clock on the wall.
    clock = time.process_time_ns if setting.threads == 1 else time.perf_counter_ns
    best = fastest(candidates, [compiled(schedule).run for schedule in candidates], clock)
    write_memo(memo, asdict(best))
    return best


def fastest(
    candidates: Sequence[Schedule], calls: Sequence[Callable[[], object]], clock: Callable[[], int]
) -> Schedule:
    """The schedule whose call has the least time, in turns, after a first call each that is not timed."""
    times = [[_time(call, clock) for call in calls] for _ in range(1 + _TRIALS)][1:]
    least = [min(of_one) for of_one in zip(*times, strict=True)]
    return candidates[least.index(min(least))]


def _time(call: Callable[[], object], clock: Callable[[], int]) -> int:
    started = clock()
    call()
    return clock() - started


def _version() -> str:
    return importlib.metadata.version("halide")


PEER = Peer(
    name="halide",
    title="Halide",
    description="its conv_layer example, for the builder channelled-convolution",
    install="pip install 'iree-harness[halide]'",
    options=HalideOptions,
    missing=partial(missing_package, "halide"),
    version=_version,
    refuses=_refuses,
    prepare=_prepare,
)
