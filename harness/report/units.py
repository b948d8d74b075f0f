"""Figures as text, with one unit and number of decimals for a whole column; and names: what the sides are called."""

import math
import re
import statistics
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from harness.records.comparison import SideFacts
from harness.text import one_line, plural

NOTHING = "-"

_TIMES = (("ns", 1.0), ("µs", 1e3), ("ms", 1e6), ("s", 1e9))
_BYTES = (("bytes", 1.0), ("KiB", 2.0**10), ("MiB", 2.0**20), ("GiB", 2.0**30))
_COUNTS = (("", 1.0), ("k", 1e3), ("M", 1e6), ("G", 1e9), ("T", 1e12))
# By what is counted, with the digits of the smallest figure; counts of events are far steadier than times.
_SCALES = {"ns": (_TIMES, 4), "bytes": (_BYTES, 3), "": (_COUNTS, 6)}
_MOST_DECIMALS = 6


@dataclass(frozen=True, kw_only=True)
class Unit:
    """How a column writes its figures."""

    name: str  # `ms`; "" for plain numbers
    size: float  # How many base units (ns, bytes) make one
    decimals: int

    def text(self, value: float | None) -> str:
        """The figure without its unit; `-` where there is none."""
        return NOTHING if value is None else f"{value / self.size:,.{self.decimals}f}"


PLAIN = Unit(name="", size=1.0, decimals=0)

_FIXED = {
    "count": PLAIN,
    "ratio": Unit(name="", size=1.0, decimals=4),
    "times": Unit(name="times", size=1.0, decimals=2),
    "%": Unit(name="%", size=1.0, decimals=1),
    "share": Unit(name="%", size=0.01, decimals=1),
    "tenths": Unit(name="", size=1.0, decimals=1),
    "giga": Unit(name="", size=1e9, decimals=1),
}


def unit_of(kind: str, values: Iterable[float | None]) -> Unit:
    """For a column of figures of one kind: `ns`, `bytes`, `count`, ...; of other kinds for counts of events."""
    if kind in _FIXED:
        return _FIXED[kind]
    scale, digits = _SCALES.get(kind, _SCALES[""])
    return _choose(values, scale, digits=digits)


def unit_that_tells(kind: str, values: Sequence[float]) -> Unit:
    """As `unit_of`, with the decimals that values which differ need to look different: 9.97 and 10.03 KiB."""
    unit = unit_of(kind, values)
    while len({unit.text(value) for value in values}) < len(set(values)) and unit.decimals < _MOST_DECIMALS:
        unit = replace(unit, decimals=unit.decimals + 1)
    return unit


def unit_rules() -> dict[str, Any]:
    """What `unit_of` goes by, for scripts of pages, which write figures by the same rules."""
    return {
        "fixed": {kind: asdict(unit) for kind, unit in _FIXED.items()},
        "scales": {kind: {"units": scale, "digits": digits} for kind, (scale, digits) in _SCALES.items()},
        "most_decimals": _MOST_DECIMALS,
    }


def with_unit(value_ns: float) -> str:
    """One time on its own: `231 ms`."""
    unit = _choose([value_ns], _TIMES, digits=3)
    return f"{unit.text(value_ns)} {unit.name}"


def percent(ratio: float, *, decimals: int = 1) -> str:
    """A ratio as a signed change: 1.12 -> `+12.0 %`."""
    return f"{(ratio - 1) * 100:+,.{decimals}f} %"


def share(value: float) -> str:
    """A share of 1 in per cent, without digits that are not there: `0.05 %`."""
    return f"{value * 100:.6g} %"


def three_digits(value: float) -> str:
    """A large figure with the prefix of the unit that follows: `2.67 G`."""
    for size, prefix in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= size:
            return f"{value / size:.3g} {prefix}"
    return f"{value:.3g} "


def p_text(p: float | None) -> str:
    """`0.03`, and `2e-4` below a hundredth."""
    if p is None:
        return NOTHING
    if p >= 0.01:
        return f"{p:.2g}"
    if p <= 0:
        return "0"
    digits, exponent = f"{p:.0e}".split("e")
    return f"{digits}e{int(exponent)}"


def interval_text(ratio: float | None, low: float | None, high: float | None) -> str:
    """A ratio with its interval: `1.100 [1.092, 1.109]`; the ratio alone where it has none."""
    if ratio is None:
        return NOTHING
    if low is None or high is None:
        return ratio_text(ratio)
    return f"{ratio_text(ratio)} [{ratio_text(low)}, {ratio_text(high)}]"


def ratio_text(value: float) -> str:
    """A ratio: 0.602, 12.3, 0.045."""
    if 0.1 <= value < 10:
        return f"{value:.3f}"
    return f"{value:.1f}" if 10 <= value < 10_000 else f"{value:.2g}"


def _choose(values: Iterable[float | None], scale: Sequence[tuple[str, float]], *, digits: int) -> Unit:
    """The unit in which the median is at least 1; its decimals show so many digits of the smallest value, if near 1."""
    above_zero = [value for value in values if value is not None and value > 0]
    if not above_zero:
        return Unit(name=scale[0][0], size=scale[0][1], decimals=0)
    middle = statistics.median(above_zero)
    name, size = next(((name, size) for name, size in reversed(scale) if size <= middle), scale[0])
    if size == 1.0 and all(value == int(value) for value in above_zero):
        return Unit(name=name, size=size, decimals=0)
    before_point = math.floor(math.log10(min(above_zero)) - math.log10(size)) + 1
    return Unit(name=name, size=size, decimals=min(max(digits - before_point, 0), digits - 1))


# --- Names ---

ELLIPSIS = "…"
# No reader takes in more of a name; what follows costs time to measure and cannot be shown.
_LONGEST = 400
# Invisible, or changing what is around them: formats and directions, surrogates, private use, unassigned, and marks
# that would be stacked over the character before.
_UNSEEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Mn", "Me", "Zl", "Zp"})
_REVISION = re.compile(r" \([^()]*\)$")
_RELEASE_PREFIX = "iree=="
_MOST_VARIANTS = 3
COMMIT_DIGITS = 10


def compared(base: SideFacts, head: SideFacts) -> str:
    """What is compared, in a few words: `IREE 3.13.0 against IREE 3.12.0`; see `side_names`."""
    base_name, head_name = side_names(base, head)
    return f"{head_name} against {base_name}"


def side_names(base: SideFacts, head: SideFacts) -> tuple[str, str]:
    """What tells base and head apart: variants, within one run; else commits, releases, or the runs' folders."""
    if head.variants:
        return _variants(base.variants) or "the baseline", _variants(head.variants)
    both_commits = bool(base.commit and head.commit)
    if not both_commits and base.toolchains and head.toolchains and base.toolchains != head.toolchains:
        short = [tuple(_REVISION.sub("", toolchain) for toolchain in side.toolchains) for side in (base, head)]
        shown = short if short[0] != short[1] else [base.toolchains, head.toolchains]
        return f"IREE {' and '.join(shown[0])}", f"IREE {' and '.join(shown[1])}"
    names = _given_name(base), _given_name(head)
    return names if names[0] != names[1] else (base.label, head.label)


def given_as(side: SideFacts) -> str:
    """What the user called a side; of a commit with its digits and the first line of its message."""
    digits = f", commit {side.commit}" if side.commit and side.label != side.commit else ""
    return f"{side.label}{digits} ({side.subject})" if side.subject else f"{side.label}{digits}"


def _variants(names: tuple[str, ...]) -> str:
    return plural(len(names), "variant") if len(names) > _MOST_VARIANTS else " and ".join(names)


def _given_name(side: SideFacts) -> str:
    if side.commit:
        return f"commit {side.commit[:COMMIT_DIGITS]}"
    if side.label.startswith(_RELEASE_PREFIX):
        return f"IREE {side.label.removeprefix(_RELEASE_PREFIX)}"
    return re.split(r"[/\\]", side.label.rstrip("/\\"))[-1] or side.run


def tidy(text: str) -> str:
    """A name on one line, without characters that are not seen or that move others; at most 400 characters."""
    line = unicodedata.normalize("NFC", one_line(text[: 4 * _LONGEST]))
    seen = " ".join("".join(char for char in line if unicodedata.category(char) not in _UNSEEN).split())
    if len(seen) <= _LONGEST and len(text) <= 4 * _LONGEST:
        return seen
    return f"{seen[: _LONGEST - 1]}{ELLIPSIS}"


def middle_cut(text: str, keep: int) -> str:
    """The first and last characters of a text around an ellipsis: `resid…lock`; names differ at both ends."""
    if keep >= len(text):
        return text
    tail = max(keep, 0) * 2 // 5
    head = max(keep, 0) - tail
    return f"{text[:head].rstrip()}{ELLIPSIS}{text[len(text) - tail :].lstrip() if tail else ''}"
