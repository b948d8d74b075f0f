"""`harness plot` and `harness dashboard`: pictures of a result or of a series, and pages of a whole history."""

from dataclasses import KW_ONLY, dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from harness.cli.app import app
from harness.cli.output import tell
from harness.dashboard.kept import load_kept
from harness.dashboard.site import make_dashboard, require_replaceable
from harness.dashboard.steps import releases_in
from harness.errors import ExitCode, UsageError
from harness.history.changes import history_changes
from harness.history.series import choose_series, open_history, reference_of, series_rows, usable_runs
from harness.options import Count, Everything, command_options
from harness.plots.canvas import THEMES, Drawing, Format
from harness.plots.pictures import Kind, Source, drawing_of, kinds_of
from harness.plots.timeline import draw_timeline
from harness.progress import Terminal
from harness.records.bisection import Bisection
from harness.records.comparison import Comparison
from harness.records.explanation import Explanation
from harness.records.run import Run
from harness.records.tuning import Tuning
from harness.report.run_report import build_report
from harness.store.files import writing
from harness.store.folders import (
    EXPLANATION,
    TUNING,
    KindName,
    find_folder,
    folder_names,
    kind_at,
    load_result,
    tunings_in,
)
from harness.store.marks import WITHOUT_EXPERIMENTS
from harness.store.place import is_url, without_password
from harness.suite.cases import Filtered
from harness.text import matching

_FORMATS: dict[str, Format] = {".svg": "svg", ".png": "png"}


@command_options
@dataclass(frozen=True)
class PlotOptions(Filtered):
    """What a user can choose about a picture.

    Attributes:
        path: The directory of a run, a comparison, an explanation or a tuning; for a timeline a folder of runs, or its
            URL.
        out: The picture's file; its name ends in .svg or .png.
        kind: What to draw (default: forest of a comparison, waterfall of an explanation, race of a tuning, roofline of
            a run, and timeline of a folder of runs).
        theme: For a light page or a dark one.
        series: Of a timeline: the series' id, or its case's name (its latency), or `case metric`; shell patterns.
        everything: Of a timeline: runs with the tag experiment too.
        top: How many rows, parts, models, devices or lines are drawn at most; the rest is counted.
    """

    path: str
    _: KW_ONLY
    out: Path
    kind: Kind | None = None
    theme: Literal["light", "dark"] = "light"
    series: str | None = None
    everything: Everything = False
    top: Count | None = None


@app.command
def plot(options: PlotOptions) -> int:
    """Draw a run, a comparison, an explanation, a tuning, or a series of a results folder.

    forest: ratios with their intervals; of a comparison, or of a run's variants against its baseline. variants: bars
    of what each variant of a model takes. memory: latency against memory, with the Pareto front. roofline: what each
    case computes a second, below what the machine's cores and memory allow. timeline: one series over all runs, with
    its change points. releases: each case of a run over its releases of IREE, beside the first one. heatmap: all of
    them x releases in one picture, each beside its best release. waterfall: from the latency of base to that of head, a
    bar for each part that changed. race: the candidates of a tuning over its budget.
    """
    form = _FORMATS.get(options.out.suffix.lower())
    if form is None:
        raise UsageError(f"--out {options.out}: does not end in {' or '.join(_FORMATS)}; name a file that does")
    wanted: KindName | None = "explanation" if options.kind == "waterfall" else None
    is_address = "://" in options.path  # A folder may have `::` in its name
    path = Path(options.path) if is_address else find_folder(options.path, kind=wanted)
    is_series = is_address or _holds_runs(path)
    drawing = _of_series(options) if is_series else _of_result(options, path)
    with writing(options.out, "give another path with --out"):
        options.out.write_bytes(drawing.file(THEMES[options.theme], form))
    tell(str(options.out))
    return ExitCode.OK


def _holds_runs(path: Path) -> bool:
    """Whether it is a folder of runs, and not itself a run, a comparison or an explanation."""
    if kind_at(path) is not None:
        return False
    try:
        return (path / "history").is_dir() or any((folder / "run.json").is_file() for folder in path.iterdir())
    except OSError:  # whoever reads it says what is wrong with it
        return False


def _of_result(options: PlotOptions, path: Path) -> Drawing:
    found = load_result(path)
    if isinstance(found, Bisection):
        raise UsageError(
            f"{options.path}: is a bisect, of which there is no picture; draw a run of several releases instead"
        )
    source = build_report(found) if isinstance(found, Run) else found
    what, kinds = kinds_of(source)
    if options.kind == "timeline" or options.series is not None:
        asked = "--series is" if options.series is not None else "a timeline is"
        raise UsageError(
            f"{options.path}: is {what}, which can be drawn as {', '.join(kinds)}; {asked} for the folder that "
            "holds the runs"
        )
    cases = matching(options.patterns or ("*",))
    if not any(map(cases.match, _cases(source))):
        asked = " ".join(f"--filter {pattern}" for pattern in options.patterns)
        raise UsageError(f"{options.path}: {asked} matches no case; harness report {options.path} lists them")
    kind = options.kind or kinds[0]
    return drawing_of(kind, source, where=options.path, keep=lambda case: bool(cases.match(case)), top=options.top)


def _cases(source: Source) -> list[str]:
    if isinstance(source, Explanation):
        return [source.case]
    if isinstance(source, Tuning):
        return [f"{source.model}/{source.start}@{source.device}"]
    return [row.case for row in (source.rows if isinstance(source, Comparison) else source.rows())]


def _of_series(options: PlotOptions) -> Drawing:
    """One series of a folder of runs, without those that are not finished or whose clock was wrong."""
    where = without_password(options.path)
    if options.kind not in ("timeline", None):
        raise UsageError(
            f"{where}: is a folder of runs, which can be drawn as timeline; give one of its runs for --kind "
            f"{options.kind}"
        )
    for option, given in (("--filter", options.patterns), ("--top", options.top)):
        if given:
            raise UsageError(f"{option} is for runs and comparisons, and {where} is a folder of runs; use --series")
    choice = None if options.everything else WITHOUT_EXPERIMENTS
    with Terminal() as progress, open_history(options.path, progress=progress, choice=choice) as history:
        rows, usable = series_rows(history), usable_runs(history).ids
        chosen = choose_series(rows, options.series, options.path)
        other = reference_of(rows, chosen)
        drawn = [history.points(row.series) for row in (chosen, other) if row is not None]
        points, *reference = [frame[frame["run"].isin(usable)] for frame in drawn]
        changes = history_changes(history, series=[chosen.series])
        notes = history.notes
    for note in notes:
        tell(f"Note: {note}")
    if points.empty:
        raise UsageError(
            f"{where}: --series {chosen.series}: has no point in a finished run whose clock was right; finish its "
            "runs with harness run --resume"
        )
    return draw_timeline(points, changes, reference[0] if reference else None)


# --- dashboard ---


@app.command
def dashboard(
    results: str = "results",
    *,
    out: Path,
    tuned: Annotated[tuple[Path, ...], Parameter(negative="", show_default=False)] = (),
    title: str = "IREE benchmarks",
    everything: Everything = False,
) -> int:
    """Make a folder of pages that shows a whole history, for any web server.

    The exit status is 0 also where there is nothing to show yet; the pages then say what to do.

    Args:
        results: The results folder, or its URL.
        out: The folder to make; one that holds an older dashboard is replaced, once the new one is whole.
        tuned: Folders of `harness tune`, to be shown beside those in the results folder.
        title: What stands at the head of every page.
        everything: Runs with the tag experiment too, among them those of compare, selfcheck, ablate and bench.
    """
    require_replaceable(out)  # before anything that takes long
    # Others read the pages, and need no folder of this machine and no password.
    place = "results" if not is_url(results) and Path(results).is_absolute() else without_password(results)
    choice = None if everything else WITHOUT_EXPERIMENTS
    with Terminal() as progress, open_history(results, progress=progress, choice=choice) as history:
        changes = history_changes(history, progress=progress)
        searched = [folder for parent in (*tuned, history.results) for folder in tunings_in(parent)]
        tunings = load_kept(TUNING, searched, progress)
        names = folder_names(history.results, "explanation")
        explanations = load_kept(EXPLANATION, [history.results / name for name in names], progress)
        make_dashboard(
            history,
            changes,
            out,
            progress,
            place=place,
            tunings=tunings,
            explanations=explanations,
            releases=releases_in(history, progress),
            title=title,
            made=datetime.now(timezone.utc),
        )
    tell(str(out / "index.html"))
    return ExitCode.OK
