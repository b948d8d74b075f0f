"""What a user may call a run or what is kept like one: its path, `latest`, `@-1`, or how its name begins."""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from itertools import islice
from pathlib import Path
from typing import Literal

from cyclopts import Parameter

from harness.errors import UsageError
from harness.store.bisect_directory import BEGUN_FILE
from harness.store.comparison_directory import COMPARISON_FILE
from harness.store.explanation_directory import EXPLANATION_FILE
from harness.store.files import FINISHED_FILE
from harness.store.folders import Kind, is_id
from harness.store.run_directory import HEADER_FILE, what_is_there
from harness.store.unfinished import UNFINISHED_EXPLANATION_FILE, UNFINISHED_FILE

LATEST = "latest"
_BEFORE = re.compile(r"@-([1-9]\d{0,5})")
_SHOWN = 3
# A bisect is not merged, listed or verified: it may go on, and its runs and explanations are kept beside it.
AnyKind = Kind | Literal["bisect"]
_FILES: dict[AnyKind, str] = {
    "run": HEADER_FILE,
    "comparison": COMPARISON_FILE,
    "explanation": EXPLANATION_FILE,
    "bisect": BEGUN_FILE,
}
# Of those that a command goes on with by other files than they have in the end.
_UNFINISHED: dict[AnyKind, str] = {"comparison": UNFINISHED_FILE, "explanation": UNFINISHED_EXPLANATION_FILE}


def find_folder(
    name: str | Path, results: Path = Path("results"), *, kind: AnyKind | None = None, unfinished: bool = False
) -> Path:
    """The folder that a user means."""
    path = Path(name)
    if path.exists():
        return path
    folder = results if path.parent == Path() else path.parent
    wanted = kind or "run" if unfinished else kind
    if unfinished and wanted in _UNFINISHED:
        begun = _names_with(folder, (_UNFINISHED[wanted],))
        found = [other for other in begun if not (folder / other / _FILES[wanted]).is_file()]
    else:
        found = [
            other
            for other in folder_names(folder, wanted)
            if not unfinished or not (folder / other / FINISHED_FILE).exists()
        ]
    if path.name == LATEST or _BEFORE.fullmatch(path.name):
        back = 0 if path.name == LATEST else int(path.name.removeprefix("@-"))
        dated = (other for other in reversed(found) if is_id(other) and not _is_of_a_comparison(folder / other))
        meant = next(islice(dated, back, None), None)
        if meant is None:
            what = f"{'unfinished ' * unfinished}{wanted or 'run, comparison, explanation or bisect'}"
            raise UsageError(f"{name}: {folder} has no {what} that it could mean; {what_is_there(folder)}")
        return folder / meant
    begun = [other for other in found if other.startswith(path.name)] if path.name else []
    if len(begun) > 1:
        names = ", ".join(begun[:_SHOWN]) + (f" and {len(begun) - _SHOWN} more" if len(begun) > _SHOWN else "")
        raise UsageError(f"{name}: begins the names of {names} in {folder}; give more of the one you mean")
    return folder / begun[0] if begun else path


def _is_of_a_comparison(folder: Path) -> bool:
    """Whether a run was made by a command that has a result of its own, so that nobody means it by `latest`."""
    try:
        header = json.loads((folder / HEADER_FILE).read_bytes())
        return header["settings"]["purpose"] in ("compare", "selfcheck")
    except (OSError, ValueError, LookupError, TypeError):  # a comparison, an older run, or one whose reader will say so
        return False


def complete_folders(_: object) -> list[str]:
    """What a shell offers where one of them is asked for: names below `results`, newest first."""
    results = Path("results")
    return [LATEST, *(f"{results}/{name}" for name in reversed(folder_names(results)))]


# Of an option or an argument that is one of them.
NAMED = Parameter(completer=complete_folders)


def folder_names(results: Path, kind: AnyKind | None = None) -> list[str]:
    """Names of what a results folder holds of a kind, or of all, oldest first; none where there is no such folder."""
    return _names_with(results, _FILES.values() if kind is None else (_FILES[kind],))


def _names_with(results: Path, files: Collection[str]) -> list[str]:
    """Names of the folders that have one of these files."""
    try:
        return sorted(path.name for path in results.iterdir() if any((path / file).is_file() for file in files))
    except OSError:
        return []
