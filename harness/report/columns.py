"""A section's main table as columns of text: the same figures in the terminal and in Markdown."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from harness.records.run import Storage
from harness.report.units import PLAIN, Unit, byte_unit, count_unit, time_unit
from harness.report.values import Row, Section
from harness.report.words import interval_text, outcome_text
from harness.text import one_line


@dataclass(frozen=True, kw_only=True)
class Column:
    """One column.

    Attributes:
        cells: Text of each row.
        unit: Of all its figures; "" for plain numbers and words.
        number: Whether its cells are figures, which stand right-aligned.
        rank: 0: always shown; where there is little room, the highest ranks go first.
    """

    title: str
    cells: tuple[str, ...]
    unit: str = ""
    number: bool = True
    rank: int = 0

    @property
    def head(self) -> str:
        """Title and unit: `latency (ms)`."""
        return f"{self.title} ({self.unit})" if self.unit else self.title


def main_columns(section: Section) -> list[Column]:
    """Variant, toolchain where there are several, latency, ratio and what is known of the module.

    A column in which nobody has a figure is left out. Remarks are no column here: each renderer has its own place for
    them.
    """
    rows = section.rows
    reached = [row.attained for row in rows]
    columns = [
        Column(title="variant", cells=tuple(one_line(row.variant) for row in rows), number=False),
        _toolchains(section),
        _figures("latency", [row.latency_ns for row in rows], time_unit),
        Column(title=f"vs {one_line(section.baseline)}", cells=tuple(outcome_text(row) for row in rows), number=False),
        _against_best_peer(section),
        _figures("GFLOP/s", [one.operations_per_s if one else None for one in reached], _giga, rank=4),
        _figures("of the roof", [one.roof_share if one else None for one in reached], _share, rank=4),
        _figures("instr/call", [row.instructions_per_call for row in rows], count_unit, rank=2),
        _figures("dispatches", [row.dispatches for row in rows], _plain, rank=1),
        _figures("copies", [row.copies for row in rows], _plain, rank=3),
        _figures("fills", [row.fills for row in rows], _plain, rank=6),
        _figures("transient", [row.transient_bytes for row in rows], byte_unit, rank=1),
        *_memory(section),
        _figures("module", [row.module_bytes for row in rows], byte_unit, rank=5),
        _figures("compile", [row.compile_ns for row in rows], time_unit, rank=4),
    ]
    return [column for column in columns if column is not None]


def ir_columns(section: Section) -> list[Column]:
    """Variant, toolchain where there are several, counts of ops, and what encodings cost; [] where nobody asks."""
    rows = section.rows
    keys = tuple(dict.fromkeys(key for row in rows for key in row.ir))
    if not keys and not any(row.storage for row in rows):
        return []
    columns = [
        Column(title="variant", cells=tuple(one_line(row.variant) for row in rows), number=False),
        _toolchains(section),
        *(_counts(key, rows) for key in keys),
        *_storage([row.storage for row in rows]),
    ]
    return [column for column in columns if column is not None]


def _storage(found: list[Storage | None]) -> list[Column | None]:
    """Bytes of encoded tensors, what of them is padding, and the worst case; a program without any has no padding."""
    return [
        _figures("encoded", [one.encoded_bytes if one else None for one in found], byte_unit),
        _figures(
            "padding", [one.overhead * 100 if one and one.overhead is not None else None for one in found], _per_cent
        ),
        _figures("worst case", [one.worst_ratio if one else None for one in found], _times),
    ]


def _counts(key: str, rows: Sequence[Row]) -> Column:
    phase, _, op = one_line(key).partition("/")
    return Column(title=op, unit=phase, cells=tuple(PLAIN.text(row.ir.get(key)) for row in rows), rank=1)


def _against_best_peer(section: Section) -> Column | None:
    """Each row's ratio to the fastest peer; None where no peer was measured."""
    if not section.best_peer:
        return None
    cells = tuple(
        "best peer" if row.variant == section.best_peer and row.peer else interval_text(row.peer_estimate)
        for row in section.rows
    )
    return Column(title=f"vs {one_line(section.best_peer)}", cells=cells, number=False, rank=1)


def _toolchains(section: Section) -> Column | None:
    if len(section.toolchains) == 1:
        return None
    return Column(title="toolchain", cells=tuple(one_line(row.toolchain) for row in section.rows), number=False)


def _memory(section: Section) -> list[Column | None]:
    """Peak memory of each device, where there are several."""
    devices = max((tuple(one.device for one in row.memory) for row in section.rows), key=len, default=())
    if len(devices) < 2:
        return []
    return [
        _figures(
            f"peak of {position}: {one_line(device)}",
            [row.memory[position].device_peak_bytes if position < len(row.memory) else None for row in section.rows],
            byte_unit,
            rank=2,
        )
        for position, device in enumerate(devices)
    ]


def _plain(_: object) -> Unit:
    return PLAIN


def _giga(_: object) -> Unit:
    return Unit(name="", size=1e9, decimals=1)


def _share(_: object) -> Unit:
    return Unit(name="%", size=0.01, decimals=1)


def _per_cent(_: object) -> Unit:
    return Unit(name="%", size=1.0, decimals=1)


def _times(_: object) -> Unit:
    return Unit(name="times", size=1.0, decimals=2)


def _figures(
    title: str,
    values: list[float | None] | list[int | None],
    choose: Callable[[list[float | None] | list[int | None]], Unit],
    rank: int = 0,
) -> Column | None:
    if all(value is None for value in values):
        return None
    unit = choose(values)
    return Column(title=title, cells=tuple(unit.text(value) for value in values), unit=unit.name, rank=rank)
