"""What an asker makes of a host's offer."""

from __future__ import annotations

from dataclasses import replace

import pytest

from harness.errors import UsageError
from harness.fleet.connection import offers_in
from harness.fleet.offer import own_versions, require_same_versions, to_text, usable_offer
from harness.machine.identity import machine_class
from tests.builders import a_device, a_suite
from tests.fleet.hosts import make_facts, make_offer, told


def test_an_offer_travels_as_text() -> None:
    offer = make_offer()
    assert usable_offer("host-a", to_text(offer)) == offer


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
