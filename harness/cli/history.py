"""`harness history` and `harness history ack`."""

import shlex
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, asdict, dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import App, Parameter

from harness.cli.app import app
from harness.cli.output import emit, print_text, tell, terminal_width
from harness.errors import ExitCode, UsageError
from harness.history.changes import history_changes
from harness.history.dating import Dated, date_steps, open_questions
from harness.history.events import ChangeEvent, acknowledge, find_events, group_changes
from harness.history.failures import failing_cases, failures_verdict
from harness.history.pages import (
    SUITES_QUERY,
    acknowledgement_records,
    change_record,
    changes_page,
    event_text,
    overview_page,
)
from harness.history.series import (
    History,
    frame_records,
    history_command_line,
    list_command_line,
    match_series,
    open_history,
    series_rows,
    usable_runs,
)
from harness.history.series_page import (
    columns_page,
    query_page,
    series_page,
    series_table,
)
from harness.metrics import LATENCY, LATENCY_VS_BASELINE, LATENCY_VS_REFERENCE, is_exact, metric_named
from harness.options import Count, Everything, Flag, Seconds, Strings, TableFormat, command_options
from harness.progress import Progress, Terminal
from harness.report.data import to_csv, to_json
from harness.report.page import Page
from harness.store.folders import MARKS_FOLDER
from harness.store.marks import NOTE_LIMIT, RunChoice, checked_name, read_marks, write_marks
from harness.store.place import open_place, without_password
from harness.store.schema import column_records
from harness.text import one_line, plural

_MOST_SERIES = 12
_LINE = 100


@command_options
@dataclass(frozen=True)
class HistoryOptions:
    """What is asked of a history: at most one of `changes`, `series`, `sql` and `columns`.

    Attributes:
        results: The results folder, a path or a URL.
        changes: Every step and drift, with its cause, and every case that fails.
        series: The points of series, as a line of text and a table: by the case's name, by `case metric` or
            `case/metric`, or by id; shell patterns.
        sql: What this statement gives, over the tables that --columns lists, in DuckDB's SQL.
        columns: List all tables and columns with their meaning.
        everything: Runs with the tag experiment too, among them those of compare, selfcheck, ablate and bench.
        leave_out: Not runs with this tag; repeatable. `harness results list` shows the tags.
        only: Only runs with this tag, experiments too; repeatable.
        metrics: Only series of this metric, for --changes and --series; repeatable.
        last: How many runs of a suite count as its last.
        bisect: With --changes: search by measuring, for so many seconds in all, which release began each new step; what
            was found is kept, and what was not goes on the next time.
        bisect_results: Where these bisects are kept.
        format: How to print it.
        out: Write it to this file instead of stdout.
    """

    results: str = "results"
    _: KW_ONLY
    changes: Flag = False
    series: str | None = None
    sql: str | None = None
    columns: Flag = False
    everything: Everything = False
    leave_out: Strings = ()
    only: Strings = ()
    metrics: Annotated[Strings, Parameter(name="--metric")] = ()
    last: Count = 10
    bisect: Seconds | None = None
    bisect_results: Path = Path("results")
    format: TableFormat = "terminal"
    out: Path | None = None


history_app = App(name="history")
app.command(history_app)


@history_app.default
def history(options: HistoryOptions | None = None) -> int:
    """Ask all runs of a results folder: what changed, when, and by whose doing.

    Without options: a line for each suite, and the cases that fail. With --changes the exit status is 1 where, in the
    last runs, a latency, its ratio to the reference or a compile time became longer by the compiler, and nobody has
    acknowledged that; else 3 where a case fails since one of the last runs.
    """
    options = options or HistoryOptions()
    _check(options)
    if options.columns:
        _print(options, columns_page, lambda: {"columns": column_records()}, "columns")
        return ExitCode.OK
    choice = RunChoice(everything=options.everything, leave_out=options.leave_out, only=options.only)
    with Terminal() as progress, open_history(options.results, progress=progress, choice=choice) as opened:
        if options.sql is not None:
            frame = opened.query(options.sql)
            _tell(opened.notes)
            heads = [str(name) for name in frame.columns]
            rows, empty = frame_records(frame), f"{','.join(heads)}\n"
            _print(options, lambda: query_page(frame), lambda: {"columns": heads, "rows": rows}, "rows", empty=empty)
        elif options.series is not None:
            _print_series(opened, options, options.series, progress)
        elif options.changes:
            return _print_changes(opened, options, progress)
        else:
            _print_overview(opened, options, progress)
    return ExitCode.OK


@history_app.command
def ack(
    change: str,
    /,
    *,
    note: str = "",
    fixed: Flag = False,
    undo: Flag = False,
    results: str = "results",
    who: str | None = None,
) -> int:
    """Acknowledge a change, so that `harness history --changes` lists it apart and does not fail for it any more.

    Args:
        change: Its id, as --changes prints it.
        note: Why, in a sentence.
        fixed: Mark it as fixed.
        undo: Take back what was said of it: it is new again.
        results: The results folder, a path or a URL.
        who: Your name (default: that of your account).
    """
    if fixed and undo:
        raise UsageError("--fixed and --undo say different things; give one of them")
    if not note.strip() and not undo:
        raise UsageError("--note is missing: say in a sentence why, for those who read the report")
    name, line = checked_name(who), one_line(note)
    if len(line) > NOTE_LIMIT:
        raise UsageError(
            f"--note has {len(line):,} characters; at most {NOTE_LIMIT:,} are kept, so put the rest elsewhere"
        )
    state: Literal["acknowledged", "fixed", "withdrawn"] = "fixed" if fixed else "withdrawn" if undo else "acknowledged"
    with Terminal() as progress, open_history(results, progress=progress) as opened:
        runs = usable_runs(opened)
        changes = history_changes(opened, progress=progress)
        found = find_events(group_changes(changes, runs, 1, opened.marks.acknowledgements), change, runs)
    said = [acknowledge(event, runs, state, line, name) for event in found]
    place = open_place(results)
    place.fetch([MARKS_FOLDER])
    write_marks(place, said, read_marks(place.local))
    now = {"acknowledged": "is acknowledged", "fixed": "is marked as fixed", "withdrawn": "is new again"}[state]
    for event, mark in zip(found, said, strict=True):
        print_text(f"{mark.id}: {one_line(event_text(event))} {now}.")
    return ExitCode.OK


def _check(options: HistoryOptions) -> None:
    modes = {"--changes": options.changes, "--series": options.series is not None}
    modes |= {"--sql": options.sql is not None, "--columns": options.columns}
    if options.everything and options.only:
        raise UsageError("--all takes all runs and --only some of them; give one of them")
    if options.bisect is not None and not options.changes:
        raise UsageError("--bisect searches the steps that --changes finds; give both")
    given = [name for name, is_given in modes.items() if is_given]
    if len(given) > 1:
        raise UsageError(f"{' and '.join(given)} ask for different things; give one of them")
    for name in options.metrics:
        if metric_named(name) is None and name not in (LATENCY_VS_BASELINE, LATENCY_VS_REFERENCE):
            lists = history_command_line(options.results, "--sql", "SELECT DISTINCT metric FROM series")
            raise UsageError(f"--metric {one_line(name)}: is no metric; {lists} lists those that there are")


def _print_overview(opened: History, options: HistoryOptions, progress: Progress) -> None:
    suites = opened.query(SUITES_QUERY)
    events = _events(opened, options, progress, options.metrics or (LATENCY.name, LATENCY_VS_REFERENCE))
    failing = failing_cases(opened, options.last)

    def document() -> dict[str, Any]:
        counts = Counter((case.suite, case.machine_class) for case in failing)
        rows = [{**row, "failing": counts[row["suite"], row["machine_class"]]} for row in frame_records(suites)]
        return {"cases": list(map(asdict, failing)), "suites": rows, "notes": opened.notes}

    def page() -> Page:
        return overview_page(suites, events, failing, last=options.last, notes=opened.notes)

    _print(options, page, document, "suites", beside=[failures_verdict(failing), *opened.notes])


def _print_changes(opened: History, options: HistoryOptions, progress: Progress) -> int:
    chosen = options.metrics
    rows = [row for row in series_rows(opened) if row.points > 1 and (not chosen or row.metric in chosen)]
    events = _events(opened, options, progress, chosen)
    marks, failing = opened.marks.acknowledgements, failing_cases(opened, options.last)
    questions = open_questions(events, usable_runs(opened))
    dated = [Dated(question=question) for question in questions]
    if options.bisect is not None:
        dated = list(date_steps(questions, options.bisect, options.bisect_results, progress))
    said = acknowledgement_records(marks, events)
    gone = sum(not record["changes"] for record in said)
    more = [f"{plural(gone, 'acknowledgement')} of changes that are found no longer; --format json has all."]
    where = f" --results {shlex.quote(without_password(options.results))}" if options.results != "results" else ""
    page = changes_page(
        events,
        failing,
        dated,
        searched=len(rows),
        noisy=sum(not is_exact(row.metric) for row in rows),
        last=options.last,
        command=f"harness history ack{where}",
        notes=[*opened.notes, *(more if gone else [])],
    )

    def document() -> dict[str, Any]:
        return {
            "verdict": page.verdict,
            "cases": list(map(asdict, failing)),
            "changes": [change_record(event, change) for event in events for change in event.changes],
            "acknowledgements": said,
            "bisects": [
                {**asdict(each.question), "command": each.question.command, "answer": each.answer} for each in dated
            ],
            "notes": opened.notes,
        }

    _print(options, lambda: page, document, "changes", beside=[failures_verdict(failing), *opened.notes])
    if any(event.fails for event in events):
        return ExitCode.REGRESSION
    return ExitCode.CASE_FAILED if any(case.recent for case in failing) else ExitCode.OK


def _events(opened: History, options: HistoryOptions, progress: Progress, metrics: Sequence[str]) -> list[ChangeEvent]:
    changes = history_changes(opened, metrics=set(metrics) or None, progress=progress)
    return group_changes(changes, usable_runs(opened), options.last, opened.marks.acknowledgements)


def _print_series(opened: History, options: HistoryOptions, pattern: str, progress: Progress) -> None:
    found = match_series(series_rows(opened), pattern, options.metrics)
    if not found:
        lists = list_command_line(options.results)
        raise UsageError(f"--series {one_line(pattern)}: matches no series; {lists} lists them")

    def document() -> dict[str, Any]:
        rows = [record for row in found for record in frame_records(opened.points(row.series))]
        return {"points": rows, "notes": opened.notes}

    def page() -> Page:
        first = found[:_MOST_SERIES]
        changes = history_changes(opened, series={row.series for row in first}, progress=progress)
        tables = [
            series_table(
                row,
                opened.points(row.series),
                [change for change in changes if change.series == row.series],
                width=min(_LINE, terminal_width()),
                alone=len(first) == 1,
            )
            for row in first
        ]
        hidden = len(found) - len(first)
        return series_page(tables, hidden, opened.notes)

    _print(options, page, document, "points", beside=opened.notes)


def _print(
    options: HistoryOptions,
    page: Callable[[], Page],
    document: Callable[[], dict[str, Any]],
    rows: str,
    *,
    beside: Sequence[str] = (),
    empty: str = "\n",
) -> None:
    """A page, a document as JSON, or of it the list of that name as CSV, of which the rest goes to stderr."""
    if options.format == "csv":
        _tell(beside)
        print_text(to_csv(document()[rows]) or empty, options.out)
    else:
        emit(options.format, page, lambda: to_json(document()), options.out)


def _tell(sentences: Sequence[str]) -> None:
    for sentence in filter(None, sentences):
        tell(one_line(sentence))
