"""What a comparison or an explanation keeps until it is finished, so that it can go on after it was stopped or killed.

    unfinished.json    the options that it was begun with, and the runs that were made for its sides; of an explanation
                       unfinished-explanation.json
    generations.jsonl  one JSON line a generation: what it gave, or how it failed

A generation has its line when it has ended. Rounds of one that has none were cut short, and count for nothing.
"""

from __future__ import annotations

import contextlib
import shlex
import threading
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from filelock import FileLock, Timeout
from pydantic import ValidationError

from harness.cache import write_atomically
from harness.errors import Interrupted, PlaceGone, RunError
from harness.metrics import LATENCY
from harness.records.run import Failure, Round
from harness.store.files import TURNS_FILE, adapter, line_of, read_document, read_lines
from harness.store.run_directory import append_line, make_folder, new_run_id, writing_results

UNFINISHED_FILE, GENERATIONS_FILE = "unfinished.json", "generations.jsonl"
UNFINISHED_EXPLANATION_FILE = "unfinished-explanation.json"
_LOCK_FILE = ".lock"

_Directory = TypeVar("_Directory", bound="UnfinishedDirectory")


@dataclass(frozen=True, kw_only=True)
class Begun:
    """What a comparison was begun with, an explanation or a bisect."""

    created: str  # ISO 8601, UTC
    machine: str  # Id of the machine that it is measured on
    options: dict[str, Any]  # The user's, as plain values
    command: tuple[str, ...]  # The command line
    noise: float = 0.0  # The smallest change that this machine was found to see, as a share; 0: not known
    # Folders of the runs that were made for its sides (of a bisect, its positions), finished or not, by name
    runs: dict[str, str] = field(default_factory=dict)
    # Of a fleet, the hosts of each row, by the row's name: as many as were there when it was begun
    placed: dict[str, tuple[str, ...]] = field(default_factory=dict)
    # What each of these is like, by name, as a run's `HostRecord` has it
    hosts: dict[str, dict[str, dict[str, Any]]] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class KeptGeneration:
    """What a generation of a row gave, in the words of `harness.compare.engine.Generation`, or how it failed."""

    row: str
    metric: str  # Of an explanation, how its dispatches were timed
    modules: str  # What was measured: both sides' modules and how they were run
    generation: int
    log_ratio: float | None = None
    base: float | None = None
    head: float | None = None
    rounds: int = 0
    seconds: float = 0.0
    by_own_time: int = 0
    taken: float | None = None
    host: str = ""
    failure: Failure | None = None
    # Of an explanation, where the time of a call of each side goes, in the words of `harness.explain.profile.Profile`
    spent: dict[str, dict[str, Any]] = field(default_factory=dict)


class UnfinishedDirectory:
    """A folder that is being written and can go on where it was stopped. Use it as a context manager.

    It leaves nothing behind where it ends early and nothing was measured, but for what can go on.

    Attributes:
        kind: What is written. command: the word that makes it. begun_file: where its options are. document: what it is
            whole with.
        begun: None: it cannot go on where it is stopped.
        generations: Of the stretches before this one; there once it is entered.
    """

    kind: ClassVar[str]
    command: ClassVar[str]
    begun_file: ClassVar[str]
    document: ClassVar[str]

    def __init__(self, path: Path, begun: Begun | None = None) -> None:
        self.path = path
        self.begun = begun
        self.generations: tuple[KeptGeneration, ...] = ()
        self._lock = FileLock(path / _LOCK_FILE)
        self._one_writes = threading.Lock()  # rows of a fleet are measured at the same time

    @classmethod
    def create(
        cls: type[_Directory], results: Path, suite: str, now: datetime, begun: Begun | None = None
    ) -> _Directory:
        """Make the folder `<time>-<suite>-<command>`, whose name is the id of what it will hold."""
        directory = cls(make_folder(results, f"{new_run_id(suite, now)}-{cls.command}"), begun)
        directory._keep_begun()
        return directory

    @classmethod
    def resume(cls: type[_Directory], path: Path) -> _Directory:
        """Open it to go on with it."""
        if (path / cls.document).is_file():
            raise RunError(f"{path}: this {cls.kind} is finished and is not written again; start a new one")
        file = path / cls.begun_file
        if not file.is_file():
            why = f"it has no {cls.begun_file}"
            raise RunError(f"{path}: is no {cls.kind} that can go on ({why}); {cls.command} its two sides again")
        try:
            begun: Begun = adapter(Begun).validate_json(read_document(file))
        except ValidationError:
            raise RunError(f"{file}: is damaged; {cls.command} the two sides again") from None
        return cls(path, begun)

    def __enter__(self: _Directory) -> _Directory:
        try:
            self._lock.acquire(timeout=0)
        except Timeout:
            raise RunError(
                f"{self.path}: another harness is writing this {self.kind}; wait for it or stop it"
            ) from None
        self.generations = read_generations(self.path)
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        with contextlib.suppress(OSError):  # before the release: after it, the file may be another harness's lock
            (self.path / _LOCK_FILE).unlink()
        self._lock.release()
        is_stopped = kind is not None and issubclass(kind, KeyboardInterrupt | Interrupted | PlaceGone)
        if kind is not None and not self._is_measured() and not (is_stopped and self.can_go_on):
            with contextlib.suppress(OSError):
                (self.path / self.begun_file).unlink(missing_ok=True)
                self.path.rmdir()

    @property
    def can_go_on(self) -> bool:
        """Whether there is anything that need not be done again."""
        return self.begun is not None and (bool(self.begun.runs) or self._is_measured())

    @property
    def command_to_go_on(self) -> str:
        """What goes on with it; what begins it anew, where there is nothing of it."""
        if self.begun is not None and not self.can_go_on:
            return shlex.join(self.begun.command)
        return f"harness {self.command} --resume {shlex.quote(str(self.path))}"

    def _is_measured(self) -> bool:
        return any((self.path / name).exists() for name in (TURNS_FILE, GENERATIONS_FILE))

    def _keep_begun(self) -> None:
        if self.begun is not None:
            with writing_results(self.path):
                write_atomically(self.path / self.begun_file, adapter(Begun).dump_json(self.begun, indent=1))

    def keep_run(self, side: str, run: Path) -> None:
        """Keep which run is made for a side, as soon as it begins."""
        if self.begun is not None:
            self.begun = replace(self.begun, runs={**self.begun.runs, side: str(run)})
            self._keep_begun()

    def keep_generation(self, kept: KeptGeneration) -> None:
        """Keep what a generation gave, once it has ended."""
        self._append(GENERATIONS_FILE, adapter(KeptGeneration).dump_json(kept))

    def _append(self, name: str, line: bytes) -> None:
        with self._one_writes, writing_results(self.path):
            append_line(self.path / name, line + b"\n")

    def _forget_unfinished(self) -> None:
        for name in (self.begun_file, GENERATIONS_FILE):
            (self.path / name).unlink(missing_ok=True)


def read_generations(folder: Path) -> tuple[KeptGeneration, ...]:
    """The generations of what is unfinished that have ended; its files are left with them and their rounds."""
    generations = _records(folder / GENERATIONS_FILE, KeptGeneration)
    ended = {(kept.row, kept.generation) for kept in generations if kept.metric == LATENCY.name}
    rounds = [kept for kept in _records(folder / TURNS_FILE, Round) if (kept.group, kept.generation) in ended]
    for name, records in ((GENERATIONS_FILE, generations), (TURNS_FILE, rounds)):
        if (folder / name).is_file():
            lines = b"".join(line_of(record) + b"\n" for record in records)
            write_atomically(folder / name, lines)
    return tuple(generations)


def read_rounds(folder: Path) -> tuple[Round, ...]:
    """The rounds of an unfinished comparison."""
    return tuple(_records(folder / TURNS_FILE, Round))


def _records(file: Path, kind: type[Any]) -> list[Any]:
    if not file.is_file():
        return []
    records = []
    for number, line in enumerate(read_lines(file), start=1):
        try:
            records.append(adapter(kind).validate_json(line))
        except ValidationError:
            raise RunError(f"{file}: line {number} is damaged; remove it, or begin again") from None
    return records
