"""What the commands on a results folder print: a table, why things are as they are, and a sentence that ends it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any

from rich.console import Console
from rich.text import Text

from harness.report.columns import Column
from harness.report.json_ import json_text
from harness.report.terminal_text import drawn, empty_table
from harness.report.units import byte_unit
from harness.store.archive import Compacted, GarbageReport, Outcome
from harness.store.check import WRONG, Finding
from harness.text import one_line

SCHEMA_VERSION = 1
# Above this many rows, those that nobody has to look at are only counted.
_MANY = 40


def merged_text(outcomes: Sequence[Outcome], *, width: int, color: bool) -> str:
    """A row for each folder."""
    shown = [one for one in outcomes if len(outcomes) <= _MANY or one.fate in ("refused", "left out")]
    columns = [
        _words("folder", (one.name for one in shown)),
        _words("from", (one.source for one in shown)),
        _words("outcome", (one.fate for one in shown)),
    ]
    whys = [(one.name, one.why) for one in shown if one.why]
    red = [one.fate == "refused" for one in shown]
    return _page(columns, red, whys, _counts(one.fate for one in outcomes) or "nothing to merge", width, color=color)


def merged_json(outcomes: Sequence[Outcome]) -> str:
    """For other programs."""
    return _document("merged", [asdict(one) for one in outcomes])


def verified_text(found: Sequence[Finding], *, width: int, color: bool) -> str:
    """A row for each folder and each part of the history."""
    shown = [one for one in found if len(found) <= _MANY or one.state in WRONG]
    columns = [
        _words("folder", (one.name for one in shown)),
        _words("what", (one.kind or "-" for one in shown)),
        _words("state", (_state(one) for one in shown)),
    ]
    whys = [(one.name, one.why) for one in shown if one.why]
    red = [one.state in WRONG for one in shown]
    return _page(columns, red, whys, _counts(one.state for one in found) or "nothing here", width, color=color)


def _state(finding: Finding) -> str:
    return f"{finding.state}, no hashes" if finding.state == "ok" and not finding.hashed else finding.state


def verified_json(found: Sequence[Finding]) -> str:
    """For other programs."""
    return _document("verified", [asdict(one) for one in found])


def compacted_text(done: Compacted, *, width: int, color: bool) -> str:
    """What was added, and sizes before and after."""
    added = " and ".join(
        part for part in (_number(len(done.runs), "run"), _number(len(done.comparisons), "comparison")) if part
    )
    sentences = [
        f"{added} compacted: {_size(done.folder_bytes)} of files gave {_size(done.after_bytes - done.before_bytes)}"
        if added and not done.merged_parts
        else f"{added} compacted, from {_size(done.folder_bytes)} of files"
        if added
        else "nothing to compact",
        f"{done.merged_parts} parts became one" if done.merged_parts else "",
        f"history/ has {_number(done.parts, 'part') or 'no part'}, {_size(done.before_bytes)} before and "
        f"{_size(done.after_bytes)} now",
    ]
    whys = [(name, why) for name, why in done.left_out.items()]
    return _page([], [], whys, ". ".join(one for one in sentences if one), width, color=color)


def compacted_json(done: Compacted) -> str:
    """For other programs."""
    return _document("compacted", asdict(done))


def dropped_text(report: GarbageReport, *, width: int, color: bool) -> str:
    """A row for each run whose turns went, or are old and stay."""
    unit = byte_unit([one.bytes for one in report.rows])
    word = "would go" if report.dry_run else "dropped"
    columns = [
        _words("run or comparison", (one.name for one in report.rows)),
        _words("began", (one.started[:10] for one in report.rows)),
        Column(title="turns", unit=unit.name, cells=tuple(unit.text(one.bytes) for one in report.rows)),
        _words("outcome", (word if one.dropped else "kept" for one in report.rows)),
    ]
    whys = [(one.name, one.why) for one in report.rows if one.why]
    gone = [one for one in report.rows if one.dropped]
    freed = sum(one.bytes for one in gone)
    about = "about " if report.dry_run else ""
    kept = len(report.rows) - len(gone)
    in_history = f" and {about}{_size(report.history_bytes)} in history/" if report.history_bytes else ""
    closing = (
        f"turns of {len(gone)} {word}: {_size(freed)} in folders{in_history}; "
        f"{kept} kept{f', {report.young} younger' if report.young else ''}"
    )
    if not report.rows and not report.history_bytes:
        younger = f": those of {report.young} younger run{'' if report.young == 1 else 's'} stay"
        closing = f"no turns are as old as that{younger if report.young else ''}"
    return _page(columns, [False] * len(report.rows), whys, closing, width, color=color)


def dropped_json(report: GarbageReport) -> str:
    """For other programs."""
    return _document("dropped", asdict(report))


def _page(
    columns: Sequence[Column],
    red: Sequence[bool],
    whys: Iterable[tuple[str, str]],
    closing: str,
    width: int,
    *,
    color: bool,
) -> str:
    def draw(console: Console) -> None:
        if red:
            drawing = empty_table(columns)
            for index, wrong in enumerate(red):
                style = "red" if wrong else ""
                drawing.add_row(*(Text(column.cells[index], style=style) for column in columns))
            console.print(drawing)
        for name, why in whys:
            console.print(Text(f"{one_line(name)}: {one_line(why)}"), soft_wrap=True)
        console.print(Text(f"{closing[:1].upper()}{closing[1:]}."), soft_wrap=True)

    return drawn(draw, width=width, color=color)


def _words(title: str, cells: Iterable[str]) -> Column:
    return Column(title=title, cells=tuple(one_line(cell) for cell in cells), number=False)


def _counts(words: Iterable[str]) -> str:
    """`12 copied, 1 refused`."""
    return ", ".join(f"{count} {word}" for word, count in Counter(words).items())


def _number(count: int, word: str) -> str:
    return f"{count} {word}{'' if count == 1 else 's'}" if count else ""


def _size(size: int) -> str:
    unit = byte_unit([abs(size)])
    return f"{unit.text(size)} {unit.name}"


def _document(name: str, content: Any) -> str:
    return json_text({"schema_version": SCHEMA_VERSION, name: content})
