"""Scores -> the table of docs/explain.md: every number in it is counted, none is typed."""

from collections.abc import Iterable, Sequence

import numpy as np

from benchmarks.explain.scores import Score
from benchmarks.verdicts.words import percent
from harness.report.explanation_page import call_ns
from harness.report.markdown import blocks, details, table
from harness.stats.intervals import rate_bounds

NONE = "-"


def render(scores: Sequence[Score]) -> str:
    """How the pairs were measured, a line a kind, and a line a pair."""
    kinds = list(dict.fromkeys(one.pair.kind for one in scores))
    lines = [_line(kind, [one for one in scores if one.pair.kind == kind]) for kind in kinds]
    heads = [
        "what differs",
        "pairs",
        "right part first",
        "called changed",
        "its share is off by, points",
        "its ratio is off by",
        "unchanged parts accused",
        "parts add up to",
        "s",
    ]
    return blocks(
        _made(scores),
        table(heads, [*lines, _line("all", scores)], numbers=[False, *[True] * 8]),
        _accused(scores),
        details("Each pair", _pairs(scores)),
    )


def _made(scores: Sequence[Score]) -> str:
    explanations = [one.recorded.explanation for one in scores]
    newest = max(explanations, key=lambda explanation: explanation.created)
    budgets = sorted({explanation.settings["budget_s"] for explanation in explanations})
    loads = [one.recorded.load for one in scores]
    generations = [explanation.settings["generations"] for explanation in explanations]
    calls = [ns / 1e6 for explanation in explanations for ns in call_ns(explanation)]
    return (
        f"{len(scores)} pairs, {min(explanation.created for explanation in explanations)[:16].replace('T', ' ')} to "
        f"{newest.created[11:16]} UTC on {newest.head.machine}; load average {np.median(loads):.1f} (median, up to "
        f"{max(loads):.1f}); calls of {min(calls):.2g} to {max(calls):.3g} ms; `--budget "
        f"{', '.join(f'{budget:g}' for budget in budgets)}`, {np.median(generations):.0f} generations (median). "
        "`Right part first`: the dispatch that is known to change heads the list; `called changed`: the judge calls it "
        "so too. Its share of the call's change should be 100 %, and is told where the call is called changed. Of both "
        "errors: the median, and the worst. `Accused`: parts called changed that do not change. `Add up to`: "
        "dispatches and the device's other work, of a call's latency on either side."
    )


def _line(kind: str, scores: Sequence[Score]) -> list[str]:
    off_points = [abs(one.share - 1) * 100 for one in scores if one.share is not None]
    off = [abs(one.ratio_error) for one in scores if one.ratio_error is not None]
    sums = [share * 100 for one in scores for share in one.sums]
    accused, unchanged = sum(len(one.accused) for one in scores), sum(one.unchanged for one in scores)
    return [
        kind,
        f"{len(scores)}",
        _of(one.is_first for one in scores),
        _of(one.is_called for one in scores),
        f"{np.median(off_points):.1f}; {max(off_points):.1f} ({len(off_points)})" if off_points else NONE,
        f"{percent(float(np.median(off)), 1)}; {percent(max(off), 1)}" if off else NONE,
        f"{accused} of {unchanged}",
        f"{np.median(sums):.1f} % ({min(sums):.1f} to {max(sums):.1f})",
        f"{np.median([one.recorded.seconds for one in scores]):.0f}",
    ]


def _of(answers: Iterable[bool | None]) -> str:
    known = [answer for answer in answers if answer is not None]
    return f"{sum(known)} of {len(known)}" if known else NONE


def _accused(scores: Sequence[Score]) -> str:
    accused, unchanged = sum(len(one.accused) for one in scores), sum(one.unchanged for one in scores)
    bound = rate_bounds(accused, unchanged)[1]
    named = [f"`{name}` in {one.pair.name}" for one in scores for name in one.accused]
    which = f": {', '.join(named)}" if named else ""
    return (
        f"Of {unchanged:,} parts that do not change, {accused} {'is' if accused == 1 else 'are'} accused{which}. The "
        f"rate is at most {percent(bound, 2)} (upper end of the 95 % interval)."
    )


def _pairs(scores: Sequence[Score]) -> str:
    rows = []
    for one in scores:
        explanation = one.recorded.explanation
        base_ns, head_ns = call_ns(explanation)
        first = explanation.parts[0]
        rows.append(
            [
                one.pair.name,
                f"{base_ns / 1e6:.3f}",
                f"{head_ns / 1e6:.3f}",
                explanation.latency.verdict,
                f"`{first.operation}`",
                first.verdict,
                f"{first.ratio:.3f}" if first.ratio is not None else NONE,
                f"{one.pair.ratio:.3f}" if one.pair.ratio is not None and one.is_first else NONE,
                percent(one.share, 1) if one.share is not None else NONE,
                f"{one.recorded.seconds:.0f}",
            ]
        )
    heads = ["pair", "base, ms", "head, ms", "the call", "first part", "verdict", "ratio", "known", "share", "s"]
    return table(heads, rows, numbers=[False, True, True, False, False, False, True, True, True, True])
