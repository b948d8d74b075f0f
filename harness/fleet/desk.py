"""Gives orders to hosts with the files that they need, and takes what comes back, one event at a time.

Files go and come in threads of their own, so that whoever decides never waits for them. What an order's host has
already is not asked again, as long as its worker lives.
"""

from __future__ import annotations

import itertools
import queue
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError, ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

from distributed.client import Future
from distributed.scheduler import KilledWorker

from harness.errors import RunError
from harness.fleet import tasks
from harness.fleet.connection import Fleet, HostChange
from harness.fleet.files import (
    SMALL_BYTES,
    Damaged,
    Item,
    Luggage,
    bundles,
    fresh_sender,
    lacking_here,
    unreadable,
    write_chunk,
)
from harness.fleet.orders import Checked, Compiled, Trouble
from harness.text import one_line

# More than the orders that a few frozen hosts hold up until they are given up.
_MESSENGERS = 64
_LONGEST = 300
_ASAP = 10  # of Dask's priorities: files before what they are for


@dataclass(frozen=True, kw_only=True)
class Answered:
    """An order has come to an end; the files that it names have come too."""

    ticket: int
    value: Any


@dataclass(frozen=True, kw_only=True)
class Died:
    """The worker has gone that had an order."""

    ticket: int
    address: str


@dataclass(frozen=True, kw_only=True)
class HostsChanged:
    """A host has joined or left."""


@dataclass(frozen=True, kw_only=True)
class HostWaits:
    """A host waits before it measures."""

    name: str

    @property
    def sentence(self) -> str:
        """For people."""
        return f"{self.name} waits for another harness that measures there"


@dataclass(frozen=True, kw_only=True)
class Failed:
    """What ends the run: this machine's disk is full, two hosts made two modules of one case, or a defect."""

    error: Exception


Event = Answered | Died | HostsChanged | HostWaits | Failed


class Gone(Exception):
    """The worker at an address has gone."""


class Desk:
    """Where orders go out and answers come in; a context manager, which calls back at its end what is still out."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet
        self._events: queue.Queue[Event] = queue.Queue()
        self._pool = ThreadPoolExecutor(max_workers=_MESSENGERS, thread_name_prefix="fleet")
        self._numbers = itertools.count(1)
        self._lock = threading.Lock()
        self._out: dict[str, set[Future[Any]]] = {}  # by address
        self._gone: set[str] = set()
        self._known: dict[str, set[Item]] = {}
        self.sent_bytes = self.fetched_bytes = 0
        fleet.listen(self._heard)

    def __enter__(self) -> Desk:
        return self

    def __exit__(self, *_: object) -> None:
        with self._lock:
            addresses = list(self._out)
        for address in addresses:
            self.forget(address)
        self._pool.shutdown(wait=False, cancel_futures=True)

    def give(
        self,
        host: str,
        address: str,
        task: Callable[..., Any],
        *args: Any,
        name: str,
        resource: str,
        luggage: Luggage | None = None,
    ) -> int:
        """Give an order to a host; a ticket, with which its end comes."""
        ticket = next(self._numbers)
        self._pool.submit(self._carry, ticket, host, address, task, args, f"{name} #{ticket}", resource, luggage)
        return ticket

    def take(self, timeout_s: float) -> Event | None:
        """The next event; None where nothing happens for so long."""
        try:
            return self._events.get(timeout=timeout_s)
        except queue.Empty:
            return None

    def forget(self, address: str) -> None:
        """A worker has gone: call back what it had."""
        with self._lock:
            self._gone.add(address)
            self._known.pop(address, None)
            out = self._out.pop(address, set())
        if self._fleet.is_connected:
            for future in out:
                future.cancel()

    def _heard(self, change: HostChange) -> None:
        if change.change == "waits":
            self._events.put(HostWaits(name=change.name))
            return
        if change.change == "left":
            try:  # in Dask's own thread, which may wait for nothing
                self._pool.submit(self.forget, change.address)
            except RuntimeError:  # the desk is closed: a comparison has one for each side's run, then one for its rows
                return
        self._events.put(HostsChanged())

    def _carry(
        self,
        ticket: int,
        host: str,
        address: str,
        task: Callable[..., Any],
        args: Sequence[Any],
        name: str,
        resource: str,
        luggage: Luggage | None,
    ) -> None:
        try:
            if luggage is not None and (trouble := self._send(address, luggage)) is not None:
                self._events.put(Answered(ticket=ticket, value=trouble))
                return
            future = self._submit(address, task, *args, key=name, resources={resource: 1})
        except Gone:
            self._events.put(Died(ticket=ticket, address=address))
        except OSError as error:  # a file of this machine's own
            self._events.put(Failed(error=unreadable(error)))
        except Exception as error:
            self._events.put(self._unforeseen(ticket, address, error))
        else:
            future.add_done_callback(lambda done: self._come(ticket, host, address, done))

    def _come(self, ticket: int, host: str, address: str, future: Future[Any]) -> None:
        try:
            self._pool.submit(self._collect, ticket, host, address, future)
        except RuntimeError:  # the desk is closed
            return

    def _collect(self, ticket: int, host: str, address: str, future: Future[Any]) -> None:
        try:
            value = self._result(address, future)
            if isinstance(value, Compiled | Checked):
                value = self._fetch(host, address, value) or replace(value, contents={})
        except Gone:
            self._events.put(Died(ticket=ticket, address=address))
        except Damaged as error:  # another host may do it
            self._events.put(Answered(ticket=ticket, value=Trouble(message=str(error))))
        except OSError as error:
            message = (
                f"{error.filename}: the cache cannot be written ({error.strerror}); make room or set HARNESS_CACHE"
            )
            self._events.put(Failed(error=RunError(message)))
        except Exception as error:
            self._events.put(self._unforeseen(ticket, address, error))
        else:
            self._events.put(Answered(ticket=ticket, value=value))

    def _unforeseen(self, ticket: int, address: str, error: Exception) -> Event:
        """An order that came to no end; without this event it would be waited for."""
        if self._fleet.is_connected:
            return Failed(error=error)
        return Died(ticket=ticket, address=address)  # a client that is closed raises all kinds

    def _submit(self, address: str, task: Callable[..., Any], *args: Any, **options: Any) -> Future[Any]:
        with self._lock:
            if address in self._gone:
                raise Gone
        future = self._fleet.client.submit(
            task, *args, workers=[address], allow_other_workers=False, pure=False, retries=0, **options
        )
        with self._lock:
            self._out.setdefault(address, set()).add(future)
            is_gone = address in self._gone
        if is_gone:
            future.cancel()
        return future

    def _result(self, address: str, future: Future[Any]) -> Any:
        """What a task gave."""
        try:
            return future.result()
        except (KilledWorker, CancelledError, OSError) as error:
            raise Gone from error
        except Exception as error:  # a defect, there or here: the host's trouble, with its words
            return Trouble(message=one_line(f"{type(error).__name__}: {error}")[:_LONGEST])
        finally:
            with self._lock:
                self._out.get(address, set()).discard(future)

    def _ask(self, address: str, task: Callable[..., Any], *args: Any) -> Any:
        return self._result(address, self._submit(address, task, *args, priority=_ASAP))

    def _count(self, sent: int = 0, fetched: int = 0) -> None:
        """Add bytes that have gone, in whichever thread."""
        with self._lock:
            self.sent_bytes += sent
            self.fetched_bytes += fetched

    def _send(self, address: str, luggage: Luggage) -> Trouble | None:
        """Send what a host lacks; why it cannot have it."""
        with self._lock:
            known = self._known.setdefault(address, set())
            unknown = tuple(item for item in luggage.items if item not in known)
        if not unknown:
            return None
        lacking = unknown
        if sum(item.size for item in unknown) > SMALL_BYTES:  # else it is not worth asking
            lacking = self._ask(address, tasks.lacking, unknown)
            if isinstance(lacking, Trouble):
                return lacking
        sender = fresh_sender()
        for bundle in bundles(lacking, SMALL_BYTES):
            if (trouble := self._send_bundle(address, bundle, luggage, sender)) is not None:
                return trouble
        with self._lock:
            known.update(unknown)
        return None

    def _send_bundle(self, address: str, bundle: tuple[Item, ...], luggage: Luggage, sender: str) -> Trouble | None:
        if bundle[0].size <= SMALL_BYTES:
            contents = {item: luggage.files[item].read_bytes() for item in bundle}
            answer = self._ask(address, tasks.receive_small, contents, sender)
            self._count(sent=sum(item.size for item in bundle))
            return answer if isinstance(answer, Trouble) else None
        (item,) = bundle
        with luggage.files[item].open("rb") as file:
            for offset, size in item.chunks:
                if (trouble := self._send_chunk(address, item, offset, file.read(size), sender)) is not None:
                    return trouble
        return None

    def _send_chunk(self, address: str, item: Item, offset: int, chunk: bytes, sender: str) -> Trouble | None:
        try:
            part = self._fleet.client.scatter(chunk, workers=[address], direct=False, hash=False)
        except (OSError, ValueError, KeyError) as error:  # no such worker
            raise Gone from error
        answer = self._ask(address, tasks.receive, item, offset, part, sender)
        self._count(sent=len(chunk))
        return answer if isinstance(answer, Trouble) else None

    def _fetch(self, host: str, address: str, answer: Compiled | Checked) -> Trouble | None:
        """Have what a host made in this machine's cache too; why the host cannot send it."""
        sender = fresh_sender()
        for item in lacking_here(answer.items, host, "this machine"):
            for offset, size in item.chunks:
                chunk = answer.contents.get(item)
                if chunk is None:
                    chunk = self._ask(address, tasks.send, item, offset, size)
                if isinstance(chunk, Trouble):
                    return chunk
                write_chunk(item, offset, chunk, sender)
                self._count(fetched=len(chunk))
        with self._lock:
            self._known.setdefault(address, set()).update(answer.items)
        return None
