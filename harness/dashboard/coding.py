"""Tables -> small scripts: what the pages load, since a page opened from a folder may load scripts and nothing else.

A table is written column by column. Of numbers, integers and a power of ten are kept, as differences where those are
shorter; of texts, each one once. static/data.js reads them again.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Column = dict[str, Any]

_DIGITS = 6  # of a figure: a millionth is far below what any timing can tell
_LARGEST = math.log10(2.0**53)  # up to here JavaScript's integers are exact
_KEY = re.compile(r"[0-9a-f]{16}")


def key_of(text: str) -> str:
    """16 hex digits that name a page's data, whatever the text holds; ids that are such digits stay as they are."""
    return text if _KEY.fullmatch(text) else hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:16]


def script(key: str, payload: Mapping[str, Any]) -> str:
    """A script that hands a page its data, in plain ASCII and without `<`, so nothing in it can end a tag."""
    text = json.dumps(payload, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")
    return f'dashboard.put("{key}",{text});\n'


def table(rows: int, **columns: Column) -> dict[str, Any]:
    """Columns of equal length under their names."""
    return {"rows": rows, "columns": columns}


def texts(values: Sequence[str | None]) -> Column:
    """A column of texts, each written once where they repeat."""
    found: dict[str | None, int] = {}
    codes = [found.setdefault(value, len(found)) for value in values]
    if len(found) == 1:
        return {"c": values[0]}
    return {"v": list(values)} if len(found) * 2 > len(codes) else {"t": list(found), "i": codes}


def numbers(values: NDArray[np.float64], *, digits: int = _DIGITS, exact: bool = False) -> Column:
    """A column of numbers; those that are not finite become null.

    Args:
        digits: So many of the smallest one are kept.
        exact: Integers are kept whole.
    """
    known = np.isfinite(values)
    if not known.any():
        return {"c": None}
    if exact and fits(values, 0) and bool(np.all(values[known] == np.rint(values[known]))):
        return whole(values)
    places = decimal_places(values, digits)
    if not fits(values, places):  # from tiny to huge: each number on its own
        return {"v": [float(f"{value:.{digits}g}") if math.isfinite(value) else None for value in values.tolist()]}
    return whole(scale(values, places), places)


def figures(values: NDArray[np.float64], *, digits: int = 7) -> Column:
    """A column of numbers of many sizes, each with its own digits; whole numbers stay as they are."""
    return {"v": [_shortened(value, digits) for value in values.tolist()]}


def _shortened(value: float, digits: int) -> float | int | None:
    if not math.isfinite(value):
        return None
    if abs(value) < 2.0**53 and value == int(value):
        return int(value)
    return float(f"{value:.{digits}g}")


def decimal_places(values: NDArray[np.float64], digits: int = _DIGITS) -> int:
    """At which power of ten the smallest of them has so many digits; negative for large ones."""
    sizes = np.abs(values[np.isfinite(values) & (values != 0)])
    return digits - 1 - math.floor(math.log10(sizes.min())) if sizes.size else 0


def fits(values: NDArray[np.float64], places: int) -> bool:
    """Whether they are integers that JavaScript has, when they are scaled by that power of ten."""
    largest = np.abs(values[np.isfinite(values)]).max(initial=0.0)
    return abs(places) < 300 and (largest == 0 or math.log10(largest) + places < _LARGEST)


def scale(values: NDArray[np.float64], places: int) -> NDArray[np.float64]:
    """Values as integers of that power of ten; NaN stays."""
    scaled: NDArray[np.float64] = np.rint(values * 10.0**places if places >= 0 else values / 10.0**-places)
    return scaled


def whole(values: NDArray[np.float64], places: int = 0) -> Column:
    """A column of integers, that stand for `value / 10**places`."""
    known = np.isfinite(values)
    column: Column = {"k": places} if places else {}
    if known.all():
        integers = values.astype(np.int64)
        if integers.size and bool(np.all(integers == integers[0])):
            return {"c": int(integers[0]), **column}
        steps = np.diff(integers, prepend=0)
        if _length(steps) < _length(integers):
            return {"d": steps.tolist(), **column}
        return {"n": integers.tolist(), **column}
    return {"n": [int(value) if here else None for value, here in zip(values, known, strict=True)], **column}


def _length(values: NDArray[np.int64]) -> float:
    """About how many digits they take to write."""
    return float(np.log10(np.abs(values.astype(np.float64)) + 1).sum())
