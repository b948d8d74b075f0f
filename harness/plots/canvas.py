"""What all pictures share: two themes, texts that fit, and a figure with its places in pixels from the top left.

Colours are told apart by people who see them differently too (blue against orange, after Okabe and Ito), and nothing
is told by colour alone. Each theme's texts stand at 4.5 : 1 or more against its ground, and its marks at 3 : 1
(WCAG 2.2, 1.4.3 and 1.4.11).
"""

from __future__ import annotations

import io
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal

from harness.report.forest import Tone
from harness.report.units import middle_cut, tidy
from harness.text import plural

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis


Format = Literal["svg", "png"]
ThemeName = Literal["light", "dark"]
Look = Mapping[str, Any]  # of points, for matplotlib's Line2D
Place = tuple[float, float]

# Pixels of a web page; a PNG has two of its own for each.
WIDTH = 920.0
MARGIN = 24.0
ROOM = WIDTH - 2 * MARGIN
LONGEST_NAME = 230.0
TITLE, SUBTITLE, BODY, SMALL = 17.0, 13.0, 13.0, 12.0
POINTS_PER_PIXEL = 0.75

_PIXELS_PER_INCH = 96.0
_PNG_PIXELS = 2  # for each pixel of a page
_LINE = 1.42  # height of a line of text, in text sizes
_BOTTOM = 12.0
_HIGHEST = 4000.0  # while it is drawn, and cut off below what is drawn
_LEGEND_ROW = 20.0
_LACKING = "□"  # stands for a character that the font lacks
_MEASURED_AT = 100.0  # points, the size at which widths of texts are measured

# Marks by tone; that of `open` is hollow, so the ground is seen in it.
_MARKERS: Mapping[Tone, str] = {"worse": "^", "better": "v", "same": "o", "open": "D", "lost": "x"}


@dataclass(frozen=True, kw_only=True)
class Theme:
    """Colours of one theme."""

    ground: str  # Behind everything; GitHub's own in either mode, so that the picture has no edges there
    ink: str
    muted: str  # Of texts that explain
    axis: str  # Of lines that carry figures
    grid: str  # Of lines that help the eye
    stripe: str  # Behind every second row
    band: str  # Behind what is too small to be called changed
    tones: Mapping[Tone, str]  # Of what a row says
    series: tuple[str, ...]  # Of models and variants, in turn

    @property
    def behind_texts(self) -> dict[str, Any]:
        """What keeps lines out of a text, for matplotlib."""
        return {"facecolor": self.ground, "edgecolor": "none", "pad": 1.0}


LIGHT = Theme(
    ground="#ffffff",
    ink="#1f2328",
    muted="#59636e",
    axis="#818b98",
    grid="#dde2e8",
    stripe="#f6f8fa",
    band="#dfe5ec",
    tones={"worse": "#bc4c00", "better": "#0969da", "same": "#59636e", "open": "#8a6100", "lost": "#1f2328"},
    series=("#0072b2", "#bc4c00", "#00805d", "#a8447c", "#2f7fc1", "#8a6100", "#5b4b8a", "#59636e"),
)
DARK = Theme(
    ground="#0d1117",
    ink="#f0f6fc",
    muted="#9198a1",
    axis="#7d8590",
    grid="#2a313b",
    stripe="#141a21",
    band="#2b3440",
    tones={"worse": "#ff9a57", "better": "#58a6ff", "same": "#9198a1", "open": "#d8a32b", "lost": "#f0f6fc"},
    series=("#58a6ff", "#ff9a57", "#3fc495", "#e68fc3", "#9cd3ff", "#d8a32b", "#b3a1f0", "#9198a1"),
)
THEMES: Mapping[ThemeName, Theme] = {"light": LIGHT, "dark": DARK}


@lru_cache(maxsize=8192)  # a layout asks again and again
def drawable(text: str) -> str:
    """A text from anywhere on one line, with a box for each character that cannot be drawn."""
    glyphs = _glyphs()
    return "".join(char if ord(char) in glyphs else _LACKING for char in tidy(text))


@lru_cache(maxsize=8192)
def width_px(text: str, size_px: float = SMALL, *, bold: bool = False) -> float:
    """How wide a text is once it is drawable."""
    from matplotlib.textpath import text_to_path

    if not (line := drawable(text)):
        return 0.0
    width, _, _ = text_to_path.get_text_width_height_descent(line, _font(bold=bold), False)
    return float(width) / _MEASURED_AT * size_px


def widest(texts: Iterable[str], size_px: float = SMALL, *, bold: bool = False) -> float:
    """The width of the widest text; 0 where there is none."""
    return max((width_px(text, size_px, bold=bold) for text in texts), default=0.0)


def cut(text: str, room_px: float, size_px: float = SMALL, *, bold: bool = False) -> str:
    """A text as far as it fits, drawable; what is taken out of its middle is an ellipsis."""
    whole = drawable(text)

    def width(keep: int) -> float:
        return width_px(middle_cut(whole, keep), size_px, bold=bold)

    if width(len(whole)) <= room_px:
        return whole
    return middle_cut(whole, max(0, bisect_right(range(len(whole)), room_px, key=width) - 1))


def wrapped(text: str, room_px: float, size_px: float = SMALL, *, most: int = 3) -> list[str]:
    """A text in lines of at most so many pixels, broken between words; the last of `most` lines ends in an ellipsis."""
    lines: list[str] = []
    words = drawable(text).split()
    while words:
        is_last = len(lines) == most - 1
        end = " …" if is_last and width_px(" ".join(words), size_px) > room_px else ""
        count = 1
        while count < len(words) and width_px(" ".join(words[: count + 1]) + end, size_px) <= room_px:
            count += 1
        lines.append(cut(" ".join(words[:count]) + end, room_px, size_px))
        if is_last:
            break
        words = words[count:]
    return lines


@lru_cache(maxsize=2)
def _font(*, bold: bool) -> Any:
    from matplotlib.font_manager import FontProperties

    return FontProperties(family="DejaVu Sans", size=_MEASURED_AT, weight="bold" if bold else "normal")


@lru_cache(maxsize=1)
def _glyphs() -> frozenset[int]:
    from matplotlib.font_manager import findfont, get_font

    normal, bold = (frozenset(get_font(findfont(_font(bold=bold))).get_charmap()) for bold in (False, True))
    return normal & bold


def left_out_text(panels: int) -> str:
    """How many panels there was no room for, in a sentence; "" where all are drawn."""
    return f"Not drawn: {plural(panels, 'more model')} or devices." if panels > 0 else ""


@dataclass(frozen=True, kw_only=True)
class Drawing:
    """What a picture shows, to be drawn in either theme."""

    kind: str  # Begins the title of its file: `Ratios`
    title: str
    lines: Sequence[str]  # Below the title; the first describes it to those who do not see it
    paint: Callable[[Canvas], None]

    def file(self, theme: Theme, picture: Format) -> bytes:
        """The picture's file; the user's own settings of matplotlib change nothing."""
        from matplotlib import style
        from matplotlib.transforms import Bbox

        with style.context(["default", _settings(theme)]):
            canvas = Canvas(theme)
            canvas.head(self.title, self.lines)
            self.paint(canvas)
            ends = (0, _HIGHEST - canvas.y - _BOTTOM, WIDTH, _HIGHEST)
            drawn = Bbox.from_extents(*(end / _PIXELS_PER_INCH for end in ends))
            # For those who do not see it; and nothing that differs from day to day.
            title, description = drawable(f"{self.kind}: {self.title}"), drawable("".join(self.lines[:1]))
            none = dict.fromkeys(("Date", "Creator") if picture == "svg" else ("Software",))
            metadata = {"Title": title, "Description": description, **none}
            more: dict[str, Any] = {} if picture == "svg" else {"pil_kwargs": {"optimize": True}}
            content = io.BytesIO()
            canvas.figure.savefig(content, format=picture, metadata=metadata, bbox_inches=drawn, **more)
            return content.getvalue()


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
        "axes.facecolor": "none",
        "axes.axisbelow": True,
        "grid.color": theme.grid,
        "grid.linewidth": 0.8,
        "xtick.color": theme.muted,
        "ytick.color": theme.muted,
        "hatch.color": theme.ground,
        "hatch.linewidth": 1.2,
        **{f"axes.spines.{side}": False for side in ("left", "bottom", "right", "top")},
        **{f"{axis}tick.{which}.size": 0 for axis in "xy" for which in ("major", "minor")},
        **{f"{axis}tick.major.pad": 5 for axis in "xy"},
        **{f"{axis}tick.labelsize": SMALL * POINTS_PER_PIXEL for axis in "xy"},
    }


class Canvas:
    """What a picture is drawn on, in pixels of a page from the top left. Any text may be given."""

    def __init__(self, theme: Theme) -> None:
        from matplotlib.figure import Figure
        from matplotlib.transforms import Affine2D

        self.theme = theme
        self.y = 0.0  # down to here something is drawn
        size = (WIDTH / _PIXELS_PER_INCH, _HIGHEST / _PIXELS_PER_INCH)
        self.figure = Figure(figsize=size, dpi=_PIXELS_PER_INCH * _PNG_PIXELS, facecolor=theme.ground)
        self.place = Affine2D().scale(1 / WIDTH, -1 / _HIGHEST).translate(0, 1) + self.figure.transFigure

    def down(self, height: float) -> float:
        """Take this much of the picture; where it begins."""
        self.y += height
        return self.y - height

    def text(
        self, x: float, y: float, text: str, *, size: float = BODY, color: str = "", align: str = "left",
        bold: bool = False, **more: Any,
    ) -> None:  # fmt: skip
        """A text whose middle line stands at `y`."""
        look = {"color": color or self.theme.ink, "weight": "bold" if bold else "normal", "va": "center_baseline"}
        points = size * POINTS_PER_PIXEL
        self.figure.text(x, y, drawable(text), size=points, ha=align, transform=self.place, **{**look, **more})

    def note(self, x: float, y: float, text: str, *, align: str = "left", **more: Any) -> None:
        """A small text that explains."""
        self.text(x, y, text, align=align, **{"size": SMALL, "color": self.theme.muted, **more})

    def heading(self, text: str) -> None:
        """The title of a panel."""
        self.text(MARGIN, self.down(30) + 15, cut(text, ROOM, BODY + 1, bold=True), size=BODY + 1, bold=True)

    def axes(self, x: float, y: float, width: float, height: float, *, xlabel: str = "", ylabel: str = "") -> Axes:
        """Empty axes without a frame; `y` is their top."""
        axes = self.figure.add_axes((x / WIDTH, 1 - (y + height) / _HIGHEST, width / WIDTH, height / _HIGHEST))
        turned = {"align": "center", "rotation_mode": "anchor", "va": "center"}
        self.note(x + width / 2, y + height + 34, cut(xlabel, width), **turned)
        self.note(16, y + height / 2, cut(ylabel, height), rotation=90, **turned)
        return axes

    def pixels(self, axes: Axes, places: Sequence[Place]) -> list[Place]:
        """Where places of the axes lie in the picture."""
        points = self.place.inverted().transform(axes.transData.transform(places))
        return [(float(x), float(y)) for x, y in points]

    @staticmethod
    def round_ticks(axis: Axis, most: int) -> None:
        """At most so many ticks at round figures."""
        from matplotlib.ticker import LogLocator, MaxNLocator, NullLocator, StrMethodFormatter

        is_log = axis.get_scale() == "log"
        axis.set_major_locator(LogLocator(subs=(1, 2, 5)) if is_log else MaxNLocator(most))
        axis.set_major_formatter(StrMethodFormatter("{x:,.6g}"))
        axis.set_minor_locator(NullLocator())

    def box(self, x: float, y: float, width: float, height: float, **more: Any) -> None:
        """A rectangle, by default behind everything else; it looks as matplotlib's Rectangle is told."""
        from matplotlib.patches import Rectangle

        look = {"linewidth": 0, "transform": self.place, "zorder": -5.0, **more}
        self.figure.add_artist(Rectangle((x, y), width, height, **look))

    def stripe(self, y: float, height: float) -> None:
        """The ground of every second row."""
        self.box(MARGIN - 8, y, ROOM + 16, height, color=self.theme.stripe)

    def points(self, xs: Sequence[float], ys: Sequence[float], **more: Any) -> None:
        """A line through places of the picture, or marks there, as matplotlib's Line2D is told."""
        from matplotlib.lines import Line2D

        self.figure.add_artist(Line2D(xs, ys, **{"transform": self.place, "zorder": 2, **more}))

    def head(self, title: str, lines: Sequence[str]) -> None:
        """A title and lines below it."""
        self.text(MARGIN, self.down(40) + 30, cut(title, ROOM, TITLE, bold=True), size=TITLE, bold=True)
        for number, line in enumerate(lines):
            size, color = (SMALL, self.theme.muted) if number else (SUBTITLE, self.theme.ink)
            for part in wrapped(line, ROOM, size, most=2):
                self.text(MARGIN, self.down(size * _LINE) + size * _LINE, part, size=size, color=color)
        self.down(16)

    def foot(self, *lines: str) -> None:
        """Lines that explain; those without a text are left out."""
        self.down(8)
        for part in (part for line in lines for part in wrapped(line, ROOM)):
            self.note(MARGIN, self.down(SMALL * _LINE), part)

    def legend(self, entries: Iterable[tuple[str, Sequence[Look]]]) -> None:
        """Marks and what they mean, in as many rows as it takes; a mark may be drawn in several layers."""
        x, y = MARGIN, self.down(_LEGEND_ROW) + _LEGEND_ROW / 2
        for name, looks in entries:
            text = cut(name, LONGEST_NAME)
            width = 15 + width_px(text) + 20
            if x > MARGIN and x + width > WIDTH - MARGIN:
                x, y = MARGIN, self.down(_LEGEND_ROW) + _LEGEND_ROW / 2
            for look in looks:
                self.points([x + 5], [y], **look)
            self.note(x + 15, y, text)
            x += width

    def tones(self, entries: Iterable[tuple[Tone, str]]) -> None:
        """A legend of tones."""
        self.legend((word, [mark_of(self.theme, tone)]) for tone, word in entries)
        self.down(10)


def look_of(marker: str, size: float, face: str, edge: str, edge_width: float, **more: Any) -> Look:
    """How points look, for matplotlib; sizes are points."""
    return {
        "linestyle": "none",
        "marker": marker,
        "markersize": size,
        "markerfacecolor": face,
        "markeredgecolor": edge,
        "markeredgewidth": edge_width,
        **more,
    }


def mark_of(theme: Theme, tone: Tone, *, hollow: bool = False) -> Look:
    """How a point of a tone looks."""
    color, is_open = theme.tones[tone], tone == "open"
    size = (6.0 if is_open else 7.5) * POINTS_PER_PIXEL * 1.25
    return look_of(_MARKERS[tone], size, theme.ground if hollow or is_open else color, color, 1.3, zorder=5)
