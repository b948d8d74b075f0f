"""Changes that a release of the compiler made -> the command that finds the release which began each of them."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.history.events import ChangeEvent
from harness.metrics import LATENCY, RATIO_TITLES, metric_named

if TYPE_CHECKING:
    from harness.history.open import History

# So many commands are shown; each takes minutes.
_MOST = 5


@dataclass(frozen=True, kw_only=True)
class RunOfSuite:
    """What a bisect needs of a run.

    Attributes:
        suite: Path of its suite, as the user gave it.
        release: The newest release of IREE in it.
    """

    suite: str
    release: str


def bisect_commands(events: Sequence[ChangeEvent], runs: Mapping[str, RunOfSuite]) -> list[str]:
    """A command line for each new step that came with another release, the latest first.

    Left out are drifts, other engines, and what happened under one release: a nightly build of the same number, or no
    change of the compiler at all.

    Args:
        runs: By id.
    """
    commands = (_command(event, runs) for event in events if event.recent and not event.settled)
    return list(dict.fromkeys(command for command in commands if command))[:_MOST]


def _command(event: ChangeEvent, runs: Mapping[str, RunOfSuite]) -> str:
    lead = event.lead
    good, bad = runs.get(lead.last_good), runs.get(lead.first_bad)
    if event.cause != "compiler" or lead.kind != "step" or lead.peer or lead.role != "newest":
        return ""
    if good is None or bad is None or good.release == bad.release:
        return ""
    metric = LATENCY.name if lead.metric in RATIO_TITLES else lead.metric
    if metric_named(metric) is None:
        return ""
    words = ["harness", "bisect", bad.suite, "--case", lead.case]
    words += ["--good", f"iree=={good.release}", "--bad", f"iree=={bad.release}"]
    return shlex.join([*words, *([] if metric == LATENCY.name else ["--metric", metric])])


def runs_of_events(history: History, events: Iterable[ChangeEvent]) -> dict[str, RunOfSuite]:
    """The runs between which events lie, by id."""
    ids = sorted({run for event in events for run in (event.lead.last_good, event.lead.first_bad)})
    if not ids:
        return {}
    found = history.query("SELECT run, suite_file, toolchain FROM runs WHERE run IN (SELECT unnest(?))", [ids])
    return {
        str(run): RunOfSuite(suite=str(suite), release=str(release))
        for run, suite, release in found.itertuples(index=False, name=None)
    }
