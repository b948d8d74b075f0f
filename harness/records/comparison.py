"""What a comparison says, as values; the same names as in its JSON."""

from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from harness.records.run import HostRecord

# In the order in which they are counted in a report.
Verdict = Literal[
    "regressed", "improved", "inconclusive", "outputs differ", "failed", "missing", "new", "unchanged", "identical"
]
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)

# How a row's reason begins to say that its two sides are not one program, and what follows where outputs changed.
ANOTHER_PROGRAM = "another program than the base's"
AND_OTHER_OUTPUTS = f"{ANOTHER_PROGRAM}, and its "

# How the numbers came about: `remeasured` side by side now; `recorded` by the runs themselves.
Mode = Literal["remeasured", "recorded"]
# What geometric means are taken of.
Kind = Literal["model", "device", "variant"]


@dataclass(frozen=True, kw_only=True)
class SideFacts:
    """One side of a comparison."""

    label: str  # What the user gave; with `--within`, `baseline` or `variants`
    run: str  # Id of the run that its modules come from
    suite: str  # Path of its suite, as the run has it
    started: str  # Of that run, ISO 8601, UTC
    toolchains: tuple[str, ...]  # Release and revision of each
    machine: str  # The run's processor and system, in words
    variants: tuple[str, ...] = ()  # With `--within`, those that are compared; of the base, the baseline. Else ().
    commit: str = ""  # That the suite is of, all digits of it; "" where the side is no commit
    subject: str = ""  # The first line of that commit's message


@dataclass(frozen=True, kw_only=True)
class SelfcheckFacts:
    """What `harness selfcheck` last found on the machine; printed under every report."""

    flagged: int  # Rows of modules against themselves that were called regressed or improved
    rows: int  # All such rows
    upper_bound: float  # Exact binomial bound of the rate's 95 % interval
    detects: float | None  # Smallest change found in nine of ten rows, the median over cases
    seconds: float  # What one row takes
    when: str  # ISO 8601, UTC
    suite: str  # Whose cases it was checked with


@dataclass(frozen=True, kw_only=True)
class MachineFacts:
    """Where the comparison was made."""

    description: str  # Processor and system, in words
    selfcheck: SelfcheckFacts | None = None  # Its rate of false alarms; None: never checked here
    controls: int = 0  # Identical rows that this comparison measured as A/A controls
    controls_flagged: int = 0  # How many of them were called regressed or improved


@dataclass(frozen=True, kw_only=True)
class Row:
    """One metric of one case, base against head."""

    case: str
    model: str
    variant: str
    device: str
    metric: str  # Its registered name, see harness.metrics
    verdict: Verdict
    ratio: float | None = None  # Head divided by base; None where one side has no value, or the base's is zero
    ci_low: float | None = None  # Of the ratio's 95 % interval, at whichever look the row stopped
    ci_high: float | None = None
    p: float | None = None  # Of no difference, corrected for looks and for the number of rows; None for exact metrics
    floor: float = 0.0  # Relative change below which nothing is called changed
    base_value: float | None = None  # In `unit`; for latency the median over generations
    head_value: float | None = None
    unit: str = ""
    generations: int = 0  # Independent samples behind the ratio, on each side
    rounds: int = 0  # Pairs of turns behind it, over all generations
    seconds: float = 0.0  # Wall time that the row took
    taken: float | None = None  # The share of its turns' time that other processes took; None: not known
    own_time: float = 0.0  # The share of its rounds that are compared by own time
    reason: str = ""  # Why the verdict is what it is, in plain words
    lacked_time: bool = False  # Its sides differ by far more than the noise, and time was lacking
    hosts: tuple[str, ...] = ()  # Of a fleet, those of one class that measured it; (): one machine
    gate: Literal["passed", "violated"] | None = None  # None: no gate of the suite decides
    change: str | None = None  # Which kind it is, by its instructions: `more work`, ..
    control: bool = False  # Whether it is an A/A control: the same module on both sides, measured to test the machine
    stderr: str = ""  # The last lines that a tool printed, for rows that failed
    repro: tuple[str, ...] = ()  # Command lines that repeat the row

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
    """Dispatches that do the same work on both sides; `Part` of harness.records.explanation has the rest."""

    name: str  # Its operation with its shape, or the names of its dispatches
    base_ns: float  # Of one call of the program; 0 where base has none. head_ns likewise.
    head_ns: float
    ratio: float | None = None  # Head over base; None where one side has none. ci_low and ci_high: its 95 % interval.
    ci_low: float | None = None
    ci_high: float | None = None
    verdict: Verdict = "inconclusive"  # By the judge over all parts; `new` and `missing` of parts of one side
    what: tuple[str, ...] = ()  # What differs there, one sentence each, the most telling first


@dataclass(frozen=True, kw_only=True)
class Explained:
    """What the change of a latency row is made of, as far as a comment has room for it."""

    case: str  # Of the row
    explanation: str  # Id of the folder that the whole explanation is kept in; "" where there is none
    sentence: str  # How much, where, and what differs there; of a row that could not be explained, why not
    parts: tuple[ExplainedPart, ...] = ()  # Those that change the latency most come first
    left_out: int = 0  # How many parts more the explanation has


@dataclass(frozen=True, kw_only=True)
class GeometricMean:
    """Of the latency ratios of the decided rows of one model, device or variant."""

    kind: Kind  # `model`, `device` or `variant`
    name: str
    ratio: float
    rows: int  # How many ratios are behind it; identical rows count with 1
    low: float | None = None  # Of its interval, the geometric mean of the rows' own
    high: float | None = None


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Everything that is known of two sides."""

    __pydantic_config__ = {"allow_inf_nan": False}  # noqa: RUF012 (pydantic reads it, and nobody writes it)

    id: str  # Name of its directory
    created: str
    base: SideFacts
    head: SideFacts
    within: bool
    mode: Mode
    machine: MachineFacts
    rows: tuple[Row, ...]  # Controls come last; the order within is that of the head's cases
    summary: dict[Verdict, int]  # Rows by verdict, controls left out
    means: tuple[GeometricMean, ...] = ()
    notes: tuple[str, ...] = ()  # What bears on the whole comparison, in plain words
    settings: dict[str, Any] = field(default_factory=dict)  # The rule's numbers and the user's choices
    command: tuple[str, ...] = ()  # The command line
    explained: tuple[Explained, ...] = ()  # Regressed latencies, with `--explain`
    hosts: tuple[HostRecord, ...] = ()  # Of a fleet, those that measured it, by name; (): one machine did
