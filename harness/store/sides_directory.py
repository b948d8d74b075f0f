"""Comparisons and explanations on disk: what is made of two sides, so that every figure of a report can be looked up.

<results>/<id>/
    comparison.json    the document that `--format json` prints; of an explanation explanation.json
    rounds.jsonl       of a comparison every turn that was timed for it: one JSON line a round, its group the row's case
    compiles.jsonl     every compile that was timed for it
    report.md          the full report
    tables/            a comparison's rows of a results folder's tables, see harness.store.tables
    finished.json      the hash of every file

The document makes it a comparison or an explanation, so it comes last. Until then `--resume` goes on with

    unfinished.json    the options that it was begun with, and the runs that were made for its sides; of an explanation
                       unfinished-explanation.json
    generations.jsonl  one JSON line a generation: what it gave, or how it failed

A generation has its line when it has ended. Rounds of one that has none were cut short, and count for nothing.
"""

import contextlib
import hashlib
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from harness.errors import Interrupted, PlaceGone, RunError
from harness.metrics import LATENCY
from harness.records.comparison import Comparison, Explained
from harness.records.run import Failure, HostRecord, Round
from harness.store.clock import utc_text
from harness.store.database import write_tables
from harness.store.files import (
    FINISHED_FILE,
    TURNS_FILE,
    FileRecord,
    adapter,
    describe_folder,
    finished_document,
    line_of,
)
from harness.store.journal import (
    REPORT_FILE,
    Begun,
    Journal,
    make_folder,
    new_run_id,
    read_records,
    read_value,
)
from harness.store.kinds import COMPARISON, COMPILES_FILE, EXPLANATION, Kind

GENERATIONS_FILE = "generations.jsonl"
_REMEDY = "remove it, or begin again"

_Directory = TypeVar("_Directory", bound="SidesDirectory")


@dataclass(frozen=True, kw_only=True)
class KeptGeneration:
    """What a generation of a row gave, in the words of `harness.compare.task.Generation`, or how it failed."""

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


class SidesDirectory(Journal):
    """What is made of two sides, being written. Use `create` or `resume`, as a context manager.

    It leaves nothing behind where it ends early and nothing was measured, but for what can go on.
    """

    kind: ClassVar[Kind[Any]]

    def __init__(self, path: Path, begun: Begun | None = None) -> None:
        super().__init__(path)
        self.begun = begun  # None: it cannot go on where it is stopped
        self.generations: tuple[KeptGeneration, ...] = ()  # Of earlier stretches; there once it is entered

    @classmethod
    def create(
        cls: type[_Directory], results: Path, suite: str, now: datetime, begun: Begun | None = None
    ) -> _Directory:
        """Make the folder `<time>-<suite>-<command>`, whose name is the id of what it will hold."""
        directory = cls(make_folder(results, f"{new_run_id(suite, now)}-{cls.kind.command}"), begun)
        directory._keep_begun()
        return directory

    @classmethod
    def resume(cls: type[_Directory], path: Path) -> _Directory:
        """Open it to go on with it."""
        kind = cls.kind
        if kind.is_at(path):
            raise RunError(f"{path}: this {kind.name} is finished and is not written again; start a new one")
        file = path / kind.begun_file
        if not file.is_file():
            why = f"it has no {kind.begun_file}"
            raise RunError(f"{path}: is no {kind.name} that can go on ({why}); {kind.command} its two sides again")
        return cls(path, read_value(file, Begun, f"{kind.command} the two sides again"))

    def begin(self) -> None:
        """Leave the files with the generations that have ended, and their rounds."""
        super().begin()
        generations = read_records(self.path / GENERATIONS_FILE, KeptGeneration, _REMEDY)
        rounds = read_records(self.path / TURNS_FILE, Round, _REMEDY)
        ended = {(kept.row, kept.generation) for kept in generations if kept.metric == LATENCY.name}
        rounds = [kept for kept in rounds if (kept.group, kept.generation) in ended]
        files: dict[str, Sequence[Any]] = {GENERATIONS_FILE: generations, TURNS_FILE: rounds}
        for name, records in files.items():
            if (self.path / name).is_file():
                self.write(name, b"".join(line_of(record) + b"\n" for record in records))
        self.generations = tuple(generations)

    def __exit__(self, *error: object) -> None:
        super().__exit__()
        kind = error[0] if error else None
        is_stopped = isinstance(kind, type) and issubclass(kind, KeyboardInterrupt | Interrupted | PlaceGone)
        if kind is not None and not self._is_measured() and not (is_stopped and self.can_go_on):
            with contextlib.suppress(OSError):
                (self.path / self.kind.begun_file).unlink(missing_ok=True)
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
        return f"harness {self.kind.command} --resume {shlex.quote(str(self.path))}"

    def _is_measured(self) -> bool:
        return any((self.path / name).exists() for name in (TURNS_FILE, GENERATIONS_FILE))

    def _keep_begun(self) -> None:
        if self.begun is not None:
            self.write_value(self.kind.begun_file, self.begun)

    def keep_run(self, side: str, run: Path) -> None:
        """Keep which run is made for a side, as soon as it begins."""
        if self.begun is not None:
            self.begun = replace(self.begun, runs={**self.begun.runs, side: str(run)})
            self._keep_begun()

    def keep_generation(self, kept: KeptGeneration) -> None:
        """Keep what a generation gave, once it has ended."""
        self.append_to(GENERATIONS_FILE, kept)

    def finish(self, document: bytes, report: str) -> None:
        """Write the document, as JSON, and the report."""
        try:
            self.write(REPORT_FILE, report)
            with self.writing():
                files = describe_folder(self.path, self.kind.files)
            # What is whole has its hashes, so that it comes last.
            own = FileRecord(sha256=hashlib.sha256(document).hexdigest(), bytes=len(document))
            self.write(FINISHED_FILE, finished_document({**files, self.kind.file: own}))
            self.write(self.kind.file, document)
        except BaseException:
            with contextlib.suppress(OSError):
                for name in (REPORT_FILE, FINISHED_FILE, self.kind.file):
                    (self.path / name).unlink(missing_ok=True)
            raise
        for name in (self.kind.begun_file, GENERATIONS_FILE):
            (self.path / name).unlink(missing_ok=True)


class ExplanationDirectory(SidesDirectory):
    """An explanation being written."""

    kind, what = EXPLANATION, EXPLANATION.name


class ComparisonDirectory(SidesDirectory):
    """A comparison being written."""

    kind, what = COMPARISON, COMPARISON.name
    rounds: tuple[Round, ...] = ()  # Of the generations of the stretches before this one; there once it is entered

    def begin(self) -> None:
        """As of both; and read the rounds."""
        super().begin()
        if self.generations:
            self.rounds = tuple(read_records(self.path / TURNS_FILE, Round, _REMEDY))

    def keep_placed(self, placed: Mapping[str, Sequence[str]], hosts: Sequence[HostRecord]) -> None:
        """Keep which hosts of a fleet measure each row, by the row's name, and what these hosts are like."""
        if self.begun is not None:
            own = {host.name: host.environment for host in hosts}
            rows = {name: tuple(names) for name, names in placed.items()}
            with self._one_writes:
                self.begun = replace(
                    self.begun, placed={**self.begun.placed, **rows}, hosts={**self.begun.hosts, **own}
                )
                self._keep_begun()

    def keep_round(self, measured: Round) -> None:
        """Keep the turns of one round, at once."""
        self.append_to(TURNS_FILE, measured)

    def keep_compile(self, case: str, fields: Mapping[str, Any]) -> None:
        """Keep what one generation of compiles took."""
        self.append_to(COMPILES_FILE, {"case": case, **fields})

    def finish(self, document: bytes, report: str, comparison: Comparison | None = None) -> None:
        """Write the comparison itself, as JSON, its report and its tables."""
        if comparison is not None:
            with self.writing():
                write_tables(self.path, {"comparisons": comparison_rows(comparison)})
        super().finish(document, report)


def comparison_rows(comparison: Comparison) -> list[dict[str, Any]]:
    """The rows of the table `comparisons`: one for each of the comparison's."""
    same = ("case", "model", "variant", "device", "metric", "verdict", "ratio", "ci_low", "ci_high", "p", "floor")
    explained = {each.case: adapter(Explained).dump_json(each).decode() for each in comparison.explained}
    return [
        {
            "comparison": comparison.id,
            "created": utc_text(comparison.created),
            "base_run": comparison.base.run,
            "head_run": comparison.head.run,
            "machine": comparison.machine.description,
            **{name: getattr(row, name) for name in (*same, "base_value", "head_value", "unit", "control", "reason")},
            "gate": row.gate or "",
            "command": shlex.join(comparison.command),
            "within": comparison.within,
            "base_commit": comparison.base.commit,
            "head_commit": comparison.head.commit,
            "explained": explained.get(row.case, "") if row.metric == LATENCY.name and not row.control else "",
        }
        for row in comparison.rows
    ]
