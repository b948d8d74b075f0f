"""What `harness history` does, once its arguments are parsed."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from harness.cli.output import print_text, tell
from harness.errors import ExitCode, UsageError
from harness.history.changes import history_changes
from harness.history.events import ChangeEvent, group_changes, order_of
from harness.history.failures import CaseNews, case_news
from harness.history.open import History, open_history
from harness.history.pages import (
    SUITES_QUERY,
    add_cases,
    add_failures,
    change_record,
    changes_page,
    changes_verdict,
    failures_verdict,
    overview_page,
)
from harness.history.series import SeriesRow, history_command_line, list_command_line, match_series, series_rows
from harness.history.series_page import constant_table, series_page, series_table
from harness.history.tables_page import columns_page, frame_records, query_page
from harness.metrics import LATENCY, LATENCY_VS_BASELINE, LATENCY_VS_REFERENCE, is_exact, metric_named
from harness.progress import Terminal
from harness.report import Format
from harness.report.data import to_csv, to_json
from harness.report.markdown import to_markdown
from harness.report.page import Page
from harness.report.terminal import to_terminal
from harness.store.schema import column_records
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
        _print_columns(arguments)
        return ExitCode.OK
    with Terminal() as progress, open_history(arguments.results, progress=progress) as history:
        if arguments.sql is not None:
            _print_query(history, arguments, arguments.sql)
        elif arguments.series is not None:
            _print_series(history, arguments, arguments.series)
        elif arguments.changes:
            return _print_changes(history, arguments, progress)
        else:
            _print_overview(history, arguments, progress)
    return ExitCode.OK


def _check(arguments: HistoryArguments) -> None:
    modes = {"--changes": arguments.changes, "--series": arguments.series is not None}
    modes |= {"--sql": arguments.sql is not None, "--columns": arguments.columns}
    given = [name for name, is_given in modes.items() if is_given]
    if len(given) > 1:
        raise UsageError(f"{' and '.join(given)} ask for different things; give one of them")
    for name in arguments.metrics:
        if metric_named(name) is None and name not in (LATENCY_VS_BASELINE, LATENCY_VS_REFERENCE):
            lists = history_command_line(arguments.results, "--sql", "SELECT DISTINCT metric FROM series")
            raise UsageError(f"--metric {one_line(name)}: is no metric; {lists} lists those that there are")


def _print_columns(arguments: HistoryArguments) -> None:
    if arguments.output_format in ("json", "csv"):
        _print_data({"columns": column_records()}, "columns", arguments)
    else:
        _print_page(columns_page(), arguments)


def _print_query(history: History, arguments: HistoryArguments, sql: str) -> None:
    frame = history.query(sql)
    _tell(history.notes)
    heads = [str(name) for name in frame.columns]
    if arguments.output_format == "json":
        print_text(to_json({"columns": heads, "rows": frame_records(frame)}), arguments.out)
    elif arguments.output_format == "csv":
        print_text(to_csv(frame_records(frame)) or f"{','.join(heads)}\n", arguments.out)
    else:
        _print_page(query_page(frame), arguments)


def _print_overview(history: History, arguments: HistoryArguments, progress: Terminal) -> None:
    suites = history.query(SUITES_QUERY)
    events = _events(history, arguments, progress, arguments.metrics or _OVERVIEW)
    news = case_news(history, arguments.last)
    if arguments.output_format in ("json", "csv"):
        rows = [{**row, "failing": _failing(news, row)} for row in frame_records(suites)]
        _tell_csv_reader(arguments, [failures_verdict(news), *history.notes])
        _print_data({"cases": list(map(asdict, news)), "suites": rows, "notes": history.notes}, "suites", arguments)
    else:
        page = overview_page(suites, events, last=arguments.last, notes=history.notes)
        _print_page(add_failures(page, news, last=arguments.last), arguments)


def _failing(news: Sequence[CaseNews], row: dict[str, Any]) -> int:
    place = row["suite"], row["machine_class"]
    return sum(case.state == "fails" and (case.suite, case.machine_class) == place for case in news)


def _print_changes(history: History, arguments: HistoryArguments, progress: Terminal) -> int:
    chosen = arguments.metrics
    rows = [row for row in series_rows(history) if row.points > 1 and (not chosen or row.metric in chosen)]
    events = _events(history, arguments, progress, chosen)
    news = case_news(history, arguments.last)
    if arguments.output_format in ("json", "csv"):
        failures, verdict = failures_verdict(news), changes_verdict(events, searched=len(rows), last=arguments.last)
        document = {
            "verdict": f"{failures} {verdict}".strip(),
            "cases": list(map(asdict, news)),
            "changes": [change_record(event, change) for event in events for change in event.changes],
            "notes": history.notes,
        }
        _tell_csv_reader(arguments, [failures, *history.notes])
        _print_data(document, "changes", arguments)
    else:
        noisy = sum(not is_exact(row.metric) for row in rows)
        page = changes_page(events, searched=len(rows), noisy=noisy, last=arguments.last, notes=history.notes)
        _print_page(add_cases(page, news, last=arguments.last), arguments)
    if any(event.fails for event in events):
        return ExitCode.REGRESSION
    return ExitCode.CASE_FAILED if any(case.state == "fails" and case.recent for case in news) else ExitCode.OK


def _events(
    history: History, arguments: HistoryArguments, progress: Terminal, metrics: Sequence[str]
) -> list[ChangeEvent]:
    changes = history_changes(history, metrics=set(metrics) or None, jobs=arguments.jobs, progress=progress)
    return group_changes(changes, order_of(history), arguments.last)


def _print_series(history: History, arguments: HistoryArguments, pattern: str) -> None:
    found = match_series(series_rows(history), pattern, arguments.metrics)
    if not found:
        lists = list_command_line(arguments.results)
        raise UsageError(f"--series {one_line(pattern)}: matches no series; {lists} lists them")
    if arguments.output_format in ("json", "csv"):
        rows = [record for row in found for record in frame_records(history.points(row.series))]
        _tell_csv_reader(arguments, history.notes)
        _print_data({"points": rows, "notes": history.notes}, "points", arguments)
        return
    level = _constant(history, found)
    constant = [row for row in found if row.series in level]
    varying = [row for row in found if row.series not in level]
    first = varying[:_MOST_SERIES]
    changes = history_changes(history, series={row.series for row in first}, jobs=arguments.jobs)
    width = min(_LINE, _terminal_width())
    tables = [
        series_table(
            row,
            history.points(row.series),
            [change for change in changes if change.series == row.series],
            width=width,
            alone=len(first) == 1,
        )
        for row in first
    ]
    if constant:
        tables.append(constant_table(constant[:_MOST_CONSTANT]))
    hidden = len(varying) - len(first) + len(constant[_MOST_CONSTANT:])
    _print_page(series_page(tables, hidden, history.notes), arguments)


def _constant(history: History, rows: Sequence[SeriesRow]) -> set[str]:
    """Counted series that have one value in all of their points."""
    counted = [row.series for row in rows if is_exact(row.metric)]
    level = history.query(
        "SELECT series FROM points WHERE series IN (SELECT unnest(?)) GROUP BY series "
        "HAVING min(points.value) = max(points.value)",
        [counted],
    )
    return set(level["series"])


def _print_data(document: dict[str, Any], rows: str, arguments: HistoryArguments) -> None:
    """A document as JSON, or the list of that name in it as CSV."""
    is_json = arguments.output_format == "json"
    print_text(to_json(document) if is_json else to_csv(document[rows]) or "\n", arguments.out)


def _print_page(page: Page, arguments: HistoryArguments) -> None:
    if arguments.output_format == "markdown":
        print_text(to_markdown(page), arguments.out)
        return
    color = arguments.out is None and sys.stdout.isatty() and "NO_COLOR" not in os.environ
    print_text(to_terminal(page, width=_terminal_width(), color=color), arguments.out)


def _terminal_width() -> int:
    return shutil.get_terminal_size((120, 24)).columns


def _tell_csv_reader(arguments: HistoryArguments, sentences: Sequence[str]) -> None:
    """A CSV has one table, so what JSON has beside it goes to stderr."""
    if arguments.output_format == "csv":
        _tell(sentences)


def _tell(sentences: Sequence[str]) -> None:
    for sentence in filter(None, sentences):
        tell(one_line(sentence))
