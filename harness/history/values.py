"""The tables that a history has, one dataclass a row; its fields are the columns, in this order.

Times are ISO 8601 in UTC. `series` is one case's one metric on one class of machines: points of different series are
never compared.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

# What a toolchain is in its run: `newest` is the last that was given, `reference` the first of several, which stays the
# same from night to night, so that what it shows is the machine's; `other` lies between.
Role = Literal["newest", "reference", "other"]


@dataclass(frozen=True, kw_only=True)
class RunRow:
    """One run: table `runs`.

    Attributes:
        run: The run's id, the name that its folder was made with.
        suite: Its name.
        suite_file: Path of its TOML file, as the user gave it.
        started: When the run began.
        finished: Whether it came to its end; change points are looked for in finished runs only.
        machine_class: What figures may be compared within: processor, cores and system, in words.
        machine: 12 hex digits that tell machines apart.
        cpu: The processor's name.
        cores: How many of them the run could use.
        kernel: Release of the operating system's kernel.
        toolchain: The newest release of IREE in it.
        revision: IREE's commit that this release was built from.
        reference: The release that the others were measured beside; None where there was one only.
        harness_version: Of the harness that made the run.
        harness_commit: Its commit, `+dirty` added where its code differed; "" where it was no checkout.
        cases: How many were planned.
        measured: Cases with timings of their own.
        failed: Cases that failed and were not expected to.
        missing: Cases that were neither measured nor failed nor skipped.
        noise: Median over its cases of the relative spread between generations; None where nothing was measured.
        load_1min: Of the machine as the run began.
        selfcheck_flagged: Of the machine's last A/A check: rows that were called changed; None: never checked.
        selfcheck_rows: All of its rows.
        selfcheck_bound: Upper end of the 95 % interval of its rate of false alarms, a share; where no row was called
            changed, of the one-sided interval.
        selfcheck_detects: Smallest change that nine of ten rows find, a share.
        selfcheck_when: When that was.
        command: The command line, quoted for a shell.
        clock: Why `started` cannot be right, in plain words; "" where it can.
        devices: What the suite's devices are, with their drivers' versions.
    """

    run: str
    suite: str
    suite_file: str
    started: str
    finished: bool
    machine_class: str
    machine: str
    cpu: str
    cores: int | None
    kernel: str
    toolchain: str
    revision: str
    reference: str | None
    harness_version: str
    harness_commit: str
    cases: int
    measured: int
    failed: int
    missing: int
    noise: float | None
    load_1min: float | None
    selfcheck_flagged: int | None
    selfcheck_rows: int | None
    selfcheck_bound: float | None
    selfcheck_detects: float | None
    selfcheck_when: str | None
    command: str
    clock: str
    devices: str = ""


@dataclass(frozen=True, kw_only=True)
class Point:
    """One figure of one case in one run: table `points`.

    Attributes:
        run: Its run's id.
        started: When that began.
        series: 16 hex digits: a hash of suite, case id, metric, machine class and role; and of the release for roles
            whose release stays the same, see harness.report.rows.
        suite: Name of the suite.
        case: Its name without the toolchain.
        case_id: Of what is compiled and how it runs, without names and without the toolchain.
        model: Its model's name.
        variant: Its variant's, or the peer's label.
        device: Its device's.
        peer: Registered name of the engine that ran it instead of IREE; "" for IREE.
        role: Of its toolchain: `newest`, `reference` or `other`; of a peer `newest`.
        toolchain: Release of IREE; of a peer, the engine's name and version.
        revision: IREE's commit that this release was built from; "" of a peer.
        machine_class: As in `runs`; of a device that is no CPU, its name too.
        machine: 12 hex digits that tell machines apart.
        metric: `latency`, `latency-vs-baseline`, `latency-vs-reference`, or one of harness.metrics.
        unit: `ns`, `bytes`, `count`, `instructions` or `ratio`.
        value: The figure, in `unit`; for latency the median over generations.
        low: The fastest generation's, or the lower end of a ratio's 95 % interval; None for counted figures.
        high: The slowest generation's, or the upper end.
        module_sha256: Of what ran; "" where nothing was compiled, as of a peer.
    """

    run: str
    started: str
    series: str
    suite: str
    case: str
    case_id: str
    model: str
    variant: str
    device: str
    peer: str
    role: Role
    toolchain: str
    revision: str
    machine_class: str
    machine: str
    metric: str
    unit: str
    value: float
    low: float | None
    high: float | None
    module_sha256: str


@dataclass(frozen=True, kw_only=True)
class CaseRow:
    """What became of one case in one run: table `cases`.

    Attributes:
        run: Its run's id.
        started: When that began.
        suite: Name of the suite.
        case: Its name without the toolchain.
        case_id: As in `points`.
        model: Its model's name.
        variant: Its variant's, or the peer's label.
        device: Its device's.
        peer: Registered name of the engine that ran it instead of IREE; "" for IREE.
        role: As in `points`.
        toolchain: As in `points`.
        status: As in reports: `measured`, `same`, `failed`, `expected failure`, `skipped`, `missing`, ...
        stage: Where it failed; "" where it did not.
        message: Why, or why it was skipped; "" where nothing was wrong.
        flags: All flags of iree-compile and of the runtime, quoted for a shell.
        repro: The command lines that repeat it, one a line.
    """

    run: str
    started: str
    suite: str
    case: str
    case_id: str
    model: str
    variant: str
    device: str
    peer: str
    role: Role
    toolchain: str
    status: str
    stage: str
    message: str
    flags: str
    repro: str


@dataclass(frozen=True, kw_only=True)
class ComparisonRow:
    """One row of one comparison: table `comparisons`.

    Attributes:
        comparison: The comparison's id, the name of its folder.
        created: When it was made.
        base_run: Id of the run that the base's modules are from.
        head_run: Likewise the head's.
        machine: In words, as the comparison has it.
        case: Its name.
        model: Its model's name.
        variant: Its variant's.
        device: Its device's.
        metric: One of harness.metrics.
        verdict: `regressed`, `improved`, `unchanged`, `inconclusive`, `identical`, `failed`, `missing` or `new`.
        ratio: Head divided by base; None where one of them has no value.
        ci_low: Lower end of its 95 % interval; None for counted figures.
        ci_high: Upper end, likewise.
        p: Of no difference, corrected for looks and rows; None for counted figures.
        floor: Relative change below which nothing is called changed.
        base_value: The base's figure, in `unit`.
        head_value: The head's.
        unit: `ns`, `bytes`, `count` or `instructions`.
        control: Whether it is a module against itself, measured to test the machine.
        gate: `passed` or `violated`; "" where no gate of the suite decides.
        reason: Why the verdict is what it is, in plain words.
        command: The command line that made it, quoted for a shell; "" where none was kept.
        within: Whether variants of one run were compared with its baseline.
    """

    comparison: str
    created: str
    base_run: str
    head_run: str
    machine: str
    case: str
    model: str
    variant: str
    device: str
    metric: str
    verdict: str
    ratio: float | None
    ci_low: float | None
    ci_high: float | None
    p: float | None
    floor: float
    base_value: float | None
    head_value: float | None
    unit: str
    control: bool
    gate: str
    reason: str
    command: str = ""
    within: bool = False


@dataclass(frozen=True, kw_only=True)
class TurnRow:
    """One timed batch of calls: table `turns`.

    Attributes:
        run: Its run's id.
        case: The case's name in that run, with the toolchain where there were several.
        group: Model and device: what was measured in turns.
        generation: Number of the fresh set of processes, the independent sample.
        round: Number of the round in that generation.
        place: Of the turn in its round, from 0.
        started_unix_ns: When the round began, by the machine's clock.
        calls: How many were timed together.
        wall_ns: What they took, all together.
        cpu_ns: Time on the CPU of the process that called, likewise.
    """

    run: str
    case: str
    group: str
    generation: int
    round: int
    place: int
    started_unix_ns: int
    calls: int
    wall_ns: int
    cpu_ns: int
