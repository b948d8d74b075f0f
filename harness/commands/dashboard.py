"""What `harness dashboard` does, once its arguments are parsed."""

from __future__ import annotations

import sys
from datetime import datetime, timezone
from pathlib import Path

from harness.dashboard import make_dashboard
from harness.dashboard.folder import require_replaceable
from harness.errors import ExitCode
from harness.history.changes import history_changes
from harness.history.open import open_history
from harness.progress import Terminal
from harness.store.address import is_url, without_password


def dashboard_command(place: str, out: Path, *, title: str) -> int:
    """`harness dashboard`: exit status 0 also where there is nothing to show yet; the site then says what to do."""
    require_replaceable(out)  # before anything that takes long
    with Terminal() as progress, open_history(place, progress=progress) as history:
        changes = history_changes(history, progress=progress)
        made = datetime.now(timezone.utc)
        make_dashboard(history, changes, out, progress, place=_named(place), title=title, made=made)
    sys.stderr.write(f"{out / 'index.html'}\n")
    return ExitCode.OK


def _named(place: str) -> str:
    """What pages call the results folder; others read them, and need no folder of this machine and no password."""
    return "results" if not is_url(place) and Path(place).is_absolute() else without_password(place)
