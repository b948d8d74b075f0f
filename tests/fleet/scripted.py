"""A fleet without Dask: hosts that do at once what they are asked to, unless a test says what happens instead."""

import asyncio
import concurrent.futures
import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, TypeVar

from harness.cache import cache_root
from harness.compile import BuildCache
from harness.files import file_sha256
from harness.fleet import tasks
from harness.fleet.access import Access
from harness.fleet.connection import Fleet, Offers
from harness.fleet.packing import Packed
from harness.fleet.placing import Offer, OfferedToolchain, OfferedVulkan, own_versions, to_text
from harness.fleet.tasks import Answer
from harness.records.run import Build, Check, Reference, Round, Sizes, Turn
from harness.store.files import adapter
from harness.toolchain import Toolchain
from harness.toolchain.devices import DeviceInfo, DeviceProbe
from harness.toolchain.host_cpu import TargetCpu

# Of one model; each of the variants says how its compiler makes its code.
SUITE = """\
name = "small"
baseline = "stock"
[models.a]
mlir = "models/a/model.mlir"
function = "main"
inputs = [{ shape = [4] }]
[devices.cpu]
uri = "local-sync"
backend = "llvm-cpu"
compile_flags = ["--iree-hal-target-device=local", "--iree-llvmcpu-target-cpu=host"]
"""
_GPU = DeviceInfo(uri="cuda://GPU-1", name="NVIDIA H100", api="compute capability 9.0", driver_version="CUDA 12.8")
NO_VULKAN = DeviceProbe(driver="vulkan", reason="no Vulkan device", advice="install a Vulkan driver")


def make_offer(name: str = "host-a", **changes: Any) -> Offer:
    """A host with a GPU that CUDA finds, and without Vulkan."""
    cpu = TargetCpu(name="znver3", features="+avx2")
    local = DeviceProbe(driver="local-sync", devices=(DeviceInfo(uri="local-sync", name="this CPU"),))
    offer = Offer(
        name=name,
        address="tls://10.0.0.1:4000",
        versions=own_versions(),
        cores=8,
        environment={
            "machine": {"system": "Linux", "architecture": "x86_64"},
            "cpu": {"model": "AMD EPYC 7B13", "usable_cores": 8, "flags": ["avx2"]},
        },
        drivers={"local-sync": local, "cuda": DeviceProbe(driver="cuda", devices=(_GPU,)), "vulkan": NO_VULKAN},
        vulkan_drivers={"lavapipe": OfferedVulkan(probe=NO_VULKAN, environment={"VK_DRIVER_FILES": "/there.json"})},
        toolchains={"3.13.0": OfferedToolchain(compiler_sha256="5e" * 32, cpu=cpu)},
    )
    return replace(offer, **changes)


def told(offer: Offer, /, **changes: Any) -> dict[str, Any]:
    """A host in the facts of a scheduler."""
    host: dict[str, Any] = {
        "name": offer.name,
        "address": offer.address,
        "offer": to_text(offer),
        "doing": [],
        "clock_behind_s": 0.0,
        "unseen_s": 0.5,
    }
    return {**host, **changes}


def make_facts(*hosts: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """A scheduler's facts."""
    return {"hosts": hosts, "clients": 0, "waits": [], **changes}


_Scripted = TypeVar("_Scripted", bound="ScriptedFleet")
# What a host does instead: an Answer, None for what it does else, or an error of Dask's.
Act = Callable[["ScriptedFleet", str, str], Answer | None]


class Died(concurrent.futures.CancelledError):
    """As Dask says that a worker has gone."""


class Hangs(Exception):
    """Nothing comes of what a host is asked."""


class ScriptedFleet(Fleet):
    """Hosts that have these CPUs by name. What they are asked is in `asked`, with the host's name."""

    def __init__(self, toolchain: Toolchain, cpus: dict[str, str], act: Act = lambda *_: None) -> None:
        self._events = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._events.run_forever, daemon=True)
        self._thread.start()
        client: Any = SimpleNamespace(
            submit=self._submit,
            status="running",
            subscribe_topic=lambda *_: None,
            loop=SimpleNamespace(asyncio_loop=self._events),
        )
        super().__init__(Access(scheme="tls", host="bench", port=8786), client)
        self._offered = {toolchain.version: OfferedToolchain(compiler_sha256=toolchain.compiler_sha256, cpu=None)}
        self.here: dict[str, Offer] = {}
        self.asked: list[tuple[str, str]] = []
        self.taken: list[tuple[Any, ...]] = []  # what each of these takes
        self.waits: list[str] = []
        self.ratios: Callable[..., Any] = lambda *_: None
        self._act = act
        for name, cpu in cpus.items():
            self.come(name, cpu)

    def come(self, name: str, cpu: str, start: int = 1) -> None:
        """A host's worker is here, after so many starts."""
        facts = {"environment": {"cpu": {"model": cpu}}, "toolchains": self._offered}
        self.here[name] = make_offer(name, address=f"tcp://{name}/{start}", cores=1, **facts)
        self.on_change()

    def go(self, name: str) -> None:
        """A host leaves."""
        self.here.pop(name, None)
        self.on_change()

    def __enter__(self: _Scripted) -> _Scripted:
        return self

    def __exit__(self, *_: object) -> None:
        self._events.call_soon_threadsafe(self._events.stop)
        self._thread.join()
        self._events.close()

    async def offers(self) -> Offers:
        """Those that are here."""
        return Offers(usable=dict(self.here), refused={})

    async def tell_waits(self, waits: Mapping[str, int]) -> None:
        """What `harness fleet status` shows."""
        self.waits += waits

    def _submit(
        self, task: Any, *arguments: Any, workers: list[str], key: str = "", **_: Any
    ) -> asyncio.Future[Answer]:
        found: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        if not key:  # files, which all hosts have
            found.set_result(Answer(value=()))
            return found
        name, words = workers[0].split("/")[2], key.rpartition(" #")[0]
        self.asked.append((name, words))
        takes = arguments[0]
        self.taken.append(takes)
        try:
            answer = self._act(self, name, words)
            found.set_result(answer if answer is not None else self._answer(task, *takes))
        except Died as died:
            found.set_exception(died)
        except Hangs:
            pass
        return found

    def _answer(self, task: Any, *takes: Any) -> Answer:
        if task is tasks.compile_case:
            return Answer(value=(a_build(takes[1]), ""))
        if task is tasks.check_group:
            first = Check(case="", against="", command=(), relative_tolerance=0.0, absolute_tolerance=0.0)
            return Answer(value=(tuple(replace(first, case=case.name) for case in takes[0].cases), ()))
        if task is tasks.measure:
            given, wanted, asked, _ = takes
            turns = tuple(Turn(case=case.name, calls=1, wall_ns=10**9, cpu_ns=1) for case in given.cases)
            references = tuple(Reference(case=name, command=()) for name in asked)
            if wanted is None:
                return Answer(value=(references, None, []))
            timed = Round(group=wanted.group, generation=wanted.generation, round=0, started_unix_ns=0, turns=turns)
            return Answer(value=(references, None, [timed]))
        return Answer(value=self.ratios(*takes))


def pack_nothing(*values: Any) -> Packed:
    """In the place of `pack`: a scripted host takes the values themselves, and no file is looked at."""
    data: Any = values
    return Packed(data=data, files={})


def a_build(key: str) -> Build:
    """A build that is in the cache."""
    module = BuildCache(cache_root()).folder(key) / "module.vmfb"
    module.parent.mkdir(parents=True, exist_ok=True)
    module.write_text(key)
    sizes = Sizes(module_bytes=len(key), vm_bytes=0, constant_bytes=0, dispatch_bytes={})
    build = Build(case="", command=(), cache_key=key, module_sha256=file_sha256(module), sizes=sizes)
    (module.parent / BuildCache.FACTS_FILE).write_bytes(adapter(Build).dump_json(build))
    return build


def when(words: str, host: str, does: Callable[[ScriptedFleet], Answer | None], times: int = 10**9) -> Act:
    """What a host does instead where what it is asked begins with these words, the first so many times."""
    left = iter(range(times))

    def act(fleet: ScriptedFleet, name: str, asked: str) -> Answer | None:
        is_meant = asked.startswith(words) and name == host and next(left, None) is not None
        return does(fleet) if is_meant else None

    return act


def dies(host: str, *, comes_back_as: str = "") -> Callable[[ScriptedFleet], Answer | None]:
    """Its worker ends; another one may have the host's name then."""

    def die(fleet: ScriptedFleet) -> Answer | None:
        start = int(fleet.here[host].address.rpartition("/")[2]) if host in fleet.here else 0
        fleet.go(host)
        if comes_back_as and start:
            fleet.come(host, comes_back_as, start + 1)
        raise Died

    return die
