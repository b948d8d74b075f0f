"""Plain data of how a program is lowered: a processor's vector unit, and a lowering configuration as IREE takes it."""

import math
import platform
import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

_CPUINFO = Path("/proc/cpuinfo")


class VectorUnit(NamedTuple):
    """Bytes of a vector register, and how many registers there are."""

    vector_bytes: int
    registers: int


def vector_unit(features: Collection[str], architecture: str) -> VectorUnit:
    """What a processor has: AVX-512 or NEON with 32 registers, AVX2 or SSE with 16."""
    if architecture.lower() in ("aarch64", "arm64"):
        return VectorUnit(16, 32)
    if "avx512f" in features:
        return VectorUnit(64, 32)
    return VectorUnit(32 if "avx2" in features else 16, 16)


def target_vector_unit(target: Mapping[str, str]) -> VectorUnit:
    """Of a processor as iree-compile describes it: by its features, of which the last mention holds, and its triple."""
    has = {feature[1:]: feature[:1] == "+" for feature in target["features"].split(",")}
    return vector_unit([feature for feature in has if has[feature]], target["triple"].partition("-")[0])


def host_vector_unit() -> VectorUnit:
    """This machine's."""
    cpuinfo = _CPUINFO.read_text() if _CPUINFO.exists() else ""
    flags = re.search(r"^flags\s*:(.*)$", cpuinfo, re.MULTILINE)
    return vector_unit(flags[1].split() if flags else (), platform.machine())


def divisors(number: int) -> list[int]:
    """Of a loop's range, what it can be tiled by without a rest, in order."""
    small = [divisor for divisor in range(1, math.isqrt(number) + 1) if number % divisor == 0]
    return sorted({*small, *(number // divisor for divisor in small)})


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


def compilation_info(pipeline: str, tiles: Mapping[str, Sequence[int]]) -> str:
    """The attribute by which IREE is told how to lower an operation, as MLIR writes it."""
    levels = ", ".join(f"{level} = {list(tiles[level])}" for level in LEVELS if level in tiles)
    return (
        f"#iree_codegen.compilation_info<lowering_config = #iree_cpu.lowering_config<{levels}>, "
        f"translation_info = #iree_codegen.translation_info<pipeline = #iree_cpu.pipeline<{pipeline}>>>"
    )
