"""What `harness report` reports on: what a folder holds, or two runs that are compared now."""

from __future__ import annotations

import json
from datetime import datetime, timezone
from pathlib import Path

from harness.compare.comparison import conclude, plan_comparison, recorded
from harness.compare.options import CompareOptions
from harness.compare.pairs import require_whole, side_of
from harness.errors import RunError, UsageError
from harness.progress import Progress
from harness.records.comparison import Comparison
from harness.store.files import read_document
from harness.store.kinds import COMPARISON
from harness.store.run_directory import load_run
from harness.toolchain.host_cpu import environment_here


def load_against(path: Path, base: Path, progress: Progress, *, across_hosts: bool) -> Comparison:
    """A run against another one: as both were measured side by side where they were, else as each recorded it.

    What they recorded is compared as `harness compare --no-remeasure` does it; that is not kept, and has no id.
    """
    for option, folder in (("", path), ("--base ", base)):
        if COMPARISON.is_at(folder):
            raise UsageError(
                f"{option}{folder}: is a comparison, which has its base already; --base is for two runs, so give a run"
            )
    if path.resolve() == base.resolve():
        raise UsageError(f"{path} is given twice; `harness compare --within {path}` compares its variants")
    runs = load_run(base), load_run(path)
    kept = newest_comparison(runs[0].header.id, runs[1].header.id, (path.parent, base.parent), progress)
    if kept is not None:
        return kept
    progress.note(
        f"{base} and {path} were not compared side by side here, so what they recorded is compared; "
        f"`harness compare {base} {path}` measures both"
    )
    sides = side_of(runs[0], str(base)), side_of(runs[1], str(path))
    for side in sides:
        require_whole(side)
    options = CompareOptions(remeasure=False, across_hosts=across_hosts, row_budget=0.0)
    plan = plan_comparison(*sides, options)
    command = ("harness", "compare", str(base), str(path), "--no-remeasure")
    return conclude(
        plan,
        recorded(plan),
        environment_here(),
        created=datetime.now(timezone.utc).isoformat(timespec="seconds"),
        command=(*command, *(("--across-hosts",) if across_hosts else ())),
    )


def newest_comparison(base_run: str, head_run: str, places: tuple[Path, ...], progress: Progress) -> Comparison | None:
    """The newest comparison of all cases of these two runs that was measured side by side; None: there is none."""
    found: dict[Path, Comparison] = {}
    for place in dict.fromkeys(place.resolve() for place in places):
        for folder in filter(COMPARISON.is_at, sorted(place.iterdir())):
            try:
                if (comparison := _if_about(base_run, head_run, folder)) is not None:
                    found[folder] = comparison
            except RunError as error:
                progress.note(f"{error}; it is left aside")
    if not found:
        return None
    newest = max(found, key=lambda folder: found[folder].created)
    progress.note(f"{newest} compares these two runs, and was measured side by side: this is its report")
    return found[newest]


def _if_about(base_run: str, head_run: str, folder: Path) -> Comparison | None:
    """A folder's comparison, if it measured all cases of these runs; one that names neither need not be whole."""
    document = read_document(folder / COMPARISON.file)
    if any(
        json.dumps(run, ensure_ascii=False).encode(errors="replace") not in document for run in (base_run, head_run)
    ):
        return None
    comparison = COMPARISON.load(folder)
    whole = comparison.mode == "remeasured" and not comparison.within and not comparison.settings.get("patterns")
    return comparison if whole and (comparison.base.run, comparison.head.run) == (base_run, head_run) else None
