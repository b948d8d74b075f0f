"""The order of turns."""

from __future__ import annotations

import itertools
from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from harness.measure.generation import balanced_orders, load_order

CASES = st.lists(st.text(min_size=1), min_size=1, max_size=8, unique=True)


def _first(cases: list[str], seed: str, rounds: int) -> list[tuple[str, ...]]:
    return list(itertools.islice(balanced_orders(cases, seed), rounds))


def test_two_cases_alternate_as_abba_or_baab() -> None:
    orders = _first(["a", "b"], "0", 20)
    for forth, back in zip(orders[::2], orders[1::2], strict=True):
        assert "".join(forth + back) in {"abba", "baab"}


@given(CASES, st.text())
def test_every_round_has_every_case_once(cases: list[str], seed: str) -> None:
    for order in _first(cases, seed, 6):
        assert sorted(order) == sorted(cases)


@given(CASES, st.text())
def test_within_a_pair_of_rounds_every_case_has_the_same_mean_position(cases: list[str], seed: str) -> None:
    forth, back = _first(cases, seed, 2)
    for case in cases:
        assert forth.index(case) + back.index(case) == len(cases) - 1


@given(CASES, st.text())
def test_the_same_seed_gives_the_same_orders(cases: list[str], seed: str) -> None:
    assert _first(cases, seed, 8) == _first(cases, seed, 8)


def test_pairs_differ_so_that_neighbours_are_not_always_the_same() -> None:
    orders = _first(["a", "b", "c", "d", "e"], "seed", 40)
    assert len(set(orders)) > 20


def test_orders_differ_between_generations() -> None:
    assert _first(list("abcdef"), "0/group/0", 8) != _first(list("abcdef"), "0/group/1", 8)


@given(CASES, st.text())
def test_everything_is_loaded_once_in_an_order_that_the_seed_decides(cases: list[str], seed: str) -> None:
    order = load_order(cases, seed)
    assert sorted(order) == sorted(cases)
    assert load_order(cases, seed) == order


def test_each_case_is_loaded_first_about_as_often_as_any_other() -> None:
    """Else what it costs to be the first, in every process alike, would look like the case's own."""
    first = Counter(load_order("abcd", f"0/net@cpu/{generation}")[0] for generation in range(400))
    assert all(60 < first[case] < 140 for case in "abcd")
