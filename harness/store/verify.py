"""`harness results verify`: every folder of a results folder, and its compacted history."""

from __future__ import annotations

import os
from pathlib import Path

from harness.errors import RunError
from harness.progress import Progress
from harness.store.check import check_folder
from harness.store.check_history import check_history
from harness.store.folders import HISTORY_FOLDER, PUBLISHED_FOLDER
from harness.store.place import Place
from harness.store.values import Finding
from harness.text import shown


def verify(place: Place, progress: Progress) -> list[Finding]:
    """Look at every folder, at those in `published/`, whose names are free, and at the history.

    Args:
        place: Its folders have been fetched.

    Raises:
        RunError: It cannot be listed.
    """
    names = _folders(place.local)
    published = _folders(place.local / PUBLISHED_FOLDER) if PUBLISHED_FOLDER in names else []
    own = [name for name in names if name not in (HISTORY_FOLDER, PUBLISHED_FOLDER)]
    progress.stage("Verifying", len(own) + len(published))
    found = []
    for name in own:
        found.append(check_folder(place.local / name, name=name))
        progress.step(shown(name))
    for name in published:
        path = f"{PUBLISHED_FOLDER}/{name}"
        found.append(check_folder(place.local / path, name=path, named_by_id=False))
        progress.step(shown(path))
    refused = [name for name in place.refused if name not in names]  # of a URL; a folder's own are looked at above
    found += [Finding(name=name, kind="", state="damaged", why=f"it {place.refused[name]}") for name in refused]
    return found + check_history(place.local)


def _folders(folder: Path) -> list[str]:
    """Names of folders, and of links to folders, in order."""
    try:
        with os.scandir(folder) as entries:
            return sorted(entry.name for entry in entries if entry.is_dir() and not entry.name.startswith("."))
    except OSError as error:
        raise RunError(f"{folder}: cannot be listed ({error.strerror}); give a folder that holds runs") from None
