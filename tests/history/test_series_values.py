"""What runs recorded, as rules of causes read it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from harness.history.series import RunFacts

FACTS = RunFacts(
    started="2026-01-01T02:00:00+00:00",
    machine="3f2a91c04b7e",
    kernel="6.1.0",
    devices="cpu: this CPU; gpu: Radeon; driver: 24.1; gpu-2: A4000, Vulkan 1.3",
    commit="35217dcf00",
    load=0.4,
    reference="",
)


@pytest.mark.parametrize(
    ("device", "driver"),
    [("cpu", "this CPU"), ("gpu-2", "A4000, Vulkan 1.3"), ("2", ""), ("tpu", "")],
)
def test_a_case_is_explained_by_the_driver_of_its_own_device_alone(device: str, driver: str) -> None:
    assert FACTS.driver(device) == driver


def test_runs_that_record_no_device_say_nothing_of_it() -> None:
    assert replace(FACTS, devices="").driver("cpu") == ""
