"""A figure with its places in pixels from the top left, and its file."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from harness.plots.look import BODY, HOLLOW, MARGIN, MARKERS, SMALL, SUBTITLE, TITLE, WIDTH, Format, Theme
from harness.plots.text import POINTS_PER_PIXEL, cut, width_px, wrapped
from harness.report.forest import Tone

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_PIXELS_PER_INCH = 96.0
_PNG_PIXELS = 2  # for each pixel of a page
_PALETTE = 256  # colours, the most that a PNG's palette holds
_LINE = 1.42  # height of a line of text, in text sizes


class Canvas:
    """What a picture is drawn on. Use within `harness.plots.look.drawing`."""

    def __init__(self, theme: Theme, height: float, width: float = WIDTH) -> None:
        """An empty picture; both sizes are in pixels of a page."""
        from matplotlib.figure import Figure
        from matplotlib.transforms import Affine2D

        self.theme, self.width, self.height = theme, width, height
        size = width / _PIXELS_PER_INCH, height / _PIXELS_PER_INCH
        self.figure = Figure(figsize=size, dpi=_PIXELS_PER_INCH * _PNG_PIXELS, facecolor=theme.ground)
        inch = 1 / _PIXELS_PER_INCH
        self.place = Affine2D().scale(inch, -inch).translate(0, height * inch) + self.figure.dpi_scale_trans

    def text(
        self, x: float, y: float, text: str, *, size: float = BODY, color: str = "", align: str = "left", **more: Any
    ) -> None:
        """A text that is drawable already; its middle line stands at `y`."""
        given: dict[str, Any] = {"va": "center_baseline", **more}
        self.figure.text(
            x,
            y,
            text,
            size=size * POINTS_PER_PIXEL,
            color=color or self.theme.ink,
            ha=align,
            transform=self.place,
            **given,
        )

    def upright(self, x: float, y: float, text: str) -> None:
        """The name of an axis, drawable already, beside it and turned; `y` is its middle."""
        turned: dict[str, Any] = {"rotation": 90, "rotation_mode": "anchor", "va": "center"}
        self.text(x, y, text, size=SMALL, color=self.theme.muted, align="center", **turned)

    def axes(self, x: float, y: float, width: float, height: float) -> Axes:
        """Empty axes without a frame; `y` is their top."""
        axes = self.figure.add_axes(
            (x / self.width, 1 - (y + height) / self.height, width / self.width, height / self.height)
        )
        axes.set_facecolor("none")
        axes.spines[:].set_visible(False)
        axes.tick_params(length=0, labelsize=SMALL * POINTS_PER_PIXEL, pad=5)
        return axes

    def box(self, x: float, y: float, width: float, height: float, color: str, *, zorder: float = -5.0) -> None:
        """A filled rectangle, behind everything else where nothing else is said."""
        from matplotlib.patches import Rectangle

        rectangle = Rectangle((x, y), width, height, color=color, linewidth=0, transform=self.place)
        rectangle.set_zorder(zorder)
        self.figure.add_artist(rectangle)

    def line(
        self, xs: Sequence[float], ys: Sequence[float], color: str, width: float = 1.0, *, dashed: bool = False
    ) -> None:
        """A line through places of the picture."""
        from matplotlib.lines import Line2D

        line = Line2D(xs, ys, color=color, linewidth=width, transform=self.place, zorder=2)
        line.set_linestyle((0.0, (3.0, 3.0)) if dashed else "solid")
        self.figure.add_artist(line)

    def mark(self, x: float, y: float, tone: Tone, size: float = 7.5) -> None:
        """A mark of a tone, as in a legend."""
        from matplotlib.lines import Line2D

        self.figure.add_artist(Line2D([x], [y], transform=self.place, **mark_of(self.theme, tone, size)))

    def head(self, title: str, lines: Sequence[str], y: float = 30.0) -> float:
        """A title and lines below it; where they end."""
        room = self.width - 2 * MARGIN
        self.text(MARGIN, y, cut(title, room, TITLE, bold=True), size=TITLE, weight="bold")
        y += 10
        for number, line in enumerate(lines):
            size = SUBTITLE if number == 0 else SMALL
            for part in wrapped(line, room, size, most=2):
                y += size * _LINE
                self.text(MARGIN, y, part, size=size, color=self.theme.ink if number == 0 else self.theme.muted)
        return y

    def foot(self, lines: Sequence[str], y: float) -> float:
        """Lines that explain; where they end."""
        for line in lines:
            for part in wrapped(line, self.width - 2 * MARGIN, SMALL):
                self.text(MARGIN, y, part, size=SMALL, color=self.theme.muted)
                y += SMALL * _LINE
        return y

    def legend(self, entries: Sequence[tuple[Tone, str]], x: float, y: float) -> None:
        """Marks and what they mean, in one line."""
        for tone, word in entries:
            self.mark(x + 5, y, tone)
            self.text(x + 15, y, word, size=SMALL, color=self.theme.muted)
            x += 15 + width_px(word, SMALL) + 20

    def file(self, picture: Format, title: str, description: str) -> bytes:
        """The picture's file; equal pictures have equal bytes with the same release of matplotlib."""
        if picture == "png":
            return self._png(title, description)
        content = io.BytesIO()
        metadata = {"Title": title, "Description": description, "Date": None, "Creator": None}
        self.figure.savefig(content, format="svg", facecolor=self.theme.ground, metadata=metadata)
        return content.getvalue()

    def _png(self, title: str, description: str) -> bytes:
        """With a palette: a third of the size, and as crisp, since nearly all pixels have one of few colours."""
        from PIL import Image
        from PIL.PngImagePlugin import PngInfo

        drawn = io.BytesIO()
        self.figure.savefig(drawn, format="png", facecolor=self.theme.ground, pil_kwargs={"compress_level": 1})
        image = Image.open(drawn).convert("RGB")
        # Of Pillow's ways this one keeps the colours that most pixels have as they are; dots would blur texts.
        palette = image.quantize(_PALETTE, Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE)
        texts = PngInfo()
        for key, text in (("Title", title), ("Description", description)):
            texts.add_itxt(key, text)
        content = io.BytesIO()
        resolution = self.figure.dpi, self.figure.dpi
        palette.save(content, "png", optimize=True, dpi=resolution, pnginfo=texts)
        return content.getvalue()


def head_height(lines: Sequence[str], width: float = WIDTH) -> float:
    """Where `Canvas.head` will end."""
    room = width - 2 * MARGIN
    sizes = [SUBTITLE if number == 0 else SMALL for number in range(len(lines))]
    return 40 + sum(
        size * _LINE * len(wrapped(line, room, size, most=2)) for line, size in zip(lines, sizes, strict=True)
    )


def foot_height(lines: Sequence[str], width: float = WIDTH) -> float:
    """What `Canvas.foot` will take."""
    return SMALL * _LINE * sum(len(wrapped(line, width - 2 * MARGIN, SMALL)) for line in lines)


def mark_of(theme: Theme, tone: Tone, size: float = 7.5, *, hollow: bool = False) -> dict[str, Any]:
    """How a point of a tone looks, for matplotlib."""
    color = theme.tones[tone]
    empty = hollow or tone in HOLLOW
    return {
        "linestyle": "none",
        "marker": MARKERS[tone],
        "markersize": (size - 1.5 if MARKERS[tone] == "D" else size) * POINTS_PER_PIXEL * 1.25,
        "markerfacecolor": theme.ground if empty else color,
        "markeredgecolor": color,
        "markeredgewidth": 1.3,
        "zorder": 5,
    }
