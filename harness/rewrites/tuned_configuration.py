"""A lowering configuration as plain data: which ops it is for, and how IREE's CPU backend shall tile them."""

from collections.abc import Mapping, Sequence
from typing import Any

PIPELINES = ("ConvTileAndDecomposeExpert", "DoubleTilingExpert", "Mmt4dTilingExpert")

# IREE's names, in the order in which it applies them; what is tiled at each level are loops of that kind alone.
LEVELS = {
    "distribution": "parallel",
    "cache_parallel": "parallel",
    "cache_reduction": "reduction",
    "vector_common_parallel": "parallel",
    "vector_reduction": "reduction",
    "vector_inner_parallel": "parallel",
}
_ANY = (-1, None)  # TOML has no null


def matches(entry: Mapping[str, Any], name: str, loops: Sequence[int], attributes: Sequence[str]) -> bool:
    """Whether an entry of tune's `configurations` means an op of this name, these loop ranges and these attributes."""
    if name != entry["op"] or entry.get("attribute") not in ("", None, *attributes):
        return False
    wanted = entry.get("loops")
    if wanted is None:
        return True
    return len(wanted) == len(loops) and all(want in (*_ANY, have) for want, have in zip(wanted, loops, strict=True))


def tiles_of(entry: Mapping[str, Any], kinds: Sequence[str], where: str) -> dict[str, tuple[int, ...]]:
    """The tile sizes of an entry by level, for an op whose loops are of these kinds; 0 leaves a loop whole."""
    tiles = {level: tuple(entry[level]) for level in LEVELS if level in entry}
    for level, sizes in tiles.items():
        if len(sizes) != len(kinds):
            raise ValueError(f"{where}.{level} has {len(sizes)} sizes, but {entry['op']} has {len(kinds)} loops")
        for number, (size, kind) in enumerate(zip(sizes, kinds, strict=True)):
            if size and kind != LEVELS[level]:
                raise ValueError(f"{where}.{level}[{number}] must be 0, since loop {number} is a {kind} loop")
    return tiles


def compilation_info(pipeline: str, tiles: Mapping[str, tuple[int, ...]]) -> str:
    """The attribute by which IREE is told how to lower an operation, as MLIR writes it."""
    levels = ", ".join(f"{level} = {list(tiles[level])}" for level in LEVELS if level in tiles)
    return (
        f"#iree_codegen.compilation_info<lowering_config = #iree_cpu.lowering_config<{levels}>, "
        f"translation_info = #iree_codegen.translation_info<pipeline = #iree_cpu.pipeline<{pipeline}>>>"
    )
