"""The operation of a dispatch that decides how it is lowered: its loops, its types, and how a spec recognises it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

LoopKind = Literal["parallel", "reduction"]


@dataclass(frozen=True, kw_only=True)
class Loop:
    """One loop of a structured operation, outermost first.

    Attributes:
        size: Its range; -1 where it is not known before the program runs.
    """

    size: int
    kind: LoopKind


@dataclass(frozen=True, kw_only=True)
class Root:
    """The operation whose lowering configuration decides, before the compiler has given it one.

    Attributes:
        op: `linalg.conv_2d_nhwc_hwcf`, `linalg.generic`.
        loops: In the operation's order.
        operands: Types of its inputs and then its outputs, as MLIR writes them: `tensor<1x92x64x64xf32>`.
        element_bits: Of the elements of its output.
        innermost: The loop along which its output is contiguous in memory.
        matcher: The operation as text with its operands renamed to %arg0, %arg1, ..., its body included, as
            transform.iree.match.cast_compatible_dag_from_root takes it.
        pipeline: The compiler's own choice: `ConvTileAndDecomposeExpert`.
        tiles: The compiler's own tile sizes by level, as `harness.rewrites.tuned_configuration.LEVELS` names them.
    """

    op: str
    loops: tuple[Loop, ...]
    operands: tuple[str, ...]
    element_bits: int
    innermost: int
    matcher: str
    pipeline: str
    tiles: dict[str, tuple[int, ...]]
