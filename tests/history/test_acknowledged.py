"""What people say of a change holds while more runs come in, of that change and of no other."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

import pytest

from harness.errors import UsageError
from harness.history.acknowledged import (
    acknowledge,
    event_id,
    find_events,
    marked_events,
    match_marks,
)
from harness.history.events import ChangeEvent, group_changes
from harness.store.marks import Acknowledgement, Marks
from tests.history.made import InMemory, make_change
from tests.history.test_events import ORDER, RUNS, STARTED

State = Literal["acknowledged", "fixed", "withdrawn"]


def events_of(*changes: dict[str, Any]) -> list[ChangeEvent]:
    return group_changes([make_change(**facts) for facts in changes], ORDER, 10)


def said(event: ChangeEvent, state: State = "acknowledged", *, when: str = "2026-03-01") -> Acknowledgement:
    return replace(acknowledge(event, ORDER, state, "known", "anna"), when=f"{when}T09:00:00.000000+00:00")


def at(first: int, low: Any = None, high: Any = None, **facts: Any) -> dict[str, Any]:
    """A change at a run, in a range of runs."""
    runs = {"last_good": first - 1, "first_bad": first, "earliest": first, "latest": first, "until": first}
    runs |= {"earliest": first if low is None else low, "latest": first if high is None else high}
    return {**{name: RUNS[number] for name, number in runs.items()}, **facts}


OTHER = {"series": "00000000000000ff"}
RATIO = {"metric": "latency-vs-reference", "unit": "ratio", "before": 1.0, "after": 1.04, **OTHER}
COUNT = {"metric": "dispatches", "unit": "count", "direction": "more", **OTHER}
COMPILE = {"metric": "compile-time", **OTHER}


@pytest.mark.parametrize(
    ("then", "now", "is_known"),
    [
        pytest.param([at(25, 22, 27)], [at(24)], True, id="the range narrowed"),
        pytest.param([at(25)], [at(24)], True, id="the next run is the first now"),
        pytest.param([at(25)], [at(27)], False, id="another step later"),
        pytest.param([at(25)], [at(25, direction="faster", after=1.9e6)], False, id="the other way"),
        pytest.param([at(25)], [at(25, **OTHER)], False, id="another case"),
        pytest.param([at(25)], [at(25, cause="machine")], True, id="its cause is known now"),
        pytest.param([at(20, 15, 24)], [at(22, kind="drift")], True, id="a drift now"),
        pytest.param([at(25)], [at(25, after=2.10e6)], True, id="a little more"),
        pytest.param([at(25)], [at(25, after=2.18e6)], False, id="twice as much"),
        pytest.param([at(25, before=0.0, after=2.0)], [at(25, before=0.0, after=9.0)], True, id="from nothing"),
        pytest.param([at(25, **RATIO)], [at(25), at(25, **RATIO)], True, id="another figure shows it too"),
        pytest.param([at(25), at(25, **RATIO)], [at(25)], True, id="a figure shows it no more"),
        pytest.param([at(25, **COUNT)], [at(25), at(25, **COUNT)], False, id="only a count was known"),
        pytest.param([at(25, **COMPILE)], [at(25), at(25, **COMPILE)], False, id="only a compile time was known"),
        pytest.param([at(25), at(25, **COMPILE)], [at(24), at(24, **COMPILE)], True, id="both were known"),
    ],
)
def test_a_change_is_the_same_while_more_runs_come_in(
    then: list[dict[str, Any]], now: list[dict[str, Any]], is_known: bool
) -> None:
    (event,) = events_of(*then)
    (found,) = match_marks(events_of(*now), [said(event)], ORDER)

    assert (found.state, found.settled) == (("acknowledged", True) if is_known else ("new", False))
    if is_known:
        assert not found.fails
        assert event_id(found) == event_id(event)


def test_an_id_that_was_printed_earlier_still_means_its_change() -> None:
    (wide,) = events_of(at(26, 22, 27))
    narrow, other = events_of(at(24), at(24, case="net/x@cpu", **OTHER))

    assert event_id(wide) != event_id(narrow)
    assert find_events([narrow, other], event_id(wide), ORDER) == [narrow]
    assert find_events([narrow, other], event_id(other), ORDER) == [other]
    for wrong in ("", "12345678", event_id(other)[:4]):
        with pytest.raises(UsageError, match="is no id of a change that is found now"):
            find_events([narrow, other], wrong, ORDER)


@pytest.mark.parametrize(
    ("states", "state", "fails"),
    [
        ([], "new", True),
        (["acknowledged"], "acknowledged", False),
        (["acknowledged", "fixed"], "fixed", False),
        (["fixed", "acknowledged"], "acknowledged", False),
        (["acknowledged", "withdrawn"], "new", True),
        (["withdrawn", "acknowledged"], "acknowledged", False),
    ],
)
def test_all_that_was_said_is_kept_and_the_latest_holds(states: list[State], state: str, fails: bool) -> None:
    (event,) = events_of({})
    marks = [said(event, each, when=f"2026-03-0{day}") for day, each in enumerate(states, start=1)]

    (found,) = match_marks([event], list(reversed(marks)), ORDER)

    assert (found.state, found.fails) == (state, fails)
    assert [mark.state for mark in found.marks] == states


def history_of(values: Sequence[float], marks: Sequence[Acknowledgement]) -> InMemory:
    """A latency in milliseconds, run by run."""
    counts = dict.fromkeys(("cases", "measured", "failed", "missing"), 1)
    runs = [{"run": run, "started": STARTED[run], "finished": True, "clock": "", **counts} for run in RUNS]
    series = make_change().series
    points = [
        {"run": run, "started": STARTED[run], "series": series, "value": value * 1e6}
        for run, value in zip(RUNS, values, strict=True)
    ]
    history = InMemory(tables={"runs": runs, "points": points})
    history.marks = Marks(acknowledgements=tuple(marks))
    return history


@pytest.mark.parametrize(
    ("latest", "more", "returned"),
    [
        ([2.0, 2.0, 2.0, 2.0], [], ""),
        ([2.0, 2.08, 2.08, 2.08], [], "run27"),
        ([2.0, 2.07, 2.09, 2.06], [], "run27"),
        ([2.08, 2.08, 2.08, 2.08], [], "run26"),
        ([2.0, 2.0, 2.08, 2.08], [], ""),
        ([2.08, 2.08, 2.08, 2.0], [], ""),
        ([2.0, 2.08, 2.08, 2.08], [at(27)], ""),
    ],
)
def test_what_was_fixed_comes_back_where_three_runs_have_the_bad_level_again(
    latest: list[float], more: list[dict[str, Any]], returned: str
) -> None:
    events = events_of(at(10), *more)
    old = events[-1]
    mark = said(old, "fixed", when=STARTED["run25"][:10])
    values = [2.0] * 10 + [2.08] * 16 + latest

    *others, found = marked_events(events, history_of(values, [mark]), ORDER, 10)

    assert (found.returned, found.state) == (returned, "came back" if returned else "fixed")
    assert found.recent == found.fails == bool(returned)
    assert all(other.state == "new" for other in others)
