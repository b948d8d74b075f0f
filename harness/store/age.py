"""Ages as users write them, and how old a run is by its own clock."""

from __future__ import annotations

import re
from datetime import datetime, timedelta

from harness.errors import UsageError
from harness.records.run import Round
from harness.store.clock import clock_fault, parse_time

_DAYS = {"d": 1, "w": 7, "y": 365}
_AGE = re.compile(r"([0-9]{1,5})([dwy])")


def parse_age(text: str) -> timedelta:
    """`90d`, `12w` or `2y`: days, weeks, or years of 365 days.

    Raises:
        UsageError: It is none.
    """
    found = _AGE.fullmatch(text.strip())
    if found is None:
        raise UsageError(f"--older-than {text[:40]}: is no age; write days, weeks or years, as in 90d, 12w or 2y")
    return timedelta(days=int(found[1]) * _DAYS[found[2]])


def too_young(started: str, age: timedelta, now: datetime) -> bool:
    """Whether a run of a clock that can be right began less than `age` ago."""
    time = parse_time(started)
    return time is not None and now - time < age


def wrong_clock(started: str, rounds: tuple[Round, ...], now: datetime) -> str:
    """Why a run's age is not known; "" where it is."""
    fault = clock_fault(started, rounds, now)
    return f"its age is not known: {fault}" if fault else ""
