"""All changes of the history as one list."""

from __future__ import annotations

import numpy as np

from harness.dashboard.coding import figures, key_of, table, texts, whole
from harness.dashboard.gather import Gathered
from harness.dashboard.series_data import Payload
from harness.dashboard.words import metric_title

_TEXTS = ("suite", "case", "unit", "machine_class", "role", "kind", "direction", "cause", "evidence",
          "toolchain_before", "toolchain_after")  # fmt: skip
_FIGURES = ("ratio", "before", "after", "p")


def change_list(gathered: Gathered) -> Payload:
    """Every change, the newest first."""
    run_numbers = {run: number for number, run in enumerate(gathered.runs["run"])}
    found = sorted(gathered.changes, key=lambda change: change.started, reverse=True)

    def runs(name: str) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
        return np.array([float(run_numbers.get(getattr(change, name), np.nan)) for change in found])

    return table(
        len(found),
        series=texts([key_of(change.series) for change in found]),
        title=texts([metric_title(change.metric) for change in found]),
        **{name: texts([str(getattr(change, name)) for change in found]) for name in _TEXTS},
        **{name: figures(np.array([float(getattr(change, name)) for change in found])) for name in _FIGURES},
        worse=whole(np.array([float(change.is_worse) for change in found])),
        **{name: whole(runs(name)) for name in ("last_good", "first_bad", "earliest", "latest")},
    )
