"""Two cases -> where their IR differs: outside executables, and in each of those that belong together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from harness.ir.canonical import Line
from harness.ir.differences import (
    EXECUTABLE_PHASES,
    PROGRAM_PHASES,
    Match,
    changed_lines,
    first_difference,
    match_executables,
    target_changes,
)
from harness.ir.op_counts import OpCounts
from harness.ir.program_parts import ProgramParts
from harness.records.run import Sizes

Code: TypeAlias = Mapping[str, tuple[Line, ...]]


@dataclass(frozen=True, kw_only=True)
class ComparedCase:
    """One of two cases whose IR is compared."""

    name: str
    label: str  # What tells it from the other
    toolchain: str  # Release of IREE that compiled it
    counts: Mapping[str, OpCounts]  # Ops by phase
    parts: ProgramParts
    sizes: Sizes | None
    texts: Mapping[str, str]  # The IR itself by phase; {} where it was not asked for


@dataclass(frozen=True, kw_only=True)
class Difference:
    """The first phase at which two programs, or two executables, differ."""

    phase: str
    lines: tuple[str, ...]  # As `changed_lines` gives them

    @property
    def changes(self) -> tuple[int, int]:
        """How many lines only base has, and only head."""
        return sum(line.startswith("-") for line in self.lines), sum(line.startswith("+") for line in self.lines)


@dataclass(frozen=True, kw_only=True)
class IrComparison:
    """What two cases' IR has in common, and what not."""

    base: ComparedCase
    head: ComparedCase
    # Each match with its first difference; None where its code is the same, or there is one side only
    executables: tuple[tuple[Match, Difference | None], ...]
    program: Difference | None  # Of what is outside executables; None where that is the same
    target: tuple[str, ...]  # What differs between their targets, in words
    # Phases that are not compared, as the IR of one of them cannot be read back there, and why
    unread: Mapping[str, str]


def compare_ir(base: ComparedCase, head: ComparedCase, *, unread: Mapping[str, str] | None = None) -> IrComparison:
    """Match the executables of two cases, and find the first phase at which each pair and the programs differ.

    Executables whose code is the same at the last phase are the same, whatever they were before.
    """
    program = _difference(base.parts.program, head.parts.program, PROGRAM_PHASES)
    matches = match_executables(base.parts.executables, head.parts.executables)
    return IrComparison(
        base=base,
        head=head,
        executables=tuple((match, _of_match(match)) for match in matches),
        program=program,
        target=tuple(target_changes(base.parts.target, head.parts.target)),
        unread=unread or {},
    )


def _of_match(match: Match) -> Difference | None:
    if match.base is None or match.head is None or match.by == "same code":
        return None
    return _difference(match.base.phases, match.head.phases, EXECUTABLE_PHASES)


def _difference(base: Code, head: Code, phases: tuple[str, ...]) -> Difference | None:
    phase = first_difference(base, head, phases)
    return None if phase is None else Difference(phase=phase, lines=tuple(changed_lines(base[phase], head[phase])))
