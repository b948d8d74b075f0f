"""`harness history`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from cyclopts.validators import Number

from harness.cli.app import app
from harness.options import Count, Format


@app.command
def history(
    results: str = "results",
    *,
    changes: Annotated[bool, Parameter(negative="")] = False,
    series: str | None = None,
    sql: str | None = None,
    columns: Annotated[bool, Parameter(negative="")] = False,
    metrics: Annotated[list[str] | None, Parameter(name="--metric", negative="")] = None,
    last: Annotated[int, Parameter(validator=Number(gte=1))] = 10,
    jobs: Count | None = None,
    format: Format = "terminal",  # noqa: A002 (the option's name)
    out: Path | None = None,
) -> int:
    """Ask all runs of a results folder: what changed, when, and whether it was the compiler or the machine.

    Without options: a line for each suite, and the cases that fail. With --changes the exit status is 1 where, in the
    last runs, a latency, its ratio to the reference or a compile time became longer by the compiler; else 3 where a
    case fails since one of the last runs.

    Args:
        results: The results folder, a path or a URL.
        changes: Every step and drift, with its cause, and every case that fails, works again or is new.
        series: The points of series, as a line of text and a table: by the case's name, by `case metric` or
            `case/metric`, or by id; shell patterns.
        sql: What this statement gives, over the tables that --columns lists, in DuckDB's SQL.
        columns: List all tables and columns with their meaning.
        metrics: Only series of this metric, for --changes and --series; repeatable.
        last: How many runs of a suite count as its last.
        jobs: Processes that look for changes (default: one, which takes seconds for thousands of series).
        format: How to print it.
        out: Write it to this file instead of stdout.
    """
    from harness.commands.history import HistoryArguments, history_command

    return history_command(
        HistoryArguments(
            results=results,
            changes=changes,
            series=series,
            sql=sql,
            columns=columns,
            metrics=tuple(metrics or ()),
            last=last,
            jobs=jobs,
            output_format=format,
            out=out,
        )
    )
