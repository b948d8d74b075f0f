"""What a fleet does now: facts of its scheduler -> a page, or JSON."""

from collections.abc import Mapping
from typing import Any

from harness.fleet.connection import offers_in
from harness.fleet.offer import Offer
from harness.progress import duration
from harness.report.data import to_json
from harness.report.page import Bullets, Column, Link, Page, Paragraph, Part, Table, Warnings
from harness.text import plural
from harness.toolchain.devices import PROCESSORS

_UNSEEN_NOTICED_S = 15.0


def fleet_now(facts: Mapping[str, Any], address: str) -> dict[str, Any]:
    """What a scheduler's facts say of a fleet at one moment, as plain values: the document of `--format json`."""
    found = offers_in(facts)
    told = {str(host["name"]): host for host in facts["hosts"]}
    return {
        "address": address,
        "dashboard": facts["dashboard"] or None,
        "clients": facts["clients"],
        "hosts": [_host_now(offer, told[name]) for name, offer in sorted(found.usable.items())],
        "refused": [{"host": name, "why": why} for name, why in found.refused.items()],
        "waiting": [
            {"what": ", ".join([*each["first"], *_more(each)]), "why": each["why"], "count": each["count"]}
            for each in facts["waits"]
        ],
    }


def _more(waits: Mapping[str, Any]) -> list[str]:
    more = waits["count"] - len(waits["first"])
    return [f"{more:,} more"] if more else []


def _host_now(offer: Offer, told: Mapping[str, Any]) -> dict[str, Any]:
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
        "doing": [{"what": key.rpartition(" #")[0], "seconds": seconds} for key, seconds in told["doing"]],
        "unseen_s": told["unseen_s"],
    }


def devices_of(offer: Offer) -> list[dict[str, str]]:
    """The devices that a host has beside its own processor: driver, URI and name."""
    found = {
        device.uri: {"driver": probe.driver, "uri": device.uri, "name": device.name}
        for probe in (*offer.drivers.values(), *(vulkan.probe for vulkan in offer.vulkan_drivers.values()))
        if probe.driver not in PROCESSORS
        for device in probe.devices
    }
    return list(found.values())


def status_json(now: Mapping[str, Any]) -> str:
    """A fleet for programs, as one JSON document with `schema_version`."""
    return to_json(dict(now))


def offer_page(offer: Offer) -> Page:
    """What one host offers, for the terminal or log of its worker, where a wide table would lose columns."""
    toolchains = [
        f"IREE {version}" + (f", where host is {found.cpu.name}" if found.cpu is not None else "")
        for version, found in offer.toolchains.items()
    ]
    said = [
        f"class: {offer.machine_class}",
        f"devices: {_devices(devices_of(offer))}",
        f"toolchains: {'; '.join(toolchains)}",
        f"compiles at once: {offer.cores:,}",
    ]
    return Page(verdict=f"{offer.name} offers:", parts=[Bullets(said)])


def status_page(now: Mapping[str, Any]) -> Page:
    """Hosts, what each does, and what waits."""
    hosts, waiting = now["hosts"], now["waiting"]
    parts: list[Part] = []
    if now["refused"]:
        parts.append(Warnings([each["why"] for each in now["refused"]]))
    if hosts:
        parts.append(_hosts_table(hosts))
    if waiting:
        columns = (
            Column("what", [each["what"] for each in waiting], kind="name"),
            Column("number", [f"{each['count']:,}" for each in waiting], kind="number"),
            Column("waits because", [each["why"] for each in waiting], kind="sentence"),
        )
        parts.append(Table(title="Waiting", columns=columns, most=40))
    if now["dashboard"]:
        parts.append(Paragraph(("Dask's dashboard: ", Link(now["dashboard"], now["dashboard"]))))
    return Page(verdict=_verdict(now), parts=parts)


def _verdict(now: Mapping[str, Any]) -> str:
    hosts, clients = now["hosts"], now["clients"]
    at_work, waiting = sum(bool(host["doing"]) for host in hosts), sum(each["count"] for each in now["waiting"])
    counts = [
        f"{plural(len(hosts), 'host')}, {at_work:,} at work"
        if hosts
        else "no host, start one with `harness fleet worker`",
        f"{plural(clients, 'run')} connected" if clients else "no run connected",
        f"{waiting:,} waiting" if waiting else "nothing waits",
    ]
    return f"{now['address']}: {'; '.join(counts)}."


def _hosts_table(hosts: list[dict[str, Any]]) -> Table:
    cpus = [next((toolchain["host_cpu"] for toolchain in host["toolchains"]), None) for host in hosts]
    columns = (
        Column("host", [host["name"] for host in hosts], kind="name"),
        Column("does", [_does(host) for host in hosts], kind="sentence"),
        Column("class", [host["class"] for host in hosts], kind="sentence"),
        Column("compiles at once", [f"{host['cores']:,}" for host in hosts], kind="number", rank=4),
        Column("devices", [_devices(host["devices"]) for host in hosts], rank=1),
        Column("toolchains", [", ".join(each["version"] for each in host["toolchains"]) for host in hosts], rank=3),
        Column("host CPU", [cpu or "" for cpu in cpus], rank=5),
    )
    return Table(
        title="Hosts",
        columns=columns,
        tones=["open" if host["unseen_s"] > _UNSEEN_NOTICED_S else "" for host in hosts],
    )


def _does(host: Mapping[str, Any]) -> str:
    """`measure rdb@cpu, for 12 s`."""
    pieces = [f"{each['what']}, for {duration(each['seconds'])}" for each in host["doing"]]
    does, unseen_s = "; ".join(pieces) or "nothing", host["unseen_s"]
    return f"{does} (silent for {duration(unseen_s)})" if unseen_s > _UNSEEN_NOTICED_S else does


def _devices(devices: list[dict[str, str]]) -> str:
    return ", ".join(("CPU", *(device["name"] or device["uri"] for device in devices)))
