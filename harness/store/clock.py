"""When a run was made, and whether its clock can have been right."""

import itertools
from collections.abc import Sequence
from datetime import datetime, timedelta, timezone

from harness.records.run import Round
from harness.text import one_line

# Clocks of machines that know their time differ by far less, and time zones by at most 14 hours.
AHEAD = timedelta(days=1)
# Older than any release that the harness measures; machines without a battery begin in 1970 or at their image's date.
_FIRST_YEAR = 2020
# Clocks that are kept right by NTP are moved by less than this at once, or slowed.
_BACK_NS = 1_000_000_000


def parse_time(text: str) -> datetime | None:
    """An ISO 8601 time in UTC; one without a zone is taken as UTC; None: it is no time."""
    try:
        time = datetime.fromisoformat(text.removesuffix("Z") + ("+00:00" if text.endswith("Z") else ""))
        return (time if time.tzinfo is not None else time.replace(tzinfo=timezone.utc)).astimezone(timezone.utc)
    except (ValueError, OverflowError):
        return None


def utc_text(text: str) -> str:
    """The same time as `2026-11-21T03:15:00+00:00`, so that times sort as text; "" where it is none."""
    time = parse_time(text)
    return "" if time is None else time.isoformat(timespec="seconds")


def clock_fault(started: str, rounds: Sequence[Round], now: datetime) -> str:
    """Why a run's time cannot be right, in plain words; "" where nothing speaks against it."""
    time = parse_time(started)
    if time is None:
        return f"its start, {one_line(started)[:40]!r}, is no time"
    if time > now + AHEAD:
        return f"it started on {time:%Y-%m-%d}, which is in the future"
    if time.year < _FIRST_YEAR:
        return f"it started in {time.year}, before anything could be measured"
    by_host: dict[str, list[int]] = {}  # each has a clock of its own
    for measured in rounds:
        by_host.setdefault(measured.host, []).append(measured.started_unix_ns)
    back_ns = max(
        (before - after for started_ns in by_host.values() for before, after in itertools.pairwise(started_ns)),
        default=0,
    )
    if back_ns > _BACK_NS:
        return f"its clock went back by {back_ns / 1e9:,.0f} s while it was measured"
    return ""
