"""`harness dashboard`."""

from __future__ import annotations

from datetime import datetime, timezone
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from harness.cli.app import app
from harness.cli.output import tell
from harness.dashboard import make_dashboard
from harness.dashboard.site import require_replaceable
from harness.dashboard.tunings import load_tunings
from harness.errors import ExitCode
from harness.history.changes import history_changes
from harness.history.open import open_history
from harness.options import Everything
from harness.progress import Terminal
from harness.store.marks import WITHOUT_EXPERIMENTS
from harness.store.place import is_url, without_password


@app.command
def dashboard(
    results: str = "results",
    *,
    out: Path,
    tuned: Annotated[tuple[Path, ...], Parameter(negative="", show_default=False)] = (),
    title: str = "IREE benchmarks",
    everything: Everything = False,
) -> int:
    """Make a folder of pages that shows a whole history, for a browser or any web server.

    The exit status is 0 also where there is nothing to show yet; the pages then say what to do.

    Args:
        results: The results folder, or its URL.
        out: The folder to make; one that holds an older dashboard is replaced, once the new one is whole.
        tuned: Folders of `harness tune`, to be shown beside those in the results folder.
        title: What stands at the head of every page.
        everything: Runs with the tag experiment too, among them those of compare, selfcheck, ablate and bench.
    """
    require_replaceable(out)  # before anything that takes long
    # Others read the pages, and need no folder of this machine and no password.
    place = "results" if not is_url(results) and Path(results).is_absolute() else without_password(results)
    choice = None if everything else WITHOUT_EXPERIMENTS
    with Terminal() as progress, open_history(results, progress=progress, choice=choice) as history:
        changes = history_changes(history, progress=progress)
        tunings = load_tunings([*tuned, *([] if is_url(results) else [Path(results)])], progress)
        made = datetime.now(timezone.utc)
        make_dashboard(history, changes, out, progress, place=place, tunings=tunings, title=title, made=made)
    tell(str(out / "index.html"))
    return ExitCode.OK
