"""A roofline plot: arithmetic a second over arithmetic a byte, below what this machine's cores and memory allow."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from harness.plots.canvas import Canvas, head_height
from harness.plots.look import BODY, LIGHT, MARGIN, SMALL, WIDTH, Format, Marker, Theme, drawing, marker_of
from harness.plots.points import Panel, Point, Roof
from harness.plots.text import POINTS_PER_PIXEL, cut, drawable, width_px

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_LEFT = 72.0
_PLOT, _SMALL_PLOT = 360.0, 270.0
# More panels stand in two columns.
_MOST_ALONE = 2
_BELOW = 54.0
_LEGEND_ROW, _LEGEND_GAP = 22.0, 34.0
_LONGEST_NAME, _LONGEST_LABEL = 230.0, 260.0
_RING = 12.0  # points across, around the mark of a peer
_LEAN = math.radians(30)
_NAME_ROOM = 33.0  # between the beginnings of names above a panel
_SMALL_POINTS = SMALL * POINTS_PER_PIXEL


def draw_roofline(panels: Sequence[Panel], title: str, subtitle: str, picture: Format, theme: Theme = LIGHT) -> bytes:
    """Draw the panels below each other, on the same axes.

    Returns:
        A file of that format; equal panels give equal bytes with the same release of matplotlib.
    """
    labels = list(dict.fromkeys(point.label for panel in panels for point in panel.points))
    models = list(dict.fromkeys(point.model for panel in panels for point in panel.points))
    colors = {model: theme.series[number % len(theme.series)] for number, model in enumerate(models)}
    markers = {label: marker_of(number) for number, label in enumerate(labels)}
    with drawing(theme):
        names = {model: cut(model, _LONGEST_NAME, SMALL, bold=True) for model in models}
        longest = max(width_px(name, SMALL, bold=True) for name in names.values())
        above = longest * math.sin(_LEAN) + 24
        columns = 2 if len(panels) > _MOST_ALONE else 1
        plot = _PLOT if columns == 1 else _SMALL_PLOT
        column = (WIDTH - MARGIN) / columns
        width = column - _LEFT - longest * math.cos(_LEAN) * 0.5
        legend = _legend_places(labels)
        start = head_height([subtitle])
        each = above + plot + _BELOW
        end = start + each * math.ceil(len(panels) / columns)
        canvas = Canvas(theme, end + (legend[-1][1] + _LEGEND_ROW if legend else 0) + 12)
        canvas.head(title, [subtitle])
        limits = _limits(panels)
        for number, panel in enumerate(panels):
            left = (number % columns) * column + _LEFT
            top = start + (number // columns) * each + above
            axes = canvas.axes(left, top, width, plot)
            _draw_axes(axes, limits, theme)
            if panel.roof is not None:
                _draw_roof(axes, panel.roof, theme)
            _draw_points(axes, panel, colors, markers, theme)
            _draw_names(axes, panel, colors, names, _NAME_ROOM / width)
            caption = cut(_caption(panel), width - 20, BODY, bold=True)
            canvas.text(
                left + width - 8, top + plot - 14, caption, align="right", weight="bold", bbox=_on_ground(theme)
            )
        _draw_legend(canvas, panels, markers, legend, end + 6)
        return canvas.file(picture, f"Roofline: {drawable(title)}", drawable(subtitle))


def _on_ground(theme: Theme) -> dict[str, Any]:
    """What keeps lines out of a text."""
    return {"facecolor": theme.ground, "edgecolor": "none", "pad": 1.0}


def _limits(panels: Sequence[Panel]) -> tuple[tuple[float, float], tuple[float, float]]:
    """Of both axes: room around all points, and up to the corner of every roof."""
    points = [point for panel in panels for point in panel.points]
    roofs = [panel.roof for panel in panels if panel.roof is not None]
    across = [point.intensity for point in points] + [roof.operations_per_s / roof.bytes_per_s for roof in roofs]
    up = [point.operations_per_s / 1e9 for point in points]
    tops = [roof.operations_per_s / 1e9 for roof in roofs]
    return (min(across) / 3, max(across) * 4), (min(up) / 3, max([*up, *tops]) * 2)


def _draw_axes(axes: Axes, limits: tuple[tuple[float, float], tuple[float, float]], theme: Theme) -> None:
    from matplotlib.ticker import FuncFormatter, NullFormatter

    axes.set(xscale="log", yscale="log", xlim=limits[0], ylim=limits[1])
    axes.set_xlabel(
        "FLOP for each byte of arguments, results and constants",
        color=theme.muted,
        size=_SMALL_POINTS,
    )
    axes.set_ylabel("GFLOP/s", color=theme.muted, size=_SMALL_POINTS)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axis.set_minor_formatter(NullFormatter())
    axes.tick_params(which="minor", length=0)
    axes.grid(which="major", color=theme.grid, linewidth=0.8)
    axes.set_axisbelow(True)
    axes.spines[["bottom", "left"]].set(visible=True, color=theme.axis)


def _draw_roof(axes: Axes, roof: Roof, theme: Theme) -> None:
    top, slope = roof.operations_per_s / 1e9, roof.bytes_per_s / 1e9
    (low, high), (bottom, _) = axes.get_xlim(), axes.get_ylim()
    ridge = top / slope
    axes.plot([low, ridge, high], [low * slope, top, top], color=theme.ink, linewidth=1.6, zorder=2)
    axes.fill_between([low, ridge, high], [low * slope, top, top], bottom, color=theme.ink, alpha=0.045, linewidth=0)
    axes.annotate(
        drawable(f"{top:.3g} GFLOP/s, f32 ({roof.operations_by})"),
        (high, top),
        xytext=(-4, 4),
        textcoords="offset points",
        ha="right",
        size=_SMALL_POINTS,
        bbox=_on_ground(theme),
    )
    start = max(low, bottom / slope)
    said = drawable(f"{slope:.3g} GB/s ({roof.bytes_by})")
    x, y = axes.transData.transform([(start, start * slope), (ridge, top)]).T
    middle = math.sqrt(start * ridge)
    short = x[1] - x[0] < 2 * width_px(said, SMALL)  # a figure has two pixels for each of a page
    at, align, aside = (start, "left", 4) if short else (middle, "center", -3)
    axes.annotate(
        said,
        (at, at * slope),
        xytext=(aside, 5),
        textcoords="offset points",
        rotation=math.degrees(math.atan2(y[1] - y[0], x[1] - x[0])),
        rotation_mode="anchor",
        ha=align,
        size=_SMALL_POINTS,
    )


def _draw_points(
    axes: Axes, panel: Panel, colors: Mapping[str, str], markers: Mapping[str, Marker], theme: Theme
) -> None:
    for point in panel.points:
        for look in _looks(point, colors[point.model], markers[point.label], theme):
            axes.plot(point.intensity, point.operations_per_s / 1e9, linestyle="none", zorder=4, **look)


def _looks(point: Point, color: str, marker: Marker, theme: Theme) -> list[dict[str, Any]]:
    """What is drawn for a point, from back to front; a peer's has a ring around it."""
    mark = {
        "marker": marker.shape,
        "markersize": marker.size,
        "markerfacecolor": theme.ground if marker.hollow else color,
        "markeredgecolor": color if marker.hollow else theme.ground,
        "markeredgewidth": 1.6 if marker.hollow else 0.7,
    }
    ring = {
        "marker": "o",
        "markersize": _RING,
        "markerfacecolor": "none",
        "markeredgecolor": color,
        "markeredgewidth": 1.0,
    }
    return [ring, mark] if point.peer else [mark]


def _draw_names(axes: Axes, panel: Panel, colors: Mapping[str, str], names: Mapping[str, str], apart: float) -> None:
    """The models' names above the panel, each over the line that its points stand on, or shifted as far as needed.

    Args:
        apart: How far they are from each other, in parts of the panel's width.
    """
    low, high = (math.log(limit) for limit in axes.get_xlim())
    spans = sorted({(point.intensity, point.model) for point in panel.points})
    room = min(apart, 0.9 / len(spans))
    at = -1.0
    shifted = []
    for intensity, model in spans:
        place = (math.log(intensity) - low) / (high - low)
        at = max(place, at + room)
        shifted.append((intensity, model, place, at))
    back = max(0.0, at - 0.97)
    for intensity, model, place, named in shifted:
        color = colors[model]
        axes.axvline(intensity, color=color, linewidth=0.8, alpha=0.45, zorder=1)
        end = max(named - back, 0.0)
        axes.plot([place, end], [1.0, 1.03], transform=axes.transAxes, color=color, linewidth=0.8, clip_on=False)
        axes.text(
            end,
            1.04,
            names[model],
            transform=axes.transAxes,
            color=color,
            rotation=math.degrees(_LEAN),
            rotation_mode="anchor",
            weight="bold",
            size=_SMALL_POINTS,
        )


def _caption(panel: Panel) -> str:
    if panel.roof is None:
        return f"{panel.device} (peak not measured)"
    return f"{panel.device}: {'one core' if panel.roof.threads == 1 else f'{panel.roof.threads} cores'}"


def _legend_places(labels: Sequence[str]) -> list[tuple[float, float]]:
    """Where each label's mark stands, row by row; the last is where the next would."""
    places = []
    x, y = MARGIN + 6, 0.0
    for label in labels:
        width = _LEGEND_GAP + min(width_px(drawable(label), SMALL), _LONGEST_LABEL)
        if x > MARGIN + 6 and x + width > WIDTH - MARGIN:
            x, y = MARGIN + 6, y + _LEGEND_ROW
        places.append((x, y))
        x += width
    return places


def _draw_legend(
    canvas: Canvas,
    panels: Sequence[Panel],
    markers: Mapping[str, Marker],
    places: Sequence[tuple[float, float]],
    top: float,
) -> None:
    from matplotlib.lines import Line2D

    theme = canvas.theme
    shown = {point.label: point for panel in panels for point in panel.points}
    for (label, marker), (x, y) in zip(markers.items(), places, strict=True):
        for look in _looks(shown[label], theme.ink, marker, theme):
            canvas.figure.add_artist(Line2D([x], [top + y], linestyle="none", transform=canvas.place, **look))
        canvas.text(x + 12, top + y, cut(label, _LONGEST_LABEL, SMALL), size=SMALL)
