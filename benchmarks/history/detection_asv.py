"""Run in an environment of its own: the steps that asv finds in series, and the regressions that it would publish.

python detection_asv.py SERIES.json ANSWERS.json
"""

from __future__ import annotations

import json
import sys
from itertools import pairwise
from pathlib import Path

PUBLISHED_FROM = 0.05  # asv's default of regressions_thresholds


def main() -> None:
    """For each series a list of [first point of the new level, whether it is higher, whether it is published]."""
    from asv.step_detect import detect_regressions, detect_steps  # type: ignore[import-not-found]  # not here

    answers = []
    for series in json.loads(Path(sys.argv[1]).read_text()):
        steps = detect_steps(list(series))
        _, _, regressions = detect_regressions(steps, PUBLISHED_FROM)
        published = {after for _, after, _, _ in regressions or ()}
        answers.append(
            [
                [left, value > before, left in published]
                for (_, _, before, _, _), (left, _, value, _, _) in pairwise(steps)
            ]
        )
    Path(sys.argv[2]).write_text(json.dumps(answers))


if __name__ == "__main__":
    main()
