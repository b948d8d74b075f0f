"""Tables -> small scripts: what the pages load, since a page opened from a folder may load scripts and nothing else."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pandas as pd

Payload = dict[str, Any]
Column = list[Any] | dict[str, list[Any]] | None

_DIGITS = 7  # of a figure: far below what any timing can tell
_EXACT = 2.0**53  # up to here JavaScript's integers are exact
_KEY = re.compile(r"[0-9a-f]{16}")


def key_of(text: str) -> str:
    """16 hex digits that name a page's data, whatever the text holds; ids that are such digits stay as they are."""
    return text if _KEY.fullmatch(text) else hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:16]


def key_of_case(suite: str, case: str) -> str:
    """The key of a case's command lines."""
    return key_of(f"{suite}\0{case}")


def script(key: str, payload: Mapping[str, Any]) -> str:
    """A script that hands a page its data, in plain ASCII and without `<`, so nothing in it can end a tag."""
    text = json.dumps(payload, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")
    return f'dashboard.put("{key}",{text});\n'


def table(rows: int, **columns: Iterable[Any]) -> Payload:
    """Columns of `rows` values each under their names; static/data.js reads them again."""
    return {"rows": rows, "columns": {name: column(values) for name, values in columns.items()}}


def column(values: Iterable[Any]) -> Column:
    """A list of values; null where all are missing; of texts that repeat, each text once and the place of each row's.

    Whole numbers stay as they are, others keep seven digits; what is missing or not finite is null.
    """
    # A pandas column gives its values as Python's at once, many times faster than one by one.
    plain = [_plain(value) for value in (values.tolist() if isinstance(values, pd.Series) else values)]
    first = next((value for value in plain if value is not None), None)
    if first is None:
        return None
    if isinstance(first, str):
        places = {text: place for place, text in enumerate(dict.fromkeys(plain))}
        if 2 * len(places) <= len(plain):
            return {"texts": list(places), "at": [places[text] for text in plain]}
    return plain


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float):
        if not math.isfinite(value):
            return None
        if value == int(value) and abs(value) < _EXACT:
            return int(value)
        return float(f"{value:.{_DIGITS}g}")
    return value
