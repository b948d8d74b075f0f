"""What was seen around a change: the two sides' programs and machines, and how other series of the case moved."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from harness.history.shifts import Shift

# A difference in load that may explain a figure: one core's worth.
_LOAD = 1.0
_SHOWN_DIGITS = 10


@dataclass(frozen=True, kw_only=True)
class Program:
    """What a point was made with.

    Attributes:
        toolchain: Release of IREE; of a peer, the engine's name and version.
        module_sha256: Of what ran; "" where nothing was compiled.
    """

    toolchain: str
    revision: str
    module_sha256: str

    def same_toolchain(self, other: Program) -> bool:
        """Whether release and revision are the same."""
        return (self.toolchain, self.revision) == (other.toolchain, other.revision)


@dataclass(frozen=True, kw_only=True)
class Conditions:
    """What runs recorded at one side of a change.

    Attributes:
        program: Of the run next to it that is surely on this side.
        machines: Of each run of this side that says so, in order of time.
        kernels: Likewise.
        drivers: Likewise of the case's own device.
        commit: The harness's.
        load: Median over this side's runs of the machine's load as they began.
    """

    program: Program
    machines: tuple[str, ...]
    kernels: tuple[str, ...]
    drivers: tuple[str, ...]
    commit: str
    load: float | None


@dataclass(frozen=True, kw_only=True)
class Circumstances:
    """A change of one series, and what else was seen around it.

    Attributes:
        kind: One commit may make a step, and no drift.
        ratio: The level after it, divided by that before it.
        peer: The engine's registered name; "" for IREE.
        references: Release of the toolchain that stays the same, before and after; "" where none was measured.
        reference_program: What the case was under it, before and after; None: not known on both sides.
        reference_counts: The same counted figure under it, before and after.
        reference_shift: Of the case's latency under it; None: no one release was measured on both sides.
        reference_compile_shift: Of the case's compile time under it.
        versus_shift: Of the case's ratio to it.
        baseline_program: Of the case's baseline variant, before and after.
        own_shift: Of the case's latency, free of the machine where that is known: what moved a ratio to the baseline.
        baseline_shift: The same of the baseline.
        counted: Names of counted figures of the case that changed in between.
    """

    metric: str
    exact: bool
    kind: Literal["step", "drift"]
    ratio: float
    before: Conditions
    after: Conditions
    peer: str = ""
    references: tuple[str, str] = ("", "")
    reference_program: tuple[Program, Program] | None = None
    reference_counts: tuple[float, float] | None = None
    reference_shift: Shift | None = None
    reference_compile_shift: Shift | None = None
    versus_shift: Shift | None = None
    baseline_program: tuple[Program, Program] | None = None
    own_shift: Shift | None = None
    baseline_shift: Shift | None = None
    counted: tuple[str, ...] = ()

    @property
    def same_toolchain(self) -> bool:
        """Whether release and revision are the same on both sides; of a peer, the engine and its version."""
        return self.before.program.same_toolchain(self.after.program)

    @property
    def same_program(self) -> bool:
        """Whether the same module ran under the same runtime on both sides."""
        return self.before.program == self.after.program

    @property
    def reference(self) -> str:
        """Release of the reference after the change."""
        return self.references[1]

    @property
    def given_otherwise(self) -> bool:
        """Whether the case is another program under the reference toolchain too, which itself is the same."""
        if self.reference_counts is not None and self.reference_counts[0] != self.reference_counts[1]:
            return True
        if self.reference_program is None:
            return False
        before, after = self.reference_program
        return before.same_toolchain(after) and before.module_sha256 != after.module_sha256

    @property
    def moved_machine(self) -> bool:
        """Whether it is another machine, or another kernel on it."""
        before, after = self.before, self.after
        return _differ(before.machines, after.machines) or _differ(before.kernels, after.kernels)


def machine_changes(around: Circumstances) -> str:
    """`; meanwhile the kernel changed from 6.1.0 to 6.2.0`, or "" where nothing that runs record did."""
    before, after = around.before, around.after
    named = [
        ("the machine", before.machines, after.machines),
        ("the kernel", before.kernels, after.kernels),
        ("the device", before.drivers, after.drivers),
    ]
    parts = [f"{what} changed from {old[-1]} to {new[0]}" for what, old, new in named if _differ(old, new)]
    if before.load is not None and after.load is not None and abs(after.load - before.load) >= _LOAD:
        parts.append(f"its load went from {before.load:.1f} to {after.load:.1f}")
    return f"; meanwhile {' and '.join(parts)}" if parts else ""


def _differ(before: Sequence[str], after: Sequence[str]) -> bool:
    """Whether a fact changed with the change: what is another in every run, as on hired machines, explains nothing.

    The two sides have no value in common, and one of them kept to a single one.
    """
    if not before or not after or set(before) & set(after):
        return False
    longer = before if len(before) >= len(after) else after
    kept = any(len(side) > 1 and len(set(side)) == 1 for side in (before, after))
    return kept or len(longer) == 1


def toolchains_text(around: Circumstances) -> str:
    """`between 3.12.0 (89ece87b89) and 3.13.0 (0123456789)`."""
    return between(around.before.program, around.after.program)


def between(before: Program, after: Program) -> str:
    """`between 3.12.0 (89ece87b89) and 3.13.0 (0123456789)`."""
    return f"between {toolchain_text(before)} and {toolchain_text(after)}"


def toolchain_text(program: Program) -> str:
    """Release and revision: `3.12.0 (89ece87b89)`."""
    if not program.revision:
        return program.toolchain
    return f"{program.toolchain} ({program.revision[:_SHOWN_DIGITS]})"


def commits_text(before: str, after: str) -> str:
    """`35217dcf00 -> 89ece87b89`; "" where it is the same."""
    if before == after:
        return ""
    short = (f"{one.partition('+')[0][:_SHOWN_DIGITS]}{'+dirty' if '+' in one else ''}" for one in (before, after))
    return " -> ".join(one or "no commit" for one in short)
