"""Comparisons, explanations, bisects and tunings on disk: work that goes on where it was stopped or killed.

Each piece of work is a line of record.jsonl, written when it is done: its key, what it gave, its seconds. A comparison
or an explanation is whole once its document is there, which comes last; what it went on with is removed then. A bisect
or a tuning may come to its end several times: it asks the same again when it is told the same, so it is answered from
its lines until it comes to what was not done yet. results/README.md and docs/tuning.md have the files.
"""

import contextlib
import hashlib
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from harness.errors import Interrupted, PlaceGone, RunError, UsageError
from harness.metrics import LATENCY
from harness.records.bisection import CommitPoint, Trial
from harness.records.comparison import Comparison, Explained
from harness.records.run import HostRecord, Round
from harness.store.evidence import utc_text
from harness.store.files import (
    FINISHED_FILE,
    TURNS_FILE,
    FileRecord,
    adapter,
    describe_folder,
    finished_document,
    line_of,
    parsed,
    read_records,
    read_value,
    writing,
)
from harness.store.folders import BISECT, COMPARISON, EXPLANATION, TUNING, Kind
from harness.store.run_directory import HEADER_FILE, REPORT_FILE, Journal, make_folder, new_run_id
from harness.store.schema import write_tables

RECORD_FILE = "record.jsonl"
VARIANT_FILE, SPEC_FILE = "tuned.toml", "spec.mlir"
SUITES_FOLDER = "suites"
_GENERATION = "generation/"
_REMEDY = "remove it, and what it says is done again"
_ELSEWHERE = "make room or name another folder with --out"

_Directory = TypeVar("_Directory", bound="WorkDirectory")


@dataclass(frozen=True, kw_only=True)
class Begun:
    """What work was begun with."""

    created: str  # ISO 8601, UTC
    machine: str  # Id of the machine that it is measured on
    options: dict[str, Any]  # The user's, as plain values
    command: tuple[str, ...]  # The command line
    noise: float = 0.0  # The smallest change that this machine was found to see, as a share; 0: not known
    history: tuple[str, ...] = ()  # Of a bisect over releases: those that are searched, as the index had them
    commits: tuple[CommitPoint, ...] = ()  # Of a bisect over commits: likewise, and `history` has their names


@dataclass(frozen=True, kw_only=True)
class Done:
    """A piece of work, as it is kept."""

    key: str
    value: Any  # What it gave, as JSON has it: tuples are lists
    seconds: float = 0.0  # What it took


class WorkDirectory(Journal):
    """Work that is being done. Use `create` or `resume`, as a context manager, in which what was done is known."""

    kind: ClassVar[Kind[Any]]

    def __init__(self, path: Path, begun: Begun | None = None) -> None:
        super().__init__(path)
        self.what = self.kind.name
        self._begun = begun  # None: it cannot go on where it is stopped
        self._done: list[Done] = []

    @classmethod
    def create(
        cls: type[_Directory], results: Path, suite: str, now: datetime, begun: Begun | None = None
    ) -> _Directory:
        """Make the folder `<time>-<suite>-<command>`, whose name is the id of what it will hold."""
        directory = cls(make_folder(results, f"{new_run_id(suite, now)}-{cls.kind.command}"), begun)
        if begun is not None:
            directory.write_value(cls.kind.begun_file, begun)
        return directory

    @classmethod
    def resume(cls: type[_Directory], path: Path) -> _Directory:
        """Open it to go on with it."""
        kind = cls.kind
        if kind.files and kind.is_at(path):
            raise RunError(f"{path}: this {kind.name} is finished and is not written again; start a new one")
        if not (path / kind.begun_file).is_file():
            why = f"it has no {kind.begun_file}"
            raise RunError(f"{path}: is no {kind.name} that can go on ({why}); begin it again")
        return cls(path, read_value(path / kind.begun_file, Begun, f"begin the {kind.name} again"))

    def begin(self) -> None:
        """Read what was done."""
        super().begin()
        self._done = read_records(self.path / RECORD_FILE, Done, _REMEDY)

    @property
    def begun(self) -> Begun:
        """What it was begun with, by the harness that began it."""
        assert self._begun is not None  # noqa: S101 (what asks goes on, or can go on)
        return self._begun

    def remember(self, key: str, value: Any, seconds: float = 0.0) -> Done:
        """Keep what a piece of work gave, once it is done; it is given back as the next harness reads it."""
        done: Done = adapter(Done).validate_json(line_of(Done(key=key, value=value, seconds=seconds)))
        if self._begun is not None:
            self.append_to(RECORD_FILE, done)
        self._done.append(done)
        return done

    def remembered(self, key: str) -> Done | None:
        """A piece of work, as it was done last; None: it was not done yet."""
        return next((done for done in reversed(self._done) if done.key == key), None)

    def all_of(self, topic: str, kind: Any) -> list[tuple[str, Any]]:
        """The pieces of work with keys of a topic, as in `run/base`: what stands behind the topic, and the value."""
        return [
            (done.key.removeprefix(f"{topic}/"), parsed(done.value, kind, self.path / RECORD_FILE, _REMEDY))
            for done in self._done
            if done.key.startswith(f"{topic}/")
        ]

    def keep_run(self, name: str, run: Path) -> None:
        """Keep which run is made for a side or a position, as soon as it begins."""
        self.remember(f"run/{name}", str(run))

    def runs(self, here: Path = Path()) -> dict[str, Path]:
        """The runs that were made or begun for sides or positions, by name: those that are there, from here."""
        found = {name: Path(run) for name, run in self.all_of("run", str)}
        return {name: run for name, run in found.items() if (here / run / HEADER_FILE).is_file()}

    @property
    def can_go_on(self) -> bool:
        """Whether there is anything that need not be done again."""
        return self._begun is not None and (bool(self._done) or (self.path / TURNS_FILE).exists())

    @property
    def command_to_go_on(self) -> str:
        """What goes on with it; what begins it anew, where there is nothing of it."""
        if self._begun is not None and not self.can_go_on:
            return shlex.join(self._begun.command)
        return f"harness {self.kind.command} --resume {shlex.quote(str(self.path))}"

    def write_suite(self, name: str, text: str) -> Path:
        """Write a suite of variants that are to be measured; its file."""
        return self.write(f"{SUITES_FOLDER}/{name}.toml", text)

    def finish(self, document: bytes | str, report: str) -> None:
        """Write what there is at the end, as JSON and as a report."""
        self.write(REPORT_FILE, report)
        self.write(self.kind.file, document)

    def _remove(self, *names: str) -> None:
        for name in names:
            (self.path / name).unlink(missing_ok=True)


# --- What is made of two sides ---


@dataclass(frozen=True, kw_only=True)
class KeptGeneration:
    """What a generation of a row gave."""

    modules: str  # What was measured: both sides' modules and how they were run
    gave: Any


class SidesDirectory(WorkDirectory):
    """A comparison or an explanation being written; nothing is left where it ends early and measured nothing."""

    rounds: tuple[Round, ...] = ()  # Of generations that earlier stretches ended: the others count for nothing

    def begin(self) -> None:
        """Read what was measured, and drop the rounds of generations that were cut short."""
        super().begin()
        ended = {done.key for done in self._done}
        rounds = read_records(self.path / TURNS_FILE, Round, _REMEDY)
        self.rounds = tuple(kept for kept in rounds if self._key(kept.group, LATENCY.name, kept.generation) in ended)
        if rounds:
            self.write(TURNS_FILE, b"".join(line_of(kept) + b"\n" for kept in self.rounds))

    @staticmethod
    def _key(row: str, metric: str, number: int) -> str:
        return f"{_GENERATION}{row}/{metric}/{number}"

    @property
    def measured(self) -> int:
        """How many generations are kept."""
        return sum(done.key.startswith(_GENERATION) for done in self._done)

    def keep_generation(self, row: str, metric: str, number: int, modules: str, gave: Any) -> None:
        """Keep what a generation of these modules gave, once it has ended."""
        self.remember(self._key(row, metric, number), KeptGeneration(modules=modules, gave=gave))

    def generations(self, row: str, metric: str, modules: str, kind: Any) -> dict[int, Any]:
        """What those of a row gave that are kept, by number; they have to be of these modules."""
        kept = {int(number): each for number, each in self.all_of(f"{_GENERATION}{row}/{metric}", KeptGeneration)}
        if any(each.modules != modules for each in kept.values()):
            raise RunError(
                f"{self.path}: {row} was measured with other modules than its runs have now; begin the "
                f"{self.kind.name} again"
            )
        return {number: parsed(each.gave, kind, self.path / RECORD_FILE, _REMEDY) for number, each in kept.items()}

    def __exit__(self, *error: object) -> None:
        super().__exit__()
        kind = error[0] if error else None
        is_stopped = isinstance(kind, type) and issubclass(kind, KeyboardInterrupt | Interrupted | PlaceGone)
        is_measured = (self.path / TURNS_FILE).exists() or self.measured > 0
        if kind is not None and not is_measured and not (is_stopped and self.can_go_on):
            with contextlib.suppress(OSError):
                self._remove(self.kind.begun_file, RECORD_FILE)
                self.path.rmdir()

    def finish(self, document: bytes | str, report: str) -> None:
        """Write the document, as JSON, and the report; what is whole has its hashes, so that it comes last."""
        document = document if isinstance(document, bytes) else document.encode()
        own = FileRecord(sha256=hashlib.sha256(document).hexdigest(), bytes=len(document))
        try:
            self.write(REPORT_FILE, report)
            with self.writing():
                files = describe_folder(self.path, self.kind.files)
            self.write(FINISHED_FILE, finished_document({**files, self.kind.file: own}))
            self.write(self.kind.file, document)
        except BaseException:
            with contextlib.suppress(OSError):
                self._remove(REPORT_FILE, FINISHED_FILE, self.kind.file)
            raise
        self._remove(self.kind.begun_file, RECORD_FILE)


class ExplanationDirectory(SidesDirectory):
    """An explanation being written."""

    kind = EXPLANATION


class ComparisonDirectory(SidesDirectory):
    """A comparison being written."""

    kind = COMPARISON

    def keep_placed(self, placed: Mapping[str, str], hosts: Sequence[HostRecord]) -> None:
        """Keep which host of a fleet measures each row, by the row's name, and what these hosts are like."""
        for host in hosts:  # first: a row's host is known
            self.remember(f"host/{host.name}", host.environment)
        for row, name in placed.items():
            self.remember(f"placed/{row}", name)

    def placed(self) -> dict[str, str]:
        """The host of each row, by the row's name."""
        return dict(self.all_of("placed", str))

    def hosts(self) -> tuple[HostRecord, ...]:
        """What each host of a row is like, by name."""
        found = dict(self.all_of("host", dict[str, Any]))
        return tuple(HostRecord(name=name, environment=found[name]) for name in sorted(found))

    def keep_round(self, measured: Round) -> None:
        """Keep the turns of one round, at once."""
        self.append_to(TURNS_FILE, measured)

    def finish(self, document: bytes | str, report: str, comparison: Comparison | None = None) -> None:
        """Write the comparison itself, as JSON, its report and its tables."""
        if comparison is not None:
            with self.writing():
                write_tables(self.path, {"comparisons": comparison_rows(comparison)})
        super().finish(document, report)


def comparison_rows(comparison: Comparison) -> list[dict[str, Any]]:
    """The rows of the table `comparisons`: one for each of the comparison's."""
    explained = {each.case: adapter(Explained).dump_json(each).decode() for each in comparison.explained}
    return [
        {
            **vars(row),
            "comparison": comparison.id,
            "created": utc_text(comparison.created),
            "base_run": comparison.base.run,
            "head_run": comparison.head.run,
            "machine": comparison.machine.description,
            "gate": row.gate or "",
            "command": shlex.join(comparison.command),
            "within": comparison.within,
            "base_commit": comparison.base.commit,
            "head_commit": comparison.head.commit,
            "explained": explained.get(row.case, "") if row.metric == LATENCY.name and not row.control else "",
        }
        for row in comparison.rows
    ]


# --- Bisects ---


@dataclass(frozen=True, kw_only=True)
class KeptSentence:
    """What the compiler does differently across a step."""

    text: str = ""  # In a sentence; "": nothing is known
    explanation: str = ""  # Id of the explanation that says more; "" likewise


class BisectDirectory(WorkDirectory):
    """A bisect being written. Of one that has come to its end, what stayed open is measured again."""

    kind = BISECT
    attempt = 0  # How often it went on after it had come to its end

    @classmethod
    def resume(cls, path: Path) -> "BisectDirectory":
        """Open a bisect to go on with it."""
        if BISECT.is_at(path) and not BISECT.load(path).is_open:
            raise RunError(f"{path}: this bisect has its answer; `harness report {path}` prints it")
        return super().resume(path)

    def begin(self) -> None:
        """Read what was measured; once the bisect has come to its end, this is another attempt."""
        super().begin()
        self.attempt = BISECT.load(self.path).attempt + 1 if BISECT.is_at(self.path) else 0

    @property
    def kept(self) -> list[Trial]:
        """All measurements, in order."""
        return [trial for _, trial in self.all_of("trial", Trial)]

    def answer(self, asked: tuple[str, str, float]) -> Trial | None:
        """What was measured of a question; None: nothing, or it stayed open and is to be measured again."""
        found = next((trial for trial in reversed(self.kept) if trial.key == asked), None)
        return None if found is not None and found.is_open and found.attempt < self.attempt else found

    def keep_trial(self, trial: Trial) -> Trial:
        """Keep a measurement, once it has ended; it is given back as it is kept."""
        kept = replace(trial, attempt=self.attempt)
        self.remember(f"trial/{trial.base}/{trial.head}", kept)
        return kept

    def sentence(self, step: str) -> KeptSentence | None:
        """What explains a step, by both of its positions; None: it was not explained yet."""
        return dict(self.all_of("explained", KeptSentence)).get(step)


def has_answer(folder: Path) -> bool:
    """Whether a bisect knows all that it was asked."""
    return BISECT.is_at(folder) and BISECT.load(folder).finished


def earlier_bisect(results: Path, asked: Mapping[str, Any], machine: str) -> Path | None:
    """The newest bisect with these options that has an answer, or that can go on here; None where there is none."""
    for file in sorted(results.glob(f"*/{BISECT.begun_file}"), reverse=True):
        with contextlib.suppress(RunError):  # who goes on with it is told
            begun = read_value(file, Begun, "")
            if asked.items() <= begun.options.items() and (begun.machine == machine or has_answer(file.parent)):
                return file.parent
    return None


# --- Tunings ---


class TuneDirectory(WorkDirectory):
    """A tuning being written. Use `open`, as a context manager."""

    kind = TUNING
    remedy = _ELSEWHERE

    @classmethod
    def open(cls, path: Path, begun: Begun) -> "TuneDirectory":
        """Make the folder of a search, or go on with the one that is there, which has to be the same."""
        file = path / TUNING.begun_file
        begun = parsed(adapter(Begun).dump_json(begun), Begun, file, "")  # as it is read again
        if file.is_file():
            before = read_value(file, Begun, "name another folder with --out")
            if before.machine != begun.machine:
                raise UsageError(f"--out: {path} is a search of another machine; name another folder")
            # What an earlier harness did not write down is not known to differ.
            other = sorted(name for name, value in before.options.items() if value != begun.options.get(name))
            if other:
                raise UsageError(
                    f"--out: {path} is a search with another {' and another '.join(other)}; give the same again, or "
                    "name another folder"
                )
            begun = replace(begun, created=before.created)
        elif path.exists() and (not path.is_dir() or any(path.iterdir())):
            raise UsageError(f"--out: {path} holds something else than a search of `harness tune`; name another folder")
        with writing(path, _ELSEWHERE):
            path.mkdir(parents=True, exist_ok=True)
        directory = cls(path, begun)
        directory.write_value(TUNING.begun_file, begun)
        return directory

    def write_or_remove(self, file: str, text: str) -> None:
        """Write the variant or its spec; "" takes away that of an earlier search."""
        if text:
            self.write(file, text)
            return
        with self.writing():
            self._remove(file)
