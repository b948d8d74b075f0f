"""The engine on scripted rows: the order of sampling, when it stops, and what it says."""

import math
from dataclasses import replace
from itertools import groupby

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.compare.engine import Decision, Outcome, decide
from harness.errors import CaseError
from harness.stats.rule import combine_p, take_look
from tests.compare.scripted import (
    EQUAL,
    NOISY,
    RULE,
    SLOWER,
    SOMEWHAT_SLOWER,
    Step,
    a_generation,
    a_task,
    crash,
    decided,
    generations,
    outcome_of,
)

# --- The order of sampling ---


def test_all_rows_take_a_look_before_any_takes_the_next_and_confirmations_come_last() -> None:
    _, order = decided(
        {"noisy": generations(*NOISY), "slower": generations(*SLOWER), "equal": generations(*EQUAL)}, budget_s=32
    )
    assert [(name, len(list(members))) for name, members in groupby(order)] == [
        *[("noisy", 8), ("slower", 8), ("equal", 8)],
        *[("noisy", 8), ("slower", 8)],  # to 16: eight on one side are not enough for three rows and three looks
        ("noisy", 16),  # to 32, where the budget ends; what was found waits until all looking is over
        ("slower", 16),
    ]


# --- What it says ---

WITHIN = "the interval lies within 1 %"
NOT_AGAIN = "a difference was found, but 16 fresh generations did not show it again"
LIKELY = "they probably differ; whether by more than 1 % is undecided, and more generations would tell"
WIDE = "the interval is wider than 1 % either way; more generations would narrow it"
USABLE = "a turn that took any time by the clock"
ROOM = "only {} of the 8 generations needed, which take 8 s"
NEAR = [0.004, 0.009, 0.013, 0.006, 0.0145, 0.0085, 0.0055, 0.0125]
ODD = [*SLOWER * 2, -0.2, *SLOWER * 4]


@pytest.mark.parametrize(
    ("log_ratios", "budget_s", "decision", "size", "confirming", "reason"),
    [
        (EQUAL, 100, "unchanged", 8, 0, WITHIN),
        (SLOWER, 16, "regressed", 16, 8, "confirmed in 8 fresh generations"),
        (ODD, 16, "regressed", 24, 16, "confirmed in 16 fresh generations"),  # one of eight is odd: eight more
        ([*SLOWER * 2, *NOISY], 16, "inconclusive", 24, 16, NOT_AGAIN),
        (NEAR, 16, "inconclusive", 16, 0, LIKELY),
        (NOISY, 0, "inconclusive", 1, 0, ROOM.format(1)),
        (NOISY, 7.9, "inconclusive", 7, 0, ROOM.format(7)),
        (NOISY, 30, "inconclusive", 30, 0, WIDE),
        ([None, None, 0.05], 16, "inconclusive", 16, 0, f"only 5 of 16 generations have {USABLE}"),
        ([None], 16, "inconclusive", 16, 0, f"no generation has {USABLE}"),
    ],
)
def test_what_is_said_of_a_row(
    log_ratios: list[float | None], budget_s: float, decision: Decision, size: int, confirming: int, reason: str
) -> None:
    outcome = outcome_of(generations(*log_ratios), budget_s=budget_s)
    assert (outcome.decision, outcome.reason) == (decision, reason)
    assert (len(outcome.generations), outcome.confirming) == (size, confirming)
    usable = sum(generation.log_ratio is not None for generation in outcome.generations)
    assert (outcome.estimate is None) == (outcome.p is None) == (usable == 0)
    if outcome.estimate is not None and not confirming:  # after which an interval has a smaller share of the error
        ends = outcome.estimate.low, outcome.estimate.high
        assert [end is None for end in ends] == [usable < 7] * 2  # seven on one side have p = 1.6 %


@pytest.mark.parametrize(
    ("log_ratios", "confidence", "confirming", "reason"),
    [
        ([*[0.0101] * 8, *[-0.009, 0.0089] * 8], 0.5, 16, "a difference that was found first did not repeat"),
        # log(1.01) is 0.00995: first a little beyond it, then a little less, and together within it.
        ([*[0.00996] * 6, *[0.0095] * 10], 0.1, 8, "there is a difference, and it is smaller than that"),
    ],
)
def test_a_change_that_turns_out_to_be_nothing_or_small_is_unchanged(
    log_ratios: list[float], confidence: float, confirming: int, reason: str
) -> None:
    outcome = outcome_of(generations(*log_ratios), rule=replace(RULE, confidence=confidence))
    assert (outcome.decision, outcome.confirming) == ("unchanged", confirming)
    assert outcome.reason == f"{WITHIN}; {reason}"


def test_p_is_that_of_the_plainest_look_and_of_the_confirmation() -> None:
    """Each look has paid for its share, so what one has shown is not taken back by the next."""
    confirmed = outcome_of(generations(*SLOWER))
    assert confirmed.p == pytest.approx(combine_p(2 * 2 / 256, 2 / 256))  # eight on one side, of two looks each time
    assert confirmed.estimate is not None
    where = confirmed.estimate.where
    assert (where.low, where.centre, where.high) == pytest.approx((0.05, 0.0505, 0.0515), abs=1e-3)
    assert outcome_of(generations(*SLOWER * 2, *NOISY)).p == pytest.approx(2 * 2 / 256)  # that of the finding alone
    small = [0.0001, 0.002, 0.004, 0.006, 0.008, 0.011, 0.014, 0.018]  # above zero; about as much as the floor
    assert outcome_of(generations(*small, *NOISY[:8])).p == pytest.approx(2 * 2 / 256)


# --- Among other rows ---


def test_a_row_that_is_plain_alone_is_not_plain_among_twenty_equal_ones() -> None:
    row = generations(*SOMEWHAT_SLOWER)
    others = {f"equal {number}": generations(*EQUAL) for number in range(20)}
    alone, among = outcome_of(row, budget_s=8), decided({"row": row, **others}, budget_s=8)[0]["row"]
    found = take_look(np.array(SOMEWHAT_SLOWER), looks=1, rule=RULE)
    assert 0.01 < found.p <= RULE.alpha
    assert alone.confirming == 16
    assert (among.decision, among.confirming) == ("inconclusive", 0)
    ten = take_look(np.resize(SOMEWHAT_SLOWER, 10), looks=1, rule=RULE)  # as many as 21 rows need at least
    assert among.p == pytest.approx(21 * ten.p)
    assert among.reason == (
        "it differs, but not so plainly that one of so many rows may be called changed; give it more time"
    )


# --- A plain change of dear generations ---

FAR_SLOWER = [2.05, 2.08, 2.11]


def plain_row(
    *log_ratios: float, budget_s: float = 15, cap_s: float = 1800, noise: float = 0.0
) -> tuple[Outcome, list[str]]:
    """A row with generations of 3 s, and what is said when it goes on beyond its budget."""
    notes: list[str] = []
    task = a_task("row", generations(*log_ratios, seconds=3.0), budget_s=budget_s)
    (outcome,) = decide([replace(task, cap_s=cap_s, noise=noise)], on_beyond=notes.append)
    return outcome, notes


@pytest.mark.parametrize(
    ("log_ratios", "fields", "decision", "size", "goes_on"),
    [
        *((FAR_SLOWER, {"budget_s": budget_s}, "regressed", 16, True) for budget_s in (1, 4, 15, 23)),
        ([-size for size in FAR_SLOWER], {}, "improved", 16, True),
        (FAR_SLOWER, {"cap_s": 47}, "inconclusive", 5, False),
        # Sizes alone decide whether it goes on, so equal programs, of either sign by chance, do not profit from it.
        ([2.05, -2.08], {}, "inconclusive", 8, True),
        # What may be noise keeps to its budget.
        ([0.0, 0.001], {}, "inconclusive", 5, False),
        ([0.099, 0.099], {}, "inconclusive", 5, False),  # ten times the floor of 1 % is 0.0995
        ([0.4, 0.4], {"noise": 0.25}, "inconclusive", 5, False),  # less than twice what this machine sees at all
        ([0.4, 0.9], {}, "inconclusive", 5, False),  # the generations differ more than the sides
        ([2.08, 0.001], {}, "inconclusive", 5, False),
    ],
)
def test_a_plain_change_gets_the_generations_that_a_verdict_needs_as_far_as_the_cap_allows(
    log_ratios: list[float], fields: dict[str, float], decision: Decision, size: int, goes_on: bool
) -> None:
    outcome, notes = plain_row(*log_ratios, **fields)
    assert (outcome.decision, len(outcome.generations), bool(notes)) == (decision, size, goes_on)
    assert outcome.lacked_time == (fields.get("cap_s") == 47)


def test_it_says_what_a_verdict_takes_before_it_goes_on_and_where_the_cap_has_no_room() -> None:
    assert plain_row(*FAR_SLOWER)[1] == [
        "row differs 7.9-fold, so it goes on beyond its 15 s: a verdict takes about 48 s (--row-cap 1800)"
    ]
    assert plain_row(*FAR_SLOWER, cap_s=47)[0].reason == (
        "it differs 8.0-fold, and a verdict takes 8 generations and as many to confirm it, 48 s, where --row-cap "
        "allows 47"
    )


def test_a_plain_change_is_found_where_dearer_generations_end_the_budget_before_the_second_look() -> None:
    """As many as one look needs are not enough for the two that were planned, at the level of a long search."""
    steps = [*[a_generation(2.08, seconds=1.2)] * 8, *[a_generation(2.08, seconds=2.0)] * 30]
    strict = replace(a_task("row", steps, budget_s=15), rule=replace(RULE, alpha=0.01 / 6), cap_s=1800.0)
    (outcome,) = decide([strict])
    assert (outcome.decision, len(outcome.generations), outcome.confirming) == ("regressed", 24, 12)


@pytest.mark.parametrize(("log_ratio", "size"), [(2.08, 16), (0.05, 32)])
def test_a_rule_may_have_a_level_of_its_own_for_a_plain_change(log_ratio: float, size: int) -> None:
    rule = replace(RULE, alpha=0.01 / 6, plain_alpha=0.05)
    task = replace(a_task("row", [a_generation(log_ratio, seconds=1.0)] * 60, budget_s=30), rule=rule)
    (outcome,) = decide([task])
    assert (outcome.decision, len(outcome.generations)) == ("regressed", size)


# --- Failures ---


@pytest.mark.parametrize(("before", "kept"), [(0, 0), (3, 3), (8, 8), (12, 12)])
def test_a_row_that_fails_ends_there_and_the_others_go_on(before: int, kept: int) -> None:
    steps: list[Step] = [*generations(*NOISY[:before]), crash()]
    outcomes, _ = decided({"bad": steps, "slower": generations(*SLOWER), "equal": generations(*EQUAL)})
    bad = outcomes["bad"]
    assert (bad.decision, bad.reason, len(bad.generations)) == ("failed", "the head's module: it crashed", kept)
    assert bad.failure is not None
    assert (bad.failure.stage, bad.failure.stderr) == ("measure", "last words")
    assert outcomes["slower"].decision == "regressed"
    assert outcomes["equal"].decision == "unchanged"


# --- Whatever it is given, it ends: within the budget, with finite numbers, and the same seen from either side ---

MIRRORED: dict[Decision, Decision] = {"regressed": "improved", "improved": "regressed"}


def spent_before_last(outcome: Outcome) -> float:
    return sum(generation.seconds for generation in outcome.generations[:-1])


@pytest.mark.parametrize(("first", "later"), [(0.01, 3.0), (3.0, 0.05), (40.0, 1.0)])
def test_whatever_later_generations_cost_the_last_one_begins_within_the_budget(first: float, later: float) -> None:
    steps = [a_generation(NOISY[n], seconds=first if n == 0 else later) for n in range(1000)]
    outcome = outcome_of(steps, budget_s=32)
    assert spent_before_last(outcome) <= 32
    if first < 32:  # and what there is room for is used
        assert spent_before_last(outcome) + outcome.generations[-1].seconds + later > 32 - 1e-9


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


def mirrored(step: Step) -> Step:
    """The step as it is seen where base and head are swapped."""
    if isinstance(step, CaseError) or step.log_ratio is None:
        return step
    return a_generation(-step.log_ratio, seconds=step.seconds)


@given(st.lists(STEPS, max_size=4), st.floats(min_value=0, max_value=60))
def test_whatever_happens_each_row_ends_with_a_word_a_reason_and_finite_numbers_and_mirrored_with_the_sides(
    rows: list[list[Step]], budget_s: float
) -> None:
    outcomes, order = decided({f"{n}": steps for n, steps in enumerate(rows)}, budget_s=budget_s)
    back, _ = decided({f"{n}": [*map(mirrored, steps)] for n, steps in enumerate(rows)}, budget_s=budget_s)
    for name, outcome in outcomes.items():
        assert outcome.reason
        assert (outcome.failure is not None) == (outcome.decision == "failed")
        assert order.count(name) == len(outcome.generations)
        estimate = outcome.estimate
        figures = [outcome.p, *((estimate.ratio, estimate.low, estimate.high) if estimate is not None else ())]
        assert all(math.isfinite(figure) for figure in figures if figure is not None)
        assert outcome.confirming <= len(outcome.generations)
        looked = outcome.generations[: len(outcome.generations) - outcome.confirming]
        assert len(looked) <= 1 or sum(generation.seconds for generation in looked[:-1]) <= budget_s
        if outcome.decision in ("regressed", "improved"):
            assert outcome.confirming >= RULE.first_look
            assert estimate is not None
            assert abs(estimate.where.centre) > math.log1p(RULE.floor)
        there = back[name]
        assert there.decision == MIRRORED.get(outcome.decision, outcome.decision)
        assert (there.p, there.reason, there.confirming) == (outcome.p, outcome.reason, outcome.confirming)
        assert len(there.generations) == len(outcome.generations)
