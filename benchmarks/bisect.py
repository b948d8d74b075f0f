"""How often a bisection names the right step, and what it takes: simulated histories with measured noise.

    .venv/bin/python -m benchmarks.bisect      (two minutes; writes the tables of docs/bisect.md)

Each measurement goes through the engine of `harness compare` on simulated generations, whose noise has the widths that
were measured (docs/statistics.md). Beside it, `git bisect` as people use it: one comparison a step, of one pair of
processes, good or bad by which half of the known difference it falls into. Seeded, so that everybody gets the same.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

import numpy as np

from benchmarks.documents import replace_between
from benchmarks.verdicts.recorded_runs import OUTLIERS, WIDTHS
from benchmarks.verdicts.words import percent
from harness.bisect.judged import measured, rule_of_search
from harness.bisect.search import Findings, Measured, Unusable, find_steps, middle
from harness.compare.engine import Generation, Task, decide
from harness.report.markdown_text import blocks, table

ROOT = Path(__file__).parents[1]
BEGIN, END = "<!-- made by `python -m benchmarks.bisect`: begin -->", "<!-- benchmarks.bisect: end -->"

SIZES = (16, 64, 256)
STEPS = (0.02, 0.05, 0.20, 1.00)
FLOOR = 0.01
HISTORIES = 200
# Of a generation, and of a row's budget, in seconds.
GENERATION_S, BUDGET_S = 0.45, 60.0


@dataclass(frozen=True, kw_only=True)
class History:
    """What the positions of a history really take; None: it cannot be measured."""

    levels: tuple[float | None, ...]

    @property
    def steps(self) -> list[tuple[int, int]]:
        """Neighbours that differ, of those that can be measured."""
        there = [place for place, level in enumerate(self.levels) if level is not None]
        return [(one, two) for one, two in pairwise(there) if self.levels[one] != self.levels[two]]


@dataclass
class Noisy:
    """Measures a history's positions beside each other, and counts what that takes."""

    history: History
    rng: np.random.Generator
    generations: int = 0
    widths: tuple[float, float] = field(init=False)

    def __post_init__(self) -> None:
        self.widths = WIDTHS[self.rng.integers(0, len(WIDTHS))]

    def log_ratio(self, base: int, head: int) -> float | None:
        """Of one generation of both; None where one cannot be measured."""
        below, above = self.history.levels[base], self.history.levels[head]
        if below is None or above is None:
            return None
        self.generations += 1
        robust, deviation = self.widths
        far = math.sqrt(max((deviation / robust) ** 2 - (1 - OUTLIERS), OUTLIERS) / OUTLIERS)
        off = far if self.rng.random() < OUTLIERS else 1.0
        return math.log(above / below) + float(self.rng.normal(0, robust)) * off

    def measure(self, base: int, head: int, floor: float) -> Measured | Unusable:
        """By the engine, as `harness bisect` does it."""
        if self.history.levels[base] is None or self.history.levels[head] is None:
            return Unusable(reason="it does not compile")

        def sample(_: int) -> Generation:
            log = self.log_ratio(base, head)
            assert log is not None
            return Generation(log_ratio=log, base=1.0, head=math.exp(log), rounds=20, seconds=GENERATION_S)

        rule = rule_of_search(len(self.history.levels), floor)
        (outcome,) = decide([Task(name="row", sample=sample, rule=rule, budget_s=BUDGET_S)], lambda *_: None)
        return measured(outcome)


def by_single_comparisons(noisy: Noisy) -> list[tuple[int, int]]:
    """The step that `git bisect` names, with one pair of processes a step."""
    last = len(noisy.history.levels) - 1
    whole = noisy.log_ratio(0, last)
    if whole is None:
        return []
    good, bad, passed_over = 0, last, set[int]()
    while (place := middle(good, bad, passed_over)) is not None:
        log = noisy.log_ratio(0, place)
        if log is None:
            passed_over.add(place)
        elif abs(log) * 2 > abs(whole) and log * whole > 0:
            bad = place
        else:
            good = place
    return [(good, bad)]


@dataclass(frozen=True, kw_only=True)
class Kind:
    """A kind of history, made of a size, a step and chance."""

    name: str
    make: Callable[[int, float, np.random.Generator], History]


def one_step(size: int, step: float, rng: np.random.Generator) -> History:
    """One step somewhere."""
    place = int(rng.integers(1, size))
    return History(levels=tuple(1 + step if at >= place else 1.0 for at in range(size)))


def two_steps(size: int, step: float, rng: np.random.Generator) -> History:
    """Two equal steps."""
    first, second = sorted(rng.choice(np.arange(1, size), size=2, replace=False))
    return History(levels=tuple((1 + step) ** (int(at >= first) + int(at >= second)) for at in range(size)))


def step_and_repair(size: int, step: float, rng: np.random.Generator) -> History:
    """A step, its repair, and another step that stays: the ends differ by the last one."""
    first, repair, last = sorted(rng.choice(np.arange(1, size), size=3, replace=False))
    return History(levels=tuple(1 + step if first <= at < repair or at >= last else 1.0 for at in range(size)))


def with_failures(size: int, step: float, rng: np.random.Generator) -> History:
    """One step, and one position in five that cannot be measured."""
    levels = one_step(size, step, rng).levels
    lost = rng.random(size) < 0.2
    return History(levels=tuple(None if lost[at] and 0 < at < size - 1 else level for at, level in enumerate(levels)))


KINDS = (
    Kind(name="one step", make=one_step),
    Kind(name="two steps of that size", make=two_steps),
    Kind(name="a step, its repair, a step", make=step_and_repair),
    Kind(name="one step, a fifth fails", make=with_failures),
)


def is_right(found: Sequence[tuple[int, int]], history: History) -> bool:
    """Whether all that is named is there, and at least one thing is."""
    return bool(found) and all(step in history.steps for step in found)


def named(findings: Findings) -> list[tuple[int, int]]:
    """The steps that a search named."""
    return [(step.before, step.after) for step in findings.steps]


def line(kind: Kind, size: int, step: float, histories: int) -> list[str]:
    """How often both are right, and what they take."""
    right = wrong = every = theirs_right = ours = theirs = 0
    for seed in range(histories):
        rng = np.random.default_rng([seed, size, round(1000 * step), len(kind.name)])
        history = kind.make(size, step, rng)
        noisy = Noisy(history=history, rng=rng)
        found = named(find_steps(0, size - 1, noisy.measure, FLOOR))
        right += is_right(found, history)
        wrong += any(each not in history.steps for each in found)
        every += found == history.steps
        single = Noisy(history=history, rng=rng)
        single.widths = noisy.widths
        theirs_right += is_right(by_single_comparisons(single), history)
        ours, theirs = ours + noisy.generations, theirs + single.generations
    shares = [percent(number / histories, 1) for number in (right, wrong, every, theirs_right)]
    return [kind.name, f"{size}", percent(step), *shares, f"{ours / histories:.0f}", f"{theirs / histories:.0f}"]


def render(histories: int = HISTORIES) -> str:
    """The table, as Markdown."""
    heads = [
        "history",
        "releases",
        "step",
        "right",
        "wrong",
        "all steps found",
        "git bisect right",
        "generations",
        "git bisect's",
    ]
    rows = [line(kind, size, step, histories) for kind in KINDS for size in SIZES for step in STEPS]
    return blocks(
        f"{histories} histories a line, seeded. `right`: a step is named, and every one that is named is there; "
        "`wrong`: one is named that is not there; the rest says that it cannot tell. `git bisect right`: with one pair "
        "of processes a step. A generation is a fresh pair of processes and a quarter of a second of turns.",
        table(heads, rows, numbers=[False, *[True] * 8]),
    )


def main() -> None:
    """Simulate, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--document", type=Path, default=ROOT / "docs" / "bisect.md", help="where the table goes")
    parser.add_argument("--histories", type=int, default=HISTORIES, help="a line")
    arguments = parser.parse_args()
    replace_between(arguments.document, BEGIN, END, render(arguments.histories))


if __name__ == "__main__":
    main()
