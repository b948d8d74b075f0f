"""A run over a fleet: each host takes compiles and steps of groups, and what comes of them is written at once.

A generation is the unit that is done again, and nothing of it is written before all of it is here. So nothing arrives
twice, and a host that is lost takes no more than a generation with it.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from harness.errors import PlaceGone
from harness.fleet import tasks
from harness.fleet.connection import Fleet
from harness.fleet.groups import (
    CHECK,
    REFERENCE,
    Artifacts,
    GroupState,
    Job,
    Step,
    compile_limits,
    make_groups,
    make_jobs,
    put_on_hosts,
    recall,
    steps,
)
from harness.fleet.hosts import (
    MOST_DEATHS,
    Hosts,
    HostState,
    Refused,
    WorkerLost,
    away,
    busy,
    limit_s,
    why_lost,
)
from harness.fleet.packing import pack
from harness.fleet.placing import choose_after_loss, choose_for_idle, why_nowhere
from harness.fleet.scheduler import by_reason
from harness.fleet.tasks import Answer, GroupTask
from harness.models.materialize import ModelArtifact
from harness.records.case import Case
from harness.records.run import Build, Check, Failure, Lost, Peak, Placed, Reference, Round
from harness.stages.build import keep_build, require_cache
from harness.stages.context import Context, unchecked
from harness.stages.measure import Losses, distinct_cases, keep_check, keep_measured, wanted_generation
from harness.store.run_directory import load_run
from harness.text import plural

TITLE = "Fleet"
# Steps that a host has in hand, so that it never waits for the next.
_TURNS = 2


class FleetRun:
    """A run under way on a fleet. All of it is for the fleet's thread."""

    def __init__(self, fleet: Fleet, context: Context, artifacts: Artifacts, like: Mapping[str, str]) -> None:
        """`like` has hosts that groups are to be on if they can, by the group's name."""
        self._generations = dict(context.done.generations)  # without those of groups that have moved
        self._context = replace(context, done=replace(context.done, generations=self._generations))
        self._context.checks.update(context.done.checks)
        self._fleet, self._artifacts, self._like = fleet, artifacts, like
        self.builds: dict[str, Build] = dict(context.done.builds)  # By case
        self._groups: dict[str, GroupState] = {}
        self._jobs: deque[Job] = deque()
        self._asked = set(context.done.references)  # cases of which iree-benchmark-module was asked
        self._peaks: set[tuple[str, str]] = set()  # by host and device, those that are known
        self._recorded: set[str] = set()  # hosts
        self._served: set[str] = set()  # hosts
        self._tasks: list[asyncio.Task[None]] = []
        self.hosts = Hosts(fleet, context.prepared.suite, context.progress, "work waits")

    async def do(self) -> None:
        """Do all that is left."""
        directory = self._context.directory
        directory.before_failure = partial(require_cache, directory.path, self._artifacts, self.builds)
        self._groups = make_groups(self._context, self._artifacts)
        before = load_run(directory.path, rounds=False)
        for record in before.hosts:
            self.hosts.recall(record)
        recall(self._context, before, self._groups)
        await self.hosts.look()
        if not self.hosts.here:
            raise PlaceGone(f"{self._fleet.access.address}: all hosts have gone; start one")
        self._begin()
        try:
            await self.hosts.watch(self._is_over)
        finally:
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

    def _begin(self) -> None:
        """Put groups on hosts, and make a job of each compile that is left."""
        context, here = self._context, {state.name: state.host for state in self.hosts.here}
        put_on_hosts(self._groups, here, self._like)
        jobs, compiled = make_jobs(context, self._artifacts, self.builds, self._groups, self.hosts.all)
        self._jobs.extend(jobs)
        left = [group for group in self._groups.values() if group.todo]
        words = [*([plural(len(jobs), "compile")] if jobs else []), plural(len(left), "group")]
        context.progress.note(f"To do: {', '.join(words)}, on {plural(len(here), 'host')}")
        context.progress.stage(TITLE, _cases(jobs) + sum(len(group.todo) for group in left))
        for build in compiled:
            keep_build(context, build, "", self.builds)
        for group in left:
            if group.need.cpu and not group.noted:
                self._note_place(group, self.hosts.all[group.host])
            if not group.host:
                self._fail(group, why_nowhere(group.need, here.values()))

    @property
    def _is_done(self) -> bool:
        is_open = any(group.todo or group.is_busy for group in self._groups.values())
        return not (is_open or self._jobs or any(state.compiling for state in self.hosts.all.values()))

    def _serve_hosts(self) -> None:
        """See that each host that is here has somebody who gives it something to do."""
        for state in self.hosts.here:
            if state.name not in self._served and state.offer is not None:
                self._served.add(state.name)
                works = [self._compile(state) for _ in range(state.offer.cores)]
                works += [self._take_turns(state) for _ in range(_TURNS)]
                for task in map(asyncio.ensure_future, works):
                    task.add_done_callback(self.hosts.wake)  # it fails: else it has no end
                    self._tasks.append(task)

    async def _is_over(self) -> bool:
        """Move the groups of hosts that have been gone for too long, and fail compiles that nobody can do."""
        for task in self._tasks:
            if task.done():
                task.result()
        self._serve_hosts()
        for group in self._groups.values():
            if group.todo and group.host in self.hosts.all and self.hosts.all[group.host].is_lost:
                self._move(group, why_lost(group.host))
        left = [state.host for state in self.hosts.all.values() if not state.is_lost]
        for job in [job for job in self._jobs if not any(map(job.allows, left))]:
            self._jobs.remove(job)
            self._fail_job(job, job.why_nowhere)
        await self._tell_waits()
        return self._is_done

    async def _tell_waits(self) -> None:
        """Let `harness fleet status` show what no host has in hand."""
        waits: list[tuple[str, str]] = []
        for job in self._jobs:
            able = [state for state in self.hosts.all.values() if job.allows(state.host)]
            is_away = not any(state.address for state in able)
            of_one = away(able[0]) if len(able) == 1 else "all hosts that may do it have gone, and may come back"
            why = of_one if is_away else "all hosts that may do it compile or measure"
            waits.append((why, f"compile {job.name}"))
        for group in self._groups.values():
            if group.todo and not group.is_busy and group.host in self.hosts.all:
                state = self.hosts.all[group.host]
                why = busy(state) if not group.uncompiled else "its builds are not all compiled yet"
                waits.append((why if state.address else away(state), group.name))
        await self._fleet.tell_waits(by_reason(waits))

    # --- compiles ---

    async def _compile(self, state: HostState) -> None:
        """Give a host one compile after the other."""
        while True:
            job = self._next_job(state)
            if job is None:
                await state.wait_for_news()
                continue
            helps = job.host != state.name
            state.helping += helps
            try:
                packed = pack(job.request, job.key)
                build, stderr = await self.hosts.compile(state, tasks.compile_case, packed, f"compile {job.name}")
            except WorkerLost:
                job.deaths += 1
                self._jobs.appendleft(job)
                if job.deaths >= MOST_DEATHS:
                    self._jobs.remove(job)
                    self._fail_job(job, f"{state.name}: its worker ended {job.deaths} times while it compiled this")
            except Refused as why:  # another host may do it
                self._context.progress.note(f"{state.name} cannot compile {job.name}: {why}")
                job.refused[state.name] = str(why)
                self._jobs.append(job)
            else:
                own_names = packed.with_own_names(build.command)
                self._keep_build(replace(build, command=own_names), stderr, job.cases)
            finally:
                state.helping -= helps
            if self._is_done:
                self.hosts.wake()

    def _next_job(self, state: HostState) -> Job | None:
        """A compile for a host: the first of its own groups', else the last of others' where it has nothing to time."""
        if not state.address:
            return None
        is_ready = any(group.host == state.name and group.is_ready for group in self._groups.values())
        while (job := self._choose_job(state, others=not state.timing and not is_ready)) is not None:
            self._jobs.remove(job)
            refusals = [self._context.given_up.refusal(case, "compile") for case in job.cases]
            if None in refusals:
                return job
            self._keep_build(Build(case=job.name, command=(), cache_key="", failure=refusals[0]), "", job.cases)
        return None

    def _choose_job(self, state: HostState, *, others: bool) -> Job | None:
        own = (job for job in self._jobs if job.host == state.name and job.allows(state.host))
        theirs = (job for job in reversed(self._jobs) if others and job.allows(state.host))
        return next(own, None) or next(theirs, None)

    def _fail_job(self, job: Job, why: str) -> None:
        failure = Failure(stage="compile", message=why)
        self._keep_build(Build(case=job.name, command=(), cache_key="", failure=failure), "", job.cases)

    def _keep_build(self, build: Build, stderr: str, cases: list[Case]) -> None:
        """A compile has ended, which these cases share."""
        for case in cases:
            keep_build(self._context, replace(build, case=case.name), stderr, self.builds)
            self._context.progress.step(case.name)
            group = self._groups[case.group]
            group.uncompiled.discard(case.name)
            if build.failure is not None:
                self._drop(group, {case.name})
            if group.host in self.hosts.all:
                self.hosts.all[group.host].news.set()

    # --- steps of groups ---

    async def _take_turns(self, state: HostState) -> None:
        """Give a host one step of its groups after the other."""
        while True:
            group = self._next_group(state)
            if group is None:
                await state.wait_for_news()
                continue
            group.is_busy = True
            try:
                await self._step(state, group)
            except WorkerLost as lost:
                group.deaths += lost.was_at_it
                if group.deaths >= MOST_DEATHS:
                    ended = f"its worker ended {group.deaths} times while it measured this group"
                    self._fail(group, f"{state.name}: {ended}")
            except Refused as why:
                group.refused[state.name] = str(why)
                self._move(group, f"{state.name}: {why}")
            finally:
                group.is_busy = False
            if self._is_done:
                self.hosts.wake()

    def _next_group(self, state: HostState) -> GroupState | None:
        """The group whose step a host does next; where it has none, it takes one that nobody has begun."""
        if not state.address:
            return None
        own = [group for group in self._groups.values() if group.host == state.name and group.todo]
        ready = [group for group in own if group.is_ready and (not state.helping or group.todo[0] == CHECK)]
        if ready or own:
            return min(ready, key=lambda group: group.order, default=None)
        waiting: dict[str, list[Any]] = {}
        for group in self._groups.values():
            if group.todo and not group.begun and not group.is_busy and state.name not in group.refused:
                waiting.setdefault(group.host, []).append(group.need)
        chosen = choose_for_idle(state.host, waiting)
        if chosen is None:
            return None
        self._context.progress.note(f"{state.name} takes {chosen} from {self._groups[chosen].host}")
        self._groups[chosen].host = state.name
        return self._groups[chosen] if self._groups[chosen].is_ready else None

    async def _step(self, state: HostState, group: GroupState) -> None:
        step = group.todo[0]
        work = self._work_of(state, group, step)
        value = None
        if work is not None:
            is_timed = step != CHECK
            if is_timed:
                self._begin_group(group, state)
            words = f"{step if isinstance(step, str) else 'measure'} {group.name}"
            state.timing += is_timed
            try:
                value = await self.hosts.measure(state, work[0], pack(*work[1]), words, self._limit_s(group, step))
            finally:
                state.timing -= is_timed
        group.todo.popleft()
        if value is not None:
            self._keep(group, step, value)
        what = f"generation {step + 1}" if isinstance(step, int) else step
        self._context.progress.step(f"{state.name}: {group.name} {what}")

    def _keep(self, group: GroupState, step: Step, value: Any) -> None:
        if step == CHECK:
            self._keep_checks(group, *value)
        elif step == REFERENCE:
            self._keep_references(group, *value)
        else:
            self._keep_generation(group, value)

    def _work_of(
        self, state: HostState, group: GroupState, step: Step
    ) -> tuple[Callable[..., Answer], tuple[Any, ...]] | None:
        """The task of a step, and what it takes; None: there is nothing to do."""
        context = self._context
        if step == CHECK:
            is_done = all(case.name in context.checks for case in group.cases) and context.options.measure
            again = not context.options.measure
            return None if is_done else (tasks.check_group, (self._task_of(state, group.cases), again))
        cases = distinct_cases(group.cases, self.builds)
        task = self._task_of(state, cases)
        if isinstance(step, int):
            groups = len(self._groups) + context.prepared.groups_elsewhere
            wanted = wanted_generation(context, group.name, step, group.timed, groups=groups)
            return None if wanted is None else (tasks.measure, (task, wanted))
        asked = {case.name for case in cases if case.peer is None} - self._asked if context.with_reference else set()
        wants_peak = context.options.measure and (state.name, group.need.device) not in self._peaks
        peak_of = context.prepared.toolchain if wants_peak else None
        return (tasks.ask_reference, (task, asked, peak_of)) if asked or wants_peak else None

    def _task_of(self, state: HostState, cases: list[Case]) -> GroupTask:
        prepared, first = self._context.prepared, cases[0]
        artifact = self._artifacts[first.model]
        assert isinstance(artifact, ModelArtifact) and state.offer is not None  # noqa: S101 (cases that run, on a host)
        model = next(model for model in prepared.suite.models if model.name == first.model)
        environment = dict(state.offer.devices(prepared.suite)[first.device].environment)
        return GroupTask(
            cases=tuple(replace(case, environment=environment) for case in cases),
            # Where the model came from is of no use there: the artifact is what was made of it.
            model=replace(model, mlir=None, onnx=None, parameters={}, inputs=()),
            artifact=artifact,
            builds={case.name: self.builds[case.name] for case in cases if case.peer is None},
            toolchains={toolchain.version: toolchain for toolchain in prepared.toolchains},
            peers={case.variant: prepared.peers[case.variant] for case in cases if case.peer is not None},
            compile_limits=compile_limits(self._context.options),
            call_timeout_s=self._context.options.call_timeout_s,
            given_up=self._context.given_up,
            checks={case.name: self._context.checks[case.name] for case in cases if case.name in self._context.checks},
        )

    def _limit_s(self, group: GroupState, step: Step) -> float:
        options, settings = self._context.options, self._context.directory.header.settings
        compile_s = 2 * options.compile_timeout_s if step == CHECK else 0.0  # of the second opinion
        return limit_s(options.call_timeout_s, len(group.cases), compile_s + float(settings["budget_s"]))

    # --- what comes of it ---

    def _keep_checks(self, group: GroupState, checks: Sequence[Check], losses: Losses) -> None:
        """A group has been checked; where a case failed, it is said which host says so."""
        if group.noted != group.host and any(check.failure is not None for check in checks):
            self._note_place(group, self.hosts.all[group.host])
        cases = {case.name: case for case in group.cases}
        for check in checks:
            left = [case for case in group.cases if case.name not in self._context.checks and case.name != check.case]
            keep_check(self._context, check, cases[check.case], left)
        for lost in losses:
            keep_measured(self._context, (lost,), group.cases)
        failed = {check.case for check in checks if check.failure is not None}
        self._drop(group, failed | {lost.case for lost in losses})

    def _keep_references(self, group: GroupState, references: Sequence[Reference], peak: Peak | None) -> None:
        for reference in references:
            self._asked.add(reference.case)
            self._context.directory.append(replace(reference, attempt=group.attempt))
        self._peaks.add((group.host, group.need.device))
        if peak is not None:
            self._context.directory.append(peak)

    def _keep_generation(self, group: GroupState, results: list[Round | Losses]) -> None:
        members = list(group.cases)
        for result in results:
            if isinstance(result, Round):
                keep_measured(self._context, replace(result, attempt=group.attempt), members)
                group.timed.update(turn.case for turn in result.turns)
            else:
                lost = tuple(replace(each, attempt=group.attempt) for each in result)
                keep_measured(self._context, lost, members)
                self._drop(group, {each.case for each in lost})

    def _drop(self, group: GroupState, names: set[str]) -> None:
        """Cases of a group have failed."""
        group.cases = [case for case in group.cases if case.name not in names]
        if not group.cases:
            self._context.progress.step(group.name, len(group.todo))
            group.todo.clear()

    # --- where groups are ---

    def _note_place(self, group: GroupState, state: HostState, why: str = "") -> None:
        """Write down that a group is on a host."""
        directory = self._context.directory
        if state.name not in self._recorded:
            self._recorded.add(state.name)
            directory.append(state.record(self._context.prepared.suite))
        group.noted = state.name
        directory.append(Placed(group=group.name, host=state.name, attempt=group.attempt, why=why))

    def _begin_group(self, group: GroupState, state: HostState) -> None:
        """A host begins to time a group, if it has not yet."""
        if not group.begun:
            group.begun = True
            if group.noted != state.name:
                self._note_place(group, state)
            group.need = replace(group.need, machine_class=state.host.classes[group.need.device])

    def _move(self, group: GroupState, why: str) -> None:
        """Begin a group again on another host of its class, or report it as failed."""
        able = [state for state in self.hosts.all.values() if state.name not in {*group.refused, group.host}]
        # One that may come back is better than none: the group waits for it as it did for its own.
        absent = [state.host for state in able if not state.address and state.offer is not None and not state.is_lost]
        load: dict[str, int] = {}
        for other in self._groups.values():
            load[other.host] = load.get(other.host, 0) + bool(other.todo)
        here = [state.host for state in able if state.address]
        chosen = choose_after_loss(group.need, here, load) or choose_after_loss(group.need, absent, load)
        if chosen is None:
            self._fail(group, f"{why}; no other host of the fleet can go on with this group")
            return
        self._context.progress.note(f"{group.name} moves to {chosen}: {why}")
        group.host = chosen
        if group.begun:
            self._begin_again(group, self.hosts.all[chosen], why)
        self.hosts.all[chosen].news.set()

    def _begin_again(self, group: GroupState, state: HostState, why: str) -> None:
        """A group that was begun begins again on another host; what the first one measured no longer counts."""
        group.attempt += 1
        group.timed.clear()
        self._asked.difference_update(case.name for case in group.cases)
        for generation in [key for key in self._generations if key[0] == group.name]:
            del self._generations[generation]
        cases = [case for case in self._context.prepared.cases if case.group == group.name and case.skip is None]
        group.cases = [case for case in cases if not self._is_wrong(case)]  # one that was lost there may do well here
        before = len(group.todo)
        group.todo = deque(steps(self._context))
        self._context.progress.step(group.name, before - len(group.todo))
        self._note_place(group, state, why)
        group.need = replace(group.need, machine_class=state.host.classes[group.need.device])

    def _is_wrong(self, case: Case) -> bool:
        records = (self.builds.get(case.name), self._context.checks.get(case.name))
        return any(record is not None and record.failure is not None for record in records)

    def _fail(self, group: GroupState, why: str) -> None:
        """Report what is left of a group as failed, at the stage that each case has come to."""
        for job in list(self._jobs):
            before = len(job.cases)
            job.cases = [case for case in job.cases if case.group != group.name]
            self._context.progress.step(group.name, before - len(job.cases))
            if not job.cases:
                self._jobs.remove(job)
        context = self._context
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
        self._drop(group, {case.name for case in group.cases})


def _cases(jobs: list[Job]) -> int:
    return sum(len(job.cases) for job in jobs)
