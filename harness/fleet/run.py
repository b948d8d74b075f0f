"""A run over a fleet: its compiles and groups, the hosts that they are on, and what comes of them, written at once.

A generation is the unit that is done again, and nothing of it is written before all of it is here. So nothing arrives
twice, and a host that is lost takes no more than a generation with it.
"""

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from harness.cache import cache_root
from harness.compile import BuildCache, CompileRequest
from harness.compile.iree_compile import cache_key
from harness.errors import PlaceGone
from harness.fleet import tasks
from harness.fleet.connection import Fleet
from harness.fleet.dispatch import Dispatcher, HostState, Job, Order, limit_s
from harness.fleet.packing import Packed, pack
from harness.fleet.placing import Host, Need, need_of, place, unfit, why_nowhere
from harness.fleet.processes import COMPILE
from harness.fleet.tasks import GroupTask
from harness.process import Limits
from harness.records.case import Case
from harness.records.run import Build, Check, Failure, Lost, Peak, Placed, Reference, Round
from harness.stages.build import fail_unmade, keep_build, requests_of
from harness.stages.measure import Losses, distinct_cases, keep_check, keep_measured, wanted_generation
from harness.stages.options import RunOptions
from harness.stages.prepare import Context, failed_at
from harness.store.run_directory import load_run
from harness.text import plural
from harness.toolchain.host_cpu import is_of_host, without_host

TITLE = "Fleet"
# The first step of a group; the others are the numbers of its generations, the first of which asks for references too.
CHECK = -1


class FleetRun(Dispatcher):
    """A run under way on a fleet."""

    def __init__(self, fleet: Fleet, context: Context, like: Mapping[str, str]) -> None:
        """`like` has hosts that groups are to be on if they can, by the group's name."""
        self._before = load_run(context.directory.path, rounds=False)
        super().__init__(fleet, context.prepared.suite, context.progress, self._before.hosts)
        self.context, self.generations = context, context.done.generations  # Without those of groups that have moved
        self.directory, self._made, self._like = context.directory, context.made, like
        self.builds, self.checks = context.done.builds, context.done.checks  # By case
        self.asked = set(context.done.references)  # Cases of which iree-benchmark-module was asked
        self.peaks: set[tuple[str, str]] = set()  # By host and device, those that are known
        self._recorded: set[str] = set()  # hosts
        fail_unmade(context)
        self.groups = self._planned_groups()

    async def do(self) -> None:
        """Do all that is left."""
        await self.look()
        if not self.here:
            raise PlaceGone(f"{self._fleet.access}: all hosts have gone; start one")
        self._begin()
        await self.loop()

    # --- as it begins or goes on ---

    def _planned_groups(self) -> dict[str, "Group"]:
        """All groups that have a case to run, with the steps of those that have one which has not failed yet.

        A run that goes on has them where it had placed them, as far as it has timed them or compiled for that host.
        """
        prepared, done = self.context.prepared, self.context.done
        compilers = {toolchain.version: toolchain.compiler_sha256 for toolchain in prepared.toolchains}
        placed = {record.group: record for record in self._before.placed}
        timed = {group for group, _ in done.generations}
        known = done.references.keys() | done.lost.keys()
        measured = timed | {case.group for case in prepared.cases if case.name in known}
        members: dict[str, list[Case]] = {}
        for case in prepared.cases:
            if case.skip is None and case.model in self._made:
                members.setdefault(case.group, []).append(case)
        groups = {}
        for number, (name, cases) in enumerate(members.items()):
            alive = [case for case in cases if case.name not in done.lost and not self.is_wrong(case)]
            group = groups[name] = Group(need=need_of(cases, compilers), run=self, number=number, cases=alive)
            group.todo.extend(self.steps if alive else ())
            group.timed = {case.name for case in alive} if name in timed else set()
            if name not in placed:
                continue
            record, host = placed[name], self.all[placed[name].host].host
            is_begun = record.attempt > 0 or name in measured
            if is_begun or any(case.name in done.builds for case in alive):
                group.host, group.attempt = host.name, record.attempt
                is_tied = any(self._needs_cpu(case) for case in alive if case.peer is None)
                group.need = replace(group.need, cpu=host.host_cpu if is_tied else "")
            if is_begun:
                group.begin(host)
        return groups

    def _needs_cpu(self, case: Case) -> bool:
        """Whether a case's module depends on the CPU that it is for: flags say `host`, or a plugin rewrites it."""
        return bool(self.context.prepared.arranged_for(case).rewrites) or any(map(is_of_host, case.compile_flags))

    @property
    def steps(self) -> list[int]:
        """All that a group goes through in a run."""
        if self.context.options.measure:
            return [CHECK, *range(int(self.directory.header.settings["generations"]))]
        return [CHECK, 0] if self.context.with_reference else [CHECK]

    def is_wrong(self, case: Case) -> bool:
        """Whether its compile or its check has failed."""
        records = (self.builds.get(case.name), self.checks.get(case.name))
        return any(record is not None and record.failure is not None for record in records)

    def _begin(self) -> None:
        """Put groups on hosts, and make a job of each compile that is left."""
        progress, here = self.context.progress, {state.name: state.host for state in self.here}
        left = [group for group in self.groups.values() if group.todo]
        kept = {group.name: group.host for group in left if group.host}
        for group in left:
            host = here.get(self._like.get(group.name, ""))
            if host is not None and not unfit(group.need, host):
                kept.setdefault(group.name, host.name)
        placed = place([group.need for group in left], list(here.values()), kept)
        for group in left:
            if not group.host and group.name in placed:
                group.host = placed[group.name]
                self.note_place(group)
        compiles, compiled = self._compiles()
        self.jobs = dict.fromkeys([*(group for group in left if group.host), *compiles])
        words = [plural(len(compiles), "compile")] if compiles else []
        progress.note(f"To do: {', '.join([*words, plural(len(left), 'group')])}, on {plural(len(here), 'host')}")
        progress.stage(TITLE, sum(len(job.cases) for job in compiles) + sum(len(group.todo) for group in left))
        for build in compiled:
            keep_build(self.context, build, "")
        for group in left:
            if not group.host:
                group.fail(why_nowhere(group.need, here.values()))

    def _compiles(self) -> tuple[list["Compile"], list[Build]]:
        """A job of each compile that is left, small models first; builds that are in the cache.

        Cases of equal keys share a compile. In flags, `host` means the host that the case's group is on.
        """
        context, cache, found = self.context, BuildCache(cache_root()), list[Build]()
        jobs: dict[str, Compile] = {}
        for request in requests_of(context, ""):
            case = request.case
            group = self.groups.get(case.group)
            if group is None or not group.host:
                continue
            host, only_alike = self.all[group.host].host, False
            if self._needs_cpu(case):
                group.need = replace(group.need, cpu=host.host_cpu)
                there = host.toolchains.get(case.toolchain)
                cpu = None if there is None else there.cpu
                only_alike = cpu is None or bool(request.arranged.rewrites)
                request = replace(request, host_cpu=host.host_cpu)
                if cpu is not None:
                    request = replace(request, case=replace(case, compile_flags=without_host(case.compile_flags, cpu)))
            request = replace(request, limits=compile_limits(context.options))
            key = cache_key(request)
            if (build := cache.find(key, case.name)) is not None:
                found.append(build)
                continue
            group.uncompiled.add(case.name)
            if key not in jobs:
                compilers = {request.toolchain.version: request.toolchain.compiler_sha256}
                need = Need(name=f"compile {case.name}", compilers=compilers, cpu=host.host_cpu if only_alike else "")
                jobs[key] = Compile(need=need, host=group.host, run=self, request=request, key=key)
            jobs[key].cases.append(case)
        return list(jobs.values()), found

    def note_place(self, group: "Group", why: str = "") -> None:
        """Write down that a group is on a host."""
        if group.host not in self._recorded:
            self._recorded.add(group.host)
            self.directory.append(self.all[group.host].host.record)
        self.directory.append(Placed(group=group.name, host=group.host, attempt=group.attempt, why=why))

    def task_of(self, state: HostState, cases: Sequence[Case]) -> GroupTask:
        """Some cases of a group, for a host."""
        prepared, first = self.context.prepared, cases[0]
        artifact = self._made[first.model]
        model = next(model for model in prepared.suite.models if model.name == first.model)
        variables = state.variables(prepared.suite, first.device)
        return GroupTask(
            cases=tuple(replace(case, environment=variables) for case in cases),
            # Where the model came from is of no use there: the artifact is what was made of it.
            model=replace(model, mlir=None, onnx=None, parameters={}, inputs=()),
            artifact=artifact,
            builds={case.name: self.builds[case.name] for case in cases if case.peer is None},
            toolchains={toolchain.version: toolchain for toolchain in prepared.toolchains},
            peers={case.variant: prepared.peers[case.variant] for case in cases if case.peer is not None},
            compile_limits=compile_limits(self.context.options),
            call_timeout_s=self.context.options.call_timeout_s,
            given_up=self.context.given_up,
            checks={case.name: self.checks[case.name] for case in cases if case.name in self.checks},
        )


@dataclass(kw_only=True, eq=False)
class Compile(Job):
    """A compile, and the cases that share it."""

    run: FleetRun
    request: CompileRequest
    key: str  # What its build is kept under, on every machine
    cases: list[Case] = field(default_factory=list)
    todo: deque[int] = field(default_factory=partial(deque, [0]))
    resource: str = COMPILE

    def ask(self, state: HostState) -> Order | None:  # noqa: ARG002 (any host)
        """A compile, unless all its cases are given up."""
        refusals = [self.run.context.given_up.refusal(case, "compile") for case in self.cases]
        if refusals and None not in refusals:
            return None
        return Order(what=self.name, task=tasks.compile_case, packed=pack(self.request, self.key))

    def keep(self, step: int, value: Any, order: Order | None) -> None:  # noqa: ARG002
        """Write down what came of it for each of its cases."""
        if order is None:
            self._end(self.run.context.given_up.refusal(self.cases[0], "compile"))
            return
        build, stderr = value
        self._keep(replace(build, command=order.packed.with_own_names(build.command)), stderr)

    def fail(self, why: str, *, is_tried: bool = False) -> None:  # noqa: ARG002
        """No host could compile it."""
        self.todo.clear()
        self._end(Failure(stage="compile", message=why))

    def _end(self, failure: Failure | None) -> None:
        self._keep(Build(case=self.name, command=(), cache_key="", failure=failure), "")

    def _keep(self, build: Build, stderr: str) -> None:
        for case in self.cases:
            keep_build(self.run.context, replace(build, case=case.name), stderr)
            self.run.context.progress.step(case.name)
            group = self.run.groups[case.group]
            group.uncompiled.discard(case.name)
            if build.failure is not None:
                group.drop({case.name})
            self.run.stir(group.host)


@dataclass(kw_only=True, eq=False)
class Group(Job):
    """A model on a device."""

    run: FleetRun
    number: int  # In the plan's order
    cases: list[Case]  # Those that have not failed
    attempt: int = 0
    begun: bool = False  # Whether anything of it was timed
    uncompiled: set[str] = field(default_factory=set)  # Cases whose builds are not here yet
    timed: set[str] = field(default_factory=set)  # Cases that had a turn

    @property
    def is_ready(self) -> bool:
        """Whether all its builds are here."""
        return not self.uncompiled

    @property
    def rank(self) -> tuple[int, int]:
        """The generations of each group are spread over the run."""
        return self.todo[0], self.number

    def begin(self, host: Host) -> None:
        """From now on only a host of this one's class measures it."""
        self.begun, self.need = True, self.need.begun_on(host)

    def ask(self, state: HostState) -> Order | None:
        """A check, or a generation."""
        run, options, step = self.run, self.run.context.options, self.todo[0]
        beside_s = float(run.directory.header.settings["budget_s"])
        if step == CHECK:
            if options.measure and all(case.name in run.checks for case in self.cases):
                return None
            packed = pack(run.task_of(state, self.cases), not options.measure)
            beside_s += 2 * options.compile_timeout_s  # of the second opinion
            what, task = "check", tasks.check_group
        else:
            generation = self._generation(state, step)
            if generation is None:
                return None
            self.begin(state.host)
            what, task, packed = "measure", tasks.measure, generation
        within_s = limit_s(options.call_timeout_s, len(self.cases), beside_s)
        return Order(what=f"{what} {self.name}", task=task, packed=packed, limit_s=within_s)

    def _generation(self, state: HostState, step: int) -> Packed | None:
        run, context = self.run, self.run.context
        measures = context.options.measure
        cases, wanted = distinct_cases(self.cases, run.builds), None
        if measures:
            shares = len(run.groups) + context.prepared.groups_elsewhere
            wanted = wanted_generation(context, self.name, step, self.timed, groups=shares)
        asked = {case.name for case in cases if case.peer is None and context.with_reference} - run.asked
        wants_peak = measures and (state.name, self.need.device) not in run.peaks
        if wanted is None and not asked and not wants_peak:
            return None
        return pack(run.task_of(state, cases), wanted, asked, context.prepared.toolchain if wants_peak else None)

    def keep(self, step: int, value: Any, order: Order | None) -> None:  # noqa: ARG002
        """Write down what came of a step."""
        if value is not None and step == CHECK:
            self._keep_checks(*value)
        elif value is not None:
            self._keep_measured(*value)
        what = "check" if step == CHECK else f"generation {step + 1}"
        self.run.context.progress.step(f"{self.host}: {self.name} {what}")

    def _keep_checks(self, checks: Sequence[Check], losses: Losses) -> None:
        context, cases = self.run.context, {case.name: case for case in self.cases}
        for check in checks:
            left = [case for case in self.cases if case.name not in self.run.checks and case.name != check.case]
            keep_check(context, check, cases[check.case], left)
        for lost in losses:
            keep_measured(context, (lost,), self.cases)
        failed = {check.case for check in checks if check.failure is not None}
        self.drop(failed | {lost.case for lost in losses})

    def _keep_measured(
        self, references: Sequence[Reference], peak: Peak | None, results: Sequence[Round | Losses]
    ) -> None:
        """A generation has been measured, or iree-benchmark-module was asked."""
        run, members = self.run, list(self.cases)
        for reference in references:
            run.asked.add(reference.case)
            run.directory.append(replace(reference, host=self.host, attempt=self.attempt))
        run.peaks.add((self.host, self.need.device))
        if peak is not None:
            run.directory.append(replace(peak, host=self.host))
        for result in results:
            if isinstance(result, Round):
                keep_measured(run.context, replace(result, host=self.host, attempt=self.attempt), members)
                self.timed.update(turn.case for turn in result.turns)
            else:
                lost = tuple(replace(each, host=self.host, attempt=self.attempt) for each in result)
                keep_measured(run.context, lost, members)
                self.drop({each.case for each in lost})

    def drop(self, names: set[str]) -> None:
        """Cases of it have failed."""
        self.cases = [case for case in self.cases if case.name not in names]
        if not self.cases:
            self.run.context.progress.step(self.name, len(self.todo))
            self.todo.clear()
            self.run.jobs.pop(self, None)

    def moved(self, why: str) -> None:
        """What the first host measured no longer counts: it begins again."""
        run, host = self.run, self.run.all[self.host].host
        if self.begun:
            self.attempt += 1
            self.timed.clear()
            cases = [case for case in run.context.prepared.cases if case.group == self.name and case.skip is None]
            run.asked.difference_update(case.name for case in cases)
            for generation in [key for key in run.generations if key[0] == self.name]:
                del run.generations[generation]
            # A case that was lost there may do well here.
            self.cases = [case for case in cases if not run.is_wrong(case)]
            before = len(self.todo)
            self.todo = deque(run.steps)
            run.context.progress.step(self.name, before - len(self.todo))
            self.begin(host)
        run.note_place(self, why)

    def fail(self, why: str, *, is_tried: bool = False) -> None:  # noqa: ARG002
        """Report what is left as failed, at the stage that each case has come to."""
        run, context = self.run, self.run.context
        for compile_ in [job for job in run.jobs if isinstance(job, Compile)]:
            left = [case for case in compile_.cases if case.group != self.name]
            context.progress.step(self.name, len(compile_.cases) - len(left))
            compile_.cases = left
            if not left:
                del run.jobs[compile_]
        for case in self.cases:
            record = failed_at(case, why, run.builds, run.checks)
            if isinstance(record, Lost):
                record = replace(record, generation=max(self.todo[0], 0), host=self.host, attempt=self.attempt)
            run.directory.append(record)
            assert record.failure is not None  # noqa: S101 (it has failed)
            context.failures.case(case, record.failure)
        self.drop({case.name for case in self.cases})


def compile_limits(options: RunOptions) -> Limits:
    """What one compile may use on a host: what the user says, else as much memory as the host itself gives."""
    limits = options.compile_limits
    return limits if options.compile_memory_gib is not None else replace(limits, memory_bytes=None)
