"""How often the rule errs on noise of many shapes: equal modules, simulated with fixed seeds.

Nothing that a machine does to two equal modules alike may make the rule find a difference more often than it promises:
no heavy tail, no second mode, no drift. `python -m benchmarks.verdicts.noise_shapes` simulates each shape a thousand
times and prints the rates beside what is promised; tests/stats/test_rule.py holds a smaller number to it.
"""

import math
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from harness.stats.intervals import Location
from harness.stats.pairing import FloatArray
from harness.stats.rule import (
    CONFIRMING_LOOKS,
    Rule,
    Standing,
    confirmation_p,
    confirmation_size,
    plan_looks,
    standing,
    take_look,
)

RULE = Rule()
BUDGET = 32  # generations: looks at 8, 16 and 32
LONGEST = BUDGET + CONFIRMING_LOOKS * confirmation_size(BUDGET, RULE)

Shape = Callable[[np.random.Generator, int], tuple[FloatArray, FloatArray]]


# --- Noise of equal modules: (base, head) generation times, each of shape (trials, generations) ---


def around(logs: FloatArray) -> FloatArray:
    """Times around a millisecond."""
    return 1e6 * np.exp(logs)


def both(rng: np.random.Generator, trials: int, spread: float) -> tuple[FloatArray, FloatArray]:
    """Independent normal noise of either side."""
    return rng.normal(0, spread, (trials, LONGEST)), rng.normal(0, spread, (trials, LONGEST))


def gaussian(rng: np.random.Generator, trials: int) -> tuple[FloatArray, FloatArray]:
    """What textbooks suppose."""
    base, head = both(rng, trials, 0.04)
    return around(base), around(head)


def heavy_tailed(rng: np.random.Generator, trials: int) -> tuple[FloatArray, FloatArray]:
    """Student's t with two degrees of freedom has no variance."""
    return around(0.02 * rng.standard_t(2, (trials, LONGEST))), around(0.02 * rng.standard_t(2, (trials, LONGEST)))


def disturbed(rng: np.random.Generator, trials: int) -> tuple[FloatArray, FloatArray]:
    """A neighbour makes one generation in twenty of either side slower, by anything."""
    base, head = both(rng, trials, 0.02)
    for side in (base, head):
        side += np.where(rng.random(side.shape) < 0.05, np.minimum(np.abs(rng.standard_cauchy(side.shape)), 5), 0)
    return around(base), around(head)


def bimodal(rng: np.random.Generator, trials: int) -> tuple[FloatArray, FloatArray]:
    """The layout of each process makes it 3 % faster or slower."""
    base, head = both(rng, trials, 0.003)
    return around(base + rng.choice((-0.03, 0.03), base.shape)), around(head + rng.choice((-0.03, 0.03), head.shape))


def drifting(rng: np.random.Generator, trials: int) -> tuple[FloatArray, FloatArray]:
    """The machine gets warm: half as long again at the end."""
    base, head = both(rng, trials, 0.03)
    ramp = np.linspace(0, math.log(1.5), LONGEST)
    return around(base + ramp), around(head + ramp)


def autocorrelated(rng: np.random.Generator, trials: int) -> tuple[FloatArray, FloatArray]:
    """The machine's speed wanders, and both sides with it."""
    base, head = both(rng, trials, 0.03)
    speed = np.zeros((trials, LONGEST))
    for place in range(1, LONGEST):
        speed[:, place] = 0.9 * speed[:, place - 1] + rng.normal(0, 0.05, trials)
    return around(base + speed), around(head + speed)


def alternating(rng: np.random.Generator, trials: int) -> tuple[FloatArray, FloatArray]:
    """Who is loaded first is 2 % slower, and that changes with every generation."""
    base, head = both(rng, trials, 0.02)
    first = np.where(np.arange(LONGEST) % 2 == 0, 0.01, -0.01)
    return around(base + first), around(head - first)


def of_several_hosts(rng: np.random.Generator, trials: int) -> tuple[FloatArray, FloatArray]:
    """Pairs of generations go round four hosts of different speeds, some of them ten times as noisy as others."""
    places = np.arange(LONGEST) // 2 % 4
    slowness, spread = np.array([0.0, 0.7, 0.2, 0.5])[places], np.array([0.005, 0.05, 0.01, 0.03])[places]
    base, head = both(rng, trials, 1.0)
    return around(slowness + spread * base), around(slowness + spread * head)


def coarse(rng: np.random.Generator, trials: int) -> tuple[FloatArray, FloatArray]:
    """A clock that knows only steps of 4 %: ties, and many ratios of exactly one."""
    base, head = both(rng, trials, 0.04)
    return around(0.04 * np.round(base / 0.04)), around(0.04 * np.round(head / 0.04))


SHAPES: dict[str, Shape] = {
    shape.__name__: shape
    for shape in (
        gaussian,
        heavy_tailed,
        disturbed,
        bimodal,
        drifting,
        autocorrelated,
        alternating,
        coarse,
        of_several_hosts,
    )
}


# --- The rule on one series, as the engine applies it to a row that is alone ---


@dataclass(frozen=True, kw_only=True)
class Judged:
    """What became of one series.

    Attributes:
        looks: Every planned look, also those after the one at which it stopped.
        stopped: Place of the look at which it stopped.
        first: Where it stood then.
        final: Where it stands after the confirmation; as `first` where there was none.
    """

    looks: tuple[Location, ...]
    stopped: int
    first: Standing
    final: Standing


def judge(samples: FloatArray, *, most: int = BUDGET, pay_for_looks: bool = True) -> Judged:
    """Apply the rule to one series of log ratios, shape (generations,), with room for `most` before a confirmation."""
    sizes = plan_looks(most, RULE)
    planned = len(sizes) if pay_for_looks else 1
    looks = tuple(take_look(samples[:size], looks=planned, rule=RULE) for size in sizes)
    stands = [standing(look, differs=look.p <= RULE.alpha, floor=RULE.floor) for look in looks]
    stopped = next((place for place, stand in enumerate(stands) if stand != "open"), len(stands) - 1)
    first = final = stands[stopped]
    if first in ("higher", "lower"):
        found = sizes[stopped]
        size, confirmed, end = confirmation_size(found, RULE), False, found
        for _ in range(CONFIRMING_LOOKS):
            end += size
            direction: Literal["higher", "lower"] = "higher" if first == "higher" else "lower"
            confirmed = confirmation_p(samples[found:end], direction, RULE) <= RULE.confirm_alpha
            if confirmed:
                break
        everything = take_look(samples[:end], looks=planned, rule=RULE, confirming=True)
        final = standing(everything, differs=confirmed, floor=RULE.floor)
    return Judged(looks=looks, stopped=stopped, first=first, final=final)


def judged(shape: str, trials: int, change: float = 0.0) -> tuple[Judged, ...]:
    """So many series of one shape, the head made slower by a share."""
    base, head = SHAPES[shape](np.random.default_rng([20261121, list(SHAPES).index(shape)]), trials)
    return tuple(judge(samples) for samples in np.log(head * (1 + change)) - np.log(base))


def holds(look: Location, truth: float) -> bool:
    """Whether the interval does; where noise has steps, its ends are the truth itself but for rounding."""
    return look.low - 1e-9 <= truth <= look.high + 1e-9


@dataclass(frozen=True, kw_only=True)
class Errors:
    """Of many series of one shape, how many went wrong in each way, and how many of the slower ones were found.

    Attributes:
        differing: Equal modules found to differ at any look; at most `alpha` of them, whatever the floor.
        missed: Equal modules whose interval did not hold the truth at all looks at once; at most 1 - confidence.
        missed_at_stop: Series, equal or slower by `slower`, whose interval did not at the look at which they stopped.
        flagged: Equal modules called changed after the confirmation; at most alpha * confirm_alpha.
        called_equal: Modules slower by `slower`, which is beyond the floor, called equal.
        found: Modules slower by 15 % called slower.
        wrong: Modules slower by 15 % called equal or faster.
    """

    differing: int
    missed: int
    missed_at_stop: tuple[int, int]
    flagged: int
    called_equal: int
    found: int
    wrong: int


def count_errors(shape: str, trials: int, *, slower: float = 0.02) -> Errors:
    """Simulate and count."""
    equal, beyond, plain = (judged(shape, trials, change) for change in (0.0, slower, 0.15))
    return Errors(
        differing=sum(any(look.p <= RULE.alpha for look in row.looks) for row in equal),
        missed=sum(not all(holds(look, 0.0) for look in row.looks) for row in equal),
        missed_at_stop=(
            sum(not holds(row.looks[row.stopped], 0.0) for row in equal),
            sum(not holds(row.looks[row.stopped], math.log1p(slower)) for row in beyond),
        ),
        flagged=sum(row.final in ("higher", "lower") for row in equal),
        called_equal=sum(row.final == "equal" for row in beyond),
        found=sum(row.final == "higher" for row in plain),
        wrong=sum(row.final in ("equal", "lower") for row in plain),
    )


def main(trials: int = 1000) -> None:
    """Print the counts of every shape."""
    sys.stdout.write(f"Of {trials} series; promised: {RULE.alpha:g} differ, {1 - RULE.confidence:g} miss the truth\n")
    for shape in SHAPES:
        sys.stdout.write(f"{shape:>15}  {count_errors(shape, trials)}\n")


if __name__ == "__main__":
    main()
