"""A page of text and tables, laid out for a terminal or as Markdown; what is in it is computed elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from harness.report.columns import Column
from harness.report.markdown_text import blocks, details, escape, fenced, name, paragraph, table
from harness.report.terminal_text import drawn, empty_table, fitting, print_left_out
from harness.text import one_line, shown


@dataclass(frozen=True, kw_only=True)
class Sheet:
    """One table; a cell that is too long for one is cut, but for sentences.

    Attributes:
        title: "" for none.
        names: Titles of the columns whose cells are names, which Markdown shows as code.
        below: Titles of columns of sentences: a terminal has them under the table, behind the first column's cell.
        folded: Whether Markdown folds it away behind its title.
        before: Lines of plain text between title and table, shown as they stand.
        after: Sentences under it.
    """

    title: str = ""
    columns: tuple[Column, ...] = ()
    names: frozenset[str] = frozenset()
    below: frozenset[str] = frozenset()
    folded: bool = False
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()

    @property
    def rows(self) -> int:
        """How many it has."""
        return len(self.columns[0].cells) if self.columns else 0


@dataclass(frozen=True, kw_only=True)
class Page:
    """A verdict, tables, and what bears on all of them.

    Attributes:
        verdict: One sentence, which comes first.
        notes: Sentences that come last.
    """

    verdict: str = ""
    sheets: tuple[Sheet, ...] = ()
    notes: tuple[str, ...] = ()


def page_terminal(page: Page, *, width: int, color: bool) -> str:
    """For a terminal of so many columns."""

    def draw(console: Console) -> None:
        if page.verdict:
            console.print(Text(one_line(page.verdict), style="bold"))
        for sheet in page.sheets:
            _draw_sheet(console, sheet)
        if page.notes:
            console.print()
        for note in page.notes:
            console.print(Text(one_line(note), style="dim"))

    return drawn(draw, width=width, color=color)


def _draw_sheet(console: Console, sheet: Sheet) -> None:
    console.print()
    if sheet.title:
        console.print(Text(one_line(sheet.title), style="bold"))
    for line in sheet.before:
        console.print(Text(line.rstrip()), soft_wrap=True)
    if sheet.rows:
        beside = [column for column in sheet.columns if column.title not in sheet.below]
        fit = fitting(beside, console.width)
        drawing = empty_table(fit)
        for index in range(sheet.rows):
            drawing.add_row(*(Text(shown(column.cells[index])) for column in fit))
        console.print(drawing)
        print_left_out(console, beside, fit)
        for column in sheet.columns:
            if column.title in sheet.below:
                _draw_below(console, sheet.columns[0], column)
    for sentence in sheet.after:
        console.print(Text(one_line(sentence), style="dim"))


def _draw_below(console: Console, heads: Column, column: Column) -> None:
    console.print(Text(f"{column.title}:", style="bold"))
    for head, sentence in zip(heads.cells, column.cells, strict=True):
        if sentence:
            console.print(Padding(Text(f"{shown(head)}: {one_line(sentence)}"), (0, 0, 0, 2)))


def page_markdown(page: Page) -> str:
    """For GitHub: nothing in it is markup that the page did not mean."""
    parts = [f"**{escape(page.verdict)}**" if page.verdict else ""]
    for sheet in page.sheets:
        body = blocks(_fence(sheet.before), _table(sheet), _paragraphs(sheet.after))
        if sheet.folded:
            parts.append(details(sheet.title, body))
        else:
            parts.append(blocks(f"### {escape(sheet.title)}" if sheet.title else "", body))
    if page.notes:
        parts.append("\n".join(f"- {paragraph(note)}" for note in page.notes))
    return blocks(*parts) + "\n"


def _table(sheet: Sheet) -> str:
    if not sheet.rows:
        return ""
    write = [name if column.title in sheet.names else escape for column in sheet.columns]
    cut = [one_line if column.title in sheet.below else shown for column in sheet.columns]
    rows = [
        [one(short(column.cells[index])) for one, short, column in zip(write, cut, sheet.columns, strict=True)]
        for index in range(sheet.rows)
    ]
    return table([escape(column.head) for column in sheet.columns], rows, numbers=[one.number for one in sheet.columns])


def _paragraphs(sentences: Sequence[str]) -> str:
    return paragraph(" ".join(sentences)) if sentences else ""


def _fence(lines: Sequence[str]) -> str:
    return fenced("\n".join(lines)) if lines else ""
