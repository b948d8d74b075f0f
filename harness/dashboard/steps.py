"""What changed between the releases of a run: its steps as a list with their causes, and its lines, for its page."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import numpy as np

from harness.dashboard.encode import Payload, level, metric_title, signed, sparkline, table
from harness.dashboard.gather import Gathered
from harness.dashboard.kept import explanation_file
from harness.dashboard.overview import is_recent, shade_of
from harness.errors import RunError
from harness.explain.summary_sentence import step_sentence
from harness.metrics import LATENCY
from harness.progress import Progress
from harness.records.explanation import Explanation
from harness.report.releases import ReleasePoint, Releases, Step, releases_of
from harness.report.releases_page import STATE_WORDS, short_ratio, times_text
from harness.report.run_report import build_report
from harness.store.run_directory import load_run

if TYPE_CHECKING:
    from harness.history.series import History

Facts = dict[str, Any]
# The newest runs of three releases and more (report.releases.MANY), each of which is read whole.
_OF_MANY_RELEASES = """
SELECT run FROM points WHERE metric = 'latency' AND peer = '' AND run IN (SELECT run FROM runs WHERE finished)
GROUP BY run HAVING count(DISTINCT toolchain) >= 3 ORDER BY any_value(started) DESC, run LIMIT 12
"""


def releases_in(history: History, progress: Progress) -> dict[str, Releases]:
    """The newest runs of a history over many releases, by their ids."""
    runs = list(history.query(_OF_MANY_RELEASES)["run"])
    progress.stage("Reading runs over releases", len(runs))
    found = {}
    for run in runs:
        try:
            found[run] = releases_of(build_report(load_run(history.folder_of(run))))
        except RunError as error:
            progress.note(f"{error}; its steps between releases are left out")
        progress.step(run)
    return found


def step_facts(
    gathered: Gathered, releases: Mapping[str, Releases], explanations: Sequence[Explanation]
) -> list[Facts]:
    """Steps of runs of the last 30 days, the largest first; of each line those of the newest run that has it."""
    explained = _explained(explanations)
    seen: set[tuple[str, str, str]] = set()
    found: list[tuple[float, Facts]] = []
    for run in reversed(gathered.run_rows):
        if run["run"] not in releases or not is_recent(gathered, run["started"]):
            continue
        own = releases[run["run"]]
        lines = {line.name: (run["suite"], run["machine_class"], line.name) for line in own.lines}
        found += [(step.size, _step(run, step, explained)) for step in own.steps if lines[step.line.name] not in seen]
        seen |= set(lines.values())
    return [facts for _, facts in sorted(found, key=lambda each: -each[0])]


def _explained(explanations: Sequence[Explanation]) -> dict[tuple[str, ...], Explanation]:
    """The newest explanations, by their case and two releases."""
    return {
        # A side tells a release with its revision, as `3.12.0 (89ece87b89)`.
        (each.case, *(side.toolchains[-1].partition(" (")[0] for side in (each.base, each.head))): each
        for each in reversed(explanations)  # the newest is the first
        if each.latency.metric == LATENCY.name and each.base.toolchains and each.head.toolchains
    }


def _step(run: Facts, step: Step, explained: Mapping[tuple[str, ...], Explanation]) -> Facts:
    row, name = step.row, step.line.name
    measured = {point.release: point.ratio for point in step.line.points if point.ratio is not None}
    why = explained.get((name, step.before, step.after))
    labels = f"IREE {step.before}", f"IREE {step.after}"
    anchor = urlencode({"line": name, "metric": row.metric, "release": step.after})
    return {
        "case": name,
        "where": f"{metric_title(row.metric).lower()}, {step.before} to {step.after}",
        "between": step.between,
        "run": run,
        "worse": row.verdict == "regressed",
        "times": times_text(step),
        "level": level(row.base_value or math.nan, row.head_value or math.nan, row.unit),
        "address": f"run.html?id={run['key']}#{anchor}",
        "file": explanation_file(why) if why is not None else "",
        "sentence": signed(step_sentence(why, replace(row, case=name), labels)) if why is not None else "",
        "course": sparkline(np.array(list(measured.values()))),
        "at": (list(measured).index(step.after) - 0.5) / (len(measured) - 1),
    }


def lines_table(releases: Releases) -> Payload:
    """A run's lines, those with the largest steps first; of each its points, a release after the other."""
    smallest_first = releases.steps[::-1]
    sizes = {step.line.name: step.size for step in smallest_first}
    steps = {(step.line.name, step.after): step for step in smallest_first}
    lines = sorted(releases.lines, key=lambda line: -sizes.get(line.name, 0.0))
    points = [point for line in lines for point in line.points]
    own = [steps.get((line.name, point.release)) for line in lines for point in line.points]
    return {
        "releases": releases.names,
        "lines": [line.name for line in lines],
        "points": table(
            len(points),
            **{name: [getattr(one, name) for one in points] for name in ("latency_ns", "ratio", "low", "high", "why")},
            text=[STATE_WORDS[one.state] if one.ratio is None else short_ratio(one.ratio) for one in points],
            shade=list(map(_shade, points)),
            step=[step and times_text(step) for step in own],
            since=[step and releases.names.index(step.before) for step in own],
            worse=[step and step.row.verdict == "regressed" for step in own],
        ),
    }


def _shade(point: ReleasePoint) -> str:
    if point.state in ("fails", "wrong") and not point.expected:
        return "failed"
    return shade_of(point.ratio or math.nan, point.low, point.high)
