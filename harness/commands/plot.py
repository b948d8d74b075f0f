"""What `harness plot` does, once its arguments are parsed."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from harness.errors import ExitCode, RunError, UsageError
from harness.plots.canvas import THEMES, Format, ThemeName
from harness.plots.pictures import COMPARISON_KINDS, RUN_KINDS, Keep, Kind, draw, pictures_of
from harness.records.comparison import Comparison
from harness.records.comparison import Row as ComparisonRow
from harness.report.table import build_report
from harness.report.values import Report
from harness.report.values import Row as ReportRow
from harness.reporting import load_comparison
from harness.store.address import without_password
from harness.store.comparison_directory import is_comparison
from harness.store.run_directory import load_run
from harness.suite.cases import matching
from harness.text import one_line

_FORMATS: dict[str, Format] = {".svg": "svg", ".png": "png"}


@dataclass(frozen=True, kw_only=True)
class PlotArguments:
    """The arguments of `harness plot`, as they were given; `path` may be a URL."""

    path: str
    out: Path
    kind: Kind | Literal["all"] | None = None
    theme: ThemeName = "light"
    patterns: tuple[str, ...] = ()
    series: str | None = None
    top: int | None = None


def plot_command(arguments: PlotArguments) -> int:
    """`harness plot`: a picture in the format that the file's name ends in, or all pictures in a folder."""
    if arguments.kind != "all":
        return _plot(arguments, _format(arguments.out))
    with _folder(arguments.out):
        return _plot(arguments, None)


def _plot(arguments: PlotArguments, picture: Format | None) -> int:
    """Into one file of that format; None: into the folder that is there."""
    path = Path(arguments.path)
    if "://" in arguments.path or _holds_runs(path):
        return _plot_series(arguments, picture)
    source = load_comparison(path) if is_comparison(path) else build_report(load_run(path))
    _refuse(arguments, source)
    keep = _keep(arguments, [row.case for row in _rows(source)])
    if picture is None or arguments.kind == "all":
        return _write_all(arguments, _all_pictures(source, keep, arguments.top))
    usual: Kind = "forest" if isinstance(source, Comparison) else "roofline"
    content = draw(
        arguments.kind or usual,
        source,
        THEMES[arguments.theme],
        picture,
        where=arguments.path,
        keep=keep,
        top=arguments.top,
    )
    _write(arguments.out, content)
    sys.stderr.write(f"{arguments.out}\n")
    return ExitCode.OK


def _plot_series(arguments: PlotArguments, picture: Format | None) -> int:
    """Of a folder of runs."""
    from harness.commands.plot_series import draw_series

    place, where = arguments.path, without_password(arguments.path)
    if arguments.kind not in ("timeline", "all", None):
        raise UsageError(
            f"{where}: is a folder of runs, which can be drawn as timeline; give one of its runs for --kind "
            f"{arguments.kind}"
        )
    for option, given in (("--filter", arguments.patterns), ("--top", arguments.top)):
        if given:
            raise UsageError(f"{option} is for runs and comparisons, and {where} is a folder of runs; use --series")
    if picture is not None:
        (content,) = draw_series(place, arguments.series, [THEMES[arguments.theme]], [picture]).values()
        _write(arguments.out, content)
        sys.stderr.write(f"{arguments.out}\n")
        return ExitCode.OK
    return _write_all(arguments, draw_series(place, arguments.series, list(THEMES.values()), list(_FORMATS.values())))


def _refuse(arguments: PlotArguments, source: Comparison | Report) -> None:
    """What is for folders of runs only."""
    what, kinds = ("a comparison", COMPARISON_KINDS) if isinstance(source, Comparison) else ("a run", RUN_KINDS)
    if arguments.kind == "timeline" or arguments.series is not None:
        asked = "--series is" if arguments.series is not None else "a timeline is"
        raise UsageError(
            f"{arguments.path}: is {what}, which can be drawn as {', '.join(kinds)}; {asked} for the folder that "
            "holds the runs"
        )


def _rows(source: Comparison | Report) -> Iterable[ComparisonRow | ReportRow]:
    return source.rows if isinstance(source, Comparison) else source.rows()


def _all_pictures(source: Comparison | Report, keep: Keep, top: int | None) -> dict[str, bytes]:
    if isinstance(source, Comparison):
        return pictures_of(source, formats=_FORMATS.values(), keep=keep, top=top)
    return pictures_of(None, source, formats=_FORMATS.values(), keep=keep, top=top)


def _keep(arguments: PlotArguments, cases: Iterable[str]) -> Keep:
    """Which cases the user wants to see.

    Raises:
        UsageError: None.
    """
    if not arguments.patterns:
        return lambda _: True
    expression = matching(arguments.patterns)
    if not any(expression.match(case) for case in cases):
        asked = " ".join(f"--filter {one_line(pattern)}" for pattern in arguments.patterns)
        raise UsageError(f"{arguments.path}: {asked} matches no case; harness report {arguments.path} lists them")
    return lambda case: expression.match(case) is not None


def _holds_runs(path: Path) -> bool:
    """Whether it is a folder of runs, and neither a run nor a comparison itself."""
    if is_comparison(path) or (path / "run.json").exists():
        return False
    if (path / "history" / "index.json").is_file():
        return True
    try:
        return any((folder / "run.json").is_file() for folder in path.iterdir())
    except OSError:  # what is wrong with it is told by who reads it
        return False


def _write_all(arguments: PlotArguments, found: dict[str, bytes]) -> int:
    """Write pictures into a folder, and print where each is."""
    if not found:
        raise RunError(f"{arguments.path}: has nothing to draw; see harness report {arguments.path}")
    for name, content in found.items():
        _write(arguments.out / name, content)
        sys.stdout.write(f"{arguments.out / name}\n")
    return ExitCode.OK


@contextlib.contextmanager
def _folder(out: Path) -> Iterator[None]:
    """Make a folder before anything is drawn, so that one that cannot be made costs no time; empty, it goes again."""
    made = [folder for folder in (out, *out.parents) if not folder.exists()]
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RunError(f"{out}: is no folder to write to ({error.strerror}); give another with --out") from None
    try:
        yield
    except BaseException:
        with contextlib.suppress(OSError):  # of one that is not empty
            for folder in made:
                folder.rmdir()
        raise


def _write(out: Path, content: bytes) -> None:
    try:
        out.write_bytes(content)
    except OSError as error:
        raise RunError(f"{out}: cannot be written ({error.strerror}); give another path with --out") from None


def _format(out: Path) -> Format:
    if out.suffix.lower() not in _FORMATS:
        raise UsageError(f"--out {out}: does not end in {' or '.join(_FORMATS)}; name a file that does")
    return _FORMATS[out.suffix.lower()]
