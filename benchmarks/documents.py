"""Tables in docs/: what a benchmark measured goes between its marks, and nothing there is typed by hand."""

from pathlib import Path


def replace_between(document: Path, begin: str, end: str, text: str) -> None:
    """Put a text between two marks of a document.

    Raises:
        RuntimeError: It has no such marks.
    """
    before, begun, rest = document.read_text().partition(begin)
    _, ended, after = rest.partition(end)
    if not begun or not ended:
        raise RuntimeError(f"{document} has no lines {begin} and {end}")
    document.write_text(f"{before}{begin}\n\n{text}\n\n{end}{after}")
