"""Lowering configurations put on operations: tile sizes that a person or a search has chosen, instead of IREE's.

An operation that carries `compilation_info` keeps it through dispatch formation, and the CPU backend then takes its
tile sizes and its pipeline from there (`iree-compile --compile-to=executable-configurations` shows what was taken).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from iree.compiler import ir

from harness.rewrites.operations import Loops, structured_ops
from harness.rewrites.regions import in_region, isolate
from harness.rewrites.tuned_configuration import compilation_info, matches, tiles_of

ATTRIBUTE = "compilation_info"
Entry = Mapping[str, Any]


def tune(module: ir.Module, *, configurations: Sequence[Entry]) -> int:
    """Put lowering configurations on structured linalg operations.

    An entry says which operations are meant, and how they are lowered:

        {"op": "linalg.conv_2d_nhwc_hwcf",         name of the operations
         "loops": [5, 80, 100, 128, 3, 3, -1],     their loop ranges, -1 or null for any (optional: all of that name)
         "attribute": "here",                      an attribute that they carry (optional)
         "pipeline": "ConvTileAndDecomposeExpert", or DoubleTilingExpert, Mmt4dTilingExpert
         "isolate": true,                          a dispatch region of their own (optional: IREE chooses)
         "distribution": [1, 4, 100, 64, 0, 0, 0], tile sizes by level, one a loop; 0 leaves a loop whole
         "vector_common_parallel": [1, 1, 5, 64, 0, 0, 0],
         "vector_reduction": [0, 0, 0, 0, 1, 1, 8]}

    The further levels are cache_parallel, cache_reduction and vector_inner_parallel. The first entry that matches an
    operation counts. What carries a configuration already keeps it. Tiles that do not divide their loops are right, but
    the CPU backend does not vectorise what is left over, nor then the rest: expect a thirtieth of the speed.
    With `isolate`, operations of dynamic shapes are left alone.
    A convolution of one image needs `isolate`, else IREE drops its configuration together with the unit dimension.
    """
    chosen = [
        (op, loops, *found)
        for op, loops in structured_ops(module)
        if (found := _choose(op, loops, configurations)) is not None
    ]
    # All are checked before the first is changed.
    tiles = [tiles_of(entry, loops.kinds, where) for _, loops, entry, where in chosen]
    for (op, _, entry, _), sizes in zip(chosen, tiles, strict=True):
        op.attributes[ATTRIBUTE] = ir.Attribute.parse(compilation_info(entry["pipeline"], sizes))
        if entry.get("isolate") and not in_region(op):
            isolate(op)
    return len(chosen)


def _choose(op: ir.Operation, loops: Loops, entries: Sequence[Entry]) -> tuple[Entry, str] | None:
    """The first entry that means an operation, and how errors call it."""
    names = list(op.attributes)
    if ATTRIBUTE in names:
        return None
    # A region's results need their sizes, and nobody has those of dynamic ones at hand.
    is_static = all(result.type.has_static_shape for result in op.results)
    for number, entry in enumerate(entries):
        if matches(entry, op.name, loops.ranges, names) and (is_static or not entry.get("isolate")):
            return entry, f"configurations[{number}]"
    return None
