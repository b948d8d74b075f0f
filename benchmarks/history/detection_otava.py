"""Run in an environment of its own: what apache-otava's analysis says of series, with its defaults.

python detection_otava.py SERIES.json ANSWERS.json
"""

from __future__ import annotations

import json
import sys
from pathlib import Path


def main() -> None:
    """One list of [first point of the new level, whether it is higher] for each series."""
    from otava.analysis import compute_change_points  # type: ignore[import-not-found]  # not here

    answers = []
    for series in json.loads(Path(sys.argv[1]).read_text()):
        found, _ = compute_change_points(list(series))
        answers.append([[int(one.index), bool(one.stats.mean_2 > one.stats.mean_1)] for one in found])
    Path(sys.argv[2]).write_text(json.dumps(answers))


if __name__ == "__main__":
    main()
