"""How all pictures look: two themes, one set of sizes, and what matplotlib is told.

Colours are told apart by people who see them differently too (blue against orange, after Okabe and Ito), and nothing
is told by colour alone. Each theme's texts stand at 4.5 : 1 or more against its ground, and its marks at 3 : 1
(WCAG 2.2, 1.4.3 and 1.4.11).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal

from harness.report.forest import Tone

Format = Literal["svg", "png"]
ThemeName = Literal["light", "dark"]

# Pixels of a web page; a PNG has two of its own for each.
WIDTH = 920.0
MARGIN = 24.0
TITLE, SUBTITLE, BODY, SMALL = 17.0, 13.0, 13.0, 12.0


@dataclass(frozen=True, kw_only=True)
class Theme:
    """Colours of one theme.

    Attributes:
        ground: Behind everything; GitHub's own in either mode, so that the picture has no edges there.
        muted: Of texts that explain.
        axis: Of lines that carry figures.
        grid: Of lines that help the eye.
        stripe: Behind every second row.
        band: Behind what is too small to be called changed.
        tones: Of what a row says.
        series: Of models and variants, in turn.
    """

    name: ThemeName
    ground: str
    ink: str
    muted: str
    axis: str
    grid: str
    stripe: str
    band: str
    tones: Mapping[Tone, str]
    series: tuple[str, ...]


LIGHT = Theme(
    name="light",
    ground="#ffffff",
    ink="#1f2328",
    muted="#59636e",
    axis="#818b98",
    grid="#dde2e8",
    stripe="#f6f8fa",
    band="#dfe5ec",
    tones=MappingProxyType(
        {"worse": "#bc4c00", "better": "#0969da", "same": "#59636e", "open": "#8a6100", "lost": "#1f2328"}
    ),
    series=("#0072b2", "#bc4c00", "#00805d", "#a8447c", "#2f7fc1", "#8a6100", "#5b4b8a", "#59636e"),
)
DARK = Theme(
    name="dark",
    ground="#0d1117",
    ink="#f0f6fc",
    muted="#9198a1",
    axis="#7d8590",
    grid="#2a313b",
    stripe="#141a21",
    band="#2b3440",
    tones=MappingProxyType(
        {"worse": "#ff9a57", "better": "#58a6ff", "same": "#9198a1", "open": "#d8a32b", "lost": "#f0f6fc"}
    ),
    series=("#58a6ff", "#ff9a57", "#3fc495", "#e68fc3", "#9cd3ff", "#d8a32b", "#b3a1f0", "#9198a1"),
)
THEMES: Mapping[ThemeName, Theme] = MappingProxyType({"light": LIGHT, "dark": DARK})

# Of a mark in each tone; hollow ones leave the ground visible.
MARKERS: Mapping[Tone, str] = MappingProxyType({"worse": "^", "better": "v", "same": "o", "open": "D", "lost": "x"})
HOLLOW: frozenset[Tone] = frozenset({"open"})
# Of variants, in turn.
SHAPES = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "p", "h", "*")
_MARKER_SIZE, _SMALL_MARKER_SIZE = 7.5, 4.5


@dataclass(frozen=True, kw_only=True)
class Marker:
    """How the points of a variant look.

    Attributes:
        hollow: Whether it is an outline.
        size: Points across.
    """

    shape: str
    hollow: bool
    size: float


def marker_of(number: int) -> Marker:
    """The mark of a variant: a dozen shapes filled, then hollow, then both smaller; 48 before the first comes again."""
    turn, shape = divmod(number, len(SHAPES))
    return Marker(shape=SHAPES[shape], hollow=turn % 2 == 1, size=_SMALL_MARKER_SIZE if turn % 4 > 1 else _MARKER_SIZE)


@contextmanager
def drawing(theme: Theme) -> Iterator[None]:
    """Everything that is drawn within has the theme, whatever the user's own settings of matplotlib are."""
    from matplotlib import style

    with style.context(["default", _settings(theme)]):
        yield


def _settings(theme: Theme) -> dict[str, Any]:
    return {
        "font.family": "sans-serif",
        # The first is matplotlib's own; the second is as wide, and where an SVG may be shown without the first.
        "font.sans-serif": ["DejaVu Sans", "Verdana", "sans-serif"],
        "svg.fonttype": "none",  # texts stay texts
        "svg.hashsalt": "harness",  # the same picture has the same names inside, so the same bytes
        "text.parse_math": False,  # names may hold a dollar sign
        "path.simplify": False,
        "text.color": theme.ink,
        "axes.edgecolor": theme.axis,
        "axes.labelcolor": theme.ink,
        "axes.facecolor": theme.ground,
        "xtick.color": theme.muted,
        "ytick.color": theme.muted,
        "hatch.color": theme.ground,
        "hatch.linewidth": 1.2,
    }
