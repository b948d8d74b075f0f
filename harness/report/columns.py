"""To be removed: a page's column is harness.report.page.Column."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Column:
    """One column of the older helpers."""

    title: str
    cells: tuple[str, ...]
    unit: str = ""
    number: bool = True
    rank: int = 0

    @property
    def head(self) -> str:
        """Title and unit: `latency (ms)`."""
        return f"{self.title} ({self.unit})" if self.unit else self.title
