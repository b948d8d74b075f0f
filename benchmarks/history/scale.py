"""How long large histories and comparisons take, at three sizes: `python -m benchmarks.history scale`."""

import os
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.history.made import Size
from benchmarks.history.made_runs import Folders, write_runs
from benchmarks.history.made_tables import write_history
from benchmarks.history.scale_probe import Cost, cost_of_command, cost_of_question

SERIES, RUNS, CASES = 10_000, 1_000, 10_000
# Of these sizes: a hundredth, a tenth, and all of it.
FRACTIONS = (0.01, 0.1, 1.0)

QUESTIONS = ("open", "series", "changes")
COMPARISONS = ("identical", "recorded")


@dataclass(frozen=True, kw_only=True)
class Measured:
    """What one thing took at one size.

    Attributes:
        what: One of QUESTIONS or COMPARISONS, or the command `history series`.
        size: Series of a history, or cases of a run.
    """

    what: str
    size: int
    cost: Cost


@dataclass(frozen=True, kw_only=True)
class Scale:
    """All of it, and where it was measured.

    Attributes:
        runs: Of each history.
        load: Load average as it began and as it ended.
    """

    measured: tuple[Measured, ...]
    runs: int
    load: tuple[float, float]

    def of(self, what: str) -> list[Measured]:
        """One thing at all sizes, the smallest first."""
        return sorted((one for one in self.measured if one.what == what), key=lambda one: one.size)


def measure_scale(
    *, fractions: Sequence[float] = FRACTIONS, share: float = 1.0, repeats: int = 5, runs: int = RUNS
) -> Scale:
    """Make histories and runs of three sizes, and measure what they take.

    Args:
        fractions: Of the share, the largest last.
        share: Of the full sizes; tests take very little.
        repeats: Of everything but the change points of the largest history, which are looked for twice at most.
        runs: Of each history.
    """
    began = os.getloadavg()[0]
    measured: list[Measured] = []
    for fraction in fractions:
        series, cases = (max(round(full * fraction * share), 8) for full in (SERIES, CASES))
        with tempfile.TemporaryDirectory(prefix="harness-scale-") as scratch:
            _say(f"{series:,} series x {runs:,} runs")
            measured += _of_history(Path(scratch), Size(series=series, runs=runs), repeats)
        with tempfile.TemporaryDirectory(prefix="harness-scale-") as scratch:
            _say(f"two runs of {cases:,} cases")
            measured += _of_comparison(Path(scratch), cases, repeats)
    return Scale(measured=tuple(measured), runs=runs, load=(began, os.getloadavg()[0]))


def _of_history(scratch: Path, size: Size, repeats: int) -> list[Measured]:
    history = scratch / "results"
    write_history(history, size)
    found = []
    for what in QUESTIONS:
        times = min(repeats, 2) if what == "changes" else repeats
        cost = cost_of_question(what, history, times, scratch)
        found.append(Measured(what=what, size=size.series, cost=cost))
    command = ["history", str(history), "--series", "model-0000/stock@cpu latency-vs-reference"]
    found.append(Measured(what="history --series", size=size.series, cost=cost_of_command(command, repeats, scratch)))
    return found


def _of_comparison(scratch: Path, cases: int, repeats: int) -> list[Measured]:
    found = []
    for what in COMPARISONS:
        folders = Folders(cases=cases, runs=2, roles=("reference",) if what == "identical" else ("newest",))
        base, head = write_runs(scratch / what, folders)
        command = ["compare", str(base), str(head), "--no-remeasure", "--results", str(scratch / "comparisons")]
        found.append(Measured(what=what, size=cases, cost=cost_of_command(command, repeats, scratch)))
    return found


def _say(text: str) -> None:
    sys.stderr.write(f"{text}\n")
