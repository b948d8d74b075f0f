"""How often the verdicts of a run's own report are wrong, and what they find: runs of few generations, simulated.

A run has no second sitting: its generations are those it recorded, five unless the user asks for more. Their noise here
has the widths that were measured (docs/statistics.md, "Which statistic of a generation"): most generations are close
together, one in twenty is far off. Seeded, so that everybody gets the same table.
"""

import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.documents import replace_between
from benchmarks.verdicts.words import percent
from harness.compare.judge import judge
from harness.report.markdown import table
from harness.stats.intervals import Estimate, paired_mean
from harness.stats.pairing import FloatArray
from harness.stats.rule import Rule, Standing

BEGIN, END = "<!-- made by `python -m benchmarks.verdicts --runs`: begin -->", "<!-- --runs: end -->"

# The robust deviation of a generation's log ratio and its standard deviation: matmul, tiny, threads, loop, block.
WIDTHS = ((0.0052, 0.0181), (0.0011, 0.0016), (0.0141, 0.0660), (0.0039, 0.0155), (0.0024, 0.0202))
OUTLIERS = 0.05
SIZES = (1, 5, 20, 60)
GENERATIONS = (5, 10)
CHANGES = (0.02, 0.05, 0.20)


@dataclass(frozen=True, kw_only=True)
class Counts:
    """Of many runs, one row of each slowed.

    Attributes:
        alarms: Share of runs with an equal row called changed.
        found: Share of runs whose slowed row was called slower.
    """

    alarms: float
    found: float


def noise(rng: np.random.Generator, rows: int, generations: int) -> FloatArray:
    """Log ratios of equal modules, each row on one of the programs; shape (rows, generations)."""
    widths = np.array(WIDTHS)[rng.integers(0, len(WIDTHS), rows)]
    far = np.sqrt(np.maximum((widths[:, 1] / widths[:, 0]) ** 2 - (1 - OUTLIERS), OUTLIERS) / OUTLIERS)
    off = np.where(rng.random((rows, generations)) < OUTLIERS, far[:, None], 1.0)
    drawn: FloatArray = rng.normal(0, 1, (rows, generations)) * widths[:, :1] * off
    return drawn


def count(rows: int, generations: int, change: float, *, together: bool, runs: int, seed: int = 0) -> Counts:
    """Judge simulated runs of so many rows, together or (as 0.1.0's report did) each row alone."""
    rng, rule = np.random.default_rng([seed, rows, generations]), Rule()
    alarms = found = 0
    for _ in range(runs):
        logs = noise(rng, rows, generations)
        logs[0] += math.log1p(change)
        estimates = {
            str(row): Estimate(
                where=paired_mean(logs[row], confidence=rule.confidence), confidence=rule.confidence, rounds=0
            )
            for row in range(rows)
        }
        stand: dict[str, tuple[Standing, float]] = {}
        for part in [estimates] if together else [{name: estimate} for name, estimate in estimates.items()]:
            stand |= judge(part, rule)
        slowed, *equal = (stand[name][0] for name in estimates)
        found += slowed == "higher"
        alarms += any(standing in ("higher", "lower") for standing in equal)
    return Counts(alarms=alarms / runs, found=found / runs)


def recorded_runs(*, runs: int = 1000) -> str:
    """The table, as Markdown."""
    heads = ["rows", "generations", "runs with a false alarm: alone", "together"]
    heads += [f"+{percent(change)} found: {how}" for change in CHANGES for how in ("alone", "together")]
    lines = []
    for rows in SIZES:
        for generations in GENERATIONS:
            counts = {
                (change, together): count(rows, generations, change, together=together, runs=runs)
                for change in CHANGES
                for together in (False, True)
            }
            shares = [counts[CHANGES[0], together].alarms for together in (False, True)] if rows > 1 else [math.nan] * 2
            shares += [counts[change, together].found for change in CHANGES for together in (False, True)]
            lines.append([f"{rows}", f"{generations}", *(percent(share, 1) for share in shares)])
    return table(heads, lines, numbers=[True] * len(heads))


def write_recorded_runs(document: Path) -> None:
    """Replace what stands between the document's marks."""
    replace_between(document, BEGIN, END, recorded_runs())
