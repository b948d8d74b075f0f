"""Bisects on disk, so that one that was stopped, killed or left something open goes on where it was.

<results>/<time>-<suite>-bisect/
    begun.json      the options that it was begun with, what is searched, the runs that were made for it, and what
                    explains its steps
    trials.jsonl    one JSON line a measurement, written when it has ended
    suites/         where variants are searched: the suite of each set of parts
    bisection.json  the document that `--format json` prints, each time that a bisect has come to its end
    report.md       the report

A search asks the same again when it is told the same, so one that goes on is answered from trials.jsonl until it comes
to what was not measured yet. Of one that has come to its end, what stayed open is measured again.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout
from pydantic import ValidationError

from harness.cache import write_atomically
from harness.errors import RunError
from harness.records.bisection import Bisection, Trial
from harness.store.documents import parse_kept
from harness.store.files import adapter, ends_in_newline, read_document, read_lines
from harness.store.run_directory import append_line, make_folder, new_run_id, writing_results
from harness.store.unfinished import Begun

BEGUN_FILE, TRIALS_FILE, BISECTION_FILE = "begun.json", "trials.jsonl", "bisection.json"
SUITES_FOLDER = "suites"
# Raised when a name changes its meaning or goes away; new names may appear without.
BISECTION_VERSION = 1
_REPORT_FILE, _LOCK_FILE = "report.md", ".lock"


@dataclass(frozen=True, kw_only=True)
class KeptSentence:
    """What the compiler does differently across a step."""

    text: str = ""  # In a sentence; "": nothing is known
    explanation: str = ""  # Id of the explanation that says more; "" likewise


@dataclass(frozen=True, kw_only=True)
class BegunBisect(Begun):
    """What a bisect was begun with; its runs are made for positions, by the position's name."""

    history: tuple[str, ...] = ()  # What is searched, in order, as the package index had it then; () of parts
    # Both positions of a step, as in `3.6.0..3.7.0`, and what differs between them
    explained: dict[str, KeptSentence] = field(default_factory=dict)
    attempt: int = 0  # How often it went on after it had come to its end


class BisectDirectory:
    """A bisect being written. Use `create` or `resume`, as a context manager.

    Attributes:
        kept: All measurements, in the order in which they were made; those of earlier stretches once it is entered.
    """

    def __init__(self, path: Path, begun: BegunBisect) -> None:
        self.path = path
        self.begun = begun
        self.kept: list[Trial] = []
        self._lock = FileLock(path / _LOCK_FILE)

    @classmethod
    def create(cls, results: Path, suite: str, begun: BegunBisect) -> BisectDirectory:
        """Make the directory of a new bisect."""
        name = f"{new_run_id(suite, datetime.fromisoformat(begun.created))}-bisect"
        directory = cls(make_folder(results, name), begun)
        directory._keep_begun()
        return directory

    @classmethod
    def resume(cls, path: Path) -> BisectDirectory:
        """Open a bisect to go on with it."""
        file = path / BEGUN_FILE
        if not file.is_file():
            raise RunError(f"{path}: is no bisect that can go on (it has no {BEGUN_FILE}); begin it again")
        try:
            begun: BegunBisect = adapter(BegunBisect).validate_json(read_document(file))
        except ValidationError:
            raise RunError(f"{file}: is damaged; begin the bisect again") from None
        if is_bisect(path) and not load_bisect(path).is_open:
            raise RunError(f"{path}: this bisect has its answer; `harness report {path}` prints it")
        return cls(path, begun)

    def __enter__(self) -> BisectDirectory:
        try:
            self._lock.acquire(timeout=0)
        except Timeout:
            raise RunError(f"{self.path}: another harness is writing this bisect; wait for it or stop it") from None
        self.kept = _read_trials(self.path / TRIALS_FILE)
        self._drop_cut_line()
        if is_bisect(self.path) and load_bisect(self.path).attempt == self.begun.attempt:
            self.begun = replace(self.begun, attempt=self.begun.attempt + 1)
            self._keep_begun()
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(OSError):  # before the release: after it, the file may be another harness's lock
            (self.path / _LOCK_FILE).unlink()
        self._lock.release()

    def answer(self, asked: tuple[str, str, float]) -> Trial | None:
        """What was measured of a question; None: nothing, or it stayed open and is to be measured again."""
        found = next((trial for trial in reversed(self.kept) if trial.key == asked), None)
        if found is not None and found.is_open and found.attempt < self.begun.attempt:
            return None
        return found

    def keep_run(self, position: str, run: Path) -> None:
        """Keep which run is made for a position, as soon as it begins."""
        self.begun = replace(self.begun, runs={**self.begun.runs, position: str(run)})
        self._keep_begun()

    def keep_sentence(self, step: str, sentence: KeptSentence) -> None:
        """Keep what explains a step."""
        self.begun = replace(self.begun, explained={**self.begun.explained, step: sentence})
        self._keep_begun()

    def keep_trial(self, trial: Trial) -> Trial:
        """Keep a measurement, once it has ended; it is given back as it is kept."""
        kept = replace(trial, attempt=self.begun.attempt)
        with writing_results(self.path):
            append_line(self.path / TRIALS_FILE, adapter(Trial).dump_json(kept) + b"\n")
        self.kept.append(kept)
        return kept

    def write_suite(self, name: str, text: str) -> Path:
        """Write the suite of a set of parts; its file."""
        file = self.path / SUITES_FOLDER / f"{name}.toml"
        with writing_results(self.path):
            write_atomically(file, text.encode())
        return file

    def finish(self, document: str, report: str) -> None:
        """Write what there is at the end, as JSON and as a report."""
        with writing_results(self.path):
            write_atomically(self.path / _REPORT_FILE, report.encode(errors="replace"))
            write_atomically(self.path / BISECTION_FILE, document.encode(errors="replace"))

    def _drop_cut_line(self) -> None:
        file = self.path / TRIALS_FILE
        if file.is_file() and not ends_in_newline(file):
            with writing_results(self.path):
                write_atomically(file, b"".join(adapter(Trial).dump_json(trial) + b"\n" for trial in self.kept))

    def _keep_begun(self) -> None:
        with writing_results(self.path):
            write_atomically(self.path / BEGUN_FILE, adapter(BegunBisect).dump_json(self.begun, indent=1))


def is_bisect(path: Path) -> bool:
    """Whether a directory is a bisect that has come to its end."""
    return (path / BISECTION_FILE).is_file()


def load_bisect(folder: Path) -> Bisection:
    """Read what a bisect found."""
    file = folder / BISECTION_FILE
    document = parse_kept(read_document(file), str(file), what="bisect", version=BISECTION_VERSION)
    fields = {name: value for name, value in document.items() if name != "schema_version"}
    try:
        found: Bisection = adapter(Bisection).validate_python(fields)
    except ValidationError as error:
        where = ".".join(map(str, error.errors()[0]["loc"]))
        raise RunError(f"{file}: is damaged at {where}; make the bisect again") from None
    return found


def has_answer(folder: Path) -> bool:
    """Whether a bisect knows all that it was asked."""
    return is_bisect(folder) and load_bisect(folder).finished


def earlier_bisect(results: Path, asked: Mapping[str, Any], machine: str) -> Path | None:
    """The newest bisect with these options that has an answer, or that can go on here; None where there is none."""
    for file in sorted(results.glob(f"*/{BEGUN_FILE}"), reverse=True):
        try:
            begun: BegunBisect = adapter(BegunBisect).validate_json(read_document(file))
        except (RunError, ValidationError):  # who goes on with it is told
            continue
        if asked.items() <= begun.options.items() and (begun.machine == machine or has_answer(file.parent)):
            return file.parent
    return None


def _read_trials(file: Path) -> list[Trial]:
    if not file.is_file():
        return []
    trials: list[Trial] = []
    for number, line in enumerate(read_lines(file), start=1):
        try:
            trials.append(adapter(Trial).validate_json(line))
        except ValidationError:
            raise RunError(f"{file}: line {number} is damaged; remove it, and what it says is measured again") from None
    return trials
