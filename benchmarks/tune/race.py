"""How often a race loses its best candidate, how good what it chooses is, and what it costs.

    .venv/bin/python -m benchmarks.tune.race                                     (noise that is drawn; two minutes)
    .venv/bin/python -m benchmarks.tune.race --recording results/verdicts.jsonl.gz   (noise that was measured)

Candidates with known times race by the rule of `harness tune` on noise of real generations; seeded, so that everybody
gets the same table from the same recording. The table goes into docs/tuning.md.
"""

import argparse
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.documents import replace_between
from benchmarks.tune.measuring import ROOT
from benchmarks.tune.noise import courses, drawn, recorded
from harness.report.markdown import blocks, table
from harness.stages.tune_session import RULE
from harness.stats.intervals import rate_bounds
from harness.stats.pairing import FloatArray
from harness.tune.race import Race, RaceRule

BEGIN, END = "<!-- made by `python -m benchmarks.tune.race`: begin -->", "<!-- benchmarks.tune.race: end -->"


def _flags(rng: np.random.Generator) -> FloatArray:
    """Most flags do next to nothing, some make a program slower, few make it faster."""
    return np.concatenate([rng.normal(0, 0.003, 12), rng.normal(0, 0.05, 5), rng.exponential(0.5, 3)])


def _tiles(rng: np.random.Generator) -> FloatArray:
    """Tile sizes lie between the best and several times its time."""
    return rng.exponential(0.4, 30)


def _close(_: np.random.Generator) -> FloatArray:
    """One that is better than nine equal ones by twice the margin: the hardest that a race has to keep."""
    return np.array([-2 * math.log1p(RULE.margin), *[0.0] * 9])


FIELDS: Mapping[str, Callable[[np.random.Generator], FloatArray]] = {
    "20 changes of flags": _flags,
    "30 tile sizes": _tiles,
    "one 2 % ahead of nine": _close,
}


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """Of one race.

    Attributes:
        kept: Whether the best candidate was alive at the end.
        ended: Whether it ended before its generations were used up.
        regret: log(time of the chosen / time of the best); regret_of_all the same where all race to the end.
        generations: Until it ended.
        cost: Samples taken, divided by those of racing all to the end.
    """

    kept: bool
    ended: bool
    regret: float
    regret_of_all: float
    generations: int
    cost: float


def run(times: FloatArray, stream: FloatArray, rng: np.random.Generator, rule: RaceRule = RULE) -> Outcome:
    """Race candidates whose logarithms of times are known."""
    samples = times + courses(stream, rule.most, times.size, rng)
    race = Race([str(column) for column in range(times.size)], rule)
    taken = 0
    while not race.is_over:
        taken += len(race.alive)
        race.add({name: float(samples[race.generations, int(name)]) for name in race.alive})
    leader = race.leader
    assert leader is not None
    best = float(times.min())
    return Outcome(
        kept=any(times[int(name)] == best for name in race.alive),
        ended=race.generations < rule.most,
        regret=float(times[int(leader)]) - best,
        regret_of_all=float(times[int(np.argmin(np.median(samples, axis=0)))]) - best,
        generations=race.generations,
        cost=taken / (times.size * rule.most),
    )


def rows(noises: Mapping[str, Sequence[FloatArray]], races: int) -> str:
    """The table, as Markdown; a line for each field of candidates and noise, whose streams take turns."""
    heads = ["noise", "candidates", "races", "best left", "at most", "ended >1 % slower", "chosen is slower by (mean)"]
    heads += ["of 100, the worst but one", "all to the end (mean)", "generations", "samples, of all to the end"]
    lines = []
    for place, (field, times) in enumerate(FIELDS.items()):
        for name, streams in noises.items():
            rng = np.random.default_rng([place, *name.encode()])
            seen = [run(times(rng), streams[number % len(streams)], rng) for number in range(races)]
            left = sum(not race.kept for race in seen)
            edge = math.log1p(RULE.margin)
            regrets = np.array([race.regret for race in seen])
            lines.append(
                [
                    name,
                    field,
                    f"{races}",
                    f"{left / races:.1%}",
                    f"{rate_bounds(left, races)[1]:.1%}",
                    f"{sum(race.ended and race.regret > edge for race in seen) / races:.1%}",
                    f"{np.expm1(regrets.mean()):.2%}",
                    f"{np.expm1(np.quantile(regrets, 0.99)):.1%}",
                    f"{np.expm1(np.mean([race.regret_of_all for race in seen])):.2%}",
                    f"{np.mean([race.generations for race in seen]):.1f}",
                    f"{np.mean([race.cost for race in seen]):.0%}",
                ]
            )
            sys.stderr.write(f"{' | '.join(lines[-1])}\n")
    return table(heads, lines, numbers=[False, False, *[True] * 9])


def main() -> None:
    """Write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--recording", type=Path, help="by `make verdicts`; its noise is played back")
    parser.add_argument("--races", type=int, default=200, help="of each field of candidates and noise")
    arguments = parser.parse_args()
    noises = recorded(arguments.recording) if arguments.recording else drawn()
    made = f"The noise is {'of a recording of real generations' if arguments.recording else 'drawn'}."
    replace_between(ROOT / "docs" / "tuning.md", BEGIN, END, blocks(rows(noises, arguments.races), made))


if __name__ == "__main__":
    main()
