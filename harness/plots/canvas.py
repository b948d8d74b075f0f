"""What all pictures share: two themes, texts that fit, and a figure with its places in pixels from the top left.

Colours are told apart by people who see them differently too (blue against orange, after Okabe and Ito), and nothing
is told by colour alone. Each theme's texts stand at 4.5 : 1 or more against its ground, and its marks at 3 : 1
(WCAG 2.2, 1.4.3 and 1.4.11).
"""

from __future__ import annotations

import io
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

from harness.report.forest import Tone
from harness.report.names import middle_cut, tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes


Format = Literal["svg", "png"]
ThemeName = Literal["light", "dark"]

# Pixels of a web page; a PNG has two of its own for each.
WIDTH = 920.0
MARGIN = 24.0
TITLE, SUBTITLE, BODY, SMALL = 17.0, 13.0, 13.0, 12.0
POINTS_PER_PIXEL = 0.75

_PIXELS_PER_INCH = 96.0
_PNG_PIXELS = 2  # for each pixel of a page
_PALETTE = 256  # colours, the most that a PNG's palette holds
_LINE = 1.42  # height of a line of text, in text sizes
_BOTTOM = 12.0
_LACKING = "□"  # stands for a character that the font lacks
_MEASURED_AT = 100.0  # points, the size at which widths of texts are measured

# Marks by tone; hollow ones leave the ground visible.
MARKERS: Mapping[Tone, str] = MappingProxyType({"worse": "^", "better": "v", "same": "o", "open": "D", "lost": "x"})
HOLLOW: frozenset[Tone] = frozenset({"open"})


@dataclass(frozen=True, kw_only=True)
class Theme:
    """Colours of one theme."""

    name: ThemeName
    ground: str  # Behind everything; GitHub's own in either mode, so that the picture has no edges there
    ink: str
    muted: str  # Of texts that explain
    axis: str  # Of lines that carry figures
    grid: str  # Of lines that help the eye
    stripe: str  # Behind every second row
    band: str  # Behind what is too small to be called changed
    tones: Mapping[Tone, str]  # Of what a row says
    series: tuple[str, ...]  # Of models and variants, in turn


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


def paint(
    theme: Theme,
    picture: Format,
    draw: Callable[[Canvas, float], None],
    *,
    kind: str,
    title: str,
    lines: Sequence[str],
    above: float,
    height: float,
    foot: Sequence[str] = (),
) -> bytes:
    """A whole picture: a title with lines below it, what `draw` draws, and lines at the foot that explain it.

    The user's own settings of matplotlib change nothing.
    """
    from matplotlib import style

    top = _head_height(lines) + above
    foot_height = SMALL * _LINE * sum(len(_foot_lines(line)) for line in foot)
    with style.context(["default", _settings(theme)]):
        canvas = Canvas(theme, top + height + foot_height + _BOTTOM)
        canvas.head(title, lines)
        draw(canvas, top)
        canvas.foot(foot, top + height)
        return canvas.file(picture, f"{kind}: {title}", " ".join(lines[:1]))


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


class Canvas:
    """What a picture is drawn on; made by `paint`. Any text may be given: it is made drawable here."""

    def __init__(self, theme: Theme, height: float) -> None:
        """An empty picture; its height is in pixels of a page."""
        from matplotlib.figure import Figure
        from matplotlib.transforms import Affine2D

        self.theme, self.height = theme, height
        inch = 1 / _PIXELS_PER_INCH
        self.figure = Figure(
            figsize=(WIDTH * inch, height * inch), dpi=_PIXELS_PER_INCH * _PNG_PIXELS, facecolor=theme.ground
        )
        self.place = Affine2D().scale(inch, -inch).translate(0, height * inch) + self.figure.dpi_scale_trans

    def text(
        self,
        x: float,
        y: float,
        text: str,
        *,
        size: float = BODY,
        color: str = "",
        align: str = "left",
        bold: bool = False,
        **more: Any,
    ) -> None:
        """A text whose middle line stands at `y`."""
        self.figure.text(
            x,
            y,
            drawable(text),
            size=size * POINTS_PER_PIXEL,
            color=color or self.theme.ink,
            ha=align,
            weight="bold" if bold else "normal",
            transform=self.place,
            **{"va": "center_baseline", **more},
        )

    def upright(self, x: float, y: float, text: str) -> None:
        """The turned name of an axis, beside it; `y` is its middle."""
        turned: dict[str, Any] = {"rotation": 90, "rotation_mode": "anchor", "va": "center"}
        self.text(x, y, text, size=SMALL, color=self.theme.muted, align="center", **turned)

    def axes(self, x: float, y: float, width: float, height: float) -> Axes:
        """Empty axes without a frame; `y` is their top."""
        axes = self.figure.add_axes((x / WIDTH, 1 - (y + height) / self.height, width / WIDTH, height / self.height))
        axes.set_facecolor("none")
        axes.set_axisbelow(True)
        axes.spines[:].set_visible(False)
        axes.tick_params(length=0, labelsize=SMALL * POINTS_PER_PIXEL, pad=5)
        return axes

    def box(self, x: float, y: float, width: float, height: float, **more: Any) -> None:
        """A rectangle, by default behind everything else; it looks as matplotlib's Rectangle is told."""
        from matplotlib.patches import Rectangle

        look = {"linewidth": 0, "transform": self.place, "zorder": -5.0, **more}
        self.figure.add_artist(Rectangle((x, y), width, height, **look))

    def line(self, xs: Sequence[float], ys: Sequence[float], color: str, width: float = 1.0, **more: Any) -> None:
        """A line through places of the picture."""
        self.points(xs, ys, color=color, linewidth=width, zorder=2, **more)

    def points(self, xs: Sequence[float], ys: Sequence[float], **more: Any) -> None:
        """Points of the picture that look as matplotlib's Line2D is told."""
        from matplotlib.lines import Line2D

        self.figure.add_artist(Line2D(xs, ys, transform=self.place, **more))

    def mark(self, x: float, y: float, tone: Tone) -> None:
        """A mark of a tone, as in a legend."""
        self.points([x], [y], **mark_of(self.theme, tone))

    def head(self, title: str, lines: Sequence[str]) -> None:
        """A title and lines below it."""
        y = 30.0
        self.text(MARGIN, y, cut(title, WIDTH - 2 * MARGIN, TITLE, bold=True), size=TITLE, bold=True)
        y += 10
        for size, part in _head_lines(lines):
            y += size * _LINE
            self.text(MARGIN, y, part, size=size, color=self.theme.ink if size == SUBTITLE else self.theme.muted)

    def foot(self, lines: Sequence[str], y: float) -> None:
        """Lines that explain."""
        for line in lines:
            for part in _foot_lines(line):
                self.text(MARGIN, y, part, size=SMALL, color=self.theme.muted)
                y += SMALL * _LINE

    def legend(self, entries: Sequence[tuple[Tone, str]], x: float, y: float) -> None:
        """Marks and what they mean, in one line."""
        for tone, word in entries:
            self.mark(x + 5, y, tone)
            self.text(x + 15, y, word, size=SMALL, color=self.theme.muted)
            x += 15 + width_px(word, SMALL) + 20

    def file(self, picture: Format, title: str, description: str) -> bytes:
        """The picture's file, with a title and a description for those who do not see it."""
        texts = {"Title": drawable(title), "Description": drawable(description)}
        content = io.BytesIO()
        if picture == "svg":
            metadata = {**texts, "Date": None, "Creator": None}
            self.figure.savefig(content, format="svg", facecolor=self.theme.ground, metadata=metadata)
            return content.getvalue()
        from PIL import Image
        from PIL.PngImagePlugin import PngInfo

        drawn = io.BytesIO()
        self.figure.savefig(drawn, format="png", facecolor=self.theme.ground, pil_kwargs={"compress_level": 1})
        image = Image.open(drawn).convert("RGB")
        # A palette makes a third of the size, and it is as crisp, since nearly all pixels have one of few colours. Of
        # Pillow's ways this one keeps the colours that most pixels have as they are; dots would blur texts.
        palette = image.quantize(_PALETTE, Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE)
        info = PngInfo()
        for key, text in texts.items():
            info.add_itxt(key, text)
        palette.save(content, "png", optimize=True, dpi=(self.figure.dpi, self.figure.dpi), pnginfo=info)
        return content.getvalue()


def mark_of(theme: Theme, tone: Tone, *, hollow: bool = False) -> dict[str, Any]:
    """How a point of a tone looks, for matplotlib."""
    color = theme.tones[tone]
    return {
        "linestyle": "none",
        "marker": MARKERS[tone],
        "markersize": (6.0 if MARKERS[tone] == "D" else 7.5) * POINTS_PER_PIXEL * 1.25,
        "markerfacecolor": theme.ground if hollow or tone in HOLLOW else color,
        "markeredgecolor": color,
        "markeredgewidth": 1.3,
        "zorder": 5,
    }


def _head_lines(lines: Sequence[str]) -> list[tuple[float, str]]:
    """The lines below a title as they are written, each with its size."""
    sizes = [SUBTITLE, *[SMALL] * len(lines)]
    room = WIDTH - 2 * MARGIN
    return [
        (size, part) for size, line in zip(sizes, lines, strict=False) for part in wrapped(line, room, size, most=2)
    ]


def _head_height(lines: Sequence[str]) -> float:
    return 40 + sum(size * _LINE for size, _ in _head_lines(lines))


def _foot_lines(line: str) -> list[str]:
    return wrapped(line, WIDTH - 2 * MARGIN, SMALL)


# --- Texts ---


def left_out_text(panels: int) -> str:
    """How many panels there was no room for, in a sentence; "" where all are drawn."""
    return f"Not drawn: {panels} more {'model' if panels == 1 else 'models'} or devices." if panels else ""


@lru_cache(maxsize=8192)  # a layout asks again and again
def drawable(text: str) -> str:
    """A text from anywhere on one line, with a box for each character that cannot be drawn."""
    glyphs = _glyphs()
    return "".join(char if ord(char) in glyphs else _LACKING for char in tidy(text))


@lru_cache(maxsize=8192)
def width_px(text: str, size_px: float, *, bold: bool = False) -> float:
    """How wide a text is once it is drawable."""
    from matplotlib.textpath import text_to_path

    if not (line := drawable(text)):
        return 0.0
    width, _, _ = text_to_path.get_text_width_height_descent(line, _font(bold=bold), False)
    return float(width) / _MEASURED_AT * size_px


def cut(text: str, room_px: float, size_px: float, *, bold: bool = False) -> str:
    """A text as far as it fits, drawable; what is taken out of its middle is an ellipsis."""
    whole = drawable(text)
    if width_px(whole, size_px, bold=bold) <= room_px:
        return whole
    least, most = 0, len(whole) - 1
    while least < most:
        keep = (least + most + 1) // 2
        if width_px(middle_cut(whole, keep), size_px, bold=bold) <= room_px:
            least = keep
        else:
            most = keep - 1
    return middle_cut(whole, least)


def wrapped(text: str, room_px: float, size_px: float, *, most: int = 3) -> list[str]:
    """A text in lines of at most so many pixels, broken between words; the last of `most` lines ends in an ellipsis."""
    lines: list[str] = []
    words = drawable(text).split()
    while words:
        if len(lines) == most - 1:
            return [*lines, cut_end(" ".join(words), room_px, size_px)]
        count = 1
        while count < len(words) and width_px(" ".join(words[: count + 1]), size_px) <= room_px:
            count += 1
        lines.append(cut(" ".join(words[:count]), room_px, size_px))
        words = words[count:]
    return lines


def cut_end(text: str, room_px: float, size_px: float) -> str:
    """A sentence as far as it fits; its end is an ellipsis where it goes on."""
    whole = drawable(text)
    if width_px(whole, size_px) <= room_px:
        return whole
    words = whole.split()
    while len(words) > 1 and width_px(f"{' '.join(words)} …", size_px) > room_px:
        words = words[:-1]
    return f"{' '.join(words)} …" if len(words) > 1 else cut(whole, room_px, size_px)


@lru_cache(maxsize=2)
def _font(*, bold: bool) -> Any:
    from matplotlib.font_manager import FontProperties

    return FontProperties(family="DejaVu Sans", size=_MEASURED_AT, weight="bold" if bold else "normal")


@lru_cache(maxsize=1)
def _glyphs() -> frozenset[int]:
    """Characters that both the normal and the bold font have."""
    from matplotlib.font_manager import findfont, get_font

    fonts = [frozenset(get_font(findfont(_font(bold=bold))).get_charmap()) for bold in (False, True)]
    return fonts[0] & fonts[1]


# How far from its point a name may stand, and in which directions it is tried: beside the point first.
_DISTANCES = (9.0, 16.0, 26.0, 38.0, 52.0, 68.0, 86.0, 106.0)
_DIRECTIONS = (0, 180, 45, -45, 135, -135, 90, -90, 20, -20, 160, -160, 70, -70, 110, -110)
_NEAR = 12.0  # without a line from the point to its name
_RADIUS = 6.0  # of a point
_AIR = 2.0


@dataclass(frozen=True, kw_only=True)
class Box:
    """A rectangle; y grows upwards or downwards, whichever the caller has."""

    left: float
    bottom: float
    right: float
    top: float

    def overlaps(self, other: Box) -> bool:
        """Whether they have more than an edge in common."""
        return (
            self.left < other.right and other.left < self.right and self.bottom < other.top and other.bottom < self.top
        )

    def holds(self, other: Box) -> bool:
        """Whether all of the other lies within."""
        return (
            self.left <= other.left
            and other.right <= self.right
            and self.bottom <= other.bottom
            and other.top <= self.top
        )


@dataclass(frozen=True, kw_only=True)
class Placed:
    """Where a name stands, and whether a line has to lead to it."""

    box: Box
    far: bool


def place_labels(
    points: Sequence[tuple[float, float]],
    sizes: Sequence[tuple[float, float]],
    bounds: Box,
    avoid: Sequence[Box] = (),
) -> list[Placed | None]:
    """A place for each name, None where there is none left; no two overlap, and none covers a point."""
    dots = [Box(left=x - _RADIUS, right=x + _RADIUS, bottom=y - _RADIUS, top=y + _RADIUS) for x, y in points]
    placed: list[Placed | None] = [None] * len(points)
    # Where points crowd, places are rare.
    for index in sorted(range(len(points)), key=lambda index: -_neighbours(points[index], points)):
        taken = [*dots, *(place.box for place in placed if place is not None)]
        placed[index] = _free_place(points[index], sizes[index], taken, bounds, avoid)
    return placed


def _neighbours(point: tuple[float, float], points: Sequence[tuple[float, float]]) -> int:
    return sum(math.hypot(point[0] - x, (point[1] - y) * 3) < 90 for x, y in points)


def _free_place(
    point: tuple[float, float], size: tuple[float, float], taken: Sequence[Box], bounds: Box, avoid: Sequence[Box]
) -> Placed | None:
    for distance in _DISTANCES:
        boxes = (_box(point, size, distance, math.radians(degrees)) for degrees in _DIRECTIONS)
        free = [box for box in boxes if bounds.holds(box) and not any(box.overlaps(other) for other in taken)]
        if free:
            best = next((box for box in free if not any(box.overlaps(other) for other in avoid)), free[0])
            return Placed(box=best, far=distance > _NEAR)
    return None


def _box(point: tuple[float, float], size: tuple[float, float], distance: float, angle: float) -> Box:
    """The name's edge or corner that is next to the point lies at that distance from it."""
    (x, y), (width, height) = point, size
    across, up = math.cos(angle), math.sin(angle)
    left = x + distance * across - width * (0.5 - 0.5 * _sign(across))
    bottom = y + distance * up - height * (0.5 - 0.5 * _sign(up))
    return Box(left=left - _AIR, right=left + width + _AIR, bottom=bottom, top=bottom + height)


def _sign(value: float) -> float:
    return 0.0 if abs(value) < 0.3 else math.copysign(1.0, value)
