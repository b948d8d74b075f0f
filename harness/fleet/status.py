"""What a fleet does now: facts of its scheduler -> hosts, what waits and why -> a page, or JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from harness.fleet.connection import hosts_of
from harness.fleet.offer import Offer
from harness.fleet.waits import Waits
from harness.progress import duration
from harness.report.data import to_json
from harness.report.page import Bullets, Column, Link, Page, Paragraph, Part, Table, Warnings
from harness.text import plural
from harness.toolchain.devices import PROCESSORS

_UNSEEN_NOTICED_S = 15.0
_VERBS = {"measure": "measures", "compile": "compiles", "check": "checks", "wait": "waits"}
# What a host does one at a time.
_TAKE_TURNS = ("measure", "check")
# Why something waits, by the words of harness.fleet.waits and of the scheduler.
_WHY_ITS_HOST = {
    "gone": "its host {host} has gone",
    "away": "its host {host} has gone, and may come back",
    "helps": "its host {host} still compiles for other hosts",
}
_WHY = {
    "lacking": "no host has what it takes",
    "away": "all hosts that may do it have gone, and may come back",
    "builds": "its builds are not all compiled yet",
    "cores": "all hosts that may do it compile or measure",
    "still": "all hosts that may do it measure, so compilers stand still",
    "queued": "all hosts are busy",
}
_ASTRAY = ("gone", "away", "lacking")  # what nobody is at comes first in a table that shows only so many


@dataclass(frozen=True, kw_only=True)
class Piece:
    """A piece of work that a host is at."""

    what: str  # `measure`, `compile`, `check`, `wait`; "" where only Dask's name of the task is known
    of: str  # The group, the case, or the task
    seconds: float | None  # For how long, by the scheduler's clock; None where nobody said

    @property
    def words(self) -> str:
        """`measures rdb@cpu, for 12 s`."""
        did = f"{_VERBS.get(self.what, self.what)} {self.of}".strip()
        return did if self.seconds is None else f"{did}, for {duration(self.seconds)}"


@dataclass(frozen=True, kw_only=True)
class HostNow:
    """A host and what it does."""

    offer: Offer
    doing: tuple[Piece, ...]
    unseen_s: float  # Seconds since it last gave a sign of life


@dataclass(frozen=True, kw_only=True)
class Waiting:
    """Work that does not run."""

    what: str  # The first few by name
    why: str  # As a clause: `host-a measures another group`
    count: int = 1  # How many there are of it


@dataclass(frozen=True, kw_only=True)
class FleetNow:
    """A fleet at one moment."""

    address: str
    dashboard: str  # Address of Dask's pages; "": it has none
    hosts: tuple[HostNow, ...]
    refused: Mapping[str, str]  # Why hosts that are there cannot be used, by name
    waiting: tuple[Waiting, ...]
    askers: int  # How many processes ask it for work


def fleet_now(facts: Mapping[str, Any], address: str) -> FleetNow:
    """What a scheduler's facts say."""
    found = hosts_of(facts)
    records = {str(host["name"]): host for host in facts["hosts"]}
    hosts = tuple(
        HostNow(
            offer=offer,
            doing=_doing(records[name], facts["now"]),
            unseen_s=float(records[name]["unseen_s"]),
        )
        for name, offer in sorted(found.offers.items())
    )
    turns = {host.offer.name: piece for host in hosts for piece in host.doing if piece.what in _TAKE_TURNS}
    waits = [each for told in facts["waits"] if (each := _without_begun(told, turns))["count"]]
    waiting = tuple(
        Waiting(what=_first_of(each), why=_why(each, turns), count=each["count"])
        for each in sorted(waits, key=lambda each: each["why"] not in _ASTRAY)
    )
    return FleetNow(
        address=address,
        dashboard=str(facts["dashboard"]),
        hosts=hosts,
        refused=found.refused,
        waiting=waiting,
        askers=int(facts["askers"]),
    )


def _doing(host: Mapping[str, Any], now_s: float) -> tuple[Piece, ...]:
    """What a host says of its work; where it says nothing, the tasks that Dask sees running."""
    behind_s = float(host["clock_behind_s"])
    said = [
        Piece(what=str(what), of=str(of), seconds=max(0.0, now_s - behind_s - float(since)))
        for what, of, since in host["doing"]
    ]
    return tuple(said or [Piece(what="", of=str(key), seconds=None) for key in host["executing"]])


def _without_begun(waits: Waits, turns: Mapping[str, Piece]) -> Waits:
    """What still waits: what an asker tells is a second old, and its host may be at it by now."""
    turn = turns.get(waits["host"])
    first = [name for name in waits["first"] if turn is None or name != turn.of]
    return {**waits, "first": first, "count": waits["count"] - len(waits["first"]) + len(first)}


def _first_of(waits: Waits) -> str:
    more = waits["count"] - len(waits["first"])
    return ", ".join(waits["first"]) + (f" and {more:,} more" if more else "")


def _why(waits: Waits, turns: Mapping[str, Piece]) -> str:
    host = waits["host"]
    if waits["why"] == "busy":
        return f"its host {host} {replace(turns[host], seconds=None).words if host in turns else 'is busy'}"
    return (_WHY_ITS_HOST if host else _WHY)[waits["why"]].format(host=host)


def devices_of(offer: Offer) -> list[dict[str, str]]:
    """The devices that a host has beside its own processor: driver, URI and name."""
    found = {
        device.uri: {"driver": probe.driver, "uri": device.uri, "name": device.name}
        for probe in (*offer.drivers.values(), *(vulkan.probe for vulkan in offer.vulkan_drivers.values()))
        if probe.driver not in PROCESSORS
        for device in probe.devices
    }
    return list(found.values())


def offer_page(offer: Offer) -> Page:
    """What one host offers, for the terminal or log of its worker, where a wide table would lose columns."""
    toolchains = [
        f"IREE {version}" + (f", where host is {found.cpu.name}" if found.cpu is not None else "")
        for version, found in offer.toolchains.items()
    ]
    return Page(
        verdict=f"{offer.name} offers:",
        parts=[
            Bullets(
                [
                    f"class: {offer.machine_class}",
                    f"devices: {_devices(offer)}",
                    f"toolchains: {'; '.join(toolchains)}",
                    f"compiles at once: {offer.cores:,}",
                ]
            )
        ],
    )


def status_page(now: FleetNow) -> Page:
    """Hosts, what each does, and what waits."""
    parts: list[Part] = []
    if now.refused:
        parts.append(Warnings(list(now.refused.values())))
    parts += _host_parts(now.hosts)
    if now.waiting:
        parts.append(_waiting_table(now.waiting))
    if now.dashboard:
        parts.append(Paragraph(("Dask's dashboard: ", Link(now.dashboard, now.dashboard))))
    return Page(verdict=_verdict(now), parts=parts)


def _verdict(now: FleetNow) -> str:
    at_work = sum(bool(host.doing) for host in now.hosts)
    waiting = sum(each.count for each in now.waiting)
    counts = [
        f"{plural(len(now.hosts), 'host')}, {at_work:,} at work"
        if now.hosts
        else "no host, start one with `harness fleet worker`",
        f"{plural(now.askers, 'run')} connected" if now.askers else "no run connected",
        f"{waiting:,} waiting" if waiting else "nothing waits",
    ]
    return f"{now.address}: {'; '.join(counts)}."


def _host_parts(hosts: Sequence[HostNow]) -> list[Part]:
    if not hosts:
        return []
    offers = [host.offer for host in hosts]
    columns = [
        Column("host", [offer.name for offer in offers], kind="name"),
        Column("does", [_does(host) for host in hosts], kind="sentence"),
        Column("class", [offer.machine_class for offer in offers], kind="sentence"),
        Column("compiles at once", [f"{offer.cores:,}" for offer in offers], kind="number", rank=4),
        Column("devices", [_devices(offer) for offer in offers], rank=1),
        Column("toolchains", [", ".join(offer.toolchains) for offer in offers], rank=3),
        Column("host CPU", [_cpu(offer) for offer in offers], rank=5),
    ]
    return [Table(title="Hosts", columns=columns, tones=["open" if _is_unseen(host) else "" for host in hosts])]


def _is_unseen(host: HostNow) -> bool:
    return host.unseen_s > _UNSEEN_NOTICED_S


def _does(host: HostNow) -> str:
    does = "; ".join(piece.words for piece in host.doing) or "nothing"
    return f"{does} (silent for {duration(host.unseen_s)})" if _is_unseen(host) else does


def _devices(offer: Offer) -> str:
    return ", ".join(("CPU", *(device["name"] or device["uri"] for device in devices_of(offer))))


def _cpu(offer: Offer) -> str:
    """The processor that `host` means to the compiler beside the harness."""
    cpu = next((toolchain.cpu for toolchain in offer.toolchains.values()), None)
    return "" if cpu is None else cpu.name


def _waiting_table(waiting: Sequence[Waiting]) -> Table:
    columns = (
        Column("what", [each.what for each in waiting], kind="name"),
        Column("number", [f"{each.count:,}" for each in waiting], kind="number"),
        Column("waits because", [each.why for each in waiting], kind="sentence"),
    )
    return Table(title="Waiting", columns=columns, most=40)


def status_json(now: FleetNow) -> str:
    """The same for programs, as one JSON document with `schema_version`."""
    return to_json(
        {
            "address": now.address,
            "dashboard": now.dashboard or None,
            "askers": now.askers,
            "hosts": [_host_record(host) for host in now.hosts],
            "refused": [{"host": name, "why": why} for name, why in now.refused.items()],
            "waiting": [{"what": each.what, "why": each.why, "count": each.count} for each in now.waiting],
        }
    )


def _host_record(host: HostNow) -> dict[str, Any]:
    offer = host.offer
    return {
        "name": offer.name,
        "address": offer.address,
        "class": offer.machine_class,
        "cores": offer.cores,
        "devices": devices_of(offer),
        "toolchains": [
            {
                "version": version,
                "compiler_sha256": toolchain.compiler_sha256,
                "host_cpu": None if toolchain.cpu is None else toolchain.cpu.name,
            }
            for version, toolchain in offer.toolchains.items()
        ],
        "doing": [{"what": piece.what, "of": piece.of, "seconds": piece.seconds} for piece in host.doing],
        "unseen_s": host.unseen_s,
    }
