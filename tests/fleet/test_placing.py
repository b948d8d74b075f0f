"""What hosts offer, and which host measures which group."""

import math
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.errors import UsageError
from harness.fleet.connection import offers_in
from harness.fleet.dispatch import HostState
from harness.fleet.offer import own_versions, require_same_versions
from harness.fleet.placing import (
    Host,
    Need,
    choose_after_loss,
    choose_for_idle,
    devices_of_fleet,
    place,
    unfit,
    why_nowhere,
)
from harness.machine.identity import machine_class
from tests.builders import a_device, a_suite
from tests.fleet.hosts import make_facts, make_offer, told


def a_host(name: str, *devices: str, **changes: object) -> Host:
    """A host that has these devices, or else cpu."""
    missing = dict.fromkeys(("cpu", "gpu"), "there is none") | dict.fromkeys(devices or ("cpu",), "")
    classes = dict.fromkeys(missing, "EPYC")
    host = Host(name=name, classes=classes, host_cpu="EPYC avx2", missing=missing, compilers={"3.13.0": "5e"})
    return replace(host, **changes)  # type: ignore[arg-type]


def a_group(model: str, device: str = "cpu", **changes: object) -> Need:
    """A group of IREE's cases alone."""
    return replace(Need(name=f"{model}@{device}", device=device, compilers={"3.13.0": "5e"}), **changes)  # type: ignore[arg-type]


_NAMES = st.lists(st.text("abcdefgh", min_size=1, max_size=3), unique=True, min_size=1, max_size=12)


def test_a_host_is_a_machine_and_not_a_name() -> None:
    host = a_host("slot-0", machine="5e")
    assert not host.is_another(a_host("slot-0", machine="5e"))
    assert not host.is_another(a_host("slot-0"))  # which does not say
    assert host.is_another(a_host("slot-0", machine="77"))
    assert host.is_another(replace(host, classes={"cpu": "Xeon"}))
    assert host.is_another(replace(host, host_cpu="Xeon"))


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


def test_a_group_goes_where_its_device_is() -> None:
    hosts = [a_host("a"), a_host("b", "gpu"), a_host("c")]
    placed = place([a_group("net", "gpu"), a_group("net"), a_group("mlp"), a_group("odd", "npu")], hosts)
    assert placed["net@gpu"] == "b"
    assert sorted([placed["net@cpu"], placed["mlp@cpu"]]) == ["a", "c"]
    assert "odd@npu" not in placed
    assert why_nowhere(a_group("odd", "npu"), hosts) == (
        "odd@npu: no host can measure it (a, b, c: it does not know npu)"
    )


@pytest.mark.parametrize(
    ("host", "group", "why"),
    [
        ({}, {}, ""),
        ({"compilers": {}}, {}, ""),  # it installs that release
        ({"host_cpu": "EPYC avx512"}, {}, "it has another CPU than the one that the modules are made for"),
        ({"classes": {"cpu": "Xeon"}}, {}, "it is of another class than the host that has begun (EPYC)"),
        ({"compilers": {"3.13.0": "aa"}}, {}, "its IREE 3.13.0 is another build than the client's"),
        ({}, {"peers": frozenset(["torch"])}, "it does not know torch"),
    ],
)
def test_what_makes_a_host_unfit(host: dict[str, Any], group: dict[str, Any], why: str) -> None:
    begun = a_group("net", cpu="EPYC avx2", machine_class="EPYC", **group)
    assert unfit(begun, a_host("a", **host)) == why


def test_an_idle_host_takes_the_last_of_the_longest_queue_that_fits() -> None:
    waiting = {"a": [a_group("one"), a_group("two"), a_group("three", "gpu")], "b": [a_group("four")]}
    assert choose_for_idle(a_host("c"), waiting) == "two@cpu"
    assert choose_for_idle(a_host("c", "npu"), waiting) is None
    assert choose_for_idle(a_host("c"), {"b": waiting["b"]}) is None


def test_two_gpus_beside_one_processor_are_two_classes() -> None:
    suite = a_suite(devices=(a_device("gpu", uri="cuda"), a_device("cpu", uri="local-sync")))
    host = Host.of(make_offer(), suite)
    assert host.classes["gpu"] == f"{host.classes['cpu']}, NVIDIA H100"
    record = HostState(host=host, offer=make_offer()).record(suite)
    assert Host.recalled(record, suite).classes == host.classes


def test_after_a_loss_the_host_with_least_to_do_takes_over() -> None:
    hosts = [a_host("a"), a_host("b"), a_host("c", classes={"cpu": "Xeon"})]
    begun = a_group("net", machine_class="EPYC")
    assert choose_after_loss(begun, hosts, {"a": 3, "b": 2}) == "b"
    assert choose_after_loss(begun, hosts[2:], {}) is None


def test_a_fleet_has_what_any_of_its_hosts_has() -> None:
    suite = a_suite(devices=(a_device("gpu", uri="cuda", on="host-b"), a_device("cpu"), a_device("npu", uri="hip")))
    found = devices_of_fleet(suite, [make_offer("host-a"), make_offer("host-b")])
    assert (found["gpu"].name, found["gpu"].missing) == ("NVIDIA H100", None)
    assert found["cpu"].missing is None
    assert found["npu"].missing == (
        "no host of the fleet has it (host-a: host-a was not asked for hip devices; "
        "host-b: host-b was not asked for hip devices)"
    )
    alone = devices_of_fleet(suite, [make_offer("host-a")])["gpu"].missing
    assert alone == "no host of the fleet has it (host-a: it is not what on = 'host-b' asks for)"


# --- What an asker makes of a host's offer ---


def test_a_class_in_the_users_words_stands_for_processor_cores_and_system() -> None:
    offer = make_offer("host-a")
    assert offer.machine_class == "AMD EPYC 7B13, 8 cores, Linux x86_64"
    said = make_offer(environment={**offer.environment, "machine": {"class": "rack 7"}})
    assert said.machine_class == "rack 7"
    assert machine_class({**said.environment, "device_names": {"gpu": "H100"}}, "gpu") == "rack 7, H100"


def test_a_suites_devices_are_found_on_a_host_elsewhere() -> None:
    devices = (
        a_device("cpu", uri="local-sync"),
        a_device("gpu", uri="cuda"),
        a_device("second", uri="cuda://1"),
        a_device("lavapipe", uri="vulkan", vulkan_driver="lavapipe"),
        a_device("hip", uri="hip"),
    )
    found = make_offer().devices(a_suite(devices=devices))
    missing = {name: presence.missing for name, presence in found.items()}
    assert missing["cpu"] is missing["gpu"] is None
    assert found["gpu"].name == "NVIDIA H100"
    assert missing["second"] == "no device cuda://1; cuda has cuda://GPU-1"
    assert missing["lavapipe"] == "no Vulkan device; install a Vulkan driver"
    assert missing["hip"] == "host-a was not asked for hip devices"


def test_a_host_that_cannot_be_used_says_why() -> None:
    offer, own = make_offer(), own_versions()
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


def test_a_scheduler_of_other_versions_is_refused() -> None:
    own = own_versions()
    require_same_versions({"versions": own}, "tls://bench:8786", "host-a")
    with pytest.raises(UsageError) as caught:
        require_same_versions({"versions": {**own, "Dask": "1.0"}}, "tls://bench:8786", "host-a")
    assert str(caught.value) == (
        f"tls://bench:8786 and host-a differ: host-a has Dask {own['Dask']} instead of 1.0; install the same on both"
    )
