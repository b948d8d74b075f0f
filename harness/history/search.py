"""Every series of a history, searched for change points on several cores, a batch at a time."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from harness.history.worker import begin
from harness.machine.pinning import thread_variables, usable_cores
from harness.progress import Progress

if TYPE_CHECKING:
    from harness.stats.change_points import ChangePoint

# Fewer points in all than this are searched at once: processes take about a second to begin.
_WORTH_PROCESSES = 100_000
# A batch goes to a process whole; this many keeps all busy to the end and little in memory.
_WAITING_FOR_EACH = 2


@dataclass(frozen=True, kw_only=True, eq=False)
class Values:
    """One series, ready to be searched.

    Attributes:
        values: In order of time.
        exact: Whether equal code gives equal values.
    """

    series: str
    values: NDArray[np.float64]
    exact: bool


Findings = dict[str, "tuple[ChangePoint, ...]"]


def search(batches: Iterable[Sequence[Values]], *, points: int, jobs: int | None, progress: Progress) -> Findings:
    """The change points of each series that has any.

    Args:
        batches: Of some thousand to some hundred thousand points; taken as they are needed.
        points: In all of them, about.
        jobs: Processes (default: as many as there are cores); 1: none are started.
    """
    count = jobs or (usable_cores() if points >= _WORTH_PROCESSES else 1)
    found: Findings = {}
    searched = map(_search, batches) if count == 1 else _in_processes(batches, count)
    for series, findings in searched:
        found.update(findings)
        progress.step(f"{len(found):,} with changes", series)
    return found


def _search(batch: Sequence[Values]) -> tuple[int, Findings]:
    from harness.stats.change_points import find_changes

    found = {}
    for one in batch:
        changes = find_changes(one.values, exact=one.exact)
        if changes:
            found[one.series] = changes
    return len(batch), found


def _in_processes(batches: Iterable[Sequence[Values]], count: int) -> Iterator[tuple[int, Findings]]:
    """Batches to processes, a few ahead; processes are begun afresh, since DuckDB's threads cannot be forked."""
    context = multiprocessing.get_context("spawn")
    executor = ProcessPoolExecutor(count, mp_context=context, initializer=begin, initargs=(thread_variables(1),))
    try:
        waiting: set[Future[tuple[int, Findings]]] = set()
        for batch in batches:
            waiting.add(executor.submit(_search, batch))
            if len(waiting) >= count * (1 + _WAITING_FOR_EACH):
                done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
                yield from (one.result() for one in done)
        for one in waiting:
            yield one.result()
    finally:
        executor.shutdown(wait=True, cancel_futures=True)
