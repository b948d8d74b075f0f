"""What the first page begins with: steps between releases, the largest first, with what explains them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from harness.dashboard.encode import cut, level
from harness.dashboard.gather import Gathered
from harness.dashboard.kept import explanation_file
from harness.errors import RunError
from harness.progress import Progress
from harness.records.explanation import Explanation
from harness.report.releases import Releases, Step, releases_of
from harness.report.run_report import build_report
from harness.report.units import interval_text
from harness.store.run_directory import load_run

if TYPE_CHECKING:
    from harness.history.series import History

MOST_STEPS = 25
# The newest runs of three releases and more (report.releases.MANY), each of which is read whole.
_OF_MANY_RELEASES = """
SELECT run FROM points WHERE metric = 'latency' AND peer = '' AND run IN (SELECT run FROM runs WHERE finished)
GROUP BY run HAVING count(DISTINCT toolchain) >= 3 ORDER BY any_value(started) DESC, run LIMIT 8
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


def step_list(
    gathered: Gathered, releases: Mapping[str, Releases], explanations: Sequence[Explanation]
) -> list[dict[str, Any]]:
    """The largest steps, as the first page shows each."""
    explained = {
        (found.case, *(_release(side.toolchains[-1]) for side in (found.base, found.head) if side.toolchains)): found
        for found in reversed(explanations)  # the newest counts
    }
    steps = [(run, step) for run, of_run in releases.items() for step in of_run.steps]
    steps.sort(key=lambda each: -each[1].size)
    return [
        _facts(gathered, run, step, explained.get((step.line.name, step.before, step.after)))
        for run, step in steps[:MOST_STEPS]
    ]


def _release(toolchain: str) -> str:
    """Of `3.12.0 (89ece87b89)`."""
    return toolchain.partition(" (")[0]


def _facts(gathered: Gathered, run: str, step: Step, explanation: Explanation | None) -> dict[str, Any]:
    row, facts = step.row, gathered.runs_by_id[run]
    return {
        "case": step.line.name,
        "about": f"latency, {step.before} to {step.after}",
        "run": facts["key"],
        "name": gathered.name_numbers[facts["suite"], step.line.name],
        "is_worse": step.row.verdict == "regressed",
        "ratio": interval_text(row.ratio, row.ci_low, row.ci_high),
        "level": level(row.base_value or 0.0, row.head_value or 0.0, "ns"),
        "machine": cut(facts["machine_class"], 60),
        "cause": explanation.sentence if explanation is not None else "",
        "file": explanation_file(explanation) if explanation is not None else "",
    }
