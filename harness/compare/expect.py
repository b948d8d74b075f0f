"""How long rows take that are to be measured: as long as they took in earlier comparisons of the results folder."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from harness.compare.task import Task
from harness.errors import HarnessError
from harness.remaining import Left, duration
from harness.store.folders import folder_names
from harness.store.kinds import COMPARISON
from harness.text import plural

# So many of the newest comparisons are looked at.
_MOST_COMPARISONS = 20
_MINUTE_S = 60

# What rows of a metric took, by case.
Earlier = Mapping[str, float]


def earlier_rows(results: Path) -> dict[str, dict[str, float]]:
    """What the newest comparisons spent on the row of a case, in seconds: by metric and case."""
    found: dict[str, dict[str, float]] = {}
    for name in list(reversed(folder_names(results, "comparison")))[:_MOST_COMPARISONS]:
        try:
            rows = COMPARISON.load(results / name).rows
        except HarnessError:  # a damaged one says nothing
            continue
        for row in rows:
            if row.generations and not row.control:
                found.setdefault(row.metric, {}).setdefault(row.case, row.seconds)
    return found


class RowsLeft:
    """What is left of rows that are decided together."""

    def __init__(self, tasks: Sequence[Task], earlier: Earlier) -> None:
        self._budgets = {task.name: task.budget_s for task in tasks}
        self._expected = {name: earlier.get(name, budget) for name, budget in self._budgets.items()}
        self._spent = dict.fromkeys(self._budgets, 0.0)
        self._open: Collection[str] = tuple(self._budgets)
        self.is_known = all(name in earlier for name in self._budgets)

    def spend(self, name: str, seconds: float) -> None:
        """A generation of a row took so long."""
        self._spent[name] += seconds

    def extend(self, name: str, seconds: float) -> None:
        """A row goes on beyond its budget, and takes so long in all."""
        self._expected[name] = seconds

    def keep_open(self, names: Collection[str]) -> None:
        """Only these rows are not decided yet."""
        self._open = names

    @property
    def seconds(self) -> float:
        """That are left; a row beyond what it should take takes its budget, and beyond that its budget again."""
        return sum(map(self._of, self._open))

    def _of(self, name: str) -> float:
        spent, budget = self._spent[name], self._budgets[name]
        return next((upto - spent for upto in (self._expected[name], budget, 2 * budget) if upto > spent), 0.0)


def foresee(latency: Sequence[Task], compiled: Sequence[Task], rows: Sequence[RowsLeft], abreast: int = 1) -> str:
    """What is to be measured, and how long that should take."""
    parts = [
        f"{what} of {plural(len(tasks), 'row')} for up to {tasks[0].budget_s:g} s each"
        for what, tasks in (("latencies", latency), ("compile times", compiled))
        if tasks
    ]
    seconds = sum(of.seconds for of in rows) / abreast
    todo = f"To measure: {', '.join(parts)}"
    if all(of.is_known for of in rows):
        return f"{todo}; {Left(seconds=seconds).words}, as earlier comparisons here took"
    most = f"{seconds:.0f} s" if seconds < 2 * _MINUTE_S else duration(seconds)
    return f"{todo}; up to {most}, and longer where a difference is confirmed, or is plain and calls take long"
