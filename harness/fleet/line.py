"""The line of a run over a fleet: orders to hosts, answers into the run's directory, until nothing is left.

One thread decides and writes. What it does next follows from `state` and from one event at a time: an answer, a worker
that died, a host that joined or left. A generation is the unit that is done again, and nothing of it is written before
all of it is here, so nothing arrives twice, and a host that is lost takes no more than a generation with it.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, TypeVar

from harness.errors import PlaceGone, UsageError
from harness.fleet import answers, patience, tasks
from harness.fleet.connection import Fleet
from harness.fleet.desk import Answered, Desk, Died, Event, Failed, HostsChanged, HostWaits
from harness.fleet.files import Luggage
from harness.fleet.kept import Kept
from harness.fleet.orders import LookOrder, Trouble, named
from harness.fleet.placing import Group, Host, choose_after_loss, choose_for_idle, why_nowhere
from harness.fleet.plan import make_groups, make_jobs, make_looks, put_on_hosts, recall
from harness.fleet.state import (
    AGAIN,
    CHECK,
    PEAK,
    REFERENCE,
    UNTIMED,
    AtWork,
    GroupState,
    HostState,
    Job,
    Step,
    all_can_have,
    choose_job,
    limit_s,
    next_to_compile,
    order_for,
    words_of,
)
from harness.fleet.waits import waits_of_run
from harness.fleet.worker import COMPILE, MEASURE
from harness.models.materialize import ModelArtifact
from harness.records.case import Case
from harness.records.run import Build, Failure
from harness.stages.build import keep_build, require_cache
from harness.stages.check import distinct_cases
from harness.stages.context import Context
from harness.stages.count import Found, keep_found
from harness.stages.measure import wanted_generation
from harness.store.run_directory import load_run
from harness.text import plural

_T = TypeVar("_T")

TITLE = "Fleet"
_TICK_S = 1.0


class Line:
    """A run under way on a fleet."""

    def __init__(
        self,
        fleet: Fleet,
        desk: Desk,
        context: Context,
        artifacts: Mapping[str, ModelArtifact | Failure],
        like: Mapping[str, str] | None = None,
    ) -> None:
        self._fleet, self._desk, self._artifacts = fleet, desk, artifacts
        self._kept = Kept(context)
        self._context, self._groups, self._hosts = self._kept.context, self._kept.groups, self._kept.hosts
        self._like = like or {}
        self._jobs: deque[Job] = deque()
        self._has_looks = False
        self._at_work: dict[int, AtWork] = {}
        self._open: list[GroupState] = []
        self._hungry: set[str] = set()
        self._most = 0  # compiles that all hosts together can have in hand
        self._looked_s = time.monotonic()
        self._lost: set[str] = set()  # addresses of workers; one that is started again has another

    def run(self) -> None:
        """Do all that is left."""
        self._context.directory.before_failure = partial(
            require_cache, self._context.directory.path, self._artifacts, self._kept.builds
        )
        self._groups.update(make_groups(self._context, self._artifacts))
        recall(self._context, load_run(self._context.directory.path, rounds=False), self._hosts, self._groups)
        self._fleet.await_host(patience.RETURN_S)  # the last one may have gone since the run was planned, and come back
        self._look_at_hosts()
        if not any(state.address for state in self._hosts.values()):
            raise PlaceGone(f"{self._address}: all hosts have gone; start one", self._go_on)
        self._begin()
        while self._is_open() or self._at_work or self._jobs or not self._has_looks:
            self._require_scheduler()
            self._feed()
            event = self._desk.take(_TICK_S)
            if event is not None:
                self._handle(event)
            if time.monotonic() - self._looked_s > _TICK_S:
                self._looked_s = time.monotonic()
                self._give_up_waiting()
                self._hungry.update(self._hosts)

    def _require_scheduler(self) -> None:
        if not self._fleet.is_connected:
            raise PlaceGone(f"{self._address}: the scheduler has gone", self._go_on)

    def _asked(self, ask: Callable[[], _T]) -> _T:
        """What the scheduler answers."""
        self._require_scheduler()
        try:
            return ask()
        except UsageError as error:
            raise PlaceGone(str(error), self._go_on) from error

    def _is_open(self) -> bool:
        """Whether any group has something left."""
        while self._open and not self._open[-1].todo:
            self._open.pop()
        return bool(self._open)

    @property
    def _address(self) -> str:
        return str(self._fleet.access.address)

    @property
    def _go_on(self) -> str:
        return self._context.options.command_to_go_on(self._context.directory.path, self._address)

    # --- what is to be done ---

    def _begin(self) -> None:
        """Put groups on hosts, and make a job of each compile that is left."""
        context = self._context
        put_on_hosts(self._groups, self._hosts, self._like)
        jobs, compiled = make_jobs(context, self._artifacts, self._kept.builds, self._groups, self._hosts)
        self._jobs.extend(jobs)
        self._open = list(self._groups.values())
        self._hungry.update(self._hosts)
        left = [group for group in self._groups.values() if group.todo]
        here = [state.host for state in self._hosts.values() if state.address]
        words = [*([plural(len(jobs), "compile")] if jobs else []), plural(len(left), "group")]
        context.progress.note(f"To do: {', '.join(words)}, on {plural(len(here), 'host')}")
        context.progress.stage(TITLE, _cases(jobs) + sum(len(group.todo) for group in left))
        for build in compiled:
            keep_build(context, build, "", self._kept.builds)
        for group in left:
            if group.need.cpu and not group.noted:
                self._kept.place(group, self._hosts[group.host])
            if not group.host:
                self._fail(group, why_nowhere(group.need, here))

    # --- who does it ---

    def _look_at_hosts(self) -> None:
        """Hosts as they are now: those that came, came back, or have gone."""
        suite, progress = self._context.prepared.suite, self._context.progress
        hosts = self._asked(self._fleet.hosts)
        for why in self._fleet.unsaid(hosts.refused):
            progress.note(f"Not used: {why}")
        for name, offer in hosts.offers.items():
            state = self._hosts.get(name)
            if offer.address in self._lost or (state is not None and state.address == offer.address):
                continue
            host = Host.of(offer, suite)
            if state is None:
                self._hosts[name] = state = HostState(host=host)
            elif state.address:
                self._lose(state)
            if state.host.is_another(host):
                self._lost.add(offer.address)
                progress.note(f"{name} is another machine than before, {offer.machine_class}; this run does not use it")
                continue
            if self._open:
                progress.note(f"{name} has joined" if state.offer is None else f"{name} is back")
            state.host, state.offer, state.address = host, offer, offer.address
        for state in self._hosts.values():
            if state.address and state.name not in hosts.offers:
                self._lose(state)
        self._most = all_can_have(self._hosts.values())

    def _lose(self, state: HostState, why: str = "") -> None:
        """A host's worker has gone, or is no longer waited for: what it had in hand is to be done again."""
        said = f"{state.name} {why}" if why else patience.awaited(f"{state.name} has gone", "work waits")
        self._context.progress.note(said)
        self._desk.forget(state.address)
        self._lost.add(state.address)
        state.address, state.gone_since = "", time.monotonic()
        was_at = state.measuring[:1]
        for ticket in [*state.measuring, *state.compiling]:
            self._finish(ticket).died(ticket in was_at)
        self._most = all_can_have(self._hosts.values())

    def _feed(self) -> None:
        """Give every host something to compile and something to measure that may want it."""
        if not self._has_looks and not self._jobs and not any(state.compiling for state in self._hosts.values()):
            self._has_looks = True
            looks = make_looks(self._context, self._artifacts, self._kept.builds, self._groups)
            self._jobs.extend(looks)
            self._hungry.update(self._hosts)
            if looks:
                left = _cases(looks) + sum(len(group.todo) for group in self._groups.values())
                self._context.progress.stage(TITLE, left)
        hungry, self._hungry = self._hungry, set()
        states = [self._hosts[name] for name in sorted(hungry) if name in self._hosts]
        able = list(states)
        while (chosen := next_to_compile(able, self._most, len(self._jobs))) is not None:
            if (job := self._next_job(chosen)) is not None:
                self._give_job(chosen, job)
            else:
                able.remove(chosen)
        for state in states:
            while state.wants_turn and (group := self._next_group(state)) is not None:
                self._give_step(state, group)

    def _next_job(self, state: HostState) -> Job | None:
        """A compile for a host; one of another's groups only where it has nothing to time now."""
        name, refusal = state.name, self._context.given_up.refusal
        times = bool(state.timing) or any(group.host == name and group.is_ready for group in self._groups.values())
        while (job := choose_job(self._jobs, state.host, others=not times)) is not None:
            self._jobs.remove(job)
            if isinstance(job.order, LookOrder):
                return job
            refusals = [failure for case in job.cases if (failure := refusal(case, "compile")) is not None]
            if len(refusals) < len(job.cases):
                return job
            build = Build(case=job.cases[0].name, command=(), cache_key="", failure=refusals[0])
            self._keep_build(build, "", job.cases)
        return None

    def _next_group(self, state: HostState) -> GroupState | None:
        name = state.name
        own = [group for group in self._groups.values() if group.host == name and group.todo]
        ready = [group for group in own if group.is_ready and (not state.helping or group.todo[0] in UNTIMED)]
        if ready:
            return min(ready, key=lambda group: group.order)
        if own:
            return None
        waiting: dict[str, list[Group]] = {}
        for group in self._groups.values():
            if group.todo and not group.begun and group.ticket is None and state.name not in group.refused:
                waiting.setdefault(group.host, []).append(group.need)
        chosen = choose_for_idle(state.host, waiting)
        if chosen is None:
            return None
        self._context.progress.note(f"{state.name} takes {chosen} from {self._groups[chosen].host}")
        self._groups[chosen].host = state.name
        return self._next_group(state) if self._groups[chosen].is_ready else None

    def _give_job(self, state: HostState, job: Job) -> None:
        is_look = isinstance(job.order, LookOrder)
        ticket = self._desk.give(
            state.name,
            state.address,
            tasks.look if is_look else tasks.compile_case,
            job.order,
            name=f"{'ir' if is_look else 'compile'} {job.name}",
            resource=COMPILE,
            luggage=job.luggage,
        )
        state.compiling.add(ticket)
        state.helping.update(() if job.host == state.name else [ticket])

        def done(answer: Any) -> None:
            answer = answers.of_job(job.order, answer)
            if isinstance(answer, Trouble):
                self._refuse_job(job, state.name, answer.message)
            elif isinstance(answer, Found):
                keep_found(self._context, [case.name for case in job.cases], answer)
            else:
                self._keep_build(answer.build, answer.stderr, job.cases)

        def died(was_at_it: bool) -> None:  # noqa: ARG001 (nobody knows which of several compiles it was)
            job.deaths += 1
            if job.deaths >= patience.MOST_DEATHS:
                self._fail_job(job, f"{state.name}: its worker ended {job.deaths} times while it compiled this")
            else:
                self._jobs.appendleft(job)

        self._at_work[ticket] = AtWork(state.name, job.name, None, done, died)

    def _refuse_job(self, job: Job, host: str, why: str) -> None:
        """A host cannot compile something; another may."""
        self._context.progress.note(f"{host} cannot compile {job.name}: {why}")
        job.refused[host] = why
        self._jobs.append(job)

    def _fail_job(self, job: Job, why: str) -> None:
        if isinstance(job.order, LookOrder):
            found = Found(counts=Failure(stage="ir", message=why))
            keep_found(self._context, [case.name for case in job.cases], found)
            return
        failure = Failure(stage="compile", message=why)
        build = Build(case=job.name, command=(), cache_key="", failure=failure)
        self._keep_build(build, "", job.cases)

    def _give_step(self, state: HostState, group: GroupState) -> None:
        step = group.todo[0]
        if (given := self._order(state, group, step)) is None:  # nothing is left to do at this step
            group.todo.popleft()
            self._context.progress.step(group.name)
            return
        if step not in UNTIMED:
            self._kept.begin(group, state)
        task, args, luggage, keep = given
        name = f"{step if isinstance(step, str) else 'measure'} {group.name}"
        ticket = self._desk.give(state.name, state.address, task, *args, name=name, resource=MEASURE, luggage=luggage)
        state.measuring.append(ticket)
        state.timing.update(() if step in UNTIMED else [ticket])
        state.since = state.since if len(state.measuring) > 1 else time.monotonic()
        group.ticket = ticket

        def done(answer: Any) -> None:
            group.ticket = None
            answer = answers.of_step(step, args, answer)
            if isinstance(answer, Trouble):
                self._refuse_group(group, answer.message)
                return
            group.todo.popleft()
            if not group.todo:
                group.last_order = None
            keep(answer)
            self._kept.tell_pace(state.name, step)
            self._context.progress.step(f"{state.name}: {words_of(group.name, step)}")

        def died(was_at_it: bool) -> None:
            group.ticket = None
            group.deaths += was_at_it
            if group.deaths >= patience.MOST_DEATHS:
                self._fail(group, f"{state.name}: its worker ended {group.deaths} times while it measured this group")

        limit = limit_s(self._context, group, step)
        self._at_work[ticket] = AtWork(state.name, words_of(group.name, step), limit, done, died)

    def _order(
        self, state: HostState, group: GroupState, step: Step
    ) -> tuple[Callable[..., Any], tuple[Any, ...], Luggage | None, Callable[[Any], None]] | None:
        """The task of a step, what it takes, and who keeps what comes of it; None: there is nothing to do."""
        context = self._context
        artifact = self._artifacts[group.cases[0].model] if group.cases else None
        if not isinstance(artifact, ModelArtifact):
            return None
        if step == PEAK:
            case = group.cases[0]
            if (state.name, case.device) in self._kept.peaks:
                return None
            toolchain = named(context.prepared.toolchain)
            return tasks.find_peak, (case, toolchain), None, partial(self._kept.peak, state.name, case.device)
        cases = group.cases if step == CHECK else distinct_cases(group.cases, self._kept.builds)
        if step == REFERENCE:
            cases = [case for case in cases if case.peer is None and case.name not in self._kept.asked]
        if not cases or (step == CHECK and all(case.name in context.checks for case in cases)):
            return None
        if isinstance(step, str):
            task, keep = _TASKS[step]
            order, luggage = order_for(context, group, step, cases, artifact, self._kept.builds, state)
            return task, (order,), luggage, partial(keep, self._kept, group)
        groups = len(self._groups) + context.prepared.groups_elsewhere
        wanted = wanted_generation(context, group.name, step, group.timed, groups=groups)
        if wanted is None:
            return None
        order, luggage = order_for(context, group, step, cases, artifact, self._kept.builds, state)
        return tasks.measure, (order, wanted), luggage, partial(Kept.generation, self._kept, group)

    # --- what comes of it ---

    def _handle(self, event: Event) -> None:
        match event:
            case Failed(error=error):
                raise error
            case HostsChanged():
                self._look_at_hosts()
                self._hungry.update(self._hosts)
            case HostWaits(name=name) as waits if name in self._hosts:
                self._context.progress.note(waits.sentence)
            case Died(ticket=ticket, address=address):
                if ticket not in self._at_work:
                    return
                state = self._hosts[self._at_work[ticket].host]
                if state.address == address:
                    self._lose(state)
                self._look_at_hosts()
            case Answered(ticket=ticket, value=value):
                if ticket in self._at_work:
                    self._finish(ticket).done(value)

    def _finish(self, ticket: int) -> AtWork:
        """An order is out no more."""
        work = self._at_work.pop(ticket)
        state = self._hosts[work.host]
        self._hungry.add(work.host)
        for tickets in (state.compiling, state.helping, state.timing):
            tickets.discard(ticket)
        if ticket in state.measuring:
            state.measuring.remove(ticket)
            state.since = time.monotonic()
        return work

    def _keep_build(self, build: Build, stderr: str, cases: list[Case]) -> None:
        self._kept.build(build, stderr, cases)
        self._hungry.update(self._groups[case.group].host for case in cases)

    # --- what goes wrong ---

    def _give_up_waiting(self) -> None:
        """Move the groups of hosts that have been gone for too long."""
        now = time.monotonic()
        for state in self._hosts.values():
            work = self._at_work[state.measuring[0]] if state.measuring else None
            if work is not None and work.limit_s is not None and now - state.since > work.limit_s:
                why = f"does not come to an end with {work.what} within {work.limit_s:.0f} s"
                self._lose(state, f"{why}; it gets nothing more until its worker starts again")
        gone = {name for name, state in self._hosts.items() if self._is_lost(state)}
        if gone and len(gone) == len(self._hosts):
            raise PlaceGone(f"{self._address}: all hosts have gone; start one", self._go_on)
        for group in self._groups.values():
            if group.todo and group.host in gone:
                self._move(group, patience.why_lost(group.host))
        self._tell_waits()
        left = [state.host for name, state in self._hosts.items() if name not in gone]
        for job in [job for job in self._jobs if not any(map(job.allows, left))]:
            self._jobs.remove(job)
            self._fail_job(job, job.why_nowhere)

    def _is_lost(self, state: HostState) -> bool:
        return not state.address and patience.is_over(state.gone_since)

    def _tell_waits(self) -> None:
        """Let `harness fleet status` show what no host has in hand."""
        waits = waits_of_run(self._jobs, self._groups.values(), self._hosts)
        self._asked(partial(self._fleet.tell_waits, waits))

    def _refuse_group(self, group: GroupState, why: str) -> None:
        group.refused[group.host] = why
        self._move(group, f"{group.host}: {why}")

    def _move(self, group: GroupState, why: str) -> None:
        """Begin a group again on another host of its class, or report it as failed."""
        able = [state for state in self._hosts.values() if state.name not in group.refused and state.name != group.host]
        here = [state.host for state in able if state.address]
        # Else one that may come back: the group waits for it as it did for its own.
        away = [state.host for state in able if state.offer is not None and not self._is_lost(state)]
        load: dict[str, int] = {}
        for other in self._groups.values():
            load[other.host] = load.get(other.host, 0) + bool(other.todo)
        chosen = choose_after_loss(group.need, here, load) or choose_after_loss(group.need, away, load)
        if chosen is None:
            self._fail(group, f"{why}; no other host of the fleet can go on with this group")
            return
        self._context.progress.note(f"{group.name} moves to {chosen}: {why}")
        group.host = chosen
        self._hungry.add(chosen)
        if group.begun:
            self._kept.begin_again(group, self._hosts[chosen], why)

    def _fail(self, group: GroupState, why: str) -> None:
        """Report what is left of a group as failed, at the stage that each case has come to."""
        for job in [job for job in self._jobs if not isinstance(job.order, LookOrder)]:
            before = len(job.cases)
            job.cases = [case for case in job.cases if case.group != group.name]
            self._context.progress.step(group.name, before - len(job.cases))
            if not job.cases:
                self._jobs.remove(job)
        self._kept.fail(group, why)


_TASKS: dict[str, tuple[Callable[..., Any], Callable[..., None]]] = {
    CHECK: (tasks.check_group, Kept.checks),
    AGAIN: (tasks.call_again, Kept.lost),
    REFERENCE: (tasks.ask_reference, Kept.references),
}


def _cases(jobs: Iterable[Job]) -> int:
    return sum(len(job.cases) for job in jobs)
