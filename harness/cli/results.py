"""`harness results merge`, `compact`, `verify` and `gc`."""

from __future__ import annotations

from typing import Annotated, Literal

from cyclopts import App, Parameter

from harness.cli.app import app

results_app = App(name="results", help="Keep many runs: merge, check, compact to Parquet, drop old raw turns.")
app.command(results_app)

_Format = Literal["terminal", "json"]


@results_app.command
def merge(
    sources: Annotated[list[str], Parameter(negative="")],
    /,
    *,
    into: str = "results",
    format: _Format = "terminal",  # noqa: A002 (the option's name)
) -> int:
    """Copy finished runs and comparisons of other machines into a results folder.

    Each is looked at before it is let in: its records, its hashes, and that nothing in it leads out of its folder. What
    is there already is left as it is. The exit status is 2 if anything was refused; everything else is merged all the
    same.

    Args:
        sources: Results folders, or single runs: paths, or URLs such as s3://bucket/results or zip://::results.zip.
        into: The results folder that they are copied into, a path or a URL; it is made where it is not there.
        format: How to print what became of each.
    """
    from harness.commands.results import merge_command

    return merge_command(tuple(sources), into, format)


@results_app.command
def compact(
    results: str = "results",
    *,
    format: _Format = "terminal",  # noqa: A002 (the option's name)
) -> int:
    """Put finished runs and comparisons into Parquet, so that `harness history` is quick however many there are.

    Folders are only read, and what is in Parquet already is left out. It may be stopped at any time. Where there are
    more than eight parts, they become one.

    Args:
        results: The results folder, a path or a URL.
        format: How to print what was done.
    """
    from harness.commands.results import compact_command

    return compact_command(results, format)


@results_app.command
def verify(
    results: str = "results",
    *,
    format: _Format = "terminal",  # noqa: A002 (the option's name)
) -> int:
    """Check that every run, every comparison and the compacted history are what they were when they were written.

    The exit status is 2 if anything is damaged, has changed, or is of a later harness.

    Args:
        results: The results folder, a path or a URL; of a URL everything is fetched anew.
        format: How to print what was found.
    """
    from harness.commands.results import verify_command

    return verify_command(results, format)


@results_app.command
def gc(
    results: str = "results",
    *,
    older_than: str,
    dry_run: Annotated[bool, Parameter(negative="")] = False,
    format: _Format = "terminal",  # noqa: A002 (the option's name)
) -> int:
    """Delete the raw turns of old runs; their reports stay as they are, and their figures stay in the history.

    Only of runs and comparisons that are finished, whole and compacted. A run whose clock was wrong keeps its turns.

    Args:
        results: The results folder, a path or a URL.
        older_than: Age by the run's own start: days, weeks or years, as in 90d, 12w or 2y.
        dry_run: Delete nothing, and say what would be.
        format: How to print what was done.
    """
    from harness.commands.results import gc_command

    return gc_command(results, older_than, format, dry_run=dry_run)
