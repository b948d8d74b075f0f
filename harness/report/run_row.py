"""What a row of a run's report is: one planned case with its records, figures and verdict."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from harness.ir.roofline import Attained
from harness.metrics import BUILD_FACTS, COMPILE_TIME, METRICS, REFERENCE_FACTS
from harness.records.run import Build, Check, Failure, IrCounts, Peak, Reference, Work
from harness.stats import Estimate, Latency

# What a run calls the ratio of a variant and its baseline.
Change = Literal["faster", "slower", "same", "unclear"]
Status = Literal[
    "measured",
    "same",
    "not timed",
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
    """One case and what was recorded of it; None where nothing was."""

    case: str
    group: str
    model: str
    variant: str
    device: str
    toolchain: str
    baseline: bool  # Whether the other rows of its section are compared with it
    # The case that is the baseline of its section; None of that case itself, and where there is none
    compared_with: str | None = None
    peer: str | None = None  # The engine that ran it instead of IREE, by its registered name
    host: str = ""  # Which one measured it; "" where one machine measured the whole run
    compile_flags: tuple[str, ...] = ()
    run_flags: tuple[str, ...] = ()
    # `same`: not measured on its own, since its module and run flags are those of `same_as`, whose timings it shows.
    # `not timed`: compiled and right, in a run that was to time nothing. `missing`: planned, and neither measured nor
    # failed nor skipped in a finished run.
    status: Status
    same_as: str | None = None  # Variant with the same module and run flags, under the same toolchain
    build: Build | None = None
    # The ops that the suite names, and its encoded tensors where the suite asks what they cost
    counted: IrCounts | None = None
    check: Check | None = None
    reference: Reference | None = None  # Of this case, or of the one whose timings it shows
    latency: Latency | None = None
    own_ns: float | None = None  # The same of own time, see harness.stats.own_time; None where it is not known
    instructions_per_call: float | None = None  # Retired in user mode; the median over turns
    # Time of this case divided by the baseline's; None for the baseline and where one of them has none
    estimate: Estimate | None = None
    # What to call the estimate; `same` without an estimate where the module is the baseline's
    kind: Change | None = None
    # Time of this case divided by the section's best peer's; None for that peer itself
    peer_estimate: Estimate | None = None
    attained: Attained | None = None  # How much of the machine it uses; None where its model's work is not known
    failure: Failure | None = None  # Why there are no figures, for failures that were expected too
    remarks: tuple[str, ...] = ()  # Sentences in plain words, the weightiest first
    repro: tuple[str, ...] = ()  # Command lines that repeat the case with plain tools

    @property
    def latency_ns(self) -> float | None:
        """Median over generations of each one's median time of one call."""
        return self.latency.median_ns if self.latency is not None else None

    @property
    def module_sha256(self) -> str | None:
        """Of the module's bytes."""
        return self.build.module_sha256 if self.build is not None else None

    @property
    def reference_ns(self) -> float | None:
        """Median real time that one iree-benchmark-module process says."""
        times = [time for time in self.reference.real_time_ns if 0 < time < math.inf] if self.reference else []
        return float(statistics.median(times)) if times else None

    @property
    def checked_against(self) -> str | None:
        """What its outputs were compared with."""
        return self.check.against or None if self.check is not None else None

    @property
    def held_against(self) -> str:
        """The same, with what it agrees with besides, and why no reference judged it where none did."""
        if self.check is None or not self.check.against:
            return ""
        also = f" and {self.check.also_against}" if self.check.also_against else ""
        why = self.check.no_second_opinion
        return f"not checked ({self.check.against}): {why}" if why else f"{self.check.against}{also}"

    @property
    def ir(self) -> Mapping[str, int]:
        """Counts of the ops that the suite names, by `phase/op`."""
        return self.counted.counts if self.counted is not None else {}

    def figure(self, metric: str) -> float | None:
        """Its compilation time, or a counted figure of its build or of iree-benchmark-module, by the metric's name."""
        if metric == COMPILE_TIME.name:
            return self.build.compile_ns if self.build is not None else None
        if (of_build := BUILD_FACTS.get(METRICS[metric])) is not None:
            return of_build(self.build) if self.build is not None else None
        return REFERENCE_FACTS[METRICS[metric]](self.reference) if self.reference is not None else None


@dataclass(frozen=True, kw_only=True)
class Section:
    """The cases that were measured against each other: one model on one device."""

    group: str
    model: str
    device: str
    device_facts: str  # What the device is and its driver's version; "" where the run does not say
    call: str  # The entry function and its inputs, as a person would write them
    baseline: str  # What the others are compared with: the variant, and its toolchain where there are several
    rounds: tuple[int, ...]  # Of each generation that measured the group
    rows: tuple[Row, ...]
    refused: str = ""  # The suite's baseline and why another case stands in its place; "" where it is the baseline
    taken: float | None = None  # The share of its turns' time that other processes took; None where it is not known
    best_peer: str = ""  # Label of the fastest peer; "" where none was measured
    work: Work | None = None  # What one call has to do; None in runs that did not count it
    # What the machine reaches with as many threads; None where it was not measured, as of a GPU
    peak: Peak | None = None
    host: str = ""  # Which one measured the group; "" where one machine measured the whole run

    @property
    def against(self) -> str:
        """`vs im2col (stock is refused: wrong output)`; "" where others are held against the suite's baseline."""
        return f"vs {self.baseline} ({self.refused})" if self.refused else ""

    @property
    def place(self) -> str:
        """What a picture has above the section's rows."""
        return f"{self.model} @ {self.device}{f', {self.against}' if self.refused else ''}"

    @property
    def title(self) -> str:
        """`net on cpu`, and where there are several hosts, which of them measured it."""
        return f"{self.model} on {self.device}{f' of {self.host}' if self.host else ''}"

    @property
    def toolchains(self) -> tuple[str, ...]:
        """Versions of its rows, in order; peers know none."""
        return tuple(dict.fromkeys(row.toolchain for row in self.rows if row.peer is None))

    def label(self, row: Row) -> str:
        """What tells a row from the others of the section: its variant, and its toolchain where there are several."""
        return side_label(row.variant, row.toolchain, several=len(self.toolchains) > 1 and row.peer is None)
