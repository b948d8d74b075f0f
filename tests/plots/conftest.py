"""Runs and series to draw, and reading pictures: an SVG's texts, where each stands, and what else is in it."""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from xml.etree import ElementTree

import pandas as pd

from harness.history.changes import Change
from harness.plots.canvas import POINTS_PER_PIXEL, width_px
from harness.records.run import Failure, Lost, Run
from harness.report.run_report import Report, build_report
from tests.history.made import make_change
from tests.report.builders import make_build, make_case, make_header, make_reference, make_rounds
from tests.report.conftest import full_comparison, full_run

__all__ = ["full_comparison", "full_run"]

SVG = "{http://www.w3.org/2000/svg}"
# Nothing that runs or loads anything has a place in a picture.
ELEMENTS = {
    "svg", "title", "metadata", "defs", "style", "g", "path", "text", "use", "clipPath", "rect", "pattern", "image",
}  # fmt: skip
NASTY_NAME = '$x_1$ & "q" <script>alert(1)</script>\nnew 🚀 \u202eback\u202c \x1b[31m \ud800 日本語'


def make_report(
    times_ms: Mapping[str, float],
    *,
    models: Collection[str] = ("mm",),
    peer: str = "",
    twins: Collection[str] = (),
    broken: Collection[str] = (),
    memory: Mapping[str, int | None] | None = None,
    peaks: Mapping[str, int] | None = None,
    **given: Any,
) -> Report:
    """The report of a run of models that all have the same variants; the first one is the baseline.

    `twins` have the module of `stock`, `broken` ones fail; `memory` is what the compiler states (None: nothing), and
    `peaks` what iree-benchmark-module does.
    """
    made: dict[str, list[Any]] = {name: [] for name in ("cases", "builds", "references", "rounds", "lost")}
    for model in models:
        own = {name: make_case(model, name) for name in [*times_ms, *twins, *broken] if name != peer}
        own |= {peer: make_case(model, peer, peer=peer, toolchain="")} if peer else {}
        made["cases"] += own.values()
        stated = {name: 2**20 for name in [*times_ms, *twins] if name != peer} if memory is None else memory
        for number, (name, size) in enumerate(stated.items()):
            code = "5a" if name in twins or name == "stock" else f"{number:02x}"
            facts: dict[str, Any] = {"statistics": None} if size is None else {}
            build = make_build(own[name], code=code, dispatches=3, copies=0, transient=size or 0, **facts)
            made["builds"].append(build)
        sizes = (peaks or {}).items()
        made["references"] += [make_reference(own[name], 1e6, device_peak_bytes=size) for name, size in sizes]
        times_ns = {own[name].name: time * 1e6 for name, time in times_ms.items()}
        made["rounds"] += make_rounds(own[next(iter(times_ms))].group, times_ns, generations=4, rounds=3)
        failure = Failure(stage="measure", message="no")
        made["lost"] += [Lost(case=own[name].name, generation=0, failure=failure) for name in broken]
    cases = made.pop("cases")
    rows: dict[str, Any] = {name: tuple(values) for name, values in made.items()}
    return build_report(Run(header=make_header(tuple(cases)), finished=True, **{**rows, **given}))


def change_at(begin: int, low: int, high: int, before: float, after: float, **facts: Any) -> Change:
    """A step at a run, by its number, with the range of runs in which it may have happened."""
    runs = {"first_bad": f"run-{begin}", "until": f"run-{begin}", "earliest": f"run-{low}", "latest": f"run-{high}"}
    return make_change(before=before, after=after, **{**runs, **facts})


def make_points(values: Sequence[float], releases: Sequence[str] = (), **given: Any) -> pd.DataFrame:
    """A series with one run a night."""
    first = datetime(2026, 6, 1, 3, 15)
    facts = {"suite": "esrgan", "case": "rdb/stock@cpu", "machine_class": "AMD EPYC 7B13, 2 cores", "unit": "ns"}
    columns: dict[str, Any] = {
        "run": [f"run-{number}" for number in range(len(values))],
        "started": [f"{(first + timedelta(days=number)).isoformat()}+00:00" for number in range(len(values))],
        "value": [float(value) for value in values],
        "low": [value * 0.99 for value in values],
        "high": [value * 1.01 for value in values],
        "toolchain": releases or ["3.13.0"] * len(values),
    }
    made: pd.DataFrame = pd.DataFrame({**columns, "metric": "latency", **facts, **given})
    return made


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
            assert value.startswith("#") or not name.endswith("href")
    return root


def texts_of(svg: bytes) -> list[str]:
    return [text.text for text in written_in(svg)]


def size_of(svg: bytes) -> tuple[float, float]:
    """Width and height in pixels."""
    width, height = (root_of(svg).attrib[name].removesuffix("pt") for name in ("width", "height"))
    return float(width) / POINTS_PER_PIXEL, float(height) / POINTS_PER_PIXEL


def written_in(svg: bytes) -> list[Written]:
    """Every text of a picture."""
    texts = []
    for element in root_of(svg).iter(f"{SVG}text"):
        style, text = element.attrib["style"], element.text or ""
        # Older releases of matplotlib write `font: bold 9px ...`.
        size = float(_first(r"font(?:-size)?: [\w ]*?([\d.]+)px", style)) / POINTS_PER_PIXEL
        width = width_px(text, size, bold=re.search(r"\b(700|bold)\b", style) is not None)
        turned = not re.match(r"rotate\(-?0 ", element.attrib.get("transform", "rotate(0 "))
        x, y = (float(element.attrib.get(name, "0")) / POINTS_PER_PIXEL for name in "xy")
        anchor = "start" if turned else _first(r"text-anchor: (\w+)", style)
        left = x - width * {"start": 0.0, "middle": 0.5, "end": 1.0}[anchor]
        ends = {"left": None, "right": None} if turned else {"left": left, "right": left + width}
        texts.append(Written(text=text, y=y, color=_first(r"fill: (#\w+)", style), **ends))
    return texts


def assert_readable(svg: bytes) -> None:
    """Every text lies within the picture, and no two in one line of it cover each other."""
    width, height = size_of(svg)
    boxes = [
        (text.left, text.right, text.y, text.text)
        for text in written_in(svg)
        if text.left is not None and text.right is not None and text.text
    ]
    for number, (left, right, y, text) in enumerate(boxes):
        assert left >= 0 and right <= width and 0 < y < height, text
        for other_left, other_right, other_y, other in boxes[number + 1 :]:
            apart = right <= other_left + 1 or other_right <= left + 1
            assert apart or abs(y - other_y) >= 6, (text, other)


def luminance(color: str) -> float:
    """Relative luminance, as WCAG 2.2 defines it."""
    parts = [int(color[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(color: str, other: str) -> float:
    low, high = sorted((luminance(color), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def _first(pattern: str, text: str) -> str:
    found = re.search(pattern, text)
    assert found is not None, (pattern, text)
    return found.group(1)
