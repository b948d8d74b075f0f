"""Texts in pictures: which characters can be drawn, how wide they are, and where a text is cut or broken."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from harness.report.names import middle_cut, tidy

POINTS_PER_PIXEL = 0.75
# What stands for a character that the font lacks.
_LACKING = "□"


def drawable(text: str) -> str:
    """A text from anywhere on one line, with a box for each character that cannot be drawn."""
    glyphs = _glyphs()
    return "".join(char if ord(char) in glyphs else _LACKING for char in tidy(text))


def width_px(text: str, size_px: float, *, bold: bool = False) -> float:
    """How wide a drawable text is."""
    return _width(text, bold=bold) / _MEASURED_AT * size_px if text else 0.0


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
    words: Sequence[str] = whole.split()
    while len(words) > 1 and width_px(f"{' '.join(words)} …", size_px) > room_px:
        words = words[:-1]
    return f"{' '.join(words)} …" if len(words) > 1 else cut(whole, room_px, size_px)


_MEASURED_AT = 100.0


@lru_cache(maxsize=8192)  # a layout asks again and again
def _width(text: str, *, bold: bool) -> float:
    from matplotlib.textpath import text_to_path

    width, _, _ = text_to_path.get_text_width_height_descent(text, _font(bold=bold), False)
    return float(width)


@lru_cache(maxsize=2)
def _font(*, bold: bool) -> Any:
    from matplotlib.font_manager import FontProperties

    return FontProperties(family="DejaVu Sans", size=_MEASURED_AT, weight="bold" if bold else "normal")


@lru_cache(maxsize=1)
def _glyphs() -> frozenset[int]:
    """Characters that both the normal and the bold font have."""
    from matplotlib.font_manager import findfont, get_font

    found = [frozenset(get_font(findfont(_font(bold=bold))).get_charmap()) for bold in (False, True)]
    return found[0] & found[1]
