"""Steps that came with another release of the compiler -> `harness bisect` asked for each, and once for the same.

A step is new for some nights: what one night found is kept and read in the next, and a search that had no time to end
goes on there.
"""

import shlex
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from packaging.version import InvalidVersion, Version

from harness.errors import HarnessError, Interrupted
from harness.history.events import ChangeEvent
from harness.history.series import Runs
from harness.machine.environment import machine_id
from harness.metrics import LATENCY, RATIO_TITLES, metric_named
from harness.progress import Progress
from harness.report.bisect_page import answer
from harness.stages.bisecting import session_of
from harness.stages.options import BisectOptions
from harness.store.folders import BISECT
from harness.store.work_directory import earlier_bisect, has_answer
from harness.toolchain.host_cpu import environment_here

# So many are asked; each takes minutes.
_MOST = 5


@dataclass(frozen=True, kw_only=True)
class Question:
    """Which release began a step of a case's figure."""

    suite: str
    case: str
    metric: str
    good: str  # The release of the last run that surely was before it
    bad: str  # That of the first one that surely is behind it

    @property
    def pre(self) -> bool:
        """Whether pre-releases were measured, so that they are searched too."""
        return Version(self.good).is_prerelease or Version(self.bad).is_prerelease

    @property
    def command(self) -> str:
        """The command line that finds out."""
        words = ["harness", "bisect", self.suite, "--case", self.case]
        words += ["--good", f"iree=={self.good}", "--bad", f"iree=={self.bad}"]
        words += ["--metric", self.metric] if self.metric != LATENCY.name else []
        return shlex.join([*words, *(["--pre"] if self.pre else [])])


def open_questions(events: Sequence[ChangeEvent], runs: Runs) -> list[Question]:
    """What to ask of each new step that came with another release: first of what fails, then of the latest."""
    new = sorted((event for event in events if event.recent and not event.settled), key=lambda event: not event.fails)
    questions = (_question(event, runs) for event in new)
    return list(dict.fromkeys(question for question in questions if question is not None))[:_MOST]


def _question(event: ChangeEvent, runs: Runs) -> Question | None:
    lead = event.lead
    if event.lead.cause != "compiler" or lead.kind != "step" or lead.peer or lead.role != "newest":
        return None
    metric = LATENCY.name if lead.metric in RATIO_TITLES else lead.metric
    if not {lead.earliest, lead.latest} <= runs.places.keys():
        return None
    first, last = (runs.facts[runs.places[run]] for run in (lead.earliest, lead.latest))
    good, bad = first.before, last.toolchain
    try:
        if metric_named(metric) is None or Version(good) == Version(bad):
            return None
    except InvalidVersion:
        return None
    return Question(suite=last.suite_file, case=lead.case, metric=metric, good=good, bad=bad)


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
        new = {**asked, "suite": Path(question.suite), "pre": question.pre}
        options = BisectOptions(**({"resume": earlier} if earlier else new), results=results, budget=seconds)
        found = session_of(options, shlex.split(question.command), progress).run()
    return Dated(question=question, answer=answer(found), is_final=found.finished)
