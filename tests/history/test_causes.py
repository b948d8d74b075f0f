"""Whose change it is, by what is known before and after it: a line of docs/history.md's table of causes each."""

import math
from dataclasses import replace
from typing import Any

import pytest

from harness.history.causes import ChangeEvidence, Side, explain
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
    given: dict[str, Any] = {"kind": "step", "before": BEFORE, **facts}
    return ChangeEvidence(metric=metric, ratio=ratio, after=after, **given)


def by(ratio: float | None) -> Movement | None:
    return None if ratio is None else Movement(log=math.log(ratio), error=0.001)


def with_reference(after: Side, *, reference: float, versus: float, **facts: Any) -> ChangeEvidence:
    """A latency that is held against the reference toolchain's, and the ratio to that."""
    facts |= {"reference": by(reference), "versus": by(versus), "references": ("3.12.0", "3.12.0")}
    return evidence(after, **facts)


def compiled(own: float | None, latency: float | None, **facts: Any) -> ChangeEvidence:
    """A compile time that became longer by a fifth as the reference's own, and its latency, moved like this."""
    facts = {"reference_compile": by(own), "reference": by(latency), "references": ("3.12.0", "3.12.0"), **facts}
    return evidence(NEW_COMPILER, metric="compile-time", ratio=1.2, **facts)


def counted(after: Side, counts: tuple[float, float] | None = None) -> ChangeEvidence:
    """A number of dispatches that changed from nothing; `counts` are those under the reference toolchain."""
    return evidence(after, metric="dispatches", ratio=math.inf, reference_counts=counts)


def of_peer(before: str = "ort 1.20.0", after: str = "ort 1.20.0", **facts: Any) -> ChangeEvidence:
    """A figure of another engine, by the engine's version on both sides."""
    first, second = (
        replace(BEFORE, program=Program(toolchain=version, revision="", module_sha256=""))
        for version in (before, after)
    )
    return evidence(second, before=first, peer="onnxruntime", **facts)


def later(side: Side) -> Side:
    """The same with another commit of the harness."""
    return replace(side, commit="0123456789abcdef")


NOTHING_CHANGED = "; nothing that runs record of the machine changed"
COMMITS = "(35217dcf00 -> 0123456789)"
UNDER_BOTH: dict[str, Any] = {"reference_program": (REFERENCE, replace(REFERENCE, module_sha256="44" * 32))}
UNDER_ONE: dict[str, Any] = {"reference_program": (REFERENCE, REFERENCE)}
VERSUS_BASELINE: dict[str, Any] = {"metric": "latency-vs-baseline"}
MOVED_LIKEWISE = "the reference toolchain 3.12.0 moved likewise, by"

# What is known of a change, its cause, and what its sentence says.
CAUSES: list[tuple[ChangeEvidence, str, str]] = [
    # A latency is held against the reference.
    (with_reference(NEW_COMPILER, reference=1.041, versus=0.999), "machine",
     f"{MOVED_LIKEWISE} +4.1 %, the ratio to it by -0.1 %{NOTHING_CHANGED}"),
    (with_reference(NEW_COMPILER, reference=1.001, versus=1.039), "compiler",
     f"the ratio to the reference toolchain 3.12.0 moved by +3.9 % {BETWEEN}"),
    (with_reference(NEW_COMPILER, reference=1.039, versus=1.04, ratio=1.08), "compiler",
     f"the ratio to the reference toolchain 3.12.0 moved by +4.0 % {BETWEEN}, and the reference itself by +3.9 %, "
     "which is the machine's part"),
    # A compiler that became faster is not blamed for a slower machine.
    (with_reference(NEW_COMPILER, reference=1.06, versus=0.97, ratio=1.03), "machine",
     f"{MOVED_LIKEWISE} +6.0 %, the ratio to it by -3.0 %{NOTHING_CHANGED}"),
    (with_reference(NEW_COMPILER, reference=1.001, versus=1.001), "unknown",
     "neither the reference toolchain 3.12.0 nor the ratio to it moved clearly at these runs"),
    # Without a reference, programs and counts decide.
    (evidence(BEFORE), "machine", f"the same module ran under the same runtime on both sides{NOTHING_CHANGED}"),
    (evidence(later(BEFORE)), "harness", f"and nothing else that runs record changed but the harness {COMMITS}"),
    (evidence(later(BEFORE), kind="drift"), "machine", NOTHING_CHANGED),  # a commit makes no drift
    (evidence(replace(later(BEFORE), kernels=("6.2.0",))), "machine", "the kernel changed from 6.1.0 to 6.2.0"),
    (evidence(NEW_MODULE), "unknown", "the module is another, though the toolchain is the same on both sides"),
    (evidence(later(NEW_MODULE)), "harness", f"and the harness changed {COMMITS}"),
    (evidence(NEW_COMPILER, counted=("dispatches", "copies")), "compiler",
     f"dispatches, copies changed too {BETWEEN}"),
    (evidence(NEW_COMPILER), "unknown", f"the toolchain changed {BETWEEN}, and no reference toolchain was measured "
     "beside it, which would tell the machine from the compiler"),
    (evidence(NEW_COMPILER, references=("3.12.0", "3.13.0")), "unknown",
     "the reference toolchain itself changed from 3.12.0 to 3.13.0 at these runs"),
    (evidence(NEW_COMPILER, metric="latency-vs-reference"), "compiler",
     f"the ratio to the reference toolchain, taken in the same rounds, moved {BETWEEN}"),
    (evidence(NEW_COMPILER, metric="instructions"), "compiler",
     f"the program executes another number of instructions {BETWEEN}"),
    (evidence(BEFORE, metric="instructions"), "unknown",
     "the same module ran under the same runtime on both sides, and executed another number of instructions"),
    (evidence(later(BEFORE), metric="instructions"), "harness", f"the harness changed {COMMITS}"),
    # A compile time is held against the reference's own first.
    (evidence(BEFORE, metric="compile-time"), "machine", NOTHING_CHANGED),
    (compiled(1.19, 1.0), "machine",
     "the compile time under the reference toolchain 3.12.0 moved likewise (+19.0 %)"),
    (compiled(1.0, 1.0), "compiler", "did not move likewise (+0.0 %), and the toolchain changed"),
    (compiled(0.9, 1.0), "compiler", "did not move likewise (-10.0 %)"),
    (compiled(None, 1.19), "machine", "the latency under the reference toolchain 3.12.0 moved likewise (+19.0 %)"),
    (compiled(None, 1.0), "unknown", "no compile time of one reference toolchain was taken on both sides"),
    (compiled(None, None, reference_compile=Movement(log=math.log(1.05), error=0.06)), "unknown",
     "not clearly with it and not clearly less (+5.0 %)"),
    # A counted figure is the compiler's where the toolchain alone changed.
    (counted(NEW_COMPILER), "compiler", f"a counted figure changed {BETWEEN}"),
    (counted(NEW_COMPILER, (7.0, 9.0)), "unknown", "its model, flags or a plugin changed"),
    (counted(later(BEFORE)), "harness", "changed under the same toolchain, and the harness changed"),
    (counted(BEFORE), "unknown", "under the same toolchain, under the same harness"),
    # What is another program under the reference too had another input.
    (with_reference(NEW_COMPILER, reference=1.3, versus=1.0, **UNDER_BOTH), "unknown",
     "under the reference toolchain 3.12.0, itself the same on both sides, the program is another too: its model, "),
    (with_reference(later(NEW_COMPILER), reference=1.0, versus=1.3, **UNDER_BOTH), "harness",
     f"and the harness changed {COMMITS}"),
    (with_reference(NEW_COMPILER, reference=1.0, versus=1.04, **UNDER_ONE), "compiler", ""),
    # A peer's change is the compiler's only in a ratio to a baseline that another compiler made.
    (of_peer(after="ort 1.21.0"), "unknown", "or is not recorded (ort 1.20.0 -> ort 1.21.0)"),
    (of_peer("", ""), "unknown", "(unknown -> unknown)"),
    (of_peer(), "machine", "the same engine ran on both sides (ort 1.20.0); "),
    (of_peer(metric="instructions"), "unknown", "the same engine ran on both sides (ort 1.20.0), and executed "),
    (of_peer(**VERSUS_BASELINE), "unknown", "what the baseline ran is not known"),
    (of_peer(**VERSUS_BASELINE, baseline_program=(PROGRAM, PROGRAM)), "machine",
     "the same engine and the baseline's same module ran"),
    (of_peer(**VERSUS_BASELINE, baseline_program=(PROGRAM, OTHER_MODULE)), "unknown",
     "the module or the baseline's is another"),
    (of_peer(**VERSUS_BASELINE, baseline_program=(PROGRAM, OTHER_PROGRAM)), "compiler",
     f"the baseline variant's toolchain changed {BETWEEN}"),
    (of_peer(**VERSUS_BASELINE, baseline_program=(PROGRAM, OTHER_PROGRAM), baseline=by(1 / 1.04)), "compiler",
     ", its own time by -3.8 %"),
    (of_peer(**VERSUS_BASELINE, baseline_program=(PROGRAM, OTHER_PROGRAM), baseline=by(1.0)), "unknown",
     "moved by +0.0 %, which does not explain it"),
    # A ratio to the baseline, of which unchanged modules leave the machine.
    (evidence(NEW_COMPILER, **VERSUS_BASELINE), "compiler", f"taken in the same rounds, moved {BETWEEN}"),
    (evidence(BEFORE, **VERSUS_BASELINE), "machine", "the same modules ran under the same runtime on both sides; "),
    (evidence(BEFORE, **VERSUS_BASELINE, baseline_program=(PROGRAM, OTHER_MODULE)), "unknown",
     "the module or the baseline's is another, though the toolchain is"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "cause", "why"), CAUSES)
def test_a_cause_and_why_it_is_that(change: ChangeEvidence, cause: str, why: str) -> None:
    found, sentence = explain(change)

    assert (found, why in sentence) == (cause, True), sentence


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
    assert (cause, sentence.endswith(f"; meanwhile {why}{also}")) == ("compiler", True)


@pytest.mark.parametrize(
    ("before", "after", "changed"),
    [("aaa", "bb", True), ("aaa", "bc", True), ("aab", "bb", False), ("abc", "de", False), ("abc", "d", False),
     ("aa", "d", True), ("a", "", False)],
)  # fmt: skip
def test_a_fact_that_differs_in_every_run_explains_nothing(before: str, after: str, changed: bool) -> None:
    sides = (replace(BEFORE, machines=tuple(machines)) for machines in (after, before))
    _, why = explain(evidence(next(sides), before=next(sides)))
    assert ("meanwhile the machine changed" in why) == changed
