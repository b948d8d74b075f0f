"""Whether a folder's rows may be kept: anybody can change a folder, and what is kept is shown for every copy of it."""

from __future__ import annotations

from pathlib import Path

from harness.errors import RunError
from harness.store.comparison_directory import COMPARISON_FILE
from harness.store.dropped import TURNS_FILE, read_dropped
from harness.store.folders import HEADER_FILE, is_known
from harness.store.manifest import describe_file, read_manifest

_HEADERS = (HEADER_FILE, COMPARISON_FILE)


def sizes(folder: Path) -> str:
    """What a finished folder's records are from outside, for a memo's key: their sizes; without hashes, times too.

    With hashes the content is looked at before a memo is made, so that a copy of the folder is the same.

    Raises:
        RunError: finished.json is damaged, or a file cannot be looked at.
    """
    hashed = read_manifest(folder) is not None
    found = {}
    for file in _records(folder):
        try:
            status = file.stat()
        except OSError as error:
            raise RunError(f"{file}: cannot be read ({error.strerror}); mend its permissions") from None
        found[file.name] = f"{status.st_size}" if hashed else f"{status.st_size} {status.st_mtime_ns}"
    dropped = read_dropped(folder)
    if dropped is not None and hashed:  # what is kept is of before
        found[TURNS_FILE] = f"{dropped.turns.bytes}"
    return ", ".join(f"{name} {size}" for name, size in sorted(found.items()))


def changed_file(folder: Path) -> str:
    """Name of a record that is not as it was when the folder was finished; "" where none is, or nobody can say.

    Raises:
        RunError: A file cannot be read.
    """
    manifest = read_manifest(folder)
    if manifest is None:
        return ""
    for file in _records(folder):
        if file.name not in manifest or describe_file(file) != manifest[file.name]:
            return file.name
    return ""


def changed_note(name: str, file: str) -> str:
    """What is said of such a folder."""
    return (
        f"{name}: its {file} is not as it was when it was finished, so its figures may be anything; "
        "`harness results verify` says more"
    )


def _records(folder: Path) -> list[Path]:
    """What rows are made of: the header and all files of records."""
    known = (file for file in folder.iterdir() if is_known(file.name))
    return sorted(file for file in known if file.suffix == ".jsonl" or file.name in _HEADERS)
