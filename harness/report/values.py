"""What every renderer shows: a run put into rows. Renderers lay out; nothing is computed after this."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from harness.ir.roofline import Attained
from harness.metrics import LATENCY
from harness.records.case import VariantGroup
from harness.records.run import DeviceMemory, Failure, Peak, PluginEffect, Storage, Work
from harness.stats import Change, Estimate

Status = Literal[
    "measured",
    "same",
    "not timed",
    "turns dropped",
    "failed",
    "expected failure",
    "skipped",
    "missing",
    "not measured yet",
]


def side_label(variant: str, toolchain: str, *, several: bool) -> str:
    """A variant by its name; where there are several toolchains, as in `stock:3.12.0`."""
    return f"{variant}:{toolchain}" if several else variant


@dataclass(frozen=True, kw_only=True)
class Row:
    """One case. Figures that nobody took are None.

    Attributes:
        baseline: Whether the other rows of its section are compared with it.
        status: `same`: not measured on its own, since its module and run flags are those of `same_as`, whose timings
            it shows. `not timed`: compiled and right, in a run that was to time nothing. `turns dropped`: its raw turns
            were deleted by `harness results gc`. `missing`: planned, and neither measured nor failed nor skipped in a
            finished run.
        same_as: Variant with the same module and run flags, under the same toolchain.
        latency_ns: Median over generations of each one's median time of one call.
        latency_low_ns: Median of the fastest generation.
        latency_high_ns: Median of the slowest generation.
        latency_spread: Of the generations' medians, in the log: their median distance from their middle, scaled to be
            a standard deviation where they are normal.
        generations: Behind the latency; `estimate` has its own.
        rounds: Likewise, over all generations.
        estimate: Time of this case divided by the baseline's; None for the baseline and where one of them has none.
        kind: What to call the estimate; `same` without an estimate where the module is the baseline's.
        attained: How much of the machine it uses; None where its model's work is not known.
        instructions_per_call: Retired in user mode; the median over turns.
        transient_bytes: Of the program's schedule, as iree-compile states it.
        dispatch_bytes: Executables of all dispatches together.
        compile_ns: Wall time of iree-compile, when it ran.
        peak_rss_bytes: Peak resident memory of iree-compile.
        reference_ns: Median real time that one iree-benchmark-module process says.
        host_peak_bytes: Peak of the host-local allocator statistics of that process.
        device_peak_bytes: Peak of the device-local ones; both summed over the devices.
        memory: Both of each device, in the order of the command line.
        ir: Counts of the ops that the suite names, by `phase/op`.
        storage: Its encoded tensors, where the suite asks what they cost.
        effects: What plugins and preprocessing flags did.
        peer: The engine that ran it instead of IREE, by its registered name.
        peer_estimate: Time of this case divided by the section's best peer's; None for that peer itself.
        checked_against: What its outputs were compared with.
        max_absolute_error: Largest |a - b| over all outputs.
        max_relative_error: The largest over the outputs of max |a - b| / max |b|.
        failure: Why there are no figures, for failures that were expected too.
        remarks: Sentences in plain words, the weightiest first.
        repro: Command lines that repeat the case with plain tools.
    """

    case: str
    group: str
    model: str
    variant: str
    device: str
    toolchain: str
    baseline: bool
    status: Status
    same_as: str | None = None
    latency_ns: float | None = None
    latency_low_ns: float | None = None
    latency_high_ns: float | None = None
    latency_spread: float | None = None
    generations: int | None = None
    rounds: int | None = None
    estimate: Estimate | None = None
    kind: Change | None = None
    attained: Attained | None = None
    instructions_per_call: float | None = None
    dispatches: int | None = None
    copies: int | None = None
    fills: int | None = None
    transient_bytes: int | None = None
    dispatch_bytes: int | None = None
    module_bytes: int | None = None
    module_sha256: str | None = None
    compile_ns: int | None = None
    peak_rss_bytes: int | None = None
    reference_ns: float | None = None
    host_peak_bytes: int | None = None
    device_peak_bytes: int | None = None
    memory: tuple[DeviceMemory, ...] = ()
    checked_against: str | None = None
    max_absolute_error: float | None = None
    max_relative_error: float | None = None
    failure: Failure | None = None
    peer: str | None = None
    peer_estimate: Estimate | None = None
    ir: Mapping[str, int] = field(default_factory=dict)
    storage: Storage | None = None
    effects: tuple[PluginEffect, ...] = ()
    remarks: tuple[str, ...] = ()
    repro: tuple[str, ...] = ()
    compile_flags: tuple[str, ...] = ()
    run_flags: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Section:
    """The cases that were measured against each other: one model on one device.

    Attributes:
        device_facts: What the device is and its driver's version; "" where the run does not say.
        call: The entry function and its inputs, as a person would write them.
        baseline: What the others are compared with: the variant, and its toolchain where there are several.
        rounds: Of each generation that measured the group.
        best_peer: Label of the fastest peer; "" where none was measured.
        work: What one call has to do; None in runs that did not count it.
        peak: What the machine reaches with as many threads; None where it was not measured, as of a GPU.
    """

    group: str
    model: str
    device: str
    device_facts: str
    call: str
    baseline: str
    rounds: tuple[int, ...]
    rows: tuple[Row, ...]
    best_peer: str = ""
    work: Work | None = None
    peak: Peak | None = None

    @property
    def toolchains(self) -> tuple[str, ...]:
        """Versions of its rows, in order; peers know none."""
        return tuple(dict.fromkeys(row.toolchain for row in self.rows if row.peer is None))

    def label(self, row: Row) -> str:
        """What tells a row from the others of the section: its variant, and its toolchain where there are several."""
        return side_label(row.variant, row.toolchain, several=len(self.toolchains) > 1 and row.peer is None)


@dataclass(frozen=True, kw_only=True)
class Facts:
    """What a reader has to know before believing a figure.

    Attributes:
        started: ISO 8601, UTC.
        machine: Which one it was; "" where the run does not say.
        cpu: Its processor, likewise.
        baseline: What the others are compared with, as in a section; the variant alone where sections differ.
        toolchains: Release and revision of each.
        peers: Title and version of each that was measured.
        command: The command line of the run.
    """

    id: str
    suite: str
    suite_name: str
    suite_description: str
    suite_sha256: str
    started: str
    finished: bool
    baseline: str
    machine: str
    cpu: str
    toolchains: tuple[str, ...]
    peers: tuple[str, ...] = ()
    harness_version: str
    harness_commit: str
    command: tuple[str, ...]
    settings: dict[str, Any] = field(default_factory=dict)
    environment: dict[str, dict[str, Any]] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Summary:
    """Rows by status, which add up to `planned`, and measured rows that are no baseline by what their ratio is called.

    Attributes:
        same: Rows whose module is another row's, so that nothing had to be measured.
        unchanged: Measured rows of kind `same`.
        works_again: Rows that were expected to fail and did not.
        peers: Measured rows of other engines.
        not_timed: Rows of a run that was only to compile and check.
        turns_dropped: Rows whose raw turns were deleted by `harness results gc`.
    """

    planned: int
    measured: int
    same: int
    failed: int
    expected_failures: int
    skipped: int
    missing: int
    not_measured_yet: int
    faster: int
    slower: int
    unchanged: int
    unclear: int
    works_again: int
    peers: int = 0
    not_timed: int = 0
    turns_dropped: int = 0


@dataclass(frozen=True, kw_only=True)
class Report:
    """A run, ready to be laid out.

    Attributes:
        comparisons: Variants that the suite wants side by side.
        notes: What bears on the whole run, in plain words.
        floor: Relative change of latency below which nothing is called faster or slower.
    """

    facts: Facts
    sections: tuple[Section, ...]
    comparisons: tuple[VariantGroup, ...]
    summary: Summary
    notes: tuple[str, ...]
    floor: float = LATENCY.floor

    def rows(self) -> Iterator[Row]:
        """All rows, section by section."""
        return (row for section in self.sections for row in section.rows)

    @property
    def compares(self) -> bool:
        """Whether any row has a ratio to show."""
        return any(row.kind is not None for row in self.rows())
