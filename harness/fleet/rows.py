"""The hosts of a fleet as the place where rows of a comparison are measured: a row is a group of two cases.

The engine decides rows in threads, and each waits there while a host measures its next generation. What a lost host has
not measured of a row goes to another host of its class.
"""

import asyncio
import concurrent.futures
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from harness.compare.comparison import Plan
from harness.compare.engine import Generation, Together
from harness.compare.pairs import DecidedRow, Side
from harness.compare.remeasure import Sampling, Work
from harness.compare.samplers import Module
from harness.compare.sides import noise_of
from harness.errors import CaseError, NoHost, PlaceGone
from harness.fleet import dispatch, tasks
from harness.fleet.connection import Fleet
from harness.fleet.dispatch import Dispatcher, HostState, Job, Order, limit_s
from harness.fleet.placing import Host, Need, need_of, place, unfit, why_nowhere
from harness.fleet.tasks import RowTask
from harness.machine.identity import machine_class, processor_identity
from harness.measure import Calibration
from harness.process import Limits
from harness.progress import Progress
from harness.records.case import Case
from harness.records.run import Failure, HostRecord, Round
from harness.store.work_directory import ComparisonDirectory
from harness.suite.devices import each_host
from harness.suite.load import Suite, load_suite
from harness.text import plural
from harness.toolchain.host_cpu import is_of_host

# Rows at most that hosts are asked for at the same time; each takes a thread here.
_MOST_ROWS = 500


@dataclass(kw_only=True, eq=False)
class Row(Job):
    """A row under way; its steps are generations, of which the engine asks for one at a time."""

    task: RowTask
    within_s: float  # A generation surely ends
    on_round: Callable[[Round], None] = lambda _: None  # Gets rounds that count
    asked: asyncio.Future[Generation] = field(init=False)
    known: dict[str, Mapping[str, Calibration]] = field(default_factory=dict)  # How many calls fill a turn, by host

    @property
    def name(self) -> str:
        """The row's; that of what it needs is its group's."""
        return self.task.name


class FleetRows(Dispatcher[Row]):
    """Hosts of a fleet, where a comparison's rows are measured."""

    def __init__(self, fleet: Fleet, plan: Plan, directory: ComparisonDirectory, progress: Progress) -> None:
        self._fleet, self._plan, self._directory = fleet, plan, directory
        self._needs: dict[str, Need] = {}
        self._placed: dict[str, str] = {}
        self._rows: list[Row] = []  # those of which a generation is asked
        self._looping: asyncio.Task[None]
        super().__init__(fleet, self._loaded_suite(), progress, self.hosts)

    # --- which hosts ---

    def missing(self, works: Sequence[Work]) -> Mapping[str, DecidedRow]:
        """Put rows on hosts; those that no host can measure."""
        with self._going_on():
            self._fleet.run(self.look())
            self.require_fleet()
        for name in sorted(self.all.keys() - {state.name for state in self.here}):
            self._progress.note(f"{name} is not here; its rows wait for it for {dispatch.RETURN_S:.0f} s")
        devices, file = {device.name for device in self._suite.devices}, self._plan.head.run.header.suite
        nowhere: dict[str, str] = {}
        for work in works:
            device, need = work.pair.case.device, need_of_row(work, self._plan)
            if device not in devices:
                nowhere[work.name] = f"{file} no longer has the device {device}; put it back"
            elif isinstance(need, str):
                nowhere[work.name] = need
            else:
                self._needs[work.name] = need
        self._placed, more = place_rows(
            self._needs,
            [state.host for state in self.here],
            kept={name: host for name, host in self._directory.placed().items() if name in self._needs},
            checked_on={**self._plan.base.run.host_of_group, **self._plan.head.run.host_of_group},
        )
        new = sorted({*self._placed.values()} - {host.name for host in self.hosts})
        self._directory.keep_placed(self._placed, [self.all[name].record(self._suite) for name in new])
        if self._placed:
            counts = Counter(self._placed.values())
            said = "; ".join(f"{plural(number, 'row')} on {host}" for host, number in counts.items())
            self._progress.note(f"The fleet measures {said}")
        return {name: DecidedRow(verdict="failed", reason=why) for name, why in (nowhere | more).items()}

    def _loaded_suite(self) -> Suite:
        """The head's suite, whose devices say what hosts need; with those of each host, here or away."""
        side = self._plan.head
        suite = load_suite(side.root / side.run.header.suite).suite
        absent = {record.name: machine_class(record.environment) for record in (*side.run.hosts, *self.hosts)}
        with self._going_on():
            offers = self._fleet.await_host(dispatch.RETURN_S).usable  # the last one may have gone, and come back
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

    # --- what the engine asks for, in its threads ---

    def latencies(self, work: Work, *, seed: int, call_limit_s: float, on_round: Callable[[Round], None]) -> Sampling:
        """On the row's host."""
        task = RowTask(name=work.name, base=work.base, head=work.head, seed=seed, call_limit_s=call_limit_s)
        environments = {record.name: record.environment for record in self.hosts}
        noise = noise_of(environments.get(self._placed[work.name], {}))
        return Sampling(sample=self._sampler(task, limit_s(call_limit_s), on_round), noise=noise)

    def compiles(self, work: Work, limits: Limits) -> Sampling:
        """On the row's host."""
        task = RowTask(name=work.name, base=work.base, head=work.head, limits=limits)
        return Sampling(sample=self._sampler(task, limit_s(0.0, beside_s=2 * (limits.seconds or 0.0))))

    def _sampler(
        self, task: RowTask, within_s: float, on_round: Callable[[Round], None] = lambda _: None
    ) -> Callable[[int], Generation]:
        first = self.all[self._placed[task.name]].host
        need = replace(self._needs[task.name].begun_on(first), cpu=first.host_cpu)
        row = Row(need=need, host=first.name, task=task, within_s=within_s, on_round=on_round)

        def sample(number: int) -> Generation:
            with self._going_on():
                return self._fleet.run(self._measured(row, number))

        return sample

    @contextmanager
    def alone(self, *, wait: bool) -> Iterator[Together]:  # noqa: ARG002 (hosts always wait)
        """Hosts measure nothing else while they measure a generation; rows are walked in threads."""

        async def begin() -> None:
            self._looping = asyncio.ensure_future(self.loop())

        async def end() -> None:
            self._looping.cancel()
            await asyncio.wait({self._looping})

        self._fleet.run(begin())
        pool = concurrent.futures.ThreadPoolExecutor(_MOST_ROWS, thread_name_prefix="rows of hosts")

        def together(todo: Mapping[str, Callable[[], None]]) -> None:
            try:
                for done in concurrent.futures.as_completed([pool.submit(act) for act in todo.values()]):
                    done.result()
            except BaseException:  # whoever hears of it finds rows that no thread changes any more
                self._fleet.run(end())
                pool.shutdown(cancel_futures=True)
                raise

        try:
            yield together
        finally:
            self._fleet.run(end())  # and with it what threads wait for
            pool.shutdown(cancel_futures=True)

    # --- what hosts do, in the fleet's thread ---

    async def _measured(self, row: Row, number: int) -> Generation:
        row.asked = asyncio.get_running_loop().create_future()
        row.todo.append(number)
        self._rows.append(row)
        self.stir(row.host)
        awaited: set[asyncio.Future[Any]] = {row.asked, self._looping}
        await asyncio.wait(awaited, return_when=asyncio.FIRST_COMPLETED)
        self._rows.remove(row)
        if not row.asked.done():
            self._looping.result()  # it has ended, and says why
        return row.asked.result()

    @property
    def jobs(self) -> list[Row]:
        """Rows of which a generation is asked."""
        return self._rows

    def is_over(self) -> bool:
        """Never: the engine asks again."""
        return False

    def order(self, row: Row, state: HostState) -> Order:
        """A generation."""
        assert state.offer is not None  # noqa: S101 (it is here)
        number, environment = row.todo[0], dict(state.offer.devices(self._suite)[row.need.device].environment)
        base, head = (_in(side, environment) for side in (row.task.base, row.task.head))
        packed = replace(row.task, base=base, head=head).packed(number, row.known.get(state.name, {}))
        what = f"measure {row.name} {number}"
        return Order(what=what, task=tasks.measure_row, packed=packed, limit_s=row.within_s)

    def keep(self, row: Row, step: int, value: Any, order: Order | None) -> None:  # noqa: ARG002
        """A generation has been measured, or cannot be."""
        if isinstance(value, Failure):
            row.asked.set_exception(CaseError(value.stage, f"{row.host}: {value.message}", value.stderr))
            return
        generation, rounds, known = value
        row.known.setdefault(row.host, known)  # the first one there tells the others
        for timed in rounds:
            row.on_round(timed)
        row.asked.set_result(generation)

    def moved(self, row: Row, why: str) -> None:  # noqa: ARG002
        """The comparison tells of another host."""
        self._directory.keep_placed({}, [self.all[row.host].record(self._suite)])

    def fail(self, row: Row, why: str, *, is_tried: bool = False) -> None:
        """No host can measure it now; or it ends its workers, and so it is."""
        row.todo.clear()
        row.asked.set_exception((CaseError if is_tried else NoHost)("measure", why))


def _in(module: Module, environment: Mapping[str, str]) -> Module:
    """A side with a host's environment."""
    return replace(module, case=replace(module.case, environment=dict(environment)))


# --- Which hosts measure which rows: pure decisions ---


def need_of_row(work: Work, plan: Plan) -> Need | str:
    """What a row needs of the host that measures it, or why none can; the name is that of the cases' group."""
    sides = list(zip((plan.base, plan.head), work.pair.both, strict=True))
    cpus = {_cpu(side, case) for side, case in sides} - {""}
    if len(cpus) > 1:
        return "its two modules are made for two CPUs; make both runs again, with --fleet"
    compilers = {case.toolchain: side.toolchains[case.toolchain].compiler_sha256 for side, case in sides}
    return replace(need_of(work.pair.both, compilers), cpu=min(cpus, default=""))


def _cpu(side: Side, case: Case) -> str:
    """Identity of the CPU that a module is made for; "": any that its flags allow."""
    is_tied = bool(case.plugins) or any(map(is_of_host, case.compile_flags))
    return processor_identity(side.run.environment_of(case)) if is_tied else ""


def place_rows(
    needs: Mapping[str, Need], hosts: Sequence[Host], *, kept: Mapping[str, str], checked_on: Mapping[str, str]
) -> tuple[dict[str, str], dict[str, str]]:
    """The host of each row, by the row's name; and why others have none.

    All rows of a group are measured where its head was checked, if that host is here: its modules are made for that
    CPU, and its files are there. Else groups are placed as those of a run are.
    """
    known = {host.name: host for host in hosts}
    left = {name: need for name, need in needs.items() if name not in kept}
    groups = {need.name: _joined(other for other in left.values() if other.name == need.name) for need in left.values()}
    there = {name: checked_on[name] for name in groups if checked_on.get(name) in known}
    there = {name: host for name, host in there.items() if not unfit(groups[name], known[host])}
    placed = place(list(groups.values()), hosts, there)
    rows = {name: placed[need.name] for name, need in left.items() if need.name in placed}
    nowhere = {name: why_nowhere(groups[need.name], hosts) for name, need in left.items() if need.name not in placed}
    return {**kept, **rows}, nowhere


def _joined(groups: Iterable[Need]) -> Need:
    """What all rows of a group need."""
    first, *others = groups
    for other in others:
        first = replace(first, compilers={**first.compilers, **other.compilers}, cpu=first.cpu or other.cpu)
    return first
