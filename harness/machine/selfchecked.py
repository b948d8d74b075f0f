"""What `harness selfcheck` last found on this machine, so that every run and comparison can say it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from harness.cache import cache_root, read_memo


def selfcheck_file() -> Path:
    """Where the last selfcheck is kept."""
    return cache_root() / "selfcheck.json"


def last_selfcheck(machine: str) -> dict[str, Any] | None:
    """What the last check on this machine found, as plain values; None where there was none.

    Args:
        machine: Id of the machine, as in a run's environment.
    """
    kept = read_memo(selfcheck_file())
    if not machine or not isinstance(kept, dict) or kept.get("machine") != machine:
        return None
    facts = kept.get("facts")
    return facts if isinstance(facts, dict) else None
