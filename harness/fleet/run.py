"""A run over a fleet: its compiles and groups, the hosts that they are on, and what comes of them, written at once.

A generation is the unit that is done again, and nothing of it is written before all of it is here. So nothing arrives
twice, and a host that is lost takes no more than a generation with it.
"""

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from harness.cache import cache_root
from harness.compile import BuildCache, CompileRequest
from harness.compile.request import cache_key
from harness.errors import PlaceGone
from harness.fleet import tasks
from harness.fleet.connection import Fleet
from harness.fleet.dispatch import Dispatcher, HostState, Job, Order, limit_s
from harness.fleet.packing import pack
from harness.fleet.placing import Host, Need, choose_for_idle, need_of, place, unfit, why_nowhere
from harness.fleet.tasks import GroupTask
from harness.fleet.worker import COMPILE, MEASURE
from harness.models.materialize import ModelArtifact
from harness.process import Limits
from harness.records.case import Case
from harness.records.run import Build, Check, Failure, Lost, Peak, Placed, Reference, Round, Run
from harness.stages.build import fail_unmade, keep_build, requests_of
from harness.stages.context import Context, failed_at
from harness.stages.measure import Losses, distinct_cases, keep_check, keep_measured, wanted_generation
from harness.stages.options import RunOptions
from harness.store.run_directory import load_run
from harness.text import plural
from harness.toolchain.host_cpu import TargetCpu, is_of_host, without_host

TITLE = "Fleet"
# The first step of a group; the others are the numbers of its generations, the first of which asks for references too.
CHECK = -1

Artifacts = Mapping[str, ModelArtifact | Failure]


@dataclass(kw_only=True, eq=False)
class Compile(Job):
    """A compile, and the cases that share it."""

    resource: str = COMPILE
    request: CompileRequest
    key: str  # What its build is kept under, on every machine
    cases: list[Case]


@dataclass(kw_only=True, eq=False)
class Group(Job):
    """A model on a device."""

    number: int  # In the plan's order
    cases: list[Case]  # Those that have not failed
    attempt: int = 0
    noted: str = ""  # The host that the run's directory has it on; "": it says nothing yet
    begun: bool = False
    uncompiled: set[str] = field(default_factory=set)  # Cases whose builds are not here yet
    timed: set[str] = field(default_factory=set)  # Cases that had a turn

    @property
    def is_ready(self) -> bool:
        """Whether its host may go on with it."""
        return super().is_ready and not self.uncompiled

    @property
    def order(self) -> tuple[int, int]:
        """The generations of each group are spread over the run."""
        return self.todo[0], self.number


class FleetRun(Dispatcher[Compile | Group]):
    """A run under way on a fleet."""

    def __init__(self, fleet: Fleet, context: Context, artifacts: Artifacts, like: Mapping[str, str]) -> None:
        """`like` has hosts that groups are to be on if they can, by the group's name."""
        self._before = load_run(context.directory.path, rounds=False)
        super().__init__(fleet, context.prepared.suite, context.progress, self._before.hosts)
        self._generations = dict(context.done.generations)  # without those of groups that have moved
        self._context = replace(context, done=replace(context.done, generations=self._generations))
        self._context.checks.update(context.done.checks)
        self._directory, self._artifacts, self._like = context.directory, artifacts, like
        self.builds: dict[str, Build] = dict(context.done.builds)  # By case
        self._groups = {group.name: group for group in _groups(context, artifacts, self._before)}
        self._compiles: list[Compile] = []
        self._asked = set(context.done.references)  # cases of which iree-benchmark-module was asked
        self._peaks: set[tuple[str, str]] = set()  # by host and device, those that are known
        self._recorded: set[str] = set()  # hosts

    async def do(self) -> None:
        """Do all that is left."""
        await self.look()
        self.require_fleet()
        if not self.here:
            raise PlaceGone(f"{self._fleet.access}: all hosts have gone; start one")
        self._begin()
        await self.loop()

    @property
    def jobs(self) -> list[Compile | Group]:
        """Groups and compiles."""
        return [*self._groups.values(), *self._compiles]

    def is_over(self) -> bool:
        """Whether all groups are done, and all compiles."""
        return not (self._compiles or any(group.todo or group.is_busy for group in self._groups.values()))

    # --- as it begins or goes on ---

    def _begin(self) -> None:
        """Put groups on hosts, and make a job of each compile that is left."""
        context, groups = self._context, list(self._groups.values())
        here = {state.name: state.host for state in self.here}
        kept = {group.name: group.host for group in groups if group.host}
        for name, host in self._like.items():
            if name in self._groups and host in here and not unfit(self._groups[name].need, here[host]):
                kept.setdefault(name, host)
        placed = place([group.need for group in groups if group.todo], list(here.values()), kept)
        for group in groups:
            group.host = group.host or placed.get(group.name, "")
        compiled = self._make_jobs()
        left = [group for group in groups if group.todo]
        words = [plural(len(self._compiles), "compile")] if self._compiles else []
        context.progress.note(
            f"To do: {', '.join([*words, plural(len(left), 'group')])}, on {plural(len(here), 'host')}"
        )
        steps = sum(len(job.cases) for job in self._compiles) + sum(len(group.todo) for group in left)
        context.progress.stage(TITLE, steps)
        for build in compiled:
            keep_build(context, build, "", self.builds)
        for group in left:
            if group.need.cpu and not group.noted:
                self._note_place(group, self.all[group.host])
            if not group.host:
                self.fail(group, why_nowhere(group.need, here.values()))

    def _make_jobs(self) -> list[Build]:
        """Make a job of each compile that is left, small models first; builds that are in the cache.

        Cases of equal keys share a compile. In flags, `host` means the host that the case's group is on.
        """
        context, cache, found = self._context, BuildCache(cache_root()), list[Build]()
        jobs: dict[str, Compile] = {}
        fail_unmade(context, self._artifacts, self.builds)
        for request in requests_of(context, self._artifacts, ""):
            case = request.case
            group = self._groups.get(case.group)
            if group is None or not group.host:
                continue
            host, cpu, only_alike = self.all[group.host].host, None, False
            if _needs_cpu(context, case):
                group.need = replace(group.need, cpu=host.host_cpu)
                cpu = self._cpu_of(host, case.toolchain)
                only_alike = cpu is None or bool(request.arranged.rewrites)
                request = replace(request, host_cpu=host.host_cpu)
            if cpu is not None:
                flags = without_host(case.compile_flags, cpu)
                request = replace(request, case=replace(case, compile_flags=flags))
            request = replace(request, limits=compile_limits(context.options))
            key = cache_key(request)
            if (build := cache.find(key, case.name)) is not None:
                found.append(build)
                continue
            group.uncompiled.add(case.name)
            if key in jobs:
                jobs[key].cases.append(case)
                continue
            compilers = {request.toolchain.version: request.toolchain.compiler_sha256}
            need = Need(name=f"compile {case.name}", compilers=compilers, cpu=host.host_cpu if only_alike else "")
            jobs[key] = Compile(need=need, host=group.host, todo=deque([0]), request=request, key=key, cases=[case])
        self._compiles.extend(jobs.values())
        return found

    def _cpu_of(self, host: Host, toolchain: str) -> TargetCpu | None:
        """What `host` means to a compiler there, as any host with its CPU says; None: none of them says it."""
        alike = (state.host.cpus.get(toolchain) for state in self.all.values() if state.host.host_cpu == host.host_cpu)
        return next((known for known in alike if known is not None), None)

    # --- which host does what ---

    def choose(self, state: HostState) -> Compile | Group | None:
        """A step of a group, or else a compile."""
        return self._choose_group(state) or self._choose_compile(state)

    def _choose_group(self, state: HostState) -> Group | None:
        """The group whose step a host does next; where it has none, it takes one that nobody has begun."""
        if state.is_full:
            return None
        own = [group for group in self._groups.values() if group.host == state.name and group.todo]
        if own:
            # Compilers for other hosts are not held still: nothing is timed beside them.
            helps = any(job.host != state.name for job in state.having(COMPILE))
            ready = (group for group in own if group.is_ready and not (helps and group.todo[0] != CHECK))
            return min(ready, key=lambda group: group.order, default=None)
        waiting: dict[str, list[Need]] = {}
        for group in self._groups.values():
            if group.todo and not group.begun and not group.is_busy and state.name not in group.refused:
                waiting.setdefault(group.host, []).append(group.need)
        name = choose_for_idle(state.host, waiting)
        if name is None:
            return None
        chosen = self._groups[name]
        self._progress.note(f"{state.name} takes {name} from {chosen.host}")
        chosen.host = state.name
        return chosen if chosen.is_ready else None

    def _choose_compile(self, state: HostState) -> Compile | None:
        """The first of its own groups' compiles; else the last of others', where it has nothing to time."""
        if state.offer is None or len(state.having(COMPILE)) >= state.offer.cores:
            return None
        own = next((job for job in self._compiles if job.host == state.name and job.is_ready), None)
        is_timing = any(other.todo[0] != CHECK for other in state.having(MEASURE))
        if own or is_timing or any(group.host == state.name and group.is_ready for group in self._groups.values()):
            return own
        left = (job for job in reversed(self._compiles) if job.is_ready and state.name not in job.refused)
        return next((job for job in left if not unfit(job.need, state.host)), None)

    def why_waits(self, job: Compile | Group) -> str:
        """Groups wait for their builds too."""
        if isinstance(job, Group) and job.uncompiled:
            return "its builds are not all compiled yet"
        return super().why_waits(job)

    # --- what hosts are asked ---

    def order(self, job: Compile | Group, state: HostState) -> Order | None:
        """A compile, a check, or a generation."""
        if isinstance(job, Group):
            return self._step(job, state)
        refusals = [self._context.given_up.refusal(case, "compile") for case in job.cases]
        if refusals and None not in refusals:
            return None
        return Order(what=job.name, task=tasks.compile_case, packed=pack(job.request, job.key))

    def _step(self, group: Group, state: HostState) -> Order | None:
        context, options, step = self._context, self._context.options, group.todo[0]
        beside_s = float(self._directory.header.settings["budget_s"])
        if step == CHECK:
            if options.measure and all(case.name in context.checks for case in group.cases):
                return None
            beside_s += 2 * options.compile_timeout_s  # of the second opinion
            what, task, packed = (
                "check",
                tasks.check_group,
                pack(self._task_of(state, group.cases), not options.measure),
            )
        else:
            cases, shares = (
                distinct_cases(group.cases, self.builds),
                len(self._groups) + context.prepared.groups_elsewhere,
            )
            wanted = None
            if options.measure:
                wanted = wanted_generation(context, group.name, step, group.timed, groups=shares)
            asked = {case.name for case in cases if case.peer is None and context.with_reference} - self._asked
            wants_peak = options.measure and (state.name, group.need.device) not in self._peaks
            if wanted is None and not asked and not wants_peak:
                return None
            self._begin_group(group, state)
            peak_of = context.prepared.toolchain if wants_peak else None
            what, task, packed = "measure", tasks.measure, pack(self._task_of(state, cases), wanted, asked, peak_of)
        within_s = limit_s(options.call_timeout_s, len(group.cases), beside_s)
        return Order(what=f"{what} {group.name}", task=task, packed=packed, limit_s=within_s)

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

    # --- what comes of it ---

    def keep(self, job: Compile | Group, step: int, value: Any, order: Order | None) -> None:
        """Write down what came of a step."""
        if isinstance(job, Compile):
            if order is None:
                failure = self._context.given_up.refusal(job.cases[0], "compile")
                self._keep_build(job, Build(case=job.name, command=(), cache_key="", failure=failure))
            else:
                build, stderr = value
                self._keep_build(job, replace(build, command=order.packed.with_own_names(build.command)), stderr)
            return
        if value is not None and step == CHECK:
            self._keep_checks(job, *value)
        elif value is not None:
            self._keep_measured(job, *value)
        what = "check" if step == CHECK else f"generation {step + 1}"
        self._progress.step(f"{job.host}: {job.name} {what}")

    def _keep_build(self, job: Compile, build: Build, stderr: str = "") -> None:
        """A compile has ended, which its cases share."""
        if job in self._compiles:
            self._compiles.remove(job)
        for case in job.cases:
            keep_build(self._context, replace(build, case=case.name), stderr, self.builds)
            self._progress.step(case.name)
            group = self._groups[case.group]
            group.uncompiled.discard(case.name)
            if build.failure is not None:
                self._drop(group, {case.name})
            self.stir(group.host)

    def _keep_checks(self, group: Group, checks: Sequence[Check], losses: Losses) -> None:
        """A group has been checked; where a case failed, it is said which host says so."""
        if group.noted != group.host and any(check.failure is not None for check in checks):
            self._note_place(group, self.all[group.host])
        cases = {case.name: case for case in group.cases}
        for check in checks:
            left = [case for case in group.cases if case.name not in self._context.checks and case.name != check.case]
            keep_check(self._context, check, cases[check.case], left)
        for lost in losses:
            keep_measured(self._context, (lost,), group.cases)
        failed = {check.case for check in checks if check.failure is not None}
        self._drop(group, failed | {lost.case for lost in losses})

    def _keep_measured(
        self, group: Group, references: Sequence[Reference], peak: Peak | None, results: Sequence[Round | Losses]
    ) -> None:
        """A generation has been measured, or iree-benchmark-module was asked."""
        for reference in references:
            self._asked.add(reference.case)
            self._directory.append(replace(reference, attempt=group.attempt))
        self._peaks.add((group.host, group.need.device))
        if peak is not None:
            self._directory.append(peak)
        members = list(group.cases)
        for result in results:
            if isinstance(result, Round):
                keep_measured(self._context, replace(result, attempt=group.attempt), members)
                group.timed.update(turn.case for turn in result.turns)
            else:
                lost = tuple(replace(each, attempt=group.attempt) for each in result)
                keep_measured(self._context, lost, members)
                self._drop(group, {each.case for each in lost})

    def _drop(self, group: Group, names: set[str]) -> None:
        """Cases of a group have failed."""
        group.cases = [case for case in group.cases if case.name not in names]
        if not group.cases:
            self._progress.step(group.name, len(group.todo))
            group.todo.clear()

    # --- where groups are ---

    def _note_place(self, group: Group, state: HostState, why: str = "") -> None:
        """Write down that a group is on a host."""
        if state.name not in self._recorded:
            self._recorded.add(state.name)
            self._directory.append(state.record(self._suite))
        group.noted = state.name
        self._directory.append(Placed(group=group.name, host=state.name, attempt=group.attempt, why=why))

    def _begin_group(self, group: Group, state: HostState) -> None:
        """A host begins to time a group, if it has not yet."""
        if not group.begun:
            group.begun = True
            if group.noted != state.name:
                self._note_place(group, state)
            group.need = group.need.begun_on(state.host)

    def moved(self, group: Compile | Group, why: str) -> None:
        """What the first host measured of a group no longer counts: it begins again."""
        if isinstance(group, Compile) or not group.begun:
            return
        group.attempt += 1
        group.timed.clear()
        cases = [case for case in self._context.prepared.cases if case.group == group.name and case.skip is None]
        self._asked.difference_update(case.name for case in cases)
        for generation in [key for key in self._generations if key[0] == group.name]:
            del self._generations[generation]
        # A case that was lost there may do well here.
        group.cases = [case for case in cases if not _is_wrong(case, self.builds, self._context.checks)]
        before = len(group.todo)
        group.todo = deque(_steps(self._context))
        self._progress.step(group.name, before - len(group.todo))
        self._note_place(group, self.all[group.host], why)
        group.need = group.need.begun_on(self.all[group.host].host)

    def fail(self, job: Compile | Group, why: str, *, is_tried: bool = False) -> None:  # noqa: ARG002
        """Report what is left as failed, at the stage that each case has come to."""
        if isinstance(job, Compile):
            failure = Failure(stage="compile", message=why)
            self._keep_build(job, Build(case=job.name, command=(), cache_key="", failure=failure))
            return
        context, checks = self._context, self._context.checks
        for each in list(self._compiles):
            left = [case for case in each.cases if case.group != job.name]
            self._progress.step(job.name, len(each.cases) - len(left))
            each.cases = left
            if not left:
                self._compiles.remove(each)
        for case in job.cases:
            record = failed_at(case, why, self.builds, checks)
            if isinstance(record, Lost):
                record = replace(record, generation=max(job.todo[0], 0), host=job.host, attempt=job.attempt)
            self._directory.append(record)
            assert record.failure is not None  # noqa: S101 (it has failed)
            context.failures.case(case, record.failure)
        self._drop(job, {case.name for case in job.cases})


def _groups(context: Context, artifacts: Artifacts, before: Run) -> list[Group]:
    """All groups that have a case to run, with the steps of those that have one which has not failed yet.

    A run that goes on has them where it had placed them, as far as it has timed them or compiled for that host.
    """
    prepared, done = context.prepared, context.done
    compilers = {toolchain.version: toolchain.compiler_sha256 for toolchain in prepared.toolchains}
    hosts = {record.name: Host.recalled(record, prepared.suite) for record in before.hosts}
    placed = {record.group: record for record in before.placed}
    timed = {group for group, _ in done.generations}
    measured = timed | {case.group for case in prepared.cases if case.name in done.references.keys() | done.lost}
    members: dict[str, list[Case]] = {}
    for case in prepared.cases:
        if case.skip is None and isinstance(artifacts[case.model], ModelArtifact):
            members.setdefault(case.group, []).append(case)
    groups = []
    for number, (name, cases) in enumerate(members.items()):
        alive = [case for case in cases if case.name not in done.lost and not _is_wrong(case, done.builds, done.checks)]
        group = Group(need=need_of(cases, compilers), number=number, cases=alive)
        groups.append(group)
        group.todo.extend(_steps(context) if alive else ())
        if name in timed:
            group.timed = {case.name for case in alive}
        if name not in placed:
            continue
        group.noted, group.attempt = placed[name].host, placed[name].attempt
        group.begun = group.attempt > 0 or name in measured
        if group.begun or any(case.name in done.builds for case in alive):
            group.host, host = group.noted, hosts[group.noted]
            is_tied = any(_needs_cpu(context, case) for case in alive if case.peer is None)
            need = replace(group.need, cpu=host.host_cpu if is_tied else "")
            group.need = need.begun_on(host) if group.begun else need
    return groups


def _steps(context: Context) -> list[int]:
    """All that a group goes through in a run."""
    if context.options.measure:
        return [CHECK, *range(int(context.directory.header.settings["generations"]))]
    return [CHECK, 0] if context.with_reference else [CHECK]


def _is_wrong(case: Case, builds: Mapping[str, Build], checks: Mapping[str, Check]) -> bool:
    records = (builds.get(case.name), checks.get(case.name))
    return any(record is not None and record.failure is not None for record in records)


def _needs_cpu(context: Context, case: Case) -> bool:
    """Whether a case's module depends on the CPU that it is for: flags say `host`, or a plugin rewrites it."""
    return bool(context.prepared.arranged_for(case).rewrites) or any(map(is_of_host, case.compile_flags))


def compile_limits(options: RunOptions) -> Limits:
    """What one compile may use on a host: what the user says, else as much memory as the host itself gives."""
    limits = options.compile_limits
    return limits if options.compile_memory_gib is not None else replace(limits, memory_bytes=None)
