"""Tunings on disk, so that a search that was stopped or killed goes on where it was.

<out>/<model>@<device>/
    tuning-begun.json  when, where and with which options the search was begun
    record.jsonl       one JSON line a piece of work, written when it is done: its key, what it gave, its seconds
    suites/            suites of the variants that the search measures
    tuned.toml         the variant, for `variant_files` of a suite, once it is confirmed
    spec.mlir          its tuning spec, for `iree-compile --iree-codegen-tuning-spec-path`
    tuning.json        the document that `--format json` prints, each time that a search has come to its end
    report.md, race.*  the report, and a picture of the race

A search asks for the same work when it is told the same, so one that goes on is answered from record.jsonl until it
comes to what was not done yet.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout
from pydantic import ValidationError

from harness.cache import write_atomically
from harness.errors import RunError, UsageError
from harness.records.tuning import Tuning
from harness.store.documents import parse_kept
from harness.store.files import adapter, ends_in_newline, read_document, read_lines, writing
from harness.store.run_directory import append_line

TUNING_FILE, TUNING_BEGUN_FILE, RECORD_FILE = "tuning.json", "tuning-begun.json", "record.jsonl"
VARIANT_FILE, SPEC_FILE = "tuned.toml", "spec.mlir"
SUITES_FOLDER = "suites"
# Raised when a name changes its meaning or goes away; new names may appear without.
TUNING_VERSION = 1
_REPORT_FILE, _LOCK_FILE = "report.md", ".lock"
# A spec holds each operation as text, and a model may have many.
_LONGEST_SPEC = 4_000_000
# Folders of a results folder or of an out folder, and theirs: `tuned/rdb@cpu`, `results/tuned/rdb@cpu`.
_PLACES = (".", "*", "*/*")


@dataclass(frozen=True, kw_only=True)
class BegunTuning:
    """What a search was begun with."""

    created: str  # ISO 8601, UTC
    machine: str  # Id of the machine that it measures on
    options: dict[str, Any]  # The user's, as plain values
    command: tuple[str, ...]  # The command line


@dataclass(frozen=True, kw_only=True)
class Done:
    """A piece of work, as it is kept."""

    key: str
    value: Any  # What it gave, as JSON has it
    seconds: float  # What it took


class TuneDirectory:
    """A search being written. Use `create`, as a context manager.

    Attributes:
        begun: What it was begun with, by the harness that began it.
    """

    def __init__(self, path: Path, begun: BegunTuning) -> None:
        self.path = path
        self.begun = begun
        self._done: dict[str, Done] = {}
        self._lock = FileLock(path / _LOCK_FILE)

    @classmethod
    def create(cls, path: Path, begun: BegunTuning) -> TuneDirectory:
        """Make the folder of a search, or go on with the one that is there."""
        file = path / TUNING_BEGUN_FILE
        begun = adapter(BegunTuning).validate_json(adapter(BegunTuning).dump_json(begun))  # as it is read again
        if file.is_file():
            begun = replace(begun, created=_same_search(path, _read_begun(file), begun))
        elif path.exists() and (not path.is_dir() or any(path.iterdir())):
            raise UsageError(f"--out: {path} holds something else than a search of `harness tune`; name another folder")
        directory = cls(path, begun)
        with _writing(path):
            path.mkdir(parents=True, exist_ok=True)
            write_atomically(file, adapter(BegunTuning).dump_json(begun, indent=1))
        return directory

    def __enter__(self) -> TuneDirectory:
        with _writing(self.path):
            try:
                self._lock.acquire(timeout=0)
            except Timeout:
                raise RunError(f"{self.path}: another harness is writing this search; wait for it or stop it") from None
        try:
            _mend_record(self.path / RECORD_FILE)
            self._done = {piece.key: piece for piece in _read_record(self.path / RECORD_FILE)}
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(OSError):  # before the release: after it, the file may be another harness's lock
            (self.path / _LOCK_FILE).unlink()
        self._lock.release()

    def remembered(self, key: str) -> Done | None:
        """A piece of work, its value as JSON has it: tuples are lists; None: it was not done yet."""
        return self._done.get(key)

    def remember(self, key: str, value: Any, seconds: float) -> Done:
        """Keep what a piece of work gave, once it is done; it is given back as the next harness reads it."""
        line = json.dumps({"key": key, "value": value, "seconds": seconds}, allow_nan=False)
        with _writing(self.path):
            append_line(self.path / RECORD_FILE, f"{line}\n".encode())
        self._done[key] = Done(key=key, value=json.loads(line)["value"], seconds=seconds)
        return self._done[key]

    def write_suite(self, name: str, text: str) -> Path:
        """Write a suite of variants that are to be measured; its file."""
        return self._write(f"{SUITES_FOLDER}/{name}.toml", text)

    def write_variant(self, text: str) -> Path:
        """Write the variant, in TOML; "" takes away that of an earlier search. Its file."""
        return self._write(VARIANT_FILE, text)

    def write_spec(self, text: str) -> Path:
        """Write the variant's tuning spec; "" takes away that of an earlier search. Its file."""
        return self._write(SPEC_FILE, text)

    def finish(self, document: str, report: str, pictures: Mapping[str, bytes]) -> None:
        """Write what there is at the end."""
        with _writing(self.path):
            for name, content in pictures.items():
                write_atomically(self.path / name, content)
            write_atomically(self.path / _REPORT_FILE, report.encode(errors="replace"))
            write_atomically(self.path / TUNING_FILE, document.encode(errors="replace"))

    def _write(self, name: str, text: str) -> Path:
        file = self.path / name
        with _writing(self.path):
            if text:
                write_atomically(file, text.encode())
            else:
                file.unlink(missing_ok=True)
        return file


def is_tuning(path: Path) -> bool:
    """Whether a directory is a search that has come to its end."""
    return (path / TUNING_FILE).is_file()


def load_tuning(folder: Path) -> Tuning:
    """Read what a search found."""
    file = folder / TUNING_FILE
    document = parse_kept(
        read_document(file), str(file), what="tuning", version=TUNING_VERSION, longest_text=_LONGEST_SPEC
    )
    fields = {name: value for name, value in document.items() if name != "schema_version"}
    try:
        found: Tuning = adapter(Tuning).validate_python(fields)
    except ValidationError as error:
        where = ".".join(map(str, error.errors()[0]["loc"]))
        raise RunError(f"{file}: is damaged at {where}; call `harness tune` with the same --out again") from None
    return found


def remembered_in(folder: Path, machine: str, options: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """What a search has remembered so far, by key. Another harness may be writing it."""
    file = folder / TUNING_BEGUN_FILE
    if not file.is_file():
        return {}
    begun, options = _read_begun(file), options or {}
    if begun.machine != machine or any(begun.options.get(name, value) != value for name, value in options.items()):
        return {}
    return {piece.key: piece.value for piece in _read_record(folder / RECORD_FILE)}


def tunings_in(place: Path) -> list[Path]:
    """The searches that have come to their end in a folder, or in a folder of that: of a results or an out folder."""
    return sorted({file.parent for pattern in _PLACES for file in place.glob(f"{pattern}/{TUNING_FILE}")})


def _same_search(path: Path, before: BegunTuning, now: BegunTuning) -> str:
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


def _read_begun(file: Path) -> BegunTuning:
    try:
        begun: BegunTuning = adapter(BegunTuning).validate_json(read_document(file))
    except ValidationError:
        raise RunError(f"{file}: is damaged; name another folder with --out") from None
    return begun


def _mend_record(file: Path) -> None:
    """Take away a last line that was cut short."""
    if file.is_file() and not ends_in_newline(file):
        with _writing(file.parent):
            write_atomically(file, b"".join(line + b"\n" for line in read_lines(file)))


def _read_record(file: Path) -> list[Done]:
    """What was done, but for a last line that is cut short."""
    if not file.is_file():
        return []
    done: list[Done] = []
    for number, line in enumerate(read_lines(file), start=1):
        try:
            done.append(adapter(Done).validate_json(line))
        except ValidationError:
            raise RunError(f"{file}: line {number} is damaged; remove it, and what it says is done again") from None
    return done


def _writing(path: Path) -> contextlib.AbstractContextManager[None]:
    return writing(path, "make room or name another folder with --out")
