"""Whose change it is: the compiler's, the machine's or the harness's; pure, on what the runs around it recorded.

The reference toolchain stays the same from run to run, so what moves it is the machine (or the harness). The ratio to
it, taken between turns of the same rounds, is free of the machine, so what moves that is the other toolchain. And a
module with the same bytes under the same runtime is the same program, whichever toolchain is called the newest.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from harness.compare.metrics import COMPILE_TIME, INSTRUCTIONS, LATENCY
from harness.history.series import LATENCY_VS_BASELINE, LATENCY_VS_REFERENCE
from harness.history.shifts import Shift
from harness.report.units import percent

Cause = Literal["compiler", "machine", "harness", "unknown"]

# A difference in load that may explain a figure: one core's worth.
_LOAD = 1.0
_SHOWN_DIGITS = 10


@dataclass(frozen=True, kw_only=True)
class Moment:
    """What a run recorded of what could change a figure of one case.

    Attributes:
        module_sha256: Of what ran; "" where nothing was compiled.
        commit: The harness's.
        load: Of the machine as the run began; around a change, the median over the runs of that side.
    """

    toolchain: str
    revision: str
    module_sha256: str
    machine: str
    kernel: str
    devices: str
    commit: str
    load: float | None


@dataclass(frozen=True, kw_only=True)
class Sighting:
    """A change of one series, and what else was seen around it.

    Attributes:
        kind: One commit may make a step, and no drift.
        ratio: The level after it, divided by that before it.
        before: The last run that is surely before it.
        after: The first that is surely after it.
        reference: Release of the toolchain that stays the same; "" where none was measured beside it.
        reference_shift: Of the case's latency under the reference; None: not measured on both sides.
        versus_shift: Of its ratio to that.
        counted: Names of counted figures of the case that changed in between.
    """

    metric: str
    exact: bool
    kind: Literal["step", "drift"]
    ratio: float
    before: Moment
    after: Moment
    reference: str = ""
    reference_shift: Shift | None = None
    versus_shift: Shift | None = None
    counted: tuple[str, ...] = ()

    @property
    def same_toolchain(self) -> bool:
        """Whether release and revision are the same on both sides."""
        before, after = self.before, self.after
        return (before.toolchain, before.revision) == (after.toolchain, after.revision)

    @property
    def same_program(self) -> bool:
        """Whether the same module ran under the same runtime on both sides; of a peer, the same engine."""
        return self.same_toolchain and self.before.module_sha256 == self.after.module_sha256


def explain(sighting: Sighting) -> tuple[Cause, str]:
    """The cause, and why it is that, in one sentence."""
    if sighting.exact:
        return _counted(sighting)
    if sighting.metric == COMPILE_TIME.name:
        return _compile_time(sighting)
    if sighting.same_program:
        return _not_the_compiler(sighting, "the same module ran under the same runtime on both sides")
    if sighting.same_toolchain:
        return _other_module(sighting)
    if sighting.metric == LATENCY.name and (sighting.reference_shift or sighting.versus_shift):
        return _beside_reference(sighting)
    if sighting.metric in (LATENCY_VS_REFERENCE, LATENCY_VS_BASELINE, INSTRUCTIONS.name):
        what = {
            LATENCY_VS_REFERENCE: "the ratio to the reference toolchain, taken in the same rounds, moved",
            LATENCY_VS_BASELINE: "the ratio to the baseline, taken in the same rounds, moved",
            INSTRUCTIONS.name: "the program executes another number of instructions",
        }[sighting.metric]
        return "compiler", f"{what} {_between(sighting)}"
    if sighting.counted:
        return "compiler", f"{_listed(sighting.counted)} changed too {_between(sighting)}"
    return (
        "unknown",
        f"the toolchain changed {_between(sighting)}, and no reference toolchain was measured beside it, which would "
        "tell the machine from the compiler",
    )


def _counted(sighting: Sighting) -> tuple[Cause, str]:
    if not sighting.same_toolchain:
        return "compiler", f"a counted figure changed {_between(sighting)}"
    if sighting.before.commit != sighting.after.commit:
        return "harness", f"a counted figure changed under the same toolchain, and the harness did {_commits(sighting)}"
    return "unknown", "a counted figure changed under the same toolchain and the same harness"


def _compile_time(sighting: Sighting) -> tuple[Cause, str]:
    if sighting.same_toolchain:
        return _not_the_compiler(sighting, "the compiler is the same on both sides")
    if sighting.reference_shift is None:
        return (
            "unknown",
            f"the toolchain changed {_between(sighting)}, and no reference toolchain was measured beside it, which "
            "would tell the machine from the compiler",
        )
    if sighting.reference_shift.explains(math.log(sighting.ratio)):
        moved = percent(sighting.reference_shift.ratio, decimals=1)
        return (
            "machine",
            f"the latency under the reference toolchain {sighting.reference} moved likewise ({moved})"
            f"{_machine_changes(sighting)}",
        )
    return "compiler", f"the machine's speed did not change, and the toolchain did {_between(sighting)}"


def _beside_reference(sighting: Sighting) -> tuple[Cause, str]:
    """A latency of which the reference's and the ratio to it are known."""
    change = math.log(sighting.ratio)
    reference, versus = sighting.reference_shift, sighting.versus_shift
    by_reference = reference is not None and reference.explains(change)
    if versus is not None and versus.explains(change):
        also = (
            f", and the reference itself by {percent(reference.ratio, decimals=1)}, which is the machine's part"
            if reference is not None and by_reference
            else ""
        )
        return (
            "compiler",
            f"the ratio to the reference toolchain {sighting.reference} moved by {percent(versus.ratio, decimals=1)} "
            f"{_between(sighting)}{also}",
        )
    if reference is not None and by_reference:
        still = f", the ratio to it by {percent(versus.ratio, decimals=1)}" if versus is not None else ""
        return _not_the_compiler(
            sighting,
            f"the reference toolchain {sighting.reference} moved likewise, by {percent(reference.ratio, decimals=1)}"
            f"{still}",
        )
    return (
        "unknown",
        f"neither the reference toolchain {sighting.reference} nor the ratio to it moved clearly at these runs",
    )


def _other_module(sighting: Sighting) -> tuple[Cause, str]:
    """Other code from the same toolchain: somebody else gave it another program or other flags."""
    if sighting.before.commit != sighting.after.commit:
        return (
            "harness",
            f"the module is another, though the toolchain is the same on both sides, and the harness changed "
            f"{_commits(sighting)}",
        )
    changed = _machine_changes(sighting)
    return "unknown", f"the module is another, though the toolchain and the harness are the same on both sides{changed}"


def _not_the_compiler(sighting: Sighting, why: str) -> tuple[Cause, str]:
    changed = _machine_changes(sighting)
    if sighting.kind == "step" and sighting.before.commit != sighting.after.commit and not changed:
        return (
            "harness",
            f"{why}, and nothing else that runs record changed but the harness {_commits(sighting)}; a machine that "
            "became slower or faster without a trace would look the same",
        )
    return "machine", f"{why}{changed or '; nothing that runs record of the machine changed'}"


def _machine_changes(sighting: Sighting) -> str:
    """`; meanwhile the kernel changed from 6.1.0 to 6.2.0`, or "" where nothing that runs record did."""
    before, after = sighting.before, sighting.after
    named = [
        ("the machine", before.machine, after.machine),
        ("the kernel", before.kernel, after.kernel),
        ("the devices", before.devices, after.devices),
    ]
    parts = [f"{what} changed from {old} to {new}" for what, old, new in named if old and new and old != new]
    if before.load is not None and after.load is not None and abs(after.load - before.load) >= _LOAD:
        parts.append(f"its load went from {before.load:.1f} to {after.load:.1f}")
    return f"; meanwhile {' and '.join(parts)}" if parts else ""


def _between(sighting: Sighting) -> str:
    return f"between {toolchain_text(sighting.before)} and {toolchain_text(sighting.after)}"


def toolchain_text(moment: Moment) -> str:
    """Release and revision: `3.12.0 (89ece87b89)`."""
    if not moment.revision:
        return moment.toolchain
    return f"{moment.toolchain} ({moment.revision[:_SHOWN_DIGITS]})"


def _commits(sighting: Sighting) -> str:
    return f"({commits_text(sighting.before.commit, sighting.after.commit)})"


def commits_text(before: str, after: str) -> str:
    """`35217dcf00 -> 89ece87b89`; "" where it is the same."""
    if before == after:
        return ""
    short = (f"{one.partition('+')[0][:_SHOWN_DIGITS]}{'+dirty' if '+' in one else ''}" for one in (before, after))
    return " -> ".join(one or "no commit" for one in short)


def _listed(names: tuple[str, ...]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
