"""Page -> text for a terminal of a given width: the only place that makes texts fit for one."""

from collections.abc import Sequence
from io import StringIO

from rich.box import SIMPLE_HEAD
from rich.cells import cell_len
from rich.console import Console
from rich.padding import Padding
from rich.table import Table as RichTable
from rich.text import Text

from harness.report.page import (
    Bullets,
    Code,
    Column,
    Fold,
    Heading,
    Page,
    Paragraph,
    Part,
    Picture,
    Steps,
    Table,
    Tone,
    Warnings,
    lines_of,
    plain,
)
from harness.text import one_line, printable
from harness.toolchain.tools import excerpt

_GAP = 2
_LONGEST_CELL = 160
_LOG_LINES = 8
_MOST_LISTED = 40
_STYLES: dict[Tone, str] = {
    "": "",
    "good": "green",
    "bad": "red",
    "open": "yellow",
    "new": "cyan",
    "dim": "dim",
    "strong": "bold",
}


def to_terminal(page: Page, *, width: int = 100, color: bool = False) -> str:
    """Lay a page out in `width` columns; without colours no line ends in spaces."""
    console = Console(
        file=StringIO(),
        width=width,
        force_terminal=color,
        color_system="standard" if color else None,
        no_color=not color,
        highlight=False,
        markup=False,
        emoji=False,
        legacy_windows=False,
        _environ={},
    )
    with console.capture() as capture:
        _Writer(console).write(page)
    text = capture.get()
    return text if color else "".join(f"{line.rstrip()}\n" for line in text.splitlines())


class _Writer:
    """Prints parts one below the other, with empty lines between those that do not belong together."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._last: Part | None = None

    def write(self, page: Page) -> None:
        for part in (Paragraph(page.title, "strong"), Paragraph(page.verdict, "strong"), *page.parts):
            self._part(part)
        if aside := [part.title for part in page.parts if isinstance(part, Fold) and part.aside and part.parts]:
            self._part(Paragraph(f"Not shown here, but by --format markdown: {'; '.join(aside)}", "dim"))
        if page.notes:
            self._console.print()
        for note in page.notes:
            self._print(plain(note), "dim")

    def _part(self, part: Part) -> None:
        if _is_empty(part):
            return
        if self._last is not None and not _belongs(part, self._last):
            self._console.print()
        self._last = part
        match part:
            case Table():
                self._table(part)
            case Heading():
                title = Text(one_line(part.text), style="bold")
                title.append(f"  {one_line(plain(part.aside))}" if part.aside else "", style="not bold dim")
                self._console.print(title)
            case Paragraph():
                self._print(plain(part.text), _STYLES[part.tone])
            case Warnings():
                for sentence in part.sentences:
                    self._print(f"Note: {sentence}", "yellow")
            case Bullets():
                for bullet in part.sentences:
                    self._print(f"- {plain(bullet)}")
            case Code():
                self._code(part)
            case Steps():
                for step in part.steps:
                    command = f": {one_line(step.command)}" if step.command else ""
                    self._console.print(Text(f"- {one_line(step.text)}{command}"), soft_wrap=True)
            case Fold():
                self._print(part.title, "bold")
                for inner in part.parts:
                    self._part(inner)

    def _print(self, text: str, style: str = "") -> None:
        self._console.print(Text(one_line(text), style=style))

    def _code(self, code: Code) -> None:
        if code.title:
            self._print(code.title, "bold")
        lines = [line.rstrip() for line in printable(code.text).splitlines()]
        if code.language == "log":
            for line in excerpt("\n".join(line for line in lines if line), _LOG_LINES).splitlines():
                self._console.print(Padding(Text(line, overflow="fold"), (0, 0, 0, 2)))
            return
        # One long line each: a wrapped command cannot be copied, and a wrapped drawing shows nothing.
        indent = "  " if code.language == "sh" else ""
        for line in lines:
            self._console.print(Text(f"{indent}{line}"), soft_wrap=True)

    def _table(self, table: Table) -> None:
        if table.title:
            self._print(table.title, "bold")
        for line in table.before:
            self._console.print(Text(printable(line).rstrip()), soft_wrap=True)
        if table.rows:
            self._rows(table)
        if len(_shown(table)) < table.rows:
            self._print(f"The first {len(_shown(table)):,} of {table.rows:,} rows.", "dim")
        for sentence in table.after:
            self._print(plain(sentence), "dim")

    def _rows(self, table: Table) -> None:
        columns = [column for column in table.columns if column.kind != "sentence"]
        sentences = [column for column in table.columns if column.kind == "sentence" and any(column.cells)]
        gap = _GAP - table.dense
        fit = _fitting(columns, self._console.width, gap)
        room = _room(fit, self._console.width, gap)
        beside = [column for column in sentences if _width(column) <= room and not _repeats(column)][:1]
        drawing = RichTable(
            box=SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, gap - 1, 0, 0), header_style="bold"
        )
        for column in (*fit, *beside):
            justify = "right" if column.kind == "number" else "left"
            drawing.add_column(_head(column), justify=justify, overflow="fold")  # type: ignore[arg-type]
        for row in _shown(table):
            tone = table.tones[row] if table.tones else ""
            tones = [column.tones[row] if column.tones else tone for column in fit]
            drawing.add_row(
                *(Text(_cell(column, row), style=_STYLES[tone]) for column, tone in zip(fit, tones, strict=True)),
                *(Text(_cell(column, row)) for column in beside),
            )
        self._console.print(drawing)
        if left_out := [column.head for column in columns if column not in fit]:
            words = "Column" if len(left_out) == 1 else "Columns"
            self._print(f"{words} hidden: {', '.join(left_out)} (widen the terminal).", "dim")
        for column in sentences:
            if column not in beside:
                self._below(table, column)

    def _below(self, table: Table, column: Column) -> None:
        drawing = RichTable.grid(padding=(0, _GAP, 0, 0))
        drawing.add_column(overflow="fold", max_width=self._console.width // 2)
        drawing.add_column(ratio=1, overflow="fold")
        for sentence, rows in table.sharing(column, _shown(table)).items():
            styles = [_STYLES[table.tones[row]] if table.tones else "" for row in rows]
            names = [Text(_cell(table.names, row), style=style) for row, style in zip(rows, styles, strict=True)]
            drawing.add_row(Text(", ").join(names), Text(one_line(sentence)))
        self._console.print()
        self._print(f"{column.title}:", "bold")
        self._console.print(drawing)


def _shown(table: Table) -> range:
    return table.shown if table.first is None else table.shown[:_MOST_LISTED]


def _repeats(column: Column) -> bool:
    sentences = [sentence for cell in column.cells for sentence in lines_of(cell)]
    return len(set(sentences)) < len(sentences)


def _is_empty(part: Part) -> bool:
    if isinstance(part, Table):
        return not (part.title or part.rows or part.before or part.after)
    if isinstance(part, Paragraph | Code):
        return not plain(part.text)
    if isinstance(part, Warnings | Bullets):
        return not part.sentences
    if isinstance(part, Fold):
        return part.aside or all(map(_is_empty, part.parts))
    return isinstance(part, Picture) or (isinstance(part, Steps) and not part.steps)


def _belongs(part: Part, last: Part) -> bool:
    if not isinstance(last, Heading | Paragraph | Warnings | Fold):
        return False
    if isinstance(part, Table):
        return not part.title
    return isinstance(part, Paragraph | Warnings | Code | Steps | Bullets)


def _fitting(columns: Sequence[Column], width: int, gap: int) -> list[Column]:
    fit = list(columns)
    while _room(fit, width, gap) < -gap and any(column.rank for column in fit):
        fit.remove(max(fit, key=lambda column: column.rank))
    return fit


def _room(columns: Sequence[Column], width: int, gap: int) -> int:
    return width - sum(_width(column) + gap for column in columns)


def _width(column: Column) -> int:
    cells = (_cell(column, row) for row in range(len(column.cells)))
    return max(cell_len(text) for text in (*_head(column).plain.splitlines(), *cells))


def _head(column: Column) -> Text:
    """Title over unit, which keeps columns of short figures narrow."""
    title = one_line(column.title)
    return Text(f"{title}\n({one_line(column.unit)})" if column.unit else title)


def _cell(column: Column, row: int) -> str:
    text = one_line("; ".join(lines_of(column.cells[row])))
    if column.kind == "sentence" or len(text) <= _LONGEST_CELL:
        return text
    return f"{text[: _LONGEST_CELL - 3]}..."
