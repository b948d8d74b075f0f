"""The operation of a dispatch that decides how it is lowered: its loops, its types, and how a spec recognises it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from harness.explain.decisions import inside, split

LoopKind = Literal["parallel", "reduction"]


@dataclass(frozen=True, kw_only=True)
class Loop:
    """One loop of a structured operation, outermost first."""

    size: int  # Its range; -1 where it is not known before the program runs
    kind: LoopKind


@dataclass(frozen=True, kw_only=True)
class Root:
    """The operation whose lowering configuration decides, before the compiler has given it one."""

    op: str  # `linalg.conv_2d_nhwc_hwcf`, `linalg.generic`
    loops: tuple[Loop, ...]  # In the operation's order
    operands: tuple[str, ...]  # Types of its inputs and then its outputs, as MLIR writes them: `tensor<1x92x64x64xf32>`
    element_bits: int  # Of the elements of its output
    innermost: int  # The loop along which its output is contiguous in memory
    # The operation as text with its operands renamed to %arg0, %arg1, ..., its body included, as
    # transform.iree.match.cast_compatible_dag_from_root takes it
    matcher: str
    pipeline: str  # The compiler's own choice: `ConvTileAndDecomposeExpert`
    # The compiler's own tile sizes by level, as `harness.rewrites.tuned_configuration.LEVELS` names them
    tiles: dict[str, tuple[int, ...]]


_UNKNOWN = -1
_OF_CPUS = "#iree_cpu.lowering_config<"
_SIZES = re.compile(r"\[[-\d, ]*\]")
_PIPELINE = re.compile(r"pipeline = (?:#iree_\w+\.pipeline<)?([\w.]+)")


def root_of(source: Mapping[str, Any], configured: Mapping[str, Any]) -> tuple[Root | None, str]:
    """The root of a dispatch; or None, and why it has none that a spec can configure, as a phrase."""
    operations: Sequence[Mapping[str, Any]] = configured["operations"]
    operation = max(operations, key=lambda each: _weight(tiles_of(each["configuration"])), default=None)
    tiles = tiles_of(operation["configuration"]) if operation is not None else {}
    if operation is None or not tiles:
        if any(each["configuration"] for each in operations):
            return None, "its configuration is no iree_cpu.lowering_config, which is what specs are written for"
        return None, "the compiler tiles nothing in it"
    name = operation["op"]
    if "loops" not in operation:
        if name.startswith("linalg."):
            return None, "it only moves data between buffers"
        return None, f"what the compiler tiles in it is {name}, for which no spec is written"
    loops = tuple(Loop(size=size, kind=kind) for size, kind in operation["loops"])
    if any(loop.size == _UNKNOWN for loop in loops):
        return None, "its sizes are not known before it runs"
    if not operation["computes"]:
        return None, f"the body of its {name} takes values from outside, which no spec recognises"
    matchers = [each["matcher"] for each in source["operations"] if each.get("computes") == operation["computes"]]
    if not matchers:
        ranges = "x".join(str(loop.size) for loop in loops)
        return None, f"the compiler tiles a {name} of {ranges} in it, which it makes just before"
    pipeline = _PIPELINE.search(configured["pipeline"])
    root = Root(
        op=operation["op"],
        loops=loops,
        operands=tuple(operation["operands"]),
        element_bits=operation["element_bits"],
        innermost=operation["innermost"],
        matcher=matchers[0],
        pipeline=pipeline[1] if pipeline else "",
        tiles=tiles,
    )
    return root, ""


def tiles_of(configuration: str) -> dict[str, tuple[int, ...]]:
    """The tile sizes by level of a CPU's lowering_config as MLIR writes it; {} of another attribute, or of ""."""
    if not configuration.startswith(_OF_CPUS):
        return {}
    fields = (item.partition(" = ") for item in split(inside(configuration, len(_OF_CPUS) - 1)))
    return {level: tuple(map(int, split(inside(sizes, 0)))) for level, _, sizes in fields if _SIZES.fullmatch(sizes)}


def _weight(tiles: Mapping[str, tuple[int, ...]]) -> tuple[bool, int]:
    """Of several operations that have tile sizes the one that reduces decides, and then the one with most levels."""
    levels = [level for level, sizes in tiles.items() if any(sizes)]
    return any("reduction" in level for level in levels), len(levels)
