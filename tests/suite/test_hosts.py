"""`on` and `hosts` of a device: which hosts it is for, and what it becomes where each of them measures it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.errors import SuiteError
from harness.models.model import Expectation
from harness.records.case import Gate
from harness.suite.hosts import each_host, fits, patterns_on_each
from harness.suite.load import Suite, load_suite
from tests.builders import a_device, a_model, a_peer, a_suite, a_variant
from tests.suite.conftest import WriteSuite, plan

HOSTS = {
    "ash": "AMD EPYC 7B13, 2 cores, Linux x86_64 (virtual)",
    "birch": "Neoverse-V2, 4 cores, Linux aarch64",
    "elm": "AMD EPYC 7B13, 2 cores, Linux x86_64 (virtual)",
}


def a_fleet_suite(**fields: Any) -> Suite:
    """On each EPYC, and on a GPU."""
    devices = (a_device("cpu", on="*EPYC*", hosts="each"), a_device("gpu"))
    return a_suite(
        a_variant("stock"), a_variant("fast", "--iree-opt-level=O3"), models=(a_model(),), devices=devices, **fields
    )


@pytest.mark.parametrize(
    ("on", "fitting"),
    [
        ("*", ["ash", "birch", "elm"]),
        ("ash", ["ash"]),
        ("[ae]*", ["ash", "elm"]),
        ("*aarch64", ["birch"]),
        ("*EPYC*2 cores*", ["ash", "elm"]),
        ("*epyc*", []),
    ],
)
def test_a_device_fits_hosts_by_name_or_class(on: str, fitting: list[str]) -> None:
    assert [host for host, text in HOSTS.items() if fits(a_device(on=on), host, text)] == fitting


def test_each_host_that_fits_has_a_device_of_its_own() -> None:
    suite = each_host(a_fleet_suite(), HOSTS)
    assert [(device.name, device.host) for device in suite.devices] == [
        ("cpu.ash", "ash"),
        ("cpu.elm", "elm"),
        ("gpu", ""),
    ]
    assert [host for host, text in HOSTS.items() if fits(suite.devices[0], host, text)] == ["ash"]
    cases = plan(suite, peers=[a_peer()])
    assert len({case.id for case in cases}) == len(cases)
    alone = plan(each_host(a_fleet_suite(), {"elm": HOSTS["elm"]}), peers=[a_peer()])
    assert {(case.name, case.id) for case in alone} < {(case.name, case.id) for case in cases}
    assert {case.group: case.baseline for case in cases if case.variant == "stock"} == {
        "net@cpu.ash": True,
        "net@cpu.elm": True,
        "net@gpu": True,
    }
    assert each_host(suite, HOSTS) == suite


def test_a_device_that_no_host_fits_stays_as_it_is() -> None:
    suite = a_fleet_suite()
    assert each_host(suite, {"birch": HOSTS["birch"]}) == suite


@given(pattern=st.sampled_from(["*", "*@cpu", "*@*", "net/*", "*/fast@cpu", "*@[cg]pu", "*/*@?pu", "net/fast@gpu"]))
def test_patterns_on_a_device_hold_for_it_on_each_host(pattern: str) -> None:
    suite = a_fleet_suite(
        expectations=(Expectation(cases=pattern, message="no"),),
        gates=(Gate(name="size", metric="module-size", cases=pattern),),
    )
    wanted = {case.name: case.known_to_fail for case in plan(suite)}
    found = {case.name: case.known_to_fail for case in plan(each_host(suite, HOSTS))}
    assert patterns_on_each(suite, HOSTS, ["*/fast@cpu"]) == ("*/fast@cpu.*",)
    assert found == {
        name.replace("@cpu", f"@cpu{host}"): fails
        for name, fails in wanted.items()
        for host in ([".ash", ".elm"] if name.endswith("@cpu") else [""])
    }


def test_a_name_that_another_device_has_is_one_sentence() -> None:
    suite = a_fleet_suite()
    taken = replace(suite, devices=(*suite.devices, a_device("cpu.elm")))
    with pytest.raises(SuiteError) as caught:
        each_host(taken, HOSTS)
    assert str(caught.value) == (
        "suite.toml: [devices.cpu.elm] has the name of [devices.cpu] on host elm; rename one of them"
    )


def test_a_suite_says_it_in_two_keys(write_suite: WriteSuite) -> None:
    both = 'uri = "local-sync"\non = "*EPYC*"\nhosts = "each"'
    (device,) = load_suite(write_suite('uri = "local-sync"', both)).suite.devices
    assert (device.on, device.hosts, device.host) == ("*EPYC*", "each", "")
