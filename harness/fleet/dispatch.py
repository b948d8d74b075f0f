"""Gives hosts of a fleet what a run or a comparison has to do, and takes what comes of it, whatever happens to hosts.

Dask runs a task on the worker that it is for, one that measures at a time; here is what Dask does not know: which files
a host lacks, that a machine came back under its name, for how long it is waited for, and when it hangs.
"""

import asyncio
import concurrent.futures
import contextlib
import itertools
import os
import time
from abc import ABC, abstractmethod
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from distributed.client import Future
from distributed.scheduler import KilledWorker

from harness.errors import PlaceGone, RunError
from harness.fleet import tasks
from harness.fleet.connection import Fleet
from harness.fleet.packing import Damaged, Item, Packed, lacking, read_chunk, reading, small_ones, write_chunk
from harness.fleet.placing import Host, Need, Offer, choose_after_loss, unfit
from harness.fleet.processes import COMPILE, MEASURE
from harness.fleet.tasks import Answer
from harness.progress import Progress
from harness.records.run import HostRecord
from harness.suite.load import Suite
from harness.text import one_line

# Within this time a host that has gone may come back and go on with what it has begun.
RETURN_S = 60.0
# How often a worker may end over one piece of work before that fails.
MOST_DEATHS = 3
# Calls that a step of a group, or a generation of a row, makes of a case at most, each with a limit of its own: see
# harness.measure.generation, harness.verify.cases and harness.stages.measure. And what it takes beside them.
CALLS, BESIDE_CALLS_S = 30, 600.0
_LOOK_S = 1.0
_LONGEST = 300
_FILES_FIRST = 10  # of Dask's priorities


class WorkerLost(Exception):
    """The worker has gone that had something to do."""


class Refused(Exception):
    """A host cannot do something, though another may; the message says why."""


def limit_s(call_timeout_s: float, cases: int = 1, beside_s: float = 0.0) -> float:
    """Within how many seconds a step surely ends: the sum of its processes' limits."""
    return CALLS * call_timeout_s * cases + beside_s + BESIDE_CALLS_S


@dataclass(frozen=True, kw_only=True)
class Order:
    """A step as a host is asked for it."""

    what: str  # For people
    task: Callable[..., Answer]
    packed: Packed
    limit_s: float | None = None  # Within which it surely ends; None: the host itself sees to it


@dataclass(kw_only=True, eq=False)
class HostState:
    """A host, now."""

    host: Host
    offer: Offer | None = None  # None where it has not been here since this run began or went on
    address: str = ""  # Of its worker, another one after each start; "": it is not here
    gone: asyncio.Event = field(default_factory=asyncio.Event)  # Set once the worker of that address has gone
    gone_since: float = field(default_factory=time.monotonic)  # By the monotonic clock, in seconds
    in_hand: list["Job"] = field(default_factory=list)  # What it was given, in order
    known: set[Item] = field(default_factory=set)  # Files that its worker has
    sends: asyncio.Lock = field(default_factory=asyncio.Lock)  # Held by who sends files there

    @property
    def name(self) -> str:
        """The host's."""
        return self.host.name

    @property
    def is_lost(self) -> bool:
        """Whether it has been away for too long."""
        return not self.address and time.monotonic() - self.gone_since > RETURN_S

    def variables(self, suite: Suite, device: str) -> dict[str, str]:
        """What every process on a device needs in its environment there."""
        assert self.offer is not None  # noqa: S101 (it is here)
        return dict(self.offer.devices(suite)[device].environment)


@dataclass(kw_only=True, eq=False)
class Job(ABC):
    """A compile, a group of a run, or a row: done step by step on one host; where its worker dies, a step is again."""

    need: Need
    host: str = ""
    todo: deque[int] = field(default_factory=deque)  # Steps that are left, in their order
    resource: str = MEASURE
    is_busy: bool = False  # Whether a host has a step of it in hand
    deaths: int = 0  # How often its host's worker ended over it
    refused: dict[str, str] = field(default_factory=dict)  # Why hosts could not do it, by name

    @property
    def name(self) -> str:
        """What it is, for people."""
        return self.need.name

    @property
    def is_ready(self) -> bool:
        """Whether what it needs is there."""
        return True

    @property
    def rank(self) -> tuple[int, int]:
        """Of what a host can measure, the smallest comes first."""
        return 0, 0

    @abstractmethod
    def ask(self, state: HostState) -> Order | None:
        """What a host is asked for the next step; None: there is nothing to do for it."""

    @abstractmethod
    def keep(self, step: int, value: Any, order: Order | None) -> None:
        """A step has been done."""

    def moved(self, why: str) -> None:  # noqa: B027 (a compile needs nothing)
        """Another host does it from now on."""

    @abstractmethod
    def fail(self, why: str, *, is_tried: bool = False) -> None:
        """No host can do it, or it was tried and has ended its workers."""


class Dispatcher:
    """Hosts of a fleet, and what they do; all of it is for the fleet's thread."""

    def __init__(self, fleet: Fleet, suite: Suite, progress: Progress, records: Sequence[HostRecord]) -> None:
        """`records` has hosts that have measured something before this began or went on."""
        self.all = {each.name: HostState(host=Host(record=each)) for each in records}
        self.jobs: dict[Job, None] = {}  # That have steps left, in their order
        self.sent_bytes = self.fetched_bytes = 0  # Of files that went to hosts, and that came
        self._fleet, self.suite, self._progress = fleet, suite, progress
        self._numbers = itertools.count(1)
        self._unusable: set[str] = set()  # addresses of workers that have gone, that hang, or that are strangers
        self._said: set[str] = set()
        self._is_begun = self._is_changed = False
        self._stirred: set[str] = set()  # hosts for which there may be something to do
        self._news = asyncio.Event()
        self._running: set[asyncio.Task[None]] = set()
        fleet.on_change = self._heard

    # --- who is here ---

    @property
    def here(self) -> list[HostState]:
        """The hosts that are here."""
        return [state for state in self.all.values() if state.address]

    def stir(self, name: str) -> None:
        """There may be something to do for a host."""
        self._stirred.add(name)
        self._news.set()

    def _heard(self) -> None:
        self._is_changed = True
        self._news.set()

    async def look(self) -> None:
        """See which hosts came, came back, or have gone; one at least has to be here, or may come back."""
        offers = await self._fleet.offers()
        for why in sorted(set(offers.refused.values()) - self._said):
            self._said.add(why)
            self._progress.note(f"Not used: {why}")
        for name, offer in offers.usable.items():
            if offer.address not in self._unusable:
                self._take(name, offer)
        for state in self.here:
            if state.name not in offers.usable:
                self._lose(state)
        self._is_begun = True
        self._require_fleet()

    def _take(self, name: str, offer: Offer) -> None:
        """A host is here."""
        host, state = Host.of(offer, self.suite), self.all.get(name)
        if state is not None and state.address == offer.address:
            return
        if state is not None and state.address:
            self._lose(state)
        if state is not None and state.host.is_another(host):
            self._unusable.add(offer.address)
            self._progress.note(f"{name} is another machine than before, {offer.machine_class}; it is not used")
            return
        if self._is_begun:
            self._progress.note(f"{name} has joined" if state is None else f"{name} is back")
        state = self.all.setdefault(name, HostState(host=host))
        state.host, state.offer, state.address = host, offer, offer.address
        state.gone, state.known = asyncio.Event(), set()
        self.stir(name)

    def _lose(self, state: HostState, why: str = "") -> None:
        """A host's worker has gone, or is no longer waited for; nobody knows at what it ended."""
        self._progress.note(f"{state.name} {why or f'has gone; its work waits for it for {RETURN_S:.0f} s'}")
        for job in state.in_hand:
            job.deaths += 1
        self._unusable.add(state.address)
        state.address, state.gone_since = "", time.monotonic()
        state.gone.set()

    def _require_fleet(self) -> None:
        if not self._fleet.is_connected:
            raise PlaceGone(f"{self._fleet.access}: the scheduler has gone")
        if all(state.is_lost for state in self.all.values()):
            raise PlaceGone(f"{self._fleet.access}: all hosts have gone; start one")

    # --- the loop ---

    async def loop(self, *, forever: bool = False) -> None:
        """Give hosts what they can do, until all jobs are done."""
        looked = 0.0
        try:
            while self.jobs or self._running or forever:
                if self._is_changed or time.monotonic() - looked > _LOOK_S:
                    await self._look_around()
                    looked = time.monotonic()
                while self._stirred:
                    self._give(self.all[self._stirred.pop()])
                await self._wait_for_news()
        finally:
            for task in self._running:
                task.cancel()
            await asyncio.gather(*self._running, return_exceptions=True)
            with contextlib.suppress(PlaceGone):
                await self._fleet.tell_waits({})

    async def _look_around(self) -> None:
        """See who is here, let others do what hosts had to do that are lost, and tell what waits."""
        self._require_fleet()
        if self._is_changed:
            self._is_changed = False
            await self.look()
        for job in [job for job in self.jobs if self.all[job.host].is_lost and not job.is_busy]:
            self._move(job, f"{job.host} has gone and did not come back within {RETURN_S:.0f} s")
        self._stirred.update(state.name for state in self.here)
        await self._fleet.tell_waits(Counter(self._why_waits(job) for job in self.jobs if not job.is_busy))

    def _why_waits(self, job: Job) -> str:
        if not job.is_ready:
            return "its builds are not all compiled yet"
        return f"its host {job.host} {'is busy' if self.all[job.host].address else 'has gone, and may come back'}"

    async def _wait_for_news(self) -> None:
        """Until something may have changed; what went wrong in a step is raised here."""
        waiting = asyncio.ensure_future(self._news.wait())
        try:  # asyncio.wait_for may overlook that it is cancelled, before Python 3.12
            await asyncio.wait({waiting}, timeout=_LOOK_S)
        finally:
            waiting.cancel()
        self._news.clear()
        for task in [task for task in self._running if task.done()]:
            self._running.discard(task)
            task.result()

    def _give(self, state: HostState) -> None:
        while state.address and (job := self._choose(state)) is not None:
            job.is_busy = True
            state.in_hand.append(job)
            task = asyncio.ensure_future(self._do(state, job))
            self._running.add(task)
            task.add_done_callback(lambda _: self._news.set())

    def _ready(self, resource: str) -> Iterator[Job]:
        return (job for job in self.jobs if job.resource == resource and job.is_ready and not job.is_busy)

    def _choose(self, state: HostState) -> Job | None:
        """A compile, of its own groups or else of others'; where none is left for it, a step of what it measures.

        So a host's compilers, which stand still while something is timed, have ended before.
        """
        measures = any(job.resource == MEASURE for job in state.in_hand)
        if state.offer is not None and len(state.in_hand) - measures < state.offer.cores:
            own = next((job for job in self._ready(COMPILE) if job.host == state.name), None)
            if own is not None or measures:
                return own
            left = (job for job in self._ready(COMPILE) if state.name not in job.refused)
            other = next((job for job in left if not unfit(job.need, state.host)), None)
            if other is not None:
                return other
        if state.in_hand:
            return None
        own_steps = (job for job in self._ready(MEASURE) if job.host == state.name)
        return min(own_steps, key=lambda job: job.rank, default=None)

    async def _do(self, state: HostState, job: Job) -> None:
        """The next step, on a host."""
        try:
            order = job.ask(state)
            value = None if order is None else await self._ask(state, job, order)
        except WorkerLost:
            if job.deaths >= MOST_DEATHS:
                job.fail(f"{state.name}: its worker ended {job.deaths} times while it did this", is_tried=True)
        except Refused as why:
            job.refused[state.name], job.host = str(why), state.name
            self._move(job, f"{state.name}: {why}")
        else:
            if job.todo:  # else it was given up meanwhile
                job.keep(job.todo.popleft(), value, order)
        finally:
            job.is_busy = False
            state.in_hand.remove(job)
            if not job.todo:
                self.jobs.pop(job, None)
            self.stir(state.name)

    def _move(self, job: Job, why: str) -> None:
        """Have another host do something; one that may come back is better than none: it is waited for."""
        others = [state for state in self.all.values() if state.name not in {*job.refused, job.host}]
        absent = [state.host for state in others if not state.address and state.offer and not state.is_lost]
        load = Counter(other.host for other in self.jobs)
        chosen = choose_after_loss(job.need, [state.host for state in others if state.address], load)
        chosen = chosen or choose_after_loss(job.need, absent, load)
        if chosen is None:
            said = {name: f"{name}: {refusal}" for name, refusal in job.refused.items()} | {job.host: why}
            job.fail(f"{'; '.join(said.values())}; no other host of the fleet can do it")
            self.jobs.pop(job, None)
            return
        self._progress.note(f"{job.name} moves to {chosen}: {why}")
        job.host = chosen
        job.moved(why)
        self.stir(chosen)

    # --- what a host is asked ---

    async def _ask(self, state: HostState, job: Job, order: Order) -> Any:
        """Have a host do a step; what came of it."""
        packed, address = order.packed, state.address
        async with state.sends:
            contents = await self._send(state, packed)
        arguments = packed.data, tuple(packed.files), contents
        own = {"key": f"{order.what} #{next(self._numbers)}", "resources": {job.resource: 1}}
        answer = await self._submit(state, order.task, *arguments, order=order, **own)
        if state.address == address:
            state.known.update(packed.files)
        await self._fetch(state, answer)
        return answer.value

    async def _submit(
        self, state: HostState, task: Callable[..., Answer], *arguments: Any, order: Order | None = None, **options: Any
    ) -> Answer:
        """What a task gives on a host; where it is of no order, it has to do with files."""
        address, gone = state.address, state.gone
        if not address:
            raise WorkerLost
        own = {"workers": [address], "allow_other_workers": False, "pure": False, "retries": 0}
        if order is None:
            own["priority"] = _FILES_FIRST
        # A future that nobody holds calls its task back.
        result = asyncio.ensure_future(_result(self._fleet.client.submit(task, *arguments, **own, **options)))
        lost = asyncio.ensure_future(gone.wait())
        within_s = None if order is None else order.limit_s
        try:
            done, _ = await asyncio.wait({result, lost}, timeout=within_s, return_when=asyncio.FIRST_COMPLETED)
            answer = result.result() if result.done() else None
        finally:
            for waiting in (result, lost):
                waiting.cancel()
        if not done and order is not None:
            self._lose(
                state,
                f"does not come to an end with {order.what} within {within_s:.0f} s; it gets nothing more until its "
                "worker starts again",
            )
            raise WorkerLost
        if answer is None:
            self._require_fleet()
            if state.address == address:  # Dask knows it first
                self._lose(state)
                self._is_changed = True
            raise WorkerLost
        if answer.trouble:
            raise Refused(answer.trouble)
        return answer

    async def _send(self, state: HostState, packed: Packed) -> dict[Item, bytes]:
        """Send large files that a host lacks; the small ones that it may lack, which go along with the task."""
        unknown = {item: path for item, path in packed.files.items() if item not in state.known}
        with reading():
            contents = small_ones(unknown)
            large = tuple(item for item in unknown if item not in contents)
            sender = os.urandom(6).hex()
            answer = await self._submit(state, tasks.lacking, large) if large else Answer(value=())
            for item in answer.value:
                for offset, size in item.chunks:
                    chunk = read_chunk(unknown[item], offset, size)
                    await self._submit(state, tasks.receive, item, offset, chunk, sender)
                    self.sent_bytes += size
        state.known.update(large)
        self.sent_bytes += sum(map(len, contents.values()))
        return contents

    async def _fetch(self, state: HostState, answer: Answer) -> None:
        """Have what a host made in this machine's cache too."""
        sender = os.urandom(6).hex()
        try:
            for item in lacking(answer.items):
                for offset, size in item.chunks:
                    chunk = answer.contents.get(item)
                    if chunk is None:
                        chunk = (await self._submit(state, tasks.send, item, offset, size)).value
                    write_chunk(item, offset, chunk, sender)
                    self.fetched_bytes += len(chunk)
        except Damaged as error:  # another host may do it
            raise Refused(str(error)) from error
        except OSError as error:
            raise RunError(
                f"{error.filename}: the cache cannot be written ({error.strerror}); make room or set HARNESS_CACHE"
            ) from error
        state.known.update(answer.items)


async def _result(future: Future[Any]) -> Answer | None:
    """What a task gave; None where its worker has gone."""
    try:
        answer: Answer = await future
    except (KilledWorker, concurrent.futures.CancelledError, OSError):
        return None
    except Exception as error:  # a defect, there or here: the host's trouble, with its words
        return Answer(trouble=one_line(f"{type(error).__name__}: {error}")[:_LONGEST])
    return answer
