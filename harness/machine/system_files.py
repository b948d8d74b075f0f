"""Reading what Linux says of itself in /proc and /sys, below a root that tests can replace."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class SystemFiles:
    """Small text files below a root. What does not exist or may not be read is None: the caller leaves it out."""

    root: Path = Path("/")

    @property
    def of_this_machine(self) -> bool:
        """Whether the root is the machine's own, so that other sources than files describe the same machine."""
        return self.root == Path("/")

    def text(self, path: str) -> str | None:
        """A file's text without white space around it; None where there is none."""
        try:
            return (self.root / path).read_text(errors="replace").strip("\0 \t\n") or None
        except OSError:
            return None

    def integer(self, path: str) -> int | None:
        """A file that holds one decimal number."""
        return as_integer(self.text(path))

    def fields(self, path: str) -> dict[str, str]:
        """A file of `name: value` or `name value` lines; {} where there is none."""
        fields = {}
        for line in (self.text(path) or "").splitlines():
            name, _, value = line.partition(":") if ":" in line else line.partition(" ")
            fields[name.strip()] = value.strip()
        return fields

    def matching(self, pattern: str) -> list[str]:
        """Paths below the root that match a glob pattern, sorted."""
        try:
            return sorted(path.relative_to(self.root).as_posix() for path in self.root.glob(pattern))
        except OSError:
            return []

    def exists(self, path: str) -> bool:
        """Whether there is such a file or folder."""
        try:
            return (self.root / path).exists()
        except OSError:
            return False


def as_integer(text: str | None) -> int | None:
    """A decimal number, or None where it is none (`max`, `<unsupported>`, nothing)."""
    try:
        return int(text) if text is not None else None
    except ValueError:
        return None


def known(facts: dict[str, Any]) -> dict[str, Any]:
    """The facts without those that are None."""
    return {name: value for name, value in facts.items() if value is not None}
