"""One event is seen in several figures and cases; it is told once."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from harness.history.changes import Change
from harness.history.events import group_changes, run_order

RUNS = [f"run{number:02d}" for number in range(30)]
ORDER = run_order((run, "nightly", "AMD EPYC, 2 cores") for run in RUNS)


def change(**changes: Any) -> Change:
    facts: dict[str, Any] = {
        "series": "a335a65fb23408a2",
        "suite": "nightly",
        "case": "net/stock@cpu",
        "metric": "latency",
        "unit": "ns",
        "machine_class": "AMD EPYC, 2 cores",
        "role": "newest",
        "kind": "step",
        "direction": "slower",
        "ratio": 1.04,
        "before": 2e6,
        "after": 2.08e6,
        "first_bad": "run25",
        "last_good": "run24",
        "earliest": "run25",
        "latest": "run25",
        "started": "2026-02-10T02:00:00+00:00",
        "p": 1e-9,
        "cause": "compiler",
        "evidence": "the ratio to the reference toolchain 3.12.0 moved by +3.9 %",
        "toolchain_before": "3.13.0 (aaaaaaaaaa)",
        "toolchain_after": "3.13.0 (bbbbbbbbbb)",
        "commits": "",
        "points": 30,
        "until": "run25",
    }
    return Change(**{**facts, **changes})


def test_figures_of_one_case_that_changed_together_are_one_event_led_by_the_latency() -> None:
    (event,) = group_changes(
        [
            change(metric="dispatches", unit="count", direction="more"),
            change(metric="latency-vs-reference", unit="ratio", first_bad="run26", earliest="run24", latest="run27"),
            change(),
        ],
        ORDER,
        last=10,
    )

    assert [change.metric for change in event.changes] == ["latency", "latency-vs-reference", "dispatches"]
    assert event.fails


def test_the_machine_is_one_event_however_many_cases_it_slows() -> None:
    cases = [f"net/{number}@cpu" for number in range(5)]

    (event,) = group_changes(
        [change(case=case, cause="machine", ratio=1.03 + 0.01 * place) for place, case in enumerate(cases)], ORDER, 10
    )

    assert event.cases == tuple(cases)
    assert event.ratio == 1.05
    assert not event.fails


def test_two_events_of_one_case_stay_two() -> None:
    early = {"first_bad": "run05", "earliest": "run04", "latest": "run06", "until": "run05"}

    events = group_changes([change(**early), change()], ORDER, 10)

    assert [event.lead.first_bad for event in events] == ["run25", "run05"]


def test_a_case_that_the_machine_and_the_compiler_changed_has_both() -> None:
    events = group_changes([change(), change(role="reference", cause="machine")], ORDER, 10)

    assert {event.cause for event in events} == {"compiler", "machine"}


def test_only_a_recent_time_that_became_longer_by_the_compiler_is_a_reason_to_stop() -> None:
    def fails(**changes: Any) -> bool:
        (event,) = group_changes([change(**changes)], ORDER, last=10)
        return event.fails

    assert fails()
    assert fails(metric="compile-time")
    assert fails(metric="latency-vs-reference", unit="ratio")
    assert not fails(direction="faster")
    assert not fails(cause="machine")
    assert not fails(cause="unknown")
    assert not fails(metric="module-size", unit="bytes", direction="more")
    assert not fails(metric="latency-vs-baseline", unit="ratio")
    assert not fails(peer="onnxruntime")
    assert not fails(first_bad="run19", earliest="run19", latest="run19", until="run19")
    assert fails(first_bad="run20", earliest="run20", latest="run20", until="run20")


def test_what_leads_an_event_is_what_is_a_reason_to_stop() -> None:
    (event,) = group_changes(
        [change(direction="faster", ratio=0.9), change(metric="compile-time", ratio=1.5)], ORDER, 10
    )

    assert event.lead.metric == "compile-time"
    assert event.fails


def test_a_drift_is_recent_as_long_as_it_goes_on() -> None:
    drift = change(kind="drift", first_bad="run02", earliest="run01", latest="run04", until="run29")

    assert group_changes([drift], ORDER, last=1)[0].recent
    assert not group_changes([replace(drift, until="run28")], ORDER, last=1)[0].recent


def test_runs_of_other_suites_and_machines_make_nothing_older() -> None:
    others = [(f"other{number}", suite, "AMD EPYC, 2 cores") for suite in ("weekly",) for number in range(50)]
    order = run_order([*((run, "nightly", "AMD EPYC, 2 cores") for run in RUNS), *others])

    assert group_changes([change()], order, last=10)[0].recent
    assert order.from_end["run29"] == 0
