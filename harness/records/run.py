"""What a run directory holds, as values. Paths in them are relative to the place the commands ran in.

A run is a header (run.json, written once) and append-only files with one JSON line a record: builds.jsonl, ir.jsonl,
checks.jsonl, references.jsonl, rounds.jsonl, work.jsonl and peaks.jsonl, and lost.jsonl for cases lost while measuring.
A run of several hosts has hosts.jsonl and placed.jsonl too: which host measured which group, and what each is like.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from harness.errors import CaseError
from harness.records.case import Case, Gate, VariantGroup

SCHEMA_VERSION = 1
# Commands that make runs for a purpose of their own: of their runs, no history is wanted.
PURPOSES = ("compare", "selfcheck", "ablate", "bench", "tune")
# The same of a command line, for runs that are older than the setting.
PURPOSE_IN_COMMAND = rf"^harness (?:-\S+ )*({'|'.join(PURPOSES)})(?: |$)"


@dataclass(frozen=True, kw_only=True)
class Failure:
    """Why a case went no further.

    Attributes:
        stage: `model`, `compile`, `ir`, `verify`, `measure` or `reference`.
        message: One sentence.
        stderr: The last lines that the tool printed.
        mismatch: Whether the case ran, and only its outputs are not the right ones.
    """

    stage: str
    message: str
    stderr: str = ""
    mismatch: bool = False

    @classmethod
    def of(cls, error: CaseError) -> Failure:
        """What a run keeps of an error."""
        return cls(stage=error.stage, message=str(error), stderr=error.stderr)


@dataclass(frozen=True, kw_only=True)
class Statistics:
    """iree-compile's scheduling statistics: static counts over the whole program, initialisers included.

    Attributes:
        transient_bytes: None: some of it depends on sizes that only a call has. Runs of 0.1.0 have what is known then.
    """

    dispatches: int
    copies: int
    fills: int
    awaits: int
    submissions: int
    executables: int
    transient_bytes: int | None
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
    """What one plugin, or one flag that preprocesses, did to a case's program.

    Attributes:
        name: The plugin's name, or the flag's, with its dashes, where a suite gives it itself.
        matched: How many places a Python rewrite matched; None for other kinds.
        changed: Whether the program is another one afterwards.
        wall_ns: Of a Python rewrite's process.
        left_alone: How many places a Python rewrite did not match, by what they are, where it says so.
    """

    name: str
    changed: bool
    matched: int | None = None
    wall_ns: int | None = None
    left_alone: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Build:
    """What compiling one case gave; facts are None where `failure` is set.

    Attributes:
        command: The exact command line, run in a folder that holds the program as `model.mlir`.
        compile_ns: Wall time of iree-compile when it ran (cached builds keep the time of that run).
        peak_rss_bytes: Peak resident memory of iree-compile.
        outputs: Number of results of the entry function.
        warnings: Lines the compiler printed although it succeeded.
        rewritten: Whether plugins made another program of the model; the build then keeps it.
        files: Names of the files that plugins gave to the tools, as they lie in the working folder.
        effects: What plugins and preprocessing flags did, in order, as far as it can be told.
    """

    case: str
    command: tuple[str, ...]
    cache_key: str
    cached: bool = False
    compile_ns: int | None = None
    peak_rss_bytes: int | None = None
    module_sha256: str | None = None
    sizes: Sizes | None = None
    statistics: Statistics | None = None
    outputs: int | None = None
    warnings: tuple[str, ...] = ()
    rewritten: bool = False
    files: tuple[str, ...] = ()
    effects: tuple[PluginEffect, ...] = ()
    failure: Failure | None = None


@dataclass(frozen=True, kw_only=True)
class EncodedTensor:
    """One buffer with an encoded tensor.

    Attributes:
        encoded_bytes: What it takes; with layouts for several devices the most that one of them wants.
        unpadded_bytes: What the same tensor takes as it is, for the case's inputs.
        worst_ratio: The largest that encoded over unpadded bytes can be, over all sizes from 1 of the dimensions that
            the inputs decide. Where they decide none, that of its own sizes.
    """

    name: str
    encoded_bytes: int
    unpadded_bytes: int
    worst_ratio: float


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
    """How many of the ops that a suite names the IR of a case has, and what its encoded tensors cost.

    Attributes:
        counts: By `phase/op`, as in `flow/flow.tensor.update`; {} where `failure` is set.
        lacking: Phases that the suite names and the case's release of IREE does not have.
        storage: None where the suite did not ask, and where `storage_failure` is set.
    """

    case: str
    counts: dict[str, int] = field(default_factory=dict)
    lacking: tuple[str, ...] = ()
    failure: Failure | None = None
    storage: Storage | None = None
    storage_failure: Failure | None = None


@dataclass(frozen=True, kw_only=True)
class Work:
    """What one call of a model has to do, counted before any variant changes it; 0 where `failure` is set.

    Attributes:
        operations: Arithmetic ones, floating and integer: a fused multiply-add is two, a function such as exp is one.
        integer: Of these, those on integers.
        transcendental: Of these, functions.
        compulsory_bytes: Arguments, results and constants, each once.
        footprint_bytes: What goes to and from memory where every operation reads its operands and writes its results.
        uncounted: Operations whose arithmetic is not in the count, by name.
    """

    model: str
    operations: int = 0
    integer: int = 0
    transcendental: int = 0
    compulsory_bytes: int = 0
    footprint_bytes: int = 0
    uncounted: dict[str, int] = field(default_factory=dict)
    failure: Failure | None = None


@dataclass(frozen=True, kw_only=True)
class Peak:
    """What this machine's processors reach with as many threads as a device has, measured as the run began to time.

    Attributes:
        device: The suite's name for it.
        operations_per_s: The best of all programs that compute, in f32; None where none ran.
        bytes_per_s: The best of all that stream.
        measured: By program, as in `sgemm 512` and `copy`: operations or bytes a second.
        host: Whose they are; "" where one machine measured the whole run.
    """

    device: str
    threads: int
    operations_per_s: float | None = None
    operations_by: str = ""
    bytes_per_s: float | None = None
    bytes_by: str = ""
    measured: dict[str, float] = field(default_factory=dict)
    failure: Failure | None = None
    host: str = ""


@dataclass(frozen=True, kw_only=True)
class OutputRecord:
    """One output of a case's first call, as it was checked.

    Attributes:
        file: A .npy file relative to the cache folder; equal names hold equal values.
    """

    file: str


@dataclass(frozen=True, kw_only=True)
class Check:
    """How a case's outputs compare with its reference.

    Attributes:
        against: What it was compared with: the float64 reference, `expected files`, `ONNX Runtime 1.31.1`, IREE's
            interpreter, or the name of a baseline that nothing else judged.
        also_against: What else it agrees with.
        reference: Where the evaluator's answer lies in the cache; "" where it did not judge.
        spreads: The largest error, in spreads of what the program's own rounding gives.
        reproducer: A folder in the cache with what shows that the output is wrong.
        note: What a reader should know of how the case was called.
        max_absolute: Largest |a - b| over all outputs.
        max_relative: max |a - b| divided by max |b|.
        outputs: What a comparison with another run needs; () where the check failed, and in runs that are older than
            this field.
        other_inputs: Whether it was right for other random inputs too.
        below_tolerance: Positions of the outputs for which zeros would pass, since all right values are about that.
        wall_ns: What the check took; None in runs that are older than this field.
        no_second_opinion: Why no reference judged it.
    """

    case: str
    against: str
    command: tuple[str, ...]
    relative_tolerance: float
    absolute_tolerance: float
    max_absolute: float | None = None
    max_relative: float | None = None
    outputs: tuple[OutputRecord, ...] = ()
    other_inputs: bool = False
    below_tolerance: tuple[int, ...] = ()
    wall_ns: int | None = None
    no_second_opinion: str = ""
    also_against: str = ""
    reference: str = ""
    spreads: float | None = None
    reproducer: str = ""
    note: str = ""
    failure: Failure | None = None


@dataclass(frozen=True, kw_only=True)
class DeviceMemory:
    """Peaks of one device's allocator.

    Attributes:
        device: As iree-benchmark-module names it: the URI.
    """

    device: str
    host_peak_bytes: int
    device_peak_bytes: int


@dataclass(frozen=True, kw_only=True)
class Reference:
    """What one iree-benchmark-module process says of a case; the figure that IREE's engineers quote.

    Attributes:
        host_peak_bytes: Peak of the host-local allocator statistics, summed over the devices.
        device_peak_bytes: The same of the device-local ones.
        memory: Of each device, in the order of the command line; () in runs that are older than this field.
        wall_ns: What the whole process took; None in runs that are older than this field.
        host: Which host was asked; "" where one machine measured the whole run.
        attempt: As of the group's `Placed`.
    """

    case: str
    command: tuple[str, ...]
    real_time_ns: tuple[float, ...] = ()
    host_peak_bytes: int | None = None
    device_peak_bytes: int | None = None
    memory: tuple[DeviceMemory, ...] = ()
    load_1min: float | None = None
    wall_ns: int | None = None
    failure: Failure | None = None
    host: str = ""
    attempt: int = 0


@dataclass(frozen=True, kw_only=True)
class Account:
    """What the kernel says of a turn; None: this system does not tell.

    Attributes:
        on_calling_thread: Whether the device computes on the thread that calls, and nothing else does.
        thread_ns: CPU time of the thread that calls (CLOCK_THREAD_CPUTIME_ID); None where that clock is coarse too.
        delayed_ns: How long it could have run and another had its core; of all threads of the process together where
            the device computes on others than the one that calls.
        voluntary: How often it gave its core away, to sleep or to wait for something (RUSAGE_THREAD).
        involuntary: How often its core was taken from it.
        minor_faults: Pages that were in memory already.
        major_faults: Pages that had to be read.
        core: Where it ran at the end.
        throttled: How often a container's quota of CPU time stopped it.
    """

    on_calling_thread: bool
    thread_ns: int | None = None
    delayed_ns: int | None = None
    voluntary: int | None = None
    involuntary: int | None = None
    minor_faults: int | None = None
    major_faults: int | None = None
    core: int | None = None
    throttled: int | None = None


@dataclass(frozen=True, kw_only=True)
class Turn:
    """One timed batch of `calls` calls of one case.

    Attributes:
        cpu_ns: CPU time of the whole process.
        counters: User-mode hardware events of the whole batch (instructions, cycles, cache_misses, branch_misses).
        account: None in runs that are older than this field.
    """

    case: str
    calls: int
    wall_ns: int
    cpu_ns: int
    counters: dict[str, int] = field(default_factory=dict)
    account: Account | None = None


@dataclass(frozen=True, kw_only=True)
class Round:
    """One turn of every case of a group, in the order they ran, inside one worker process (a generation).

    Attributes:
        host: Which host timed it; "" where one machine measured the whole run.
        attempt: As of the group's `Placed`.
    """

    group: str
    generation: int
    round: int
    started_unix_ns: int
    turns: tuple[Turn, ...]
    host: str = ""
    attempt: int = 0


@dataclass(frozen=True, kw_only=True)
class Lost:
    """A case that was lost while its group was measured.

    Attributes:
        host: Which host lost it; "" where one machine measured the whole run, or where any host would lose it too.
        attempt: As of the group's `Placed`.
    """

    case: str
    generation: int
    failure: Failure
    host: str = ""
    attempt: int = 0


@dataclass(frozen=True, kw_only=True)
class HostRecord:
    """One of several hosts that measured a run; a later record of the same name replaces an earlier one.

    Attributes:
        environment: As in a header, with the host's own devices, device_names and peers.
    """

    name: str
    environment: dict[str, dict[str, Any]]


@dataclass(frozen=True, kw_only=True)
class Placed:
    """That a group is measured on a host, or compiled for its CPU; a later record of a group replaces an earlier one.

    What was recorded of the group in earlier attempts, on other hosts or on this one, stays on disk and does not count.

    Attributes:
        attempt: How often the group had been placed before.
        why: Why it moved here; "" where it was here from the beginning.
    """

    group: str
    host: str
    attempt: int = 0
    why: str = ""


@dataclass(frozen=True, kw_only=True)
class ArgumentRecord:
    """One argument of an entry function.

    Attributes:
        file: Relative to the cache folder.
        dtype: MLIR's name of the element type.
        scalar: Whether it is passed by value.
    """

    file: str
    shape: tuple[int, ...]
    dtype: str
    scalar: bool = False


@dataclass(frozen=True, kw_only=True)
class ModelRecord:
    """What was compiled: identity of the MLIR and how its entry is called.

    Attributes:
        inputs: One line each, as a person would write it: `1x64x90x62xf32 random seed 0`.
        parameters: Scopes of external weights.
        mlir: The program's file, relative to the cache folder; "" in runs that are older than this field.
        arguments: What a comparison needs to call it again; likewise.
        parameter_files: Files of external weights by scope, relative to the suite's folder.
    """

    name: str
    mlir_sha256: str
    mlir_bytes: int
    function: str
    inputs: tuple[str, ...]
    parameters: tuple[str, ...] = ()
    mlir: str = ""
    arguments: tuple[ArgumentRecord, ...] = ()
    parameter_files: dict[str, str] = field(default_factory=dict)
    failure: Failure | None = None


@dataclass(frozen=True, kw_only=True)
class ToolchainRecord:
    """Identity of one compiler and runtime pair."""

    version: str
    revision: str
    compiler_sha256: str


@dataclass(frozen=True, kw_only=True)
class Header:
    """Everything that is known before the first build.

    Attributes:
        suite: Path of the suite as the user gave it.
        suite_sha256: Hash of the suite's and its flag sets' text.
        started: ISO 8601, UTC.
        environment: Sections of plain values, see harness.machine.environment.
        settings: Options of the run that change what is measured (budget_s, generations, seed, jobs, ...), and the
            `purpose`, see there.
        floors: The suite's, by metric; {} in runs that are older than floors.
        gates: The suite's; () in runs that are older than gates.
    """

    schema_version: int
    id: str
    suite: str
    suite_name: str
    suite_description: str
    suite_sha256: str
    started: str
    harness_version: str
    harness_commit: str
    command: tuple[str, ...]
    baseline: str
    toolchains: tuple[ToolchainRecord, ...]
    models: tuple[ModelRecord, ...]
    cases: tuple[Case, ...]
    groups: tuple[VariantGroup, ...]
    settings: dict[str, Any]
    environment: dict[str, dict[str, Any]]
    floors: dict[str, float] = field(default_factory=dict)
    gates: tuple[Gate, ...] = ()

    @property
    def purpose(self) -> str:
        """The one of PURPOSES that made the run; "" of a run that was made for its own sake."""
        if "purpose" in self.settings:
            purpose = self.settings["purpose"]
            return purpose if purpose in PURPOSES else ""
        found = re.match(PURPOSE_IN_COMMAND, shlex.join(self.command))
        return found[1] if found is not None else ""


@dataclass(frozen=True, kw_only=True)
class Run:
    """A whole run, read back: finished, or as far as it got.

    Attributes:
        rounds: Those that count, see `Placed`; of lost cases and references likewise.
        turns_dropped: When `harness results gc` deleted its rounds (ISO 8601, UTC); "" where it did not.
        hosts: () where one machine measured the whole run, the header's.
        placed: All of them, in order.
    """

    header: Header
    builds: tuple[Build, ...] = ()
    ir: tuple[IrCounts, ...] = ()
    checks: tuple[Check, ...] = ()
    references: tuple[Reference, ...] = ()
    rounds: tuple[Round, ...] = ()
    lost: tuple[Lost, ...] = ()
    work: tuple[Work, ...] = ()
    peaks: tuple[Peak, ...] = ()
    finished: bool = False
    turns_dropped: str = ""
    hosts: tuple[HostRecord, ...] = ()
    placed: tuple[Placed, ...] = ()

    @cached_property
    def host_of_group(self) -> Mapping[str, str]:
        """The host that a group was placed on last, by group; {} where one machine measured the whole run."""
        return {placed.group: placed.host for placed in self.placed}

    @cached_property
    def environments(self) -> Mapping[str, dict[str, dict[str, Any]]]:
        """What each host was like that groups were placed on, by its name; {} where one machine measured the whole run.

        Of a run that has placed nothing, all of its hosts.
        """
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
