"""Where the text of a command goes: stdout or a file, as wide as the terminal, in colour where it shows colours."""

import os
import shlex
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from harness.errors import UsageError
from harness.options import Format
from harness.progress import Progress, Terminal
from harness.report import render
from harness.report.markdown import to_markdown, web_address
from harness.report.page import Page
from harness.report.terminal import to_terminal
from harness.store.files import writing
from harness.text import one_line, terminal_line


def tell(sentence: str) -> None:
    """Say something on stderr."""
    sys.stderr.write(f"{terminal_line(sentence)}\n")


def teller(*, quiet: bool) -> Callable[[str], None]:
    """What says things on stderr that are no errors; with --quiet it does not."""
    return (lambda _: None) if quiet else tell


def reporter(*, quiet: bool, verbose: bool = False) -> Progress:
    """What a long command reports to while it works: with --quiet to nobody."""
    if quiet and verbose:
        raise UsageError("--quiet and --verbose contradict each other; leave one of them out")
    return Progress() if quiet else Terminal()


def tell_where(path: Path) -> None:
    """Say where a run or a comparison is kept."""
    program = ["harness"] if shutil.which("harness") else ["python", "-m", "harness"]
    command = shlex.join([*program, "report", str(path), "--format", "markdown"])
    tell(f"Kept in {path}; `{command}` prints it for an issue.")


def terminal_width() -> int:
    """Columns of the terminal; 120 where there is none."""
    return shutil.get_terminal_size((120, 24)).columns


def terminal_form(out: Path | None = None) -> dict[str, Any]:
    """`width` and `color` of what is laid out for a terminal, on stdout or in a file."""
    return {"width": terminal_width(), "color": out is None and sys.stdout.isatty() and "NO_COLOR" not in os.environ}


def print_text(text: str, out: Path | None = None) -> None:
    """Write a report to a file, or to stdout."""
    if out is None:
        sys.stdout.write(text if text.endswith("\n") else text + "\n")
        return
    with writing(out, "choose another file"):
        out.write_text(text, encoding="utf-8")


def print_report(
    found: Any, output_format: Format, out: Path | None = None, *, full: bool = False, results: Path | None = None
) -> None:
    """Write the report of a result that is kept, or of what there is of one so far."""
    print_text(render(found, output_format, full=full, results=results, **terminal_form(out)), out)


def emit(output_format: str, page: Callable[[], Page], data: Callable[[], str], out: Path | None = None) -> None:
    """Write a page for people, or with json the data for programs."""
    if output_format == "json":
        print_text(data(), out)
    elif output_format == "markdown":
        print_text(to_markdown(page()), out)
    else:
        print_text(to_terminal(page(), **terminal_form(out)), out)


def checked_address(option: str, url: str | None) -> str:
    """An address of the web that an option gives; "" where it gives none."""
    if url and not web_address(url):
        shown = one_line(url)[:100]
        raise UsageError(f"{option} {shown!r}: is no address of the web; give one that begins with https://")
    return url or ""
