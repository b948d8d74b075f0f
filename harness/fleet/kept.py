"""What has come of a run on a fleet: written into the run's directory at once, and what it says of groups."""

from __future__ import annotations

import math
import time
from collections import deque
from dataclasses import replace

from harness.fleet.orders import Checked, Measured
from harness.fleet.pace import Pace
from harness.fleet.state import GroupState, HostState, Step, steps
from harness.records.case import Case
from harness.records.run import Build, Failure, Lost, Peak, Placed, Reference, Round
from harness.stages.build import keep_build
from harness.stages.check import keep_check
from harness.stages.context import Context, unchecked
from harness.stages.measure import keep_measured

_TOLD_EVERY_S = 1.0


class Kept:
    """A run so far; every method writes before it returns.

    Attributes:
        context: Of the run; what its `done` says of generations is no longer true of groups that have moved.
        builds: By case.
        groups: By name.
        hosts: By name, as the line has them.
        asked: Cases of which iree-benchmark-module was asked on the host where their group is.
        peaks: By host and device; None: not of processors alone.
    """

    def __init__(self, context: Context) -> None:
        self._generations = dict(context.done.generations)
        self.context = replace(context, done=replace(context.done, generations=self._generations))
        self.context.checks.update(context.done.checks)
        self.builds: dict[str, Build] = dict(context.done.builds)
        self.groups: dict[str, GroupState] = {}
        self.hosts: dict[str, HostState] = {}
        self.asked = set(context.done.references)
        self.peaks: dict[tuple[str, str], Peak | None] = {}
        self._recorded: set[str] = set()  # hosts
        self._pace = Pace()
        self._told_s = -math.inf

    def build(self, build: Build, stderr: str, cases: list[Case]) -> None:
        """A compile has ended, which these cases share."""
        for case in cases:
            own = replace(build, case=case.name)
            keep_build(self.context, own, stderr, self.builds)
            self.context.progress.step(case.name)
            group = self.groups[case.group]
            group.uncompiled.discard(case.name)
            if own.failure is not None:
                self._drop(group, {case.name})

    def checks(self, group: GroupState, answer: Checked) -> None:
        """A group has been checked; where a case failed, it is said which host says so."""
        if group.noted != group.host and any(check.failure is not None for check in answer.checks):
            self.place(group, self.hosts[group.host])
        cases = {case.name: case for case in group.cases}
        for check in answer.checks:
            left = [case for case in group.cases if case.name not in self.context.checks and case.name != check.case]
            keep_check(self.context, check, cases[check.case], left)
        self._drop(group, {check.case for check in answer.checks if check.failure is not None})

    def lost(self, group: GroupState, answer: tuple[Lost, ...]) -> None:
        """A later call of each case was held against its first."""
        for lost in answer:
            keep_measured(self.context, (lost,), group.cases)
        self._drop(group, {lost.case for lost in answer})

    def references(self, group: GroupState, answer: tuple[Reference, ...]) -> None:
        """iree-benchmark-module was asked."""
        for reference in answer:
            self.asked.add(reference.case)
            self.context.directory.append(replace(reference, attempt=group.attempt))

    def peak(self, host: str, device: str, answer: Peak | None) -> None:
        """A host's peak is known."""
        self.peaks[host, device] = answer
        if answer is not None:
            self.context.directory.append(answer)

    def generation(self, group: GroupState, answer: Measured) -> None:
        """A generation has been measured."""
        members = list(group.cases)
        for result in answer.results:
            if isinstance(result, Round):
                keep_measured(self.context, replace(result, attempt=group.attempt), members)
                group.timed.update(turn.case for turn in result.turns)
            else:
                lost = tuple(replace(each, attempt=group.attempt) for each in result)
                keep_measured(self.context, lost, members)
                self._drop(group, {each.case for each in lost})

    def tell_pace(self, host: str, step: Step) -> None:
        """A host has done a step: say how long the rest takes, once a second."""
        self._pace.end(host, step)
        if time.monotonic() - self._told_s > _TOLD_EVERY_S:
            self._told_s = time.monotonic()
            self.context.progress.left(self._pace.left(self.groups.values()).words)

    def _drop(self, group: GroupState, names: set[str]) -> None:
        group.cases = [case for case in group.cases if case.name not in names]
        if not group.cases:
            self._close(group)

    def _close(self, group: GroupState) -> None:
        self.context.progress.step(group.name, len(group.todo))
        group.todo.clear()

    def begin(self, group: GroupState, host: HostState) -> None:
        """A host begins to time a group, if it has not yet."""
        if not group.begun:
            group.begun = True
            if group.noted != host.name:
                self.place(group, host)
            group.need = replace(group.need, machine_class=host.host.classes[group.need.device])

    def begin_again(self, group: GroupState, host: HostState, why: str) -> None:
        """A group that was begun begins again on another host; what the first one measured no longer counts."""
        group.attempt += 1
        group.timed.clear()
        self.asked.difference_update(case.name for case in group.cases)
        for generation in [key for key in self._generations if key[0] == group.name]:
            del self._generations[generation]
        cases = [case for case in self.context.prepared.cases if case.group == group.name and case.skip is None]
        group.cases = [case for case in cases if not self._is_wrong(case)]  # one that was lost there may do well here
        before = len(group.todo)
        group.todo = deque(steps(self.context))
        self.context.progress.step(group.name, before - len(group.todo))
        self.place(group, host, why)
        group.need = replace(group.need, machine_class=host.host.classes[group.need.device])

    def _is_wrong(self, case: Case) -> bool:
        records = (self.builds.get(case.name), self.context.checks.get(case.name))
        return any(record is not None and record.failure is not None for record in records)

    def place(self, group: GroupState, host: HostState, why: str = "") -> None:
        """A group is on a host."""
        directory = self.context.directory
        if host.name not in self._recorded:
            self._recorded.add(host.name)
            directory.append(host.record(self.context.prepared.suite))
        group.noted = host.name
        directory.append(Placed(group=group.name, host=host.name, attempt=group.attempt, why=why))

    def fail(self, group: GroupState, why: str) -> None:
        """Report what is left of a group as failed, at the stage that each case has come to."""
        context = self.context
        for case in group.cases:
            if case.peer is None and case.name not in self.builds:
                failure = Failure(stage="compile", message=why)
                self.builds[case.name] = Build(case=case.name, command=(), cache_key="", failure=failure)
                context.directory.append(self.builds[case.name])
            elif case.name not in context.checks:
                failure = Failure(stage="verify", message=why)
                context.checks[case.name] = unchecked(case, failure)
                context.directory.append(context.checks[case.name])
            else:
                failure = Failure(stage="measure", message=why)
                generation = next((step for step in group.todo if isinstance(step, int)), 0)
                lost = Lost(case=case.name, generation=generation, failure=failure, host=group.host)
                context.directory.append(replace(lost, attempt=group.attempt))
            context.failures.case(case, failure)
        group.cases = []
        self._close(group)
