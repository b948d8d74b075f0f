"""What a host offers: found by the code of `harness doctor`, once, when its worker starts."""

import json
import platform
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import cache, lru_cache
from importlib.metadata import version
from typing import Any

from harness import __version__
from harness.cache import environments_root
from harness.doctor.examine import PeerHere, diagnose
from harness.errors import ToolchainError, UsageError
from harness.machine.environment import harness_commit
from harness.machine.identity import machine_class, processor_identity
from harness.process import Limits
from harness.store.files import adapter
from harness.suite.devices import Presence, devices_among
from harness.suite.load import Suite
from harness.toolchain import Toolchain, find_toolchain, installed_environments
from harness.toolchain.devices import VULKAN_DRIVERS, DeviceProbe, VulkanDriver, environment_for
from harness.toolchain.find import find_in_environment
from harness.toolchain.host_cpu import TargetCpu, host_target_cpu

# What a worker tells the scheduler of itself when it joins; what is told of hosts to every client.
OFFER_KEY, HOSTS_TOPIC = "harness_offer", "harness-hosts"
_PROBE_LIMITS = Limits(seconds=60)
_COMMIT_DIGITS = 12
_MOST_OFFERS = 1000


@dataclass(frozen=True, kw_only=True)
class OfferedToolchain:
    """A compiler and runtime pair that is on a host."""

    compiler_sha256: str
    cpu: TargetCpu | None  # What `host` means to this compiler there; None where it does not say


@dataclass(frozen=True, kw_only=True)
class OfferedVulkan:
    """A driver of Vulkan that suites ask for by name."""

    probe: DeviceProbe
    environment: Mapping[str, str]  # Variables with which the Vulkan loader finds it on that host


@dataclass(frozen=True, kw_only=True)
class Offer:
    """A host as its worker describes it."""

    name: str  # Of the host in its fleet; no other host has it
    address: str = ""  # Of its worker, as Dask has it; another one after each start of the worker
    versions: Mapping[str, str]  # Of what runs there, see `own_versions`
    host_cpu: str  # Identity of its CPU, as machine.identity.processor_identity says it
    cores: int  # How many compiles run there at once
    environment: dict[str, dict[str, Any]]  # As that of a run's header, without what depends on a suite
    drivers: Mapping[str, DeviceProbe]  # What IREE's drivers offer, by their names
    # What drivers of Vulkan offer, by the names that suites have for them
    vulkan_drivers: Mapping[str, OfferedVulkan] = field(default_factory=dict)
    peers: tuple[PeerHere, ...] = ()  # Other engines, here or missing
    # By version; the first is the one that is installed beside the harness
    toolchains: Mapping[str, OfferedToolchain] = field(default_factory=dict)

    @property
    def machine_class(self) -> str:
        """Which hosts share its series in a history, and may take over its work, in words."""
        return machine_class(self.environment)

    def devices(self, suite: Suite) -> dict[str, Presence]:
        """Each of a suite's devices by name, as it is on this host, or why it is not."""

        def probe(driver: str, chosen: VulkanDriver | None) -> DeviceProbe:
            if chosen is not None and driver == "vulkan":
                return self.vulkan_drivers[chosen.name].probe
            unasked = DeviceProbe(driver=driver, reason=f"{self.name} was not asked for {driver} devices")
            return self.drivers.get(driver, unasked)

        return devices_among(suite, probe, lambda chosen: self.vulkan_drivers[chosen.name].environment)


@cache
def own_versions() -> dict[str, str]:
    """What has to be the same on all hosts of a fleet: values travel between them as Python pickles them."""
    commit = harness_commit().removesuffix("+dirty")[:_COMMIT_DIGITS]
    return {
        "harness": f"{__version__} ({commit})" if commit else __version__,
        "Dask": version("dask"),
        "distributed": version("distributed"),
        "Python": ".".join(platform.python_version_tuple()[:2]),
    }


def differences(versions: Mapping[str, Any], other: Mapping[str, Any]) -> str:
    """Each version that is not the other's, as in `harness 0.2.0 instead of 0.1.0`; "": there is none."""
    unequal = [name for name in own_versions() if versions.get(name) != other.get(name)]
    return ", ".join(f"{name} {versions.get(name)} instead of {other.get(name)}" for name in unequal)


def require_same_versions(facts: Mapping[str, Any], there: str, here: str) -> None:
    """See that a scheduler and this process can exchange values."""
    if said := differences(own_versions(), facts["versions"]):
        raise UsageError(f"{there} and {here} differ: {here} has {said}; install the same on both")


def offer_of_this_host(name: str, cores: int, host_class: str = "") -> Offer:
    """Look at this machine and say what it offers; drivers and compilers are asked, which takes seconds."""
    diagnosis = diagnose(find_toolchain(), installed_environments(environments_root()), limits=_PROBE_LIMITS)
    environment = dict(diagnosis.environment)
    if host_class:
        environment["machine"] = {**environment["machine"], "class": host_class}
    host_cpu = processor_identity(environment)
    beside = diagnosis.toolchain
    assert isinstance(beside, Toolchain)  # noqa: S101 (else find_toolchain said why not)
    installed = (find_in_environment(extra.folder) for extra in diagnosis.environments)
    toolchains = {
        each.version: each for each in (beside, *installed) if each is beside or each.version != beside.version
    }
    return Offer(
        name=name,
        versions=own_versions(),
        host_cpu=host_cpu,
        cores=cores,
        environment=environment,
        drivers={probe.driver: probe for probe in diagnosis.probes},
        vulkan_drivers={
            driver: OfferedVulkan(probe=probe, environment=environment_for(VULKAN_DRIVERS[driver]))
            for driver, probe in diagnosis.vulkan_drivers.items()
        },
        peers=diagnosis.peers,
        toolchains={number: _offered(each, host_cpu) for number, each in toolchains.items()},
    )


def _offered(toolchain: Toolchain, host_cpu: str) -> OfferedToolchain:
    try:
        cpu = host_target_cpu(toolchain, host_cpu)
    except ToolchainError:  # of a release whose compiler takes other flags; who needs it asks it again, and learns why
        cpu = None
    return OfferedToolchain(compiler_sha256=toolchain.compiler_sha256, cpu=cpu)


def to_text(offer: Offer) -> str:
    """An offer as Dask's messages carry it: JSON, since these turn lists into tuples."""
    return json.dumps(asdict(offer))


@lru_cache(maxsize=_MOST_OFFERS)
def usable_offer(name: str, text: str) -> Offer | str:
    """A host's offer as it came, or why it cannot be used; it comes again whenever any host joins or leaves."""
    try:
        versions = json.loads(text)["versions"]
        said = differences(versions, own_versions())
    except (ValueError, TypeError, LookupError, AttributeError):
        return f"{name}: a Dask worker, and no host of the harness; start it with `harness fleet worker`"
    if said:
        return f"{name} and this machine differ: {name} has {said}; install the same on both"
    offer: Offer = adapter(Offer).validate_json(text)
    return offer
