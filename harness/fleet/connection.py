"""This machine's side of a fleet: Dask's client, which hosts can be used, why the others cannot, and what each does."""

import asyncio
import contextlib
import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import dask
from distributed.client import Client

from harness.errors import PlaceGone, UsageError
from harness.fleet.access import Access, ask
from harness.fleet.placing import HOSTS_TOPIC, Offer, require_same_versions, usable_offer
from harness.fleet.processes import FACTS, FORGET_MESSAGES, WAITS_TOPIC
from harness.progress import duration
from harness.report.page import Column, Page, Part, Table, Warnings
from harness.text import plural
from harness.toolchain.devices import PROCESSORS

# A scheduler that has gone is noticed after so long, where Dask would try for half a minute.
_CONNECT_S = 10.0
# Records of hosts are put in the order of their clocks' times here and there; minutes do no harm.
CLOCK_TOLERANCE_S = 600.0
_LOOK_AGAIN_S, _UNSEEN_NOTICED_S = 1.0, 15.0
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
        self._loop: asyncio.AbstractEventLoop = client.loop.asyncio_loop  # type: ignore[union-attr]  # of tornado
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

        future = asyncio.run_coroutine_threadsafe(whole(), self._loop)
        try:
            return future.result()
        except BaseException:
            if future.cancel():
                ended.wait(_END_S)
            raise

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


@contextlib.contextmanager
def connect(access: Access) -> Iterator[Fleet]:
    """Join a fleet, to ask it for work."""
    require_same_versions(ask(access, FACTS), str(access), "this machine")
    for logger in ("distributed", "distributed.client"):  # Dask gives the second a level of its own
        logging.getLogger(logger).setLevel(logging.CRITICAL)  # what goes wrong is said by the harness
    with dask.config.set({**FORGET_MESSAGES, "distributed.comm.timeouts.connect": f"{_CONNECT_S} s"}):
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


def fleet_now(facts: Mapping[str, Any], address: str) -> dict[str, Any]:
    """What a scheduler's facts say of a fleet at one moment, as plain values: the document of `--format json`."""
    found = offers_in(facts)
    told = {str(host["name"]): host for host in facts["hosts"]}
    waits = sum((Counter(each) for each in facts["waits"]), Counter[str]())
    return {
        "address": address,
        "clients": facts["clients"],
        "hosts": [_host_now(offer, told[name]) for name, offer in sorted(found.usable.items())],
        "refused": [{"host": name, "why": why} for name, why in found.refused.items()],
        "waiting": [{"why": why, "count": count} for why, count in waits.items()],
    }


def _host_now(offer: Offer, told: Mapping[str, Any]) -> dict[str, Any]:
    probes = (*offer.drivers.values(), *(vulkan.probe for vulkan in offer.vulkan_drivers.values()))
    there = [(probe.driver, device) for probe in probes if probe.driver not in PROCESSORS for device in probe.devices]
    devices = {device.uri: {"driver": driver, "uri": device.uri, "name": device.name} for driver, device in there}
    return {
        "name": offer.name,
        "address": offer.address,
        "class": offer.machine_class,
        "cores": offer.cores,
        "devices": list(devices.values()),
        "toolchains": [
            {"version": version, "compiler_sha256": each.compiler_sha256, "host_cpu": each.cpu and each.cpu.name}
            for version, each in offer.toolchains.items()
        ],
        "doing": [{"what": key.rpartition(" #")[0], "seconds": seconds} for key, seconds in told["doing"]],
        "unseen_s": told["unseen_s"],
    }


def offer_text(offer: Offer) -> str:
    """What one host offers, for the log of its worker."""
    now = _host_now(offer, {"doing": [], "unseen_s": 0.0})
    cpus = [f"IREE {each['version']}, where host is {each['host_cpu'] or 'not known'}" for each in now["toolchains"]]
    said = [now["class"], _devices(now), *cpus, f"{plural(offer.cores, 'compile')} at once"]
    return f"{offer.name} offers: {'; '.join(said)}"


def status_page(now: Mapping[str, Any]) -> Page:
    """Hosts, what each does, and what waits."""
    hosts, waiting, clients = now["hosts"], now["waiting"], now["clients"]
    parts: list[Part] = []
    if now["refused"]:
        parts.append(Warnings([each["why"] for each in now["refused"]]))
    if hosts:
        cpus = [next((toolchain["host_cpu"] for toolchain in host["toolchains"]), None) for host in hosts]
        columns: tuple[Column, ...] = (
            Column("host", [host["name"] for host in hosts], kind="name"),
            Column("does", [_does(host) for host in hosts], kind="sentence"),
            Column("class", [host["class"] for host in hosts], kind="sentence"),
            Column("compiles at once", [f"{host['cores']:,}" for host in hosts], kind="number", rank=4),
            Column("devices", [_devices(host) for host in hosts], rank=1),
            Column("toolchains", [", ".join(each["version"] for each in host["toolchains"]) for host in hosts], rank=3),
            Column("host CPU", [cpu or "" for cpu in cpus], rank=5),
        )
        parts.append(Table(title="Hosts", columns=columns))
    if waiting:
        columns = (
            Column("number", [f"{each['count']:,}" for each in waiting], kind="number"),
            Column("wait because", [each["why"] for each in waiting], kind="sentence"),
        )
        parts.append(Table(title="Waiting", columns=columns, most=40))
    at_work, waits = sum(bool(host["doing"]) for host in hosts), sum(each["count"] for each in waiting)
    counts = [
        f"{plural(len(hosts), 'host')}, {at_work:,} at work"
        if hosts
        else "no host, start one with `harness fleet worker`",
        f"{plural(clients, 'run')} connected" if clients else "no run connected",
        f"{waits:,} waiting" if waits else "nothing waits",
    ]
    return Page(verdict=f"{now['address']}: {'; '.join(counts)}.", parts=parts)


def _does(host: Mapping[str, Any]) -> str:
    """`measure rdb@cpu, for 12 s`."""
    pieces = [f"{each['what']}, for {duration(each['seconds'])}" for each in host["doing"]]
    does, unseen_s = "; ".join(pieces) or "nothing", host["unseen_s"]
    return f"{does} (silent for {duration(unseen_s)})" if unseen_s > _UNSEEN_NOTICED_S else does


def _devices(host: Mapping[str, Any]) -> str:
    return ", ".join(("CPU", *(device["name"] or device["uri"] for device in host["devices"])))
