"""What a run has to do on a fleet, as it begins or goes on: groups and their hosts, and the compiles that are left."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from harness.cache import cache_root
from harness.compile import BuildCache
from harness.fleet.files import Luggage
from harness.fleet.orders import compile_order, look_order, needs_cpu
from harness.fleet.placing import Host, group_of, place, unfit
from harness.fleet.state import GroupState, HostState, Job, compile_limits, steps
from harness.models.materialize import ModelArtifact
from harness.records.case import Case
from harness.records.run import Build, Failure, Run
from harness.stages.build import requests_of
from harness.stages.context import Context, Done
from harness.stages.count import unread


def make_groups(context: Context, artifacts: Mapping[str, ModelArtifact | Failure]) -> dict[str, GroupState]:
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


def recall(context: Context, run: Run, hosts: dict[str, HostState], groups: Mapping[str, GroupState]) -> None:
    """Put groups where an interrupted run had placed them, as far as it has timed them or compiled for that host."""
    prepared, done = context.prepared, context.done
    for record in run.hosts:
        hosts[record.name] = HostState(host=Host.recalled(record, prepared.suite))
    for placed in run.placed:
        if placed.group in groups:
            groups[placed.group].noted, groups[placed.group].attempt = placed.host, placed.attempt
    timed = {group for group, _ in done.generations}
    timed |= {case.group for case in prepared.cases if case.name in done.references or case.name in done.lost}
    for group in groups.values():
        group.begun = bool(group.noted) and (group.attempt > 0 or group.name in timed)
        if not group.begun and not (group.noted and any(case.name in done.builds for case in group.cases)):
            continue
        group.host, host = group.noted, hosts[group.noted].host
        compiled = [case for case in group.cases if case.peer is None]
        group.need = replace(
            group.need,
            cpu=host.host_cpu if any(needs_cpu(case, prepared.arranged_for(case)) for case in compiled) else "",
            machine_class=host.classes[group.need.device] if group.begun else "",
        )


def put_on_hosts(
    groups: Mapping[str, GroupState], hosts: Mapping[str, HostState], like: Mapping[str, str] | None = None
) -> None:
    """Place all groups that have something to do and no host; one that fits nowhere is left without."""
    here = [state.host for state in hosts.values() if state.address]
    kept = {name: group.host for name, group in groups.items() if group.host}
    known = {host.name: host for host in here}
    for name, host in (like or {}).items():
        if name in groups and name not in kept and host in known and not unfit(groups[name].need, known[host]):
            kept[name] = host
    open_groups = [group.need for group in groups.values() if group.todo]
    for name, host in place(open_groups, here, kept).items():
        groups[name].host = groups[name].host or host


def make_jobs(
    context: Context,
    artifacts: Mapping[str, ModelArtifact | Failure],
    builds: dict[str, Build],
    groups: Mapping[str, GroupState],
    hosts: Mapping[str, HostState],
) -> tuple[list[Job], list[Build]]:
    """The compiles that are left, small models first; cases of equal keys share one.

    In flags, `host` means the host that the case's group is on.
    """
    cache = BuildCache(cache_root())
    jobs: dict[str, Job] = {}
    found: list[Build] = []
    for request in requests_of(context, artifacts, builds, ""):
        case = request.case
        group = groups.get(case.group)
        if group is None or not group.host:
            continue
        host = hosts[group.host].host
        tied = needs_cpu(case, request.arranged)
        alike = [
            state.host.cpus.get(case.toolchain) for state in hosts.values() if state.host.host_cpu == host.host_cpu
        ]
        cpu = next((known for known in alike if known is not None), None) if tied else None
        if tied:
            group.need = replace(group.need, cpu=host.host_cpu)
            request = replace(request, host_cpu=host.host_cpu)
        luggage = Luggage()
        order = compile_order(replace(request, limits=compile_limits(context.options)), cpu, luggage)
        if (build := cache.find(order.key, case.name)) is not None:
            found.append(build)
            continue
        group.uncompiled.add(case.name)
        if order.key in jobs:
            jobs[order.key].cases.append(case)
            continue
        only_alike = tied and (cpu is None or bool(request.arranged.rewrites))
        jobs[order.key] = Job(
            order=order,
            luggage=luggage,
            cases=[case],
            host=group.host,
            host_cpu=host.host_cpu if only_alike else "",
        )
    return list(jobs.values()), found


def make_looks(
    context: Context,
    artifacts: Mapping[str, ModelArtifact | Failure],
    builds: Mapping[str, Build],
    groups: Mapping[str, GroupState],
) -> list[Job]:
    """The looks at IR that are left, once everything is compiled; best done where the build is measured."""
    suite = context.prepared.suite
    cases = {case.name: case for case in context.prepared.cases}
    looks = []
    for alike in unread(context, artifacts, builds):
        luggage = Luggage()
        compiled = replace(alike[0], limits=compile_limits(context.options))
        order = look_order(compiled, suite.ir, storage=suite.storage, luggage=luggage)
        sharing = [cases[compiled.build.case] for compiled in alike]
        looks.append(Job(order=order, luggage=luggage, cases=sharing, host=groups[sharing[0].group].host))
    return looks
