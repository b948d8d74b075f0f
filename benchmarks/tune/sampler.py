"""How good the sets are that a sampler of combinations finds: ours, Optuna's, hill climbing, and chance.

    .venv/bin/python -m benchmarks.tune.sampler       (minutes; without Optuna installed its line is left out)

Changes with known effects and interactions are told to each sampler alone first, with noise, then what it asks for. The
one with the lowest told time is what a search would choose; how much slower that truly is than the best of all sets is
what the table says. Seeded, so that everybody gets the same; the table goes into docs/tuning.md. The sampler was made
on the problems before FIRST_SEED, so those of the table were not seen then.
"""

import argparse
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import combinations, product
from typing import Protocol

import numpy as np

from benchmarks.documents import replace_between
from benchmarks.tune.measuring import ROOT
from harness.report.markdown import blocks, table
from harness.stats.pairing import FloatArray
from harness.tune.changes import Sampler

Set = frozenset[str]

# Deviation of what a sampler is told, and after how many asks it is judged.
NOISE = 0.015
ASKS = (5, 10, 20, 40)
FIRST_SEED = 1000
BEGIN = "<!-- made by `python -m benchmarks.tune.sampler`: begin -->"
END = "<!-- benchmarks.tune.sampler: end -->"


class Asker(Protocol):
    """What chooses sets."""

    def tell(self, changes: Iterable[str], log_ratio: float | None) -> None:
        """What a set came to."""

    def ask(self) -> Set | None:
        """The next."""


GROUPS = tuple((f"{number}a", f"{number}b") if number < 4 else (f"{number}a",) for number in range(12))
NAMES = tuple(name for group in GROUPS for name in group)
# Every set as a choice in each group, 0 for none of its changes, and whether each change is in each set.
_CHOICES = np.array(list(product(*(range(len(group) + 1) for group in GROUPS))))
_HAS = {
    name: _CHOICES[:, column] == number
    for column, group in enumerate(GROUPS)
    for number, name in enumerate(group, start=1)
}
_PLACES = {
    frozenset(group[number - 1] for group, number in zip(GROUPS, choice, strict=True) if number): place
    for place, choice in enumerate(_CHOICES.tolist())
}
_BROKEN = 0.02


@dataclass(frozen=True, kw_only=True, eq=False)
class Problem:
    """The true log ratio of every set; infinite: it fails."""

    values: FloatArray

    def value(self, chosen: Set) -> float | None:
        """Of a set; None: it fails."""
        value = float(self.values[_PLACES[chosen]])
        return value if np.isfinite(value) else None


def by_pairs(rng: np.random.Generator) -> Problem:
    """Three changes in ten help, as many hurt, and a few depend on each other.

    Of two that help, half do part of the same work, so together they gain less than their sum; one pair in twenty is
    better together than alone by up to 15 %, as many are worse by up to 30 %, and one in fifty fails.
    """
    kinds = rng.choice(3, len(NAMES), p=[0.4, 0.3, 0.3])
    drawn = [rng.normal(0, 0.003, len(NAMES)), -rng.exponential(0.12, len(NAMES)), rng.exponential(0.2, len(NAMES))]
    alone = dict(zip(NAMES, np.choose(kinds, drawn).tolist(), strict=True))
    values: FloatArray = sum((alone[name] * _HAS[name] for name in NAMES), np.zeros(len(_CHOICES)))
    for one, other in combinations(NAMES, 2):
        chance, size = rng.random(2)
        extra = 0.0
        if alone[one] < -0.01 and alone[other] < -0.01 and chance < 0.5:
            extra = -max(alone[one], alone[other]) * float(size)
        elif chance > 0.95:
            extra = -0.15 * float(size)
        elif chance > 0.90:
            extra = 0.3 * float(size)
        elif chance > 0.90 - _BROKEN:
            extra = np.inf
        if extra:
            values[_HAS[one] & _HAS[other]] += extra
    return Problem(values=values)


def by_dispatches(rng: np.random.Generator) -> Problem:
    """A program of ten dispatches, of which each change makes some faster and some slower.

    Changes do three kinds of work; of two that do the same in a dispatch, what helps it more is what counts. Two
    changes in fifty fail together.
    """
    shares = rng.dirichlet(np.ones(10))
    work = rng.integers(0, 3, len(NAMES))
    times = np.zeros(len(_CHOICES))
    for share in shares:
        kinds = rng.choice(3, len(NAMES), p=[0.7, 0.18, 0.12])
        drawn = [np.zeros(len(NAMES)), -rng.exponential(0.4, len(NAMES)), rng.exponential(0.4, len(NAMES))]
        effects = [effect * _HAS[name] for name, effect in zip(NAMES, np.choose(kinds, drawn), strict=True)]
        slower = np.maximum(effects, 0).sum(axis=0)
        faster = [
            np.min(
                [np.minimum(effect, 0) for effect, its in zip(effects, work, strict=True) if its == kind],
                axis=0,
                initial=0,
            )
            for kind in range(3)
        ]
        times += share * np.exp(slower + np.sum(faster, axis=0))
    values = np.log(times)
    for one, other in combinations(NAMES, 2):
        if rng.random() < _BROKEN:
            values[_HAS[one] & _HAS[other]] = np.inf
    return Problem(values=values)


class _Known:
    """What was told, and what was asked."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.told: dict[Set, float] = {frozenset(): 0.0}
        self.seen: set[Set] = {frozenset()}

    def tell(self, changes: Iterable[str], log_ratio: float | None) -> None:
        chosen = frozenset(changes)
        self.seen.add(chosen)
        if log_ratio is not None:
            self.told[chosen] = log_ratio


class Chance(_Known):
    """Any subset of the changes that helped alone."""

    def ask(self) -> Set | None:
        """Draw until there is a new one."""
        for _ in range(1000):
            picks = [[name for name in group if self.told.get(frozenset({name}), 1.0) < 0] for group in GROUPS]
            chosen = frozenset(str(self.rng.choice(pick)) for pick in picks if pick and self.rng.random() < 0.5)
            if chosen not in self.seen:
                return chosen
        return None


class Greedy(_Known):
    """The best so far and one change more, less or other; what helped most alone first."""

    def ask(self) -> Set | None:
        """The first new step from the best, else from the next best."""
        for start in sorted(self.told, key=lambda chosen: self.told[chosen]):
            steps = []
            for group in GROUPS:
                without = start.difference(group)
                there = sum(self.told.get(frozenset({name}), 0.0) for name in start.intersection(group))
                steps += [(self.told.get(frozenset({name}), 1.0) - there, without | {name}) for name in group]
                steps.append((-there, without))
            for _, step in sorted(steps, key=lambda ranked: (ranked[0], sorted(ranked[1]))):
                if step not in self.seen:
                    return step
        return None


class Optuna(_Known):
    """Optuna's multivariate TPE: a categorical choice a group."""

    def __init__(self, seed: int) -> None:
        import optuna

        super().__init__(seed)
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        self._optuna = optuna
        sampler = optuna.samplers.TPESampler(seed=seed, multivariate=True, n_startup_trials=0)
        self._study = optuna.create_study(sampler=sampler, direction="minimize")
        self._space = {
            str(number): optuna.distributions.CategoricalDistribution(("", *group))
            for number, group in enumerate(GROUPS)
        }
        self.tell((), 0.0)

    def tell(self, changes: Iterable[str], log_ratio: float | None) -> None:
        """Add a trial; what fails takes four times as long."""
        super().tell(changes, log_ratio)
        chosen = frozenset(changes)
        params = {
            str(number): next((name for name in group if name in chosen), "") for number, group in enumerate(GROUPS)
        }
        value = log_ratio if log_ratio is not None else float(np.log(4))
        self._study.add_trial(
            self._optuna.trial.create_trial(params=params, distributions=dict(self._space), value=value)
        )

    def ask(self) -> Set | None:
        """Ask a few times for a new one, else draw one."""
        for _ in range(10):
            trial = self._study.ask(self._space)
            self._study.tell(trial, state=self._optuna.trial.TrialState.FAIL)
            chosen = frozenset(name for name in trial.params.values() if name)
            if chosen not in self.seen:
                return chosen
        return next((drawn for drawn in (self._drawn() for _ in range(1000)) if drawn not in self.seen), None)

    def _drawn(self) -> Set:
        picks = [str(self.rng.choice(("", *group))) for group in GROUPS]
        return frozenset(name for name in picks if name)


def search(asker: Asker, known: Problem, asks: Sequence[int], rng: np.random.Generator) -> list[float]:
    """log(time of what a search would choose / time of the best of all sets), after so many asks each."""
    told: dict[Set, float] = {frozenset(): 0.0}

    def tell(chosen: Set) -> None:
        value = known.value(chosen)
        measured = None if value is None else value + float(rng.normal(0, NOISE))
        asker.tell(chosen, measured)
        if measured is not None:
            told[chosen] = measured

    def regret() -> float:
        value = known.value(min(told, key=lambda chosen: told[chosen]))
        return (np.inf if value is None else value) - float(known.values.min())

    for name in NAMES:
        tell(frozenset({name}))
    regrets = [regret()]
    for _ in range(max(asks)):
        chosen = asker.ask()
        if chosen is not None:
            tell(chosen)
        regrets.append(regret())
    return [regrets[size] for size in asks]


def rows(problems: int) -> str:
    """The table, as Markdown."""
    askers: dict[str, Callable[[int], Asker]] = {"chance, of what helped alone": Chance, "hill climbing": Greedy}
    if find_spec("optuna"):
        askers["Optuna, multivariate TPE"] = Optuna
    askers["harness.tune.changes"] = lambda _: Sampler(GROUPS)
    heads = ["changes", "sampler", *(f"{size} asks: slower than the best by (9 of 10 by less than)" for size in ASKS)]
    lines = []
    for kind, make_problem in {"with pairs": by_pairs, "of dispatches": by_dispatches}.items():
        for name, make in askers.items():
            regrets = []
            for seed in range(FIRST_SEED, FIRST_SEED + problems):
                known = make_problem(np.random.default_rng(seed))
                regrets.append(search(make(seed), known, ASKS, np.random.default_rng([seed, 1])))
            means, tails = np.mean(regrets, axis=0), np.quantile(regrets, 0.9, axis=0)
            cells = [f"{np.expm1(m):.1%} ({np.expm1(t):.1%})" for m, t in zip(means, tails, strict=True)]
            lines.append([kind, name, *cells])
            sys.stderr.write(f"{' | '.join(lines[-1])}\n")
    return table(heads, lines, numbers=[False, False, *[True] * len(ASKS)])


def main() -> None:
    """Write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--problems", type=int, default=50, help="of each kind, to search by each sampler")
    problems = parser.parse_args().problems
    made = f"{problems} problems of each kind; the sampler was made on others. What is told has noise of {NOISE:.1%}."
    replace_between(ROOT / "docs" / "tuning.md", BEGIN, END, blocks(rows(problems), made))


if __name__ == "__main__":
    main()
