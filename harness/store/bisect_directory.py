"""Bisects on disk, so that one that was stopped or killed goes on where it was.

<results>/<time>-<suite>-bisect/
    begun.json      the options that it was begun with, what is searched, and the runs that were made for it
    trials.jsonl    one JSON line a measurement, written when it has ended
    suites/         where variants are searched: the suite of each set of parts
    bisection.json  the document that `--format json` prints; it is there once nothing is left to be measured
    report.md       the report

A search asks the same again when it is told the same, so one that goes on is answered from trials.jsonl until it comes
to what was not measured yet.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout
from pydantic import ValidationError

from harness.cache import write_atomically
from harness.errors import RunError, UsageError
from harness.records.bisection import Bisection, Trial
from harness.store.files import adapter, ends_in_newline, parsing, read_document, read_lines
from harness.store.names import LATEST
from harness.store.run_directory import append_line, make_folder, new_run_id, writing_results

BEGUN_FILE, TRIALS_FILE, BISECTION_FILE = "begun.json", "trials.jsonl", "bisection.json"
SUITES_FOLDER = "suites"
_LOCK_FILE = ".lock"


@dataclass(frozen=True, kw_only=True)
class BegunBisect:
    """What a bisect was begun with.

    Attributes:
        created: ISO 8601, UTC.
        machine: Id of the machine that it is measured on.
        noise: The smallest change that this machine was found to see, as a share; 0: not known.
        options: The user's, as plain values.
        command: The command line.
        history: What is searched, in order, as the package index had it then; () of parts.
        runs: Folders of the runs that were made for positions, finished or not, by the position's name.
    """

    created: str
    machine: str
    noise: float
    options: dict[str, Any]
    command: tuple[str, ...]
    history: tuple[str, ...] = ()
    runs: dict[str, str] = field(default_factory=dict)


class BisectDirectory:
    """A bisect being written. Use `create` or `resume`, as a context manager.

    Attributes:
        trials: All that were kept, by what was asked; those of the stretches before this one once it is entered.
    """

    def __init__(self, path: Path, begun: BegunBisect) -> None:
        self.path = path
        self.begun = begun
        self.trials: dict[tuple[str, str, float], Trial] = {}
        self._lock = FileLock(path / _LOCK_FILE)

    @classmethod
    def create(cls, results: Path, suite: str, begun: BegunBisect) -> BisectDirectory:
        """Make the directory of a new bisect.

        Raises:
            RunError: The results folder cannot be written.
        """
        name = f"{new_run_id(suite, datetime.fromisoformat(begun.created))}-bisect"
        directory = cls(make_folder(results, name), begun)
        directory._keep_begun()
        return directory

    @classmethod
    def resume(cls, path: Path) -> BisectDirectory:
        """Open a bisect to go on with it.

        Raises:
            RunError: It is finished, is none, or is damaged.
        """
        if (path / BISECTION_FILE).is_file():
            raise RunError(f"{path}: this bisect is finished; {path / 'report.md'} has its answer")
        file = path / BEGUN_FILE
        if not file.is_file():
            raise RunError(f"{path}: is no bisect that can go on (it has no {BEGUN_FILE}); begin it again")
        try:
            begun: BegunBisect = adapter(BegunBisect).validate_json(read_document(file))
        except ValidationError:
            raise RunError(f"{file}: is damaged; begin the bisect again") from None
        return cls(path, begun)

    def __enter__(self) -> BisectDirectory:
        try:
            self._lock.acquire(timeout=0)
        except Timeout:
            raise RunError(f"{self.path}: another harness is writing this bisect; wait for it or stop it") from None
        kept = _read_trials(self.path / TRIALS_FILE)
        self.trials = {trial.key: trial for trial in kept}
        self._drop_cut_line(kept)
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(OSError):  # before the release: after it, the file may be another harness's lock
            (self.path / _LOCK_FILE).unlink()
        self._lock.release()

    def keep_run(self, position: str, run: Path) -> None:
        """Keep which run is made for a position, as soon as it begins."""
        self.begun = replace(self.begun, runs={**self.begun.runs, position: str(run)})
        self._keep_begun()

    def keep_trial(self, trial: Trial) -> None:
        """Keep a measurement, once it has ended."""
        with writing_results(self.path):
            append_line(self.path / TRIALS_FILE, adapter(Trial).dump_json(trial) + b"\n")
        self.trials[trial.key] = trial

    def write_suite(self, name: str, text: str) -> Path:
        """Write the suite of a set of parts; its file.

        Raises:
            RunError: The folder cannot be written.
        """
        file = self.path / SUITES_FOLDER / f"{name}.toml"
        with writing_results(self.path):
            write_atomically(file, text.encode())
        return file

    def finish(self, document: str, report: str) -> None:
        """Write the answer, as JSON and as a report."""
        with writing_results(self.path):
            write_atomically(self.path / "report.md", report.encode())
            write_atomically(self.path / BISECTION_FILE, document.encode())

    def _drop_cut_line(self, kept: Sequence[Trial]) -> None:
        file = self.path / TRIALS_FILE
        if file.is_file() and not ends_in_newline(file):
            with writing_results(self.path):
                write_atomically(file, b"".join(adapter(Trial).dump_json(trial) + b"\n" for trial in kept))

    def _keep_begun(self) -> None:
        with writing_results(self.path):
            write_atomically(self.path / BEGUN_FILE, adapter(BegunBisect).dump_json(self.begun, indent=1))


def find_bisect(name: Path, results: Path) -> Path:
    """The folder of the unfinished bisect that a user means: a path, `latest`, or its name in the results folder.

    Raises:
        UsageError: There is none.
    """
    if name.is_dir():
        return name
    try:
        there = sorted(folder for folder in results.iterdir() if (folder / BEGUN_FILE).is_file())
    except OSError:
        there = []
    found = [folder for folder in there if folder.name == str(name)]
    if str(name) == LATEST:
        found = [folder for folder in there if not (folder / BISECTION_FILE).is_file()]
    if not found:
        raise UsageError(f"{name}: {results} has no bisect that it could mean; `ls {results}` shows what is there")
    return found[-1]


def earlier_bisect(results: Path, asked: Mapping[str, Any], machine: str) -> Path | None:
    """The newest bisect with these options that has an answer, or that can go on here; None where there is none.

    Args:
        asked: Options as plain values.
        machine: Id of this machine, on which alone an unfinished one goes on.
    """
    for file in sorted(results.glob(f"*/{BEGUN_FILE}"), reverse=True):
        try:
            begun: BegunBisect = adapter(BegunBisect).validate_json(read_document(file))
        except (RunError, ValidationError):  # who goes on with it is told
            continue
        is_usable = begun.machine == machine or (file.parent / BISECTION_FILE).is_file()
        if is_usable and asked.items() <= begun.options.items():
            return file.parent
    return None


def read_bisection(folder: Path) -> Bisection | None:
    """What a bisect found; None where it is not finished.

    Raises:
        RunError: It is damaged.
    """
    file = folder / BISECTION_FILE
    if not file.is_file():
        return None
    with parsing(file, "begin the bisect again"):
        found: Bisection = adapter(Bisection).validate_json(read_document(file))
    return found


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
