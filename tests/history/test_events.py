"""One event is seen in several figures and cases; it is told once."""

from typing import Any

import pytest

from harness.history.events import ChangeEvent, group_changes
from harness.history.series import RunFacts, Runs
from tests.history.made import make_change

RUNS = [f"run{number:02d}" for number in range(30)]
STARTED = {
    run: f"2026-02-{number + 1:02d}T02:00:00+00:00" if number < 28 else f"2026-03-{number - 27:02d}T02:00:00+00:00"
    for number, run in enumerate(RUNS)
}
ORDER = Runs(facts=tuple(RunFacts(run=run, suite="nightly", started=STARTED[run]) for run in RUNS))
EARLY = {"first_bad": "run05", "earliest": "run04", "latest": "run06", "until": "run05"}
DRIFT = {"kind": "drift", "first_bad": "run02", "earliest": "run01", "latest": "run04"}


def events_of(*changes: dict[str, Any], last: int = 10) -> list[ChangeEvent]:
    return group_changes([make_change(**facts) for facts in changes], ORDER, last)


def test_figures_of_one_case_that_changed_together_are_one_event_led_by_the_latency() -> None:
    ratio = {"metric": "latency-vs-reference", "first_bad": "run26", "earliest": "run24", "latest": "run27"}
    (event,) = events_of({"metric": "dispatches", "unit": "count", "direction": "more"}, ratio, {})
    assert [change.metric for change in event.changes] == ["latency", "latency-vs-reference", "dispatches"]
    assert event.fails


def test_the_machine_is_one_event_however_many_cases_it_slows() -> None:
    cases = [f"net/{number}@cpu" for number in range(5)]
    (event,) = events_of(
        *({"case": case, "cause": "machine", "ratio": 1.03 + 0.01 * place} for place, case in enumerate(cases))
    )
    assert event.cases == tuple(cases)
    assert event.ratio == 1.05
    assert not event.fails


def test_two_times_and_two_causes_are_two_events_the_latest_first() -> None:
    assert [event.lead.first_bad for event in events_of(EARLY, {})] == ["run25", "run05"]
    assert {event.cause for event in events_of({}, {"role": "reference", "cause": "machine"})} == {
        "compiler",
        "machine",
    }


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
        (dict.fromkeys(("first_bad", "earliest", "latest", "until"), "run19"), False),
        (dict.fromkeys(("first_bad", "earliest", "latest", "until"), "run20"), True),
    ],
)
def test_only_a_recent_time_that_became_longer_by_the_compiler_is_a_reason_to_stop(
    facts: dict[str, Any], fails: bool
) -> None:
    (event,) = events_of(facts)
    assert event.fails == fails


def test_what_leads_an_event_is_what_is_a_reason_to_stop() -> None:
    (event,) = events_of({"direction": "faster", "ratio": 0.9}, {"metric": "compile-time", "ratio": 1.5})
    assert event.lead.metric == "compile-time"
    assert event.fails
