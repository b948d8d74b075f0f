"""One event is seen in several figures and cases, and told once; what people say of it holds as runs come in."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

import pytest

from harness.errors import UsageError
from harness.history.events import ChangeEvent, acknowledge, find_events, group_changes
from harness.history.series import RunFacts, Runs
from harness.store.marks import Acknowledgement
from tests.history.made import make_change

State = Literal["acknowledged", "fixed", "withdrawn"]
RUNS = [f"run{number:02d}" for number in range(30)]
ORDER = Runs(
    facts=tuple(
        RunFacts(run=run, suite="nightly", started=f"2026-02-{number + 1:02d}T02:00:00+00:00")
        for number, run in enumerate(RUNS)
    )
)
EARLY = {"first_bad": "run05", "earliest": "run04", "latest": "run06", "until": "run05"}


def events_of(*changes: dict[str, Any], marks: Sequence[Acknowledgement] = ()) -> list[ChangeEvent]:
    return group_changes([make_change(**facts) for facts in changes], ORDER, 10, marks)


def at(first: int, low: Any = None, high: Any = None, **facts: Any) -> dict[str, Any]:
    """A change at a run, in a range of runs."""
    runs = {"last_good": first - 1, "first_bad": first, "earliest": first, "latest": first, "until": first}
    runs |= {"earliest": first if low is None else low, "latest": first if high is None else high}
    return {**{name: RUNS[number] for name, number in runs.items()}, **facts}


def test_figures_of_one_case_that_changed_together_are_one_event_led_by_the_latency_and_the_machine_is_one() -> None:
    ratio = at(26, 24, 27, metric="latency-vs-reference")
    (event,) = events_of({"metric": "dispatches", "unit": "count", "direction": "more"}, ratio, {})
    assert [change.metric for change in event.changes] == ["latency", "latency-vs-reference", "dispatches"]
    assert event.fails
    # What is a reason to stop leads.
    (event,) = events_of({"direction": "faster", "ratio": 0.9}, {"metric": "compile-time", "ratio": 1.5})
    assert (event.lead.metric, event.fails) == ("compile-time", True)
    cases = [f"net/{number}@cpu" for number in range(5)]
    (event,) = events_of(
        *({"case": case, "cause": "machine", "ratio": 1.03 + 0.01 * n} for n, case in enumerate(cases))
    )
    assert (event.cases, event.ratio, event.fails) == (tuple(cases), 1.05, False)
    # Two times and two causes are two events, the latest first.
    assert [event.lead.first_bad for event in events_of(EARLY, {})] == ["run25", "run05"]
    assert len(events_of({}, {"role": "reference", "cause": "machine"})) == 2


@pytest.mark.parametrize(
    ("facts", "fails"),
    [
        ({}, True),
        ({"metric": "compile-time"}, True),
        ({"metric": "latency-vs-reference", "unit": "ratio"}, True),
        ({"direction": "faster"}, False),
        ({"cause": "machine"}, False),
        ({"cause": "unknown"}, False),
        ({"metric": "module-size", "unit": "bytes", "direction": "more"}, False),
        ({"metric": "latency-vs-baseline", "unit": "ratio"}, False),
        ({"peer": "onnxruntime"}, False),
        (at(19), False),
        (at(20), True),
    ],
)
def test_only_a_recent_time_that_became_longer_by_the_compiler_is_a_reason_to_stop(
    facts: dict[str, Any], fails: bool
) -> None:
    (event,) = events_of(facts)
    assert event.fails == fails


# --- What people say ---


def said(event: ChangeEvent, state: State = "acknowledged", *, when: str = "2026-03-01") -> Acknowledgement:
    return replace(acknowledge(event, ORDER, state, "known", "anna"), when=f"{when}T09:00:00.000000+00:00")


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
    (found,) = events_of(*now, marks=[said(event)])
    assert (found.state, found.settled) == (("acknowledged", True) if is_known else ("new", False))
    if is_known:
        assert not found.fails
        assert found.id == event.id


def test_an_id_that_was_printed_earlier_still_means_its_change() -> None:
    (wide,) = events_of(at(26, 22, 27))
    narrow, other = events_of(at(24), at(24, case="net/x@cpu", **OTHER))
    assert wide.id != narrow.id
    assert find_events([narrow, other], wide.id, ORDER) == [narrow]
    assert find_events([narrow, other], other.id, ORDER) == [other]
    for wrong in ("", "12345678", other.id[:4]):
        with pytest.raises(UsageError, match="is no id of a change that is found now"):
            find_events([narrow, other], wrong, ORDER)


def test_all_that_was_said_is_kept_and_the_latest_holds() -> None:
    (event,) = events_of({})
    states: list[State] = ["acknowledged", "fixed", "withdrawn"]
    marks = [said(event, each, when=f"2026-03-0{day}") for day, each in enumerate(states, start=1)]
    for count, state in enumerate(["new", "acknowledged", "fixed", "new"]):
        (found,) = events_of({}, marks=list(reversed(marks[:count])))
        assert (found.state, found.fails) == (state, state == "new")
        assert [mark.state for mark in found.marks] == states[:count]
