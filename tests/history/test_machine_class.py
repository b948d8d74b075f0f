"""Machines whose figures may be compared: the same processor, cores and system."""

from __future__ import annotations

from typing import Any

from harness.history.machine_class import UNKNOWN, machine_class

EPYC: dict[str, dict[str, Any]] = {
    "machine": {"id": "3f2a91c04b7e", "system": "Linux", "architecture": "x86_64", "kernel": "6.1.0", "virtual": True},
    "cpu": {"model": "AMD EPYC 7B13", "usable_cores": 2},
}


def changed(section: str, **given: Any) -> dict[str, dict[str, Any]]:
    return {**EPYC, section: {**EPYC.get(section, {}), **given}}


def test_it_is_in_words() -> None:
    assert machine_class(EPYC) == "AMD EPYC 7B13, 2 cores, Linux x86_64 (virtual)"


def test_another_processor_or_number_of_cores_is_another_class() -> None:
    assert machine_class(changed("cpu", model="Intel Xeon")) != machine_class(EPYC)
    assert machine_class(changed("cpu", usable_cores=1)) == "AMD EPYC 7B13, 1 core, Linux x86_64 (virtual)"


def test_another_kernel_or_another_machine_of_the_same_kind_is_the_same_class_so_that_its_effect_is_seen() -> None:
    assert machine_class(changed("machine", kernel="6.18.0", id="0123456789ab")) == machine_class(EPYC)


def test_a_device_that_the_run_knows_by_name_is_in_the_class_of_its_points() -> None:
    beside = changed("device_names", gpu="NVIDIA H200")

    assert machine_class(beside, "gpu") == "AMD EPYC 7B13, 2 cores, Linux x86_64 (virtual), NVIDIA H200"
    assert machine_class(beside, "cpu") == machine_class(beside) == machine_class(EPYC)


def test_what_a_hostile_run_says_is_one_line_of_text() -> None:
    assert machine_class({"cpu": {"model": "a\nb\x1b[31m", "usable_cores": {"x": 1}}}) == "a b, {'x': 1} cores"


def test_a_run_that_says_nothing_has_a_class_too() -> None:
    assert machine_class({}) == UNKNOWN
