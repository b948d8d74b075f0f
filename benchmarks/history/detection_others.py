"""Run in an environment of its own: what another tool says of series, with its defaults.

python detection_others.py asv|otava SERIES.json ANSWERS.json
"""

import json
import sys
from itertools import pairwise
from pathlib import Path

PUBLISHED_FROM = 0.05  # asv's default of regressions_thresholds


def ask_asv(series: list[float]) -> list[list[int]]:
    """A list of [first point of the new level, whether it is higher, whether it is published]."""
    from asv.step_detect import detect_regressions, detect_steps  # type: ignore[import-not-found]  # not here

    steps = detect_steps(list(series))
    _, _, regressions = detect_regressions(steps, PUBLISHED_FROM)
    published = {after for _, after, _, _ in regressions or ()}
    return [
        [left, value > before, left in published] for (_, _, before, _, _), (left, _, value, _, _) in pairwise(steps)
    ]


def ask_otava(series: list[float]) -> list[list[int]]:
    """A list of [first point of the new level, whether it is higher]."""
    from otava.analysis import compute_change_points  # type: ignore[import-not-found]  # not here

    found, _ = compute_change_points(list(series))
    return [[int(point.index), bool(point.stats.mean_2 > point.stats.mean_1)] for point in found]


if __name__ == "__main__":
    ask = {"asv": ask_asv, "otava": ask_otava}[sys.argv[1]]
    asked = json.loads(Path(sys.argv[2]).read_text())
    Path(sys.argv[3]).write_text(json.dumps([ask(series) for series in asked]))
