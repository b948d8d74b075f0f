"""Explanations on disk: what `harness explain` found, to be printed, drawn and compared with later.

<results>/<explanation id>/
    explanation.json   the document that `--format json` prints
    report.md          the full report
    finished.json      the hash of every file

It is an explanation once it has explanation.json, which comes last. Until then it has files with which `harness explain
--resume` goes on, see harness.store.unfinished.
"""

from __future__ import annotations

import contextlib
from pathlib import Path

from pydantic import ValidationError

from harness.cache import write_atomically
from harness.errors import RunError
from harness.records.explanation import Explanation
from harness.store.documents import parse_kept
from harness.store.files import (
    FINISHED_FILE,
    adapter,
    describe_bytes,
    describe_folder,
    finished_document,
    read_document,
)
from harness.store.run_directory import writing_results
from harness.store.unfinished import UNFINISHED_EXPLANATION_FILE, UnfinishedDirectory

EXPLANATION_FILE = "explanation.json"
_REPORT_FILE = "report.md"
EXPLANATION_FILES = (EXPLANATION_FILE, _REPORT_FILE, FINISHED_FILE)
# Raised when a name changes its meaning or goes away; new names may appear without.
EXPLANATION_VERSION = 1


class ExplanationDirectory(UnfinishedDirectory):
    """An explanation being written. Use `create` or `resume`, as a context manager."""

    kind, command = "explanation", "explain"
    begun_file, document = UNFINISHED_EXPLANATION_FILE, EXPLANATION_FILE

    def finish(self, document: bytes, report: str) -> None:
        """Write the explanation itself."""
        try:
            with writing_results(self.path):
                write_atomically(self.path / _REPORT_FILE, report.encode(errors="replace"))
                # explanation.json makes it an explanation, so it comes last, and what is one has its hashes.
                files = {**describe_folder(self.path, EXPLANATION_FILES), EXPLANATION_FILE: describe_bytes(document)}
                write_atomically(self.path / FINISHED_FILE, finished_document(files))
                write_atomically(self.path / EXPLANATION_FILE, document)
        except BaseException:
            with contextlib.suppress(OSError):
                for name in EXPLANATION_FILES:
                    (self.path / name).unlink(missing_ok=True)
            raise
        self._forget_unfinished()


def is_explanation(path: Path) -> bool:
    """Whether a directory is an explanation."""
    return (path / EXPLANATION_FILE).is_file()


def load_explanation(folder: Path) -> Explanation:
    """Read an explanation's folder."""
    file = folder / EXPLANATION_FILE
    return explanation_from_json(read_document(file), str(file))


def explanation_from_json(content: str | bytes, source: str = EXPLANATION_FILE) -> Explanation:
    """An explanation as it was kept."""
    document = parse_kept(content, source, what="explanation", version=EXPLANATION_VERSION)
    fields = {name: value for name, value in document.items() if name != "schema_version"}
    try:
        explanation: Explanation = adapter(Explanation).validate_python(fields)
    except ValidationError as error:
        where = ".".join(map(str, error.errors()[0]["loc"]))
        raise RunError(f"{source}: is damaged at {where}; make the explanation again") from None
    return explanation
