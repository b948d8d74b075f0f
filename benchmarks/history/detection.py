"""How often the harness and other tools find changes in series that are known: false alarms, delay, places, drifts.

    .venv/bin/python -m benchmarks.history detection              about ten minutes on two cores
    .venv/bin/python -m benchmarks.history detection --others     also Otava and asv, each in an environment of its own

keeps the counts in results/detection.json and rewrites a section of docs/history.md.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from benchmarks.history.detection_detectors import OTHERS, OWN, Other, ask_own
from benchmarks.history.detection_kinds import KINDS
from benchmarks.history.detection_prices import print_prices
from benchmarks.history.detection_scores import Score, score
from benchmarks.history.detection_tables import Scores, key, write_section
from harness.errors import HarnessError
from harness.progress import Terminal

ROOT = Path(__file__).parents[2]
CHUNK = 100


def main(arguments: Sequence[str]) -> None:
    """Do what the arguments say: play, record, and write the section."""
    parser = argparse.ArgumentParser(
        prog="benchmarks.history detection", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--series", type=int, default=2000, help="of each kind, for the harness (default: 2000)")
    parser.add_argument("--other-series", type=int, default=500, help="of each, for others (default: 500)")
    parser.add_argument("--others", action="store_true", help="also Otava and asv, which are installed first")
    parser.add_argument("--processes", type=int, default=2, help="at once (default: 2)")
    parser.add_argument("--record", type=Path, default=ROOT / "results" / "detection.json")
    parser.add_argument("--document", type=Path, default=ROOT / "docs" / "history.md", help="where the section goes")
    parser.add_argument("--replay", action="store_true", help="try nothing, only write the section from the record")
    parser.add_argument("--prices", action="store_true", help="only simulate the table of change_points/noise.py")
    chosen = parser.parse_args(arguments)
    if chosen.prices:
        print_prices(chosen.series, chosen.processes)
        return
    if not chosen.replay:
        scores = play(chosen.series, chosen.other_series if chosen.others else 0, chosen.processes)
        write_record(chosen.record, scores)
        if not chosen.others:
            sys.stderr.write("Otava and asv were left out; --others installs them and tries them on the same series.\n")
    write_section(chosen.document, read_record(chosen.record))


def play(series: int, other_series: int, processes: int) -> Scores:
    """The scores of every kind; others get the first of the same series."""
    who = {OWN: series, **dict.fromkeys(_installed() if other_series else (), other_series)}
    jobs = [
        _Job(kind=key(kind), by=by, numbers=range(first, min(first + CHUNK, many)))
        for kind in KINDS
        for by, many in who.items()
        for first in range(0, many, CHUNK)
    ]
    scores: dict[tuple[str, str, int], dict[str, Score]] = {}
    with ProcessPoolExecutor(processes) as pool, Terminal() as progress:
        progress.stage("trying", len(jobs))
        for job, found in zip(jobs, pool.map(_do, jobs), strict=True):
            here = scores.setdefault(job.kind, {})
            for name, one in found.items():
                here[name] = here.get(name, Score()) + one
            progress.step(f"{job.kind[1]}, by {job.by}")
    return scores


@dataclass(frozen=True, kw_only=True)
class _Job:
    """Some series of one kind for one tool, by its package or `this harness`."""

    kind: tuple[str, str, int]
    by: str
    numbers: range


def _do(job: _Job) -> dict[str, Score]:
    kind = KINDS[[key(one) for one in KINDS].index(job.kind)]
    series = [kind.make(number) for number in job.numbers]
    answers = ask_own(series) if job.by == OWN else _other(job.by).ask(series)
    return {name: sum((score(kind, said) for said in each), Score()) for name, each in answers.items()}


def _installed() -> list[str]:
    """The other tools that are here, or could be installed; a sentence for each that could not."""
    found = []
    for other in OTHERS:
        try:
            other.python()
        except HarnessError as error:
            sys.stderr.write(f"{error}\n")
        else:
            found.append(other.package)
    return found


def _other(package: str) -> Other:
    return next(one for one in OTHERS if one.package == package)


def write_record(path: Path, scores: Scores) -> None:
    """Keep the counts, so that the section can be written again."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [
        {"table": table, "kind": name, "size": size, "by": by, **one.as_counts()}
        for (table, name, size), each in scores.items()
        for by, one in each.items()
    ]
    path.write_text(json.dumps(lines, indent=0) + "\n")


def read_record(path: Path) -> Scores:
    """What `write_record` kept."""
    scores: dict[tuple[str, str, int], dict[str, Score]] = {}
    for line in json.loads(path.read_text()):
        place = line.pop("table"), line.pop("kind"), line.pop("size")
        by = line.pop("by")
        scores.setdefault(place, {})[by] = Score(**line)
    return scores
