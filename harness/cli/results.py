"""`harness results list`, `tag`, `untag`, `merge`, `import` and `verify`."""

import contextlib
import shlex
import tempfile
from dataclasses import KW_ONLY, asdict, dataclass
from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from harness.cli.app import app
from harness.cli.output import emit, print_text, tell
from harness.errors import ExitCode, RunError, UsageError
from harness.history.imported import ImportOptions, imported_run
from harness.history.series import frame_records
from harness.options import DataFormat, command_options
from harness.progress import Progress, Terminal
from harness.report import render
from harness.report.command_pages import listed_page, merged_page, verified_page
from harness.report.data import to_json
from harness.report.rows import rows_of
from harness.report.units import compared
from harness.store.files import read_document
from harness.store.folders import COMPARISON, EXPLANATION, MARKS_FOLDER, find_folder, folder_names
from harness.store.marks import Tagging, checked_name, is_tag, read_marks, write_marks
from harness.store.merging import WRONG
from harness.store.merging import merge as merge_folders
from harness.store.merging import verify as verify_folders
from harness.store.place import is_url, open_place, without_password
from harness.store.run_directory import RunDirectory, load_run
from harness.store.tables import NOTHING_YET, Tables
from harness.text import plural, shown

results_app = App(name="results", help="Keep many runs: list, tag, merge, import and check them.")
app.command(results_app)

_LIST = """
SELECT run, suite, started, finished, toolchain, machine_class, cases, failed, missing, purpose,
       coalesce((SELECT list(tag ORDER BY tag) FROM tags WHERE tags.run = runs.run), []) AS tags
FROM runs ORDER BY started DESC, run DESC
"""
_COMPARISONS = """
SELECT comparison, any_value(created) AS created, count(*) FILTER (NOT control) AS "rows",
       count(*) FILTER (NOT control AND verdict = 'regressed') AS regressed,
       count(*) FILTER (NOT control AND verdict = 'improved') AS improved,
       count(*) FILTER (NOT control AND verdict = 'outputs differ') AS outputs_differ
FROM comparisons GROUP BY comparison ORDER BY created DESC, comparison DESC
"""


@results_app.command
def merge(
    sources: Annotated[list[str], Parameter(negative="")],
    /,
    *,
    into: str = "results",
    format: DataFormat = "terminal",
) -> int:
    """Copy finished runs and comparisons of other machines into a results folder.

    Each is looked at before it is let in: its records, its hashes, and that nothing in it leads out of its folder. What
    is there already is left as it is. Runs of harness run --shard are not copied but joined into the run that they are
    parts of, for which all shards have to be given. The exit status is 2 if anything was refused; everything else is
    merged all the same.

    Args:
        sources: Results folders, or single runs: paths, or URLs such as s3://bucket/results or zip://::results.zip.
        into: The results folder that they are copied into, a path or a URL; it is made where it is not there.
        format: How to print what became of each.
    """
    with Terminal() as progress:
        outcomes = merge_folders(sources, into, rows_of, lambda run: render(run, "markdown", full=True), progress)
    emit(format, lambda: merged_page(outcomes), lambda: to_json({"merged": [asdict(outcome) for outcome in outcomes]}))
    return ExitCode.USAGE if any(outcome.fate == "refused" for outcome in outcomes) else ExitCode.OK


@results_app.command(name="import")
def import_files(options: ImportOptions) -> int:
    """Make a run of each file of another tool, for `harness history` and `harness report`.

    Repetitions are samples; a mean or median counts where there are none. What is there already is left as it is.
    """
    for header, records in [imported_run(file, read_document(file), options) for file in options.files]:
        if (options.results / header.id).exists():
            print_text(f"{header.imported} is there already as {header.id}; remove that to import it anew.")
            continue
        with RunDirectory.create(options.results, header) as directory:
            for record in records:
                directory.append(record)
            directory.finish(lambda run: render(run, "markdown", full=True), rows_of)
        print_text(f"{directory.path}: {plural(len(header.cases), 'case')} of {header.imported}.")
    return ExitCode.OK


@command_options
@dataclass(frozen=True)
class TagOptions:
    """Which runs get or lose a tag.

    Attributes:
        runs: Runs by path, id, `latest`, `@-1` or beginning; then the tag.
        results: The results folder, a path or a URL.
        who: Your name (default: that of your account).
    """

    runs: Annotated[list[str], Parameter(negative="")]
    _: KW_ONLY
    results: str = "results"
    who: str | None = None


@results_app.command
def tag(options: TagOptions) -> int:
    """Give runs a tag: the last of the names is the tag, as in `harness results tag latest experiment`.

    `harness history` and the dashboard leave out runs with the tag experiment, which those of compare, selfcheck,
    ablate and bench have from their beginning; --leave-out and --only take any tag. Runs themselves never change: tags
    lie in the folder marks/ beside them, and are merged like runs.
    """
    return _tag(options, removed=False)


@results_app.command
def untag(options: TagOptions) -> int:
    """Take a tag from runs: the last of the names is the tag, as in `harness results untag latest experiment`."""
    return _tag(options, removed=True)


@results_app.command(name="list")
def list_runs(results: str = "results", *, format: DataFormat = "terminal") -> int:
    """List the runs of a results folder with their tags, its comparisons and its explanations, the newest first.

    Args:
        results: The results folder, a path or a URL.
        format: How to print it.
    """
    with Terminal() as progress, Tables(results, rows_of, progress) as tables:
        runs = [{**row, "tags": list(row["tags"])} for row in frame_records(tables.query(_LIST))]
        comparisons = [
            {**row, "compares": _compares(tables.results / row["comparison"])}
            for row in frame_records(tables.query(_COMPARISONS))
        ]
        explanations = []
        for name in reversed(folder_names(tables.results, "explanation")):
            try:
                kept = EXPLANATION.load(tables.results / name)
            except RunError as error:
                tell(f"{error}; it is left out")
                continue
            said = {"explanation": name, "created": kept.created, "case": kept.case}
            said["compares"] = compared(kept.base, kept.head)
            explanations.append({**said, "verdict": kept.latency.verdict, "ratio": kept.latency.ratio})
        for note in tables.notes:
            if note != NOTHING_YET:
                tell(note)
    listed = {"runs": runs, "comparisons": comparisons, "explanations": explanations}
    emit(format, lambda: listed_page(runs, comparisons, explanations), lambda: to_json(listed))
    return ExitCode.OK


def _compares(folder: Path) -> str:
    with contextlib.suppress(RunError):  # a damaged one, or a folder that was renamed
        kept = COMPARISON.load(folder)
        return compared(kept.base, kept.head)
    return ""


def _tag(options: TagOptions, *, removed: bool) -> int:
    *runs, tag = options.runs
    results = options.results
    command = "untag" if removed else "tag"
    if not runs:
        raise UsageError(
            f"harness results {command}: give a run and a tag, as in `harness results {command} {tag} quiet`"
        )
    if not is_tag(tag):
        raise UsageError(f"{shown(tag)!r} is no tag; write letters, digits and . _ + -, at most 64")
    name = checked_name(options.who)
    by_place: dict[str, dict[str, None]] = {}
    for given in runs:
        if is_url(results):
            by_place.setdefault(results, {})[given] = None
        else:
            folder = find_folder(given, Path(results), kind="run")
            by_place.setdefault(str(folder.parent), {})[load_run(folder, rounds=False).header.id] = None
    for where, ids in by_place.items():
        with Tables(where, rows_of, Progress()) as tables:
            having = set(tables.query("SELECT run FROM tags WHERE tag = ?", [tag])["run"])
            known = set(tables.runs()["run"])
        for run in ids:
            if is_url(where) and run not in known:
                listing = f"harness results list {shlex.quote(without_password(where))}"
                raise UsageError(f"{without_password(where)}: {shown(run)!r} is no run of it; `{listing}` lists them")
        place = open_place(where)
        place.fetch([MARKS_FOLDER])
        said = [run for run in ids if (run in having) == removed]
        statements = [Tagging(run=run, tag=tag, removed=removed, who=name) for run in said]
        write_marks(place, statements, read_marks(place.local))
        for run in ids:
            lost = "no longer has" if run in said else "does not have"
            text = f"{lost} the tag {tag}" if removed else f"has the tag {tag}{'' if run in said else ' already'}"
            print_text(f"{run} {text}.")
    return ExitCode.OK


@results_app.command
def verify(results: str = "results", *, format: DataFormat = "terminal") -> int:
    """Check that every run, comparison and explanation is what it was when it was written.

    The exit status is 2 if anything is damaged, has changed, or is of a later harness.

    Args:
        results: The results folder, a path or a URL; of a URL everything is fetched anew.
        format: How to print what was found.
    """
    with Terminal() as progress, tempfile.TemporaryDirectory(prefix="harness-results-") as folder:
        place = open_place(results, mirror=Path(folder))
        place.names()  # says so where there is no such folder
        place.fetch()
        findings = verify_folders(place, progress)
    document = {"verified": [asdict(finding) for finding in findings]}
    emit(format, lambda: verified_page(findings), lambda: to_json(document))
    return ExitCode.USAGE if any(finding.state in WRONG for finding in findings) else ExitCode.OK
