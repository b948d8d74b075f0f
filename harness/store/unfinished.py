"""What a comparison keeps until it is finished, so that it can go on after it was stopped or killed.

    unfinished.json    the options that it was begun with, and the runs that were made for its sides
    generations.jsonl  one JSON line a generation: what it gave, or how it failed

A generation has its line when it has ended. Rounds of one that has none were cut short, and count for nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from harness.cache import write_atomically
from harness.errors import RunError
from harness.metrics import LATENCY
from harness.records.run import Failure, Round
from harness.store.files import TURNS_FILE, adapter, line_of, read_document, read_lines

UNFINISHED_FILE, GENERATIONS_FILE = "unfinished.json", "generations.jsonl"


@dataclass(frozen=True, kw_only=True)
class Begun:
    """What a comparison was begun with, or a bisect.

    Attributes:
        created: ISO 8601, UTC.
        machine: Id of the machine that it is measured on.
        noise: The smallest change that this machine was found to see, as a share; 0: not known.
        options: The user's, as plain values.
        command: The command line.
        runs: Folders of the runs that were made for its sides (of a bisect, its positions), finished or not, by name.
        placed: Of a fleet, the hosts of each row, by the row's name: as many as were there when it was begun.
        hosts: What each of these is like, by name, as a run's `HostRecord` has it.
    """

    created: str
    machine: str
    options: dict[str, Any]
    command: tuple[str, ...]
    noise: float = 0.0
    runs: dict[str, str] = field(default_factory=dict)
    placed: dict[str, tuple[str, ...]] = field(default_factory=dict)
    hosts: dict[str, dict[str, dict[str, Any]]] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class KeptGeneration:
    """What a generation of a row gave, in the words of `harness.compare.task.Generation`, or how it failed.

    Attributes:
        modules: What was measured: both sides' modules and how they were run.
    """

    row: str
    metric: str
    modules: str
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


def read_begun(folder: Path) -> Begun:
    """What an unfinished comparison was begun with.

    Raises:
        RunError: It is no unfinished comparison, or it is damaged.
    """
    file = folder / UNFINISHED_FILE
    if not file.is_file():
        raise RunError(
            f"{folder}: is no comparison that can go on (it has no {UNFINISHED_FILE}); compare its two sides again"
        )
    try:
        begun: Begun = adapter(Begun).validate_json(read_document(file))
    except ValidationError:
        raise RunError(f"{file}: is damaged; compare the two sides again") from None
    return begun


def read_generations(folder: Path) -> tuple[KeptGeneration, ...]:
    """The generations of an unfinished comparison that have ended; its files are left with them and their rounds.

    Raises:
        RunError: A file is damaged; the message names the line.
    """
    generations = _records(folder / GENERATIONS_FILE, KeptGeneration)
    ended = {(kept.row, kept.generation) for kept in generations if kept.metric == LATENCY.name}
    rounds = [kept for kept in _records(folder / TURNS_FILE, Round) if (kept.group, kept.generation) in ended]
    for name, records in ((GENERATIONS_FILE, generations), (TURNS_FILE, rounds)):
        if (folder / name).is_file():
            lines = b"".join(line_of(record) + b"\n" for record in records)
            write_atomically(folder / name, lines)
    return tuple(generations)


def read_rounds(folder: Path) -> tuple[Round, ...]:
    """The rounds of an unfinished comparison.

    Raises:
        RunError: The file is damaged; the message names the line.
    """
    return tuple(_records(folder / TURNS_FILE, Round))


def _records(file: Path, kind: type[Any]) -> list[Any]:
    if not file.is_file():
        return []
    records = []
    for number, line in enumerate(read_lines(file), start=1):
        try:
            records.append(adapter(kind).validate_json(line))
        except ValidationError:
            raise RunError(f"{file}: line {number} is damaged; remove it, or compare the two sides again") from None
    return records
