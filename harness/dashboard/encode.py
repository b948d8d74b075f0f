"""What all pages share: words, figures, and tables as scripts, since a page opened from a folder loads nothing else."""

import hashlib
import json
import math
import re
import string
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from harness import metrics
from harness.history.series_page import course
from harness.report.units import percent, ratio_text, unit_of, unit_that_tells
from harness.store.evidence import parse_time
from harness.text import one_line

Payload = dict[str, Any]
Column = list[Any] | dict[str, list[Any]] | None

_DIGITS = 7  # of a figure: far below what any timing can tell
_EXACT = 2.0**53  # up to here JavaScript's integers are exact
_KEY = re.compile(r"[0-9a-f]{16}")


def key_of(text: str) -> str:
    """16 hex digits that name a page's data, whatever the text holds; ids that are such digits stay as they are."""
    return text if _KEY.fullmatch(text) else hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:16]


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


_LONGEST = 200  # of a name in a table; its own page shows all of it
MINUS = "\N{MINUS SIGN}"  # as in static/format.js
_PLACES = 48
_LEVELS = string.digits + string.ascii_lowercase + string.ascii_uppercase
_LEAST_SPAN = 0.05  # of the median: noise of one percent has to look small


def metric_title(metric: str) -> str:
    """`Latency`, `Compilation time`; the name itself where it is not registered."""
    title = one_line(metrics.metric_title(metric))
    return title.capitalize() if metric in metrics.METRICS else title


def cut(text: object, longest: int = _LONGEST) -> str:
    """A text on one line; `…` says that it went on."""
    line = one_line(str(text))
    return line if len(line) <= longest else f"{line[: longest - 1]}…"


def figure(value: float, unit: str) -> str:
    """One value with its unit: `76.59 ms`, `793 KiB`, `1.012`."""
    if unit == "ratio":
        return ratio_text(value)
    chosen = unit_of(unit, [value])
    return f"{chosen.text(value)} {chosen.name}".rstrip()


def level(before: float, after: float, unit: str) -> str:
    """A change of level in one unit, in which the two look different: `9.97 KiB → 10.03 KiB`."""
    if unit == "ratio":
        return f"{ratio_text(before)} → {ratio_text(after)}"
    chosen = unit_that_tells(unit, [before, after])
    return " → ".join(f"{chosen.text(value)} {chosen.name}".rstrip() for value in (before, after))


def moved(ratio: float) -> str:
    """A change of level: `+8.0 %`, with as many decimals as it takes to show that there is one."""
    if not math.isfinite(ratio):
        return "from nothing"
    text = percent(ratio, decimals=1 if ratio == 1 or abs(ratio - 1) >= 0.0005 else 3)
    return text.replace("-", MINUS)


def signed(text: str) -> str:
    """A text with the minus sign of all other figures."""
    return re.sub(r"(?<!\S)-(?=\d)", MINUS, text)


def day(started: str) -> str:
    """`2026-11-21 03:50`, in UTC."""
    return started[:16].replace("T", " ")


def seconds(started: str) -> float:
    """A time as a number; 0 where it is none, since tables of others may hold any text."""
    time = parse_time(started)
    return 0.0 if time is None else time.timestamp()


def sparkline(values: NDArray[np.float64]) -> str:
    """A series' course in 48 letters at most, which static/spark.js draws; 0 is the lowest and Z the highest level."""
    finite = values[np.isfinite(values)]
    levels = course(finite, _PLACES, least_span=_LEAST_SPAN) if finite.size else []
    return "".join(_LEVELS[round(level * (len(_LEVELS) - 1))] for level in levels)
