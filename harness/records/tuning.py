"""What `harness tune` found for one model on one device, as values; the same names as in its JSON."""

from dataclasses import dataclass, field
from typing import Any, Literal

from harness.records.bisection import Trial

# What became of a candidate.
#   inert      its module has the bytes of another candidate's, or of the start's
#   failed     it does not compile, or cannot be called
#   wrong      its outputs are not those of the start
#   untried    the budget ended before its turn came
#   lost       it left a race, or was left behind at the end of one
#   best       it won its race
Standing = Literal["inert", "failed", "wrong", "untried", "lost", "best"]

# What the search came to: a variant that is confirmed faster than the start, that nothing was, or that the budget ended
# before either was known.
Answer = Literal["faster", "nothing beats the start", "budget too small"]


def same_bytes(name: str) -> str:
    """The reason of a candidate that is inert beside another, by that one's name; `start` is the start."""
    return f"its module has the bytes of {name}'s"


@dataclass(frozen=True, kw_only=True)
class Tried:
    """A candidate: some changes of flags and plugins, or a lowering configuration of a dispatch."""

    name: str  # Unique among the candidates of its table
    parts: tuple[str, ...]  # What it is made of, for people
    standing: Standing
    purpose: str = ""  # What it is for, in a phrase; "": nobody said
    reason: str = ""  # Why it stands there, in plain words; "" of one that was raced
    ratio: float | None = None  # Its time divided by that of the start; None: it was not timed
    low: float | None = None  # Lower end of the ratio's interval in its race, high likewise
    high: float | None = None
    generations: int = 0  # Independent samples behind it


@dataclass(frozen=True, kw_only=True)
class TunedDispatch:
    """A dispatch that was raced alone."""

    name: str  # Of its function
    operation: str  # What it does, with shape: `conv_2d_nhwc_hwcf_1x90x62x32x3x3x64_f32`
    places: int  # How many dispatches of the program have this code
    share: float  # Of the call's time, of all of these together, before; 0.25 is a quarter
    own: str = ""  # The compiler's own configuration
    chosen: str = ""  # The configuration of the winner; "": nothing was better
    tried: tuple[Tried, ...] = ()  # All candidates
    alone: float | None = None  # The winner's time divided by the dispatch's, both alone
    whole: float | None = None  # The same as a part of the whole program; None: it was not seen there
    kept: bool = False  # Whether the variant has it
    reason: str = ""  # Why it is not kept, or was not raced, in plain words


@dataclass(frozen=True, kw_only=True)
class TimedCandidate:
    """One candidate of the whole program on the clock of the search, for the picture of the race."""

    seconds: float  # Of the budget, spent when it was last timed
    name: str
    ratio: float  # Its time divided by that of the start
    best: bool  # Whether it was the best so far then


@dataclass(frozen=True, kw_only=True)
class Tuning:
    """The search for one model on one device."""

    id: str  # Name of its folder
    created: str  # ISO 8601, UTC
    suite: str  # Path of the suite's file; model, device and start (a variant) are names in it
    model: str
    device: str
    start: str
    toolchain: str  # Release of IREE
    budget_s: float  # That was given; spent_s what it took, confirmations included
    spent_s: float
    answer: Answer  # What it came to
    sentence: str  # The same, for people
    start_ns: float | None = None
    stages: dict[str, float] = field(default_factory=dict)  # Seconds by what they were spent on: `compile`, `race`, ..
    singles: tuple[Tried, ...] = ()  # Each change alone; combinations: several together
    combinations: tuple[Tried, ...] = ()
    dispatches: tuple[TunedDispatch, ...] = ()  # Those that make up most of the time, the longest first
    covered: float = 0.0  # The share of the call's time that these make up
    confirmations: tuple[Trial, ...] = ()  # The variant beside others by compare's rule; of a pair the last counts
    variant: str = ""  # The name of the variant that was written; "": none
    parts: tuple[str, ...] = ()  # What it is made of, for people
    flags: tuple[str, ...] = ()  # Of the variant, run_flags and plugins (name and options) likewise
    run_flags: tuple[str, ...] = ()
    plugins: tuple[tuple[str, dict[str, Any]], ...] = ()
    spec: str = ""  # Its tuning spec; "": it has none
    by_hand: tuple[str, ...] = ()  # Command lines that compile it with plain tools, as harness.report.repro has them
    race_error: float = 0.0  # The chance that a race dropped its best candidate, at most, in each race
    candidates_a_minute: float | None = None  # Configurations that were compiled and raced
    moments: tuple[TimedCandidate, ...] = ()  # What was timed when
    machine: str = ""  # A sentence about it
    notes: tuple[str, ...] = ()
    settings: dict[str, Any] = field(default_factory=dict)  # Options by name
    command: tuple[str, ...] = ()  # The command line that does it again

    @property
    def start_name(self) -> str:
        """What the start is called where something is measured beside it."""
        return f"the start ({self.start})"
