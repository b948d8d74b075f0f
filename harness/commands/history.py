"""What `harness history` does, once its arguments are parsed."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.commands.output import Format, print_text
from harness.errors import ExitCode, UsageError
from harness.history.changes import find_all, series_rows
from harness.history.changes_page import change_record, changes_page, verdict
from harness.history.columns_page import columns_page, records
from harness.history.failures import CaseNews, case_news
from harness.history.failures_page import failures_verdict, news_record, with_failures, with_news
from harness.history.findings import Finding, findings, timeline
from harness.history.frame_text import records_of, render_frame
from harness.history.frames import frame_of
from harness.history.open import History, open_history
from harness.history.overview_page import COUNTS, overview_page
from harness.history.page import Page, page_markdown, page_terminal
from harness.history.series_match import asking, listing_series, matching
from harness.history.series_page import constant_sheet, series_page, series_sheet
from harness.history.series_view import SeriesRow
from harness.history.values import Point
from harness.metrics import LATENCY, LATENCY_VS_BASELINE, LATENCY_VS_REFERENCE, is_exact, metric_named
from harness.progress import Terminal
from harness.report.csv_ import csv_text
from harness.report.json_ import SCHEMA_VERSION, json_text
from harness.text import one_line

_MOST_SERIES = 12
_MOST_CONSTANT = 40  # which take a line each
_LINE = 100
_OVERVIEW = (LATENCY.name, LATENCY_VS_REFERENCE)


@dataclass(frozen=True, kw_only=True)
class HistoryArguments:
    """The command line's arguments; at most one of `changes`, `series`, `sql` and `columns` is given."""

    results: str
    changes: bool
    series: str | None
    sql: str | None
    columns: bool
    metrics: tuple[str, ...]
    last: int
    jobs: int | None
    output_format: Format
    out: Path | None


def history_command(arguments: HistoryArguments) -> int:
    """`harness history`: exit status 1 if --changes finds a recent one for the worse that is the compiler's.

    Else it is 3 if a case fails since one of the last runs.
    """
    _check(arguments)
    if arguments.columns:
        return _print_columns(arguments)
    with Terminal() as progress, open_history(arguments.results, progress=progress) as history:
        if arguments.sql is not None:
            frame = history.query(arguments.sql)
            _tell(history.notes)
            print_text(render_frame(frame, arguments.output_format, **_form(arguments)), arguments.out)
            return ExitCode.OK
        if arguments.series is not None:
            return _print_series(history, arguments, progress)
        if arguments.changes:
            return _print_changes(history, arguments, progress)
        return _print_overview(history, arguments, progress)


def _check(arguments: HistoryArguments) -> None:
    modes = {"--changes": arguments.changes, "--series": arguments.series is not None}
    modes |= {"--sql": arguments.sql is not None, "--columns": arguments.columns}
    given = [name for name, is_given in modes.items() if is_given]
    if len(given) > 1:
        raise UsageError(f"{' and '.join(given)} ask for different things; give one of them")
    for name in arguments.metrics:
        if metric_named(name) is None and name not in (LATENCY_VS_BASELINE, LATENCY_VS_REFERENCE):
            lists = asking(arguments.results, "--sql", "SELECT DISTINCT metric FROM series")
            raise UsageError(f"--metric {one_line(name)}: is no metric; {lists} lists those that there are")


def _print_columns(arguments: HistoryArguments) -> int:
    rows = records()
    if arguments.output_format == "json":
        print_text(json_text({"schema_version": SCHEMA_VERSION, "columns": rows}), arguments.out)
    elif arguments.output_format == "csv":
        print_text(csv_text(rows), arguments.out)
    else:
        _print_page(columns_page(), arguments)
    return ExitCode.OK


def _print_overview(history: History, arguments: HistoryArguments, progress: Terminal) -> int:
    counts = history.query(COUNTS)
    found = _found(history, arguments, progress, arguments.metrics or _OVERVIEW)
    news = case_news(history, arguments.last)
    if arguments.output_format in ("json", "csv"):
        rows = [{**row, "failing": _failing(news, row)} for row in records_of(counts)]
        print_text(_records_text(rows, "suites", history.notes, arguments, **_news(news, arguments)), arguments.out)
    else:
        page = overview_page(counts, found, last=arguments.last, notes=history.notes)
        _print_page(with_failures(page, news, last=arguments.last), arguments)
    return ExitCode.OK


def _failing(news: Sequence[CaseNews], row: dict[str, Any]) -> int:
    place = row["suite"], row["machine_class"]
    return sum(one.state == "fails" and (one.suite, one.machine_class) == place for one in news)


def _news(news: Sequence[CaseNews], arguments: HistoryArguments) -> dict[str, Any]:
    """What JSON has of them; a CSV has one table, so it is told beside it which cases fail."""
    if arguments.output_format == "json":
        return {"cases": [news_record(one) for one in news]}
    _tell([said] if (said := failures_verdict(news)) else [])
    return {}


def _print_changes(history: History, arguments: HistoryArguments, progress: Terminal) -> int:
    rows = [row for row in series_rows(history) if row.points > 1 and _chosen(row.metric, arguments)]
    found = _found(history, arguments, progress, arguments.metrics)
    news = case_news(history, arguments.last)
    if arguments.output_format in ("json", "csv"):
        listed = [change_record(one, change) for one in found for change in one.changes]
        said = verdict(found, searched=len(rows), last=arguments.last)
        more = {"verdict": f"{failures_verdict(news)} {said}".strip(), **_news(news, arguments)}
        print_text(_records_text(listed, "changes", history.notes, arguments, **more), arguments.out)
    else:
        noisy = sum(not is_exact(row.metric) for row in rows)
        page = changes_page(found, searched=len(rows), noisy=noisy, last=arguments.last, notes=history.notes)
        _print_page(with_news(page, news, last=arguments.last), arguments)
    if any(one.fails for one in found):
        return ExitCode.REGRESSION
    return ExitCode.CASE_FAILED if any(one.state == "fails" and one.recent for one in news) else ExitCode.OK


def _print_series(history: History, arguments: HistoryArguments, progress: Terminal) -> int:
    pattern = arguments.series or ""
    found = matching(series_rows(history), pattern, arguments.metrics)
    if not found:
        raise UsageError(
            f"--series {one_line(pattern)}: matches no series; {listing_series(arguments.results)} lists them"
        )
    if arguments.output_format in ("json", "csv"):
        rows = [record for row in found for record in records_of(history.points(row.series))]
        print_text(_records_text(rows, "points", history.notes, arguments), arguments.out)
        return ExitCode.OK
    level = _constant(history, found)
    varying = [row for row in found if row.series not in level]
    shown = varying[:_MOST_SERIES]
    changes = find_all(history, metrics={row.metric for row in shown}, jobs=arguments.jobs, progress=progress)
    width = min(_LINE, _form(arguments)["width"])
    sheets = []
    for row in shown:
        own = [one for one in changes if one.series == row.series]
        points = history.points(row.series)
        sheets.append(series_sheet(row, points, own, width=width, alone=len(shown) == 1))
    constant = [row for row in found if row.series in level]
    if constant:
        sheets.append(constant_sheet(constant[:_MOST_CONSTANT]))
    left_out = len(varying) - len(shown) + len(constant[_MOST_CONSTANT:])
    _print_page(series_page(sheets, left_out, history.notes), arguments)
    return ExitCode.OK


def _constant(history: History, rows: Sequence[SeriesRow]) -> set[str]:
    """Counted series that have one value in all of their points."""
    counted = [row.series for row in rows if is_exact(row.metric)]
    level = history.query(
        "SELECT series FROM points WHERE series IN (SELECT unnest(?)) GROUP BY series "
        "HAVING min(points.value) = max(points.value)",
        [counted],
    )
    return set(level["series"])


def _found(history: History, arguments: HistoryArguments, progress: Terminal, metrics: Sequence[str]) -> list[Finding]:
    changes = find_all(history, metrics=set(metrics) or None, jobs=arguments.jobs, progress=progress)
    runs = history.query(
        "SELECT run, suite, machine_class FROM runs WHERE clock = '' AND finished ORDER BY started, run"
    )
    return findings(changes, timeline(runs.itertuples(index=False, name=None)), arguments.last)


def _chosen(metric: str, arguments: HistoryArguments) -> bool:
    return not arguments.metrics or metric in arguments.metrics


def _records_text(
    rows: list[dict[str, Any]], key: str, notes: Sequence[str], arguments: HistoryArguments, **more: Any
) -> str:
    if arguments.output_format == "json":
        return json_text({"schema_version": SCHEMA_VERSION, **more, key: rows, "notes": notes})
    _tell(notes)
    heads = list(rows[0]) if rows else list(frame_of(Point, []).columns) if key == "points" else []
    return csv_text(rows) or f"{','.join(heads)}\n"


def _print_page(page: Page, arguments: HistoryArguments) -> None:
    if arguments.output_format == "markdown":
        print_text(page_markdown(page), arguments.out)
    else:
        print_text(page_terminal(page, **_form(arguments)), arguments.out)


def _form(arguments: HistoryArguments) -> dict[str, Any]:
    """How wide the terminal is, and whether it shows colours."""
    color = arguments.out is None and sys.stdout.isatty() and "NO_COLOR" not in os.environ
    return {"width": shutil.get_terminal_size((120, 24)).columns, "color": color}


def _tell(notes: Sequence[str]) -> None:
    for note in notes:
        sys.stderr.write(f"{one_line(note)}\n")
