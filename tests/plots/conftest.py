"""Reading pictures: an SVG's texts, where each stands, and what else is in it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from xml.etree import ElementTree

from harness.plots.text import POINTS_PER_PIXEL, width_px
from tests.report.comparison.conftest import full_comparison, nasty_comparison, quiet_comparison
from tests.report.conftest import full_run, nasty_run

__all__ = ["full_comparison", "full_run", "nasty_comparison", "nasty_run", "quiet_comparison"]

SVG = "{http://www.w3.org/2000/svg}"
# Nothing that runs or loads anything has a place in a picture.
ELEMENTS = {
    "svg", "title", "metadata", "defs", "style", "g", "path", "text", "use", "clipPath", "rect", "pattern", "image",
}  # fmt: skip
NASTY_NAME = '$x_1$ & "q" <script>alert(1)</script>\nnew 🚀 \u202eback\u202c \x1b[31m \ud800 日本語'


@dataclass(frozen=True, kw_only=True)
class Written:
    """A text of an SVG, in pixels; `left` and `right` are None where it is turned."""

    text: str
    left: float | None
    right: float | None
    y: float
    color: str


def root_of(svg: bytes) -> ElementTree.Element:
    """The parsed picture, whose elements are all of the harmless kinds, and which points nowhere."""
    root = ElementTree.fromstring(svg)  # noqa: S314 (our own)
    drawn = [element for element in root.iter() if element.tag.startswith(SVG)]
    assert {element.tag.removeprefix(SVG) for element in drawn} <= ELEMENTS
    for element in drawn:
        for name, value in element.attrib.items():
            assert not name.lower().startswith("on")
            if name.endswith("href"):
                assert value.startswith("#")
    return root


def texts_of(svg: bytes) -> list[str]:
    return [one.text for one in written_in(svg)]


def size_of(svg: bytes) -> tuple[float, float]:
    """Width and height in pixels."""
    root = root_of(svg)
    return tuple(float(root.attrib[name].removesuffix("pt")) / POINTS_PER_PIXEL for name in ("width", "height"))  # type: ignore[return-value]  # two of them


def written_in(svg: bytes) -> list[Written]:
    found = []
    for element in root_of(svg).iter(f"{SVG}text"):
        style, text = element.attrib["style"], element.text or ""
        # Older releases of matplotlib write `font: bold 9px ...`.
        size = float(_one(r"font(?:-size)?: [\w ]*?([\d.]+)px", style)) / POINTS_PER_PIXEL
        width = width_px(text, size, bold=re.search(r"\b(700|bold)\b", style) is not None)
        turned = not re.match(r"rotate\(-?0 ", element.attrib.get("transform", "rotate(0 "))
        x = float(element.attrib.get("x", "0")) / POINTS_PER_PIXEL
        anchor = "start" if turned else _one(r"text-anchor: (\w+)", style)
        left = x - width * {"start": 0.0, "middle": 0.5, "end": 1.0}[anchor]
        found.append(
            Written(
                text=text,
                left=None if turned else left,
                right=None if turned else left + width,
                y=float(element.attrib.get("y", "0")) / POINTS_PER_PIXEL,
                color=_one(r"fill: (#\w+)", style),
            )
        )
    return found


def assert_readable(svg: bytes) -> None:
    """Every text lies within the picture, and no two in one line of it cover each other."""
    width, height = size_of(svg)
    level = [one for one in written_in(svg) if one.left is not None and one.right is not None and one.text]
    for one in level:
        assert one.left is not None
        assert one.right is not None
        assert one.left >= 0, one
        assert one.right <= width, one
        assert 0 < one.y < height, one
    for number, one in enumerate(level):
        for other in level[number + 1 :]:
            if abs(one.y - other.y) < 6:
                assert one.left is not None
                assert one.right is not None
                assert other.left is not None
                assert other.right is not None
                assert one.right <= other.left + 1 or other.right <= one.left + 1, (one, other)


def _one(pattern: str, text: str) -> str:
    found = re.search(pattern, text)
    assert found is not None, (pattern, text)
    return found.group(1)
