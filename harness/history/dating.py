"""Questions of a history -> answers: `harness bisect` asked for each within one budget, and once for the same.

A step is new for some nights: what one night found is kept and read in the next, and a search that had no time to end
goes on there.
"""

from __future__ import annotations

import shlex
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.errors import HarnessError, Interrupted
from harness.history.bisects import Question
from harness.machine.identity import machine_id
from harness.progress import Progress
from harness.report.bisect_page import answer
from harness.stages.bisecting import session_of
from harness.stages.options import BisectOptions
from harness.store.kinds import BISECT
from harness.store.search_directory import earlier_bisect, has_answer
from harness.toolchain.host_cpu import environment_here


@dataclass(frozen=True, kw_only=True)
class Dated:
    """A step of a history with the release that began it, where that was searched."""

    question: Question
    answer: str = ""  # In sentences, or why there is none; "": it was not searched
    is_final: bool = False  # Whether a longer search would tell no more


def date_steps(questions: Sequence[Question], budget_s: float, results: Path, progress: Progress) -> Iterator[Dated]:
    """Search the release that began each step; where that cannot be done, the answer says why."""
    ends = time.monotonic() + budget_s
    for question in questions:
        progress.note(question.command)
        try:
            yield _dated(question, ends - time.monotonic(), results, progress)
        except Interrupted:
            raise
        except HarnessError as error:
            yield Dated(question=question, answer=f"It cannot be searched: {error}.")


def _dated(question: Question, seconds: float, results: Path, progress: Progress) -> Dated:
    """By what an earlier search found, else by one that begins or goes on now, where there is time for it."""
    asked = {name: getattr(question, name) for name in ("suite", "case", "metric", "good", "bad")}
    machine = machine_id(environment_here())
    earlier = earlier_bisect(results, asked, machine)
    found = BISECT.load(earlier) if earlier is not None and has_answer(earlier) else None
    if found is None and seconds <= 0:
        return Dated(question=question)
    if found is None:
        options = BisectOptions(resume=earlier, results=results, budget=seconds)
        if earlier is None:
            options = BisectOptions(
                Path(question.suite),
                case=question.case,
                good=question.good,
                bad=question.bad,
                pre=question.pre,
                metric=question.metric,
                results=results,
                budget=seconds,
            )
        found = session_of(options, shlex.split(question.command), progress).run()
    return Dated(question=question, answer=answer(found), is_final=found.finished)
