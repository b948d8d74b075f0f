"""A fleet as the place where runs are done and rows of a comparison are measured: its devices are those of its hosts.

A row is a group of two cases. The engine decides rows in threads, and each waits there while a host measures its next
generation. What a lost host has not measured of a row goes to another host of its class.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from harness.cache import cache_root, sweep_writing
from harness.compare.comparison import Plan
from harness.compare.engine import Generation, Task, Together
from harness.compare.pairs import DecidedRow, Side
from harness.compare.remeasure import Work
from harness.compare.samplers import MeasurementPolicy
from harness.compare.sides import noise_of
from harness.compile import BuildCache
from harness.errors import CaseError, NoHost, PlaceGone, UsageError
from harness.fleet import dispatch, tasks
from harness.fleet.connection import Fleet
from harness.fleet.dispatch import Dispatcher, HostState, Job, Order, limit_s
from harness.fleet.placing import Need, Offer, devices_of_fleet, need_of, place, unfit, why_nowhere
from harness.fleet.run import FleetRun
from harness.fleet.tasks import RowTask
from harness.machine.environment import machine_class, processor_identity
from harness.measure import Calibration
from harness.peers.peer import AppliedPeer
from harness.progress import Progress
from harness.records.case import Case
from harness.records.run import Failure, HostRecord, Round
from harness.stages.count import ir_stage, work_stage
from harness.stages.prepare import Context
from harness.stages.run import Executor
from harness.store.run_directory import load_run
from harness.store.work_directory import ComparisonDirectory
from harness.suite.devices import Presence, each_host, patterns_on_each
from harness.suite.load import Suite, load_suite
from harness.toolchain import Toolchain
from harness.toolchain.host_cpu import is_of_host
from harness.toolchain.own import is_own
from harness.verify.cases import trim_outputs

# Rows at most that hosts are asked for at the same time; each takes a thread here.
_MOST_ROWS = 500


class FleetRows(Dispatcher):
    """Hosts of a fleet, where a comparison's rows are measured."""

    def __init__(self, fleet: Fleet, plan: Plan, directory: ComparisonDirectory, progress: Progress) -> None:
        self._fleet, self._plan, self.directory = fleet, plan, directory
        self._needs: dict[str, Need] = {}
        self._placed: dict[str, str] = {}
        self._looping: asyncio.Task[None]
        super().__init__(fleet, self._loaded_suite(), progress, self.hosts)

    # --- which hosts ---

    def missing(self, works: Sequence[Work]) -> Mapping[str, DecidedRow]:
        """Put rows on hosts, where their heads were checked if that host can; those that no host can measure."""
        with self._going_on():
            self._fleet.run(self.look())
        here = {state.name: state.host for state in self.here}
        for name in sorted(self.all.keys() - here):
            self._progress.note(f"{name} is not here; its rows wait for it for {dispatch.RETURN_S:.0f} s")
        devices, plan, kept = {device.name for device in self.suite.devices}, self._plan, dict[str, str]()
        checked_on = {**plan.base.run.host_of_group, **plan.head.run.host_of_group}
        nowhere: dict[str, str] = {}
        for work in works:
            case, need = work.pair.case, need_of_row(work, plan)
            checker = here.get(checked_on.get(case.group, ""))
            if case.device not in devices:
                nowhere[work.name] = f"{plan.head.run.header.suite} no longer has the device {case.device}; put it back"
            elif isinstance(need, str):
                nowhere[work.name] = need
            else:
                self._needs[work.name] = need
                if checker is not None and not unfit(need, checker):
                    kept[work.name] = checker.name
        before = {name: host for name, host in self.directory.placed().items() if name in self._needs}
        left = [need for name, need in self._needs.items() if name not in before]
        self._placed = {**before, **place(left, list(here.values()), kept)}
        nowhere |= {need.name: why_nowhere(need, here.values()) for need in left if need.name not in self._placed}
        new = sorted({*self._placed.values()} - {host.name for host in self.hosts})
        self.directory.keep_placed(self._placed, [self.all[name].host.record for name in new])
        return {name: DecidedRow(verdict="failed", reason=why) for name, why in nowhere.items()}

    def _loaded_suite(self) -> Suite:
        """The head's suite, whose devices say what hosts need; with those of each host, here or away."""
        side = self._plan.head
        suite = load_suite(side.root / side.run.header.suite)
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
            raise PlaceGone(gone.what, self.directory.command_to_go_on) from gone

    @property
    def hosts(self) -> tuple[HostRecord, ...]:
        """Those that rows are on, or were, by name."""
        return self.directory.hosts()

    # --- what the engine asks for, in its threads ---

    def latencies(self, work: Work, policy: MeasurementPolicy, on_round: Callable[[Round], None]) -> Task:
        """On the row's host."""
        limit = policy.call_limit_s
        task = RowTask(name=work.name, base=work.base, head=work.head, seed=policy.seed, call_limit_s=limit)
        policy = replace(policy, noise=noise_of(self.all[self._placed[work.name]].host.record.environment))
        return policy.task(work.name, self._sampler(task, limit_s(limit), on_round))

    def compiles(self, work: Work, policy: MeasurementPolicy) -> Task:
        """On the row's host."""
        task = RowTask(name=work.name, base=work.base, head=work.head, limits=policy.limits)
        within_s = limit_s(0.0, beside_s=2 * (policy.limits.seconds or 0.0))
        return policy.task(work.name, self._sampler(task, within_s, lambda _: None))

    def _sampler(
        self, task: RowTask, within_s: float, on_round: Callable[[Round], None]
    ) -> Callable[[int], Generation]:
        first = self.all[self._placed[task.name]].host
        need = replace(self._needs[task.name].begun_on(first), cpu=first.host_cpu)
        row = Row(need=need, host=first.name, place=self, task=task, within_s=within_s, on_round=on_round)

        def sample(number: int) -> Generation:
            with self._going_on():
                return self._fleet.run(self._measured(row, number))

        return sample

    async def _measured(self, row: Row, number: int) -> Generation:
        row.asked = asyncio.get_running_loop().create_future()
        row.todo.append(number)
        self.jobs[row] = None
        self.stir(row.host)
        awaited: set[asyncio.Future[Any]] = {row.asked, self._looping}
        await asyncio.wait(awaited, return_when=asyncio.FIRST_COMPLETED)
        if not row.asked.done():
            self._looping.result()  # it has ended, and says why
        return row.asked.result()

    @contextmanager
    def alone(self, *, wait: bool) -> Iterator[Together]:  # noqa: ARG002 (hosts always wait)
        """Hosts measure nothing else while they measure a generation; rows are walked in threads."""

        async def begin() -> None:
            self._looping = asyncio.ensure_future(self.loop(forever=True))

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


@dataclass(kw_only=True, eq=False)
class Row(Job):
    """A row under way; its steps are generations, of which the engine asks for one at a time."""

    place: FleetRows
    task: RowTask
    within_s: float  # A generation surely ends
    on_round: Callable[[Round], None]  # Gets rounds that count
    asked: asyncio.Future[Generation] = field(init=False)
    known: dict[str, Mapping[str, Calibration]] = field(default_factory=dict)  # How many calls fill a turn, by host

    def ask(self, state: HostState) -> Order:
        """A generation."""
        number, variables = self.todo[0], state.variables(self.place.suite, self.need.device)
        packed = self.task.packed(number, self.known.get(state.name, {}), variables)
        what = f"measure {self.name} {number}"
        return Order(what=what, task=tasks.measure_row, packed=packed, limit_s=self.within_s)

    def keep(self, step: int, value: Any, order: Order | None) -> None:  # noqa: ARG002
        """A generation has been measured, or cannot be."""
        if isinstance(value, Failure):
            self.asked.set_exception(CaseError(value.stage, f"{self.host}: {value.message}", value.stderr))
            return
        generation, rounds, known = value
        self.known.setdefault(self.host, known)  # the first one there tells the others
        for timed in rounds:
            self.on_round(replace(timed, host=self.host))
        self.asked.set_result(replace(generation, host=self.host))

    def moved(self, why: str) -> None:  # noqa: ARG002
        """What others have measured of it counts."""
        self.place.directory.keep_placed({}, [self.place.all[self.host].host.record])

    def fail(self, why: str, *, is_tried: bool = False) -> None:
        """No host can measure it now; or it ends its workers, and so it is."""
        self.todo.clear()
        self.asked.set_exception((CaseError if is_tried else NoHost)("measure", why))


def need_of_row(work: Work, plan: Plan) -> Need | str:
    """What a row needs of the host that measures it, or why none can."""
    sides = list(zip((plan.base, plan.head), work.pair.both, strict=True))
    cpus = {_cpu(side, case) for side, case in sides} - {""}
    if len(cpus) > 1:
        return "its two modules are made for two CPUs; make both runs again, with --fleet"
    compilers = {case.toolchain: side.toolchains[case.toolchain].compiler_sha256 for side, case in sides}
    return replace(need_of(work.pair.both, compilers), name=work.name, cpu=min(cpus, default=""))


def _cpu(side: Side, case: Case) -> str:
    """Identity of the CPU that a module is made for; "": any that its flags allow."""
    is_tied = bool(case.plugins) or any(map(is_of_host, case.compile_flags))
    return processor_identity(side.run.environment_of(case)) if is_tied else ""


class FleetBench(Executor):
    """A fleet in the place of this machine, planned for the hosts that are there when it is made; later ones help."""

    def __init__(
        self, fleet: Fleet, like: Mapping[str, str] | None = None, planned: Mapping[str, str] | None = None
    ) -> None:
        """Look at who is there."""
        self._fleet, self._like, self.address = fleet, like or {}, str(fleet.access)
        offers = fleet.await_host(dispatch.RETURN_S if planned else 0.0)  # the last one may have gone, and come back
        if not offers.usable:
            said = "; ".join(offers.refused.values())
            raise UsageError(
                f"{fleet.access}: no host has joined{f' that can be used ({said})' if said else ''}; start"
                " `harness fleet worker` on one"
            )
        self._offers: tuple[Offer, ...] = tuple(offers.usable.values())
        self.hosts = dict(planned or {offer.name: offer.machine_class for offer in self._offers})

    def following(self, runs: Sequence[Path]) -> FleetBench:
        """The same fleet, planned as for these runs: groups go to the hosts that have theirs."""
        like, planned = dict(self._like), dict[str, str]()
        for path in runs:
            run = load_run(path, rounds=False)
            like.update(run.host_of_group)
            planned.update(run.header.settings.get("hosts", {}))
        try:
            return FleetBench(self._fleet, like, planned)
        except UsageError as error:
            raise PlaceGone(str(error)) from error

    def rows(self, plan: Plan, directory: ComparisonDirectory, progress: Progress, noise: float) -> FleetRows:  # noqa: ARG002
        """The hosts, as the place where a comparison's rows are measured; each has a noise of its own."""
        return FleetRows(self._fleet, plan, directory, progress)

    def suite(self, suite: Suite) -> Suite:
        """The suite, with a device for each host where it says so."""
        return each_host(suite, self.hosts)

    def patterns(self, suite: Suite, patterns: tuple[str, ...]) -> tuple[str, ...]:
        """With `*@cpu`, the device of each host that is `cpu` in the suite."""
        return patterns_on_each(suite, self.hosts, patterns)

    def devices(self, suite: Suite, toolchain: Toolchain) -> Mapping[str, Presence]:
        """Each device that any host has, and why none has the others."""
        label = toolchain.version
        if is_own(label) and not any(label in offer.toolchains for offer in self._offers):
            how = f"call `harness check {suite.path} --toolchain FOLDER` on one, and start its worker again"
            raise UsageError(f"{self.address}: no host has IREE {label}; {how}")
        return devices_of_fleet(suite, self._offers)

    def missing(self, peer: AppliedPeer) -> str | None:
        """Why no host can use a peer; None: one can."""
        said = {offer.name: each.missing for offer in self._offers for each in offer.peers if each.name == peer.name}
        if any(reason is None for reason in said.values()):
            return None
        reasons = "; ".join(f"{name}: {reason}" for name, reason in sorted(said.items()))
        return f"no host of the fleet has {peer.name} ({reasons or 'none knows it'})"

    def run(self, context: Context, scratch: Path) -> None:  # noqa: ARG002
        """Compile, check and measure on the fleet's hosts; then count on this machine what builds and models have."""
        BuildCache(cache_root()).sweep()
        sweep_writing(cache_root())
        trim_outputs(cache_root())
        run = FleetRun(self._fleet, context, self._like)
        try:
            self._fleet.await_host(dispatch.RETURN_S)
            self._fleet.run(run.do())
        except PlaceGone as gone:
            raise PlaceGone(gone.what, context.options.command_to_go_on(context.directory.path, self.address)) from gone
        ir_stage(context)
        if context.options.measure:
            work_stage(context)
