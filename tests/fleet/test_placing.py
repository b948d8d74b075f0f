"""What hosts offer, which host measures which group, and what `harness fleet status` shows of them."""

import json
import math
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.errors import UsageError
from harness.fleet import placing
from harness.fleet.connection import fleet_now, offer_text, offers_in, status_page
from harness.fleet.placing import Host, Need, OfferedToolchain, place, unfit
from harness.records.run import HostRecord
from harness.report.data import to_json
from harness.report.terminal import to_terminal
from tests.builders import a_device, a_suite
from tests.fleet.scripted import make_facts, make_offer, told


def a_host(name: str, *devices: str, cpu: str = "EPYC", kind: str = "EPYC", **changes: Any) -> Host:
    """A host that has these devices, or else cpu."""
    missing = dict.fromkeys(("cpu", "gpu"), "there is none") | dict.fromkeys(devices or ("cpu",), "")
    tools = {"3.13.0": OfferedToolchain(compiler_sha256="5e", cpu=None)}
    record = HostRecord(name=name, environment={"machine": {"class": kind}, "cpu": {"model": cpu, "flags": "avx2"}})
    return replace(Host(record=record, missing=missing, toolchains=tools), **changes)


def a_group(model: str, device: str = "cpu", **changes: Any) -> Need:
    """A group of IREE's cases alone."""
    return replace(Need(name=f"{model}@{device}", device=device, compilers={"3.13.0": "5e"}), **changes)


_NAMES = st.lists(st.text("abcdefgh", min_size=1, max_size=3), unique=True, min_size=1, max_size=12)


@given(models=_NAMES, hosts=_NAMES, gone=st.integers(0, 11))
def test_groups_are_shared_out_and_stay_where_they_are(models: list[str], hosts: list[str], gone: int) -> None:
    groups, there = [a_group(model) for model in models], [a_host(name) for name in hosts]
    placed = place(groups, there)
    assert set(placed) == {group.name for group in groups}
    assert max(list(placed.values()).count(name) for name in hosts) <= math.ceil(len(groups) / len(hosts))
    assert place(groups[::-1], there[::-1]) == placed  # the order says nothing
    left = [host for host in there if host.name != hosts[gone % len(hosts)]]
    again = place(groups, left, placed)
    assert all(again[name] == host for name, host in placed.items() if host in {each.name for each in left})
    assert set(again.values()) <= {host.name for host in left}


def test_a_group_goes_where_its_device_is_and_after_a_loss_to_who_has_least_to_do() -> None:
    hosts = [a_host("a"), a_host("b", "gpu"), a_host("c")]
    placed = place([a_group("net", "gpu"), a_group("net"), a_group("mlp"), a_group("odd", "npu")], hosts)
    assert placed["net@gpu"] == "b"
    assert sorted([placed["net@cpu"], placed["mlp@cpu"]]) == ["a", "c"]
    assert "odd@npu" not in placed
    assert placing.why_nowhere(a_group("odd", "npu"), hosts) == (
        "odd@npu: no host can measure it (a, b, c: it does not know npu)"
    )
    assert placing.choose_after_loss(a_group("net"), hosts, {"a": 3, "b": 0, "c": 2}) == "c"
    assert placing.choose_after_loss(a_group("net"), hosts[1:2], {}) is None


@pytest.mark.parametrize(
    ("host", "group", "why"),
    [
        ({}, {}, ""),
        ({"toolchains": {}}, {}, ""),  # it installs that release
        ({}, {"compilers": {"3.13.0+local.build.9f3a2c": "5e"}}, "it has no 3.13.0+local.build.9f3a2c"),
        ({"cpu": "EPYC 2"}, {}, "it has another CPU than the one that the modules are made for"),
        ({"kind": "Xeon"}, {}, "it is of another class than the host that has begun (EPYC)"),
        ({}, {"compilers": {"3.13.0": "aa"}}, "its IREE 3.13.0 is another build than the client's"),
        ({}, {"peers": frozenset(["torch"])}, "it does not know torch"),
    ],
)
def test_what_makes_a_host_unfit(host: dict[str, Any], group: dict[str, Any], why: str) -> None:
    begun = a_group("net", cpu="EPYC avx2", machine_class="EPYC", **group)
    assert unfit(begun, a_host("a", **host)) == why


# --- What an asker makes of a host's offer ---


def test_a_class_has_the_device() -> None:
    suite = a_suite(devices=(a_device("gpu", uri="cuda"), a_device("cpu", uri="local-sync")))
    offer = make_offer()
    host = Host.of(offer, suite)
    assert host.class_with("cpu") == offer.machine_class == "AMD EPYC 7B13, 8 cores, Linux x86_64"
    assert host.class_with("gpu") == f"{offer.machine_class}, NVIDIA H100"


def test_a_fleet_has_what_any_of_its_hosts_has() -> None:
    devices = (
        a_device("cpu", uri="local-sync"),
        a_device("gpu", uri="cuda", on="host-b"),
        a_device("second", uri="cuda://1"),
        a_device("lavapipe", uri="vulkan", vulkan_driver="lavapipe"),
        a_device("hip", uri="hip"),
    )
    suite = a_suite(devices=devices)
    found = placing.devices_of_fleet(suite, [make_offer("host-a"), make_offer("host-b")])
    assert (found["gpu"].name, found["gpu"].missing, found["cpu"].missing) == ("NVIDIA H100", None, None)
    assert found["hip"].missing == (
        "no host of the fleet has it (host-a: host-a was not asked for hip devices; "
        "host-b: host-b was not asked for hip devices)"
    )
    alone = {name: presence.missing for name, presence in placing.devices_of_fleet(suite, [make_offer()]).items()}
    assert alone.pop("cpu") is None
    for name, why in {
        "gpu": "it is not what on = 'host-b' asks for",
        "second": "no device cuda://1; cuda has cuda://GPU-1",
        "lavapipe": "no Vulkan device; install a Vulkan driver",
    }.items():
        assert alone[name] == f"no host of the fleet has it (host-a: {why})"


def test_a_host_that_cannot_be_used_says_why() -> None:
    offer, own = make_offer(), placing.own_versions()
    other = replace(offer, versions={**own, "harness": "9.0", "Python": "3.99"})
    differ = (
        f"host-a and this machine differ: host-a has harness 9.0 instead of {own['harness']}, Python 3.99 instead of"
        f" {own['Python']}; install the same on both"
    )
    faults = {
        differ: told(other),
        "and no host of the harness": told(offer, offer=None),
        "its clock is 3.0 h behind the scheduler's": told(offer, clock_behind_s=10_800.0),
        "its clock is 3.0 h ahead of the scheduler's": told(offer, clock_behind_s=-10_800.0),
    }
    for words, host in faults.items():
        found = offers_in(make_facts(host))
        assert not found.usable
        assert words in found.refused["host-a"]
    placing.require_same_versions({"versions": own}, "tls://bench:8786", "host-a")
    with pytest.raises(UsageError, match=r"tls://bench:8786 and host-a differ: host-a has Dask .* instead of 1.0;"):
        placing.require_same_versions({"versions": {**own, "Dask": "1.0"}}, "tls://bench:8786", "host-a")


# --- What is shown ---


def test_status_shows_hosts_what_each_does_and_what_waits() -> None:
    facts = make_facts(
        told(make_offer("host-a"), doing=[["compile rdb/stock@cpu #7", 10.0], ["measure mlp@cpu #6", 25.0]]),
        told(make_offer("host-b"), unseen_s=40.0),
        told(make_offer("worker-9"), offer=None),
        clients=1,
        waits=[{"its host host-b is busy": 11}, {"its host host-b is busy": 1, "its host host-d has gone": 1}],
    )
    now = fleet_now(facts, "tls://bench:8786")
    lines = [" ".join(line.split()) for line in to_terminal(status_page(now), width=200, color=False).splitlines()]
    assert lines[0] == "tls://bench:8786: 2 hosts, 1 at work; 1 run connected; 13 waiting."
    text = " ".join(lines)
    for sentence in (
        "worker-9: a Dask worker, and no host of the harness; start it with `harness fleet worker`",
        "compile rdb/stock@cpu, for 10 s; measure mlp@cpu, for 20 s",
        "nothing (silent for 40 s)",
        "AMD EPYC 7B13, 8 cores, Linux",
        "CPU, NVIDIA H100",
        "12 its host host-b is busy",
    ):
        assert sentence in text
    document = json.loads(to_json(now))
    assert [host["name"] for host in document["hosts"]] == ["host-a", "host-b"]
    assert document["hosts"][0]["doing"][1] == {"what": "measure mlp@cpu", "seconds": 25.0}
    assert document["hosts"][0]["devices"] == [{"driver": "cuda", "uri": "cuda://GPU-1", "name": "NVIDIA H100"}]
    assert document["refused"][0]["host"] == "worker-9"
    assert status_page(fleet_now(make_facts(), "tls://bench:8786")).verdict == (
        "tls://bench:8786: no host, start one with `harness fleet worker`; no run connected; nothing waits."
    )
    assert offer_text(make_offer()) == (
        "host-a offers: AMD EPYC 7B13, 8 cores, Linux x86_64; CPU, NVIDIA H100; IREE 3.13.0, where host is znver3;"
        " 8 compiles at once"
    )
