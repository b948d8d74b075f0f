"""The lowering configurations that are worth a try for an operation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Configuration:
    """How a dispatch is lowered.

    Attributes:
        pipeline: One of harness.rewrites.tuned_configuration.PIPELINES.
        tiles: By level, a tile size a loop; 0 leaves a loop whole there.
    """

    pipeline: str
    tiles: Mapping[str, tuple[int, ...]]

    @property
    def text(self) -> str:
        """As reports show it, and as what it is known by: `ConvTileAndDecomposeExpert, vector_reduction = [...]`."""
        levels = (f"{level} = {list(sizes)}" for level, sizes in self.tiles.items())
        return ", ".join((self.pipeline, *levels))
