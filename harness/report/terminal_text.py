"""To be removed: a page is drawn by harness.report.terminal."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from io import StringIO

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from harness.report.columns import Column

GAP = 2


def drawn(draw: Callable[[Console], None], *, width: int, color: bool) -> str:
    """What `draw` prints, in `width` columns; without colours no line ends in spaces."""
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
        draw(console)
    text = capture.get()
    return text if color else "".join(f"{line.rstrip()}\n" for line in text.splitlines())


def empty_table(columns: Sequence[Column]) -> Table:
    """A table with these heads; its cells are for the caller to add, each row in its style."""
    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, GAP - 1, 0, 0), header_style="bold")
    for column in columns:
        table.add_column(_head(column), justify="right" if column.number else "left", overflow="fold")
    return table


def _head(column: Column) -> Text:
    """Title over unit, which keeps columns of short figures narrow."""
    return Text(f"{column.title}\n({column.unit})" if column.unit else column.title)
