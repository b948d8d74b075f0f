"""Whose change it is, by what the runs around it recorded."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest

from harness.history.causes import Moment, Sighting, commits_text, explain
from harness.history.shifts import Shift

BEFORE = Moment(
    toolchain="3.13.0",
    revision="a" * 40,
    module_sha256="11" * 32,
    machine="3f2a91c04b7e",
    kernel="6.1.0",
    devices="cpu: this CPU",
    commit="35217dcf00dfeedc0ffee",
    load=0.4,
)
NEW_COMPILER = replace(BEFORE, revision="b" * 40, module_sha256="22" * 32)


def sighting(after: Moment, *, metric: str = "latency", ratio: float = 1.04, **given: Any) -> Sighting:
    facts: dict[str, Any] = {"exact": False, "kind": "step", "before": BEFORE, **given}
    return Sighting(metric=metric, ratio=ratio, after=after, **facts)


def shift(ratio: float) -> Shift:
    return Shift(log=math.log(ratio), error=0.001)


def beside_reference(after: Moment, *, reference: float, versus: float, **given: Any) -> Sighting:
    given |= {"reference_shift": shift(reference), "versus_shift": shift(versus)}
    return sighting(after, reference="3.12.0", **given)


def test_a_reference_that_moves_likewise_shows_that_it_is_the_machine() -> None:
    assert explain(beside_reference(NEW_COMPILER, reference=1.041, versus=0.999)) == (
        "machine",
        "the reference toolchain 3.12.0 moved likewise, by +4.1 %, the ratio to it by -0.1 %; nothing that runs record "
        "of the machine changed",
    )


def test_a_ratio_to_the_reference_that_moves_shows_that_it_is_the_compiler() -> None:
    assert explain(beside_reference(NEW_COMPILER, reference=1.001, versus=1.039)) == (
        "compiler",
        "the ratio to the reference toolchain 3.12.0 moved by +3.9 % "
        "between 3.13.0 (aaaaaaaaaa) and 3.13.0 (bbbbbbbbbb)",
    )


def test_where_both_move_the_compiler_has_its_part_and_the_machine_is_told() -> None:
    cause, evidence = explain(beside_reference(NEW_COMPILER, ratio=1.08, reference=1.039, versus=1.04))

    assert cause == "compiler"
    assert evidence.endswith("and the reference itself by +3.9 %, which is the machine's part")


def test_a_compiler_that_became_faster_is_not_blamed_for_a_slower_machine() -> None:
    assert explain(beside_reference(NEW_COMPILER, ratio=1.03, reference=1.06, versus=0.97))[0] == "machine"


def test_where_neither_moves_clearly_nobody_is_blamed() -> None:
    assert explain(beside_reference(NEW_COMPILER, reference=1.001, versus=1.001))[0] == "unknown"


def test_the_same_module_under_the_same_runtime_cannot_be_the_compiler() -> None:
    assert explain(sighting(replace(BEFORE, kernel="6.2.0"))) == (
        "machine",
        "the same module ran under the same runtime on both sides; meanwhile the kernel changed from 6.1.0 to 6.2.0",
    )


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"machine": "0123456789ab"}, "the machine changed from 3f2a91c04b7e to 0123456789ab"),
        ({"devices": "cpu: another CPU"}, "the devices changed from cpu: this CPU to cpu: another CPU"),
        ({"load": 3.1}, "its load went from 0.4 to 3.1"),
    ],
)
def test_what_changed_of_the_machine_is_named(changed: dict[str, Any], told: str) -> None:
    cause, evidence = explain(sighting(replace(BEFORE, **changed)))

    assert cause == "machine"
    assert evidence.endswith(f"; meanwhile {told}")


def test_where_nothing_changed_but_the_harness_it_is_the_harness() -> None:
    cause, evidence = explain(sighting(replace(BEFORE, commit="0123456789abcdef+dirty")))

    assert cause == "harness"
    assert "(35217dcf00 -> 0123456789+dirty)" in evidence


def test_a_drift_is_no_commit_and_so_is_the_machine() -> None:
    assert explain(sighting(replace(BEFORE, commit="0123456789"), kind="drift"))[0] == "machine"


def test_where_the_kernel_changed_with_the_harness_it_is_the_machine() -> None:
    assert explain(sighting(replace(BEFORE, commit="0123456789", kernel="6.2.0")))[0] == "machine"


def test_another_module_from_the_same_toolchain_is_not_the_compilers() -> None:
    other = replace(BEFORE, module_sha256="22" * 32)

    assert explain(sighting(other))[0] == "unknown"
    assert explain(sighting(replace(other, commit="0123456789")))[0] == "harness"


def test_without_a_reference_counted_figures_tell() -> None:
    assert explain(sighting(NEW_COMPILER, counted=("dispatches", "copies"))) == (
        "compiler",
        "dispatches and copies changed too between 3.13.0 (aaaaaaaaaa) and 3.13.0 (bbbbbbbbbb)",
    )


def test_without_a_reference_and_without_counted_figures_nobody_knows() -> None:
    cause, evidence = explain(sighting(NEW_COMPILER))

    assert cause == "unknown"
    assert "no reference toolchain was measured beside it" in evidence


@pytest.mark.parametrize("metric", ["latency-vs-reference", "latency-vs-baseline", "instructions"])
def test_what_is_free_of_the_machine_is_the_compilers_where_the_toolchain_changed(metric: str) -> None:
    assert explain(sighting(NEW_COMPILER, metric=metric))[0] == "compiler"
    assert explain(sighting(BEFORE, metric=metric))[0] == "machine"


def test_a_compile_time_is_held_against_the_machines_speed() -> None:
    def compile_time(reference: float | None) -> Sighting:
        found = sighting(NEW_COMPILER, metric="compile-time", ratio=1.2, reference="3.12.0")
        return found if reference is None else replace(found, reference_shift=shift(reference))

    assert explain(compile_time(1.19))[0] == "machine"
    assert explain(compile_time(1.0))[0] == "compiler"
    assert explain(compile_time(None))[0] == "unknown"
    assert explain(sighting(replace(BEFORE, kernel="6.2.0"), metric="compile-time"))[0] == "machine"


def test_counted_figures_are_the_compilers_where_the_toolchain_changed() -> None:
    counted: dict[str, Any] = {"metric": "dispatches", "exact": True, "ratio": math.inf}

    assert explain(sighting(NEW_COMPILER, **counted))[0] == "compiler"
    assert explain(sighting(replace(BEFORE, commit="0123456789"), **counted))[0] == "harness"
    assert explain(sighting(BEFORE, **counted))[0] == "unknown"


def test_commits_are_short_and_nothing_where_they_are_the_same() -> None:
    assert commits_text("a" * 40, "a" * 40) == ""
    assert commits_text("a" * 40, "") == "aaaaaaaaaa -> no commit"
