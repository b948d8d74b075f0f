"""Made-up histories of which the truth is known: each change is found, dated and given its cause.

A night is a run of two variants under a reference toolchain and the newest, see tests.history.made. Some histories
mislead: two things change at once or nearly, or something looks like the compiler's.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from harness.history.changes import Change, history_changes
from harness.history.events import group_changes
from harness.history.series import usable_runs
from harness.records.run import HostRecord, Placed, Run
from tests.history.made import (
    NEWEST,
    InMemory,
    make_night,
    night_id,
    of_other_programs,
    step,
    with_compile_times,
    with_peer,
)

AT, COUNT = 20, 32
STOCK, TILED = "net/stock@cpu", "net/tiled@cpu"


def nights(count: int = COUNT, **facts: Any) -> list[Run]:
    return [make_night(night, **facts) for night in range(count)]


def search(runs: Sequence[Run], **options: Any) -> list[Change]:
    """The changes of a history of these runs."""
    return history_changes(InMemory(runs), **options)


def only(changes: Sequence[Change], metric: str, role: str = "newest", case: str = STOCK, **facts: object) -> Change:
    wanted = {"metric": metric, "role": role, "case": case, **facts}
    (found,) = [change for change in changes if all(getattr(change, name) == wanted[name] for name in wanted)]
    return found


def causes(changes: Sequence[Change], metric: str = "latency", role: str = "newest") -> set[str]:
    return {change.cause for change in changes if (change.metric, change.role) == (metric, role)}


@pytest.mark.parametrize(
    ("machine", "compiler", "newest", "reference", "ratio"),
    [
        (1.04, 1.0, {"machine"}, {"machine"}, set()),
        (1.0, 1.04, {"compiler"}, set(), {"slower"}),
        (1.04, 1.04, {"compiler"}, {"machine"}, {"slower"}),
        (1.06, 0.97, {"machine"}, {"machine"}, {"faster"}),  # a faster compiler on a slower machine
        (1.0, 1.0, set(), set(), set()),
    ],
)
def test_the_reference_tells_the_machine_from_the_compiler(
    machine: float, compiler: float, newest: set[str], reference: set[str], ratio: set[str]
) -> None:
    changes = search(nights(36, machine=step(24, machine), compiler=step(24, compiler)))

    assert causes(changes) == newest
    assert causes(changes, role="reference") == reference
    ratios = [change for change in changes if change.metric == "latency-vs-reference"]
    assert {change.direction for change in ratios} == ratio
    assert {change.cause for change in ratios} <= {"compiler"}
    assert {change.case for change in changes} in ({STOCK, TILED}, set())


def test_without_a_reference_modules_and_counts_decide_and_the_first_bad_run_is_named() -> None:
    changes = search(nights(toolchains=(NEWEST,), machine=step(AT, 1.1), same_modules=True), metrics={"latency"})
    assert [change.case for change in changes] == [STOCK, TILED]
    for change in changes:
        assert (change.kind, change.direction, change.points) == ("step", "slower", COUNT)
        assert (change.last_good, change.first_bad, change.until) == (night_id(AT - 1), night_id(AT), night_id(AT))
        assert change.earliest <= change.first_bad <= change.latest
        assert change.started == "2026-01-21T02:00:00+00:00"
        assert change.ratio == change.after / change.before == pytest.approx(1.1, abs=0.01)
        assert (change.cause, "the same module ran" in change.evidence) == ("machine", True)
    slower = search([make_night(night, toolchains=(NEWEST,), compiler=step(AT, 1.04), dispatches=7 + (night >= AT))
                     for night in range(COUNT)])  # fmt: skip
    assert causes(slower) == {"compiler"}
    assert all("dispatches" in change.evidence for change in slower if change.metric == "latency")


def test_runs_with_a_wrong_clock_and_unfinished_ones_are_left_out() -> None:
    runs = nights(24)
    runs += [make_night(50 + n, machine=step(0, 2.0), started=f"20{90 + n}-01-01T00:00:00Z") for n in range(10)]
    runs += [replace(make_night(60 + n, machine=step(0, 2.0)), finished=False) for n in range(10)]
    assert search(runs) == []


@pytest.mark.parametrize(
    ("reference", "roles", "cause"), [(7, {"newest"}, "compiler"), (None, {"newest", "reference"}, "unknown")]
)
def test_a_count_is_the_compilers_unless_it_changed_under_the_reference_too(
    reference: int | None, roles: set[str], cause: str
) -> None:
    runs = [make_night(night, dispatches=7 if night < 12 else 9, reference_dispatches=reference) for night in range(20)]

    changes = search(runs, metrics={"dispatches"})

    assert {change.role for change in changes} == roles
    assert {change.cause for change in changes} == {cause}
    assert {(each.before, each.after, each.first_bad) for each in changes} == {(7.0, 9.0, night_id(12))}
    assert {change.direction for change in changes} == {"more"}


@pytest.mark.parametrize("machine", [1.0, 1 / 0.85])  # which hides it in the baseline's own latency
def test_a_peers_ratio_to_a_baseline_that_another_compiler_made_is_the_compilers(machine: float) -> None:
    changed = nights(compiler=step(AT, 0.85), machine=step(AT, machine))
    change = only(search(list(map(with_peer, changed))), "latency-vs-baseline", case="net/ort@cpu")

    assert change.cause == "compiler"
    assert "the engine is the same, and the baseline variant's toolchain changed between 3.13.0 (" in change.evidence


def test_compile_times_are_held_against_the_references_own_and_a_model_that_was_edited_is_nobodys() -> None:
    timed = [with_compile_times(run, 1.5 if night >= AT else 1.0) for night, run in enumerate(nights())]
    assert only(search(timed), "compile-time").cause == "machine"
    # The program is another one under both toolchains, and takes longer.
    longer = nights(machine=step(AT, 1.3))
    changes = search([*longer[:AT], *map(of_other_programs, longer[AT:])])
    assert {change.cause for change in changes} == {"unknown"}
    assert {change.role for change in changes} == {"newest", "reference"}


@pytest.mark.parametrize("later", [2, 5])
def test_the_compilers_part_of_two_near_changes_is_dated_by_the_ratio(later: int) -> None:
    runs = nights(60, machine=step(40, 1.05), compiler=step(40 + later, 1.05))
    history = InMemory(runs)
    changes = history_changes(history)
    of_latencies = history_changes(history, metrics={"latency"})
    latency, ratio = only(changes, "latency"), only(changes, "latency-vs-reference")

    dates = ("kind", "first_bad", "last_good", "earliest", "latest", "toolchain_before", "toolchain_after")
    assert latency.cause == "compiler"
    assert [getattr(latency, name) for name in dates] == [getattr(ratio, name) for name in dates]
    assert latency.first_bad == night_id(40 + later)
    assert f"between {ratio.toolchain_before} and {ratio.toolchain_after}" in latency.evidence
    assert latency in of_latencies  # the ratio dates it where only latencies are asked for, too
    (event,) = [
        event
        for event in group_changes(changes, usable_runs(history), 20)
        if event.lead.cause == "compiler" and STOCK in event.cases
    ]
    assert {latency.series, ratio.series} <= {change.series for change in event.changes}


def test_a_group_that_moved_to_another_host_of_its_class_is_told_by_its_machine() -> None:
    """Both hosts have a part in every run, and only the group `net@cpu` moves from one to the other."""
    hosts = tuple(HostRecord(name=name, environment={"machine": {"id": name * 12}}) for name in "ab")
    runs = []
    for night, run in enumerate(nights(same_modules=True, machine=step(AT, 1.05), harness_commit="c" * 20)):
        elsewhere, own = ("a", "b") if night >= AT else ("b", "a")
        placed = (Placed(group="net@cpu", host=own), Placed(group="other@cpu", host=elsewhere))
        rounds = tuple(replace(measured, host=own) for measured in run.rounds)
        runs.append(replace(run, hosts=hosts, placed=placed, rounds=rounds))

    change = only(search(runs), "latency")

    assert (change.cause, change.first_bad) == ("machine", night_id(AT))
    assert change.evidence.endswith("; meanwhile the machine changed from aaaaaaaaaaaa to bbbbbbbbbbbb")
