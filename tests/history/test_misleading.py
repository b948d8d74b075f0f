"""Histories that mislead: two things changed at once or nearly, or something that looks like the compiler's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from harness.history.changes import Change, history_changes
from harness.history.events import group_changes, run_order
from harness.history.open import open_history
from harness.records.run import Run
from tests.history.made import (
    compacted,
    level,
    make_night,
    night_id,
    of_other_programs,
    scaled,
    step,
    with_compile_times,
    with_peer,
)

AT, COUNT = 20, 32
STOCK = "net/stock@cpu"


@pytest.fixture
def changes_of(tmp_path: Path) -> Callable[[Sequence[Run]], list[Change]]:
    """The changes of a history, but for the second variant's."""

    def search(runs: Sequence[Run]) -> list[Change]:
        compacted(tmp_path, runs)
        with open_history(str(tmp_path)) as history:
            return [one for one in history_changes(history) if one.case != "net/tiled@cpu"]

    return search


ChangesOf = Callable[[Sequence[Run]], list[Change]]


def only(changes: Sequence[Change], metric: str, role: str = "newest", **given: object) -> Change:
    (found,) = [
        one
        for one in changes
        if (one.metric, one.role) == (metric, role)
        and all(getattr(one, name) == value for name, value in given.items())
    ]
    return found


def slower(case: str, ending: str, by: float) -> float:
    return by if case.endswith(ending) else 1.0


def test_a_step_of_the_compiler_inside_a_drift_of_the_machine_is_told_from_it(changes_of: ChangesOf) -> None:
    changes = changes_of(
        [make_night(night, machine=lambda n: 1 + 0.06 * n / 90, compiler=step(45, 1.05)) for night in range(90)]
    )

    drift, inside = only(changes, "latency", kind="drift"), only(changes, "latency", kind="step")
    assert (drift.cause, inside.cause) == ("machine", "compiler")
    assert inside.first_bad == night_id(45)


def test_a_step_of_the_machine_inside_its_drift_is_the_machines(changes_of: ChangesOf) -> None:
    changes = changes_of(
        [make_night(night, machine=lambda n: (1 + 0.06 * n / 90) * step(45, 1.05)(n)) for night in range(90)]
    )

    assert {(one.kind, one.cause) for one in changes if one.metric == "latency" and one.role == "newest"} == {
        ("drift", "machine"),
        ("step", "machine"),
    }


def test_two_references_are_never_compared_with_each_other(changes_of: ChangesOf) -> None:
    """The machine is level; the newest became slower as the reference gave way to a slower release."""
    runs = []
    for night in range(COUNT):
        run = make_night(night, toolchains=("3.12.0" if night < AT else "3.13.0", "3.14.0"))
        runs.append(scaled(run, lambda _: 1.06) if night >= AT else run)

    change = only(changes_of(runs), "latency")

    assert change.cause == "unknown"
    assert change.evidence.endswith("the reference toolchain itself changed from 3.12.0 to 3.13.0 at these runs")


def test_another_reference_long_before_does_no_harm(changes_of: ChangesOf) -> None:
    runs = [
        make_night(night, toolchains=("3.12.0" if night < 12 else "3.13.0", "3.14.0"), machine=step(24, 1.06))
        for night in range(36)
    ]

    assert only(changes_of(runs), "latency").cause == "machine"


def test_a_peers_upgrade_is_no_regression_of_the_compiler(changes_of: ChangesOf) -> None:
    engines = ("onnxruntime 1.20.0", "onnxruntime 1.21.0")
    runs = [with_peer(make_night(n), engines[n >= AT], 1.2 if n >= AT else 1.0) for n in range(COUNT)]

    changes = changes_of(runs)

    assert {(one.peer, one.metric, one.cause) for one in changes} == {
        ("onnxruntime", "latency", "unknown"),
        ("onnxruntime", "latency-vs-baseline", "unknown"),
    }
    assert {one.evidence for one in changes} == {
        "the engine itself changed from onnxruntime 1.20.0 to onnxruntime 1.21.0"
    }


def test_a_peers_ratio_to_a_baseline_that_another_compiler_made_is_the_compilers(changes_of: ChangesOf) -> None:
    runs = [with_peer(make_night(n, compiler=step(AT, 0.85)), "onnxruntime 1.20.0") for n in range(COUNT)]

    change = only(changes_of(runs), "latency-vs-baseline")

    assert change.case == "net/ort@cpu"
    assert change.cause == "compiler"
    assert "the engine is the same, and the baseline variant's toolchain changed between 3.13.0 (" in change.evidence


def test_a_baseline_that_became_faster_is_told_in_the_other_variants_ratios(tmp_path: Path) -> None:
    runs = [
        scaled(make_night(n), lambda case, n=n: 0.9 if n >= AT and case == f"{STOCK}:3.13.0" else 1.0)  # type: ignore[misc]  # n is bound
        for n in range(COUNT)
    ]
    compacted(tmp_path, runs)
    with open_history(str(tmp_path)) as history:
        change = only(history_changes(history), "latency-vs-baseline")

    assert change.case == "net/tiled@cpu"
    assert change.evidence.endswith("what changed is the baseline")


@pytest.mark.parametrize(
    ("reference_too", "measured", "cause"),
    [(True, True, "machine"), (False, True, "compiler"), (True, False, "unknown")],
)
def test_compile_times_are_held_against_the_references_own(
    changes_of: ChangesOf, reference_too: bool, measured: bool, cause: str
) -> None:
    runs = []
    for night in range(COUNT):
        factor = 1.5 if night >= AT else 1.0
        run = make_night(night)
        if measured:
            run = with_compile_times(run, factor if reference_too else 1.0, all_toolchains=True)
        if not measured or not reference_too:
            run = _newest_compiled(run, factor)
        runs.append(run)

    change = only(changes_of(runs), "compile-time")

    assert change.cause == cause
    assert "the machine's speed did not change" not in change.evidence


def _newest_compiled(run: Run, factor: float) -> Run:
    timed = with_compile_times(run, factor, all_toolchains=True)
    newest = {case.name for case in run.header.cases if case.toolchain == run.header.toolchains[-1].version}
    pairs = zip(run.builds, timed.builds, strict=True)
    return replace(run, builds=tuple(new if new.case in newest else old for old, new in pairs))


@pytest.mark.parametrize("same_modules", [True, False])
def test_another_program_under_both_toolchains_is_nobodys(changes_of: ChangesOf, same_modules: bool) -> None:
    """A model that was edited: the machine, the compiler and the harness are what they were."""
    runs = []
    for night in range(COUNT):
        run = make_night(night, same_modules=same_modules)
        runs.append(of_other_programs(scaled(run, lambda _: 1.3)) if night >= AT else run)

    changes = changes_of(runs)

    assert {one.cause for one in changes} == {"unknown"}
    assert {one.role for one in changes} == {"newest", "reference"}


def test_a_plugin_of_another_harness_is_the_harness(changes_of: ChangesOf) -> None:
    runs = []
    for night in range(COUNT):
        after = night >= AT
        run = make_night(night, dispatches=5 if after else 7, harness_commit=("b" if after else "a") * 20)
        runs.append(of_other_programs(scaled(run, lambda _: 0.8)) if after else run)

    assert {one.cause for one in changes_of(runs)} == {"harness"}


@pytest.mark.parametrize("later", [2, 3, 5])
def test_the_compilers_part_of_two_near_changes_is_dated_by_the_ratio(changes_of: ChangesOf, later: int) -> None:
    runs = [make_night(n, machine=step(40, 1.05), compiler=step(40 + later, 1.05)) for n in range(60)]

    changes = changes_of(runs)
    latency, ratio = only(changes, "latency"), only(changes, "latency-vs-reference")

    dated = ("kind", "first_bad", "last_good", "earliest", "latest", "toolchain_before", "toolchain_after")
    assert latency.cause == "compiler"
    assert [getattr(latency, name) for name in dated] == [getattr(ratio, name) for name in dated]
    assert latency.first_bad == night_id(40 + later)
    assert f"between {ratio.toolchain_before} and {ratio.toolchain_after}" in latency.evidence
    order = run_order((run.header.id, "nightly", latency.machine_class) for run in runs)
    (found,) = [one for one in group_changes(changes, order, 20) if one.cause == "compiler"]
    assert {latency.series, ratio.series} <= {one.series for one in found.changes}


def test_it_is_dated_so_where_the_ratio_itself_was_not_asked_for(tmp_path: Path) -> None:
    compacted(tmp_path, [make_night(n, machine=step(40, 1.05), compiler=step(43, 1.05)) for n in range(60)])

    with open_history(str(tmp_path)) as history:
        changes = history_changes(history, metrics={"latency"})

    assert {one.first_bad for one in changes if one.cause == "compiler"} == {night_id(43)}


def environment(machine: str, kernel: str) -> dict[str, object]:
    return {
        "machine": {"id": machine, "system": "Linux", "architecture": "x86_64", "kernel": kernel},
        "cpu": {"model": "EPYC", "usable_cores": 2},
    }


def test_a_machine_that_was_replaced_is_told_beside_the_compiler(changes_of: ChangesOf) -> None:
    runs = []
    for night in range(COUNT):
        after = night >= AT
        run = make_night(night, environment=environment("b" * 12 if after else "a" * 12, "6.8" if after else "6.1"))
        runs.append(scaled(run, lambda case: slower(case, "3.13.0", 1.05)) if after else run)

    changes = changes_of(runs)
    for metric in ("latency", "latency-vs-reference"):
        change = only(changes, metric)
        assert change.cause == "compiler"
        assert change.evidence.endswith(
            "; meanwhile the machine changed from aaaaaaaaaaaa to bbbbbbbbbbbb and the kernel changed from 6.1 to 6.8, "
            "and another machine can move a ratio too"
        )


def test_a_machine_that_is_another_every_night_explains_nothing(changes_of: ChangesOf) -> None:
    runs = []
    for night in range(COUNT):
        run = make_night(
            night,
            same_modules=True,
            environment=environment(f"{night:012x}", f"6.1.{night}"),
            harness_commit=("b" if night >= AT else "a") * 20,
            machine=step(AT, 1.05) if night else level,
        )
        runs.append(run)

    changes = changes_of(runs)

    assert {one.cause for one in changes} == {"harness"}
    assert not any("meanwhile" in one.evidence for one in changes)
