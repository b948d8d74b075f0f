"""Whose change it is: the compiler's, the machine's or the harness's; pure, on what was seen around it.

The reference toolchain stays the same from run to run, so what moves it is the machine (or the harness). The ratio to
it, taken between turns of the same rounds, is free of the machine, so what moves that is the other toolchain. A
module with the same bytes under the same runtime is the same program, whichever toolchain is called the newest. And
what is another program under the reference toolchain too was given otherwise, and so is not the compiler's.
"""

from __future__ import annotations

import math

from harness.history.baseline_causes import against_baseline
from harness.history.circumstances import Circumstances, machine_changes, toolchains_text
from harness.history.shifts import Shift
from harness.history.verdicts import (
    SAME_MODULE,
    Verdict,
    commits,
    compiler,
    not_the_compiler,
    other_count,
    other_module,
)
from harness.metrics import COMPILE_TIME, INSTRUCTIONS, LATENCY, LATENCY_VS_BASELINE, LATENCY_VS_REFERENCE
from harness.report.units import percent


def explain(around: Circumstances) -> Verdict:
    """The cause, and why it is that, in one sentence."""
    if around.peer and (other := _other_engine(around)) is not None:
        return other
    if around.exact:
        return _counted(around)
    if not around.same_toolchain and around.given_otherwise:
        return _given_otherwise(around)
    if around.metric == LATENCY_VS_BASELINE:
        return against_baseline(around)
    if around.metric == INSTRUCTIONS.name and (around.peer or around.same_program):
        return other_count(around)
    if around.peer:
        return not_the_compiler(around, f"the same engine ran on both sides ({around.after.program.toolchain})")
    if around.metric == COMPILE_TIME.name and around.same_program:
        return not_the_compiler(around, "the compiler and what it made are the same on both sides")
    if around.same_program:
        return not_the_compiler(around, SAME_MODULE)
    if around.same_toolchain:
        return other_module(around)
    if around.metric == COMPILE_TIME.name:
        return _compile_time(around)
    return _other_toolchain(around)


def _other_toolchain(around: Circumstances) -> Verdict:
    """A latency, the ratio to the reference or the number of instructions, between two toolchains."""
    if around.metric == LATENCY.name and (around.reference_shift or around.versus_shift):
        return _beside_reference(around)
    if around.metric == LATENCY_VS_REFERENCE:
        why = "the ratio to the reference toolchain, taken in the same rounds, moved"
        return compiler(around, f"{why} {toolchains_text(around)}")
    if around.metric == INSTRUCTIONS.name:
        return compiler(around, f"the program executes another number of instructions {toolchains_text(around)}")
    if around.counted:
        return compiler(around, f"{_listed(around.counted)} changed too {toolchains_text(around)}")
    return "unknown", f"the toolchain changed {toolchains_text(around)}, and {_no_reference(around)}"


def _other_engine(around: Circumstances) -> Verdict | None:
    """Where a peer is not known to be the engine that it was: no compiler of IREE's made that change."""
    before, after = around.before.program.toolchain, around.after.program.toolchain
    if not (before and after):
        return "unknown", "runs do not record which version of the engine ran on both sides"
    if before != after:
        return "unknown", f"the engine itself changed from {before} to {after}"
    return None


def _counted(around: Circumstances) -> Verdict:
    if not around.same_toolchain:
        if around.given_otherwise:
            return _given_otherwise(around)
        return "compiler", f"a counted figure changed {toolchains_text(around)}"
    if around.before.commit != around.after.commit:
        return "harness", f"a counted figure changed under the same toolchain, and the harness did {commits(around)}"
    return "unknown", "a counted figure changed under the same toolchain and the same harness"


def _given_otherwise(around: Circumstances) -> Verdict:
    """The toolchain changed, but the reference, which did not, made another program too."""
    why = f"under the reference toolchain {around.reference}, itself the same on both sides, the program is another too"
    if around.before.commit != around.after.commit:
        return "harness", f"{why}, and the harness changed {commits(around)}"
    return "unknown", f"{why}, so that what toolchains were given changed: the model, its flags or a plugin"


def _compile_time(around: Circumstances) -> Verdict:
    """The reference's own compile time tells; its latency shows a slower machine, but not that there was none."""
    change = math.log(around.ratio)
    changed = f"the toolchain changed {toolchains_text(around)}"
    shift, latency = around.reference_compile_shift, around.reference_shift
    if shift is not None:
        reference = f"the compile time under the reference toolchain {around.reference}"
        by = percent(shift.ratio, decimals=1)
        if shift.is_most_of(change):
            return "machine", f"{reference} moved likewise ({by}){machine_changes(around)}"
        if shift.is_little_of(change):
            return compiler(around, f"{reference} did not move likewise ({by}), and {changed}")
        return "unknown", f"{changed}, and {reference} moved by {by}: not clearly with it, and not clearly less"
    if latency is not None and latency.is_most_of(change):
        by = percent(latency.ratio, decimals=1)
        why = f"the latency under the reference toolchain {around.reference} moved likewise ({by})"
        return "machine", f"{why}{machine_changes(around)}"
    return (
        "unknown",
        f"{changed}, and no compile time of one reference toolchain was taken on both sides, which would tell the "
        f"machine from the compiler{machine_changes(around)}",
    )


def _beside_reference(around: Circumstances) -> Verdict:
    """A latency of which the reference's and the ratio to it are known."""
    change = math.log(around.ratio)
    reference, versus = around.reference_shift, around.versus_shift
    by_reference = reference is not None and reference.explains(change)
    if versus is not None and versus.explains(change):
        also = (
            f", and the reference itself by {percent(reference.ratio, decimals=1)}, which is the machine's part"
            if reference is not None and by_reference
            else ""
        )
        return compiler(
            around,
            f"the ratio to the reference toolchain {around.reference} moved by {percent(versus.ratio, decimals=1)} "
            f"{toolchains_text(around)}{also}",
        )
    if reference is not None and by_reference:
        return not_the_compiler(
            around,
            f"the reference toolchain {around.reference} moved likewise, by {percent(reference.ratio, decimals=1)}"
            f"{_versus(versus)}",
        )
    return (
        "unknown",
        f"neither the reference toolchain {around.reference} nor the ratio to it moved clearly at these runs",
    )


def _versus(versus: Shift | None) -> str:
    return f", the ratio to it by {percent(versus.ratio, decimals=1)}" if versus is not None else ""


def _no_reference(around: Circumstances) -> str:
    before, after = around.references
    if before and after and before != after:
        return f"the reference toolchain itself changed from {before} to {after} at these runs"
    return "no reference toolchain was measured beside it, which would tell the machine from the compiler"


def _listed(names: tuple[str, ...]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
