"""What a host offers, and which host does what: pure decisions over that and what compiles, groups and rows need.

A group stays with its host from night to night, whatever other groups and hosts come and go, as far as balance lets
it: hosts are preferred in the order of a hash of group and host (rendezvous hashing, Thaler and Ravishankar 1998), and
none takes more than its share.
"""

from __future__ import annotations

import hashlib
import json
import math
import platform
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cache, lru_cache
from importlib.metadata import version
from typing import Any

from harness import __version__
from harness.cache import environments_root
from harness.doctor.examine import PeerHere, diagnose
from harness.errors import ToolchainError, UsageError
from harness.machine.environment import harness_commit, machine_class, machine_id, processor_identity
from harness.process import Limits
from harness.records.case import Case
from harness.records.run import HostRecord
from harness.store.files import adapter
from harness.suite.devices import Presence, devices_among, fits
from harness.suite.load import Device, Suite
from harness.text import one_line
from harness.toolchain import Toolchain, find_toolchain, installed_environments
from harness.toolchain.devices import VULKAN_DRIVERS, DeviceProbe, VulkanDriver, environment_for
from harness.toolchain.find import find_in_environment
from harness.toolchain.host_cpu import TargetCpu, host_target_cpu
from harness.toolchain.own import is_own, own_toolchains

# What a worker tells the scheduler of itself when it joins; what is told of hosts to every client.
OFFER_KEY, HOSTS_TOPIC = "harness_offer", "harness-hosts"
_PROBE_LIMITS = Limits(seconds=60)
_COMMIT_DIGITS = 12
_MOST_OFFERS = 1000
_UNKNOWN_PEER = PeerHere(name="", missing="no package there brings it")


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
    beside = diagnosis.toolchain
    assert isinstance(beside, Toolchain)  # noqa: S101 (else find_toolchain said why not)
    installed = (*(find_in_environment(extra.folder) for extra in diagnosis.environments), *own_toolchains())
    toolchains = {
        each.version: each for each in (beside, *installed) if each is beside or each.version != beside.version
    }
    return Offer(
        name=name,
        versions=own_versions(),
        cores=cores,
        environment=environment,
        drivers={probe.driver: probe for probe in diagnosis.probes},
        vulkan_drivers={
            driver: OfferedVulkan(probe=probe, environment=environment_for(VULKAN_DRIVERS[driver]))
            for driver, probe in diagnosis.vulkan_drivers.items()
        },
        peers=diagnosis.peers,
        toolchains={number: _offered(each, processor_identity(environment)) for number, each in toolchains.items()},
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


@dataclass(frozen=True, kw_only=True)
class Host:
    """A host, as far as a suite is concerned: now, or as it was when it measured something."""

    record: HostRecord  # What a run keeps of it
    # Why a device or a peer cannot be used there, by the suite's name or label; "" where it can
    missing: Mapping[str, str] = field(default_factory=dict)
    toolchains: Mapping[str, OfferedToolchain] = field(default_factory=dict)  # Those that are there, by version

    @classmethod
    def of(cls, offer: Offer, suite: Suite) -> Host:
        """A host from what it offers."""
        devices, peers = offer.devices(suite), {peer.name: peer for peer in offer.peers}
        missing = {device.name: _missing(device, offer, devices[device.name]) for device in suite.devices}
        known = {peer.case_label: peers.get(peer.name, _UNKNOWN_PEER) for peer in suite.peers}
        missing |= {label: peer.missing or "" for label, peer in known.items()}
        there = {name: device for name, device in devices.items() if device.missing is None}
        environment: dict[str, dict[str, Any]] = {
            **offer.environment,
            "devices": {name: device.facts for name, device in there.items()},
            "device_names": {name: device.name for name, device in there.items() if device.name},
            "peers": {label: peer.version for label, peer in known.items() if peer.version is not None},
        }
        record = HostRecord(name=offer.name, environment=environment)
        return cls(record=record, missing=missing, toolchains=offer.toolchains)

    @property
    def name(self) -> str:
        """Its name in the fleet."""
        return self.record.name

    @property
    def host_cpu(self) -> str:
        """What `host` means in a compiler flag there."""
        return processor_identity(self.record.environment)

    def class_with(self, device: str) -> str:
        """Which hosts' figures on a device may be compared with its own."""
        return machine_class(self.record.environment, device)

    def is_another(self, host: Host) -> bool:
        """Whether what has joined under its name is another machine: by its class, its devices, its CPU, or its id."""
        own, its = self.record.environment, host.record.environment
        is_alike = all(fact(own) == fact(its) for fact in (machine_class, processor_identity, _device_names))
        return not is_alike or len({machine_id(own), machine_id(its)} - {""}) > 1


def _device_names(environment: Mapping[str, Any]) -> Any:
    return environment.get("device_names", {})


@dataclass(frozen=True, kw_only=True)
class Need:
    """What a compile, a group or a row needs of the host that does it."""

    name: str
    device: str = ""  # "" of a compile
    peers: frozenset[str] = frozenset()  # Labels of the engines among its cases
    compilers: Mapping[str, str] = field(default_factory=dict)  # Hash of the compiler, by version, of its cases
    # Identity of the CPU that its modules are made for; "" where that does not matter, or none is made yet
    cpu: str = ""
    machine_class: str = ""  # Of the host that has begun it, with the device; "": nobody has

    def begun_on(self, host: Host) -> Need:
        """The same once a host has begun it."""
        return replace(self, machine_class=host.class_with(self.device))


def need_of(cases: Sequence[Case], compilers: Mapping[str, str]) -> Need:
    """What the cases of a group need."""
    return Need(
        name=cases[0].group,
        device=cases[0].device,
        peers=frozenset(case.variant for case in cases if case.peer is not None),
        compilers={case.toolchain: compilers[case.toolchain] for case in cases if case.peer is None},
    )


def unfit(need: Need, host: Host) -> str:
    """Why a host cannot do it, as a clause; "": it can."""
    for name in filter(None, (need.device, *sorted(need.peers))):
        if why := host.missing.get(name, f"it does not know {name}"):
            return why
    for release, sha256 in need.compilers.items():
        if is_own(release) and release not in host.toolchains:
            return f"it has no {release}"
        if release in host.toolchains and host.toolchains[release].compiler_sha256 != sha256:
            return f"its IREE {release} is another build than the client's"
    if need.cpu and host.host_cpu != need.cpu:
        return "it has another CPU than the one that the modules are made for"
    if need.machine_class and host.class_with(need.device) != need.machine_class:
        return f"it is of another class than the host that has begun ({need.machine_class})"
    return ""


def preference(name: str, host: str) -> int:
    """How much a group is drawn to a host: as random as a hash, and always the same."""
    return int.from_bytes(hashlib.sha256(f"{name}\n{host}".encode()).digest()[:8], "big")


def place(needs: Sequence[Need], hosts: Sequence[Host], kept: Mapping[str, str] | None = None) -> dict[str, str]:
    """The host of each group that fits one, by name; of groups that fit the same hosts, each gets its share at most."""
    names = {host.name for host in hosts}
    placed = {name: host for name, host in (kept or {}).items() if host in names}
    fitting = {need.name: tuple(host.name for host in hosts if not unfit(need, host)) for need in needs}
    share = {able: math.ceil(count / len(able)) for able, count in Counter(fitting.values()).items() if able}
    load = Counter((fitting[name], placed[name]) for name in fitting if name in placed)
    for name in sorted(fitting):
        able = fitting[name]
        if name in placed or not able:
            continue
        best = sorted(able, key=lambda host: preference(name, host), reverse=True)
        chosen = next((host for host in best if load[able, host] < share[able]), best[0])
        load[able, chosen] += 1
        placed[name] = chosen
    return placed


def choose_after_loss(need: Need, hosts: Iterable[Host], load: Mapping[str, int]) -> str | None:
    """The host that takes something over; None: there is none for it."""
    able = [host.name for host in hosts if not unfit(need, host)]
    return min(able, key=lambda name: (load.get(name, 0), -preference(need.name, name)), default=None)


def why_nowhere(need: Need, hosts: Collection[Host]) -> str:
    """Why no host can do something, as a sentence."""
    reasons: dict[str, list[str]] = {}
    for host in hosts:
        reasons.setdefault(unfit(need, host), []).append(host.name)
    said = "; ".join(f"{', '.join(sorted(names))}: {one_line(why)}" for why, names in reasons.items())
    return f"{need.name}: no host can measure it ({said})"


def devices_of_fleet(suite: Suite, offers: Collection[Offer]) -> dict[str, Presence]:
    """Each of a suite's devices by name: as it is on the hosts that have it, or why none has."""
    hosts = [Host.of(offer, suite) for offer in sorted(offers, key=lambda offer: offer.name)]
    found: dict[str, Presence] = {}
    for device in (device.name for device in suite.devices):
        has = [host.record.environment for host in hosts if not host.missing[device]]
        if has:
            facts = dict.fromkeys(environment["devices"][device] for environment in has)
            names = dict.fromkeys(_device_names(environment).get(device, "") for environment in has)
            # Each host has an environment of its own, which its cases get once it is known.
            found[device] = Presence(facts=" or ".join(facts), name=" or ".join(filter(None, names)))
        else:
            said = "; ".join(f"{host.name}: {host.missing[device]}" for host in hosts)
            found[device] = Presence(missing=f"no host of the fleet has it ({said})")
    return found


def _missing(device: Device, offer: Offer, presence: Presence) -> str:
    """Why a device cannot be used on a host; "": it can."""
    if not fits(device, offer.name, offer.machine_class):
        return f"it is not what on = {device.on!r} asks for" if not device.host else f"it is not {device.host}"
    return presence.missing or ""
