"""What a run directory holds, as values: a header, and records. Paths in them are relative to where commands ran."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from harness.errors import CaseError
from harness.records.case import Case, Gate, VariantGroup

SCHEMA_VERSION = 1


@dataclass(frozen=True, kw_only=True)
class Failure:
    """Why a case went no further."""

    stage: str  # `model`, `compile`, `ir`, `verify`, `measure` or `reference`
    message: str  # One sentence
    stderr: str = ""  # The last lines that the tool printed
    mismatch: bool = False  # Whether the case ran, and only its outputs are not the right ones

    @classmethod
    def of(cls, error: CaseError) -> Failure:
        """What a run keeps of an error."""
        return cls(stage=error.stage, message=str(error), stderr=error.stderr)


@dataclass(frozen=True, kw_only=True)
class Statistics:
    """iree-compile's scheduling statistics: static counts over the whole program, initialisers included."""

    dispatches: int
    copies: int
    fills: int
    awaits: int
    submissions: int
    executables: int
    transient_bytes: int | None  # None: some of it depends on sizes that only a call has
    constant_bytes: int
    variable_bytes: int


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """A module's bytes by component; `dispatch_bytes` by executable file name."""

    module_bytes: int
    vm_bytes: int
    constant_bytes: int
    dispatch_bytes: dict[str, int]


@dataclass(frozen=True, kw_only=True)
class PluginEffect:
    """What one Python rewrite did to a case's program."""

    name: str  # The plugin's name
    changed: bool  # Whether the program is another one afterwards
    matched: int | None = None  # How many places it matched; None in old runs, for what was no rewrite
    wall_ns: int | None = None  # Of its process


@dataclass(frozen=True, kw_only=True)
class Build:
    """What compiling one case gave; facts are None where `failure` is set."""

    case: str
    command: tuple[str, ...]  # The exact command line, run in a folder that holds the program as `model.mlir`
    cache_key: str
    cached: bool = False
    compile_ns: int | None = None  # Wall time of iree-compile when it ran (cached builds keep the time of that run)
    peak_rss_bytes: int | None = None  # Peak resident memory of iree-compile
    module_sha256: str | None = None
    sizes: Sizes | None = None
    statistics: Statistics | None = None
    outputs: int | None = None  # Number of results of the entry function
    warnings: tuple[str, ...] = ()  # Lines the compiler printed although it succeeded
    rewritten: bool = False  # Whether plugins made another program of the model; the build then keeps it
    files: tuple[str, ...] = ()  # Names of the files that plugins gave to the tools, as they lie in the working folder
    effects: tuple[PluginEffect, ...] = ()  # What rewrites of plugins did, in order
    failure: Failure | None = None


@dataclass(frozen=True, kw_only=True)
class EncodedTensor:
    """One buffer with an encoded tensor."""

    name: str
    encoded_bytes: int  # What it takes; with layouts for several devices the most that one of them wants
    unpadded_bytes: int  # What the same tensor takes as it is, for the case's inputs
    worst_ratio: float  # The largest of encoded over unpadded bytes, over all sizes of a call


@dataclass(frozen=True, kw_only=True)
class Storage:
    """All encoded tensors of a program, constants among them. Not all of them need exist at the same time."""

    tensors: tuple[EncodedTensor, ...] = ()

    @property
    def encoded_bytes(self) -> int:
        """Of all together."""
        return sum(tensor.encoded_bytes for tensor in self.tensors)

    @property
    def unpadded_bytes(self) -> int:
        """Of all together."""
        return sum(tensor.unpadded_bytes for tensor in self.tensors)

    @property
    def overhead(self) -> float | None:
        """What padding adds, as a share of the unpadded bytes; None where there are none."""
        return self.encoded_bytes / self.unpadded_bytes - 1 if self.unpadded_bytes else None

    @property
    def worst_ratio(self) -> float | None:
        """The largest of any one tensor, which that of all together cannot exceed; None where there are none."""
        return max((tensor.worst_ratio for tensor in self.tensors), default=None)


@dataclass(frozen=True, kw_only=True)
class IrCounts:
    """How many of the ops that a suite names the IR of a case has, and what its encoded tensors cost."""

    case: str
    counts: dict[str, int] = field(default_factory=dict)  # By `phase/op`; {} where it failed
    lacking: tuple[str, ...] = ()  # Phases that the suite names and the case's release of IREE does not have
    failure: Failure | None = None
    storage: Storage | None = None  # None where the suite did not ask, and where `storage_failure` is set
    storage_failure: Failure | None = None


@dataclass(frozen=True, kw_only=True)
class Work:
    """What one call of a model has to do, counted before any variant changes it; 0 where `failure` is set."""

    model: str
    operations: int = 0  # Arithmetic ones: a fused multiply-add is two, a function such as exp is one
    integer: int = 0  # Of these, those on integers
    transcendental: int = 0  # Of these, functions
    compulsory_bytes: int = 0  # Arguments, results and constants, each once
    footprint_bytes: int = 0  # Where every operation reads its operands and writes its results
    uncounted: dict[str, int] = field(default_factory=dict)  # Operations whose arithmetic is not in the count, by name
    failure: Failure | None = None


@dataclass(frozen=True, kw_only=True)
class Peak:
    """What this machine's processors reach with as many threads as a device has, measured as the run began to time."""

    device: str  # The suite's name for it
    threads: int
    operations_per_s: float | None = None  # The best of all programs that compute, in f32; None where none ran
    operations_by: str = ""
    bytes_per_s: float | None = None  # The best of all that stream
    bytes_by: str = ""
    measured: dict[str, float] = field(default_factory=dict)  # By program: operations or bytes a second
    failure: Failure | None = None
    host: str = ""  # Whose they are; "" where one machine measured the whole run


@dataclass(frozen=True, kw_only=True)
class OutputRecord:
    """One output of a case's first call, as it was checked."""

    file: str  # A .npy file relative to the cache folder; equal names hold equal values


@dataclass(frozen=True, kw_only=True)
class Check:
    """How a case's outputs compare with its reference."""

    case: str
    against: str  # What it was compared with, as in `ONNX Runtime 1.31.1`
    command: tuple[str, ...]
    relative_tolerance: float
    absolute_tolerance: float
    max_absolute: float | None = None  # Largest |a - b| over all outputs
    max_relative: float | None = None  # max |a - b| divided by max |b|
    outputs: tuple[OutputRecord, ...] = ()  # What a comparison with another run needs; () where the check failed
    other_inputs: bool = False  # Whether it was right for other random inputs too
    below_tolerance: tuple[int, ...] = ()  # Positions of the outputs for which zeros would pass
    wall_ns: int | None = None  # What the check took
    no_second_opinion: str = ""  # Why no reference judged it
    also_against: str = ""  # What else it agrees with
    reference: str = ""  # Where the evaluator's answer lies in the cache; "" where it did not judge
    spreads: float | None = None  # The largest error, in spreads of what the program's own rounding gives
    reproducer: str = ""  # A folder in the cache with what shows that the output is wrong
    note: str = ""  # What a reader should know of how the case was called
    keeps_state: bool = False  # Whether a call changes what later calls meet, so that only the first was checked
    failure: Failure | None = None


@dataclass(frozen=True, kw_only=True)
class DeviceMemory:
    """Peaks of one device's allocator."""

    device: str  # As iree-benchmark-module names it: the URI
    host_peak_bytes: int
    device_peak_bytes: int


@dataclass(frozen=True, kw_only=True)
class Reference:
    """What one iree-benchmark-module process says of a case; the figure that IREE's engineers quote."""

    case: str
    command: tuple[str, ...]
    real_time_ns: tuple[float, ...] = ()
    host_peak_bytes: int | None = None  # Peak of the host-local allocator statistics, summed over the devices
    device_peak_bytes: int | None = None  # The same of the device-local ones
    memory: tuple[DeviceMemory, ...] = ()  # Of each device, in the order of the command line
    load_1min: float | None = None
    failure: Failure | None = None
    host: str = ""  # Which host was asked; "" where one machine measured the whole run
    attempt: int = 0  # As of the group's `Placed`


@dataclass(frozen=True, kw_only=True)
class Account:
    """What the kernel says of a turn; None: this system does not tell."""

    on_calling_thread: bool  # Whether the device computes on the thread that calls, and nothing else does
    thread_ns: int | None = None  # CPU time of the thread that calls; None where that clock is coarse
    delayed_ns: int | None = None  # How long it could have run and had no core; with other threads, of all
    voluntary: int | None = None  # How often it gave its core away, to sleep or to wait for something (RUSAGE_THREAD)
    involuntary: int | None = None  # How often its core was taken from it
    minor_faults: int | None = None  # Pages that were in memory already
    major_faults: int | None = None  # Pages that had to be read
    core: int | None = None  # Where it ran at the end
    throttled: int | None = None  # How often a container's quota of CPU time stopped it


@dataclass(frozen=True, kw_only=True)
class Turn:
    """One timed batch of `calls` calls of one case."""

    case: str
    calls: int
    wall_ns: int
    cpu_ns: int  # CPU time of the whole process
    counters: dict[str, int] = field(default_factory=dict)  # User-mode hardware events of the whole batch
    account: Account | None = None  # None in runs that are older than this field


@dataclass(frozen=True, kw_only=True)
class Round:
    """One turn of every case of a group, in the order they ran, inside one worker process (a generation)."""

    group: str
    generation: int
    round: int
    started_unix_ns: int
    turns: tuple[Turn, ...]
    host: str = ""  # Which host timed it; "" where one machine measured the whole run
    attempt: int = 0  # As of the group's `Placed`


@dataclass(frozen=True, kw_only=True)
class Lost:
    """A case that was lost while its group was measured."""

    case: str
    generation: int
    failure: Failure
    host: str = ""  # Which host lost it; "" where any would
    attempt: int = 0  # As of the group's `Placed`


@dataclass(frozen=True, kw_only=True)
class HostRecord:
    """One of several hosts that measured a run; a later record of the same name replaces an earlier one."""

    name: str
    environment: dict[str, dict[str, Any]]  # As in a header, with the host's own devices, device_names and peers


@dataclass(frozen=True, kw_only=True)
class Placed:
    """That a group is measured on a host, or compiled for its CPU; a later record of a group replaces an earlier one.

    What was recorded of the group in earlier attempts, on other hosts or on this one, stays on disk and does not count.
    """

    group: str
    host: str
    attempt: int = 0  # How often the group had been placed before
    why: str = ""  # Why it moved here; "" where it was here from the beginning


@dataclass(frozen=True, kw_only=True)
class ArgumentRecord:
    """One argument of an entry function."""

    file: str  # Relative to the cache folder
    shape: tuple[int, ...]
    dtype: str  # MLIR's name of the element type
    scalar: bool = False  # Whether it is passed by value


@dataclass(frozen=True, kw_only=True)
class ModelRecord:
    """What was compiled: identity of the MLIR and how its entry is called."""

    name: str
    mlir_sha256: str
    mlir_bytes: int
    function: str
    inputs: tuple[str, ...]  # One line each, as a person would write it: `1x64x90x62xf32 random seed 0`
    parameters: tuple[str, ...] = ()  # Scopes of external weights
    mlir: str = ""  # The program's file, relative to the cache folder; "" in runs that are older than this field
    arguments: tuple[ArgumentRecord, ...] = ()  # What a comparison needs to call it again; likewise
    # Files of external weights by scope, relative to the suite's folder
    parameter_files: dict[str, str] = field(default_factory=dict)
    failure: Failure | None = None


@dataclass(frozen=True, kw_only=True)
class ToolchainRecord:
    """Identity of one compiler and runtime pair."""

    version: str
    revision: str
    compiler_sha256: str
    runtime_sha256: str = ""  # "": not known
    remarks: tuple[str, ...] = ()  # What a reader of its figures has to know, as clauses

    def has_runtime_of(self, other: ToolchainRecord) -> bool:
        """Whether modules of both run on the same runtime."""
        return self == other or (self.runtime_sha256 != "" and self.runtime_sha256 == other.runtime_sha256)


@dataclass(frozen=True, kw_only=True)
class Header:
    """Everything that is known before the first build."""

    schema_version: int
    id: str
    suite: str  # Path of the suite as the user gave it
    suite_name: str
    suite_description: str
    suite_sha256: str  # Hash of the suite's and its flag sets' text
    started: str  # ISO 8601, UTC
    harness_version: str
    harness_commit: str
    command: tuple[str, ...]
    baseline: str
    toolchains: tuple[ToolchainRecord, ...]
    models: tuple[ModelRecord, ...]
    cases: tuple[Case, ...]
    groups: tuple[VariantGroup, ...]
    settings: dict[str, Any]  # Options of the run that change what is measured, and the `purpose`
    environment: dict[str, dict[str, Any]]  # Sections of plain values, see harness.machine.environment
    floors: dict[str, float] = field(default_factory=dict)  # The suite's, by metric
    gates: tuple[Gate, ...] = ()  # The suite's; () in runs that are older than gates

    @property
    def imported(self) -> str:
        """The file of another tool that it was imported from, so that it has no modules; "" of `harness run`."""
        return str(self.settings.get("imported", ""))

    @property
    def purpose(self) -> str:
        """The command that made the run for a purpose of its own, so that no history is wanted; "" of `harness run`."""
        return str(self.settings.get("purpose", ""))


@dataclass(frozen=True, kw_only=True)
class Run:
    """A whole run, read back: finished, or as far as it got."""

    header: Header
    builds: tuple[Build, ...] = ()
    ir: tuple[IrCounts, ...] = ()
    checks: tuple[Check, ...] = ()
    references: tuple[Reference, ...] = ()
    rounds: tuple[Round, ...] = ()  # Those that count, see `Placed`; of lost cases and references likewise
    lost: tuple[Lost, ...] = ()
    work: tuple[Work, ...] = ()
    peaks: tuple[Peak, ...] = ()
    finished: bool = False
    hosts: tuple[HostRecord, ...] = ()  # () where one machine measured the whole run, the header's
    placed: tuple[Placed, ...] = ()  # All of them, in order

    @cached_property
    def host_of_group(self) -> Mapping[str, str]:
        """The host that a group was placed on last, by group; {} where one machine measured the whole run."""
        return {placed.group: placed.host for placed in self.placed}

    @cached_property
    def environments(self) -> Mapping[str, dict[str, dict[str, Any]]]:
        """What each host was like that groups were placed on (else all), by its name; {} where there is one machine."""
        used = set(self.host_of_group.values())
        return {host.name: host.environment for host in self.hosts if not used or host.name in used}

    @property
    def machines(self) -> tuple[dict[str, dict[str, Any]], ...]:
        """What each machine was like that measured the run: its hosts, or the one that the header tells of."""
        return tuple(self.environments.values()) or (self.header.environment,)

    def host_of(self, case: Case) -> str:
        """The host that measured a case, or that it is placed on; "" where no host is known for it."""
        return self.host_of_group.get(case.group, "")

    def environment_of(self, case: Case) -> dict[str, dict[str, Any]]:
        """What the machine that measured a case was like: its host, or else the one that the header tells of."""
        return self.environments.get(self.host_of(case), self.header.environment)
