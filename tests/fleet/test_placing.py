"""Which host measures which group."""

from __future__ import annotations

import math
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from harness.fleet.hosts import HostState
from harness.fleet.placing import (
    Group,
    Host,
    choose_after_loss,
    choose_for_idle,
    devices_of_fleet,
    place,
    unfit,
    why_nowhere,
)
from tests.builders import a_device, a_suite
from tests.fleet.hosts import make_offer


def a_host(name: str, *devices: str, **changes: object) -> Host:
    """A host that has these devices, or else cpu."""
    missing = dict.fromkeys(("cpu", "gpu"), "there is none") | dict.fromkeys(devices or ("cpu",), "")
    classes = dict.fromkeys(missing, "EPYC")
    host = Host(name=name, classes=classes, host_cpu="EPYC avx2", missing=missing, compilers={"3.13.0": "5e"})
    return replace(host, **changes)  # type: ignore[arg-type]


def a_group(model: str, device: str = "cpu", **changes: object) -> Group:
    """A group of IREE's cases alone."""
    return replace(Group(name=f"{model}@{device}", device=device, compilers={"3.13.0": "5e"}), **changes)  # type: ignore[arg-type]


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


def test_what_makes_a_host_unfit() -> None:
    begun = a_group("net", cpu="EPYC avx2", machine_class="EPYC")
    assert not unfit(begun, a_host("a"))
    assert "another CPU" in unfit(begun, a_host("a", host_cpu="EPYC avx512"))
    assert "another class" in unfit(begun, a_host("a", classes={"cpu": "Xeon", "gpu": "EPYC"}))
    assert "another build" in unfit(begun, a_host("a", compilers={"3.13.0": "aa"}))
    assert not unfit(begun, a_host("a", compilers={}))  # it installs that release
    assert "torch" in unfit(replace(begun, peers=frozenset(["torch"])), a_host("a"))


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
