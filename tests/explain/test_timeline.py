"""Whose each moment of a device is, and what a call spends where."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.explain.timeline import Span, per_call_ns, shares_ns


def a_span(what: str, start: int, end: int, *, encloses: bool = False) -> Span:
    return Span(what=what, start_ns=start, end_ns=end, encloses=encloses)


@pytest.mark.parametrize(
    ("spans", "shares"),
    [
        ([a_span("a", 0, 10), a_span("b", 10, 30)], [10, 20]),
        ([a_span("a", 0, 10), a_span("b", 5, 25)], [7.5, 17.5]),
        ([a_span("a", 0, 30), a_span("b", 10, 20), a_span("c", 10, 20)], [20 + 10 / 3, 10 / 3, 10 / 3]),
        ([a_span("a", 5, 5), a_span("b", 0, 10)], [0, 10]),
        ([a_span("all", 0, 30, encloses=True), a_span("a", 5, 10), a_span("b", 12, 20)], [17, 5, 8]),
        ([a_span("all", 0, 10, encloses=True), a_span("a", 0, 10)], [0, 10]),
        ([], []),
    ],
    ids=["one by one", "together", "three at once", "no time at all", "enclosed", "nothing left", "nothing"],
)
def test_each_moment_is_given_once(spans: list[Span], shares: list[float]) -> None:
    assert shares_ns(spans) == pytest.approx(shares)


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50), st.booleans()), max_size=12))
def test_shares_add_up_to_the_time_in_which_anything_runs(drawn: list[tuple[int, int, bool]]) -> None:
    spans = [a_span("x", min(pair), max(pair), encloses=encloses) for *pair, encloses in drawn]
    covered = {moment for span in spans for moment in range(span.start_ns, span.end_ns)}
    shares = shares_ns(spans)
    assert sum(shares) == pytest.approx(len(covered))
    for span, share in zip(spans, shares, strict=True):
        assert -1e-9 <= share <= span.end_ns - span.start_ns + 1e-9


def calls(*lengths: tuple[int, int]) -> list[Span]:
    """Calls of two operations, one after the other."""
    spans, now = [], 0
    for first, second in lengths:
        spans += [a_span("first", now, now + first), a_span("second", now + first, now + first + second)]
        now += first + second + 1
    return spans


def test_calls_that_do_the_same_count_with_their_median() -> None:
    assert per_call_ns(calls((900, 90), (10, 5), (12, 7)), 3) == {"first": 12, "second": 7}
    twice = [*calls((4, 6)), *(a_span("first", start, start + 2) for start in (20, 30))]
    assert per_call_ns(twice, 1) == {"first": 8, "second": 6}


def test_others_count_with_their_mean() -> None:
    spans = calls((900, 90), (10, 5), (11, 7))
    assert per_call_ns(spans[:-1], 3) == {"first": 307, "second": pytest.approx(95 / 3)}
    assert per_call_ns([*spans[:4], a_span("second", 2000, 2004), a_span("second", 3000, 3002)], 3) == {
        "first": pytest.approx(910 / 3),
        "second": pytest.approx(101 / 3),
    }
    assert per_call_ns([], 3) == {}
