"""How good the sets are that a sampler of combinations finds: ours, Optuna's, hill climbing, and chance.

    .venv/bin/python -m benchmarks.tune.sampler       (two minutes; without Optuna installed its line is left out)

Changes with known effects and interactions are told to each sampler alone first, with noise, then what it asks for. The
one with the lowest told time is what a search would choose; how much slower that truly is than the best of all sets is
what the table says. Seeded, so that everybody gets the same; printed as Markdown.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import product
from typing import Protocol

import numpy as np

from harness.report.markdown_text import table
from harness.stats.pairing import FloatArray
from harness.tune.sampler import Sampler

Set = frozenset[str]


class Asker(Protocol):
    """What chooses sets."""

    def tell(self, changes: Iterable[str], log_ratio: float | None) -> None:
        """What a set came to."""

    def ask(self) -> Set | None:
        """The next."""


@dataclass(frozen=True, kw_only=True)
class Problem:
    """Changes whose effects are known.

    Attributes:
        groups: Alternatives.
        alone: Of each change, in the logarithm; together: of each two that interact.
        broken: Two that fail together.
        best: The lowest log ratio of all sets.
    """

    groups: tuple[tuple[str, ...], ...]
    alone: Mapping[str, float]
    together: Mapping[Set, float]
    broken: frozenset[Set]
    best: float

    def value(self, chosen: Set) -> float | None:
        """The true log ratio; None: it fails."""
        if any(pair <= chosen for pair in self.broken):
            return None
        pairs = sum(extra for pair, extra in self.together.items() if pair <= chosen)
        return sum(self.alone[name] for name in chosen) + pairs


def problem(rng: np.random.Generator) -> Problem:
    """Twelve groups of which four have two alternatives: three in ten help, as many hurt, a few depend on each other.

    Of two that help, half do part of the same work, so together they gain less than their sum; one pair in twenty is
    better together than alone by up to 15 %, as many are worse by up to 30 %, and one in fifty fails.
    """
    groups = tuple((f"{number}a", f"{number}b") if number < 4 else (f"{number}a",) for number in range(12))
    names = [name for group in groups for name in group]
    kinds = rng.choice(3, len(names), p=[0.4, 0.3, 0.3])
    sizes = np.select([kinds == 0, kinds == 1], [rng.normal(0, 0.003, len(names)), -rng.exponential(0.12, len(names))])
    sizes = np.where(kinds == 2, rng.exponential(0.2, len(names)), sizes)
    alone = dict(zip(names, sizes.tolist(), strict=True))
    together: dict[Set, float] = {}
    broken: set[Set] = set()
    for first in range(len(groups)):
        for second in range(first):
            for one, other in product(groups[first], groups[second]):
                chance, size = rng.random(2)
                if alone[one] < -0.01 and alone[other] < -0.01 and chance < 0.5:
                    together[frozenset({one, other})] = -max(alone[one], alone[other]) * float(size)
                elif chance > 0.95:
                    together[frozenset({one, other})] = -0.15 * float(size)
                elif chance > 0.90:
                    together[frozenset({one, other})] = 0.3 * float(size)
                elif chance > 0.88:
                    broken.add(frozenset({one, other}))
    return Problem(
        groups=groups,
        alone=alone,
        together=together,
        broken=frozenset(broken),
        best=_best(groups, alone, together, broken),
    )


def _best(
    groups: tuple[tuple[str, ...], ...],
    alone: Mapping[str, float],
    together: Mapping[Set, float],
    broken: Iterable[Set],
) -> float:
    """Of all sets, group by group."""
    names = [name for group in groups for name in group]
    choices = np.array(list(product(*(range(len(group) + 1) for group in groups))), dtype=np.int8)
    has = {}
    for column, group in enumerate(groups):
        for number, name in enumerate(group):
            has[name] = choices[:, column] == number + 1
    values: FloatArray = sum((alone[name] * has[name] for name in names), np.zeros(len(choices)))
    for (one, other), extra in ((sorted(pair), extra) for pair, extra in together.items()):
        values = values + extra * (has[one] & has[other])
    for one, other in map(sorted, broken):
        values = np.where(has[one] & has[other], np.inf, values)
    return float(values.min())


class _Known:
    """What was told, and what was asked."""

    def __init__(self, groups: tuple[tuple[str, ...], ...], seed: int) -> None:
        self.groups = groups
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
            picks = [[name for name in group if self.told.get(frozenset({name}), 1.0) < 0] for group in self.groups]
            chosen = frozenset(str(self.rng.choice(pick)) for pick in picks if pick and self.rng.random() < 0.5)
            if chosen not in self.seen:
                return chosen
        return None


class Greedy(_Known):
    """The best so far and one change more, less or other; what helped most alone first."""

    def ask(self) -> Set | None:
        """The first new step from the best, else from the next best."""
        for start in sorted(self.told, key=lambda one: self.told[one]):
            steps = []
            for group in self.groups:
                without = start.difference(group)
                there = sum(self.told.get(frozenset({name}), 0.0) for name in start.intersection(group))
                steps += [(self.told.get(frozenset({name}), 1.0) - there, without | {name}) for name in group]
                steps.append((-there, without))
            for _, step in sorted(steps, key=lambda one: (one[0], sorted(one[1]))):
                if step not in self.seen:
                    return step
        return None


class Optuna(_Known):
    """Optuna's multivariate TPE: a categorical choice a group."""

    def __init__(self, groups: tuple[tuple[str, ...], ...], seed: int) -> None:
        import optuna

        super().__init__(groups, seed)
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        self._optuna = optuna
        sampler = optuna.samplers.TPESampler(seed=seed, multivariate=True, n_startup_trials=0)
        self._study = optuna.create_study(sampler=sampler, direction="minimize")
        self._space = {
            str(number): optuna.distributions.CategoricalDistribution(("", *group))
            for number, group in enumerate(groups)
        }
        self.tell((), 0.0)

    def tell(self, changes: Iterable[str], log_ratio: float | None) -> None:
        """Add a trial; what fails takes four times as long."""
        super().tell(changes, log_ratio)
        chosen = frozenset(changes)
        params = {
            str(number): next((name for name in group if name in chosen), "")
            for number, group in enumerate(self.groups)
        }
        value = log_ratio if log_ratio is not None else float(np.log(4))
        self._study.add_trial(
            self._optuna.trial.create_trial(params=params, distributions=dict(self._space), value=value)
        )

    def ask(self) -> Set | None:
        """Ask until there is a new one."""
        for _ in range(100):
            trial = self._study.ask(self._space)
            self._study.tell(trial, state=self._optuna.trial.TrialState.FAIL)
            chosen = frozenset(name for name in trial.params.values() if name)
            if chosen not in self.seen:
                return chosen
        return None


def search(asker: Asker, known: Problem, asks: int, noise: float, rng: np.random.Generator) -> float:
    """log(time of what a search would choose / time of the best of all sets)."""
    told: dict[Set, float] = {frozenset(): 0.0}
    true: dict[Set, float] = {frozenset(): 0.0}

    def tell(chosen: Set) -> None:
        value = known.value(chosen)
        measured = None if value is None else value + float(rng.normal(0, noise))
        asker.tell(chosen, measured)
        if value is not None and measured is not None:
            told[chosen], true[chosen] = measured, value

    for name in known.alone:
        tell(frozenset({name}))
    for _ in range(asks):
        chosen = asker.ask()
        if chosen is None:
            break
        tell(chosen)
    return true[min(told, key=lambda one: told[one])] - known.best


def rows(problems: int, sizes: Iterable[int] = (10, 20, 40), noises: Iterable[float] = (0.01, 0.02)) -> str:
    """The table, as Markdown."""
    askers: dict[str, Callable[[Problem, int], Asker]] = {
        "chance, of what helped alone": lambda known, seed: Chance(known.groups, seed),
        "hill climbing": lambda known, seed: Greedy(known.groups, seed),
    }
    if find_spec("optuna"):
        askers["Optuna, multivariate TPE"] = lambda known, seed: Optuna(known.groups, seed)
    askers["harness.tune.sampler"] = lambda known, _: Sampler(known.groups)
    heads = ["sampler", "noise", *(f"{size} asks: mean (of 10, the worst)" for size in sizes)]
    lines = []
    for noise in noises:
        for name, make in askers.items():
            line = [name, f"{noise:.0%}"]
            for size in sizes:
                regrets = []
                for seed in range(problems):
                    known = problem(np.random.default_rng(seed))
                    regrets.append(search(make(known, seed), known, size, noise, np.random.default_rng([seed, 1])))
                line.append(f"{np.expm1(np.mean(regrets)):.1%} ({np.expm1(np.quantile(regrets, 0.9)):.1%})")
            lines.append(line)
            sys.stderr.write(f"{' | '.join(line)}\n")
    return table(heads, lines, numbers=[False, *[True] * (len(heads) - 1)])


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--problems", type=int, default=50, help="to search, by each sampler")
    sys.stdout.write(rows(parser.parse_args().problems) + "\n")


if __name__ == "__main__":
    main()
