"""What a user can choose: the signatures of `harness compare` and `harness selfcheck`, and their help."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, replace
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from harness.options import (
    Compiling,
    Count,
    DataFormat,
    Flag,
    Judging,
    Loudness,
    OnFleet,
    Results,
    Seconds,
    SecondsOrNone,
    Timing,
    Toolchains,
    Waiting,
    Whole,
    command_options,
)
from harness.store.folders import NAMED
from harness.suite.cases import Filtered


@command_options
@dataclass(frozen=True)
class CompareOptions(Filtered, Toolchains, Judging, Results, Compiling, Timing, OnFleet, Loudness):
    """What a user can choose about a comparison.

    Attributes:
        sides: Base and head: each a run (its folder, latest, @-1, or what only its name begins with), a toolchain such
            as iree==3.12.0, build/ or pr:24701, or a commit of this git repository (a branch, a tag, HEAD~3, a hash).
            What is the name of a run and of a commit is refused: ./results/NAME says the run, commit:NAME the commit.
            Behind both, which cases, as of --filter.
        within: Compare this run's variants with its baseline instead.
        resume: Go on with this interrupted comparison; what was compiled, checked, measured or decided is not repeated.
        suite: Suite for sides that are toolchains or commits (default: that of the other side's run). Of a commit, all
            files are taken as the commit has them.
        prepare: Run this in the shell in each commit's tree before it is compiled, with this Python as python: such as
            python -m pip install --no-deps ./plugins, where a commit decides plugins or builders too.
        remeasure: Measure again, now; else compare what the runs recorded.
        across_hosts: Compare recorded numbers of different machines or devices too.
        by_name: Compare cases of one name also where the two sides define them differently; of two commits, that is
            always so.
        row_budget: Wall seconds for looking at one row's latency; confirming a finding takes as much again, at most
            twice.
        row_cap: Wall seconds, confirmation included, that a row may take whose sides differ by far more than the noise
            and whose budget has no room for a verdict.
        metric: With compile-time, compare the compile times of every row whose code changed; else only of those that a
            gate of the suite is about, or whose sides' compiles took plainly different times in their runs.
        compile_budget: Wall seconds for one row's compile times (default: as --row-budget); 0: they are not measured.
        controls: So many identical rows are measured all the same, as A/A controls.
        explain: Say under each regressed latency which of its dispatches take longer, and what differs there.
        explain_budget: With --explain, wall seconds for the dispatches of one row, as of harness explain.
        results: Where the comparison's directory goes.
    """

    sides: Annotated[tuple[str, ...], Parameter(negative="", show_default=False), NAMED] = ()
    _: KW_ONLY
    within: Annotated[Path | None, NAMED] = None
    resume: Annotated[Path | None, NAMED] = None
    suite: Path | None = None
    prepare: str | None = None
    remeasure: bool = True
    across_hosts: Flag = False
    by_name: Flag = False
    row_budget: Seconds = 15.0
    row_cap: Seconds = 3600.0
    metric: Literal["latency", "compile-time"] = "latency"
    compile_budget: SecondsOrNone | None = None
    controls: Whole = 0
    explain: Flag = False
    explain_budget: Seconds = 60.0

    @property
    def compile_budget_s(self) -> float:
        """Wall seconds for one row's compile times."""
        return self.row_budget if self.compile_budget is None else self.compile_budget

    def with_cases_apart(self) -> CompareOptions:
        """The same, with what stands behind both sides among the patterns on cases."""
        number = 0 if self.within is not None else max(0, 2 - len(self.toolchains))
        return replace(self, sides=self.sides[:number], patterns=(*self.patterns, *self.sides[number:]))

    def again(self) -> list[str]:
        """What a command that repeats a row needs, to judge it alike."""
        return [
            *([] if self.remeasure else ["--no-remeasure"]),
            *(["--across-hosts"] if self.across_hosts and not self.remeasure else []),
            *(["--by-name"] if self.by_name else []),
            *([] if self.prepare is None else ["--prepare", self.prepare]),
            *([] if self.floor is None else ["--floor", f"{self.floor:g}"]),
            *self.words_to_join(self.fleet),
        ]


@command_options
@dataclass(frozen=True)
class SelfcheckOptions(Filtered, Judging, Results, Waiting, Loudness):
    """What a user can choose about a check of the machine.

    Attributes:
        suite: The suite's TOML file.
        rows: Rows over all cases, at least; each case gets equally many.
        row_budget: Wall seconds of one row.
        results: Where the run's directory goes that its modules are compiled for.
        fleet: Refused, with what to do instead.
        format: How to print it.
    """

    suite: Path
    _: KW_ONLY
    rows: Count = 40
    row_budget: Seconds = 15.0
    fleet: Annotated[str | None, Parameter(show=False)] = None
    format: DataFormat = "terminal"
