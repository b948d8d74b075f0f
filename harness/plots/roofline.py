"""A roofline plot: arithmetic a second over arithmetic a byte, below what this machine's cores and memory allow."""

from __future__ import annotations

import io
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from harness.plots.points import Panel, Point, Roof

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Format = Literal["svg", "png"]

# Told apart by people who see colours differently too (Okabe and Ito), on the light ground that the picture brings.
_COLORS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#5b4b8a", "#7a7a7a")
_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "p", "h", "*")
_GROUND, _INK, _MUTED, _PALE = "#fcfcfa", "#24292f", "#57606a", "#8c959f"
_ON_GROUND = {"facecolor": _GROUND, "edgecolor": "none", "pad": 1.0}  # keeps lines out of a text
_STYLE: Any = {
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans", "sans-serif"],
    "font.size": 9.0,
    "svg.fonttype": "none",
    "svg.hashsalt": "harness",  # the same picture has the same names inside, so the same bytes
    "text.color": _INK,
    "axes.edgecolor": _PALE,
    "axes.labelcolor": _INK,
    "xtick.color": _INK,
    "ytick.color": _INK,
    "text.parse_math": False,  # names may hold a dollar sign
}
_PANEL_INCHES = (6.0, 4.2)
_TOP_INCHES, _BOTTOM_INCHES, _LEFT_INCHES, _RIGHT_INCHES = 0.95, 0.6, 0.75, 0.2
_CHARACTER_INCHES = 0.085  # of a model's name, at most
_LEGEND_LINE_INCHES, _LEGEND_COLUMNS = 0.22, 4
_LEAN = math.radians(30)
# Names above a panel stand at least so far apart, in parts of its width.
_NAME_ROOM = 0.045


def draw_roofline(panels: Sequence[Panel], title: str, subtitle: str, picture: Format) -> bytes:
    """Draw the panels beside each other, on the same axes.

    Returns:
        A file of that format; equal panels give equal bytes with the same release of matplotlib.
    """
    import matplotlib as mpl
    from matplotlib.figure import Figure

    labels = list(dict.fromkeys(point.label for panel in panels for point in panel.points))
    models = list(dict.fromkeys(point.model for panel in panels for point in panel.points))
    colors = {model: _COLORS[number % len(_COLORS)] for number, model in enumerate(models)}
    markers = {label: _MARKERS[number % len(_MARKERS)] for number, label in enumerate(labels)}
    columns = _LEGEND_COLUMNS * len(panels)
    legend_inches = _LEGEND_LINE_INCHES * (math.ceil(len(labels) / columns) + 1)
    longest_inches = _CHARACTER_INCHES * max(map(len, models))
    width = len(panels) * (_PANEL_INCHES[0] + _LEFT_INCHES) + _RIGHT_INCHES + longest_inches * math.cos(_LEAN)
    height = _PANEL_INCHES[1] + _TOP_INCHES + longest_inches * math.sin(_LEAN) + _BOTTOM_INCHES + legend_inches
    with mpl.rc_context(_STYLE):
        figure = Figure(figsize=(width, height), facecolor=_GROUND)
        limits = _limits(panels)
        for number, panel in enumerate(panels):
            left = number * (_PANEL_INCHES[0] + _LEFT_INCHES) + _LEFT_INCHES
            axes = figure.add_axes(
                (
                    left / width,
                    (_BOTTOM_INCHES + legend_inches) / height,
                    _PANEL_INCHES[0] / width,
                    _PANEL_INCHES[1] / height,
                )
            )
            _draw_axes(axes, limits, first=number == 0)
            if panel.roof is not None:
                _draw_roof(axes, panel.roof)
            _draw_points(axes, panel, colors, markers)
            _draw_names(axes, panel, colors)
            axes.text(0.98, 0.03, _caption(panel), transform=axes.transAxes, ha="right", weight="bold", bbox=_ON_GROUND)
        figure.text(_LEFT_INCHES / width, 1 - 0.28 / height, title, size=12, weight="bold")
        figure.text(_LEFT_INCHES / width, 1 - 0.5 / height, subtitle, color=_MUTED)
        _draw_legend(figure, panels, markers, columns, (_LEFT_INCHES / width, 0.08 / height))
        return _file(figure, picture)


def _file(figure: Figure, picture: Format) -> bytes:
    file = io.BytesIO()
    metadata: dict[str, Any] = {"Date": None, "Creator": None} if picture == "svg" else {"Software": None}
    figure.savefig(file, format=picture, dpi=150, facecolor=figure.get_facecolor(), metadata=metadata)
    return file.getvalue()


def _limits(panels: Sequence[Panel]) -> tuple[tuple[float, float], tuple[float, float]]:
    """Of both axes: room around all points, and up to the corner of every roof."""
    points = [point for panel in panels for point in panel.points]
    roofs = [panel.roof for panel in panels if panel.roof is not None]
    across = [point.intensity for point in points] + [roof.operations_per_s / roof.bytes_per_s for roof in roofs]
    up = [point.operations_per_s / 1e9 for point in points]
    tops = [roof.operations_per_s / 1e9 for roof in roofs]
    return (min(across) / 3, max(across) * 4), (min(up) / 3, max([*up, *tops]) * 2)


def _draw_axes(axes: Axes, limits: tuple[tuple[float, float], tuple[float, float]], *, first: bool) -> None:
    from matplotlib.ticker import FuncFormatter, NullFormatter

    axes.set(xscale="log", yscale="log", xlim=limits[0], ylim=limits[1], facecolor=_GROUND)
    axes.set_xlabel("arithmetic intensity: FLOP for each byte of arguments, results and constants")
    if first:
        axes.set_ylabel("GFLOP/s")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axis.set_minor_formatter(NullFormatter())
    axes.grid(which="major", color=_PALE, alpha=0.25, linewidth=0.6)
    axes.spines[["top", "right"]].set_visible(False)


def _draw_roof(axes: Axes, roof: Roof) -> None:
    top, slope = roof.operations_per_s / 1e9, roof.bytes_per_s / 1e9
    (low, high), (bottom, _) = axes.get_xlim(), axes.get_ylim()
    ridge = top / slope
    axes.plot([low, ridge, high], [low * slope, top, top], color=_INK, linewidth=1.6, zorder=2)
    axes.fill_between([low, ridge, high], [low * slope, top, top], bottom, color=_INK, alpha=0.035, linewidth=0)
    axes.annotate(
        f"{top:.3g} GFLOP/s, f32 ({roof.operations_by})",
        (high, top),
        xytext=(-4, 4),
        textcoords="offset points",
        ha="right",
        bbox=_ON_GROUND,
    )
    start = max(low, bottom / slope)
    middle = math.sqrt(start * ridge)
    x, y = axes.transData.transform([(middle, middle * slope), (ridge, top)]).T
    axes.annotate(
        f"{slope:.3g} GB/s ({roof.bytes_by})",
        (middle, middle * slope),
        xytext=(-3, 5),
        textcoords="offset points",
        rotation=math.degrees(math.atan2(y[1] - y[0], x[1] - x[0])),
        rotation_mode="anchor",
        ha="center",
    )


def _draw_points(axes: Axes, panel: Panel, colors: Mapping[str, str], markers: Mapping[str, str]) -> None:
    for point in panel.points:
        axes.plot(
            point.intensity,
            point.operations_per_s / 1e9,
            linestyle="none",
            zorder=4,
            **_look(point, colors[point.model], markers[point.label]),
        )


def _look(point: Point, color: str, marker: str) -> dict[str, Any]:
    """A peer's point is hollow."""
    face = _GROUND if point.peer else color
    return {
        "marker": marker,
        "markersize": 7.5,
        "alpha": 0.92,
        "markerfacecolor": face,
        "markeredgecolor": color if point.peer else _GROUND,
        "markeredgewidth": 1.6 if point.peer else 0.7,
    }


def _draw_names(axes: Axes, panel: Panel, colors: Mapping[str, str]) -> None:
    """The models' names above the panel, each over the line that its points stand on."""
    low, high = (math.log(limit) for limit in axes.get_xlim())
    spans: dict[tuple[float, str], list[float]] = {}
    for point in panel.points:
        spans.setdefault((point.intensity, point.model), []).append(point.operations_per_s / 1e9)
    room = min(_NAME_ROOM, 0.9 / len(spans))
    at = -1.0
    shifted = []
    for intensity, model in sorted(spans):
        place = (math.log(intensity) - low) / (high - low)
        at = max(place, at + room)
        shifted.append((intensity, model, place, at))
    back = max(0.0, at - 0.97)
    for intensity, model, place, named in shifted:
        axes.axvline(intensity, color=colors[model], linewidth=0.8, alpha=0.45, zorder=1)
        end = max(named - back, 0.0)
        axes.plot(
            [place, end], [1.0, 1.03], transform=axes.transAxes, color=colors[model], linewidth=0.8, clip_on=False
        )
        axes.text(
            end,
            1.04,
            model,
            transform=axes.transAxes,
            color=colors[model],
            rotation=math.degrees(_LEAN),
            rotation_mode="anchor",
            weight="bold",
        )


def _caption(panel: Panel) -> str:
    if panel.roof is None:
        return f"{panel.device} (peak not measured)"
    return f"{panel.device}: {'one core' if panel.roof.threads == 1 else f'{panel.roof.threads} cores'}"


def _draw_legend(
    figure: Figure, panels: Sequence[Panel], markers: Mapping[str, str], columns: int, place: tuple[float, float]
) -> None:
    from matplotlib.lines import Line2D

    shown = {point.label: point for panel in panels for point in panel.points}
    handles = [
        Line2D([], [], linestyle="none", label=label, **_look(shown[label], _INK, marker))
        for label, marker in markers.items()
    ]
    figure.legend(
        handles=handles, loc="lower left", bbox_to_anchor=place, ncols=columns, frameon=False, borderaxespad=0.0
    )
