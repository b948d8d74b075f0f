"""What `harness report` reports on: a run, a comparison that was kept, or two runs that are compared now."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path

from harness.compare.pairs import require_whole, side_of
from harness.errors import RunError, UsageError
from harness.progress import Progress
from harness.records.comparison import Comparison
from harness.records.run import Run
from harness.store.comparison_directory import COMPARISON_FILE, comparison_from_json, is_comparison
from harness.store.files import open_plain, read_document
from harness.store.run_directory import load_run

# A comparison's document begins with what it compares; the ids of both runs are in here, however long labels are.
_HEAD_BYTES = 256 * 2**10


def load_comparison(folder: Path) -> Comparison:
    """A comparison that was kept.

    Raises:
        RunError: It cannot be read, or is damaged.
    """
    file = folder / COMPARISON_FILE
    try:
        return comparison_from_json(read_document(file).decode(), str(file))
    except (UnicodeDecodeError, RecursionError):
        raise RunError(f"{file}: is damaged (it is no JSON); make the comparison again") from None


def load_either(path: Path) -> Run | Comparison:
    """What a folder holds.

    Raises:
        RunError: It is neither, cannot be read, or is damaged.
    """
    return load_comparison(path) if is_comparison(path) else load_run(path)


def load_against(path: Path, base: Path, progress: Progress, *, across_hosts: bool) -> Comparison:
    """A run against another one: as both were measured side by side where they were, else as each recorded it.

    Args:
        path: The run that is reported on.
        across_hosts: Compare recorded numbers of different machines or devices too.

    Raises:
        UsageError: One of them is no run, they are the same, or they have nothing in common that may be compared.
    """
    for option, folder in (("", path), ("--base ", base)):
        if is_comparison(folder):
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
    return _recorded(runs[0], runs[1], base, path, across_hosts=across_hosts)


def newest_comparison(base_run: str, head_run: str, places: tuple[Path, ...], progress: Progress) -> Comparison | None:
    """The newest comparison of all cases of these two runs that was measured side by side; None: there is none.

    Args:
        base_run: Its id, as `head_run` is.
        places: Folders that hold comparisons.
    """
    newest: Comparison | None = None
    where = Path()
    for folder in _folders_about(base_run, head_run, places):
        try:
            found = load_comparison(folder)
        except RunError as error:
            progress.note(f"{error}; it is left aside")
            continue
        if _is_of(found, base_run, head_run) and (newest is None or found.created > newest.created):
            newest, where = found, folder
    if newest is not None:
        progress.note(f"{where} compares these two runs, and was measured side by side: this is its report")
    return newest


def _is_of(comparison: Comparison, base_run: str, head_run: str) -> bool:
    return (
        (comparison.base.run, comparison.head.run) == (base_run, head_run)
        and comparison.mode == "remeasured"
        and not comparison.within
        and not comparison.settings.get("patterns")
    )


def _folders_about(base_run: str, head_run: str, places: tuple[Path, ...]) -> Iterator[Path]:
    """Comparisons that begin with both ids; most results folders hold many others, and some are large."""
    wanted = [json.dumps(run, ensure_ascii=False).encode(errors="replace") for run in (base_run, head_run)]
    for place in dict.fromkeys(place.resolve() for place in places):
        for folder in sorted(place.iterdir()):
            if not is_comparison(folder):
                continue
            try:
                with open_plain(folder / COMPARISON_FILE) as stream:
                    begin = stream.read(_HEAD_BYTES)
            except (OSError, RunError):
                continue
            if all(run in begin for run in wanted):
                yield folder


def _recorded(base: Run, head: Run, base_path: Path, head_path: Path, *, across_hosts: bool) -> Comparison:
    """As `harness compare --no-remeasure` compares them; it is not kept, and has no id."""
    from harness.compare.comparison import conclude, plan_comparison, recorded
    from harness.compare.options import CompareOptions
    from harness.machine.environment import capture_environment

    sides = side_of(base, str(base_path)), side_of(head, str(head_path))
    for side in sides:
        require_whole(side)
    options = CompareOptions(remeasure=False, across_hosts=across_hosts, row_budget=0.0, compile_budget=0.0)
    plan = plan_comparison(*sides, options)
    command = ("harness", "compare", str(base_path), str(head_path), "--no-remeasure")
    return conclude(
        plan,
        recorded(plan),
        capture_environment(),
        created=datetime.now(timezone.utc),
        command=(*command, *(("--across-hosts",) if across_hosts else ())),
    )
