"""Whose change it is: the compiler's, the machine's or the harness's, decided on its evidence; and why, in a sentence.

The reference toolchain stays the same from run to run, so what moves it is the machine (or the harness). The ratio to
it, taken between turns of the same rounds, is free of the machine, so what moves that is the other toolchain. A
module with the same bytes under the same runtime is the same program, whichever toolchain is called the newest. And
what is another program under the reference toolchain too was given otherwise, and so is not the compiler's.
docs/history.md has the rules as a table.
"""

import math
from collections.abc import Sequence
from typing import Literal

from harness.history.evidence import ChangeEvidence
from harness.history.series import Program
from harness.metrics import COMPILE_TIME, INSTRUCTIONS, LATENCY, LATENCY_VS_BASELINE, LATENCY_VS_REFERENCE
from harness.report.units import percent

Cause = Literal["compiler", "machine", "harness", "unknown"]
# A cause, and why it is that in one sentence.
Explanation = tuple[Cause, str]

_SAME_MODULE = "the same module ran under the same runtime on both sides"
# A difference in load that may explain a figure: one core's worth.
_LOAD = 1.0
_SHOWN_DIGITS = 10


def explain(change: ChangeEvidence) -> Explanation:
    """The cause of a change, and why it is that."""
    engines = change.before.program.toolchain, change.after.program.toolchain
    if change.peer and (engines[0] != engines[1] or not engines[0]):
        before, after = (engine or "unknown" for engine in engines)
        return "unknown", f"the engine's version changed, or is not recorded ({before} -> {after})"
    if not change.same_toolchain and change.other_input:
        why = f"under the reference toolchain {change.references[1]}, itself the same on both sides, the program is"
        return _given_otherwise(change, f"{why} another too: its model, flags or a plugin changed")
    if change.exact:
        if change.same_toolchain:
            return _given_otherwise(change, "a counted figure changed under the same toolchain")
        return "compiler", f"a counted figure changed {_toolchains(change)}"
    if change.metric == LATENCY_VS_BASELINE:
        return _against_baseline(change)
    same = f"the same engine ran on both sides ({engines[1]})" if change.peer else _SAME_MODULE
    if change.metric == INSTRUCTIONS.name and (change.peer or change.same_program):
        # No machine's speed changes that.
        return _given_otherwise(change, f"{same}, and executed another number of instructions")
    if change.peer or change.same_program:
        return _not_the_compiler(change, same)
    if change.same_toolchain:
        return _given_otherwise(change, "the module is another, though the toolchain is the same on both sides")
    if change.metric == COMPILE_TIME.name:
        return _compile_time(change)
    if change.metric == LATENCY.name and (change.reference or change.versus):
        return _with_reference(change)
    return _without_reference(change)


def _given_otherwise(change: ChangeEvidence, why: str) -> Explanation:
    """Neither the compiler's nor the machine's: the harness's where its commit changed."""
    if change.same_harness:
        return "unknown", f"{why}, under the same harness{_machine_changes(change)}"
    return "harness", f"{why}, and the harness changed ({commits_text(change.before.commit, change.after.commit)})"


def _compile_time(change: ChangeEvidence) -> Explanation:
    """The reference's own compile time decides; its latency shows a slower machine, but not that there was none."""
    log_change = math.log(change.ratio)
    for figure, moved in (("compile time", change.reference_compile), ("latency", change.reference)):
        if moved is None:
            continue
        what = f"the {figure} under the reference toolchain {change.references[1]}"
        by = f"({_percent(moved.ratio)})"
        if moved.is_most_of(log_change):
            return "machine", f"{what} moved likewise {by}{_machine_changes(change)}"
        if figure == "compile time":
            if moved.is_little_of(log_change):
                return _compiler(change, f"{what} did not move likewise {by}, and the toolchain changed")
            return "unknown", f"{what} moved, not clearly with it and not clearly less {by}"
    why = "no compile time of one reference toolchain was taken on both sides, which would tell the machine from the"
    return "unknown", f"{why} compiler{_machine_changes(change)}"


def _with_reference(change: ChangeEvidence) -> Explanation:
    log_change = math.log(change.ratio)
    name = f"the reference toolchain {change.references[1]}"
    versus = change.versus
    reference = change.reference if change.reference and change.reference.explains(log_change) else None
    if versus is not None and versus.explains(log_change):
        why = f"the ratio to {name} moved by {_percent(versus.ratio)} {_toolchains(change)}"
        if reference is not None:
            why += f", and the reference itself by {_percent(reference.ratio)}, which is the machine's part"
        return _compiler(change, why)
    if reference is not None:
        ratio = f", the ratio to it by {_percent(versus.ratio)}" if versus is not None else ""
        return _not_the_compiler(change, f"{name} moved likewise, by {_percent(reference.ratio)}{ratio}")
    return "unknown", f"neither {name} nor the ratio to it moved clearly at these runs"


def _without_reference(change: ChangeEvidence) -> Explanation:
    """The ratio to the reference or the number of instructions, or a latency alone, between two toolchains."""
    between = _toolchains(change)
    if change.metric == LATENCY_VS_REFERENCE:
        return _compiler(change, f"the ratio to the reference toolchain, taken in the same rounds, moved {between}")
    if change.metric == INSTRUCTIONS.name:
        return _compiler(change, f"the program executes another number of instructions {between}")
    if change.counted:
        return _compiler(change, f"{', '.join(change.counted)} changed too {between}")
    why = "no reference toolchain was measured beside it, which would tell the machine from the compiler"
    before, after = change.references
    if before and after and before != after:
        why = f"the reference toolchain itself changed from {before} to {after} at these runs"
    return "unknown", f"the toolchain changed {between}, and {why}"


def _against_baseline(change: ChangeEvidence) -> Explanation:
    """A ratio to the baseline, in which two cases have a part; of a peer, where its engine stayed the same."""
    programs = [(change.before.program, change.after.program)]
    if change.baseline_program is not None:
        programs.append(change.baseline_program)
    elif change.peer:
        why = "the engine is the same on both sides, and what the baseline ran is not known"
        return "unknown", f"{why}{_machine_changes(change)}"
    if all(before == after for before, after in programs):
        what = "the same engine and the baseline's same module" if change.peer else "the same modules"
        return _not_the_compiler(change, f"{what} ran under the same runtime on both sides")
    changed = [pair for pair in programs if not pair[0].has_toolchain_of(pair[1])]
    if not changed:
        why = "the module or the baseline's is another, though the toolchain is the same on both sides"
        return _given_otherwise(change, why)
    between, baseline = _between(*changed[0]), change.baseline
    if not change.peer:
        return _compiler(change, f"the ratio to the baseline, taken in the same rounds, moved {between}")
    why = f"the engine is the same, and the baseline variant's toolchain changed {between}"
    if baseline is None:
        return _compiler(change, why)
    by = _percent(baseline.ratio)
    if baseline.explains(-math.log(change.ratio)):
        return _compiler(change, f"{why}, its own time by {by}")
    return "unknown", f"{why}, but its own time moved by {by}, which does not explain it{_machine_changes(change)}"


def _compiler(change: ChangeEvidence, why: str) -> Explanation:
    before, after = change.before, change.after
    moved = _differ(before.machines, after.machines) or _differ(before.kernels, after.kernels)
    also = ", and another machine can move a ratio too" if moved else ""
    return "compiler", f"{why}{_machine_changes(change)}{also}"


def _not_the_compiler(change: ChangeEvidence, why: str) -> Explanation:
    """The machine's, unless nothing changed but the harness."""
    changed = _machine_changes(change)
    if change.kind == "step" and not change.same_harness and not changed:
        commits = commits_text(change.before.commit, change.after.commit)
        return "harness", f"{why}, and nothing else that runs record changed but the harness ({commits})"
    return "machine", f"{why}{changed or '; nothing that runs record of the machine changed'}"


def _machine_changes(change: ChangeEvidence) -> str:
    """`; meanwhile the kernel changed from 6.1.0 to 6.2.0`, or "" where nothing that runs record did."""
    before, after = change.before, change.after
    facts = [
        ("the machine", before.machines, after.machines),
        ("the kernel", before.kernels, after.kernels),
        ("the device", before.drivers, after.drivers),
    ]
    parts = [f"{what} changed from {old[-1]} to {new[0]}" for what, old, new in facts if _differ(old, new)]
    if before.load is not None and after.load is not None and abs(after.load - before.load) >= _LOAD:
        parts.append(f"its load went from {before.load:.1f} to {after.load:.1f}")
    return f"; meanwhile {' and '.join(parts)}" if parts else ""


def _differ(before: Sequence[str], after: Sequence[str]) -> bool:
    """Whether the sides have no value in common, and one kept to a single one: on hired machines all values differ."""
    if not before or not after or set(before) & set(after):
        return False
    longer = before if len(before) >= len(after) else after
    kept = any(len(side) > 1 and len(set(side)) == 1 for side in (before, after))
    return kept or len(longer) == 1


def _toolchains(change: ChangeEvidence) -> str:
    return _between(change.before.program, change.after.program)


def _between(before: Program, after: Program) -> str:
    """`between 3.12.0 (89ece87b89) and 3.13.0 (0123456789)`."""
    return f"between {toolchain_text(before)} and {toolchain_text(after)}"


def toolchain_text(program: Program) -> str:
    """Release and revision: `3.12.0 (89ece87b89)`."""
    if not program.revision:
        return program.toolchain
    return f"{program.toolchain} ({program.revision[:_SHOWN_DIGITS]})"


def commits_text(before: str, after: str) -> str:
    """`35217dcf00 -> 89ece87b89`; "" where it is the same."""
    return "" if before == after else f"{_commit(before)} -> {_commit(after)}"


def _commit(commit: str) -> str:
    digits, _, dirty = commit.partition("+")
    return f"{digits[:_SHOWN_DIGITS]}{'+dirty' if dirty else ''}" or "no commit"


def _percent(ratio: float) -> str:
    return percent(ratio, decimals=1)
