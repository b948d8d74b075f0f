"""Made-up histories of which the truth is known: each change is found, dated and given its cause."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from harness.history.changes import Change, history_changes
from harness.history.open import open_history
from harness.records.run import Run
from tests.history.made import NEWEST, compacted, make_night, make_nights, night_id, step, store

AT = 40


def changes_of(results: Path, runs: list[Run], **given: object) -> list[Change]:
    compacted(results, runs)
    with open_history(str(results)) as history:
        return history_changes(history, **given)  # type: ignore[arg-type]  # keywords of history_changes


def causes(changes: list[Change], metric: str = "latency", role: str = "newest") -> set[str]:
    return {change.cause for change in changes if (change.metric, change.role) == (metric, role)}


def test_a_machine_that_becomes_4_percent_slower_is_told_from_the_compiler(tmp_path: Path) -> None:
    changes = changes_of(tmp_path, make_nights(60, machine=step(AT, 1.04)))

    assert causes(changes) == {"machine"}
    assert causes(changes, role="reference") == {"machine"}
    assert not [one for one in changes if one.metric == "latency-vs-reference"]
    assert {one.case for one in changes} == {"net/stock@cpu", "net/tiled@cpu"}


def test_a_compiler_that_becomes_4_percent_slower_is_told_from_the_machine(tmp_path: Path) -> None:
    changes = changes_of(tmp_path, make_nights(60, compiler=step(AT, 1.04)))

    assert causes(changes) == causes(changes, "latency-vs-reference") == {"compiler"}
    assert not [one for one in changes if one.role == "reference"]
    ratios = [one for one in changes if one.metric == "latency-vs-reference"]
    assert [one.ratio for one in ratios] == pytest.approx([1.04, 1.04], abs=0.005)
    assert all("and 3.13.0 (" in one.evidence for one in ratios)


def test_where_both_become_slower_in_one_night_both_are_told(tmp_path: Path) -> None:
    changes = changes_of(tmp_path, make_nights(60, machine=step(AT, 1.04), compiler=step(AT, 1.04)))

    assert causes(changes) == {"compiler"}
    assert causes(changes, role="reference") == {"machine"}
    assert all(
        one.evidence.endswith("which is the machine's part")
        for one in changes
        if one.role == "newest" and one.metric == "latency"
    )


def test_a_faster_compiler_on_a_slower_machine_is_not_blamed(tmp_path: Path) -> None:
    changes = changes_of(tmp_path, make_nights(36, machine=step(24, 1.06), compiler=step(24, 0.97)))

    assert causes(changes) == {"machine"}
    assert {one.direction for one in changes if one.metric == "latency-vs-reference"} == {"faster"}


def test_the_first_bad_run_and_those_around_it_are_named(tmp_path: Path) -> None:
    changes = changes_of(tmp_path, make_nights(60, compiler=step(AT, 1.1)), metrics={"latency"})

    assert len(changes) == 2
    for one in changes:
        assert (one.kind, one.direction, one.points) == ("step", "slower", 60)
        assert (one.last_good, one.first_bad, one.until) == (night_id(AT - 1), night_id(AT), night_id(AT))
        assert one.earliest <= one.first_bad <= one.latest
        assert one.started == "2026-02-10T02:00:00+00:00"
        assert one.ratio == pytest.approx(1.1, abs=0.01)
        assert one.after / one.before == one.ratio


def test_a_drift_of_the_machine_is_a_drift_of_the_machine(tmp_path: Path) -> None:
    def worse(night: int) -> float:
        return 1 + 0.1 * min(max(night - 20, 0), 30) / 30

    changes = changes_of(tmp_path, make_nights(60, machine=worse), metrics={"latency"})

    assert {(one.kind, one.cause) for one in changes} == {("drift", "machine")}
    assert all(one.first_bad < night_id(30) < one.until for one in changes)


def test_a_quiet_history_has_no_changes(tmp_path: Path) -> None:
    assert changes_of(tmp_path, make_nights(36)) == []


def test_a_machine_whose_modules_never_change_cannot_blame_the_compiler(tmp_path: Path) -> None:
    runs = make_nights(36, machine=step(24, 1.04), same_modules=True, toolchains=(NEWEST,))

    changes = changes_of(tmp_path, runs)

    assert {one.cause for one in changes} == {"machine"}


def test_without_a_reference_the_instructions_tell(tmp_path: Path) -> None:
    changes = changes_of(tmp_path, make_nights(36, compiler=step(24, 1.04), toolchains=(NEWEST,)))

    assert causes(changes) == {"compiler"}
    assert all("instructions" in one.evidence for one in changes if one.metric == "latency")


def test_a_count_that_changes_once_is_found_at_its_run(tmp_path: Path) -> None:
    runs = [make_night(night, dispatches=7 if night < 12 else 9, reference_dispatches=7) for night in range(20)]

    changes = [one for one in changes_of(tmp_path, runs) if one.metric == "dispatches" and one.role == "newest"]

    assert [(one.before, one.after, one.first_bad, one.direction) for one in changes] == [
        (7.0, 9.0, night_id(12), "more")
    ] * 2
    assert {one.cause for one in changes} == {"compiler"}


def test_a_count_that_changes_under_the_reference_too_is_not_the_compilers(tmp_path: Path) -> None:
    runs = [make_night(night, dispatches=7 if night < 12 else 9) for night in range(20)]

    changes = [one for one in changes_of(tmp_path, runs) if one.metric == "dispatches"]

    assert {one.role for one in changes} == {"newest", "reference"}
    assert {one.cause for one in changes} == {"unknown"}
    assert all("the program is another too" in one.evidence for one in changes if one.role == "newest")


def test_only_series_of_some_ids_can_be_searched(tmp_path: Path) -> None:
    found = changes_of(tmp_path, make_nights(60, compiler=step(AT, 1.1)))
    one = next(one for one in found if one.metric == "latency")

    with open_history(str(tmp_path)) as history:
        assert history_changes(history, series=[one.series]) == [one]


def test_a_count_that_was_zero_has_no_finite_ratio(tmp_path: Path) -> None:
    runs = [make_night(night, copies=0 if night < 12 else 2) for night in range(20)]

    changes = [one for one in changes_of(tmp_path, runs, metrics={"copies"}) if one.role == "newest"]

    assert {one.ratio for one in changes} == {math.inf}


def test_runs_with_a_wrong_clock_and_unfinished_ones_are_left_out(tmp_path: Path) -> None:
    compacted(tmp_path, make_nights(24))
    for number in range(10):
        odd = {"machine": step(0, 2.0), "started": f"20{90 + number}-01-01T00:00:00Z"}
        store(tmp_path, make_night(50 + number, **odd))  # type: ignore[arg-type]  # keywords of make_night
    for night in range(61, 70):
        run = make_night(night, machine=step(0, 2.0))
        store(tmp_path, type(run)(**{**vars(run), "finished": False}))

    with open_history(str(tmp_path)) as history:
        assert len(history.runs()) == 43
        assert history_changes(history) == []


def test_several_processes_find_what_one_finds(tmp_path: Path) -> None:
    compacted(tmp_path, make_nights(30, compiler=step(20, 1.2)))

    with open_history(str(tmp_path)) as history:
        assert history_changes(history, jobs=2) == history_changes(history, jobs=1) != []


def test_an_empty_history_has_no_changes(tmp_path: Path) -> None:
    with open_history(str(tmp_path)) as history:
        assert history_changes(history) == []
