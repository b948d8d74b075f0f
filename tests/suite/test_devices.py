"""A suite's devices: which of them are here, and which hosts of a fleet they are for."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.errors import SuiteError
from harness.models.model import Expectation
from harness.process import Limits
from harness.records.case import Gate
from harness.suite import devices as room
from harness.suite.devices import Presence, each_host, find_devices, fits, patterns_on_each, why_gone
from harness.suite.load import Suite
from harness.suite.schema import PeerTable
from harness.toolchain.devices import DeviceInfo, DeviceProbe, VulkanDriver
from harness.toolchain.find import Toolchain
from tests.builders import a_device, a_model, a_suite, a_variant
from tests.suite.conftest import plan

Find = Callable[..., Presence]

MANIFEST = {"VK_DRIVER_FILES": "lvp_icd.json", "VK_ICD_FILENAMES": "lvp_icd.json"}


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The drivers that were asked for devices; cuda has two, any driver of Vulkan one, hip and abacus none."""
    asked = []

    def probe(toolchain: Toolchain, driver: str, **_: object) -> DeviceProbe:
        asked.append(driver)
        if driver in ("abacus", "hip"):
            return DeviceProbe(driver=driver, reason=f"no {driver} device", advice="install it")
        devices = [DeviceInfo(uri=f"{driver}://{name}", name=f"{driver} {name}") for name in "ab"]
        return DeviceProbe(driver=driver, devices=tuple(devices[: 2 if driver == "cuda" else 1]))

    def probe_vulkan(toolchain: Toolchain, driver: VulkanDriver, *, limits: Limits) -> DeviceProbe:
        asked.append(driver.name)
        if driver.name == "swiftshader":
            return DeviceProbe(driver="vulkan", reason="it is not here", advice="install it")
        return DeviceProbe(driver="vulkan", devices=(DeviceInfo(uri="vulkan://l", name="llvmpipe"),))

    def environment(driver: VulkanDriver) -> Mapping[str, str]:
        return MANIFEST if driver.name == "lavapipe" else {}

    monkeypatch.setattr(room, "probe_driver", probe)
    monkeypatch.setattr(room, "probe_vulkan_driver", probe_vulkan)
    monkeypatch.setattr(room, "environment_for", environment)
    return asked


@pytest.fixture
def find(asked: list[str], real_toolchain: Toolchain) -> Find:
    def find(**fields: Any) -> Presence:
        return find_devices(a_suite(devices=(a_device("it", **fields),)), real_toolchain)["it"]

    return find


def test_devices_are_given_by_driver_index_or_name_all_have_to_be_there_and_each_driver_is_asked_once(
    find: Find, asked: list[str]
) -> None:
    for uris, missing in (
        (("cuda", "cuda://1", "cuda://b"), None),
        (("cuda://c",), "no device cuda://c; cuda has cuda://a, cuda://b"),
        (("cuda://0", "cuda://2"), "no device cuda://2; cuda has cuda://a, cuda://b"),
        (("cuda", "hip"), "no hip device; install it"),
    ):
        asked.clear()
        assert find(uri=uris[0], more_uris=uris[1:]).missing == missing
        assert asked == list(dict.fromkeys(uri.partition("://")[0] for uri in uris))
    with pytest.raises(SuiteError, match=r"^suite\.toml: \[devices\.it\] uri: there is no driver 'abacus'; known: "):
        find(uri="local-sync", more_uris=("abacus://1",))


def test_all_of_a_list_are_named_and_a_driver_by_name_brings_its_variables(find: Find) -> None:
    assert find(uri="local-sync", more_uris=("cuda://1",)) == Presence(facts="local-sync a + cuda b", name="cuda b")
    found = find(uri="local-task", more_uris=("vulkan",), vulkan_driver="lavapipe")
    assert found == Presence(facts="local-task a + llvmpipe", name="llvmpipe", environment=MANIFEST)
    assert find(uri="vulkan", vulkan_driver="swiftshader") == Presence(missing="it is not here; install it")


@pytest.mark.usefixtures("asked")
def test_a_device_that_was_here_and_is_gone(real_toolchain: Toolchain) -> None:
    assert why_gone(["cuda://a", "cuda"], real_toolchain, {}) == ""
    gone = "device cuda://c is gone: no device cuda://c; cuda has cuda://a, cuda://b"
    assert why_gone(["cuda", "cuda://c"], real_toolchain, {}) == gone


# --- `on` and `hosts`: what a device becomes where each host measures it ---

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


def test_a_device_fits_hosts_by_name_or_class() -> None:
    for on, fitting in (
        ("*", ["ash", "birch", "elm"]),
        ("[ae]*", ["ash", "elm"]),
        ("*aarch64", ["birch"]),
        ("*EPYC*2 cores*", ["ash", "elm"]),
        ("*epyc*", []),
    ):
        assert [host for host, text in HOSTS.items() if fits(a_device(on=on), host, text)] == fitting


def test_each_host_that_fits_has_a_device_of_its_own() -> None:
    suite = each_host(a_fleet_suite(), HOSTS)
    assert [(device.name, device.host) for device in suite.devices] == [
        ("cpu.ash", "ash"),
        ("cpu.elm", "elm"),
        ("gpu", ""),
    ]
    assert [host for host, text in HOSTS.items() if fits(suite.devices[0], host, text)] == ["ash"]
    cases = plan(suite, peers=[PeerTable(name="onnxruntime")])
    assert len({case.id for case in cases}) == len(cases)
    alone = plan(each_host(a_fleet_suite(), {"elm": HOSTS["elm"]}), peers=[PeerTable(name="onnxruntime")])
    assert {(case.name, case.id) for case in alone} < {(case.name, case.id) for case in cases}
    assert [case.name for case in cases if case.baseline] == [
        f"net/stock@{where}" for where in ("cpu.ash", "cpu.elm", "gpu")
    ]
    assert each_host(suite, HOSTS) == suite
    assert each_host(a_fleet_suite(), {"birch": HOSTS["birch"]}) == a_fleet_suite(), "a device that no host fits stays"
    taken = replace(a_fleet_suite(), devices=(*a_fleet_suite().devices, a_device("cpu.elm")))
    with pytest.raises(SuiteError) as caught:
        each_host(taken, HOSTS)
    assert str(caught.value) == (
        "suite.toml: [devices.cpu.elm] has the name of [devices.cpu] on host elm; rename one of them"
    )


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
