"""What an explanation says, held against what is known of its pair."""

import re
from dataclasses import dataclass
from fnmatch import fnmatchcase

from benchmarks.explain.pairs import Pair
from benchmarks.explain.recording import Recorded
from harness.records.explanation import Explanation, Part
from harness.report.comparison import CHANGED
from harness.report.explanation_page import call_ns, is_changed

# `main$async_dispatch_12_`, before what a dispatch does.
_NUMBER = re.compile(r".*?_dispatch_\d+_")


@dataclass(frozen=True, kw_only=True)
class Score:
    """How near an explanation comes to the truth.

    Attributes:
        is_first: Whether the part that changes the latency most is one that does change; None: none does.
        is_called: Whether one that does change is called changed; None likewise.
        share: Of the call's change, what parts have that do change; None where that is not known, or where the call's
            change is too small for the page to say shares.
        ratio_error: Of the part that changes, by its known ratio: 0.01 is one per cent too much; None: not known.
        unchanged: Parts that do not change.
        accused: Of them, those that are called changed, by name.
        sums: What dispatches and the device's other work add up to, as a share of the call, of base and of head.
    """

    pair: Pair
    recorded: Recorded
    is_first: bool | None
    is_called: bool | None
    share: float | None
    ratio_error: float | None
    unchanged: int
    accused: tuple[str, ...]
    sums: tuple[float, float]


def score(pair: Pair, recorded: Recorded) -> Score:
    """Hold an explanation against its pair."""
    explanation = recorded.explanation
    right = [part for part in explanation.parts if changes(pair, part)]
    others = [part for part in explanation.parts if part not in right]
    base_ns, head_ns = call_ns(explanation)
    shows = pair.dispatches and pair.is_all and explanation.latency.verdict in CHANGED
    return Score(
        pair=pair,
        recorded=recorded,
        is_first=explanation.parts[0] in right if pair.dispatches else None,
        is_called=any(map(is_changed, right)) if pair.dispatches else None,
        share=sum(part.change_ns for part in right) / (head_ns - base_ns) if shows else None,
        ratio_error=_ratio_error(pair, right),
        unchanged=len(others),
        accused=tuple(part.operation for part in others if is_changed(part)),
        sums=_sums(explanation),
    )


def changes(pair: Pair, part: Part) -> bool:
    """Whether a part is one of those that are known to change."""
    names = [_NUMBER.sub("", name, count=1) for name in (*part.base, *part.head)]
    return any(fnmatchcase(name, pattern) for name in names for pattern in pair.dispatches)


def _ratio_error(pair: Pair, right: list[Part]) -> float | None:
    if pair.ratio is None or len(right) != 1 or right[0].ratio is None:
        return None
    return right[0].ratio / pair.ratio - 1


def _sums(explanation: Explanation) -> tuple[float, float]:
    base_ns, head_ns = call_ns(explanation)
    return (
        1 - explanation.base_elsewhere.host_ns / base_ns,
        1 - explanation.head_elsewhere.host_ns / head_ns,
    )
