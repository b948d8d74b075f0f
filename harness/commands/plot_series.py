"""What `harness plot --kind timeline` does: a series out of a folder of runs, its changes, and pictures of both."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from harness.errors import UsageError
from harness.history.causes import Cause
from harness.history.changes import history_changes
from harness.history.open import History, open_history
from harness.history.series import SeriesRow, series_rows
from harness.metrics import is_exact
from harness.plots.canvas import Format, Theme
from harness.plots.series_choice import choose_series, reference_of
from harness.plots.timeline import draw_timeline
from harness.progress import Terminal

if TYPE_CHECKING:
    import pandas as pd

    from harness.stats.change_points import ChangePoint


def draw_series(place: str, wanted: str | None, themes: Sequence[Theme], formats: Sequence[Format]) -> dict[str, bytes]:
    """Timelines of one series, by their files' names: `timeline-light.png`.

    Left out are runs that are not finished and runs whose clock was wrong, in which no change can be looked for.

    Args:
        place: The folder of runs, or its URL.
        wanted: Which series, see `choose_series`.

    Raises:
        UsageError: There is no such folder or series.
    """
    with Terminal() as progress, open_history(place, progress=progress) as history:
        rows = series_rows(history)
        chosen = choose_series(rows, wanted, place)
        points = _points(history, chosen.series)
        beside = reference_of(rows, chosen)
        reference = _points(history, beside.series) if beside is not None else None
        changes = _changes(points, chosen.metric)
        causes = _causes(history, chosen, changes)
        notes = history.notes
    for note in notes:
        sys.stderr.write(f"Note: {note}\n")
    if points.empty:
        raise UsageError(
            f"{place}: --series {chosen.series}: has no point in a finished run whose clock was right; finish its "
            "runs with harness run --resume"
        )
    return {
        f"timeline-{theme.name}.{picture}": draw_timeline(
            points, changes, theme, picture, reference=reference, causes=causes
        )
        for theme in themes
        for picture in formats
    }


def _points(history: History, series: str) -> pd.DataFrame:
    """Those that a picture can have a place for."""
    usable = set(history.query("SELECT run FROM runs WHERE finished AND clock = ''")["run"])
    found = history.points(series)
    kept: pd.DataFrame = found[found["run"].isin(usable) & found["value"].between(0, 1e300)]
    return kept


def _causes(history: History, row: SeriesRow, changes: Sequence[ChangePoint]) -> list[Cause]:
    """Whose each change is: a change is told by its levels, since causes may date it by another series."""
    known = {(one.before, one.after): one.cause for one in history_changes(history, series=[row.series])}
    return [known.get((one.before, one.after), "unknown") for one in changes]


def _changes(points: pd.DataFrame, metric: str) -> tuple[ChangePoint, ...]:
    from harness.stats.change_points import find_changes

    values = points["value"].to_numpy(dtype=float)
    exact = is_exact(metric)
    if not exact and (values <= 0).any():
        return ()
    return find_changes(values, exact=exact)
