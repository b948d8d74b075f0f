"""The hosts of a fleet as the place where rows of a comparison are measured.

The engine decides rows in threads, a few for each host: a thread gives the orders of its row and waits for what comes
of them. Meanwhile the thread that began the comparison takes in all events, and wakes the thread that each is for. It
alone sees hosts come and go, and ends all rows when the user or the fleet ends the comparison.

A generation is the unit that is done again. One that nobody has any more goes to another host of its row, or, where
none is left, of its class; hosts are blocks of a row's samples, so such a row says no more than it knows.
"""

from __future__ import annotations

import queue
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial

from harness.compare.comparison import Plan
from harness.compare.engine import Generation, Together, by_host
from harness.compare.pairs import Known
from harness.compare.remeasure import Sampling, Work
from harness.compare.sides import noise_of
from harness.errors import CaseError, NoHost, PlaceGone, UsageError
from harness.fleet import answers, patience, tasks
from harness.fleet.connection import Fleet
from harness.fleet.desk import Answered, Desk, Died, Event, Failed, HostsChanged, HostWaits
from harness.fleet.files import Luggage
from harness.fleet.orders import Trouble
from harness.fleet.placing import Host, choose_after_loss
from harness.fleet.row_orders import RowMeasured, RowOrder, compile_times_order, latency_order
from harness.fleet.row_plan import RowNeed, are_alike, of_unknown_devices, place_rows
from harness.fleet.row_state import Answer, Out, Row
from harness.fleet.state import HostState
from harness.fleet.waits import waits_of_rows
from harness.fleet.worker import MEASURE
from harness.machine.identity import machine_class
from harness.process import Limits
from harness.progress import Progress
from harness.records.run import HostRecord, Round
from harness.store.sides_directory import ComparisonDirectory
from harness.suite.hosts import each_host
from harness.suite.load import Suite, load_suite
from harness.text import plural

# How often those who wait look: whether rows have come to an end, whether a host is there, and who is back.
_TICK_S, _WAIT_S, _LOOK_S = 0.05, 0.5, 1.0
# Rows that a host has in hand, so that it has the order of one while the other's answer is under way.
_ROWS_A_HOST = 2


class _Stopped(Exception):
    """The comparison is at an end, and so are its threads."""


class FleetRows:
    """Hosts of a fleet, where a comparison's rows are measured."""

    def __init__(self, fleet: Fleet, plan: Plan, directory: ComparisonDirectory, progress: Progress) -> None:
        self._fleet, self._plan, self._directory, self._progress = fleet, plan, directory, progress
        self._lock = threading.Lock()
        self._states: dict[str, HostState] = {}
        self._needs: dict[str, RowNeed] = {}
        self._placed: dict[str, tuple[str, ...]] = {}
        self._suite: Suite | None = None
        self._desk: Desk | None = None
        self._out: dict[int, Out] = {}
        self._ended: dict[str, int] = {}  # by address: the order that its worker was at
        self._hung: set[str] = set()  # addresses of workers that do not come to an end, or are not what they were
        self._looked_s = 0.0
        self._undone: dict[str, bool] = {}  # rows of a pass, with whether they have begun
        self._stopped = threading.Event()
        self._is_begun = False

    # --- which hosts ---

    def missing(self, works: Sequence[Work]) -> Mapping[str, Known]:
        """Put rows on hosts; those that no host can measure."""
        self._suite = self._loaded_suite()
        begun = self._directory.begun
        assert begun is not None  # noqa: S101 (what is measured can go on)
        for name, environment in begun.hosts.items():
            record = HostRecord(name=name, environment=environment)
            self._states[name] = HostState(host=Host.recalled(record, self._suite))
        self._fleet.await_host(patience.RETURN_S)  # the last one may have gone since the plan was made, and come back
        self._look()
        self._require_fleet()
        for name in sorted(self._states.keys() - {state.name for state in self._here()}):
            self._progress.note(patience.awaited(f"{name} is not here", "rows wait"))
        unknown = of_unknown_devices(works, self._suite, self._plan.head.run.header.suite)
        self._needs = {work.name: RowNeed.of(work, self._plan) for work in works if work.name not in unknown}
        placing = place_rows(
            self._needs,
            [state.host for state in self._here()],
            kept={name: hosts for name, hosts in begun.placed.items() if name in self._needs},
            checked_on={**self._plan.base.run.host_of_group, **self._plan.head.run.host_of_group},
            spread=self._plan.options.spread,
        )
        self._placed = dict(placing.rows)
        names = {host for hosts in self._placed.values() for host in hosts} - set(begun.hosts)
        self._directory.keep_placed(self._placed, [record for name, record in self._records().items() if name in names])
        places = Counter(self._placed.values())
        if places:
            said = "; ".join(f"{plural(number, 'row')} on {', '.join(hosts)}" for hosts, number in places.items())
            self._progress.note(f"The fleet measures {said}")
        return {name: Known(verdict="failed", reason=why) for name, why in (unknown | dict(placing.nowhere)).items()}

    def _loaded_suite(self) -> Suite:
        """The head's suite, whose devices say what hosts need; with those of each host, here or away."""
        side = self._plan.head
        suite = load_suite(side.root / side.run.header.suite).suite
        away = {record.name: machine_class(record.environment) for record in (*side.run.hosts, *self.hosts)}
        with self._asking():
            here = {offer.name: offer.machine_class for offer in self._fleet.hosts().offers.values()}
        return each_host(suite, {**away, **here})

    def _here(self) -> list[HostState]:
        return [state for state in list(self._states.values()) if state.address]

    def _records(self) -> dict[str, HostRecord]:
        assert self._suite is not None  # noqa: S101 (`missing` comes first)
        known = [state for state in list(self._states.values()) if state.offer is not None]
        return {state.name: state.record(self._suite) for state in known}

    @property
    def hosts(self) -> tuple[HostRecord, ...]:
        """Those that rows are on, or were, by name."""
        begun = self._directory.begun
        known = begun.hosts if begun is not None else {}
        return tuple(HostRecord(name=name, environment=known[name]) for name in sorted(known))

    @property
    def abreast(self) -> int:
        """How many rows are measured at the same time."""
        return max(1, len(set(self._placed.values())))

    # --- what is measured ---

    def latencies(self, work: Work, *, seed: int, call_limit_s: float, on_round: Callable[[Round], None]) -> Sampling:
        """On the row's hosts; with several, a pair of generations on each at the same time."""

        def order(state: HostState) -> tuple[RowOrder, Luggage]:
            assert state.offer is not None and self._suite is not None  # noqa: S101 (it is here)
            environment = state.offer.devices(self._suite)[work.pair.case.device].environment
            return latency_order(work, environment, seed=seed, call_limit_s=call_limit_s)

        hosts = self._placed[work.name]
        row = Row(
            name=work.name,
            need=self._needs[work.name],
            hosts=list(hosts),
            order=order,
            on_round=on_round,
            limit_s=patience.limit_s(call_limit_s),
        )
        environments = {record.name: record.environment for record in self.hosts}
        return Sampling(
            sample=partial(self._sample, row),
            hosts=len(hosts),
            batch=partial(self._measure, row) if len(hosts) > 1 else None,
            noise=max(noise_of(environments.get(host, {})) for host in hosts),
        )

    def compiles(self, work: Work, limits: Limits) -> Sampling:
        """On the first of the row's hosts."""
        row = Row(
            name=work.name,
            need=self._needs[work.name],
            hosts=list(self._placed[work.name][:1]),
            order=lambda _: compile_times_order(work, limits),
            on_round=lambda _: None,
            limit_s=patience.limit_s(0.0, beside_s=2 * (limits.seconds or 0.0)),
        )
        return Sampling(sample=partial(self._sample, row))

    def _sample(self, row: Row, number: int) -> Generation:
        ((_, measured),) = self._measure(row, [number])
        if isinstance(measured, CaseError):
            raise measured
        return measured

    def _measure(self, row: Row, numbers: Sequence[int]) -> Iterator[tuple[int, Generation | CaseError]]:
        """Generations of a row, each as it ends; after one that fails, no more."""
        todo = self._dealt(row, numbers)
        out: dict[int, tuple[str, int]] = {}
        while out or any(todo.values()):
            for host, left in todo.items():
                is_out = any(other == host for other, _ in out.values())
                # The first one on a host tells the others how many calls fill a turn.
                while left and (host in row.known or not is_out) and (ticket := self._give(row, host, left[0])):
                    out[ticket] = host, left.popleft()
                    is_out = True
            answer = self._next(row)
            gave = out.pop(answer.ticket, None) if answer is not None else None
            if answer is None or gave is None:
                self._lose_gone(row, todo)
                continue
            host, number = gave
            match answers.of_row(answer.value):
                case RowMeasured(failure=None, generation=Generation() as generation) as measured:
                    row.known[host] = row.known.get(host) or measured.known or {}
                    for timed in measured.rounds:
                        row.on_round(timed)
                    yield number, generation
                    continue
                case RowMeasured(failure=failure) if failure is not None:
                    yield number, CaseError(failure.stage, f"{host}: {failure.message}", failure.stderr)
                    return
                case Trouble(message=why):
                    todo.setdefault(host, deque()).appendleft(number)
                    self._lose(row, host, why, todo)
                case _:
                    row.deaths += answer.was_at_it
                    if row.deaths >= patience.MOST_DEATHS:
                        ended = f"its worker ended, or came to no end, {row.deaths} times"
                        yield number, CaseError("measure", f"{host}: {ended} while it measured this row")
                        return
                    todo.setdefault(host, deque()).appendleft(number)
                    if host in row.lost:
                        self._deal_again(row, todo)

    def _dealt(self, row: Row, numbers: Iterable[int]) -> dict[str, deque[int]]:
        """What each host of a row measures."""
        with self._lock:
            if not row.hosts:
                row.hosts.append(self._another(row))
        return {host: deque(own) for host, own in by_host(sorted(numbers), row.hosts).items()}

    def _another(self, row: Row) -> str:
        """A host for a row that has lost all of its own."""
        before = next(iter(self._placed[row.name]))
        records = self._records() | {record.name: record for record in self.hosts}
        first = self._states[before].host
        alike = [
            state.host
            for state in self._here()
            if state.name not in row.lost and are_alike(state.host, first, row.need.group)
        ]
        load = Counter(out.host for out in self._out.values())
        chosen = choose_after_loss(row.need.group, alike, load)
        if chosen is None:
            why = "; ".join(f"{host}: {said}" for host, said in row.lost.items())
            raise NoHost("measure", f"{why}; no other host of its class is there")
        self._progress.note(f"{row.name} moves to {chosen}")
        self._directory.keep_placed({}, [records[chosen]])
        return chosen

    def _lose(self, row: Row, host: str, why: str, todo: dict[str, deque[int]]) -> None:
        """A host measures a row no longer; what is left goes to those that remain."""
        if host in row.hosts:
            row.lost[host] = why
            row.hosts.remove(host)
            self._progress.note(f"{row.name} goes on without {host}: {why}")
        self._deal_again(row, todo)

    def _deal_again(self, row: Row, todo: dict[str, deque[int]]) -> None:
        left = [number for own in todo.values() for number in own]
        todo.clear()
        todo.update(self._dealt(row, left))

    def _lose_gone(self, row: Row, todo: dict[str, deque[int]]) -> None:
        """Lose a host that has been away for too long, while others are here."""
        for host in [name for name, left in todo.items() if left]:
            state = self._states[host]
            if not state.address and patience.is_over(state.gone_since) and self._here():
                self._lose(row, host, patience.why_lost("it"), todo)
                return

    def _give(self, row: Row, host: str, number: int) -> int | None:
        """Give a host an order; None: it is not here."""
        assert self._desk is not None  # noqa: S101 (rows are walked while it is open)
        state = self._states[host]
        if not state.address:
            return None
        order, luggage = row.orders.get(host) or row.order(state)
        row.orders[host] = order, luggage
        args = (order, number, row.known.get(host, {}))
        name = f"measure {row.name} {number}"
        with self._lock:  # before anybody hears of its end
            if not (address := state.address):
                return None
            ticket = self._desk.give(
                host, address, tasks.measure_row, *args, name=name, resource=MEASURE, luggage=luggage
            )
            self._out[ticket] = Out(row, host, address)
            if not state.measuring:
                state.since = time.monotonic()
            state.measuring.append(ticket)
        return ticket

    def _next(self, row: Row) -> Answer | None:
        """What next becomes of a row's orders; None: nothing for a while."""
        if self._stopped.is_set():
            raise _Stopped
        try:
            answer = row.mail.get(timeout=_WAIT_S)
        except queue.Empty:
            return None
        if self._stopped.is_set():
            raise _Stopped
        return answer

    # --- what happens meanwhile ---

    @contextmanager
    def alone(self, *, wait: bool) -> Iterator[Together]:  # noqa: ARG002 (hosts always wait)
        """Hosts measure nothing else while they measure a generation; rows are walked in threads."""
        self._is_begun = True
        with Desk(self._fleet) as self._desk:
            yield self._together

    def _together(self, todo: Mapping[str, Callable[[], None]]) -> None:
        """Do what there is to do for each row; rows of different hosts at the same time."""
        self._stopped.clear()
        self._undone = dict.fromkeys(todo, False)
        lines: dict[tuple[str, ...], queue.SimpleQueue[str]] = {}
        for name in todo:
            lines.setdefault(self._placed[name], queue.SimpleQueue()).put(name)
        raised: list[BaseException] = []
        threads = [
            threading.Thread(target=self._walk, args=(names, todo, raised), name=f"rows of {hosts[0]}")
            for hosts, names in lines.items()
            for _ in range(min(_ROWS_A_HOST, names.qsize()))
        ]
        for thread in threads:
            thread.start()
        try:
            while any(thread.is_alive() for thread in threads) and not raised:
                self._require_fleet()
                if (event := self._events.take(_TICK_S)) is not None:
                    self._handle(event)
                self._end_hanging()
                if time.monotonic() - self._looked_s > _LOOK_S:
                    self._looked_s = time.monotonic()
                    if len(self._here()) < len(self._states):
                        self._look()
                    self._tell_waits()
        finally:
            self._stopped.set()
            with self._lock:
                rows = {out.row for out in self._out.values()}
                self._out.clear()
                for state in self._states.values():
                    state.measuring.clear()
            for row in rows:
                row.mail.put(None)
            for thread in threads:
                thread.join()
        if raised:
            raise raised[0]
        self._tell_waits()  # that nothing does

    @property
    def _events(self) -> Desk:
        assert self._desk is not None  # noqa: S101 (rows are walked while it is open)
        return self._desk

    def _walk(
        self, names: queue.SimpleQueue[str], todo: Mapping[str, Callable[[], None]], raised: list[BaseException]
    ) -> None:
        try:
            while not self._stopped.is_set():
                name = names.get_nowait()
                with self._lock:
                    self._undone[name] = True
                todo[name]()
                with self._lock:
                    del self._undone[name]
        except (queue.Empty, _Stopped):
            return
        except BaseException as error:  # raised once all threads have come to an end
            raised.append(error)

    def _handle(self, event: Event) -> None:
        match event:
            case Failed(error=error):
                raise error
            case HostsChanged():
                self._look()
            case HostWaits(name=name) as waits if name in self._states:
                self._progress.note(waits.sentence)
            case Died(ticket=ticket, address=address):
                with self._lock:
                    self._note_gone([state for state in self._states.values() if state.address == address])
                self._tell_death(ticket, address)
            case Answered(ticket=ticket, value=value):
                self._tell(Answer(ticket, value))

    def _tell_death(self, ticket: int, address: str) -> None:
        with self._lock:
            if address not in self._ended:
                self._ended[address] = min((own for own, out in self._out.items() if out.address == address), default=0)
            was_at_it = self._ended[address] == ticket
        self._tell(Answer(ticket, None, was_at_it))

    def _tell(self, answer: Answer) -> None:
        """Wake the thread of an order's row."""
        with self._lock:
            out = self._out.pop(answer.ticket, None)
            if out is None:
                return
            state = self._states[out.host]
            if answer.ticket in state.measuring:
                state.measuring.remove(answer.ticket)
            state.since = time.monotonic()
        out.row.mail.put(answer)

    def _look(self) -> None:
        """Hosts as they are now: those that came, came back, or have gone."""
        assert self._suite is not None  # noqa: S101 (`missing` comes first)
        with self._asking():
            hosts = self._fleet.hosts()
        for why in self._fleet.unsaid(hosts.refused):
            self._progress.note(f"Not used: {why}")
        offers = {name: offer for name, offer in hosts.offers.items() if offer.address not in self._hung}
        with self._lock:
            for name, offer in offers.items():
                state = self._states.get(name)
                if state is not None and state.address == offer.address:
                    continue
                host = Host.of(offer, self._suite)
                if state is not None and state.host.is_another(host):
                    self._hung.add(offer.address)
                    self._progress.note(f"{name} is another machine than before, {offer.machine_class}; it gets no row")
                    continue
                if state is None:
                    self._states[name] = HostState(host=host, offer=offer, address=offer.address)
                else:
                    state.host, state.offer, state.address = host, offer, offer.address
                if self._is_begun:
                    self._progress.note(f"{name} has joined" if state is None else f"{name} is back")
            self._note_gone([state for state in self._states.values() if state.address and state.name not in offers])

    def _tell_waits(self) -> None:
        """Let `harness fleet status` show rows that have not begun, and those whose host is away."""
        with self._lock:
            undone = dict(self._undone)
            gone = [state for state in self._states.values() if not state.address]
        away = {state.name for state in gone if not patience.is_over(state.gone_since)}
        with self._asking():
            self._fleet.tell_waits(waits_of_rows(undone, self._placed, away))

    @contextmanager
    def _asking(self) -> Iterator[None]:
        try:
            yield
        except UsageError as error:
            raise PlaceGone(str(error), self._directory.command_to_go_on) from error

    def _note_gone(self, states: Sequence[HostState]) -> None:
        for state in states:
            state.address, state.gone_since = "", time.monotonic()
            self._progress.note(patience.awaited(f"{state.name} has gone", "rows wait"))

    def _require_fleet(self) -> None:
        address = self._fleet.access.address
        if not self._fleet.is_connected:
            raise PlaceGone(f"{address}: the scheduler has gone", self._directory.command_to_go_on)
        since = [state.gone_since for state in self._states.values() if not state.address]
        if not self._here() and patience.is_over(max(since, default=0.0)):
            raise PlaceGone(f"{address}: all hosts have gone; start one", self._directory.command_to_go_on)

    def _end_hanging(self) -> None:
        """Give up hosts that do not come to an end with a generation, until their workers start again."""
        now = time.monotonic()
        with self._lock:
            late = [
                (state, self._out[state.measuring[0]].row)
                for state in self._states.values()
                if state.measuring and now - state.since > self._out[state.measuring[0]].row.limit_s
            ]
        for state, row in late:
            self._progress.note(
                f"{state.name} does not come to an end with {row.name} within {row.limit_s:.0f} s; it gets nothing "
                "more until its worker starts again"
            )
            address, tickets = state.address, list(state.measuring)
            with self._lock:
                self._hung.add(address)
                self._note_gone([state])
            for ticket in tickets:
                self._tell_death(ticket, address)
