"""What a fleet does now: facts of its scheduler -> a page, or JSON."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

from harness.fleet.connection import offers_in
from harness.fleet.offer import Offer
from harness.progress import duration
from harness.report.page import Column, Page, Part, Table, Warnings
from harness.text import plural
from harness.toolchain.devices import PROCESSORS

_UNSEEN_NOTICED_S = 15.0


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
    cpus = {version: toolchain.cpu and toolchain.cpu.name for version, toolchain in offer.toolchains.items()}
    return {
        "name": offer.name,
        "address": offer.address,
        "class": offer.machine_class,
        "cores": offer.cores,
        "devices": list(devices.values()),
        "toolchains": [
            {"version": version, "compiler_sha256": toolchain.compiler_sha256, "host_cpu": cpus[version]}
            for version, toolchain in offer.toolchains.items()
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
        parts.append(_hosts_table(hosts))
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


def _hosts_table(hosts: list[dict[str, Any]]) -> Table:
    cpus = [next((toolchain["host_cpu"] for toolchain in host["toolchains"]), None) for host in hosts]
    columns = (
        Column("host", [host["name"] for host in hosts], kind="name"),
        Column("does", [_does(host) for host in hosts], kind="sentence"),
        Column("class", [host["class"] for host in hosts], kind="sentence"),
        Column("compiles at once", [f"{host['cores']:,}" for host in hosts], kind="number", rank=4),
        Column("devices", [_devices(host) for host in hosts], rank=1),
        Column("toolchains", [", ".join(each["version"] for each in host["toolchains"]) for host in hosts], rank=3),
        Column("host CPU", [cpu or "" for cpu in cpus], rank=5),
    )
    silent = [host["unseen_s"] > _UNSEEN_NOTICED_S for host in hosts]
    return Table(title="Hosts", columns=columns, tones=["open" if is_silent else "" for is_silent in silent])


def _does(host: Mapping[str, Any]) -> str:
    """`measure rdb@cpu, for 12 s`."""
    pieces = [f"{each['what']}, for {duration(each['seconds'])}" for each in host["doing"]]
    does, unseen_s = "; ".join(pieces) or "nothing", host["unseen_s"]
    return f"{does} (silent for {duration(unseen_s)})" if unseen_s > _UNSEEN_NOTICED_S else does


def _devices(host: Mapping[str, Any]) -> str:
    return ", ".join(("CPU", *(device["name"] or device["uri"] for device in host["devices"])))
