"""This machine's side of a fleet: Dask's client, the hosts that can be used, and why the others cannot."""

import asyncio
import concurrent.futures
import contextlib
import logging
import threading
import time
from collections.abc import Callable, Coroutine, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import dask
from distributed.client import Client

from harness.errors import PlaceGone, UsageError
from harness.fleet.access import Access, ask
from harness.fleet.offer import HOSTS_TOPIC, Offer, require_same_versions, usable_offer
from harness.fleet.scheduler import FACTS, FORGET_MESSAGES, WAITS_TOPIC

# A scheduler that has gone is noticed after so long, where Dask would try for half a minute.
_CONNECT_S = 10.0
# Records of hosts are put in the order of their clocks' times here and there; minutes do no harm.
CLOCK_TOLERANCE_S = 600.0
_LOOK_AGAIN_S = 1.0
_END_S = 10.0

_T = TypeVar("_T")


@dataclass(frozen=True, kw_only=True)
class Offers:
    """The hosts of a fleet, at one moment."""

    usable: Mapping[str, Offer]  # By name
    refused: Mapping[str, str]  # Why the others cannot be used, a sentence each, by name


class Fleet:
    """A fleet that this process asks for work; coroutines run in the thread of Dask's client."""

    def __init__(self, access: Access, client: Client) -> None:
        self.access, self.client = access, client
        self._loop: asyncio.AbstractEventLoop = client.sync(_own_loop)
        self.on_change: Callable[[], None] = lambda: None  # Called in the client's thread when a host has come or gone
        self._waits: Mapping[str, int] = {}
        client.subscribe_topic(HOSTS_TOPIC, lambda _: self.on_change())

    def run(self, work: Coroutine[Any, Any, _T]) -> _T:
        """Do something in the client's thread; where the user stops it, it has ended when this returns."""
        ended = threading.Event()

        async def whole() -> _T:
            try:
                return await work
            finally:
                ended.set()

        future = self.start(whole())
        try:
            return future.result()
        except BaseException:
            if future.cancel():
                ended.wait(_END_S)
            raise

    def start(self, work: Coroutine[Any, Any, _T]) -> concurrent.futures.Future[_T]:
        """Do something in the client's thread, and go on here."""
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    @property
    def is_connected(self) -> bool:
        """Whether the scheduler is there; where it is not, Dask's client looks for it for some seconds, then closes."""
        return str(self.client.status) == "running"

    async def offers(self) -> Offers:
        """Who is here now."""
        return offers_in(await self._ask(FACTS))

    def await_host(self, patience_s: float) -> Offers:
        """Who is here now; where nobody can be used, wait for a host, but no longer than so."""
        deadline = time.monotonic() + patience_s
        while not (found := self.run(self.offers())).usable and time.monotonic() < deadline:
            time.sleep(_LOOK_AGAIN_S)
        return found

    async def tell_waits(self, waits: Mapping[str, int]) -> None:
        """Let `harness fleet status` show how much has not begun, by why; it replaces what was told before."""
        if waits != self._waits:
            await self._ask("log_event", topic=f"{WAITS_TOPIC}{self.client.id}", msg=dict(waits))
            self._waits = waits

    async def _ask(self, operation: str, **message: Any) -> Any:
        scheduler = self.client.scheduler  # None once the client has given it up
        try:
            if scheduler is None:
                raise ConnectionError
            return await getattr(scheduler, operation)(**message)
        except OSError as error:
            raise PlaceGone(f"{self.access}: the scheduler has gone") from error


async def _own_loop() -> asyncio.AbstractEventLoop:
    return asyncio.get_running_loop()


@contextlib.contextmanager
def connect(access: Access, here: str = "this machine") -> Iterator[Fleet]:
    """Join a fleet, to ask it for work."""
    require_same_versions(ask(access, FACTS), str(access), here)
    for logger in ("distributed", "distributed.client"):  # Dask gives the second a level of its own
        logging.getLogger(logger).setLevel(logging.CRITICAL)  # what goes wrong is said by the harness
    settings = {**FORGET_MESSAGES, "distributed.comm.timeouts.connect": f"{_CONNECT_S} s"}
    with dask.config.set(settings):
        try:
            client = Client(
                str(access),
                security=access.security(),
                timeout=_CONNECT_S,
                set_as_default=False,
                direct_to_workers=False,  # hosts may be reached by the scheduler alone
            )
        except OSError as error:
            raise UsageError(f"{access}: the scheduler does not answer ({error}); see what it says") from error
        try:
            yield Fleet(access, client)
        finally:
            with contextlib.suppress(Exception):  # of a scheduler that has gone
                client.close(timeout=_END_S)


def offers_in(facts: Mapping[str, Any]) -> Offers:
    """The hosts in what a scheduler says, each with its offer or with why it cannot be used."""
    usable: dict[str, Offer] = {}
    refused: dict[str, str] = {}
    for host in facts["hosts"]:
        name, behind_s = str(host["name"]), float(host["clock_behind_s"])
        offer = usable_offer(name, str(host["offer"]))
        if isinstance(offer, str):
            refused[name] = offer
        elif abs(behind_s) > CLOCK_TOLERANCE_S:
            hours = f"{abs(behind_s) / 3600:.1f} h {'behind' if behind_s > 0 else 'ahead of'}"
            refused[name] = f"{name}: its clock is {hours} the scheduler's; set both by one time server"
        else:
            usable[name] = replace(offer, address=str(host["address"]))
    return Offers(usable=usable, refused=refused)
