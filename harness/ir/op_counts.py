"""How many of which ops a model's IR has at the compiler's phases, and the choice of those that a user asks for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from harness.errors import UsageError
from harness.ir.dump import check_phases
from harness.ir.tools import ask
from harness.process import Limits
from harness.records.case import Case
from harness.toolchain import Toolchain

HOST = "host"
EXECUTABLES = "executables"
PLACES = (HOST, EXECUTABLES)


@dataclass(frozen=True, kw_only=True)
class OpCounts:
    """How many of which ops the IR has at one phase, by op name.

    All that MLIR walks over is counted, but for the outermost module: a terminator too, and the body of a named linalg
    op, which its text does not show. An executable counts once, however often it is dispatched.
    """

    host: Mapping[str, int]  # Ops outside executables, the ops that hold executables among them
    # Ops inside executables, and inside dispatch regions, which are to become executables
    executables: Mapping[str, int]

    @property
    def total(self) -> dict[str, int]:
        """Ops anywhere."""
        return dict(Counter(self.host) + Counter(self.executables))

    def matching(self, pattern: str) -> dict[str, int]:
        """The ops that a pattern matches: `memref.alloc`, `linalg.*`, `host:arith.*`, `executables:memref.alloc*`."""
        place, name = _split(pattern)
        ops = {"": self.total, HOST: self.host, EXECUTABLES: self.executables}[place]
        return {op: count for op, count in ops.items() if fnmatchcase(op, name)}

    def count(self, pattern: str) -> int:
        """How many ops a pattern matches."""
        return sum(self.matching(pattern).values())


@dataclass(frozen=True, kw_only=True)
class Inspected:
    """The IR of a case."""

    case: Case
    counts: dict[str, OpCounts]  # Ops by phase, in the compiler's order
    texts: dict[str, str]  # The IR itself, weights left out, by phase; {} where it was not asked for


def check_ops(patterns: Iterable[str]) -> None:
    """Refuse a place that there is not. An op that no dialect has is fine: its count is 0."""
    for pattern in patterns:
        _split(pattern)


def check_wanted(wanted: Mapping[str, Sequence[str]]) -> None:
    """Refuse phases and places that there are not."""
    check_phases(wanted)
    for patterns in wanted.values():
        check_ops(patterns)


def select_counts(counts: Mapping[str, OpCounts], wanted: Mapping[str, Sequence[str]]) -> dict[str, int]:
    """The counts that a user asks for."""
    check_wanted(wanted)
    return {
        f"{phase}/{pattern}": counts[phase].count(pattern) for phase, patterns in wanted.items() for pattern in patterns
    }


def _split(pattern: str) -> tuple[str, str]:
    """A pattern's place, "" for anywhere, and its op name with wildcards."""
    place, colon, name = pattern.rpartition(":")
    if colon and place not in PLACES:
        raise UsageError(f"there is no place {place!r}, as in {pattern!r}; write {HOST}:... or {EXECUTABLES}:...")
    return place, name


def count_files(files: Mapping[str, Path], *, toolchain: Toolchain, limits: Limits) -> dict[str, OpCounts]:
    """Count the ops in files of IR, as `dump_phases` gives them."""
    answers = ask(
        "ops",
        files,
        name="the counter of ops",
        toolchain=toolchain,
        limits=limits,
        where=f" at {', '.join(files)}",
        remedy="leave phases out",
    )
    return {phase: OpCounts(**counts) for phase, counts in answers.items()}
