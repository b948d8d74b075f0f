"""Whatever the engine is given, it ends: within the budget, with finite numbers, and the same seen from either side."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.compare.engine import MOST_GENERATIONS, Decision, Generation, Outcome
from harness.compare.samplers import summarise_generation
from harness.records.run import Round, Turn
from tests.compare.scripted import NOISY, RULE, Step, a_generation, crash, decided, generations, outcome_of

MIRRORED: dict[Decision, Decision] = {
    "regressed": "improved",
    "improved": "regressed",
    "unchanged": "unchanged",
    "inconclusive": "inconclusive",
    "failed": "failed",
}


# --- Budgets ---


def spent_before_last(outcome: Outcome) -> float:
    return sum(one.seconds for one in outcome.generations[:-1])


@pytest.mark.parametrize("first", [0.01, 0.5, 3.0, 40.0])
@pytest.mark.parametrize("later", [0.05, 1.0, 3.0])
def test_whatever_later_generations_cost_the_last_one_begins_within_the_budget(first: float, later: float) -> None:
    steps = [a_generation(NOISY[n], seconds=first if n == 0 else later) for n in range(1000)]
    outcome = outcome_of(steps, budget_s=32)
    assert spent_before_last(outcome) <= 32
    if first < 32:  # and what there is room for is used
        assert spent_before_last(outcome) + outcome.generations[-1].seconds + later > 32 - 1e-9


def test_a_budget_that_shrinks_while_looking_never_adds_a_look() -> None:
    """Planned at one second each; then ten times as dear. The early look is the last, and p pays for those planned."""
    steps = [a_generation(NOISY[n], seconds=1 if n < 9 else 10) for n in range(100)]
    outcome = outcome_of(steps, budget_s=64)
    assert len(outcome.generations) < 32
    assert outcome.decision == "inconclusive"


def test_generations_that_take_no_time_by_the_clock_come_to_an_end() -> None:
    outcome = outcome_of(generations(*NOISY, seconds=0.0))
    assert len(outcome.generations) == MOST_GENERATIONS
    assert outcome.decision == "inconclusive"


@pytest.mark.parametrize("budget_s", [1e-12, 1e12, math.inf])
def test_absurd_budgets_have_an_end_too(budget_s: float) -> None:
    outcome = outcome_of(generations(*NOISY, seconds=0.3), budget_s=budget_s)
    assert len(outcome.generations) == (1 if budget_s < 1 else MOST_GENERATIONS)
    assert outcome.decision == "inconclusive"


def test_a_first_generation_that_is_dear_does_not_use_up_the_row() -> None:
    """Caches are cold and files are read: the plan is for few, and the time that is left is used all the same."""
    steps = [a_generation(NOISY[n], seconds=8 if n == 0 else 0.25) for n in range(1000)]
    assert len(outcome_of(steps, budget_s=16).generations) > 30


# --- Invariants ---

LOG_RATIOS = st.lists(st.one_of(st.floats(min_value=-0.2, max_value=0.2), st.none()), min_size=1, max_size=24)
BUDGETS = st.sampled_from([0.5, 3, 8, 12, 20, 40])


@given(st.lists(LOG_RATIOS, min_size=1, max_size=4), BUDGETS)
def test_swapping_the_sides_mirrors_the_verdict(rows: list[list[float | None]], budget_s: float) -> None:
    forth, _ = decided({f"{n}": generations(*row) for n, row in enumerate(rows)}, budget_s=budget_s)
    negated = [[-value if value is not None else None for value in row] for row in rows]
    back, _ = decided({f"{n}": generations(*row) for n, row in enumerate(negated)}, budget_s=budget_s)
    for name, one in forth.items():
        other = back[name]
        assert other.decision == MIRRORED[one.decision]
        assert (other.p, len(other.generations), other.confirming) == (one.p, len(one.generations), one.confirming)
        assert other.reason == one.reason


STEPS = st.lists(
    st.one_of(
        st.builds(
            a_generation,
            st.one_of(st.none(), st.floats(min_value=-700, max_value=700)),
            seconds=st.floats(min_value=0.01, max_value=100),
        ),
        st.builds(crash),
    ),
    min_size=1,
    max_size=12,
)


@given(st.lists(STEPS, max_size=4), st.floats(min_value=0, max_value=60))
def test_whatever_happens_each_row_ends_with_a_word_a_reason_and_finite_numbers(
    rows: list[list[Step]], budget_s: float
) -> None:
    outcomes, order = decided({f"{n}": steps for n, steps in enumerate(rows)}, budget_s=budget_s)
    assert len(outcomes) == len(rows)
    for name, outcome in outcomes.items():
        assert outcome.reason
        assert (outcome.failure is not None) == (outcome.decision == "failed")
        assert order.count(name) == len(outcome.generations)
        figures = (outcome.log_ratio, outcome.low, outcome.high, outcome.p)
        assert all(math.isfinite(figure) for figure in figures if figure is not None)
        assert outcome.confirming <= len(outcome.generations)
        looked = outcome.generations[: len(outcome.generations) - outcome.confirming]
        assert len(looked) <= 1 or sum(one.seconds for one in looked[:-1]) <= budget_s
        if outcome.decision in ("regressed", "improved"):
            assert outcome.confirming >= RULE.first_look
            assert outcome.log_ratio is not None
            assert abs(outcome.log_ratio) > math.log1p(RULE.floor)


def rounds(pairs: Sequence[tuple[int, int]], *, factor: int = 1) -> list[Round]:
    """Rounds of base and head in turns, everything slower by a factor."""
    found = []
    for number, (base, head) in enumerate(pairs):
        turns = [
            Turn(case="base", calls=3, wall_ns=base * factor, cpu_ns=0),
            Turn(case="head", calls=3, wall_ns=head * factor, cpu_ns=0),
        ]
        ordered = tuple(turns if number % 2 == 0 else turns[::-1])
        found.append(Round(group="row", generation=0, round=number, started_unix_ns=0, turns=ordered))
    return found


PAIRS = st.lists(
    st.tuples(st.integers(min_value=10_000, max_value=12_000), st.integers(min_value=10_000, max_value=12_000)),
    min_size=1,
    max_size=6,
)


@given(st.lists(PAIRS, min_size=1, max_size=20), st.integers(min_value=2, max_value=10_000))
def test_a_machine_that_is_slower_altogether_changes_nothing(times: list[list[tuple[int, int]]], factor: int) -> None:
    def summarised(scale: int) -> list[Generation]:
        return [summarise_generation(rounds(pairs, factor=scale), 1.0) for pairs in times]

    here, there = outcome_of(summarised(1)), outcome_of(summarised(factor))
    assert (there.decision, there.reason) == (here.decision, here.reason)
    assert there.log_ratio == pytest.approx(here.log_ratio, abs=1e-9)
    assert (there.generations[0].base, there.generations[0].head) == pytest.approx(
        (factor * (here.generations[0].base or 0), factor * (here.generations[0].head or 0))
    )
