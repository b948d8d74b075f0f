"""A case that is ready to run: do its devices fit the module, and what does one run give?

IREE's runtime leaves devices idle that a program does not use. A module holds the message of its own search for each of
its devices; here a device is `local[0]`, the first of its kind, as --iree-hal-target-device has it.
"""

import json
import mmap
import re
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from harness.errors import CaseError
from harness.files import NPY_ERRORS
from harness.measure.session import Group
from harness.models.inputs import from_bf16_bits
from harness.models.materialize import MODULE_FILE, ModelArtifact
from harness.peers.worker import LoadablePeer
from harness.process import Finished, Limits
from harness.records.case import Case
from harness.records.run import Build, DeviceMemory, Failure, Reference
from harness.toolchain import Toolchain
from harness.toolchain.tools import excerpt, run_tool, status_text

_SEARCH = re.compile(rb"HAL device `([^`]+)` not found or unavailable: ([\x20-\x7e]+)")
# What follows the kind up to the list of executable targets holds the ordinal, where there is one.
_TARGET = re.compile(r'#hal\.device\.target<"([^"]+)"([^\[]*)')
_ORDINAL = re.compile(r"\bordinal = (\d+)")
_FALLBACK = "#hal.device.fallback"
_LOCAL = "local"


def module_devices(module: Path) -> dict[str, tuple[str, ...]]:
    """By name, what each of a module's devices may be, in order of preference; () where another stands in for it."""
    if not module.is_file() or not module.stat().st_size:
        return {}  # the runtime's own error says more
    with module.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        targets = {name.decode(): target.decode() for name, target in _SEARCH.findall(content)}
    return {name: () if _FALLBACK in target else _places(target) for name, target in targets.items()}


def _places(target: str) -> tuple[str, ...]:
    ordinals = ((kind, _ORDINAL.search(rest)) for kind, rest in _TARGET.findall(target))
    return tuple(f"{kind}[{ordinal[1] if ordinal else 0}]" for kind, ordinal in ordinals)


def misfit(devices: Mapping[str, Sequence[str]], uris: Sequence[str]) -> str | None:
    """Why these devices are not the program's, as a sentence; None: they fit, or the module does not say."""
    if not devices or not all(devices.values()):
        return None
    kinds = [uri.split("://", 1)[0] for uri in uris]
    kinds = [_LOCAL if kind.startswith(f"{_LOCAL}-") else kind for kind in kinds]
    asked = [f"{kind}[{kinds[:position].count(kind)}]" for position, kind in enumerate(kinds)]
    for name, places in devices.items():
        if not set(places) & set(asked):
            return f"the program needs a device {name} ({' or '.join(places)}), and uri has none; add one to uri"
    used = {place for places in devices.values() for place in places}
    for place, uri in zip(asked, uris, strict=True):
        if place not in used:
            targets = ", ".join(f"{name} = {' or '.join(places)}" for name, places in devices.items())
            return (
                f"nothing of the program is for {uri} ({place}), one of {len(uris)} devices in uri, since it was "
                f"compiled for {targets}; shorten uri, or name it in --iree-hal-target-device"
            )
    return None


Array = npt.NDArray[np.generic]

_OUTPUT_FLAG = "--output="
_NO_NPY_FORM = "unsupported data encoding"
# What the tool prints of a result, `4x17x65xbf16=[[0.87...][...]]`.
_PRINTED = re.compile(r"^(?:result\[\d+\]: )?((?:\d+x)*)([a-z][a-z0-9]*)=", re.MULTILINE)


@dataclass(frozen=True, kw_only=True)
class ModuleCall:
    """A call of a compiled module through IREE's runtime tools."""

    toolchain: Toolchain
    folder: Path  # Holds the module, as module.vmfb, and its inputs; the tools run in it
    function: str
    inputs: tuple[str, ...] = ()  # Texts of --input=
    parameters: tuple[str, ...] = ()  # Texts of --parameters=
    uris: tuple[str, ...]  # The devices, in order
    run_flags: tuple[str, ...] = ()
    cpus: frozenset[int] | None = None  # Cores to hold the tool on; None: wherever the system puts it
    environment: Mapping[str, str] = field(default_factory=dict)  # Variables that the tool needs

    @property
    def flags(self) -> tuple[str, ...]:
        """What every tool takes, but for the run flags."""
        return (
            "--module=module.vmfb",
            *(f"--device={uri}" for uri in self.uris),
            f"--function={self.function}",
            *(f"--parameters={text}" for text in self.parameters),
            *(f"--input={text}" for text in self.inputs),
        )

    def run(self, stage: str, command: Sequence[str], limits: Limits) -> Finished:
        """Run one of the runtime's tools with this command line, to its end."""
        name, *arguments = command
        started = [str(self.toolchain.runtime_tool(name)), *arguments]
        environment, cpus = self.environment, self.cpus
        return run_tool(stage, name, started, cwd=self.folder, limits=limits, environment=environment, cpus=cpus)


def require_success(stage: str, finished: Finished, limits: Limits) -> None:
    """Refuse how a runtime tool ended, unless with status 0."""
    if finished.ok:
        return
    message = f"{Path(finished.command[0]).name} {finished.how_it_ended(limits)}"
    if finished.limit is not None:
        message += "; give it more with --call-timeout"
    elif reason := status_text(finished.stderr):
        message += f": {reason}"
    raise CaseError(stage, message, excerpt(finished.stderr))


def run_command(call: ModuleCall, outputs: int) -> tuple[str, ...]:
    """The iree-run-module command line that writes so many outputs into the call's folder."""
    files = (f"{_OUTPUT_FLAG}@output{position}.npy" for position in range(outputs))
    return ("iree-run-module", *call.flags, *files, *call.run_flags)


def run_once(call: ModuleCall, outputs: int, limits: Limits) -> list[Array]:
    """Run a module once and read its outputs; those of bf16, which the tool writes raw, in further runs."""
    command = run_command(call, outputs)
    finished = call.run("verify", command, limits)
    raw: dict[str, tuple[int, ...]] = {}
    if _NO_NPY_FORM in finished.stderr and (raw := _bf16_outputs(call, outputs, limits)):
        again = [flag.replace(".npy", ".bin") if flag in raw else flag for flag in command]
        finished = call.run("verify", again, limits)
    require_success("verify", finished, limits)
    try:
        return [
            _load_bf16(call.folder / f"output{position}.bin", raw[flag])
            if flag in raw
            else load_array(call.folder / f"output{position}.npy")
            for position, flag in enumerate(flag for flag in command if flag.startswith(_OUTPUT_FLAG))
        ]
    except ValueError as error:
        raise CaseError("verify", f"{command[0]} exited with status 0, but an output {error}") from None


def _bf16_outputs(call: ModuleCall, outputs: int, limits: Limits) -> dict[str, tuple[int, ...]]:
    """Shapes of the bf16 outputs by their --output= flag, as the tool prints them; a module need not declare them."""
    shown = (f"{_OUTPUT_FLAG}-",) * outputs
    command = ("iree-run-module", *call.flags, *shown, "--output_max_element_count=1", *call.run_flags)
    printed = _PRINTED.findall(call.run("verify", command, limits).stdout)
    return {
        f"{_OUTPUT_FLAG}@output{position}.npy": tuple(int(size) for size in sizes.split("x")[:-1])
        for position, (sizes, element) in enumerate(printed)
        if element == "bf16" and len(printed) == outputs
    }


def _load_bf16(path: Path, shape: tuple[int, ...]) -> Array:
    try:
        return from_bf16_bits(np.fromfile(path, dtype="<u2").reshape(shape))
    except (OSError, ValueError):
        raise ValueError(f"is not there or was cut short ({path.name})") from None


def load_array(path: Path) -> Array:
    """The values of a .npy file; bf16, which numpy writes as two bytes without a meaning, as float32."""
    try:
        array: Array = np.load(path, allow_pickle=False)
    except OSError as error:
        raise ValueError(f"cannot be read ({path.name}: {error.strerror})") from None
    except NPY_ERRORS:
        raise ValueError(f"is no whole .npy file ({path.name})") from None
    if array.dtype.kind == "V" and array.dtype.itemsize == 2:
        return from_bf16_bits(array.view(np.uint16))
    if array.dtype.kind not in "biufc":
        raise ValueError(f"has elements of {array.dtype}, which are no numbers ({path.name})")
    return array


@dataclass(frozen=True, kw_only=True)
class Runnable:
    """A compiled case in its folder, ready to run."""

    case: Case
    build: Build
    artifact: ModelArtifact
    folder: Path  # As lay_out made it
    toolchain: Toolchain  # The toolchain that compiled it and runs it
    cpus: frozenset[int] | None  # Cores to hold its processes on; None: wherever the system puts them
    note: str = ""  # What a reader should know of how it is called

    @property
    def call(self) -> ModuleCall:
        """The call that IREE's runtime tools make."""
        return ModuleCall(
            toolchain=self.toolchain,
            folder=self.folder,
            function=self.artifact.function,
            inputs=tuple(argument.flag for argument in self.artifact.arguments),
            parameters=self.artifact.parameter_flags,
            uris=self.case.uris,
            run_flags=self.case.run_flags,
            cpus=self.cpus,
            environment=self.case.environment,
        )

    @property
    def command(self) -> tuple[str, ...]:
        """The iree-run-module command line that gives its outputs."""
        return run_command(self.call, self.build.outputs or 0)

    def outputs(self, limits: Limits) -> Sequence[Array]:
        """Run it once."""
        if problem := misfit(module_devices(self.folder / MODULE_FILE), self.case.uris):
            raise CaseError("verify", problem)
        return run_once(self.call, self.build.outputs or 0, limits)


@dataclass(frozen=True, kw_only=True)
class RunnablePeer:
    """A case of a peer, ready to run."""

    case: Case
    artifact: ModelArtifact
    loadable: LoadablePeer
    cpus: frozenset[int] | None

    @property
    def command(self) -> tuple[str, ...]:
        """Empty: its worker gives its outputs, and no command line does."""
        return ()

    def outputs(self, limits: Limits) -> Sequence[Array]:
        """Run it once, in a worker as it is timed in."""
        group = Group(name=self.case.group, uri=self.case.uri, cases=(), cpus=self.cpus)
        with tempfile.TemporaryDirectory(prefix="harness-peer-") as folder:
            try:
                with self.loadable.worker(group, limits.seconds) as worker:
                    worker.ask(op="load", case=self.case.name, **self.loadable.request())
                    answer = worker.ask(op="outputs", case=self.case.name, folder=folder)
                files = [Path(folder) / f"output{position}.npy" for position in range(int(answer["outputs"]))]
                return [load_array(file) for file in files]
            except CaseError as error:
                raise CaseError("verify", f"{self.loadable.peer.peer.title}: {error}", error.stderr) from None
            except ValueError as error:
                raise CaseError("verify", f"{self.loadable.peer.peer.title}: an output {error}") from None


AnyRunnable = Runnable | RunnablePeer

REPETITIONS = 3
MIN_TIME_S = 0.3

# `Device: local-task` heads a device's block, in which `  HOST_LOCAL:   0B peak / 0B allocated / ...` is a line.
_DEVICE = re.compile(r"^Device: *(.*?)\s*$", re.MULTILINE)
_PEAK = re.compile(r"^\s*(HOST_LOCAL|DEVICE_LOCAL):\s*(\d+)B peak", re.MULTILINE)
UNIT_NS = {"ns": 1.0, "us": 1e3, "ms": 1e6, "s": 1e9}


def run_benchmark_module(case: str, call: ModuleCall, limits: Limits, *, for_memory: bool = False) -> Reference:
    """Run it once, or just so long that it says what memory it takes; a failure is a Reference with `failure` set."""
    repetitions, seconds = (1, 0.001) if for_memory else (REPETITIONS, MIN_TIME_S)
    command = (
        "iree-benchmark-module",
        *call.flags,
        *call.run_flags,
        f"--benchmark_repetitions={repetitions}",
        f"--benchmark_min_time={seconds}s",
        "--time_unit=ns",
        "--print_statistics=true",
        "--benchmark_format=json",
    )
    try:
        finished = call.run("reference", command, limits)
        require_success("reference", finished, limits)
        times, load = parse_times(finished.stdout)
    except CaseError as error:
        return Reference(case=case, command=command, failure=Failure.of(error))
    memory = parse_memory(finished.stderr)
    return Reference(
        case=case,
        command=command,
        real_time_ns=() if for_memory else times,
        host_peak_bytes=sum(device.host_peak_bytes for device in memory) if memory else None,
        device_peak_bytes=sum(device.device_peak_bytes for device in memory) if memory else None,
        memory=memory,
        load_1min=load,
    )


def parse_times(text: str) -> tuple[tuple[float, ...], float | None]:
    """Real time of each of the function's own repetitions in nanoseconds, and the load average that the tool saw."""
    try:
        document: Mapping[str, Any] = json.loads(text)
        rows = [
            float(row["real_time"]) * UNIT_NS[row["time_unit"]]
            for row in document["benchmarks"]
            if row["run_type"] == "iteration" and str(row["run_name"]).endswith("/process_time/real_time")
            if not row.get("error_occurred")
        ]
        loads = document.get("context", {}).get("load_avg")
        load = float(loads[0]) if loads else None
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise CaseError("reference", f"iree-benchmark-module printed JSON of an unknown form ({error!r})") from None
    if not rows:
        raise CaseError("reference", "iree-benchmark-module exited with status 0 and measured nothing")
    return tuple(rows), load


def parse_memory(stderr: str) -> tuple[DeviceMemory, ...]:
    """Peak memory of each device; () where statistics are compiled out."""
    _, *parts = _DEVICE.split(stderr)
    blocks = [(name, dict(_PEAK.findall(block))) for name, block in zip(parts[::2], parts[1::2], strict=True)]
    return tuple(
        DeviceMemory(
            device=name,
            host_peak_bytes=int(peaks.get("HOST_LOCAL", 0)),
            device_peak_bytes=int(peaks.get("DEVICE_LOCAL", 0)),
        )
        for name, peaks in blocks
        if peaks
    )
