"""Rows for the engine whose generations are written down."""

import math
from collections.abc import Mapping, Sequence

import numpy as np

from harness.compare.engine import Generation, Outcome, Task, decide
from harness.errors import CaseError
from harness.stats.rule import Rule

RULE = Rule()
EQUAL = [0.0004, -0.0003, 0.0001, -0.0002]  # over and over: known to be within 1 % at the first look
# As much above zero as below it, and so wide that no budget here narrows it to 1 %.
NOISY = [sign * size for size in np.random.default_rng(0).normal(0, 0.5, 500).tolist() for sign in (1, -1)]
SLOWER = [0.05, 0.051, 0.049, 0.052]
# The two on the other side have the ranks 1 and 2, as 5 choices of signs in 256 have at most: p = 2 * 5 / 256 = 3.9 %.
SOMEWHAT_SLOWER = [0.05, 0.06, 0.07, -0.001, 0.05, 0.06, 0.07, -0.002]

Step = Generation | CaseError


def a_generation(log_ratio: float | None, *, seconds: float = 1.0) -> Generation:
    measured = log_ratio is not None
    return Generation(
        log_ratio=log_ratio,
        base=1e6 if measured else None,
        head=1e6 * math.exp(log_ratio) if log_ratio is not None else None,
        rounds=20 if measured else 0,
        seconds=seconds,
    )


def generations(*log_ratios: float | None, seconds: float = 1.0) -> list[Generation]:
    return [a_generation(log_ratio, seconds=seconds) for log_ratio in log_ratios]


class Script:
    """A sampler that gives what is written, over and over, and insists on being asked in order."""

    def __init__(self, steps: Sequence[Step]) -> None:
        self._steps = steps
        self.asked = 0

    def __call__(self, number: int) -> Generation:
        """The next step."""
        assert number == self.asked, "each generation is asked for once"
        self.asked += 1
        step = self._steps[number % len(self._steps)]
        if isinstance(step, CaseError):
            raise step
        return step


def a_task(name: str, steps: Sequence[Step], *, budget_s: float = 16, rule: Rule = RULE) -> Task:
    return Task(name=name, sample=Script(steps), rule=rule, budget_s=budget_s)


def outcome_of(steps: Sequence[Step], *, budget_s: float = 16, rule: Rule = RULE) -> Outcome:
    (outcome,) = decide([a_task("row", steps, budget_s=budget_s, rule=rule)])
    return outcome


def decided(rows: Mapping[str, Sequence[Step]], *, budget_s: float = 16) -> tuple[dict[str, Outcome], list[str]]:
    """Outcomes by row, and the rows in the order in which their generations were measured."""
    order: list[str] = []
    tasks = [a_task(name, steps, budget_s=budget_s) for name, steps in rows.items()]
    outcomes = list(decide(tasks, lambda name, _: order.append(name)))
    assert [outcome.name for outcome in outcomes] == list(rows)
    return {outcome.name: outcome for outcome in outcomes}, order


def crash(message: str = "the head's module: it crashed") -> CaseError:
    return CaseError("measure", message, "last words")
