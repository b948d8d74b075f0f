"""What `harness history --changes` shows: a verdict, the latest changes with their causes, and the earlier ones."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from harness.history.findings import Finding, is_worse
from harness.history.page import Page, Sheet
from harness.history.values import Change
from harness.metrics import RATIO_TITLES, metric_named
from harness.report.columns import Column
from harness.report.units import byte_unit, count_unit, percent, ratio_text, time_unit
from harness.text import one_line, shown

# In so many of 100 series of 100 points noise alone is called a change: of usual kinds of noise together, and of two
# levels that are each kept for about ten runs; docs/history.md measures both.
_USUAL_ALARMS, _MOST_ALARMS = 1, 14
_NAMED = 3
_MOST_ROWS = 100
_CAUSES = (
    "Cause: compiler, where the toolchain changed and what is free of the machine moved (the ratio to the reference "
    "toolchain in the same rounds, or counted figures); machine, where the reference toolchain or an unchanged module "
    "moved; harness, where nothing changed but its commit; else unknown. The runs in which it may have happened are a "
    "95 % range for steps; of drifts they hold the beginning in 75 to 98 % of cases, by length and size."
)


def changes_page(found: Sequence[Finding], *, searched: int, noisy: int, last: int, notes: Sequence[str]) -> Page:
    """Lay out the changes of a history.

    Args:
        found: The latest first.
        searched: Number of series in which changes were looked for.
        noisy: How many of these are timed, and so may be flagged by chance.
        last: How many runs of its suite count as recent.
        notes: What was left out of the history, and why.
    """
    recent = [one for one in found if one.recent]
    earlier = [one for one in found if not one.recent]
    sheets = []
    if recent:
        sheets.append(_sheet(f"Changes in the last {last} runs", recent))
    if earlier:
        title = f"{len(earlier)} earlier change{'' if len(earlier) == 1 else 's'}"
        sheets.append(_sheet(title, earlier, folded=True))
    return Page(
        verdict=verdict(found, searched=searched, last=last),
        sheets=tuple(sheets),
        notes=(*([_CAUSES] if found else []), *([chance(searched, noisy)] if noisy else []), *notes),
    )


def verdict(found: Sequence[Finding], *, searched: int, last: int) -> str:
    """All in one sentence."""
    if not searched:
        return "No series has two points yet, so there is nothing to find changes in."
    span = f"in the last {last} runs" if last != 1 else "in the last run"
    bad = [one for one in found if one.fails]
    others = Counter(one.cause for one in found if one.recent and not one.fails)
    rest = ", ".join(f"{count} of {_whose(cause)}" for cause, count in others.items())
    closing = f"; other changes: {rest}." if rest else "."
    if not bad:
        return f"No latency and no compile time became longer by the compiler {span}{closing}"
    named = ", ".join(f"{shown(one.lead.case)} {_figure(one.lead)} {_amount(one)}" for one in bad[:_NAMED])
    more = f" and {len(bad) - _NAMED} more" if len(bad) > _NAMED else ""
    cases = len({(one.lead.suite, one.lead.case) for one in bad})
    return f"{cases} case{'' if cases == 1 else 's'} became slower by the compiler {span}: {named}{more}{closing}"


def chance(searched: int, noisy: int) -> str:
    """How often a finding may be none, in two sentences; no count, since nobody knows a machine's noise."""
    return (
        f"{searched:,} series were searched, {noisy:,} of them timed. A change is found in about {_USUAL_ALARMS} % of "
        f"timed series that have none where noise is of a usual kind, and in up to {_MOST_ALARMS} % where it keeps to "
        "one of two levels for some ten runs (docs/history.md): what counts is seen in several figures or cases, and "
        "stays."
    )


def _whose(cause: str) -> str:
    return "unknown cause" if cause == "unknown" else f"the {cause}"


def change_record(finding: Finding, change: Change) -> dict[str, Any]:
    """For other programs: a change, and whether it is recent and a reason to stop."""
    return {
        **asdict(change),
        "recent": finding.recent,
        "worse": is_worse(change),
        "fails": finding.fails and change is finding.lead,
    }


def _sheet(title: str, found: Sequence[Finding], *, folded: bool = False) -> Sheet:
    first = found[:_MOST_ROWS]
    after = [f"{len(found) - _MOST_ROWS} more are in --format csv and json."] if len(found) > _MOST_ROWS else []
    leads = [one.lead for one in first]
    columns = (
        Column(title="case", cells=tuple(shown(lead.case) for lead in leads), number=False),
        *([Column(title="cases", cells=tuple(str(len(one.cases)) for one in first))] if _several(first) else []),
        Column(title="change", cells=tuple(f"{_figure(one.lead)} {_amount(one)}" for one in first), number=False),
        Column(title="first run with it", cells=tuple(shown(lead.first_bad) for lead in leads), number=False),
        Column(title="on", cells=tuple(lead.started[:10] for lead in leads), number=False, rank=1),
        Column(title="cause", cells=tuple(lead.cause for lead in leads), number=False),
        Column(title="why", cells=tuple(map(_why, first)), number=False),
    )
    names, below = frozenset(["case", "first run with it"]), frozenset(["why"])
    return Sheet(title=title, columns=columns, names=names, below=below, folded=folded, after=tuple(after))


def _several(found: Sequence[Finding]) -> bool:
    return any(len(one.cases) > 1 for one in found)


def _figure(change: Change) -> str:
    metric = metric_named(change.metric)
    title = RATIO_TITLES.get(change.metric) or (metric.title if metric is not None else "")
    title = title.lower() or shown(change.metric)
    return title if change.role == "newest" else f"{title} under {shown(change.toolchain_after or change.role)}"


def _amount(finding: Finding) -> str:
    """`+3.9 % (2.00 -> 2.08 ms)`, and what is marked by more than colour: the direction."""
    lead = finding.lead
    kind = "drift " if lead.kind == "drift" else ""
    mark = "▲" if is_worse(lead) else "▼"
    relative = percent(finding.ratio, decimals=1) if math.isfinite(finding.ratio) else "new"
    if len(finding.cases) > 1:
        return f"{kind}{mark} {relative} (median)"
    return f"{kind}{mark} {relative} ({_levels(lead)})"


def _levels(change: Change) -> str:
    if change.unit == "ratio":
        return f"{ratio_text(change.before)} -> {ratio_text(change.after)}"
    choose = {"ns": time_unit, "bytes": byte_unit}.get(change.unit, count_unit)
    unit = choose([change.before, change.after])
    return f"{unit.text(change.before)} -> {unit.text(change.after)}{f' {unit.name}' if unit.name else ''}"


def _why(finding: Finding) -> str:
    """The evidence, the other figures that show the same event, and when it may have happened."""
    lead = finding.lead
    figures = dict.fromkeys(_figure(one) for one in finding.changes if one is not lead)
    figures.pop(_figure(lead), None)
    parts = [one_line(lead.evidence)]
    if figures:
        parts.append(f"seen too in {', '.join(figures)}")
    if lead.kind == "drift":
        parts.append(f"it goes on until {shown(lead.until)}")
    if lead.earliest != lead.latest:
        begins = "began" if lead.kind == "drift" else "happened"
        parts.append(f"it {begins} between {shown(lead.earliest)} and {shown(lead.latest)}")
    return "; ".join(parts)
