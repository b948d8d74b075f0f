"""The hosts of a fleet during a run or a comparison: who is here, and work that is done on them, whatever happens.

Dask runs a task on the worker it is for, one that measures at a time; here is what Dask does not know: which files a
host lacks, that a machine came back under its name, for how long it is waited for, and when it hangs.
"""

import asyncio
import concurrent.futures
import itertools
import os
import time
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass, field
from typing import Any

from distributed.client import Future
from distributed.scheduler import KilledWorker

from harness.errors import PlaceGone, RunError
from harness.fleet import tasks
from harness.fleet.connection import Fleet
from harness.fleet.files import SMALL_BYTES, Damaged, Item, lacking_here, messages, reading, write_chunk
from harness.fleet.offer import Offer
from harness.fleet.packing import Packed
from harness.fleet.placing import Host
from harness.fleet.tasks import Answer
from harness.fleet.worker import COMPILE, MEASURE
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
CALLS, BESIDE_CALLS_S = 20, 600.0
_LOOK_S, _WAIT_S = 1.0, 0.1
_LONGEST = 300
_FILES_FIRST = 10  # of Dask's priorities


class WorkerLost(Exception):
    """The worker has gone that had something to do."""

    def __init__(self, *, was_at_it: bool) -> None:
        super().__init__()
        self.was_at_it = was_at_it  # Whether it was this that it measured or compiled then


class Refused(Exception):
    """A host cannot do something, though another may; the message says why."""


def limit_s(call_timeout_s: float, cases: int = 1, beside_s: float = 0.0) -> float:
    """Within how many seconds a piece of work surely ends: the sum of its processes' limits."""
    return CALLS * call_timeout_s * cases + beside_s + BESIDE_CALLS_S


def why_lost(host: str) -> str:
    """What is said of a host that is no longer waited for."""
    return f"{host} has gone and did not come back within {RETURN_S:.0f} s"


@dataclass(kw_only=True, eq=False)
class HostState:
    """A host, now."""

    host: Host
    offer: Offer | None = None  # None where it has not been here since this run began or went on
    address: str = ""  # Of its worker, another one after each start; "": it is not here
    gone_since: float = field(default_factory=time.monotonic)  # By the monotonic clock, in seconds
    compiling: int = 0  # Compiles that it has in hand
    # Those of them for other hosts: they are not held still, so nothing is timed until they are done
    helping: int = 0
    timing: int = 0  # What it has in hand at which its compilers stand still
    # What takes its right to measure, in order: what it is, for people, and within how many seconds it surely ends
    measuring: dict[int, tuple[str, float]] = field(default_factory=dict)
    turn_since: float = 0.0  # Since when the first of these is at its turn, by the monotonic clock, in seconds
    was_at: int = 0  # The one at which its last worker ended
    known: set[Item] = field(default_factory=set)  # Files that its worker has
    gone: asyncio.Event = field(default_factory=asyncio.Event)  # Set once its worker has gone
    news: asyncio.Event = field(default_factory=asyncio.Event)  # Set once there may be something for it to do
    sends: asyncio.Lock = field(default_factory=asyncio.Lock)  # Held by who sends files there

    @property
    def name(self) -> str:
        """The host's."""
        return self.host.name

    @property
    def is_lost(self) -> bool:
        """Whether it has been away for too long."""
        return not self.address and time.monotonic() - self.gone_since > RETURN_S

    def arrive(self, host: Host, offer: Offer) -> None:
        """Its worker is here, which knows nothing of what another one had."""
        self.host, self.offer, self.address = host, offer, offer.address
        self.gone, self.known = asyncio.Event(), set()
        self.news.set()

    async def wait_for_news(self) -> None:
        """Wait until there may be something for it to do; a second at most."""
        self.news.clear()
        await _hear(self.news)

    def record(self, suite: Suite) -> HostRecord:
        """What a run keeps of it."""
        assert self.offer is not None  # noqa: S101 (it measures)
        there = {name: device for name, device in self.offer.devices(suite).items() if device.missing is None}
        peers = {peer.name: peer.version for peer in self.offer.peers if peer.version is not None}
        environment: dict[str, dict[str, Any]] = {
            **self.offer.environment,
            "devices": {name: device.facts for name, device in there.items()},
            "device_names": {name: device.name for name, device in there.items() if device.name},
            "peers": {peer.case_label: peers[peer.name] for peer in suite.peers if peer.name in peers},
        }
        return HostRecord(name=self.name, environment=environment)


class Hosts:
    """The hosts of a fleet; all of it is for coroutines in the fleet's thread."""

    def __init__(self, fleet: Fleet, suite: Suite, progress: Progress, waiting: str) -> None:
        """`waiting` is what waits for a host that has gone, as in `work waits`."""
        self.all: dict[str, HostState] = {}  # Those that are here, or were, by name
        self.sent_bytes = self.fetched_bytes = 0  # Of files that went to hosts, and that came
        self._fleet, self._suite, self._progress, self._waiting = fleet, suite, progress, waiting
        self._numbers = itertools.count(1)
        self._unusable: set[str] = set()  # addresses of workers that have gone, that hang, or that are strangers
        self._said: dict[str, str] = {}
        self._news = asyncio.Event()
        self._is_begun = False
        fleet.on_change = self._heard

    @property
    def here(self) -> list[HostState]:
        """Those that are here."""
        return [state for state in self.all.values() if state.address]

    def recall(self, record: HostRecord) -> None:
        """A host as it was when it measured something, until it is here."""
        self.all[record.name] = HostState(host=Host.recalled(record, self._suite))

    # --- who is here ---

    def _heard(self, change: str, name: str) -> None:
        if change != "waits":
            self._news.set()
        elif name in self.all:
            self._progress.note(f"{name} waits for another harness that measures there")

    async def look(self) -> None:
        """See which hosts came, came back, or have gone."""
        offers = await self._fleet.offers()
        for name, why in offers.refused.items():
            if self._said.get(name) != why:
                self._said[name] = why
                self._progress.note(f"Not used: {why}")
        for name, offer in offers.usable.items():
            if offer.address not in self._unusable:
                self._take(name, offer)
        for state in self.here:
            if state.name not in offers.usable:
                self._lose(state)
        self._is_begun = True

    def _take(self, name: str, offer: Offer) -> None:
        """A host is here."""
        host, state = Host.of(offer, self._suite), self.all.get(name)
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
        if state is None:
            state = self.all[name] = HostState(host=host)
        state.arrive(host, offer)

    def _lose(self, state: HostState, why: str = "") -> None:
        """A host's worker has gone, or is no longer waited for."""
        waits = f"has gone; its {self._waiting} for it for {RETURN_S:.0f} s"
        self._progress.note(f"{state.name} {why or waits}")
        self._unusable.add(state.address)
        state.address, state.gone_since = "", time.monotonic()
        state.was_at = next(iter(state.measuring), 0)
        state.gone.set()

    async def watch(self, is_over: Callable[[], Awaitable[bool]]) -> None:
        """See who comes and goes, and give up hosts that hang, until it is over, which is asked once a second."""
        while not await is_over():
            await _hear(self._news)
            is_news = self._news.is_set()
            self._news.clear()
            self.require_fleet()
            if is_news:
                await self.look()
            for state in self.here:
                self._end_hanging(state)
            self.require_fleet()

    def wake(self, *_: object) -> None:
        """Let who watches look at once."""
        self._news.set()

    def _end_hanging(self, state: HostState) -> None:
        for what, limit_s in list(state.measuring.values())[:1]:
            if time.monotonic() - state.turn_since > limit_s:
                why = f"does not come to an end with {what} within {limit_s:.0f} s"
                self._lose(state, f"{why}; it gets nothing more until its worker starts again")

    def require_fleet(self) -> None:
        """See that the scheduler is there, and a host that may do something."""
        if not self._fleet.is_connected:
            raise PlaceGone(f"{self._fleet.access.address}: the scheduler has gone")
        if all(state.is_lost for state in self.all.values()):
            raise PlaceGone(f"{self._fleet.access.address}: all hosts have gone; start one")

    async def wait_for(self, state: HostState) -> bool:
        """Wait until a host is here; False: it did not come back in time."""
        while not state.address and not state.is_lost:
            await asyncio.sleep(_WAIT_S)
        self.require_fleet()
        return bool(state.address)

    # --- what they do ---

    async def compile(self, state: HostState, task: Callable[..., Answer], packed: Packed, name: str) -> Any:
        """Have a host compile something; what came of it.

        Raises:
            WorkerLost: Its worker has gone.
            Refused: It cannot do it.
        """
        state.compiling += 1
        try:
            return await self._do(state, task, packed, name, COMPILE)
        except WorkerLost:  # nobody knows at which of several compiles it was
            raise WorkerLost(was_at_it=True) from None
        finally:
            state.compiling -= 1
            state.news.set()

    async def measure(
        self, state: HostState, task: Callable[..., Answer], packed: Packed, name: str, limit_s: float
    ) -> Any:
        """Have a host do what takes its right to measure; as `compile`."""
        number = next(self._numbers)
        state.turn_since = state.turn_since if state.measuring else time.monotonic()
        state.measuring[number] = name, limit_s
        try:
            return await self._do(state, task, packed, name, MEASURE)
        except WorkerLost:
            raise WorkerLost(was_at_it=state.was_at == number) from None
        finally:
            del state.measuring[number]
            state.turn_since = time.monotonic()
            state.news.set()

    async def _do(self, state: HostState, task: Callable[..., Answer], packed: Packed, name: str, resource: str) -> Any:
        async with state.sends:
            await self._send(state, packed)
        key = f"{name} #{next(self._numbers)}"
        answer = await self._ask(state, task, packed.data, tuple(packed.files), key=key, resources={resource: 1})
        await self._fetch(state, answer)
        return answer.value

    async def _ask(self, state: HostState, task: Callable[..., Answer], *arguments: Any, **options: Any) -> Answer:
        address = state.address
        if not address:
            raise WorkerLost(was_at_it=False)
        own = {"workers": [address], "allow_other_workers": False, "pure": False, "retries": 0}
        # A future that nobody holds calls its task back.
        result = asyncio.ensure_future(_result(self._fleet.client.submit(task, *arguments, **own, **options)))
        gone = asyncio.ensure_future(state.gone.wait())
        try:
            await asyncio.wait({result, gone}, return_when=asyncio.FIRST_COMPLETED)
            answer = result.result() if result.done() else None
        finally:
            for waiting in (result, gone):
                waiting.cancel()
        if answer is None:
            raise self._loss_of(state, address)
        if answer.trouble:
            raise Refused(answer.trouble)
        return answer

    def _loss_of(self, state: HostState, address: str) -> Exception:
        """What has gone where a task has no answer."""
        if not self._fleet.is_connected:
            return PlaceGone(f"{self._fleet.access.address}: the scheduler has gone")
        if state.address == address:  # Dask knows it first
            self._lose(state)
            self._news.set()
        return WorkerLost(was_at_it=False)

    async def _send(self, state: HostState, packed: Packed) -> None:
        """Send what a host lacks."""
        unknown = tuple(item for item in packed.files if item not in state.known)
        lacking: Collection[Item] = unknown
        if sum(item.size for item in unknown) > SMALL_BYTES:  # else it is not worth asking
            lacking = (await self._ask(state, tasks.lacking, unknown)).value
        sender = os.urandom(6).hex()
        with reading():
            for message in messages({item: packed.files[item] for item in lacking}):
                await self._ask(state, tasks.receive, message, sender, priority=_FILES_FIRST)
                self.sent_bytes += sum(len(data) for *_, data in message)
        state.known.update(unknown)

    async def _fetch(self, state: HostState, answer: Answer) -> None:
        """Have what a host made in this machine's cache too."""
        sender = os.urandom(6).hex()
        try:
            for item in lacking_here(answer.items, state.name, "this machine"):
                for offset, size in item.chunks:
                    chunk = answer.contents.get(item)
                    if chunk is None:
                        chunk = (await self._ask(state, tasks.send, item, offset, size, priority=_FILES_FIRST)).value
                    write_chunk(item, offset, chunk, sender)
                    self.fetched_bytes += len(chunk)
        except Damaged as error:  # another host may do it
            raise Refused(str(error)) from error
        except OSError as error:
            raise RunError(
                f"{error.filename}: the cache cannot be written ({error.strerror}); make room or set HARNESS_CACHE"
            ) from error
        state.known.update(answer.items)


async def _hear(event: asyncio.Event) -> None:
    """Wait until an event is set; a second at most."""
    waiting = asyncio.ensure_future(event.wait())
    try:  # asyncio.wait_for may overlook that it is cancelled, before Python 3.12
        await asyncio.wait({waiting}, timeout=_LOOK_S)
    finally:
        waiting.cancel()


async def _result(future: Future[Any]) -> Answer | None:
    """What a task gave; None where its worker has gone."""
    try:
        answer: Answer = await future
    except (KilledWorker, concurrent.futures.CancelledError, OSError):
        return None
    except Exception as error:  # a defect, there or here: the host's trouble, with its words
        return Answer(trouble=one_line(f"{type(error).__name__}: {error}")[:_LONGEST])
    return answer


# --- What waits, for `harness fleet status` ---


def away(state: HostState) -> str:
    """Why something waits for a host that has gone."""
    return f"its host {state.name} has gone, and may come back"


def busy(state: HostState) -> str:
    """Why something waits for a host that is here."""
    return (
        f"its host {state.name} still compiles for other hosts" if state.helping else f"its host {state.name} is busy"
    )
