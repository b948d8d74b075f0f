"""All rules on the same stretches of the same streams: how often each says that something changed."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.verdicts.others import OTHERS, given, paired_t
from benchmarks.verdicts.recording import Recorded
from benchmarks.verdicts.stream_names import company_of, slowdown_of
from benchmarks.verdicts.trials import (
    IMPROVED,
    REGRESSED,
    RanOutError,
    Streams,
    as_sampled,
    overlapping_starts,
    play,
    seconds_of,
)
from harness.compare.engine import Generation

# A rule is comparable with the harness's where it raises at most so many more false alarms a row.
COMPARABLE = 0.01


@dataclass(frozen=True, kw_only=True)
class Said:
    """What a rule said of one stretch.

    Attributes:
        sign: 1 slower, -1 faster, 0 neither.
        seconds: Wall time of the generations that it looked at, where it does not always use the whole budget.
    """

    sign: int
    seconds: float


@dataclass(frozen=True, kw_only=True)
class Count:
    """Stretches in which a rule said something, of how many."""

    hits: int
    trials: int

    @property
    def rate(self) -> float:
        """Share of the trials; NaN without any."""
        return self.hits / self.trials if self.trials else math.nan


@dataclass(frozen=True, kw_only=True)
class Score:
    """One rule's answers.

    Attributes:
        given: Which data it had, in words.
        alarms: On modules against themselves, slower or faster; by workload, and what computed beside it.
        found: On slowed heads, slower only; by workload and slowdown.
        seconds: Mean over all stretches; None where a rule always uses the whole budget.
        own: Whether it is the harness's rule.
        left_out: Stretches after which the stream has too few generations for the confirmation; they count as those
            in which nothing was said.
    """

    name: str
    given: str
    alarms: Mapping[str, Count]
    found: Mapping[tuple[str, float], Count]
    seconds: float | None
    own: bool
    left_out: int = 0

    @property
    def alarm_rate(self) -> float:
        """Mean over workloads, so that none weighs more for having more stretches."""
        return _mean(self.alarms.values())

    @property
    def alarm_count(self) -> Count:
        """Over all workloads."""
        return Count(
            hits=sum(one.hits for one in self.alarms.values()), trials=sum(one.trials for one in self.alarms.values())
        )

    def power(self, slowdown: float) -> float:
        """Mean over the workloads that were slowed by so much."""
        return _mean([count for (_, share), count in self.found.items() if share == slowdown])


@dataclass(frozen=True, kw_only=True)
class Stretch:
    """As many generations from a start as the budget has room for; the harness may go on to confirm."""

    recorded: tuple[Recorded, ...]
    sampled: tuple[Generation, ...]
    start: int
    end: int


Judge = Callable[[Stretch], Said | None]


def contest(streams: Streams, *, budget_s: float) -> list[Score]:
    """Let every rule judge every stretch."""
    judges: list[tuple[str, str, Judge, bool]] = [
        (
            f"harness, {budget_s:g} s and confirmation",
            f"generations as they come, at most {budget_s:g} s and then as many again to confirm what was found",
            _harness(budget_s),
            True,
        ),
        (
            f"harness, all within {budget_s:g} s",
            f"the same with a budget of {budget_s / 2:g} s, so that the confirmation ends within {budget_s:g} s",
            _harness(budget_s / 2, within_s=budget_s),
            True,
        ),
        (
            "paired t (a yardstick, nobody's rule)",
            "the harness's own samples, all of the budget's generations, looked at once",
            _paired,
            False,
        ),
        *((one.name, one.given, _other(one.rule), False) for one in OTHERS),
    ]
    stretches = {name: cut(stream, budget_s=budget_s) for name, stream in streams.items()}
    return [_score(name, text, judge, own, stretches) for name, text, judge, own in judges]


def cut(stream: Sequence[Recorded], *, budget_s: float) -> list[Stretch]:
    """The overlapping stretches of a stream."""
    recorded, sampled = tuple(stream), as_sampled(stream)
    ends = np.cumsum([one.seconds for one in sampled])
    found = []
    for start in overlapping_starts(sampled, budget_s=budget_s):
        before = ends[start - 1] if start else 0.0
        end = int(np.searchsorted(ends, before + budget_s, side="right"))
        if end < len(sampled) and end - start >= 2:  # a process of either side
            found.append(Stretch(recorded=recorded, sampled=sampled, start=start, end=end))
    return found


def beaten(scores: Sequence[Score], slowdowns: Sequence[float]) -> list[str]:
    """One line for each rule that finds more than the harness within the budget, at a comparable rate of alarms."""
    lines = []
    for own in (score for score in scores if score.own):
        for rival in (score for score in scores if not score.own):
            if not rival.alarm_rate <= own.alarm_rate + COMPARABLE:
                continue
            more = [
                f"at +{share * 100:g} % ({rival.power(share) * 100:.0f} % against {own.power(share) * 100:.0f} %)"
                for share in slowdowns
                if round(rival.power(share), 2) > round(own.power(share), 2)
            ]
            if more:
                lines.append(f"{rival.name} finds more than `{own.name}` {', '.join(more)}.")
    return lines


def _score(name: str, text: str, judge: Judge, own: bool, stretches: Mapping[str, list[Stretch]]) -> Score:
    alarms: dict[str, Count] = {}
    found: dict[tuple[str, float], Count] = {}
    seconds: list[float] = []
    left_out = 0
    for stream, several in stretches.items():
        said = [answer for answer in map(judge, several) if answer is not None]
        left_out += len(several) - len(said)
        if not several:
            continue
        seconds += [one.seconds for one in said]
        workload, slowdown = slowdown_of(stream)
        label = f"{workload} beside {company}" if (company := company_of(stream)) else workload
        if slowdown:
            found[label, slowdown] = Count(hits=sum(one.sign > 0 for one in said), trials=len(several))
        else:
            alarms[label] = Count(hits=sum(one.sign != 0 for one in said), trials=len(several))
    mean_s = float(np.mean(seconds)) if own and seconds else None
    return Score(name=name, given=text, alarms=alarms, found=found, seconds=mean_s, own=own, left_out=left_out)


def _harness(budget_s: float, *, within_s: float = math.inf) -> Judge:
    """The harness's rule; what it takes longer for than `within_s` it has not said."""

    def judge(stretch: Stretch) -> Said | None:
        try:
            outcome = play(stretch.sampled, budget_s=budget_s, start=stretch.start)
        except RanOutError:
            return None
        sign, seconds = {REGRESSED: 1, IMPROVED: -1}.get(outcome.decision, 0), seconds_of(outcome)
        return Said(sign=sign if seconds <= within_s else 0, seconds=seconds)

    return judge


def _paired(stretch: Stretch) -> Said:
    own = stretch.sampled[stretch.start : stretch.end]
    ratios = np.array([one.log_ratio for one in own if one.log_ratio is not None])
    return Said(sign=paired_t(ratios), seconds=sum(one.seconds for one in own))


def _other(rule: Callable[..., int]) -> Judge:
    def judge(stretch: Stretch) -> Said:
        own = stretch.recorded[stretch.start : stretch.end]
        return Said(sign=rule(*given(own)), seconds=sum(one.seconds for one in own))

    return judge


def _mean(counts: Iterable[Count]) -> float:
    rates = [one.rate for one in counts if one.trials]
    return float(np.mean(rates)) if rates else math.nan
