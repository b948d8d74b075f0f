"""Phrases that sentences about two sides share: what is on which, enumerations, times and bytes."""

import math
from collections.abc import Sequence
from typing import TypeAlias

# What sentences call the sides, base's first: `3.10.0`, `3.12.0`.
Labels: TypeAlias = tuple[str, str]

_TIMES = (("s", 1e9), ("ms", 1e6), ("µs", 1e3), ("ns", 1.0))
_BYTES = (("GiB", 2.0**30), ("MiB", 2.0**20), ("KiB", 2.0**10))
_DIGITS = 3
_COUNTED_WHOLE = 10_240


def on(labels: Labels, base: str, head: str) -> str:
    """`13 on 3.10.0, 1 on 3.12.0`."""
    return f"{base} on {labels[0]}, {head} on {labels[1]}"


def enumerated(words: Sequence[str]) -> str:
    """`a, b and c`; "" for none."""
    if len(words) < 2:
        return "".join(words)
    return f"{', '.join(words[:-1])} and {words[-1]}"


def time_text(time_ns: float) -> str:
    """A time of either sign without it: `733 ms`, `20.1 µs`."""
    value = abs(time_ns)
    name, size = next(((name, size) for name, size in _TIMES if value >= size), _TIMES[-1])
    return f"{three_digits(value / size)} {name}"


def bytes_text(number: int) -> str:
    """`9,216 bytes` below 10 KiB, else `18.9 MiB`."""
    if number < _COUNTED_WHOLE:
        return f"{number:,} bytes"
    name, size = next(((name, size) for name, size in _BYTES if number >= size), _BYTES[-1])
    return f"{three_digits(number / size)} {name}"


def three_digits(value: float) -> str:
    """A number from 1 on with three digits, and all before the point."""
    before_point = math.floor(math.log10(value)) + 1 if value >= 1 else 1
    return f"{value:,.{max(_DIGITS - before_point, 0)}f}"
