"""Whose change it is, by what the runs around it recorded."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest

from harness.history.causes import commits_text, explain
from harness.history.evidence import ChangeEvidence, Side
from harness.history.levels import Movement
from harness.history.series import Program

PROGRAM = Program(toolchain="3.13.0", revision="a" * 40, module_sha256="11" * 32)
OTHER_PROGRAM = Program(toolchain="3.13.0", revision="b" * 40, module_sha256="22" * 32)
BEFORE = Side(
    program=PROGRAM,
    machines=("3f2a91c04b7e",),
    kernels=("6.1.0",),
    drivers=("this CPU",),
    commit="35217dcf00dfeedc0ffee",
    load=0.4,
)
NEW_COMPILER = replace(BEFORE, program=OTHER_PROGRAM)
REFERENCE = Program(toolchain="3.12.0", revision="c" * 40, module_sha256="33" * 32)


def seen(after: Side, *, metric: str = "latency", ratio: float = 1.04, **given: Any) -> ChangeEvidence:
    facts: dict[str, Any] = {"exact": False, "kind": "step", "before": BEFORE, **given}
    return ChangeEvidence(metric=metric, ratio=ratio, after=after, **facts)


def shift(ratio: float) -> Movement:
    return Movement(log=math.log(ratio), error=0.001)


def beside_reference(after: Side, *, reference: float, versus: float, **given: Any) -> ChangeEvidence:
    given |= {"reference": shift(reference), "versus": shift(versus)}
    return seen(after, references=("3.12.0", "3.12.0"), **given)


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
    assert explain(seen(replace(BEFORE, kernels=("6.2.0",)))) == (
        "machine",
        "the same module ran under the same runtime on both sides; meanwhile the kernel changed from 6.1.0 to 6.2.0",
    )


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"machines": ("0123456789ab",)}, "the machine changed from 3f2a91c04b7e to 0123456789ab"),
        ({"drivers": ("another CPU",)}, "the device changed from this CPU to another CPU"),
        ({"load": 3.1}, "its load went from 0.4 to 3.1"),
    ],
)
def test_what_changed_of_the_machine_is_named(changed: dict[str, Any], told: str) -> None:
    cause, evidence = explain(seen(replace(BEFORE, **changed)))

    assert cause == "machine"
    assert evidence.endswith(f"; meanwhile {told}")


def test_where_nothing_changed_but_the_harness_it_is_the_harness() -> None:
    cause, evidence = explain(seen(replace(BEFORE, commit="0123456789abcdef+dirty")))

    assert cause == "harness"
    assert "(35217dcf00 -> 0123456789+dirty)" in evidence


def test_a_drift_is_no_commit_and_so_is_the_machine() -> None:
    assert explain(seen(replace(BEFORE, commit="0123456789"), kind="drift"))[0] == "machine"


def test_where_the_kernel_changed_with_the_harness_it_is_the_machine() -> None:
    assert explain(seen(replace(BEFORE, commit="0123456789", kernels=("6.2.0",))))[0] == "machine"


def test_another_module_from_the_same_toolchain_is_not_the_compilers() -> None:
    other = replace(BEFORE, program=replace(PROGRAM, module_sha256="22" * 32))

    assert explain(seen(other))[0] == "unknown"
    assert explain(seen(replace(other, commit="0123456789")))[0] == "harness"


def test_without_a_reference_counted_figures_tell() -> None:
    assert explain(seen(NEW_COMPILER, counted=("dispatches", "copies"))) == (
        "compiler",
        "dispatches and copies changed too between 3.13.0 (aaaaaaaaaa) and 3.13.0 (bbbbbbbbbb)",
    )


def test_without_a_reference_and_without_counted_figures_nobody_knows() -> None:
    cause, evidence = explain(seen(NEW_COMPILER))

    assert cause == "unknown"
    assert "no reference toolchain was measured beside it" in evidence


@pytest.mark.parametrize("metric", ["latency-vs-reference", "latency-vs-baseline", "instructions"])
def test_what_is_free_of_the_machine_is_the_compilers_where_the_toolchain_changed(metric: str) -> None:
    assert explain(seen(NEW_COMPILER, metric=metric))[0] == "compiler"
    assert explain(seen(BEFORE, metric=metric))[0] != "compiler"


def test_an_unchanged_program_that_executes_another_number_of_instructions_is_not_slowed_by_the_machine() -> None:
    assert explain(seen(BEFORE, metric="instructions"))[0] == "unknown"
    assert explain(seen(replace(BEFORE, commit="0123456789"), metric="instructions"))[0] == "harness"
    engine = replace(BEFORE, program=Program(toolchain="onnxruntime 1.20.0", revision="", module_sha256=""))
    assert explain(seen(engine, metric="instructions", before=engine, peer="onnxruntime"))[0] == "unknown"


@pytest.mark.parametrize(
    ("compile_time", "latency", "cause"),
    [
        (1.19, 1.0, "machine"),
        (1.0, 1.0, "compiler"),
        (1.0, 1.19, "compiler"),
        (0.9, 1.0, "compiler"),
        (None, 1.19, "machine"),
        (None, 1.0, "unknown"),
        (None, None, "unknown"),
    ],
)
def test_a_compile_time_is_held_against_the_references_first(
    compile_time: float | None, latency: float | None, cause: str
) -> None:
    found = seen(
        NEW_COMPILER,
        metric="compile-time",
        ratio=1.2,
        references=("3.12.0", "3.12.0"),
        reference_compile=None if compile_time is None else shift(compile_time),
        reference=None if latency is None else shift(latency),
    )

    assert explain(found)[0] == cause


def test_a_compile_time_whose_reference_is_noisy_is_nobodys() -> None:
    noisy = Movement(log=math.log(1.05), error=0.06)

    assert explain(seen(NEW_COMPILER, metric="compile-time", ratio=1.2, reference_compile=noisy))[0] == "unknown"


def test_a_compile_time_of_another_module_from_the_same_compiler_is_not_the_machines() -> None:
    other = replace(BEFORE, program=replace(PROGRAM, module_sha256="22" * 32))

    assert explain(seen(other, metric="compile-time", ratio=2.0))[0] == "unknown"
    assert explain(seen(replace(BEFORE, kernels=("6.2.0",)), metric="compile-time"))[0] == "machine"


def test_counted_figures_are_the_compilers_where_the_toolchain_changed() -> None:
    counted: dict[str, Any] = {"metric": "dispatches", "exact": True, "ratio": math.inf}

    assert explain(seen(NEW_COMPILER, **counted))[0] == "compiler"
    assert explain(seen(NEW_COMPILER, reference_counts=(7.0, 7.0), **counted))[0] == "compiler"
    assert explain(seen(NEW_COMPILER, reference_counts=(7.0, 9.0), **counted))[0] == "unknown"
    assert explain(seen(replace(BEFORE, commit="0123456789"), **counted))[0] == "harness"
    assert explain(seen(BEFORE, **counted))[0] == "unknown"


def test_what_is_another_program_under_the_reference_too_was_given_otherwise() -> None:
    other = (REFERENCE, replace(REFERENCE, module_sha256="44" * 32))

    assert explain(beside_reference(NEW_COMPILER, reference=1.3, versus=1.0, reference_program=other)) == (
        "unknown",
        "under the reference toolchain 3.12.0, itself the same on both sides, the program is another too, so that what "
        "toolchains were given changed: the model, its flags or a plugin",
    )
    harness = replace(NEW_COMPILER, commit="0123456789")
    assert explain(beside_reference(harness, reference=1.0, versus=1.3, reference_program=other))[0] == "harness"
    same = (REFERENCE, REFERENCE)
    assert explain(beside_reference(NEW_COMPILER, reference=1.0, versus=1.04, reference_program=same))[0] == "compiler"


def test_where_the_reference_itself_changed_nothing_is_claimed_of_it() -> None:
    cause, evidence = explain(seen(NEW_COMPILER, references=("3.12.0", "3.13.0")))

    assert cause == "unknown"
    assert evidence.endswith("the reference toolchain itself changed from 3.12.0 to 3.13.0 at these runs")


def engine(version: str) -> Side:
    return replace(BEFORE, program=Program(toolchain=version, revision="", module_sha256=""))


def peer(before: str, after: str, **given: Any) -> ChangeEvidence:
    return seen(engine(after), before=engine(before), peer="onnxruntime", **given)


def test_an_engine_that_is_another_or_not_known_is_nobodys() -> None:
    assert explain(peer("onnxruntime 1.20.0", "onnxruntime 1.21.0")) == (
        "unknown",
        "the engine itself changed from onnxruntime 1.20.0 to onnxruntime 1.21.0",
    )
    assert explain(peer("", ""))[0] == "unknown"
    assert explain(peer("onnxruntime 1.20.0", "onnxruntime 1.20.0"))[0] == "machine"


@pytest.mark.parametrize(
    ("baseline", "moved", "cause"),
    [
        (None, None, "unknown"),
        ((PROGRAM, PROGRAM), None, "machine"),
        ((PROGRAM, replace(PROGRAM, module_sha256="22" * 32)), None, "unknown"),
        ((PROGRAM, OTHER_PROGRAM), None, "compiler"),
        ((PROGRAM, OTHER_PROGRAM), 1 / 1.04, "compiler"),
        ((PROGRAM, OTHER_PROGRAM), 1.0, "unknown"),
    ],
)
def test_a_peers_ratio_to_the_baseline_is_held_against_the_baseline(
    baseline: tuple[Program, Program] | None, moved: float | None, cause: str
) -> None:
    same = "onnxruntime 1.20.0"
    shifted = None if moved is None else shift(moved)

    found = peer(same, same, metric="latency-vs-baseline", baseline_program=baseline, baseline=shifted)

    assert explain(found)[0] == cause


@pytest.mark.parametrize(
    ("own", "baseline", "told"),
    [
        (1.04, 1.0, "what changed is this variant"),
        (1.0, 1 / 1.04, "what changed is the baseline"),
        (1.02, 1 / 1.02, "what changed is this variant's code or the baseline's"),
    ],
)
def test_a_ratio_to_the_baseline_says_which_of_the_two_moved(own: float, baseline: float, told: str) -> None:
    found = seen(NEW_COMPILER, metric="latency-vs-baseline", own=shift(own), baseline=shift(baseline))

    cause, evidence = explain(found)

    assert cause == "compiler"
    assert evidence.endswith(told)


def test_a_baseline_of_another_module_is_not_the_machine() -> None:
    programs = (PROGRAM, replace(PROGRAM, module_sha256="22" * 32))

    assert explain(seen(BEFORE, metric="latency-vs-baseline", baseline_program=programs))[0] == "unknown"


def test_what_changed_of_the_machine_is_told_beside_the_compiler() -> None:
    told = "; meanwhile the kernel changed from 6.1.0 to 6.2.0, and another machine can move a ratio too"

    for found in (
        beside_reference(replace(NEW_COMPILER, kernels=("6.2.0",)), reference=1.0, versus=1.04),
        seen(replace(NEW_COMPILER, kernels=("6.2.0",)), metric="latency-vs-reference"),
    ):
        cause, evidence = explain(found)
        assert cause == "compiler"
        assert evidence.endswith(told)


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        (("a", "a", "a"), ("b", "b"), True),
        (("a", "a", "a"), ("b", "c"), True),
        (("a", "a", "b"), ("b", "b"), False),
        (("a", "b", "c"), ("d", "e"), False),
        (("a", "b", "c"), ("d",), False),
        (("a", "a"), ("d",), True),
        (("a",), (), False),
    ],
)
def test_a_fact_that_is_another_in_every_run_explains_nothing(
    before: tuple[str, ...], after: tuple[str, ...], told: bool
) -> None:
    _, evidence = explain(seen(replace(BEFORE, machines=after), before=replace(BEFORE, machines=before)))

    assert ("meanwhile the machine changed" in evidence) == told


def test_commits_are_short_and_nothing_where_they_are_the_same() -> None:
    assert commits_text("a" * 40, "a" * 40) == ""
    assert commits_text("a" * 40, "") == "aaaaaaaaaa -> no commit"
