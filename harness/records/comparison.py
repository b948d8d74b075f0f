"""What a comparison says, as values; the same names as in its JSON."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from harness.records.run import HostRecord

Verdict = Literal[
    "regressed", "improved", "unchanged", "inconclusive", "identical", "outputs differ", "failed", "missing", "new"
]
VERDICTS: tuple[Verdict, ...] = (
    "regressed",
    "improved",
    "inconclusive",
    "outputs differ",
    "failed",
    "missing",
    "new",
    "unchanged",
    "identical",
)

# How a row's reason begins to say that its two sides are not one program, and what follows where outputs changed.
ANOTHER_PROGRAM = "another program than the base's"
AND_OTHER_OUTPUTS = f"{ANOTHER_PROGRAM}, and its "

# How the numbers came about: `remeasured` side by side now; `recorded` by the runs themselves.
Mode = Literal["remeasured", "recorded"]
RuleName = Literal["generations", "upstream"]
# What geometric means are taken of.
Kind = Literal["model", "device", "variant"]


@dataclass(frozen=True, kw_only=True)
class SideFacts:
    """One side of a comparison.

    Attributes:
        label: What the user gave: a run directory, `iree==3.12.0`, or a commit's name; with `--within`, `baseline` or
            `variants`.
        run: Id of the run that its modules come from.
        suite: Path of its suite, as the run has it.
        started: Of that run, ISO 8601, UTC.
        toolchains: Release and revision of each.
        machine: The run's processor and system, in words.
        variants: With `--within`, those that are compared; of the base, the baseline. Else ().
        commit: That the suite is of, all digits of it; "" where the side is no commit.
        subject: The first line of that commit's message.
    """

    label: str
    run: str
    suite: str
    started: str
    toolchains: tuple[str, ...]
    machine: str
    variants: tuple[str, ...] = ()
    commit: str = ""
    subject: str = ""


@dataclass(frozen=True, kw_only=True)
class SelfcheckFacts:
    """What `harness selfcheck` last found on the machine; printed under every report.

    Attributes:
        flagged: Rows of modules against themselves that were called regressed or improved.
        rows: All such rows.
        upper_bound: Exact binomial bound of the rate's 95 % interval.
        detects: Smallest change found in nine of ten rows, as a share; the median over cases; None where none is.
        seconds: What one row takes.
        when: ISO 8601, UTC.
        suite: Whose cases it was checked with.
    """

    flagged: int
    rows: int
    upper_bound: float
    detects: float | None
    seconds: float
    when: str
    suite: str


@dataclass(frozen=True, kw_only=True)
class MachineFacts:
    """Where the comparison was made.

    Attributes:
        description: Processor and system, in words.
        selfcheck: Its rate of false alarms; None: never checked here.
        controls: Identical rows that this comparison measured as A/A controls.
        controls_flagged: How many of them were called regressed or improved.
    """

    description: str
    selfcheck: SelfcheckFacts | None = None
    controls: int = 0
    controls_flagged: int = 0


@dataclass(frozen=True, kw_only=True)
class HostRatio:
    """What one host of a fleet says of a row.

    Attributes:
        host: Its name.
        ratio: Head divided by base, by the host's own generations.
        generations: How many it measured.
    """

    host: str
    ratio: float
    generations: int


@dataclass(frozen=True, kw_only=True)
class Row:
    """One metric of one case, base against head.

    Attributes:
        metric: Its registered name, see harness.metrics.
        ratio: Head divided by base; None where one side has no value, or the base's is zero.
        ci_low: Lower end of the 95 % interval of the ratio, valid at whichever look the row stopped; None: none. Where
            hosts differ, it reaches from the lowest ratio of a host to the highest.
        p: Of no difference, corrected for looks and for the number of rows; None for exact metrics.
        floor: Relative change below which nothing is called changed.
        base_value: In `unit`; for latency the median over generations.
        generations: Independent samples behind the ratio, on each side.
        rounds: Pairs of turns behind it, over all generations.
        seconds: Wall time that the row took.
        taken: The share of its turns' time that other processes took, the mean over generations; None: not known. Of a
            device with threads, what they took from each other is in it.
        own_time: The share of its rounds that are compared by own time (see harness.stats.own_time), not by wall time.
        reason: Why the verdict is what it is, in plain words.
        lacked_time: Whether its sides differ by far more than the noise, and only time was lacking to call it changed.
        hosts: Of a fleet, those of one class that measured it, by name; (): the machine of the comparison.
        hosts_disagree: Whether it is undecided because its hosts have different ratios.
        gate: `passed` or `violated`, where a gate of the suite decides; None: none matches.
        change: Which kind of change it is, where instructions could be counted: `more work`, `same work, slower`, ...
        control: Whether it is an A/A control: the same module on both sides, measured to test the machine.
        stderr: The last lines that a tool printed, for rows that failed.
        repro: Command lines that repeat the row.
    """

    case: str
    model: str
    variant: str
    device: str
    metric: str
    verdict: Verdict
    ratio: float | None = None
    ci_low: float | None = None
    ci_high: float | None = None
    p: float | None = None
    floor: float = 0.0
    base_value: float | None = None
    head_value: float | None = None
    unit: str = ""
    generations: int = 0
    rounds: int = 0
    seconds: float = 0.0
    taken: float | None = None
    own_time: float = 0.0
    reason: str = ""
    lacked_time: bool = False
    hosts: tuple[HostRatio, ...] = ()
    hosts_disagree: bool = False
    gate: Literal["passed", "violated"] | None = None
    change: str | None = None
    control: bool = False
    stderr: str = ""
    repro: tuple[str, ...] = ()

    @property
    def program(self) -> str:
        """What its reason says of a head that is another program, and of its outputs; "" where it is the same."""
        _, found, rest = self.reason.partition(ANOTHER_PROGRAM)
        return found + rest

    @property
    def has_other_outputs(self) -> bool:
        """Whether the head is another program that gives other outputs."""
        return self.program.startswith(AND_OTHER_OUTPUTS)


@dataclass(frozen=True, kw_only=True)
class ExplainedPart:
    """Dispatches that do the same work on both sides; `Part` of harness.records.explanation has the rest.

    Attributes:
        name: Its operation with its shape, or the names of its dispatches.
        base_ns: Of one call of the program; 0 where base has none. head_ns likewise.
        ratio: Head over base; None where one side has none. ci_low and ci_high: its 95 % interval.
        verdict: By the judge over all parts; `new` and `missing` of parts of one side.
        what: What differs there, one sentence each, the most telling first.
    """

    name: str
    base_ns: float
    head_ns: float
    ratio: float | None = None
    ci_low: float | None = None
    ci_high: float | None = None
    verdict: Verdict = "inconclusive"
    what: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Explained:
    """What the change of a latency row is made of, as far as a comment has room for it.

    Attributes:
        case: Of the row.
        explanation: Id of the folder that the whole explanation is kept in; "" where there is none.
        sentence: How much, where, and what differs there; of a row that could not be explained, why not.
        parts: Those that change the latency most come first.
        left_out: How many parts more the explanation has.
    """

    case: str
    explanation: str
    sentence: str
    parts: tuple[ExplainedPart, ...] = ()
    left_out: int = 0


@dataclass(frozen=True, kw_only=True)
class GeometricMean:
    """Of the latency ratios of the decided rows of one model, device or variant.

    Attributes:
        kind: `model`, `device` or `variant`.
        rows: How many ratios are behind it: changed, unchanged and identical rows, these with 1. Version 0.1.0 took
            inconclusive rows too.
        low: Lower end of its interval, the geometric mean of the rows' own; None where a row has none.
    """

    kind: Kind
    name: str
    ratio: float
    rows: int
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Everything that is known of two sides.

    Attributes:
        id: Name of its directory.
        rows: Controls come last; the order within is that of the head's cases.
        summary: Rows by verdict, controls left out.
        notes: What bears on the whole comparison, in plain words.
        settings: The rule's numbers and the user's choices.
        command: The command line.
        explained: Of regressed latencies, what they are made of, where `harness compare --explain` was asked for that.
        hosts: Of a fleet, those that measured it, by name; (): one machine did.
    """

    id: str
    created: str
    base: SideFacts
    head: SideFacts
    within: bool
    mode: Mode
    rule: RuleName
    machine: MachineFacts
    rows: tuple[Row, ...]
    summary: dict[Verdict, int]
    means: tuple[GeometricMean, ...] = ()
    notes: tuple[str, ...] = ()
    settings: dict[str, Any] = field(default_factory=dict)
    command: tuple[str, ...] = ()
    explained: tuple[Explained, ...] = ()
    hosts: tuple[HostRecord, ...] = ()
