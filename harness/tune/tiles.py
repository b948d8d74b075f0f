"""The operation of a dispatch that decides how it is lowered: its loops, its types, and how a spec recognises it.

The lowering configurations that are worth a try for an operation.

They come from what every structured operation has, its loops, and from the machine's vector unit:

- A register tile (`vector_common_parallel`) is the part of the output that stays in vector registers while a reduction
  runs over it. Along the loop in which the output is contiguous it has columns, which are whole vectors; along other
  loops it has rows. A vector that is loaded serves all rows, and an element of a row all its vectors, so a large tile
  needs few loads for a multiplication; but its accumulators and one row's vectors must fit the registers.
- A reduction tile (`vector_reduction`) is how much of the reduction is unrolled in a register tile. Where inputs are
  contiguous along the reduction, and none along the output, the vectors lie there, and an accumulator is an element.
- A distribution tile is what one call of the dispatch's function computes; on one core it decides what stays in caches.

Tiles divide their loops, and columns are a power of two: other sizes gave code that is 2 to 30 times slower.
"""

import heapq
import itertools
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from harness.explain.decisions import inside, split
from harness.rewrites.targets import LEVELS, VectorUnit, compilation_info, divisors

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
    # The compiler's own tile sizes by level, as `harness.rewrites.targets.LEVELS` names them
    tiles: dict[str, tuple[int, ...]]


_UNKNOWN = -1
_OF_CPUS = "#iree_cpu.lowering_config<"
_SIZES = re.compile(r"\[[-\d, ]*\]")
_PIPELINE = re.compile(r"pipeline = (?:#iree_\w+\.pipeline<)?([\w.]+)")


def root_of(source: Mapping[str, Any], configured: Mapping[str, Any]) -> tuple[Root | None, str]:
    """The root of a dispatch; or None, and why it has none that a spec can configure, as a phrase."""
    operations: Sequence[Mapping[str, Any]] = configured["operations"]
    operation = max(operations, key=_weight, default=None)
    tiles = tiles_of(operation["configuration"]) if operation is not None else {}
    if operation is None or not tiles:
        if any(each["configuration"] for each in operations):
            return None, "its configuration is no iree_cpu.lowering_config, which is what specs are written for"
        return None, "the compiler tiles nothing in it"
    name = operation["op"]
    if "loops" not in operation:
        return None, f"no spec is written for its {name}"
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
        op=name,
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


def _weight(operation: Mapping[str, Any]) -> tuple[bool, int]:
    """Of several operations that have tile sizes the one that reduces decides, and then the one with most levels."""
    levels = [level for level, sizes in tiles_of(operation["configuration"]).items() if any(sizes)]
    return any("reduction" in level for level in levels), len(levels)


Sizes = tuple[int, ...]

MOST_FIRST = 36
_REGISTER_TILES = 10
# IREE refuses an operation whose tile of all loops together is this many vectors or more.
_VECTORS_IN_AN_OPERATION = 512
# A fused multiplication and addition takes 4 cycles and up to 2 begin in one, so with fewer accumulators they wait.
_ACCUMULATORS = 8
_MOST_VECTORS_A_ROW = 8
_UNROLLED = (1, 4, 8, 16)
# Elements of the output in a strip of whole rows: its part of the output and of one input is in the first-level cache.
_STRIP = 4096


@dataclass(frozen=True, kw_only=True)
class Configuration:
    """How a dispatch is lowered."""

    pipeline: str  # One of harness.rewrites.targets.PIPELINES
    tiles: Mapping[str, Sizes]  # By level, a tile size a loop; 0 leaves a loop whole there

    @property
    def text(self) -> str:
        """As reports show it, and as what it is known by: `ConvTileAndDecomposeExpert, vector_reduction = [...]`."""
        levels = (f"{level} = {list(sizes)}" for level, sizes in self.tiles.items())
        return ", ".join(filter(None, (self.pipeline, *levels)))


def first_configurations(root: Root, unit: VectorUnit) -> tuple[Configuration, ...]:
    """What to try first, at most MOST_FIRST configurations, the best guess first.

    Register tiles, the reduction tiles of each, and distributions are each ordered by promise; where a configuration
    stands is a weighted sum of its places in these orders. The compiler's own is not among them.
    """
    if root.loops[root.innermost].kind == "reduction":
        return ()
    ranked = []
    for first, register in enumerate(_register_tiles(root, unit)):
        orders = (_distributions(root, register), _reduction_tiles(root, unit))
        for (second, distribution), (third, reduction) in itertools.product(*map(enumerate, orders)):
            configuration = _configuration(root, distribution, register, reduction)
            is_own = (configuration.pipeline, configuration.tiles) == (root.pipeline, root.tiles)
            if not is_own and _is_legal(root, configuration, unit):
                # Another register tile changes the time the most, and another distribution the least.
                ranked.append((first + 4 * second + 2 * third, configuration))
    best = heapq.nsmallest(MOST_FIRST, ranked, key=lambda entry: entry[0])
    return tuple(configuration for _, configuration in best)


def fitting(root: Root, configurations: Iterable[Configuration], unit: VectorUnit) -> tuple[Configuration, ...]:
    """Those that won for other operations and fit this one too, so that like operations are not searched from anew."""
    return tuple(
        configuration
        for configuration in configurations
        if all(len(sizes) == len(root.loops) for sizes in configuration.tiles.values())
        and configuration.pipeline == _pipeline(root)
        and _is_legal(root, configuration, unit)
        and configuration.tiles != root.tiles
    )


def neighbours(root: Root, configuration: Configuration, unit: VectorUnit) -> tuple[Configuration, ...]:
    """The configurations that differ in one tile size of one level: the next one up or down that fits the others."""
    found = []
    for level, sizes in configuration.tiles.items():
        for loop in range(len(root.loops)):
            for size in _steps(root, configuration, level, loop, unit):
                changed = (*sizes[:loop], size, *sizes[loop + 1 :])
                tiles = {**configuration.tiles, level: changed}
                found.append(Configuration(pipeline=configuration.pipeline, tiles=tiles))
    return tuple(candidate for candidate in found if _is_legal(root, candidate, unit))


def _steps(root: Root, configuration: Configuration, level: str, loop: int, unit: VectorUnit) -> Iterator[int]:
    extent = root.loops[loop].size
    if root.loops[loop].kind != LEVELS[level]:
        return
    size = configuration.tiles[level][loop] or extent
    if level == "distribution":
        register = configuration.tiles.get("vector_common_parallel", (1,) * len(root.loops))[loop]
        sizes = [divisor for divisor in divisors(extent) if divisor % (register or extent) == 0]
    elif level == "vector_common_parallel":
        within = configuration.tiles.get("distribution", (0,) * len(root.loops))[loop] or extent
        sizes = _columns(root, unit) if loop == root.innermost else divisors(within)
        sizes = [step for step in sizes if within % step == 0]
    else:
        sizes = divisors(extent)
    yield from [step for step in sizes if step < size][-1:]
    yield from [step if step < extent or level != "distribution" else 0 for step in sizes if step > size][:1]


def _configuration(root: Root, distribution: Sizes, register: Sizes, reduction: Sizes) -> Configuration:
    tiles = {"distribution": distribution, "vector_common_parallel": register, "vector_reduction": reduction}
    return Configuration(
        pipeline=_pipeline(root),
        tiles={level: sizes for level, sizes in tiles.items() if any(sizes) or level != "vector_reduction"},
    )


def _pipeline(root: Root) -> str:
    """The one that vectorises an operation; where another accepts it, too, its code takes 10 to 40 times as long."""
    if root.op == "linalg.mmt4d":
        return "Mmt4dTilingExpert"
    return "ConvTileAndDecomposeExpert" if _windows(root) else "DoubleTilingExpert"


def _windows(root: Root) -> tuple[tuple[int, int], ...]:
    """The loops over the rows of an operation's two-dimensional window, in output and kernel, and over its columns."""
    found = re.match(r"linalg\.(?:depthwise_conv_2d|conv_2d|pooling)_(n[ghwc]+)", root.op)
    if not found or "hw" not in found[1]:
        return ()
    rows, kernel = found[1].index("h"), _reductions(root)
    # Channels are summed over before the kernel's loops or after them, as the layout has them.
    if len(kernel) == 3:
        kernel = kernel[1:] if found[1].endswith("hw") else kernel[:2]
    return ((rows, kernel[0]), (rows + 1, kernel[1]))


def _is_legal(root: Root, configuration: Configuration, unit: VectorUnit) -> bool:
    """Whether the compiler takes it, and the registers hold it."""
    register = configuration.tiles.get("vector_common_parallel", (0,) * len(root.loops))
    reduction = configuration.tiles.get("vector_reduction", (0,) * len(root.loops))
    if _registers(root, register, unit) > unit.registers:
        return False
    tile = [a or b or 1 for a, b in zip(register, reduction, strict=True)]
    if math.prod(tile) * root.element_bits >= _VECTORS_IN_AN_OPERATION * unit.vector_bytes * 8:
        return False
    # A two-dimensional window is made one-dimensional, which one of the two must be already.
    windows = _windows(root)
    return not windows or any(tile[output] == tile[kernel] == 1 for output, kernel in windows)


def _lanes(root: Root, unit: VectorUnit) -> int:
    return max(1, unit.vector_bytes * 8 // root.element_bits)


def _column_lanes(root: Root, unit: VectorUnit) -> int:
    """Elements of an accumulator along the output's contiguous loop."""
    return 1 if _along_reduction(root) else _lanes(root, unit)


def _registers(root: Root, register: Sizes, unit: VectorUnit) -> int:
    """Vector registers that a register tile needs: its accumulators, and an input's vectors for a row or a column."""
    vectors = -(-(register[root.innermost] or 1) // _column_lanes(root, unit))
    rows = math.prod(size or 1 for loop, size in enumerate(register) if loop != root.innermost)
    return rows * vectors + min(rows, vectors)


def _columns(root: Root, unit: VectorUnit) -> list[int]:
    """Widths of a register tile: some vectors, or a half or a quarter of one; other divisors where none of these is."""
    size, lanes = root.loops[root.innermost].size, _column_lanes(root, unit)
    most = max(lanes * _MOST_VECTORS_A_ROW, _lanes(root, unit))
    least = min(max(1, lanes // 4), size)
    widths = [width for width in divisors(size) if least <= width <= most]
    return [width for width in widths if width.bit_count() == 1] or widths or [1]


def _register_tiles(root: Root, unit: VectorUnit) -> list[Sizes]:
    """Those with columns, and rows along up to two loops, the best first; the compiler's own is the third of them."""
    others = [loop for loop, each in enumerate(root.loops) if each.kind == "parallel" and loop != root.innermost]
    groups = [group for count in range(3) for group in itertools.combinations(others, count)]
    tiles = {
        _tile(root, {root.innermost: columns, **dict(zip(group, rows, strict=True))})
        for columns in _columns(root, unit)
        for group in groups
        for rows in itertools.product(*(_rows(root, loop, unit) for loop in group))
    }
    shortest = tuple(int(loop.kind == "reduction") for loop in root.loops)
    legal = [tile for tile in tiles if _is_legal(root, _configuration(root, (), tile, shortest), unit)]
    best = heapq.nsmallest(_REGISTER_TILES, legal, key=lambda tile: (_cost(root, tile, unit), tile))
    own = _own(root, "vector_common_parallel")
    # A microkernel has a register tile of its own, whatever this says.
    return own or best[:1] if root.op == "linalg.mmt4d" else list(dict.fromkeys([*best[:2], *own, *best[2:]]))


def _own(root: Root, level: str) -> list[Sizes]:
    """The compiler's own tile, unless there is none or it does not divide."""
    sizes = root.tiles.get(level)
    divides = sizes and all(not size or loop.size % size == 0 for loop, size in zip(root.loops, sizes, strict=True))
    return [sizes] if sizes and divides else []


def _rows(root: Root, loop: int, unit: VectorUnit) -> list[int]:
    sizes = [divisor for divisor in divisors(root.loops[loop].size) if 1 < divisor <= unit.registers]
    return sizes if _reductions(root) else [size for size in sizes if size.bit_count() == 1]


def _tile(root: Root, sizes: Mapping[int, int]) -> Sizes:
    return tuple(sizes.get(loop, 1) if each.kind == "parallel" else 0 for loop, each in enumerate(root.loops))


def _reductions(root: Root) -> list[int]:
    return [loop for loop, each in enumerate(root.loops) if each.kind == "reduction"]


def _cost(root: Root, tile: Sizes, unit: VectorUnit) -> float:
    """What an element of the output costs for a step of the reduction: the slower of loading and multiplying."""
    lanes = _column_lanes(root, unit)
    vectors = -(-tile[root.innermost] // lanes)
    rows = {loop: size for loop, size in enumerate(tile) if loop != root.innermost and size > 1}
    accumulators = vectors * math.prod(rows.values())
    filled = tile[root.innermost] / (vectors * lanes)
    if not _reductions(root):
        return abs(math.log2(accumulators / _ACCUMULATORS)) + 1 / filled
    loads = (math.prod(rows.values()) + vectors) / accumulators
    waits = max(1.0, _ACCUMULATORS / accumulators)
    # Rows along a loop far out seldom share what is loaded (a batch), and two loops of rows need more addresses.
    outside = sum(1 for loop in rows for other in range(loop + 1, root.innermost) if root.loops[other].size > 1)
    return max(1.0, loads) * waits / filled + 0.1 * loads + 0.05 * len(rows) + 0.1 * outside


def _along_reduction(root: Root) -> bool:
    """Whether the inputs are contiguous along a reduction, and none along the output's loop, as far as sizes tell."""
    if _windows(root):
        return False
    extents = {int(found[1]) for type_ in root.operands[:-1] if (found := re.search(r"(\d+)x[a-z]\w*>", type_))}
    sizes = {root.loops[loop].size for loop in _reductions(root)} - {1}
    return bool(extents & sizes) and root.loops[root.innermost].size not in extents


def _reduction_tiles(root: Root, unit: VectorUnit) -> list[Sizes]:
    """How much of which reduction loop is unrolled: the longest one, or the innermost, by a few; the others by 1."""
    loops = _reductions(root)
    if not loops:
        return [(0,) * len(root.loops)]
    longest = max(loops, key=lambda loop: (root.loops[loop].size, loop))
    lanes = _lanes(root, unit)
    unrolled = (lanes, 2 * lanes, 4 * lanes, 1) if _along_reduction(root) else _UNROLLED
    wanted = [*itertools.product([longest], unrolled), (loops[-1], root.loops[loops[-1]].size)]
    found = [
        tuple(size if each == loop else int(each in loops) for each in range(len(root.loops)))
        for loop, size in wanted
        if root.loops[loop].size % size == 0 and size <= max(unrolled)
    ]
    return list(dict.fromkeys([*found[:2], *_own(root, "vector_reduction"), *found[2:]]))


def _distributions(root: Root, register: Sizes) -> list[Sizes]:
    """The compiler's own as far as the register tile divides it; all in one; and strips of whole rows."""
    parallel = [loop for loop, each in enumerate(root.loops) if each.kind == "parallel"]
    strip, area = [0] * len(root.loops), math.prod(root.loops[loop].size for loop in parallel)
    for loop in parallel:
        area //= root.loops[loop].size
        strip[loop] = max(1, _STRIP // area)
        if area <= _STRIP:
            break
    wanted = [root.tiles.get("distribution", (0,) * len(root.loops)), (0,) * len(root.loops), tuple(strip)]
    fitted = [tuple(_fitted(*each) for each in zip(root.loops, sizes, register, strict=True)) for sizes in wanted]
    return list(dict.fromkeys(fitted))


def _fitted(loop: Loop, wanted: int, register: int) -> int:
    """The size nearest to a wanted one that divides a loop and is a multiple of the register tile; 0 for all of it."""
    if not wanted or wanted >= loop.size:
        return 0
    sizes = [divisor for divisor in divisors(loop.size) if divisor % (register or loop.size) == 0]
    nearest = min(sizes, key=lambda size: abs(math.log(size / wanted)), default=0)
    return 0 if nearest == loop.size else nearest


# --- Tuning specs: lowering configurations as a text that iree-compile takes with --iree-codegen-tuning-spec-path ---


# Attributes and names are those by which IREE recognises a spec that has one entry point and nothing else, which it
# can then join with other specs.
_MODULE = """\
// Lowering configurations for llvm-cpu: iree-compile --iree-codegen-tuning-spec-path=<this file>
// An operation of other shapes, types or attributes keeps the compiler's own configuration.
module attributes {{transform.with_named_sequence, iree_codegen.tuning_spec_with_default_entrypoint}} {{
  transform.named_sequence @configure(
      %op: !transform.any_op {{transform.readonly}}, %configuration: !transform.any_param {{transform.readonly}}) {{
    transform.annotate %op "compilation_info" = %configuration : !transform.any_op, !transform.any_param
    transform.yield
  }}

{sequences}

  transform.named_sequence @__kernel_config(%module: !transform.any_op {{transform.consumed}}) -> !transform.any_op
      attributes {{iree_codegen.tuning_spec_entrypoint}} {{
    %configured = transform.foreach_match in %module
{choices} : (!transform.any_op) -> !transform.any_op
    transform.yield %configured : !transform.any_op
  }}
}}
"""
_SEQUENCE = """\
  // {operation}
  // {chosen}
  // the compiler's own: {own}
  transform.named_sequence @{name}(%op: !transform.any_op {{transform.readonly}})
      -> (!transform.any_op, !transform.any_param) {{
    %inputs, %outputs = transform.iree.match.cast_compatible_dag_from_root %op {{
    ^bb0({arguments}):
{matcher}
    }} : (!transform.any_op) -> (!transform.any_value, !transform.any_value)
    %configuration = transform.param.constant
      {configuration}
      -> !transform.any_param
    transform.yield %op, %configuration : !transform.any_op, !transform.any_param
  }}"""


def spec_of(entries: Sequence[tuple[Root, Configuration]]) -> str:
    """The tuning spec that gives operations their configurations; of equal operations the first entry counts."""
    first: dict[tuple[str, tuple[str, ...]], tuple[Root, Configuration]] = {}
    for root, configuration in entries:
        first.setdefault((root.matcher, root.operands), (root, configuration))
    named = {f"operation_{number}": entry for number, entry in enumerate(first.values())}
    return _MODULE.format(
        sequences="\n\n".join(_sequence(name, *entry) for name, entry in named.items()),
        choices=",\n".join(f"      @{name} -> @configure" for name in named),
    )


def _sequence(name: str, root: Root, configuration: Configuration) -> str:
    loops = ", ".join(f"{loop.size} {loop.kind}" for loop in root.loops)
    return _SEQUENCE.format(
        operation=f"{root.op}, loops: {loops}",
        chosen=configuration.text,
        own=Configuration(pipeline=root.pipeline, tiles=root.tiles).text,
        name=name,
        arguments=", ".join(f"%arg{number}: {type_}" for number, type_ in enumerate(root.operands)),
        matcher="\n".join(f"      {line}" for line in root.matcher.splitlines()),
        configuration=compilation_info(configuration.pipeline, configuration.tiles),
    )
