"""Bisects and tunings on disk: searches that go on where they were stopped, killed or left something open.

<results>/<time>-<suite>-bisect/
    begun.json      the options that it was begun with, what is searched, the runs that were made for it, and what
                    explains its steps
    trials.jsonl    one JSON line a measurement, written when it has ended
    suites/         where variants are searched: the suite of each set of parts
    bisection.json  the document that `--format json` prints, each time that a bisect has come to its end
    report.md       the report

<out>/<model>@<device>/
    tuning-begun.json  when, where and with which options the search was begun
    record.jsonl       one JSON line a piece of work, written when it is done: its key, what it gave, its seconds
    suites/            suites of the variants that the search measures
    tuned.toml         the variant, for `variant_files` of a suite, once it is confirmed
    spec.mlir          its tuning spec, for `iree-compile --iree-codegen-tuning-spec-path`
    tuning.json        the document that `--format json` prints, each time that a search has come to its end
    report.md, race.*  the report, and a picture of the race

A search asks the same again when it is told the same, so one that goes on is answered from its lines until it comes to
what was not done yet. Of a bisect that has come to its end, what stayed open is measured again.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from harness.errors import RunError, UsageError
from harness.records.bisection import Trial
from harness.store.files import adapter, writing
from harness.store.journal import (
    REPORT_FILE,
    Begun,
    Journal,
    make_folder,
    new_run_id,
    read_records,
    read_value,
)
from harness.store.kinds import BISECT, TUNING

TRIALS_FILE, RECORD_FILE = "trials.jsonl", "record.jsonl"
VARIANT_FILE, SPEC_FILE = "tuned.toml", "spec.mlir"
SUITES_FOLDER = "suites"
_ELSEWHERE = "make room or name another folder with --out"


class SearchDirectory(Journal):
    """The folder of a search, which writes suites of what it measures and may come to its end several times."""

    def write_suite(self, name: str, text: str) -> Path:
        """Write a suite of variants that are to be measured; its file."""
        return self.write(f"{SUITES_FOLDER}/{name}.toml", text)


# --- Bisects ---


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


class BisectDirectory(SearchDirectory):
    """A bisect being written. Use `create` or `resume`, as a context manager."""

    what = "bisect"

    def __init__(self, path: Path, begun: BegunBisect) -> None:
        super().__init__(path)
        self.begun = begun
        self.kept: list[Trial] = []  # All measurements, in order; those of earlier stretches once it is entered

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
        file = path / BISECT.begun_file
        if not file.is_file():
            raise RunError(f"{path}: is no bisect that can go on (it has no {BISECT.begun_file}); begin it again")
        begun = read_value(file, BegunBisect, "begin the bisect again")
        if BISECT.is_at(path) and not BISECT.load(path).is_open:
            raise RunError(f"{path}: this bisect has its answer; `harness report {path}` prints it")
        return cls(path, begun)

    def begin(self) -> None:
        """Read what was measured; once the bisect has come to its end, this is another attempt."""
        super().begin()
        self.kept = read_records(self.path / TRIALS_FILE, Trial, "remove it, and what it says is measured again")
        if BISECT.is_at(self.path) and BISECT.load(self.path).attempt == self.begun.attempt:
            self.begun = replace(self.begun, attempt=self.begun.attempt + 1)
            self._keep_begun()

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
        self.append_to(TRIALS_FILE, kept)
        self.kept.append(kept)
        return kept

    def finish(self, document: str, report: str) -> None:
        """Write what there is at the end, as JSON and as a report."""
        self.write(REPORT_FILE, report)
        self.write(BISECT.file, document)

    def _keep_begun(self) -> None:
        self.write_value(BISECT.begun_file, self.begun)


def has_answer(folder: Path) -> bool:
    """Whether a bisect knows all that it was asked."""
    return BISECT.is_at(folder) and BISECT.load(folder).finished


def earlier_bisect(results: Path, asked: Mapping[str, Any], machine: str) -> Path | None:
    """The newest bisect with these options that has an answer, or that can go on here; None where there is none."""
    for file in sorted(results.glob(f"*/{BISECT.begun_file}"), reverse=True):
        try:
            begun = read_value(file, BegunBisect, "")
        except RunError:  # who goes on with it is told
            continue
        if asked.items() <= begun.options.items() and (begun.machine == machine or has_answer(file.parent)):
            return file.parent
    return None


# --- Tunings ---


@dataclass(frozen=True, kw_only=True)
class Done:
    """A piece of work, as it is kept."""

    key: str
    value: Any  # What it gave, as JSON has it
    seconds: float  # What it took


class TuneDirectory(SearchDirectory):
    """A tuning being written. Use `create`, as a context manager."""

    what = "search"
    remedy = _ELSEWHERE

    def __init__(self, path: Path, begun: Begun) -> None:
        super().__init__(path)
        self.begun = begun  # What it was begun with, by the harness that began it
        self._done: dict[str, Done] = {}

    @classmethod
    def create(cls, path: Path, begun: Begun) -> TuneDirectory:
        """Make the folder of a search, or go on with the one that is there."""
        file = path / TUNING.begun_file
        begun = adapter(Begun).validate_json(adapter(Begun).dump_json(begun))  # as it is read again
        if file.is_file():
            begun = replace(begun, created=_same_search(path, _read_begun(file), begun))
        elif path.exists() and (not path.is_dir() or any(path.iterdir())):
            raise UsageError(f"--out: {path} holds something else than a search of `harness tune`; name another folder")
        with writing(path, _ELSEWHERE):
            path.mkdir(parents=True, exist_ok=True)
        directory = cls(path, begun)
        directory.write_value(TUNING.begun_file, begun)
        return directory

    def begin(self) -> None:
        """Read what was done."""
        super().begin()
        self._done = {piece.key: piece for piece in _read_record(self.path)}

    def remembered(self, key: str) -> Done | None:
        """A piece of work, its value as JSON has it: tuples are lists; None: it was not done yet."""
        return self._done.get(key)

    def remember(self, key: str, value: Any, seconds: float) -> Done:
        """Keep what a piece of work gave, once it is done; it is given back as the next harness reads it."""
        done = Done(key=key, value=json.loads(json.dumps(value, allow_nan=False)), seconds=seconds)
        self.append_to(RECORD_FILE, done)
        self._done[key] = done
        return done

    def write_or_remove(self, file: str, text: str) -> Path:
        """Write the variant or its spec; "" takes away that of an earlier search. Its file."""
        if text:
            return self.write(file, text)
        with self.writing():
            (self.path / file).unlink(missing_ok=True)
        return self.path / file

    def finish(self, document: str, report: str, pictures: Mapping[str, bytes]) -> None:
        """Write what there is at the end."""
        for name, content in pictures.items():
            self.write(name, content)
        self.write(REPORT_FILE, report)
        self.write(TUNING.file, document)


def remembered_in(folder: Path, machine: str, options: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """What a search has remembered so far, by key. Another harness may be writing it."""
    file = folder / TUNING.begun_file
    if not file.is_file():
        return {}
    begun, options = _read_begun(file), options or {}
    if begun.machine != machine or any(begun.options.get(name, value) != value for name, value in options.items()):
        return {}
    return {piece.key: piece.value for piece in _read_record(folder)}


def _same_search(path: Path, before: Begun, now: Begun) -> str:
    """When the search in a folder was begun, which has to be the one that is asked for."""
    if before.machine != now.machine:
        raise UsageError(
            f"--out: {path} is a search of another machine, whose times say nothing about this one; name another folder"
        )
    # What an earlier harness did not write down is not known to differ.
    other = sorted(name for name, value in before.options.items() if value != now.options.get(name))
    if other:
        raise UsageError(
            f"--out: {path} is a search with another {' and another '.join(other)}; give the same again, or name "
            "another folder"
        )
    return before.created


def _read_begun(file: Path) -> Begun:
    return read_value(file, Begun, "name another folder with --out")


def _read_record(folder: Path) -> list[Done]:
    return read_records(folder / RECORD_FILE, Done, "remove it, and what it says is done again")
