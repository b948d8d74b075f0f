"""Whose change a ratio to the baseline is: two cases have a part in it, and one of them may be no code of IREE's."""

from __future__ import annotations

import math

from harness.history.circumstances import Circumstances, between, machine_changes
from harness.history.verdicts import Verdict, compiler, not_the_compiler, other_module
from harness.report.units import percent


def against_baseline(around: Circumstances) -> Verdict:
    """The cause, and why; of a peer whose engine is the same on both sides."""
    programs = [(around.before.program, around.after.program)]
    if around.baseline_program is not None:
        programs.append(around.baseline_program)
    elif around.peer:
        why = "the engine is the same on both sides, and what the baseline ran is not known"
        return "unknown", f"{why}{machine_changes(around)}"
    if all(before == after for before, after in programs):
        what = "the same module" if len(programs) == 1 else "the same modules, the baseline's too,"
        what = "the same engine and the baseline's same module" if around.peer else what
        return not_the_compiler(around, f"{what} ran under the same runtime on both sides")
    changed = [pair for pair in programs if not pair[0].same_toolchain(pair[1])]
    if not changed:
        return other_module(around)
    what = between(*changed[0])
    if around.peer:
        return _peer(around, f"the engine is the same, and the baseline variant's toolchain changed {what}")
    return compiler(around, f"the ratio to the baseline, taken in the same rounds, moved {what}; {_who_moved(around)}")


def _peer(around: Circumstances, why: str) -> Verdict:
    moved = around.baseline_shift
    if moved is None:
        return compiler(around, why)
    by = percent(moved.ratio, decimals=1)
    if moved.explains(-math.log(around.ratio)):
        return compiler(around, f"{why}, its own time by {by}")
    return "unknown", f"{why}, but its own time moved by {by}, which does not explain it{machine_changes(around)}"


def _who_moved(around: Circumstances) -> str:
    """Whether this variant or the baseline changed, as far as their own times tell."""
    own, baseline = around.own_shift, around.baseline_shift
    if own is None or baseline is None:
        return "what changed is this variant's code or the baseline's"
    change = math.log(around.ratio)
    by_own, by_baseline = own.explains(change), baseline.explains(-change)
    moved, of_baseline = (percent(one.ratio, decimals=1) for one in (own, baseline))
    times = f"this variant's own time moved by {moved}, the baseline's by {of_baseline}"
    if by_own == by_baseline:
        return f"{times}: what changed is this variant's code or the baseline's"
    return f"{times}: what changed is {'this variant' if by_own else 'the baseline'}"
