"""A lowering configuration as plain data: which ops it is for, and how IREE's CPU backend shall tile them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # entries are checked where a suite is read, too, and that needs no compiler
    from iree.compiler import ir

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
# TOML has no null.
_ANY = -1
_MOST = 2**31 - 1
_KEYS = ("op", "loops", "attribute", "pipeline", "isolate", *LEVELS)


@dataclass(frozen=True, kw_only=True)
class Configuration:
    """One entry of tune's `configurations`."""

    op: str  # Name of the operations it is for: linalg.conv_2d_nhwc_hwcf
    pipeline: str  # One of PIPELINES
    tiles: Mapping[str, tuple[int, ...]]  # By level, a tile size a loop; 0 leaves a loop whole at that level
    # Their loop ranges; None for a range of any size. None altogether matches every op of that name.
    loops: tuple[int | None, ...] | None = None
    attribute: str = ""  # They carry an attribute of this name; "" asks for none
    isolate: bool = False  # Put each op into a dispatch region of its own first; harness.rewrites.regions says why

    def matches(self, name: str, loops: Sequence[int], attributes: Sequence[str]) -> bool:
        """Whether an op of this name, these loop ranges and these attributes is meant."""
        if name != self.op or (self.attribute and self.attribute not in attributes):
            return False
        wanted = self.loops
        if wanted is None:
            return True
        return len(wanted) == len(loops) and all(want in (None, have) for want, have in zip(wanted, loops, strict=True))

    def attribute_for(self, kinds: Sequence[str], where: str) -> ir.Attribute:
        """The `compilation_info` that IREE reads."""
        for level, sizes in self.tiles.items():
            if len(sizes) != len(kinds):
                raise ValueError(f"{where}.{level} has {len(sizes)} sizes, but {self.op} has {len(kinds)} loops")
            for number, (size, kind) in enumerate(zip(sizes, kinds, strict=True)):
                if size and kind != LEVELS[level]:
                    raise ValueError(f"{where}.{level}[{number}] must be 0, since loop {number} is a {kind} loop")
        from iree.compiler import ir

        return ir.Attribute.parse(compilation_info(self.pipeline, self.tiles))


def compilation_info(pipeline: str, tiles: Mapping[str, tuple[int, ...]]) -> str:
    """The attribute by which IREE is told how to lower an operation, as MLIR writes it."""
    levels = ", ".join(f"{level} = {list(tiles[level])}" for level in LEVELS if level in tiles)
    return (
        f"#iree_codegen.compilation_info<lowering_config = #iree_cpu.lowering_config<{levels}>, "
        f"translation_info = #iree_codegen.translation_info<pipeline = #iree_cpu.pipeline<{pipeline}>>>"
    )


def read_configuration(entry: Mapping[str, Any], where: str) -> Configuration:
    """Check one entry of tune's `configurations`."""
    for key in entry:
        if key not in _KEYS:
            raise ValueError(f"{where}.{key} is unknown; there are {', '.join(_KEYS)}")
    for key in ("op", "pipeline"):
        if not isinstance(entry.get(key), str):
            raise ValueError(f"{where}.{key} must be a string")
    if entry["pipeline"] not in PIPELINES:
        raise ValueError(f"{where}.pipeline must be one of {', '.join(PIPELINES)}, not {entry['pipeline']!r}")
    if not isinstance(entry.get("attribute", ""), str) or not isinstance(entry.get("isolate", False), bool):
        raise ValueError(f"{where}.attribute must be a string, and isolate true or false")
    tiles = {level: _sizes(entry[level], f"{where}.{level}", allow_any=False) for level in LEVELS if level in entry}
    if not any(any(sizes) for sizes in tiles.values()):
        raise ValueError(f"{where} tiles nothing; give it at least one of {', '.join(LEVELS)}")
    loops = entry.get("loops")
    return Configuration(
        op=entry["op"],
        pipeline=entry["pipeline"],
        # No None among them, since allow_any is off.
        tiles={level: tuple(size or 0 for size in sizes) for level, sizes in tiles.items()},
        loops=None if loops is None else _sizes(loops, f"{where}.loops", allow_any=True),
        attribute=entry.get("attribute", ""),
        isolate=entry.get("isolate", False),
    )


def _sizes(values: object, where: str, *, allow_any: bool) -> tuple[int | None, ...]:
    if not isinstance(values, list):
        raise ValueError(f"{where} must be a list of whole numbers")
    for value in values:
        if (value in (None, _ANY) and allow_any) or (type(value) is int and 0 <= value <= _MOST):
            continue
        raise ValueError(
            f"{where} must hold whole numbers from 0 up{' or -1 for any' if allow_any else ''}, not {value!r}"
        )
    return tuple(None if value == _ANY else value for value in values)
