"""Whose change it is, by what is known before and after it: a line of docs/history.md's table of causes each."""

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
OTHER_MODULE = replace(PROGRAM, module_sha256="22" * 32)
BEFORE = Side(
    program=PROGRAM,
    machines=("3f2a91c04b7e",),
    kernels=("6.1.0",),
    drivers=("this CPU",),
    commit="35217dcf00dfeedc0ffee",
    load=0.4,
)
NEW_COMPILER = replace(BEFORE, program=OTHER_PROGRAM)
NEW_MODULE = replace(BEFORE, program=OTHER_MODULE)
REFERENCE = Program(toolchain="3.12.0", revision="c" * 40, module_sha256="33" * 32)
BETWEEN = "between 3.13.0 (aaaaaaaaaa) and 3.13.0 (bbbbbbbbbb)"


def evidence(after: Side, *, metric: str = "latency", ratio: float = 1.04, **facts: Any) -> ChangeEvidence:
    given: dict[str, Any] = {"exact": False, "kind": "step", "before": BEFORE, **facts}
    return ChangeEvidence(metric=metric, ratio=ratio, after=after, **given)


def by(ratio: float | None) -> Movement | None:
    return None if ratio is None else Movement(log=math.log(ratio), error=0.001)


def with_reference(after: Side, *, reference: float, versus: float, **facts: Any) -> ChangeEvidence:
    facts |= {"reference": by(reference), "versus": by(versus), "references": ("3.12.0", "3.12.0")}
    return evidence(after, **facts)


def later(side: Side) -> Side:
    """The same with another commit of the harness."""
    return replace(side, commit="0123456789abcdef")


@pytest.mark.parametrize(
    ("reference", "versus", "ratio", "cause", "why"),
    [
        (
            1.041, 0.999, 1.04, "machine",
            "the reference toolchain 3.12.0 moved likewise, by +4.1 %, the ratio to it by -0.1 %; nothing that runs "
            "record of the machine changed",
        ),
        (1.001, 1.039, 1.04, "compiler", f"the ratio to the reference toolchain 3.12.0 moved by +3.9 % {BETWEEN}"),
        (
            1.039, 1.04, 1.08, "compiler",
            f"the ratio to the reference toolchain 3.12.0 moved by +4.0 % {BETWEEN}, and the reference itself by "
            "+3.9 %, which is the machine's part",
        ),
        (
            1.06, 0.97, 1.03, "machine",  # a compiler that became faster is not blamed for a slower machine
            "the reference toolchain 3.12.0 moved likewise, by +6.0 %, the ratio to it by -3.0 %; nothing that runs "
            "record of the machine changed",
        ),
        (
            1.001, 1.001, 1.04, "unknown",
            "neither the reference toolchain 3.12.0 nor the ratio to it moved clearly at these runs",
        ),
    ],
)  # fmt: skip
def test_a_latency_is_held_against_the_reference(
    reference: float, versus: float, ratio: float, cause: str, why: str
) -> None:
    assert explain(with_reference(NEW_COMPILER, reference=reference, versus=versus, ratio=ratio)) == (cause, why)


@pytest.mark.parametrize(
    ("change", "cause", "why"),
    [
        (evidence(BEFORE), "machine", "the same module ran under the same runtime on both sides; nothing that runs "
         "record of the machine changed"),
        (evidence(later(BEFORE)), "harness", "changed but the harness (35217dcf00 -> 0123456789); a machine that "
         "became slower or faster without a trace would look the same"),
        (evidence(later(BEFORE), kind="drift"), "machine", "changed"),  # a commit makes no drift
        (evidence(replace(later(BEFORE), kernels=("6.2.0",))), "machine", "the kernel changed from 6.1.0 to 6.2.0"),
        (evidence(NEW_MODULE), "unknown", "the module is another, though the toolchain is the same on both sides, "
         "and so is the harness"),
        (evidence(later(NEW_MODULE)), "harness", "and the harness changed (35217dcf00 -> 0123456789)"),
        (evidence(NEW_COMPILER, counted=("dispatches", "copies")), "compiler", "dispatches and copies changed too "
         f"{BETWEEN}"),
        (evidence(NEW_COMPILER), "unknown", f"the toolchain changed {BETWEEN}, and no reference toolchain was "
         "measured beside it, which would tell the machine from the compiler"),
        (evidence(NEW_COMPILER, references=("3.12.0", "3.13.0")), "unknown",
         "the reference toolchain itself changed from 3.12.0 to 3.13.0 at these runs"),
        (evidence(NEW_COMPILER, metric="latency-vs-reference"), "compiler", "the ratio to the reference toolchain, "
         f"taken in the same rounds, moved {BETWEEN}"),
        (evidence(BEFORE, metric="latency-vs-reference"), "machine", "changed"),
        (evidence(NEW_COMPILER, metric="instructions"), "compiler", "the program executes another number of "
         f"instructions {BETWEEN}"),
        (evidence(BEFORE, metric="instructions"), "unknown", "the same module ran under the same runtime on both "
         "sides, and executed another number of instructions"),
        (evidence(later(BEFORE), metric="instructions"), "harness", "the harness changed (35217dcf00 -> 0123456789)"),
        (evidence(NEW_MODULE, metric="compile-time", ratio=2.0), "unknown", "so is the harness"),
        (evidence(BEFORE, metric="compile-time"), "machine", "the compiler and what it made are the same on both "
         "sides; nothing that runs record of the machine changed"),
    ],
)  # fmt: skip
def test_without_a_reference_programs_and_counts_decide(change: ChangeEvidence, cause: str, why: str) -> None:
    found, sentence = explain(change)

    assert found == cause
    assert sentence.endswith(why)


@pytest.mark.parametrize(
    ("compile_time", "latency", "cause", "why"),
    [
        (1.19, 1.0, "machine", "the compile time under the reference toolchain 3.12.0 moved likewise (+19.0 %)"),
        (1.0, 1.0, "compiler", "did not move likewise (+0.0 %), and the toolchain changed"),
        (1.08, 1.0, "compiler", "did not move likewise (+8.0 %)"),  # which is less than half of the change
        (1.0, 1.19, "compiler", "did not move likewise"),
        (0.9, 1.0, "compiler", "did not move likewise (-10.0 %)"),
        (None, 1.19, "machine", "the latency under the reference toolchain 3.12.0 moved likewise (+19.0 %)"),
        (None, 1.0, "unknown", "no compile time of one reference toolchain was taken on both sides"),
        (None, None, "unknown", "no compile time of one reference toolchain was taken on both sides"),
    ],
)
def test_a_compile_time_is_held_against_the_references_first(
    compile_time: float | None, latency: float | None, cause: str, why: str
) -> None:
    movements: dict[str, Any] = {"reference_compile": by(compile_time), "reference": by(latency)}
    change = evidence(NEW_COMPILER, metric="compile-time", ratio=1.2, references=("3.12.0", "3.12.0"), **movements)

    found, sentence = explain(change)

    assert found == cause
    assert why in sentence


def test_a_compile_time_whose_reference_is_noisy_is_nobodys() -> None:
    noisy = Movement(log=math.log(1.05), error=0.06)

    cause, why = explain(evidence(NEW_COMPILER, metric="compile-time", ratio=1.2, reference_compile=noisy))

    assert cause == "unknown"
    assert why.endswith("not clearly with it, and not clearly less")


@pytest.mark.parametrize(
    ("after", "counts", "cause", "why"),
    [
        (NEW_COMPILER, None, "compiler", f"a counted figure changed {BETWEEN}"),
        (NEW_COMPILER, (7.0, 7.0), "compiler", f"a counted figure changed {BETWEEN}"),
        (NEW_COMPILER, (7.0, 9.0), "unknown", "the model, its flags or a plugin"),
        (later(BEFORE), None, "harness", "changed under the same toolchain, and the harness did"),
        (BEFORE, None, "unknown", "under the same toolchain and the same harness"),
    ],
)
def test_a_counted_figure_is_the_compilers_where_the_toolchain_alone_changed(
    after: Side, counts: tuple[float, float] | None, cause: str, why: str
) -> None:
    found, sentence = explain(evidence(after, metric="dispatches", exact=True, ratio=math.inf, reference_counts=counts))

    assert found == cause
    assert why in sentence


def test_what_is_another_program_under_the_reference_too_had_another_input() -> None:
    other = (REFERENCE, replace(REFERENCE, module_sha256="44" * 32))

    assert explain(with_reference(NEW_COMPILER, reference=1.3, versus=1.0, reference_program=other)) == (
        "unknown",
        "under the reference toolchain 3.12.0, itself the same on both sides, the program is another too, so that what "
        "toolchains were given changed: the model, its flags or a plugin",
    )
    cause, why = explain(with_reference(later(NEW_COMPILER), reference=1.0, versus=1.3, reference_program=other))
    assert cause == "harness"
    assert why.endswith("and the harness changed (35217dcf00 -> 0123456789)")
    same = (REFERENCE, REFERENCE)
    assert explain(with_reference(NEW_COMPILER, reference=1.0, versus=1.04, reference_program=same))[0] == "compiler"


def engine(version: str) -> Side:
    return replace(BEFORE, program=Program(toolchain=version, revision="", module_sha256=""))


@pytest.mark.parametrize(
    ("before", "after", "metric", "cause", "why"),
    [
        ("ort 1.20.0", "ort 1.21.0", "latency", "unknown", "the engine itself changed from ort 1.20.0 to ort 1.21.0"),
        ("", "", "latency", "unknown", "runs do not record which version of the engine ran on both sides"),
        ("ort 1.20.0", "ort 1.20.0", "latency", "machine", "the same engine ran on both sides (ort 1.20.0); "),
        ("ort 1.20.0", "ort 1.20.0", "instructions", "unknown", "the same engine ran on both sides, and executed "),
    ],
)
def test_a_peers_change_is_never_the_compilers(before: str, after: str, metric: str, cause: str, why: str) -> None:
    found, sentence = explain(evidence(engine(after), before=engine(before), peer="onnxruntime", metric=metric))

    assert found == cause
    assert sentence.startswith(why)


@pytest.mark.parametrize(
    ("baseline", "moved", "cause", "why"),
    [
        (None, None, "unknown", "what the baseline ran is not known"),
        ((PROGRAM, PROGRAM), None, "machine", "the same engine and the baseline's same module ran"),
        ((PROGRAM, OTHER_MODULE), None, "unknown", "the module or the baseline's is another"),
        ((PROGRAM, OTHER_PROGRAM), None, "compiler", f"the baseline variant's toolchain changed {BETWEEN}"),
        ((PROGRAM, OTHER_PROGRAM), 1 / 1.04, "compiler", ", its own time by -3.8 %"),
        ((PROGRAM, OTHER_PROGRAM), 1.0, "unknown", "moved by +0.0 %, which does not explain it"),
    ],
)
def test_a_peers_ratio_to_the_baseline_is_held_against_the_baseline(
    baseline: tuple[Program, Program] | None, moved: float | None, cause: str, why: str
) -> None:
    same = engine("ort 1.20.0")
    facts: dict[str, Any] = {"baseline_program": baseline, "baseline": by(moved)}

    found, sentence = explain(evidence(same, before=same, peer="onnxruntime", metric="latency-vs-baseline", **facts))

    assert found == cause
    assert why in sentence


@pytest.mark.parametrize(
    ("own", "baseline", "why"),
    [
        (1.04, 1.0, "own time moved by +4.0 %, the baseline's by +0.0 %: what changed is this variant"),
        (1.0, 1 / 1.04, "own time moved by +0.0 %, the baseline's by -3.8 %: what changed is the baseline"),
        (1.02, 1 / 1.02, "what changed is this variant's code or the baseline's"),
        (None, None, "what changed is this variant's code or the baseline's"),
    ],
)
def test_a_ratio_to_the_baseline_says_which_of_the_two_moved(
    own: float | None, baseline: float | None, why: str
) -> None:
    change = evidence(NEW_COMPILER, metric="latency-vs-baseline", own=by(own), baseline=by(baseline))

    cause, sentence = explain(change)

    assert cause == "compiler"
    assert sentence.startswith(f"the ratio to the baseline, taken in the same rounds, moved {BETWEEN}; ")
    assert sentence.endswith(why)


@pytest.mark.parametrize(
    ("programs", "cause", "why"),
    [
        (None, "machine", "the same module ran under the same runtime on both sides; "),
        ((PROGRAM, PROGRAM), "machine", "the same modules, the baseline's too, ran under the same runtime"),
        ((PROGRAM, OTHER_MODULE), "unknown", "the module or the baseline's is another, though the toolchain is"),
    ],
)
def test_a_ratio_of_unchanged_modules_is_the_machines(
    programs: tuple[Program, Program] | None, cause: str, why: str
) -> None:
    found, sentence = explain(evidence(BEFORE, metric="latency-vs-baseline", baseline_program=programs))

    assert found == cause
    assert sentence.startswith(why)


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"machines": ("0123456789ab",)}, "the machine changed from 3f2a91c04b7e to 0123456789ab"),
        ({"drivers": ("another CPU",)}, "the device changed from this CPU to another CPU"),
        ({"load": 3.1}, "its load went from 0.4 to 3.1"),
    ],
)
def test_the_sentence_names_what_else_changed(changed: dict[str, Any], why: str) -> None:
    assert explain(evidence(replace(BEFORE, **changed)))[1].endswith(f"; meanwhile {why}")
    cause, sentence = explain(with_reference(replace(NEW_COMPILER, **changed), reference=1.0, versus=1.04))
    also = ", and another machine can move a ratio too" if "machines" in changed else ""
    assert cause == "compiler"
    assert sentence.endswith(f"; meanwhile {why}{also}")


@pytest.mark.parametrize(
    ("before", "after", "changed"),
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
def test_a_fact_that_differs_in_every_run_explains_nothing(
    before: tuple[str, ...], after: tuple[str, ...], changed: bool
) -> None:
    _, why = explain(evidence(replace(BEFORE, machines=after), before=replace(BEFORE, machines=before)))

    assert ("meanwhile the machine changed" in why) == changed


@pytest.mark.parametrize(
    ("before", "after", "text"),
    [
        ("a" * 40, "a" * 40, ""),
        ("a" * 40, "", "aaaaaaaaaa -> no commit"),
        ("a" * 40, "b" * 40 + "+dirty", "aaaaaaaaaa -> bbbbbbbbbb+dirty"),
    ],
)
def test_commits_are_short_and_nothing_where_they_are_the_same(before: str, after: str, text: str) -> None:
    assert commits_text(before, after) == text
