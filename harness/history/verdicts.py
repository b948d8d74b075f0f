"""The verdicts that several rules of causes come to, in the same words."""

from __future__ import annotations

from typing import Literal

from harness.history.circumstances import Circumstances, commits_text, machine_changes
from harness.metrics import LATENCY_VS_BASELINE

Cause = Literal["compiler", "machine", "harness", "unknown"]
Verdict = tuple[Cause, str]

SAME_MODULE = "the same module ran under the same runtime on both sides"


def compiler(around: Circumstances, why: str) -> Verdict:
    """The compiler's, with what else changed."""
    also = ", and another machine can move a ratio too" if around.moved_machine else ""
    return "compiler", f"{why}{machine_changes(around)}{also}"


def not_the_compiler(around: Circumstances, why: str) -> Verdict:
    """The machine's, unless nothing changed but the harness."""
    changed = machine_changes(around)
    if around.kind == "step" and around.before.commit != around.after.commit and not changed:
        return (
            "harness",
            f"{why}, and nothing else that runs record changed but the harness {commits(around)}; a machine that "
            "became slower or faster without a trace would look the same",
        )
    return "machine", f"{why}{changed or '; nothing that runs record of the machine changed'}"


def other_module(around: Circumstances) -> Verdict:
    """Other code from the same toolchain: somebody else gave it another program or other flags."""
    whose = "the module or the baseline's" if around.metric == LATENCY_VS_BASELINE else "the module"
    why = f"{whose} is another, though the toolchain is the same on both sides"
    if around.before.commit != around.after.commit:
        return "harness", f"{why}, and the harness changed {commits(around)}"
    return "unknown", f"{why}, and so is the harness{machine_changes(around)}"


def other_count(around: Circumstances) -> Verdict:
    """The number of executed instructions of one and the same program, which no machine's speed changes."""
    what = "the same engine ran on both sides" if around.peer else SAME_MODULE
    why = f"{what}, and executed another number of instructions"
    if around.before.commit != around.after.commit:
        return "harness", f"{why}; the harness changed {commits(around)}"
    return "unknown", f"{why}{machine_changes(around)}"


def commits(around: Circumstances) -> str:
    """`(35217dcf00 -> 89ece87b89)`."""
    return f"({commits_text(around.before.commit, around.after.commit)})"
