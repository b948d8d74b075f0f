"""The hosts of a fleet as the place where rows of a comparison are measured.

The engine decides rows in threads, a few for each host, while the fleet's own thread has their generations measured. A
generation is the unit that is done again. One that nobody has any more goes to another host of the row's class.
"""

import concurrent.futures
import queue
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial

from harness.compare.comparison import Plan
from harness.compare.engine import Generation, Together
from harness.compare.pairs import Known, Side
from harness.compare.remeasure import Sampling, Work
from harness.compare.samplers import Module
from harness.compare.sides import noise_of
from harness.errors import CaseError, NoHost, PlaceGone
from harness.fleet import hosts as timeouts
from harness.fleet import tasks
from harness.fleet.connection import Fleet
from harness.fleet.hosts import MOST_DEATHS, Hosts, HostState, Refused, WorkerLost, away, busy, limit_s, why_lost
from harness.fleet.placing import Group, Host, choose_after_loss, place, unfit, why_nowhere
from harness.fleet.scheduler import by_reason
from harness.fleet.tasks import RowTask
from harness.machine.identity import machine_class, processor_identity
from harness.measure import Known as Calibration
from harness.process import Limits
from harness.progress import Progress
from harness.records.case import Case
from harness.records.run import Failure, HostRecord, Round
from harness.store.work_directory import ComparisonDirectory
from harness.suite.hosts import each_host
from harness.suite.load import Suite, load_suite
from harness.text import plural
from harness.toolchain.host_cpu import is_of_host

# Rows that a host has in hand, so that it has the next one while an answer is under way.
_ROWS_A_HOST = 2

# A generation by its number, or why it could not be measured.
Measured = tuple[int, Generation | CaseError]


@dataclass(kw_only=True, eq=False)
class Row:
    """A row under way."""

    task: RowTask
    need: Group
    hosts: list[str]  # That measure it, in order; one that is lost leaves
    limit_s: float  # Within which a generation surely ends
    on_round: Callable[[Round], None] = lambda _: None  # Gets rounds that count
    known: dict[str, Mapping[str, Calibration]] = field(default_factory=dict)  # By host, what its first one told
    lost: dict[str, str] = field(default_factory=dict)  # Why hosts no longer measure it, by name
    deaths: int = 0


class FleetRows:
    """Hosts of a fleet, where a comparison's rows are measured."""

    def __init__(self, fleet: Fleet, plan: Plan, directory: ComparisonDirectory, progress: Progress) -> None:
        self._fleet, self._plan, self._directory, self._progress = fleet, plan, directory, progress
        self._needs: dict[str, Group] = {}
        self._placed: dict[str, tuple[str, ...]] = {}
        self._undone: dict[str, bool] = {}  # rows of a pass, with whether they have begun
        self._running: set[concurrent.futures.Future[None]] = set()
        self._is_stopped = False
        self._suite: Suite
        self._hosts: Hosts

    # --- which hosts ---

    def missing(self, works: Sequence[Work]) -> Mapping[str, Known]:
        """Put rows on hosts; those that no host can measure."""
        self._suite = self._loaded_suite()
        self._hosts = Hosts(self._fleet, self._suite, self._progress, "rows wait")
        for record in self.hosts:
            self._hosts.recall(record)
        with self._going_on():
            self._fleet.run(self._hosts.look())
            self._hosts.require_fleet()
        for name in sorted(self._hosts.all.keys() - {state.name for state in self._hosts.here}):
            self._progress.note(f"{name} is not here; its rows wait for it for {timeouts.RETURN_S:.0f} s")
        devices = {device.name for device in self._suite.devices}
        gone = {work.name: work.pair.case.device for work in works if work.pair.case.device not in devices}
        file = self._plan.head.run.header.suite
        nowhere = {name: f"{file} no longer has the device {device}; put it back" for name, device in gone.items()}
        needs = {work.name: need_of(work, self._plan) for work in works if work.name not in nowhere}
        self._needs = {name: need for name, need in needs.items() if isinstance(need, Group)}
        nowhere |= {name: need for name, need in needs.items() if isinstance(need, str)}
        self._placed, more = place_rows(
            self._needs,
            [state.host for state in self._hosts.here],
            kept={name: hosts for name, hosts in self._directory.placed().items() if name in self._needs},
            checked_on={**self._plan.base.run.host_of_group, **self._plan.head.run.host_of_group},
        )
        names = {host for hosts in self._placed.values() for host in hosts} - {host.name for host in self.hosts}
        self._directory.keep_placed(self._placed, [self._hosts.all[name].record(self._suite) for name in sorted(names)])
        places = Counter(self._placed.values())
        if places:
            said = "; ".join(f"{plural(number, 'row')} on {', '.join(hosts)}" for hosts, number in places.items())
            self._progress.note(f"The fleet measures {said}")
        return {name: Known(verdict="failed", reason=why) for name, why in (nowhere | more).items()}

    def _loaded_suite(self) -> Suite:
        """The head's suite, whose devices say what hosts need; with those of each host, here or away."""
        side = self._plan.head
        suite = load_suite(side.root / side.run.header.suite).suite
        absent = {record.name: machine_class(record.environment) for record in (*side.run.hosts, *self.hosts)}
        with self._going_on():
            offers = self._fleet.await_host(timeouts.RETURN_S).usable  # the last one may have gone, and come back
        return each_host(suite, {**absent, **{offer.name: offer.machine_class for offer in offers.values()}})

    @contextmanager
    def _going_on(self) -> Iterator[None]:
        """Say how the comparison goes on where the fleet has gone."""
        try:
            yield
        except PlaceGone as gone:
            raise PlaceGone(gone.what, self._directory.command_to_go_on) from gone

    @property
    def hosts(self) -> tuple[HostRecord, ...]:
        """Those that rows are on, or were, by name."""
        return self._directory.hosts()

    @property
    def abreast(self) -> int:
        """How many rows are measured at the same time."""
        return max(1, len(set(self._placed.values())))

    # --- what is measured ---

    def latencies(self, work: Work, *, seed: int, call_limit_s: float, on_round: Callable[[Round], None]) -> Sampling:
        """On the row's host."""
        hosts = self._placed[work.name]
        row = Row(
            task=RowTask(name=work.name, base=work.base, head=work.head, seed=seed, call_limit_s=call_limit_s),
            need=self._needs[work.name],
            hosts=list(hosts),
            on_round=on_round,
            limit_s=limit_s(call_limit_s),
        )
        environments = {record.name: record.environment for record in self.hosts}
        return Sampling(
            sample=partial(self._sample, row),
            noise=max(noise_of(environments.get(host, {})) for host in hosts),
        )

    def compiles(self, work: Work, limits: Limits) -> Sampling:
        """On the first of the row's hosts."""
        row = Row(
            task=RowTask(name=work.name, base=work.base, head=work.head, limits=limits),
            need=self._needs[work.name],
            hosts=list(self._placed[work.name][:1]),
            limit_s=limit_s(0.0, beside_s=2 * (limits.seconds or 0.0)),
        )
        return Sampling(sample=partial(self._sample, row))

    def _sample(self, row: Row, number: int) -> Generation:
        ((_, measured),) = self._measure(row, [number])
        if isinstance(measured, CaseError):
            raise measured
        return measured

    def _measure(self, row: Row, numbers: Sequence[int]) -> Iterator[Measured]:
        """Generations of a row, each as it ends; after one that fails, no more."""
        if self._is_stopped:
            raise concurrent.futures.CancelledError
        found: queue.SimpleQueue[Measured | None] = queue.SimpleQueue()
        running = self._fleet.start(self._generations(row, list(numbers), found.put))
        running.add_done_callback(lambda _: found.put(None))
        self._running.add(running)
        while (measured := found.get()) is not None:
            yield measured
        self._running.discard(running)
        with self._going_on():
            running.result()

    async def _generations(self, row: Row, left: list[int], give: Callable[[Measured], None]) -> None:
        while left:
            row.hosts = row.hosts or [self._another(row)]
            await self._on_host(row, row.hosts[0], sorted(left), left, give)

    async def _on_host(
        self, row: Row, name: str, numbers: list[int], left: list[int], give: Callable[[Measured], None]
    ) -> None:
        """What a host measures of a row; it ends where the host is lost, and then some are left."""
        state = self._hosts.all[name]
        todo = list(numbers)
        while todo and left:
            try:
                if not await self._hosts.wait_for(state):
                    self._lose(row, name, why_lost("it"))
                    return
                measured = await self._generation(row, state, todo[0])
            except WorkerLost as lost:
                row.deaths += lost.was_at_it
                if row.deaths < MOST_DEATHS:
                    continue
                ended = f"its worker ended, or came to no end, {row.deaths} times"
                measured = CaseError("measure", f"{name}: {ended} while it measured this row")
            except Refused as why:
                self._lose(row, name, str(why))
                return
            number = todo.pop(0)
            if number in left:  # else another host has found that the row cannot be measured
                left.remove(number)
                give((number, measured))
            if isinstance(measured, CaseError):
                left.clear()

    async def _generation(self, row: Row, state: HostState, number: int) -> Generation | CaseError:
        assert state.offer is not None  # noqa: S101 (it is here)
        environment = dict(state.offer.devices(self._suite)[row.need.device].environment)
        base, head = (_in(side, environment) for side in (row.task.base, row.task.head))
        packed = replace(row.task, base=base, head=head).packed(number, row.known.get(state.name, {}))
        what = f"measure {row.task.name} {number}"
        found = await self._hosts.measure(state, tasks.measure_row, packed, what, row.limit_s)
        if isinstance(found, Failure):
            return CaseError(found.stage, f"{state.name}: {found.message}", found.stderr)
        # The first one on a host tells the others how many calls fill a turn.
        row.known[state.name] = row.known.get(state.name) or found.known
        for timed in found.rounds:
            row.on_round(timed)
        generation: Generation = found.generation
        return generation

    def _lose(self, row: Row, name: str, why: str) -> None:
        """A host measures a row no longer."""
        row.lost[name] = why
        row.hosts.remove(name)
        self._progress.note(f"{row.task.name} goes on without {name}: {why}")

    def _another(self, row: Row) -> str:
        """A host for a row that has lost all of its own."""
        first = self._hosts.all[self._placed[row.task.name][0]].host
        alike = [state for state in self._hosts.here if state.name not in row.lost]
        fitting = [state.host for state in alike if are_alike(state.host, first, row.need)]
        load = {state.name: len(state.measuring) for state in alike}
        chosen = choose_after_loss(row.need, fitting, load)
        if chosen is None:
            why = "; ".join(f"{host}: {said}" for host, said in row.lost.items())
            raise NoHost("measure", f"{why}; no other host of its class is there")
        self._progress.note(f"{row.task.name} moves to {chosen}")
        self._directory.keep_placed({}, [self._hosts.all[chosen].record(self._suite)])
        return chosen

    # --- all rows ---

    @contextmanager
    def alone(self, *, wait: bool) -> Iterator[Together]:  # noqa: ARG002 (hosts always wait)
        """Hosts measure nothing else while they measure a generation; rows are walked in threads."""
        watching = self._fleet.start(self._hosts.watch(self._tell_waits))
        try:
            yield self._together
        finally:
            watching.cancel()

    def _together(self, todo: Mapping[str, Callable[[], None]]) -> None:
        """Do what there is to do for each row; rows of different hosts at the same time."""
        self._undone = dict.fromkeys(todo, False)
        self._is_stopped = False

        def act(name: str) -> None:
            self._undone[name] = True
            todo[name]()
            del self._undone[name]

        pools = {
            hosts: concurrent.futures.ThreadPoolExecutor(_ROWS_A_HOST, thread_name_prefix=f"rows of {hosts[0]}")
            for hosts in {self._placed[name] for name in todo}
        }
        try:
            for done in concurrent.futures.as_completed([pools[self._placed[name]].submit(act, name) for name in todo]):
                done.result()
        finally:
            self._is_stopped = True
            for pool in pools.values():
                pool.shutdown(wait=False, cancel_futures=True)
            for running in list(self._running):
                running.cancel()
            for pool in pools.values():
                pool.shutdown()
        with suppress(PlaceGone):
            self._fleet.run(self._tell_waits())  # that nothing does

    async def _tell_waits(self) -> bool:
        """Let `harness fleet status` show rows that have not begun, and those whose host is away; never over."""
        waits = []
        for name, has_begun in sorted(self._undone.items()):
            hosts = [self._hosts.all[host] for host in self._placed[name]]
            absent = [state for state in hosts if not state.address and not state.is_lost]
            if absent or not has_begun:
                waits.append((away(absent[0]) if absent else busy(hosts[0]), name))
        await self._fleet.tell_waits(by_reason(waits))
        return False


def _in(module: Module, environment: Mapping[str, str]) -> Module:
    """A side with a host's environment."""
    return replace(module, case=replace(module.case, environment=dict(environment)))


# --- Which hosts measure which rows: pure decisions ---


def need_of(work: Work, plan: Plan) -> Group | str:
    """What a row needs of the hosts that measure it, or why none can; the name is that of the cases' group."""
    sides = list(zip((plan.base, plan.head), work.pair.both, strict=True))
    cpus = {_cpu(side, case) for side, case in sides} - {""}
    if len(cpus) > 1:
        return "its two modules are made for two CPUs; make both runs again, with --fleet"
    return Group(
        name=work.pair.case.group,
        device=work.pair.case.device,
        compilers={case.toolchain: side.toolchains[case.toolchain].compiler_sha256 for side, case in sides},
        cpu=min(cpus, default=""),
    )


def _cpu(side: Side, case: Case) -> str:
    """Identity of the CPU that a module is made for; "": any that its flags allow."""
    is_tied = bool(case.plugins) or any(map(is_of_host, case.compile_flags))
    return processor_identity(side.run.environment_of(case)) if is_tied else ""


def place_rows(
    needs: Mapping[str, Group],
    hosts: Sequence[Host],
    *,
    kept: Mapping[str, tuple[str, ...]],
    checked_on: Mapping[str, str],
) -> tuple[dict[str, tuple[str, ...]], dict[str, str]]:
    """The hosts of each row, by the row's name and in the order of their names; and why others have none.

    All rows of a group are measured where its head was checked, if that host is here: its modules are made for that
    CPU, and its files are there. Else groups are placed as those of a run are.
    """
    known = {host.name: host for host in hosts}
    left = {name: need for name, need in needs.items() if name not in kept}
    groups = {need.name: _joined(other for other in left.values() if other.name == need.name) for need in left.values()}
    there = {name: checked_on[name] for name in groups if checked_on.get(name) in known}
    there = {name: host for name, host in there.items() if not unfit(groups[name], known[host])}
    placed = place(list(groups.values()), hosts, there)
    rows, nowhere = dict(kept), {}
    for name, need in left.items():
        host = placed.get(need.name)
        if host is None:
            nowhere[name] = why_nowhere(groups[need.name], hosts)
        else:
            rows[name] = (host,)
    return rows, nowhere


def _joined(groups: Iterable[Group]) -> Group:
    """What all rows of a group need."""
    first, *others = groups
    for other in others:
        first = replace(first, compilers={**first.compilers, **other.compilers}, cpu=first.cpu or other.cpu)
    return first


def are_alike(host: Host, other: Host, need: Group) -> bool:
    """Whether two hosts are of one class for a row: machine, device, and identity of the CPU."""
    return host.classes[need.device] == other.classes[need.device] and host.host_cpu == other.host_cpu
