"""Why two sides of a case differ, as values; the same names as in its JSON."""

from dataclasses import dataclass, field
from typing import Any, Literal

from harness.records.comparison import Row, SideFacts, Verdict

# Dispatches that take more than a call by more than so much of it are no parts of that call; less is noise.
_BEYOND_A_CALL = 0.05

# How the time of a dispatch was measured: inside the program, by the runtime's own profile, or each dispatch alone.
# With `passes` it is not calls that are explained but compiles: parts are passes, by iree-compile's own clocks.
Method = Literal["profile", "alone", "passes"]


@dataclass(frozen=True, kw_only=True)
class Part:
    """Dispatches of the two sides that do the same work: mostly one on either side, several where they were fused."""

    base: tuple[str, ...]  # Names of base's dispatches, in their order; () where only head has it
    head: tuple[str, ...]
    matched_by: str  # Why they belong together: `same code`, `place`, ..; "" of a part of one side
    operation: str  # What it does, with its shape, as the compiler names it: `conv_32x90x62x64x3x3_f32`
    base_ns: float  # Of one call of the program, the median over generations; 0 where base has none. head_ns likewise.
    head_ns: float
    ratio: float | None = None  # Head over base; None where one side has none. ci_low and ci_high: its 95 % interval.
    ci_low: float | None = None
    ci_high: float | None = None
    p: float | None = None  # Of no difference, corrected for looks and parts; None: of one side
    verdict: Verdict = "inconclusive"  # By the judge over all parts; `new` and `missing` of parts of one side
    generations: int = 0  # Independent samples behind it
    differs_at: str = ""  # The first phase of the compiler at which the sides differ; "" where their code is the same
    what: tuple[str, ...] = ()  # What differs, one sentence each, the most telling first
    lines: tuple[str, ...] = ()  # The lines that differ there, as `diff -u` shows them
    is_timed: bool = True  # False: a dispatch's time is not known, and is part of the host's

    @property
    def change_ns(self) -> float:
        """What it adds to a call of head, beside base."""
        return self.head_ns - self.base_ns


@dataclass(frozen=True, kw_only=True)
class Elsewhere:
    """What one side spends outside of dispatches in a call, in nanoseconds, medians over generations."""

    device_ns: dict[str, float]  # By operation of the device's queue: `copy`, `fill`, `alloca`, ..
    host_ns: float  # What is left of the latency: the host, waits, what the profile does not see
    profiled_ratio: float  # A call with the profile over one without; 1 where each dispatch was measured alone


@dataclass(frozen=True, kw_only=True)
class Explanation:
    """Where the time of a case goes on two sides, what the compiler did differently there, and that in one sentence."""

    id: str  # Name of the folder that it is kept in; "" of one that is not kept
    created: str
    case: str
    base: SideFacts
    head: SideFacts
    method: Method
    latency: Row  # Of the case, without any profile, measured in the same generations; of passes, the compile time
    parts: tuple[Part, ...]  # Those that change the latency most come first
    base_elsewhere: Elsewhere  # Of base; head_elsewhere of head
    head_elsewhere: Elsewhere
    schedule: tuple[str, ...] = ()  # What differs outside of dispatches, a sentence each
    sentence: str = ""  # How much, where, and what differs there; fit to be pasted
    notes: tuple[str, ...] = ()  # What bears on all of it, in plain words
    settings: dict[str, Any] = field(default_factory=dict)  # The rule's numbers and the user's choices
    command: tuple[str, ...] = ()  # The command line

    @property
    def adds_up(self) -> bool:
        """Whether what dispatches take are shares of the call, and not more than all of it on a side.

        Dispatches that are timed alone may take longer than in their program, and those of a device may overlap.
        """
        sides = ((self.latency.base_value, self.base_elsewhere), (self.latency.head_value, self.head_elsewhere))
        return all(not call_ns or not side.host_ns < -_BEYOND_A_CALL * call_ns for call_ns, side in sides)
