"""The asker's side of a fleet: Dask's client, the hosts that it can use, and why it cannot use the others."""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import dask
from distributed.client import Client

from harness.errors import UsageError
from harness.fleet.access import Access, ask
from harness.fleet.here import HOSTS_TOPIC, Change
from harness.fleet.offer import Offer, Versions, from_text, own_versions, versions_in
from harness.fleet.scheduler import FACTS, FORGET_MESSAGES, WAITS
from harness.fleet.waits import Waits
from harness.fleet.worker import require_same_versions

# A scheduler that has gone is noticed after so long, where Dask would try for half a minute.
_CONNECT_S = 10.0
# Records of hosts are put in the order of their clocks' times here and there; minutes do no harm.
CLOCK_TOLERANCE_S = 600.0
_LOOK_AGAIN_S = 1.0


@dataclass(frozen=True, kw_only=True)
class Hosts:
    """The hosts of a fleet, at one moment."""

    offers: Mapping[str, Offer]  # Of those that can be used, by name
    refused: Mapping[str, str]  # Why the others cannot be used, a sentence each, by name


@dataclass(frozen=True, kw_only=True)
class HostChange:
    """A host has joined or left, or waits; one whose worker was started again has left and joined."""

    change: Change  # `waits`: for another harness that measures on it
    name: str
    address: str  # Of its worker


class Fleet:
    """A fleet that this process asks for work, as long as `connect` holds it.

    Attributes:
        client: Dask's, to submit orders with.
        access: Where the scheduler is.
    """

    def __init__(self, access: Access, client: Client) -> None:
        self.access, self.client = access, client
        self._listeners: list[Callable[[HostChange], None]] = []
        self._lock = threading.Lock()
        self._waits: list[Waits] = []
        self._said: dict[str, str] = {}
        client.subscribe_topic(HOSTS_TOPIC, self._heard)

    @property
    def is_connected(self) -> bool:
        """Whether the scheduler is there; where it is not, Dask's client looks for it for some seconds, then closes."""
        return str(self.client.status) == "running"

    def hosts(self) -> Hosts:
        """Who is here now."""
        return hosts_of(self._ask(FACTS))

    def await_host(self, patience_s: float) -> None:
        """Wait until a host is here that can be used, but no longer than so, and only as long as the scheduler is."""
        deadline = time.monotonic() + patience_s
        with contextlib.suppress(UsageError):
            while not self.offers() and time.monotonic() < deadline:
                time.sleep(_LOOK_AGAIN_S)

    def offers(self) -> Mapping[str, Offer]:
        """The offers of the hosts that can be used, by name."""
        return self.hosts().offers

    def refused(self) -> Mapping[str, str]:
        """Why other hosts cannot be used, a sentence each, by name."""
        return self.hosts().refused

    def listen(self, listener: Callable[[HostChange], None]) -> None:
        """Tell somebody of every host that joins, leaves or waits from now on, in the thread of Dask's client."""
        with self._lock:
            self._listeners.append(listener)

    def tell_waits(self, waits: Sequence[Waits]) -> None:
        """Let `harness fleet status` show what this asker has not begun, and why; it replaces what was told before."""
        if list(waits) != self._waits:
            self._ask(WAITS, client=self.client.id, waits=list(waits))
            self._waits = list(waits)

    def unsaid(self, refused: Mapping[str, str]) -> list[str]:
        """Of the reasons why hosts cannot be used, by name, those that this was not asked for before."""
        news = [why for name, why in refused.items() if self._said.get(name) != why]
        self._said.update(refused)
        return news

    def _ask(self, operation: str, **message: Any) -> Any:
        scheduler = self.client.scheduler  # None once the client has given it up
        try:
            if scheduler is None:
                raise ConnectionError("it was not found again")
            return self.client.sync(getattr(scheduler, operation), **message)
        except OSError as error:
            raise UsageError(f"{self.access.address}: the scheduler has gone ({error}); start it again") from error

    def _heard(self, event: tuple[float, Mapping[str, Any]]) -> None:
        _, told = event
        change = HostChange(change=told["change"], name=str(told["name"]), address=str(told["address"]))
        with self._lock:
            listeners = list(self._listeners)
        for listener in listeners:
            listener(change)


@contextlib.contextmanager
def connect(access: Access, here: str = "this machine") -> Iterator[Fleet]:
    """Join a fleet as an asker."""
    require_same_versions(ask(access, FACTS), str(access.address), here)
    for logger in ("distributed", "distributed.client"):  # Dask gives the second a level of its own
        logging.getLogger(logger).setLevel(logging.CRITICAL)  # the asker says itself what goes wrong
    with dask.config.set({**FORGET_MESSAGES, "distributed.comm.timeouts.connect": f"{_CONNECT_S} s"}):
        try:
            client = Client(
                str(access.address),
                security=access.security(),
                timeout=_CONNECT_S,
                set_as_default=False,
                direct_to_workers=False,  # hosts may be reached by the scheduler alone
            )
        except OSError as error:
            raise UsageError(f"{access.address}: the scheduler does not answer ({error}); see what it says") from error
        with client:
            yield Fleet(access, client)


def hosts_of(facts: Mapping[str, Any]) -> Hosts:
    """The hosts in what a scheduler says, each with its offer or with why it cannot be used."""
    offers: dict[str, Offer] = {}
    refused: dict[str, str] = {}
    for host in facts["hosts"]:
        offer = usable_offer(host, own_versions())
        if isinstance(offer, Offer):
            offers[offer.name] = offer
        else:
            refused[str(host["name"])] = offer
    return Hosts(offers=offers, refused=refused)


def usable_offer(host: Mapping[str, Any], own: Versions) -> Offer | str:
    """A host's offer, or why it cannot be used, as a sentence."""
    name, text = host["name"], str(host["offer"])
    try:
        differences = versions_in(text).differences(own)
    except ValueError:
        return f"{name}: a Dask worker, and no host of the harness; start it with `harness fleet worker`"
    if differences:
        return f"{name} and this machine differ: {name} has {', '.join(differences)}; install the same on both"
    behind_s = float(host["clock_behind_s"])
    if abs(behind_s) > CLOCK_TOLERANCE_S:
        ahead = "behind" if behind_s > 0 else "ahead of"
        return f"{name}: its clock is {abs(behind_s) / 3600:.1f} h {ahead} the scheduler's; set both by one time server"
    try:
        return from_text(text)
    except ValueError:
        return f"{name}: what it offers cannot be read; install the same harness on it as here"
