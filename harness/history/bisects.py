"""Steps that came with another release of the compiler -> what `harness bisect` is asked of each of them."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from packaging.version import InvalidVersion, Version

from harness.history.events import ChangeEvent
from harness.metrics import LATENCY, RATIO_TITLES, metric_named

if TYPE_CHECKING:
    from harness.history.open import History

# So many are asked; each takes minutes.
_MOST = 5
# A run and the one before it of the same suite on the same machines.
_RUNS = """
SELECT run, suite_file, toolchain, lag(toolchain, 1, '') OVER (PARTITION BY suite, machine_class ORDER BY started, run)
FROM runs WHERE clock = '' AND finished
"""


@dataclass(frozen=True, kw_only=True)
class RunOfSuite:
    """What a bisect needs of a run."""

    suite: str  # Path of its suite, as the user gave it
    release: str  # The newest release of IREE in it
    before: str  # That of the run before it; "" of a first one


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


def open_questions(events: Sequence[ChangeEvent], runs: Mapping[str, RunOfSuite]) -> list[Question]:
    """What to ask of each new step that came with another release: first of what fails, then of the latest.

    Left out are drifts, other engines, and what happened under one release: another build of the same number, or no
    change of the compiler at all.
    """
    new = sorted((event for event in events if event.recent and not event.settled), key=lambda event: not event.fails)
    questions = (_question(event, runs) for event in new)
    return list(dict.fromkeys(question for question in questions if question is not None))[:_MOST]


def _question(event: ChangeEvent, runs: Mapping[str, RunOfSuite]) -> Question | None:
    lead = event.lead
    first, last = runs.get(lead.earliest), runs.get(lead.latest)
    if event.cause != "compiler" or lead.kind != "step" or lead.peer or lead.role != "newest":
        return None
    metric = LATENCY.name if lead.metric in RATIO_TITLES else lead.metric
    if first is None or last is None or metric_named(metric) is None:
        return None
    if first.before == last.release or not (_is_version(first.before) and _is_version(last.release)):
        return None
    return Question(suite=last.suite, case=lead.case, metric=metric, good=first.before, bad=last.release)


def _is_version(text: str) -> bool:
    try:
        Version(text)
    except InvalidVersion:
        return False
    return True


def runs_of_suites(history: History) -> dict[str, RunOfSuite]:
    """The runs in which changes are looked for, by id."""
    found = history.query(_RUNS)
    return {
        str(run): RunOfSuite(suite=str(suite), release=str(release), before=str(before))
        for run, suite, release, before in found.itertuples(index=False, name=None)
    }
