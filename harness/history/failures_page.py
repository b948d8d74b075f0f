"""How `harness history` shows the cases that fail, work again or are new: a sentence and tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any

from harness.history.failures import CaseNews, State
from harness.history.page import Page, Sheet
from harness.report.columns import Column
from harness.text import one_line, shown

_NAMED = 3
_MOST_ROWS = 100
_MOST_LETTERS = 300  # what a tool printed may be long
_TITLES: dict[State, str] = {"fails": "Cases that fail", "works again": "Cases that work again", "new": "New cases"}


def failures_verdict(news: Sequence[CaseNews]) -> str:
    """How many fail, since when and why; "" where none does."""
    bad = [one for one in news if one.state == "fails"]
    if not bad:
        return ""
    named = "; ".join(
        f"{shown(one.case)} since {shown(one.since)} ({shown(one.toolchain)}): {failure(one)}" for one in bad[:_NAMED]
    )
    more = f"; and {len(bad) - _NAMED} more" if len(bad) > _NAMED else ""
    return f"{len(bad)} case{' fails' if len(bad) == 1 else 's fail'}: {named}{more}".rstrip(".") + "."


def with_news(page: Page, news: Sequence[CaseNews], *, last: int) -> Page:
    """A page of changes with the cases in it; its verdict begins with those that fail.

    Args:
        last: How many runs of a suite count as recent.
    """
    before = [_sheet("fails", news), _sheet("works again", news)]
    sheets = [sheet for sheet in (*before, *page.sheets, _sheet("new", news)) if sheet is not None]
    return replace(page, verdict=_said(page, news, last), sheets=tuple(sheets))


def with_failures(page: Page, news: Sequence[CaseNews], *, last: int) -> Page:
    """An overview with the cases that fail behind it; the others are only counted."""
    failing = _sheet("fails", news)
    return replace(page, verdict=_said(page, news, last), sheets=(*page.sheets, *([failing] if failing else [])))


def _said(page: Page, news: Sequence[CaseNews], last: int) -> str:
    again = sum(one.state == "works again" for one in news)
    new = sum(one.state == "new" for one in news)
    others = [f"{again} case{' works' if again == 1 else 's work'} again"] if again else []
    others += [f"{new} case{' is' if new == 1 else 's are'} new"] if new else []
    span = f"In the last {last} runs" if last != 1 else "In the last run"
    closing = f"{span}: {', '.join(others)}." if others else ""
    return " ".join(text for text in (failures_verdict(news), page.verdict, closing) if text)


def news_record(news: CaseNews) -> dict[str, Any]:
    """For other programs."""
    return asdict(news)


def failure(news: CaseNews) -> str:
    """Stage and message of a case that fails, on one line."""
    text = one_line(news.message)
    text = text if len(text) <= _MOST_LETTERS else f"{text[: _MOST_LETTERS - 3]}..."
    return ": ".join(one for one in (one_line(news.stage), text) if one) or "planned, but not measured"


def _sheet(state: State, news: Sequence[CaseNews]) -> Sheet | None:
    found = [one for one in news if one.state == state]
    if not found:
        return None
    first = found[:_MOST_ROWS]
    several = len({one.suite for one in first}) > 1
    machines = len({one.machine_class for one in first}) > 1
    columns = [Column(title="case", cells=tuple(shown(one.case) for one in first), number=False)]
    if several:
        columns.append(Column(title="suite", cells=tuple(shown(one.suite) for one in first), number=False))
    if machines:
        cells = tuple(shown(one.machine_class) for one in first)
        columns.append(Column(title="machines", cells=cells, number=False, rank=2))
    columns += [
        Column(title="since", cells=tuple(shown(one.since) for one in first), number=False),
        Column(title="toolchain", cells=tuple(shown(one.toolchain) for one in first), number=False, rank=1),
        Column(title="runs", cells=tuple(f"{one.runs:,}" for one in first)),
    ]
    if state == "fails":
        columns.append(Column(title="why", cells=tuple(failure(one) for one in first), number=False))
    hidden = len(found) - len(first)
    return Sheet(
        title=_TITLES[state],
        columns=tuple(columns),
        names=frozenset(["case", "since"]),
        below=frozenset(["why"]),
        folded=state == "new",
        after=(f"{hidden:,} more are in --format json.",) if hidden else (),
    )
