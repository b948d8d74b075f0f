"""Which of a suite's devices are here: several in one list, several drivers, and drivers by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from harness.errors import SuiteError
from harness.process import Limits
from harness.suite import present
from harness.suite.present import Presence, find_devices, why_gone
from harness.toolchain.devices import DeviceInfo, DeviceProbe, VulkanDriver
from harness.toolchain.find import Toolchain
from tests.builders import a_device, a_suite

Find = Callable[..., Presence]

MANIFEST = {"VK_DRIVER_FILES": "lvp_icd.json", "VK_ICD_FILENAMES": "lvp_icd.json"}


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The drivers that were asked for devices; cuda has two, any driver of Vulkan one, abacus none."""
    asked = []

    def probe(toolchain: Toolchain, driver: str, *, limits: Limits) -> DeviceProbe:
        asked.append(driver)
        if driver == "abacus":
            return DeviceProbe(driver=driver, reason="no abacus device")
        devices = [DeviceInfo(uri=f"{driver}://{name}", name=f"{driver} {name}") for name in "ab"]
        return DeviceProbe(driver=driver, devices=tuple(devices[: 2 if driver == "cuda" else 1]))

    def probe_vulkan(toolchain: Toolchain, driver: VulkanDriver, *, limits: Limits) -> DeviceProbe:
        asked.append(driver.name)
        if driver.name == "swiftshader":
            return DeviceProbe(driver="vulkan", reason="it is not here", advice="install it")
        return DeviceProbe(driver="vulkan", devices=(DeviceInfo(uri="vulkan://l", name="llvmpipe"),))

    def environment(driver: VulkanDriver) -> Mapping[str, str]:
        return MANIFEST if driver.name == "lavapipe" else {}

    monkeypatch.setattr(present, "probe_driver", probe)
    monkeypatch.setattr(present, "probe_vulkan_driver", probe_vulkan)
    monkeypatch.setattr(present, "environment_for", environment)
    return asked


@pytest.fixture
def find(asked: list[str], real_toolchain: Toolchain) -> Find:
    def find(**fields: object) -> Presence:
        return find_devices(a_suite(devices=(a_device("it", **fields),)), real_toolchain)["it"]

    return find


def test_all_of_a_list_are_named(find: Find) -> None:
    assert find(uri="local-sync", more_uris=("cuda://1",)) == Presence(facts="local-sync a + cuda b", name="cuda b")


@pytest.mark.parametrize(
    ("uris", "missing"),
    [
        (("cuda", "cuda://1", "cuda://b"), None),
        (("cuda://c",), "no device cuda://c; cuda has cuda://a, cuda://b"),
        (("cuda://0", "cuda://2"), "no device cuda://2; cuda has cuda://a, cuda://b"),
    ],
)
def test_devices_are_given_by_driver_index_or_name_and_all_have_to_be_there(
    find: Find, uris: tuple[str, ...], missing: str | None
) -> None:
    assert find(uri=uris[0], more_uris=uris[1:]).missing == missing


def test_every_driver_is_asked_once(asked: list[str], real_toolchain: Toolchain) -> None:
    devices = (
        a_device("two", uri="cuda", more_uris=("cuda://1",)),
        a_device("mixed", uri="local-task", more_uris=("cuda",)),
        a_device("vulkan", uri="vulkan"),
        a_device("lavapipe", uri="vulkan", vulkan_driver="lavapipe"),
        a_device("lavapipe-too", uri="vulkan", vulkan_driver="lavapipe", pin=True),
    )
    find_devices(a_suite(devices=devices), real_toolchain)
    assert asked == ["cuda", "local-task", "vulkan", "lavapipe"]


def test_a_driver_by_name_brings_its_variables(find: Find) -> None:
    found = find(uri="local-task", more_uris=("vulkan",), vulkan_driver="lavapipe")
    assert found == Presence(facts="local-task a + llvmpipe", name="llvmpipe", environment=MANIFEST)
    assert find(uri="vulkan", vulkan_driver="swiftshader") == Presence(missing="it is not here; install it")


def test_a_driver_that_iree_does_not_have_is_the_suites_mistake(find: Find) -> None:
    with pytest.raises(SuiteError, match=r"^suite\.toml: \[devices\.it\] uri: there is no driver 'abacus'; known: "):
        find(uri="local-sync", more_uris=("abacus://1",))


def test_a_device_that_was_here_and_is_gone(real_toolchain: Toolchain, monkeypatch: pytest.MonkeyPatch) -> None:
    def probe(_: Toolchain, driver: str, **__: object) -> DeviceProbe:
        return DeviceProbe(driver=driver, devices=(DeviceInfo(uri="vulkan://GPU-1", name="a card"),))

    monkeypatch.setattr(present, "probe_driver", probe)
    assert why_gone(["vulkan://GPU-1", "vulkan"], real_toolchain, {}) == ""
    assert why_gone(["vulkan", "vulkan://GPU-2"], real_toolchain, {}) == (
        "device vulkan://GPU-2 is gone: no device vulkan://GPU-2; vulkan has vulkan://GPU-1"
    )
