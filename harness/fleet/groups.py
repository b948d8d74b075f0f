"""What a run has to do on a fleet, as it begins or goes on: groups and their hosts, and the compiles that are left."""

from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from harness.cache import cache_root
from harness.compile import BuildCache, CompileRequest
from harness.compile.request import cache_key
from harness.fleet.hosts import HostState
from harness.fleet.placing import Group, Host, group_of, place, unfit
from harness.models.materialize import ModelArtifact
from harness.process import Limits
from harness.records.case import Case
from harness.records.run import Build, Failure, Run
from harness.stages.build import fail_unmade, requests_of
from harness.stages.context import Context, Done
from harness.stages.options import RunOptions
from harness.toolchain.host_cpu import TargetCpu, is_of_host, without_host

# A step of a group: one of these, or the number of a generation. Compilers go on beside a check; the reference is asked
# right before the first generation, so that a group is begun as late as can be.
CHECK, REFERENCE = "check", "reference"
_RANKS = {CHECK: -1, REFERENCE: 0}
Step = str | int

Artifacts = Mapping[str, ModelArtifact | Failure]


@dataclass(kw_only=True, eq=False)
class GroupState:
    """A group, now."""

    need: Group
    number: int  # In the plan's order
    cases: list[Case]  # Those that have not failed
    host: str = ""
    attempt: int = 0
    noted: str = ""  # The host that the run's directory has it on; "": it says nothing yet
    begun: bool = False
    uncompiled: set[str] = field(default_factory=set)  # Cases whose builds are not here yet
    todo: deque[Step] = field(default_factory=deque)  # Steps that are left, in their order
    is_busy: bool = False  # Whether a host has a step of it in hand
    timed: set[str] = field(default_factory=set)  # Cases that had a turn
    deaths: int = 0  # How often its host's worker ended while it was measured
    refused: dict[str, str] = field(default_factory=dict)  # Why hosts could not do it, by name

    @property
    def name(self) -> str:
        """The group's."""
        return self.need.name

    @property
    def is_ready(self) -> bool:
        """Whether its host may go on with it."""
        return not self.uncompiled and not self.is_busy and bool(self.todo)

    @property
    def order(self) -> tuple[int, int]:
        """Groups with the smallest come first, so that the generations of each are spread."""
        step = self.todo[0]
        return (step if isinstance(step, int) else _RANKS[step]), self.number


@dataclass(kw_only=True, eq=False)
class Job:
    """A compile, and the cases that share it."""

    request: CompileRequest
    key: str  # What its build is kept under, on every machine
    cases: list[Case]
    host: str  # The one that measures these cases
    host_cpu: str = ""  # Identity of the CPU that it has to be done on; "": on any
    refused: dict[str, str] = field(default_factory=dict)  # Why hosts could not do it, by name
    deaths: int = 0  # How often a host's worker ended over it

    @property
    def name(self) -> str:
        """The first case's."""
        return self.cases[0].name

    def allows(self, host: Host) -> bool:
        """Whether it may be done there."""
        version, sha256 = self.request.toolchain.version, self.request.toolchain.compiler_sha256
        same_cpu = not self.host_cpu or host.host_cpu == self.host_cpu
        return same_cpu and host.compilers.get(version, sha256) == sha256 and host.name not in self.refused

    @property
    def why_nowhere(self) -> str:
        """Why no host that is left can do it."""
        if self.refused:
            said = "; ".join(f"{name}: {why}" for name, why in self.refused.items())
            return f"{said}; no other host can compile it"
        cpu = f"the CPU of {self.host} and " if self.host_cpu else ""
        return f"no host has {cpu}the client's build of IREE {self.request.toolchain.version}"


def steps(context: Context) -> Iterator[Step]:
    """All that a group goes through in a run."""
    yield CHECK
    if context.with_reference or context.options.measure:
        yield REFERENCE
    if context.options.measure:
        yield from range(int(context.directory.header.settings["generations"]))


def compile_limits(options: RunOptions) -> Limits:
    """What one compile may use on a host: what the user says, else as much memory as the host itself gives."""
    limits = options.compile_limits
    return limits if options.compile_memory_gib is not None else replace(limits, memory_bytes=None)


def make_groups(context: Context, artifacts: Artifacts) -> dict[str, GroupState]:
    """All groups that have a case to run, with the steps of those that have one which has not failed yet."""
    compilers = {toolchain.version: toolchain.compiler_sha256 for toolchain in context.prepared.toolchains}
    members: dict[str, list[Case]] = {}
    for case in context.prepared.cases:
        if case.skip is None and isinstance(artifacts[case.model], ModelArtifact):
            members.setdefault(case.group, []).append(case)
    has_turns = {group for group, _ in context.done.generations}
    groups: dict[str, GroupState] = {}
    for number, (name, cases) in enumerate(members.items()):
        alive = [case for case in cases if not _has_failed(case, context.done)]
        group = GroupState(need=group_of(cases, compilers), number=number, cases=alive)
        group.timed = {case.name for case in alive if name in has_turns}
        group.todo.extend(steps(context) if alive else ())
        groups[name] = group
    return groups


def _has_failed(case: Case, done: Done) -> bool:
    records = (done.builds.get(case.name), done.checks.get(case.name))
    return case.name in done.lost or any(record is not None and record.failure is not None for record in records)


def recall(context: Context, run: Run, groups: Mapping[str, GroupState]) -> None:
    """Put groups where an interrupted run had placed them, as far as it has timed them or compiled for that host."""
    prepared, done = context.prepared, context.done
    hosts = {record.name: Host.recalled(record, prepared.suite) for record in run.hosts}
    for placed in run.placed:
        if placed.group in groups:
            groups[placed.group].noted, groups[placed.group].attempt = placed.host, placed.attempt
    timed = {group for group, _ in done.generations}
    timed |= {case.group for case in prepared.cases if case.name in done.references or case.name in done.lost}
    for group in groups.values():
        group.begun = bool(group.noted) and (group.attempt > 0 or group.name in timed)
        if not group.begun and not (group.noted and any(case.name in done.builds for case in group.cases)):
            continue
        group.host, host = group.noted, hosts[group.noted]
        is_tied = any(_needs_cpu(context, case) for case in group.cases if case.peer is None)
        machine_class = host.classes[group.need.device] if group.begun else ""
        group.need = replace(group.need, cpu=host.host_cpu if is_tied else "", machine_class=machine_class)


def _needs_cpu(context: Context, case: Case) -> bool:
    """Whether a case's module depends on the CPU that it is for: flags say `host`, or a plugin rewrites it."""
    return bool(context.prepared.arranged_for(case).rewrites) or any(map(is_of_host, case.compile_flags))


def put_on_hosts(groups: Mapping[str, GroupState], hosts: Mapping[str, Host], like: Mapping[str, str]) -> None:
    """Place all groups that have something to do and no host; one that fits nowhere is left without."""
    kept = {name: group.host for name, group in groups.items() if group.host}
    for name, host in like.items():
        if name in groups and name not in kept and host in hosts and not unfit(groups[name].need, hosts[host]):
            kept[name] = host
    open_groups = [group.need for group in groups.values() if group.todo]
    for name, host in place(open_groups, list(hosts.values()), kept).items():
        groups[name].host = groups[name].host or host


def make_jobs(
    context: Context,
    artifacts: Artifacts,
    builds: dict[str, Build],
    groups: Mapping[str, GroupState],
    hosts: Mapping[str, HostState],
) -> tuple[list[Job], list[Build]]:
    """The compiles that are left, small models first, and builds that are in the cache.

    Cases of equal keys share a compile. In flags, `host` means the host that the case's group is on.
    """
    cache = BuildCache(cache_root())
    jobs: dict[str, Job] = {}
    found: list[Build] = []
    fail_unmade(context, artifacts, builds)
    for request in requests_of(context, artifacts, ""):
        case = request.case
        group = groups.get(case.group)
        if group is None or not group.host:
            continue
        host = hosts[group.host].host
        is_tied = _needs_cpu(context, case)
        cpu = _cpu_of(host, hosts, case.toolchain) if is_tied else None
        if is_tied:
            group.need = replace(group.need, cpu=host.host_cpu)
        request = _for_host(request, host.host_cpu if is_tied else "", cpu, compile_limits(context.options))
        key = cache_key(request)
        if (build := cache.find(key, case.name)) is not None:
            found.append(build)
            continue
        group.uncompiled.add(case.name)
        if key in jobs:
            jobs[key].cases.append(case)
            continue
        only_alike = is_tied and (cpu is None or bool(request.arranged.rewrites))
        jobs[key] = Job(
            request=request,
            key=key,
            cases=[case],
            host=group.host,
            host_cpu=host.host_cpu if only_alike else "",
        )
    return list(jobs.values()), found


def _cpu_of(host: Host, hosts: Mapping[str, HostState], toolchain: str) -> TargetCpu | None:
    """What `host` means to a compiler on a host, as any host with its CPU says; None: none of them says it."""
    alike = [state.host.cpus.get(toolchain) for state in hosts.values() if state.host.host_cpu == host.host_cpu]
    return next((known for known in alike if known is not None), None)


def _for_host(request: CompileRequest, host_cpu: str, cpu: TargetCpu | None, limits: Limits) -> CompileRequest:
    """A compile whose flags name the CPU that it is for, so that any host can do it."""
    flags = request.case.compile_flags
    case = request.case if cpu is None else replace(request.case, compile_flags=without_host(flags, cpu))
    return replace(request, case=case, host_cpu=host_cpu, limits=limits)
