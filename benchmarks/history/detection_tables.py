"""Section "How often changes are found" of docs/history.md: every number in it is counted."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from benchmarks.documents import replace_between
from benchmarks.history.detection_detectors import ASV, OTAVA, OWN
from benchmarks.history.detection_kinds import AFTER, DELAY_SHARES, DRIFTS, NONE, STEPS, Kind
from benchmarks.history.detection_scores import Score
from harness.report.markdown import blocks, table
from harness.stats.intervals import rate_bounds

BEGIN = "<!-- made by `python -m benchmarks.history detection`: begin -->"
END = "<!-- made by `python -m benchmarks.history detection`: end -->"

# By kind (table, name and size), then by detector.
Scores = Mapping[tuple[str, str, int], Mapping[str, Score]]


def write_section(document: Path, scores: Scores) -> None:
    """Replace what stands between the document's marks.

    Raises:
        RuntimeError: There are no such marks.
    """
    replace_between(document, BEGIN, END, render(scores))


def render(scores: Scores) -> str:
    """All tables, as Markdown."""
    return blocks(
        "### What was asked",
        goals(scores),
        "### Series without a change",
        "Series in which any change is reported, with the exact binomial 95 % bounds.",
        without_change(scores),
        "### How soon a step is found",
        "A step on white noise of 1 %, in series of 100 points that end so many points after it: how "
        "often it is found, at most five points off and in the right direction.",
        delays(scores),
        "### Steps",
        "How often all steps of a series are found, at most five points off and in the right direction; after `more`, "
        "how many series have a change reported where there is none. `place exact`: of the steps that the harness "
        "finds, those placed at the very point; `place in range`: those whose 95 % range holds it, and the mean length "
        "of that range in points.",
        steps(scores),
        "### Drifts",
        "How often a change in the right direction is reported somewhere along the drift, and the steps with it. Other "
        "tools know steps only; several along a drift are not counted as `more`. The place is the first point that has "
        "left the old level, and noise hides it well: a drift of 2 % over 50 points takes 25 to reach one noise width.",
        drifts(scores),
    )


def key(kind: Kind) -> tuple[str, str, int]:
    """How scores are looked up."""
    return kind.table, kind.name, kind.size


def goals(scores: Scores) -> str:
    """The goals, each with the figure that was measured; what was not tried is left out."""
    lines = []
    null = [kind for kind in NONE if kind.name == "white noise, 1 %" and kind.size == 100]
    lines += [
        ["series of 100 points of white noise with a change reported", "at most 1 %", rate(one.flagged, one.series)]
        for one in _own(null, scores)
    ]
    others = sum(_own([kind for kind in NONE if kind.size == 100], scores), Score())
    if others.series:
        lines.append(["the same for all noise of 100 points below", "at most 1 %", rate(others.flagged, others.series)])
    step = scores.get(("delay", "+5 %, 3 points", 100), {}).get(OWN)
    if step is not None:
        lines.append(["+5 % on 1 % noise, found 3 points after", "at least 95 %", rate(step.found, step.series)])
        lines.append(["its place exact", "exact, or", rate(step.exact, step.matched)])
        lines.append(["its place in the 95 % range", "95 %", rate(step.covered, step.matched)])
    for kind in DRIFTS[:3]:
        for one in _own([kind], scores):
            lines.append([kind.name, "found", rate(one.found, one.series)])
    return table(("what", "goal", "measured"), lines)


def without_change(scores: Scores) -> str:
    """False alarms, by noise."""
    names = _detectors(scores)
    rows = [
        [
            kind.name,
            f"{kind.size:,}",
            *(_flagged(scores[key(kind)].get(name)) for name in names),
        ]
        for kind in NONE
        if key(kind) in scores
    ]
    return table(["noise", "points", *names], rows, numbers=[False, True, *[False] * len(names)])


def delays(scores: Scores) -> str:
    """Found, by points after the step."""
    rows = []
    for share in DELAY_SHARES:
        for name in _detectors(scores):
            each = [scores.get(("delay", f"+{share * 100:g} %, {after} points", 100), {}).get(name) for after in AFTER]
            if any(each):
                cells = ["-" if one is None else f"{one.found / one.series * 100:.1f} %" for one in each]
                size = next(one.series for one in each if one is not None)
                rows.append([f"+{share * 100:g} %", name, f"{size:,}", *cells])
    heads = ["step", "by", "series each", *(f"{after} after" for after in AFTER)]
    return table(heads, rows, numbers=[False, False, *[True] * (len(AFTER) + 1)])


def steps(scores: Scores) -> str:
    """Steps, by kind: found by each, and how well the harness places them."""
    return _changes(STEPS, scores, "step", [], lambda _kind, _one: [])


def drifts(scores: Scores) -> str:
    """Drifts, likewise."""

    def called(kind: Kind, one: Score) -> list[str]:
        drifts_found = one.matched - one.found * (len(kind.truths) - 1)
        return [_share(one.drifts, drifts_found)]

    return _changes(DRIFTS, scores, "drift", ["called a drift"], called)


def _changes(
    kinds: Sequence[Kind], scores: Scores, what: str, heads: list[str], cells: Callable[[Kind, Score], list[str]]
) -> str:
    names = _detectors(scores)
    rows = []
    for kind in kinds:
        each = scores.get(key(kind), {})
        own = each.get(OWN, Score())
        rows.append(
            [
                kind.name,
                f"{kind.size:,}",
                *(_found(each.get(name)) for name in names),
                *cells(kind, own),
                _share(own.exact, own.matched),
                f"{_share(own.covered, own.matched)} ({own.width / max(own.matched, 1):.1f})",
            ]
        )
    return table([what, "points", *names, *heads, "place exact", "place in range"], rows, numbers=[False, True])


def _found(score: Score | None) -> str:
    """Share found with its bounds; then the share of series with something else reported."""
    if score is None:
        return "-"
    return f"{rate(score.found, score.series)}; more {_share(score.more, score.series)}"


def rate(hits: int, trials: int) -> str:
    """`0.31 % (0.12 to 0.64; 3 of 2,000)`."""
    if not trials:
        return "-"
    low, high = rate_bounds(hits, trials)
    return f"{hits / trials * 100:.2f} % ({low * 100:.2f} to {high * 100:.2f}; {hits:,} of {trials:,})"


def _flagged(score: Score | None) -> str:
    return "-" if score is None else rate(score.flagged, score.series)


def _share(hits: int, trials: int) -> str:
    return f"{hits / trials * 100:.0f} %" if trials else "-"


def _own(kinds: Iterable[Kind], scores: Scores) -> list[Score]:
    return [scores[key(kind)][OWN] for kind in kinds if OWN in scores.get(key(kind), {})]


def _detectors(scores: Scores) -> Sequence[str]:
    """Those that were tried, in a fixed order."""
    tried = {name for each in scores.values() for name in each}
    return [name for name in (OWN, *OTAVA.detectors, *ASV.detectors) if name in tried]
