"""How long a verdict on long calls takes: with rounds in pairs and a warm-up each time, and as the harness does it."""

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from benchmarks.documents import replace_between
from benchmarks.verdicts.programs import Workload, matmul_loop, prepare
from harness.compare.engine import BASE, HEAD
from harness.compare.samplers import GENERATION_S, LONG_ROUND_S, LatencySampler
from harness.measure import Group, Settings, last_core, measure_generation
from harness.measure.session import only_one_measures
from harness.report.markdown import blocks, table
from harness.stats.rule import Rule, confirmation_size
from harness.toolchain import Toolchain

BEGIN, END = "<!-- made by `python -m benchmarks.verdicts --long`: begin -->", "<!-- --long: end -->"
SECONDS = (0.2, 1.0, 5.0)
# Iterations of the loop of larger matmuls that take a second.
_A_SECOND = 2250
_GENERATIONS = 4
_SLOWER = 1.1


def write_long_calls(document: Path, toolchain: Toolchain) -> None:
    """Measure a few generations of each length, and replace what stands between the document's marks."""
    rule = Rule()
    needed = rule.first_look + confirmation_size(rule.first_look, rule)
    rows = []
    for seconds in SECONDS:
        took = [_took(seconds, toolchain, plainly=plainly) for plainly in (True, False)]
        rows.append(
            [
                f"{seconds:g} s, head {_SLOWER:g} times as long",
                *(f"{one.each_s:.1f}" for one in took),
                *(f"{one.first_s + (needed - 1) * one.each_s:.0f}" for one in took),
            ]
        )
    heads = ["one call", "s a generation, before", "now", f"s to a verdict ({needed} generations), before", "now"]
    replace_between(document, BEGIN, END, blocks(table(heads, rows, numbers=[False, True, True, True, True])))


@dataclass(frozen=True, kw_only=True)
class _Took:
    """Seconds of the first generation, and the mean of later ones."""

    first_s: float
    each_s: float


def _took(seconds: float, toolchain: Toolchain, *, plainly: bool) -> _Took:
    """A few generations of calls that take so long; plainly: two rounds each, warmed up each time."""
    workload = Workload(
        name="calls", title="", mlir=matmul_loop(256), iterations=round(seconds * _A_SECOND), shape=(256, 256)
    )
    group = Group(
        name=f"calls of {seconds:g} s",
        uri=workload.uri,
        cases=(prepare(workload, 0.0, BASE, toolchain), prepare(workload, _SLOWER - 1, HEAD, toolchain)),
        cpus=last_core(),
    )
    settings = Settings(seconds=GENERATION_S, long_round_s=None if plainly else LONG_ROUND_S)
    with only_one_measures(print):
        if plainly:
            return _timed(lambda number: list(measure_generation(group, number, settings)))
        return _timed(LatencySampler(group, settings, lambda _: None))


def _timed(generation: Callable[[int], object]) -> _Took:
    took = []
    for number in range(_GENERATIONS):
        started = time.monotonic()
        generation(number)
        took.append(time.monotonic() - started)
    return _Took(first_s=took[0], each_s=statistics.fmean(took[1:]))
