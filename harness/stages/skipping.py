"""What a user gives up of a run that goes on: `--resume RUN --skip PATTERN`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from harness.errors import UsageError
from harness.records.run import Build, Failure, Lost, Run
from harness.stages.context import Done
from harness.stages.failures import unchecked
from harness.store.run_directory import RunDirectory
from harness.suite.cases import matching


def give_up(directory: RunDirectory, run: Run, done: Done, patterns: Sequence[str]) -> Done:
    """Record as failed what the user skips of a run that goes on, at the stage that each case has come to."""
    names = [case.name for case in run.header.cases]
    for pattern in patterns:
        if not any(matching([pattern]).match(name) for name in names):
            raise UsageError(f"--skip {pattern} matches no case of the run, such as {names[0]}; correct the pattern")
    builds, checks, lost = dict(done.builds), dict(done.checks), set(done.lost)
    for case in run.header.cases:
        if case.skip is not None or not patterns or not matching(patterns).match(case.name):
            continue
        message = "given up with --skip when the run went on"
        if case.peer is None and case.name not in builds:
            failure = Failure(stage="compile", message=message)
            builds[case.name] = Build(case=case.name, command=(), cache_key="", failure=failure)
            directory.append(builds[case.name])
        elif case.name not in checks:
            failure = Failure(stage="verify", message=message)
            checks[case.name] = unchecked(case, failure)
            directory.append(checks[case.name])
        elif checks[case.name].failure is None and case.name not in lost:
            directory.append(Lost(case=case.name, generation=0, failure=Failure(stage="measure", message=message)))
            lost.add(case.name)
    return replace(done, builds=builds, checks=checks, lost=frozenset(lost))
