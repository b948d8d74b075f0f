"""What searches say of the compiler's defaults: each change alone, over all models; pure.

A change that makes most models faster and none slower would have been the better default.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from benchmarks.tune.outcomes import geometric_mean
from harness.records.tuning import Tried, Tuning, same_bytes
from harness.report.markdown import blocks, table

# A ratio counts as faster or slower beyond this, and only where its whole interval does.
EDGE = 0.01


@dataclass(frozen=True, kw_only=True)
class Default:
    """One change alone, over the models that were searched.

    Attributes:
        parts: What it is made of, for people.
        ratios: Its time divided by that of stock, by model; 1 where it changed nothing.
        faster, slower: In how many models it is so beyond doubt.
        refused: In how many it does not compile, or computes something else.
    """

    name: str
    parts: tuple[str, ...]
    ratios: dict[str, float]
    faster: int
    slower: int
    refused: int

    @property
    def mean(self) -> float:
        """The geometric mean over the models in which it can be used."""
        return geometric_mean(list(self.ratios.values()))


def defaults(tunings: Sequence[Tuning]) -> list[Default]:
    """Each change that at least two models were searched with, the one with the lowest mean first."""
    tried: dict[str, dict[str, Tried]] = {}
    for tuning in tunings:
        for single in _with_ratios(tuning.singles):
            if single.standing != "untried":
                tried.setdefault(single.name, {})[tuning.model] = single
    found = [_default(name, models) for name, models in tried.items() if len(models) > 1]
    return sorted((default for default in found if default.ratios), key=lambda default: default.mean)


def _with_ratios(singles: Sequence[Tried]) -> list[Tried]:
    """What is inert takes as long as what has its bytes: the start, or another change, which its reason names."""
    start = Tried(name="start", parts=(), standing="lost", ratio=1.0)
    of_twins = {same_bytes(single.name): single for single in (start, *singles)}
    return [
        replace(single, ratio=twin.ratio, low=twin.low, high=twin.high)
        if single.standing == "inert" and (twin := of_twins.get(single.reason)) is not None
        else single
        for single in singles
    ]


def _default(name: str, models: dict[str, Tried]) -> Default:
    timed = {model: single for model, single in models.items() if single.ratio is not None}
    return Default(
        name=name,
        parts=next(iter(models.values())).parts,
        ratios={model: single.ratio for model, single in timed.items() if single.ratio is not None},
        faster=sum(single.high is not None and single.high < 1 - EDGE for single in timed.values()),
        slower=sum(single.low is not None and single.low > 1 + EDGE for single in timed.values()),
        refused=sum(single.standing in ("failed", "wrong") for single in models.values()),
    )


def defaults_table(tunings: Sequence[Tuning]) -> str:
    """The changes that make some model faster or slower beyond doubt, as Markdown."""
    told = [default for default in defaults(tunings) if default.faster or default.slower]
    models = len({tuning.model for tuning in tunings})
    rows = [
        [
            f"`{default.name}`",
            f"{len(default.ratios) + default.refused}",
            f"{default.mean:.3f}",
            f"{default.faster}",
            f"{default.slower}",
            f"{default.refused}" if default.refused else "",
            f"{min(default.ratios.values()):.3f}",
            f"{max(default.ratios.values()):.3f}",
            ", ".join(f"`{part}`" for part in default.parts),
        ]
        for default in told
    ]
    heads = ["change", "tried in", "mean", "faster", "slower", "refused", "best", "worst", "made of"]
    return blocks(
        f"Each change alone in up to {models} models (a budget may end before it is tried): its time divided by that "
        "of stock, in the race of changes (three generations), and 1 where it changes no byte. `Faster` and `slower` "
        "count the models in which it is so by more than 1 % beyond doubt, `refused` those in which it does not "
        "compile or computes something else. What is neither faster nor slower anywhere is left out.",
        table(heads, rows, numbers=[False, *[True] * 7, False]),
    )
