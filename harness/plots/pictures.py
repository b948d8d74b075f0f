"""Every picture of a comparison or of a run: which kinds there are of it, one by its kind, or all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Literal

from harness.errors import RunError, UsageError
from harness.plots.look import THEMES, Format, Theme, ThemeName
from harness.records.comparison import Comparison
from harness.report.forest import USUAL_ROWS, Forest
from harness.report.names import tidy
from harness.report.values import Report

Kind = Literal["forest", "variants", "memory", "roofline", "timeline"]
COMPARISON_KINDS: tuple[Kind, ...] = ("forest",)
RUN_KINDS: tuple[Kind, ...] = ("roofline", "forest", "variants", "memory")
# What a picture is called where a page lists it, and what it is about for those who do not see it.
TITLES: dict[Kind, str] = {
    "forest": "Ratios with their intervals",
    "variants": "Latency of each variant",
    "memory": "Latency against memory",
    "roofline": "Roofline",
    "timeline": "History of a series",
}

Keep = Callable[[str], bool]


def draw(
    kind: Kind,
    source: Comparison | Report,
    theme: Theme,
    picture: Format,
    *,
    where: str = "",
    keep: Keep = lambda _: True,
    top: int | None = None,
) -> bytes:
    """One picture as the content of a file.

    Args:
        kind: One of COMPARISON_KINDS or RUN_KINDS.
        where: The folder, for messages.
        keep: Of a case's name, whether it is to be drawn.
        top: How many rows, or panels of bars or points, are drawn at most; None: as many as are read well.

    Raises:
        UsageError: There is no such picture of it.
        RunError: There is nothing to draw; the message says why.
    """
    kinds = COMPARISON_KINDS if isinstance(source, Comparison) else RUN_KINDS
    if kind not in kinds:
        what = "a comparison" if isinstance(source, Comparison) else "a run"
        raise UsageError(f"{where}: is {what}, which can be drawn as {', '.join(kinds)}; give --kind {kinds[0]}")
    if kind == "forest":
        return _draw_forest(source, theme, picture, where, keep, top)
    assert isinstance(source, Report)  # noqa: S101 (a comparison has no other kind)
    return _DRAWN[kind](source, theme, picture, where, keep, top)


def pictures_of(
    comparison: Comparison | None = None,
    report: Report | None = None,
    *,
    formats: Iterable[Format] = ("png",),
    themes: Iterable[ThemeName] = ("light", "dark"),
    kinds: Iterable[Kind] = (),
    keep: Keep = lambda _: True,
    top: int | None = None,
) -> dict[str, bytes]:
    """Every picture that there is, by its file's name: `forest-light.png`, `forest-dark.png`, ...

    Pictures with nothing on them are left out. The forest is the comparison's where one is given, else the run's.

    Args:
        comparison: What is compared.
        report: The run whose variants are drawn, such as the comparison's head.
        kinds: Only these (default: all that there are).
    """
    wanted = tuple(kinds)
    found: dict[str, bytes] = {}
    for kind in ("forest", "variants", "memory", "roofline"):
        source = comparison if kind in COMPARISON_KINDS and comparison is not None else report
        if source is None or (wanted and kind not in wanted):
            continue
        for theme in themes:
            for picture in formats:
                try:
                    content = draw(kind, source, THEMES[theme], picture, keep=keep, top=top)
                except RunError:  # nothing to draw of this kind
                    continue
                found[f"{kind}-{theme}.{picture}"] = content
    return found


def alt_text(kind: Kind, source: Comparison | Report) -> str:
    """A picture in one sentence of plain text, for those who do not see it."""
    from harness.report.comparison.words import headline
    from harness.report.words import verdict

    said = headline(source) if isinstance(source, Comparison) else verdict(source)
    return f"{TITLES[kind]}: {tidy(said)}"


def _draw_forest(
    source: Comparison | Report, theme: Theme, picture: Format, where: str, keep: Keep, top: int | None
) -> bytes:
    from harness.plots.forest import draw_forest

    forest = _forest(source, keep, USUAL_ROWS if top is None else top)
    if not forest.has_ratios:
        why = f" ({forest.rest[:1].lower()}{forest.rest[1:].rstrip('.')})" if forest.rest else ""
        raise RunError(f"{where}: has no ratio to draw{why}; see harness report {where}")
    return draw_forest(forest, theme, picture)


def _forest(source: Comparison | Report, keep: Keep, top: int) -> Forest:
    if isinstance(source, Comparison):
        from harness.report.comparison.forest import forest_of

        return forest_of(source, [row for row in source.rows if keep(row.case)], top=top)
    from harness.report.run_forest import forest_of_run

    return forest_of_run(source, keep=keep, top=top)


def _draw_variants(report: Report, theme: Theme, picture: Format, where: str, keep: Keep, top: int | None) -> bytes:
    from harness.plots.variant_bars import USUAL_PANELS, bar_panels
    from harness.plots.variants import draw_variants

    panels = bar_panels(report, keep=keep)
    if not panels:
        raise _nothing_measured(where)
    title = f"{tidy(report.facts.suite_name)}: latency of each variant"
    return draw_variants(panels, title, _lines(report), theme, picture, top=top or USUAL_PANELS)


def _draw_memory(report: Report, theme: Theme, picture: Format, where: str, keep: Keep, top: int | None) -> bytes:
    from harness.plots.memory import draw_memory
    from harness.plots.memory_points import USUAL_PANELS, memory_panels

    if not any(row.status == "measured" for row in report.rows()):
        raise _nothing_measured(where)
    panels = memory_panels(report, keep=keep)
    if not panels:
        raise RunError(
            f"{where}: has no model with two measured variants that take different memory, so there is nothing to "
            "draw; --kind variants draws their latencies"
        )
    title = f"{tidy(report.facts.suite_name)}: latency against memory"
    return draw_memory(panels, title, _lines(report), theme, picture, top=top or USUAL_PANELS)


def _draw_roofline(report: Report, theme: Theme, picture: Format, where: str, keep: Keep, top: int | None) -> bytes:
    from harness.plots.points import panels_of
    from harness.plots.roofline import draw_roofline

    panels = panels_of(report, where, keep=keep)[:top]
    facts = report.facts
    iree = (f"IREE {toolchain}" for toolchain in facts.toolchains)
    subtitle = ", ".join(tidy(part) for part in (facts.started[:10], facts.cpu, *iree) if part)
    return draw_roofline(panels, tidy(facts.suite_name), subtitle, picture, theme)


def _lines(report: Report) -> list[str]:
    from harness.report.words import run_line, verdict

    return [verdict(report), run_line(report.facts, report.sections)]


def _nothing_measured(where: str) -> RunError:
    return RunError(f"{where}: nothing was measured, so there is nothing to draw; see harness report {where}")


_DRAWN: dict[Kind, Callable[[Report, Theme, Format, str, Keep, int | None], bytes]] = {
    "variants": _draw_variants,
    "memory": _draw_memory,
    "roofline": _draw_roofline,
}
