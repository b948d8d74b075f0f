"""What a user can choose about a comparison: the options of `harness compare`, by their names there."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from harness.records.comparison import RuleName


@dataclass(frozen=True, kw_only=True)
class CompareOptions:
    """The arguments of `harness compare`; its help says the same of each."""

    sides: tuple[str, ...] = ()
    """Base and head: run directories, or toolchains such as iree==3.12.0."""
    within: Path | None = None
    """Compare this run's variants with its baseline instead."""
    toolchains: tuple[str, ...] = ()
    """Sides that are toolchains, after those given by position."""
    suite: Path | None = None
    """Suite for sides that are toolchains (default: that of the other side's run)."""
    patterns: tuple[str, ...] = ()
    """Only these cases: shell patterns on their names, one of which must match; (): all."""
    remeasure: bool = True
    """Measure again, now; else compare what the runs recorded."""
    across_hosts: bool = False
    """Compare recorded numbers of different machines or devices too."""
    by_name: bool = False
    """Compare cases of one name also where the two sides define them differently."""
    row_budget: float = 15.0
    """Wall seconds for looking at one row's latency; confirming a finding takes as much again, at most twice."""
    compile_budget: float = 30.0
    """Wall seconds for one row's compile times; 0: they are not measured."""
    floor: float | None = None
    """Relative change of latency below which nothing is called changed (default: the suite's, else 0.01)."""
    controls: int = 0
    """So many identical rows are measured all the same, as A/A controls."""
    rule: RuleName = "generations"
    """What decides: generations and their intervals, or the thresholds of IREE's own old comments."""
    seed: int = 0
    """Of the order of turns."""
    results: Path = Path("results")
    """Where the comparison's directory goes."""
    compile_timeout: float = 900.0
    """Seconds after which a compile is stopped."""
    call_timeout: float = 300.0
    """Seconds after which a turn is stopped."""

    def again(self) -> list[str]:
        """What a command that repeats a row needs, to judge it alike."""
        return [
            *([] if self.remeasure else ["--no-remeasure"]),
            *(["--across-hosts"] if self.across_hosts and not self.remeasure else []),
            *(["--by-name"] if self.by_name else []),
            *([] if self.floor is None else ["--floor", f"{self.floor:g}"]),
            *(["--rule", self.rule] if self.rule != "generations" else []),
        ]
