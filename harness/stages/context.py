"""What the stages of a run share: the user's choices, the planned cases, and where results go."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from harness.progress import Progress, Remaining
from harness.records.case import Case
from harness.records.run import Build, Check, IrCounts, Peak, Reference, Run
from harness.stages.failures import FailureNotes, GivenUp
from harness.stages.options import RunOptions
from harness.stages.prepare import Prepared
from harness.store.run_directory import RunDirectory

# Titles of the stages whose time is foreseen.
COMPILE, IR, VERIFY, REFERENCE, MEASURE = "Compile", "IR", "Verify", "iree-benchmark-module", "Measure"


@dataclass(frozen=True, kw_only=True)
class Done:
    """What an interrupted run had finished, by case; timed seconds and rounds by group and generation."""

    builds: Mapping[str, Build] = field(default_factory=dict)
    ir: Mapping[str, IrCounts] = field(default_factory=dict)
    checks: Mapping[str, Check] = field(default_factory=dict)
    references: Mapping[str, Reference] = field(default_factory=dict)
    generations: Mapping[tuple[str, int], tuple[float, int]] = field(default_factory=dict)
    lost: frozenset[str] = frozenset()
    work: frozenset[str] = frozenset()

    def has_all_of(self, case: Case, settings: Mapping[str, Any]) -> bool:
        """Whether nothing is left of a case, since it was measured to the end, or has failed."""
        build, check = self.builds.get(case.name), self.checks.get(case.name)
        has_failed = any(record is not None and record.failure is not None for record in (build, check))
        if has_failed or case.name in self.lost:
            return True
        if not settings.get("measure", True):
            return check is not None
        return (case.group, int(settings["generations"]) - 1) in self.generations


def done_in(run: Run) -> Done:
    """What a run that was read back had finished."""
    generations: dict[tuple[str, int], tuple[float, int]] = {}
    for timed in run.rounds:
        seconds, rounds = generations.get((timed.group, timed.generation), (0.0, 0))
        timed_s = sum(turn.wall_ns for turn in timed.turns) / 1e9
        generations[timed.group, timed.generation] = (seconds + timed_s, rounds + 1)
    return Done(
        builds={build.case: build for build in run.builds},
        ir={counts.case: counts for counts in run.ir},
        checks={check.case: check for check in run.checks},
        references={reference.case: reference for reference in run.references},
        generations=generations,
        lost=frozenset(lost.case for lost in run.lost),
        work=frozenset(work.model for work in run.work),
    )


@dataclass(frozen=True, kw_only=True)
class Context:
    """One run under way."""

    prepared: Prepared
    options: RunOptions
    directory: RunDirectory
    done: Done
    progress: Progress
    failures: FailureNotes  # What is printed of them as they happen
    given_up: GivenUp  # What is not tried since another case timed out
    # What was measured of this machine, by device; a run that goes on measures again
    peaks: dict[str, Peak] = field(default_factory=dict)
    checks: dict[str, Check] = field(default_factory=dict)  # Of all cases that were checked so far, by name
    with_reference: bool = True  # Whether iree-benchmark-module is asked of each case, which says what memory it takes
    remaining: Remaining = field(default_factory=Remaining)  # The pieces of work that are left
