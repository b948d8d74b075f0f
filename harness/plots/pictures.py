"""Every picture of a comparison, a run, an explanation or a tuning: which kinds there are, and one by its kind."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Literal

from harness.errors import RunError, UsageError
from harness.plots.canvas import THEMES, Drawing
from harness.plots.forest import draw_forest
from harness.plots.heatmap import draw_heatmap
from harness.plots.memory import draw_memory
from harness.plots.race import draw_race
from harness.plots.releases import draw_releases
from harness.plots.roofline import draw_roofline
from harness.plots.variants import draw_variants
from harness.plots.waterfall import draw_waterfall
from harness.records.comparison import Comparison
from harness.records.explanation import Explanation
from harness.records.tuning import Tuning
from harness.report.comparison import headline
from harness.report.page import Picture
from harness.report.releases import MANY
from harness.report.run_report import Report, verdict
from harness.report.units import tidy
from harness.store.folders import COMPARISON, EXPLANATION, RUN, TUNING

Kind = Literal["forest", "variants", "memory", "roofline", "releases", "heatmap", "timeline", "waterfall", "race"]
# What a comment calls its picture.
_TITLES: dict[Kind, str] = {
    "forest": "Ratios with their intervals",
    "variants": "Latency of each variant",
    "heatmap": "Time under each release",
}
RUN_KINDS: tuple[Kind, ...] = ("roofline", "forest", "variants", "memory", "releases", "heatmap")
_OF_RUNS = {
    "variants": draw_variants,
    "memory": draw_memory,
    "releases": draw_releases,
    "roofline": draw_roofline,
    "heatmap": draw_heatmap,
}

Keep = Callable[[str], bool]
Source = Comparison | Report | Explanation | Tuning
_KINDS: Mapping[type[Source], tuple[str, tuple[Kind, ...]]] = {
    Report: (RUN.phrase, RUN_KINDS),
    Comparison: (COMPARISON.phrase, ("forest",)),
    Explanation: (EXPLANATION.phrase, ("waterfall",)),
    Tuning: (TUNING.phrase, ("race",)),
}


def kinds_of(source: Source) -> tuple[str, tuple[Kind, ...]]:
    """What is to be drawn, in words, and which pictures there are of it, the usual one first."""
    return _KINDS[type(source)]


def drawing_of(
    kind: Kind, source: Source, *, where: str = "", keep: Keep = lambda _: True, top: int | None = None
) -> Drawing:
    """One picture of what lies at `where`."""
    what, kinds = kinds_of(source)
    if kind not in kinds:
        raise UsageError(f"{where}: is {what}, which can be drawn as {', '.join(kinds)}; give --kind {kinds[0]}")
    try:
        if isinstance(source, Explanation):
            return draw_waterfall(source, top)
        if isinstance(source, Tuning):
            return draw_race(source)
        if isinstance(source, Comparison) or kind == "forest":
            return draw_forest(source, top, keep)
        # What the report says of the whole run stays.
        kept = (replace(each, rows=tuple(row for row in each.rows if keep(row.case))) for each in source.sections)
        source = replace(source, sections=tuple(kept))
        if not any(row.status == "measured" for row in source.rows()):
            raise RunError("nothing was measured, so there is nothing to draw")
        return _OF_RUNS[kind](source, top)
    except RunError as error:
        more = "" if "--kind" in str(error) else f"; see harness report {where}"
        raise RunError(f"{where}: {error}{more}") from None


def kind_of_comment(source: Comparison | Report) -> Kind:
    """What a comment shows: the ratios of a comparison, a run's variants beside each other, or its many releases."""
    if isinstance(source, Comparison):
        return "forest"
    return "heatmap" if len(source.header.toolchains) >= MANY else "variants"


def files_of_comment(source: Comparison | Report) -> dict[str, bytes]:
    """The pictures of a comment by the names of their files; {} where there is nothing to draw."""
    kind = kind_of_comment(source)
    try:
        drawing = drawing_of(kind, source)
    except RunError:
        return {}
    return {f"{kind}-{name}.png": drawing.file(theme, "png") for name, theme in THEMES.items()}


def published(source: Comparison | Report, url: Callable[[str], str]) -> tuple[Picture, ...]:
    """The pictures of a comment, under the address that each file name has."""
    kind = kind_of_comment(source)
    light, dark = (url(f"{kind}-{theme}.png") for theme in ("light", "dark"))
    words = headline(source) if isinstance(source, Comparison) else verdict(source)
    return (Picture(title=_TITLES[kind], alt=f"{_TITLES[kind]}: {tidy(words)}", light_url=light, dark_url=dark),)
