"""What `harness tune` found for one model on one device, as values; the same names as in its JSON."""

from __future__ import annotations

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
    """A candidate: some changes of flags and plugins, or a lowering configuration of a dispatch.

    Attributes:
        name: Unique among the candidates of its table.
        parts: What it is made of, for people: `--iree-opt-level=O3`, `plugin channels-last`; of a lowering
            configuration its text.
        purpose: What it is for, in a phrase; "": nobody said.
        reason: Why it stands there, in plain words; "" of one that was raced.
        ratio: Its time divided by that of the start (of the dispatch with the compiler's own configuration); None: it
            was not timed.
        low: Lower end of the ratio's interval in its race, high likewise.
        generations: Independent samples behind it.
    """

    name: str
    parts: tuple[str, ...]
    standing: Standing
    purpose: str = ""
    reason: str = ""
    ratio: float | None = None
    low: float | None = None
    high: float | None = None
    generations: int = 0


@dataclass(frozen=True, kw_only=True)
class TunedDispatch:
    """A dispatch that was raced alone.

    Attributes:
        name: Of its function.
        operation: What it does, with shape: `conv_2d_nhwc_hwcf_1x90x62x32x3x3x64_f32`.
        places: How many dispatches of the program have this code.
        share: Of the call's time, of all of these together, before; 0.25 is a quarter.
        own: The compiler's own configuration.
        chosen: The configuration of the winner; "": nothing was better.
        tried: All candidates.
        alone: What the winner takes, divided by what the dispatch took, both alone; None: nothing was better.
        whole: The same as a part of the whole program; None: it was not seen there.
        kept: Whether the variant has it.
        reason: Why it is not kept, or was not raced, in plain words.
        known_from: The model whose search had tuned the same dispatch; "": this one.
    """

    name: str
    operation: str
    places: int
    share: float
    own: str = ""
    chosen: str = ""
    tried: tuple[Tried, ...] = ()
    alone: float | None = None
    whole: float | None = None
    kept: bool = False
    reason: str = ""
    known_from: str = ""


@dataclass(frozen=True, kw_only=True)
class Moment:
    """One candidate of the whole program on the clock of the search, for the picture of the race.

    Attributes:
        seconds: Of the budget, spent when it was last timed.
        ratio: Its time divided by that of the start.
        best: Whether it was the best so far then.
    """

    seconds: float
    name: str
    ratio: float
    best: bool


@dataclass(frozen=True, kw_only=True)
class Tuning:
    """The search for one model on one device.

    Attributes:
        id: Name of its folder.
        created: ISO 8601, UTC.
        suite: Path of the suite's file; model, device and start (a variant) are names in it.
        toolchain: Release of IREE.
        budget_s: That was given; spent_s what it took, confirmations included.
        stages: Seconds by what they were spent on: `compile`, `race`, `dispatches`, `confirm`.
        singles: Each change alone; combinations: several together, in the order in which they were tried.
        dispatches: Those that make up most of the time, the longest first.
        covered: The share of the call's time that these make up.
        confirmations: The variant beside others by compare's rule, base and head as a report names them; the last one
            of each pair counts.
        answer: What it came to.
        sentence: The same, for people.
        variant: The name of the variant that was written; "": none.
        parts: What it is made of, for people.
        flags: Of the variant, run_flags and plugins (name and options) likewise.
        spec: Its tuning spec; "": it has none.
        by_hand: Command lines that compile it with plain tools, as harness.report.repro has them.
        race_error: The chance that a race dropped its best candidate, at most, in each race.
        candidates_a_minute: Configurations of dispatches that were compiled and raced, a minute of what both took;
            None: there were none.
        moments: What was timed when.
        machine: A sentence about it.
        settings: Options by name.
        command: The command line that does it again.
    """

    id: str
    created: str
    suite: str
    model: str
    device: str
    start: str
    toolchain: str
    budget_s: float
    spent_s: float
    answer: Answer
    sentence: str
    start_ns: float | None = None
    stages: dict[str, float] = field(default_factory=dict)
    singles: tuple[Tried, ...] = ()
    combinations: tuple[Tried, ...] = ()
    dispatches: tuple[TunedDispatch, ...] = ()
    covered: float = 0.0
    confirmations: tuple[Trial, ...] = ()
    variant: str = ""
    parts: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    run_flags: tuple[str, ...] = ()
    plugins: tuple[tuple[str, dict[str, Any]], ...] = ()
    spec: str = ""
    by_hand: tuple[str, ...] = ()
    race_error: float = 0.0
    candidates_a_minute: float | None = None
    moments: tuple[Moment, ...] = ()
    machine: str = ""
    notes: tuple[str, ...] = ()
    settings: dict[str, Any] = field(default_factory=dict)
    command: tuple[str, ...] = ()

    @property
    def start_name(self) -> str:
        """What the start is called where something is measured beside it."""
        return f"the start ({self.start})"
