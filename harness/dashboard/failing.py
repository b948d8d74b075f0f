"""Cases that fail in the last run of their suite, and since when."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from harness.dashboard.gather import Gathered
from harness.history.failures import CaseNews, case_news

if TYPE_CHECKING:
    from harness.history.open import History


def failing_cases(gathered: Gathered) -> dict[str, list[CaseNews]]:
    """By suite, those that began to fail last first."""
    history = cast("History", gathered.source)  # which is asked queries, and nothing else
    found: dict[str, list[CaseNews]] = {}
    for one in case_news(history, last=1):
        if one.state == "fails":
            found.setdefault(one.suite, []).append(one)
    return found
