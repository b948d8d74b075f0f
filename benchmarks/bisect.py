"""How often a bisection names the right step, and what it takes: simulated histories with recorded noise.

    .venv/bin/python -m benchmarks.bisect      (some minutes; writes the tables of docs/bisect.md)

Each history is one program's. A measurement of two of its releases is played back from generations that `make verdicts`
recorded of that program against itself: consecutive ones from a random place on, with their noise, their outliers, what
one has in common with the next, and their seconds; the true ratio of the two releases is added. They go through the
search and the engine of `harness bisect`. Beside it, `git bisect` by hand: one process a release, ten turns, bad where
it is nearer to the bad end. Seeded, so that one recording gives everybody the same.
"""

import argparse
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

import numpy as np

from benchmarks.documents import replace_between
from benchmarks.verdicts.others import REPETITIONS
from benchmarks.verdicts.recording import Recorded, read
from benchmarks.verdicts.stream_names import company_of, is_waiting, slowdown_of
from benchmarks.verdicts.trials import as_sampled, by_stream
from benchmarks.verdicts.words import percent
from harness.bisect.search import Measured, Unusable, find_steps, middle
from harness.bisect.trials import JUDGED_OF_SEARCH, as_measured, place_by_an_end, rule_of_measurements
from harness.compare.engine import Generation, Task, decide
from harness.records.bisection import Trial
from harness.report.markdown import blocks, table
from harness.stages.options import BisectOptions
from harness.stats.pairing import FloatArray

ROOT = Path(__file__).parents[1]
BEGIN, END = "<!-- made by `python -m benchmarks.bisect`: begin -->", "<!-- benchmarks.bisect: end -->"

SIZES = (16, 64, 256)
STEPS = (0.02, 0.05, 0.20, 1.00)
FLOOR = 0.01
HISTORIES = 100
# Nothing is played back of shorter streams, since every measurement would be nearly the same.
_LEAST_GENERATIONS = 100

Pair = tuple[int, int]


@dataclass(frozen=True, kw_only=True)
class Program:
    """What was recorded of a program against itself.

    Attributes:
        processes: What one call took in each process, the mean of its first ten turns, in nanoseconds.
    """

    name: str
    generations: tuple[Generation, ...]
    processes: FloatArray


def programs_of(recording: Iterable[Recorded], *, busy: bool) -> tuple[Program, ...]:
    """The programs of a recording.

    Args:
        busy: Whether others computed on all cores meanwhile; else nothing did.
    """
    return tuple(
        Program(
            name=name,
            generations=as_sampled(stream),
            processes=np.array([one.base.ns[:REPETITIONS].mean() for one in stream]),
        )
        for name, stream in by_stream(recording).items()
        if slowdown_of(name)[1] == 0 and not is_waiting(name) and len(stream) >= _LEAST_GENERATIONS
        if bool(company_of(name)) == busy
    )


@dataclass(frozen=True, kw_only=True)
class History:
    """What the positions of a history really take; None: it cannot be measured.

    Attributes:
        stretches: Its ends as a user gives them, each the end that is older and the one that is newer.
    """

    levels: tuple[float | None, ...]
    stretches: tuple[Pair, ...]

    @property
    def steps(self) -> list[Pair]:
        """Neighbours that differ, of those that can be measured."""
        there = [place for place, level in enumerate(self.levels) if level is not None]
        return [(one, two) for one, two in pairwise(there) if self.levels[one] != self.levels[two]]


@dataclass
class Played:
    """Measures a history's positions beside each other from what was recorded, and counts what that takes."""

    history: History
    program: Program
    rng: np.random.Generator
    measurements: int = 0
    generations: int = 0
    seconds: float = 0.0
    started: int | None = None

    def search(self) -> list[Pair]:
        """The steps that `harness bisect` names, each in the order of the history."""
        planned = JUDGED_OF_SEARCH * len(self.history.stretches)
        known: dict[tuple[int, int, float, bool], Measured | Unusable] = {}

        def measure(base: int, head: int, floor: float, whole: float | None) -> Measured | Unusable:
            asked = base, head, floor, whole is None
            if asked not in known:
                known[asked] = self._measured(base, head, floor, whole, planned)
            return known[asked]

        found = [find_steps(first, last, measure, FLOOR) for first, last in self.history.stretches]
        named = [(step.before, step.after) for findings in found for step in findings.steps]
        return sorted((min(step), max(step)) for step in named)

    def _measured(self, base: int, head: int, floor: float, whole: float | None, planned: int) -> Measured | Unusable:
        below, above = self.history.levels[base], self.history.levels[head]
        if below is None or above is None:
            return Unusable(reason="it does not compile")
        recorded, log = self.program.generations, math.log(above / below)
        start = int(self.rng.integers(len(recorded)))

        def sample(number: int) -> Generation:
            one = recorded[(start + number) % len(recorded)]
            self.generations += 1
            self.seconds += one.seconds
            return replace(one, log_ratio=None if one.log_ratio is None else one.log_ratio + log)

        self.measurements += 1
        options, rule = BisectOptions(), rule_of_measurements(planned, floor)
        task = Task(name="row", sample=sample, rule=rule, budget_s=options.row_budget, cap_s=options.row_cap)
        trial = Trial(base="", head="", floor=floor, verdict="inconclusive")
        placed = task if whole is None else place_by_an_end(trial, task, whole)
        if isinstance(placed, Trial):
            return as_measured(placed)
        (outcome,) = decide([placed])
        trial = replace(trial, verdict=outcome.decision, reason=outcome.reason)
        if outcome.estimate is not None:
            estimate = outcome.estimate
            trial = replace(trial, ratio=estimate.ratio, ci_low=estimate.low, ci_high=estimate.high)
        return as_measured(trial)

    def by_hand(self) -> list[Pair]:
        """The steps that `git bisect` names, with one process a release; and it counts these."""
        return [step for first, last in self.history.stretches for step in self._git_bisect(first, last)]

    def _git_bisect(self, first: int, last: int) -> list[Pair]:
        good, bad = self._took(first), self._took(last)
        before, after, passed_over = first, last, set[int]()
        while (place := middle(before, after, passed_over)) is not None:
            if self.history.levels[place] is None:
                passed_over.add(place)
                continue
            took = self._took(place)
            if abs(math.log(took / good)) < abs(math.log(took / bad)):
                before = place
            else:
                after = place
        return [(min(before, after), max(before, after))]

    def _took(self, place: int) -> float:
        level = self.history.levels[place]
        assert level is not None
        processes = self.program.processes
        if self.started is None:  # each process is the next one, as close in time as it can be
            self.started = int(self.rng.integers(len(processes)))
        took = level * float(processes[(self.started + self.measurements) % len(processes)])
        self.measurements += 1
        return took


@dataclass(frozen=True, kw_only=True)
class Kind:
    """A kind of history, made of a size, a step and chance."""

    name: str
    make: Callable[[int, float, np.random.Generator], History]
    busy: bool = False


def _whole(levels: Sequence[float | None]) -> History:
    return History(levels=tuple(levels), stretches=((0, len(levels) - 1),))


def one_step(size: int, step: float, rng: np.random.Generator) -> History:
    """One step somewhere."""
    place = int(rng.integers(1, size))
    return _whole([1 + step if at >= place else 1.0 for at in range(size)])


def two_steps(size: int, step: float, rng: np.random.Generator) -> History:
    """Two equal steps."""
    first, second = sorted(rng.choice(np.arange(1, size), size=2, replace=False))
    return _whole([(1 + step) ** (int(at >= first) + int(at >= second)) for at in range(size)])


def step_and_repair(size: int, step: float, rng: np.random.Generator) -> History:
    """A step and its repair, with a release between them that the user knows to be bad (`--bad` and `--fixed`)."""
    first, repair = sorted(int(place) for place in rng.choice(np.arange(1, size), size=2, replace=False))
    bad = int(rng.integers(first, repair))
    levels = tuple(1 + step if first <= at < repair else 1.0 for at in range(size))
    return History(levels=levels, stretches=((0, bad), (bad, size - 1)))


def with_failures(size: int, step: float, rng: np.random.Generator) -> History:
    """One step, and one position in five that cannot be measured."""
    levels = one_step(size, step, rng).levels
    lost = rng.random(size) < 0.2
    return _whole([None if lost[at] and 0 < at < size - 1 else level for at, level in enumerate(levels)])


KINDS = (
    Kind(name="one step", make=one_step),
    Kind(name="two steps of that size", make=two_steps),
    Kind(name="a step and its repair", make=step_and_repair),
    Kind(name="one step, a fifth fails", make=with_failures),
    Kind(name="one step, busy machine", make=one_step, busy=True),
)


def is_right(found: Sequence[Pair], history: History) -> bool:
    """Whether all that is named is there, and at least one thing is."""
    return bool(found) and all(step in history.steps for step in found)


def is_wrong(found: Sequence[Pair], history: History) -> bool:
    """Whether a step is named where there is none; a range that has it, with releases that are not told, is not."""
    return any(not any(first <= one and two <= last for one, two in history.steps) for first, last in found)


@dataclass(frozen=True, kw_only=True)
class Score:
    """What became of one history, with `harness bisect` and by hand."""

    right: bool
    wrong: bool
    all_found: bool
    right_by_hand: bool
    measurements: int
    generations: int
    minutes: float
    by_hand: int


def played(kind: Kind, size: int, step: float, seed: int, programs: Sequence[Program]) -> Score:
    """Search one history."""
    rng = np.random.default_rng([seed, size, round(1000 * step), len(kind.name)])
    history, program = kind.make(size, step, rng), programs[seed % len(programs)]
    ours, theirs = (Played(history=history, program=program, rng=rng) for _ in range(2))
    found, by_hand = ours.search(), theirs.by_hand()
    return Score(
        right=is_right(found, history),
        wrong=is_wrong(found, history),
        all_found=found == history.steps,
        right_by_hand=is_right(by_hand, history),
        measurements=ours.measurements,
        generations=ours.generations,
        minutes=ours.seconds / 60,
        by_hand=theirs.measurements,
    )


def line(kind: Kind, step: float, programs: Sequence[Program], histories: int, sizes: Sequence[int]) -> list[str]:
    """How often both are right, and what they take, over so many histories of each size."""
    scores = [played(kind, size, step, seed, programs) for size in sizes for seed in range(histories)]

    def mean(name: str) -> float:
        return float(np.mean([getattr(score, name) for score in scores]))

    shares = [percent(mean(name), 1) for name in ("right", "wrong", "all_found", "right_by_hand")]
    takes = [f"{mean('measurements'):.1f}", f"{mean('generations'):.0f}", f"{mean('minutes'):.1f}"]
    return [kind.name, percent(step), *shares, *takes, f"{mean('by_hand'):.1f}"]


HEADS = ("history", "step", "right", "wrong", "all steps found", "git bisect right")
TAKES = ("measurements", "generations", "minutes", "git bisect's processes")


def render(programs: Mapping[bool, Sequence[Program]], histories: int = HISTORIES) -> str:
    """The tables, as Markdown.

    Args:
        programs: Of a busy machine (True) and of one that nobody else used (False).
    """
    rows = [line(kind, step, programs[kind.busy], histories, SIZES) for kind in KINDS for step in STEPS]
    by_size = [[f"{size}", *line(KINDS[0], 0.05, programs[False], histories, [size])[2:]] for size in SIZES]
    sizes = ", ".join(f"{size}" for size in SIZES)
    return blocks(
        f"{histories} histories of each of {sizes} releases a line, seeded. `right`: a step is named, and every one "
        "that is named is there; `wrong`: a step is named where there is none; the rest names a range, or says that it "
        "cannot tell. The minutes are those of measuring; compiles and installations come on top, one a release that "
        "is asked for. `git bisect right`: by one process a release.",
        table([*HEADS, *TAKES], rows, numbers=[False, *[True] * 9]),
        "One step of 5 %, by the number of releases:",
        table(["releases", *HEADS[2:], *TAKES], by_size, numbers=[True] * 9),
    )


def main() -> None:
    """Simulate, and write the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--document", type=Path, default=ROOT / "docs" / "bisect.md", help="where the tables go")
    parser.add_argument("--recording", type=Path, default=ROOT / "results" / "verdicts.jsonl.gz")
    parser.add_argument("--histories", type=int, default=HISTORIES, help="of each size, a line")
    arguments = parser.parse_args()
    if not arguments.recording.is_file():
        parser.error(f"there is no {arguments.recording}; `make verdicts` records it, in two hours")
    recording = list(read(arguments.recording))
    programs = {busy: programs_of(recording, busy=busy) for busy in (False, True)}
    replace_between(arguments.document, BEGIN, END, render(programs, arguments.histories))


if __name__ == "__main__":
    main()
