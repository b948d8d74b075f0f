"""What a recording holds, one JSON line each: a header, then rounds in the order in which they were measured.

A program is called `engine: name`, as in `IREE: rdb/stock` or `Halide: 4x5`; one name may stand alone: `ONNX Runtime`.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from pydantic import TypeAdapter

IREE, SGEMM = "IREE", "sgemm"


@dataclass(frozen=True, kw_only=True)
class Group:
    """Programs that compute the same, measured against each other.

    Attributes:
        title: What they compute, for a reader.
        gflop: Of one call; a multiplication and an addition are two.
    """

    name: str
    title: str
    gflop: float


@dataclass(frozen=True, kw_only=True)
class Header:
    """What is known before the first generation.

    Attributes:
        started: ISO 8601, UTC.
        machine: Its processor and cores.
        baseline: The suite's baseline variant.
        peer: The engine that IREE's programs are held against.
        versions: Of the engines, by name.
        missing: What is not installed: one sentence each.
        programs: IREE's, in the suite's order.
    """

    benchmark: str
    started: str
    machine: str
    baseline: str
    peer: str
    versions: dict[str, str]
    missing: tuple[str, ...]
    programs: tuple[str, ...]
    groups: tuple[Group, ...]


@dataclass(frozen=True, kw_only=True)
class Round:
    """One turn of every program of a group in one process; programs that take long have a turn in the first round only.

    Attributes:
        generation: Number of the process.
        ns: Of one call, by program, in the order of the turns.
    """

    group: str
    generation: int
    round: int
    ns: dict[str, float]


@dataclass(frozen=True, kw_only=True)
class Recording:
    """A whole recording, or as far as it got."""

    header: Header
    rounds: tuple[Round, ...]


def engine_of(program: str) -> str:
    """The engine of a program, by its name."""
    return program.partition(": ")[0]


def name_of(program: str) -> str:
    """A program's name without its engine."""
    return program.partition(": ")[2] or program


def iree_program(model: str, variant: str) -> str:
    """The name of one variant of a model: `IREE: rdb/stock`."""
    return f"{IREE}: {model}/{variant}"


def line(record: Header | Round) -> str:
    """As it stands in the file."""
    return json.dumps(asdict(record)) + "\n"


def read(path: Path) -> Recording:
    """Read a recording.

    Raises:
        OSError: There is none.
        ValueError: It is not of this form.
    """
    first, *rest = path.read_text().splitlines()
    header = TypeAdapter(Header).validate_json(first)
    return Recording(header=header, rounds=tuple(map(TypeAdapter(Round).validate_json, rest)))


def by_generation(rounds: Sequence[Round]) -> list[list[Round]]:
    """The rounds of one group, process by process."""
    found: dict[int, list[Round]] = {}
    for one in rounds:
        found.setdefault(one.generation, []).append(one)
    return [found[number] for number in sorted(found)]
