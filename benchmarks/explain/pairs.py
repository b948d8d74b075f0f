"""Pairs of programs, variants and releases of which it is known what takes another time, and why."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

from benchmarks.explain.programs import (
    LOOPS,
    PIECES,
    Piece,
    Program,
    biased_matmuls,
    convolution,
    long_sum,
    loop,
    matmuls,
    softmaxes,
    ten,
)
from harness.tune.tiles import Configuration, Root, spec_of

# How much more work a piece does; those that share a line of the table stand together.
FACTORS = ((1.05, 1.1), (1.2, 1.5), (2.0, 4.0))
# The newest release without a profile, whose dispatches are timed alone.
ALONE = "3.11.0"

# Which of the ten pieces makes room for another one.
_PLACE = "loop of 48"
_PADDING = "fuse-padding-into-linalg-consumer-ops"
_SQUARE = "tensor<64x64xf32>"
_MATMUL = Root(
    op="linalg.matmul",
    loops=(),
    operands=(_SQUARE,) * 3,
    element_bits=32,
    innermost=1,
    matcher=f"%0 = linalg.matmul ins(%arg0, %arg1 : {_SQUARE}, {_SQUARE}) outs(%arg2 : {_SQUARE}) -> {_SQUARE}",
    pipeline="",
    tiles={},
)
_TILES = {"distribution": (64, 64, 0), "vector_common_parallel": (1, 8, 0), "vector_reduction": (0, 0, 1)}
_SMALL_TILES = {"spec": spec_of([(_MATMUL, Configuration(pipeline="DoubleTilingExpert", tiles=_TILES))])}


@dataclass(frozen=True, kw_only=True)
class Programs:
    """Two programs, compiled by one release.

    Attributes:
        toolchain: "": the one that is installed.
    """

    base: Program
    head: Program
    toolchain: str = ""


@dataclass(frozen=True, kw_only=True)
class Variant:
    """A variant of a program beside the program as it is.

    Attributes:
        table: Of the variant in the suite.
    """

    program: Program
    table: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Releases:
    """A case of a suite of this checkout under two releases."""

    base: str
    head: str
    suite: str
    case: str


@dataclass(frozen=True, kw_only=True)
class Pair:
    """Two sides, and what is known of their difference.

    Attributes:
        name: Of letters, digits, dots and dashes.
        kind: Pairs of a kind share a line of the table.
        dispatches: Shell patterns of the names of those that change, without their numbers; () where none does.
        ratio: What those take, head over base; None: not known.
        is_all: Whether all of the change of a call is theirs: not where more memory, copies or barriers are part of it.
    """

    name: str
    kind: str
    sides: Programs | Variant | Releases
    dispatches: tuple[str, ...] = ()
    ratio: float | None = None
    is_all: bool = True


def all_pairs(*, releases: bool) -> dict[str, Pair]:
    """By name, in the order of the table.

    Args:
        releases: Those too that need older releases, each of which takes minutes.
    """
    pairs = [*_longer_loops(), *_longer_rows(), *_split(), *_variants(), *_equal()]
    if releases:
        pairs += [*_alone(), *_releases()]
    return {pair.name: pair for pair in pairs}


def _longer_loops() -> Iterator[Pair]:
    """One of the long pieces is slower, and one of the short ones faster: for the latter base has the longer loop."""
    for factors in FACTORS:
        for factor, (size, is_faster) in product(factors, ((24, False), (10, True))):
            sides = (ten(), ten({f"loop of {size}": loop(size, factor)}))
            yield Pair(
                name=f"loop-{size}-{'faster' if is_faster else 'slower'}-{factor:g}",
                kind=f"a dispatch of ten does {' or '.join(f'{each:g}' for each in factors)} times the work",
                sides=Programs(base=sides[is_faster], head=sides[not is_faster]),
                dispatches=PIECES[f"loop of {size}"].dispatches,
                ratio=1 / factor if is_faster else factor,
            )


def _longer_rows() -> Iterator[Pair]:
    """A row of equal dispatches is longer; the code is the same."""
    rows = {"matmuls": matmuls(64, 64, 1.1), "small matmuls": matmuls(96, 48, 1.5), "softmaxes": softmaxes(2.0)}
    for (name, piece), factor in zip(rows.items(), (1.1, 1.5, 2.0), strict=True):
        yield Pair(
            name=f"{name.replace(' ', '-')}-{factor:g}",
            kind="a dispatch of ten runs 1.1 to 2 times as often",
            sides=Programs(base=ten(), head=ten({name: piece})),
            dispatches=piece.dispatches,
            ratio=factor,
        )


def _split() -> Iterator[Pair]:
    """What is one dispatch on one side and two on the other."""
    one, two = (biased_matmuls(split=split) for split in (False, True))
    fused, split = (ten({_PLACE: piece}, LOOPS) for piece in (one, two))
    for name, base, head in (("split", fused, split), ("fused", split, fused)):
        yield Pair(
            name=f"{name}-product",
            kind="a dispatch of ten is split in two, or two are fused",
            sides=Programs(base=base, head=head),
            dispatches=two.dispatches,
            is_all=False,
        )


def _variants() -> Iterator[Pair]:
    """Flags and plugins that leave all but one of ten pieces as they are."""
    convolved, summed = ((piece, ten({_PLACE: piece}, LOOPS)) for piece in (convolution(), long_sum()))
    tiled = {"plugins": [{"name": "tuning-spec", "options": _SMALL_TILES}]}
    changed: list[tuple[str, dict[str, Any], tuple[Piece, Program]]] = [
        ("im2col", {"flags": ["--iree-global-opt-use-im2col-for-convs"]}, convolved),
        ("channels-last", {"plugins": ["channels-last"]}, convolved),
        (_PADDING, {"flags": [f"--iree-dispatch-creation-enable-{_PADDING}"]}, convolved),
        ("small-tiles", tiled, (PIECES["matmuls"], ten())),
        ("sums-in-vectors", {"flags": ["--iree-llvmcpu-reassociate-fp-reductions=true"]}, summed),
    ]
    for name, table, (piece, program) in changed:
        yield Pair(
            name=name,
            kind="a flag or a plugin changes a dispatch of ten",
            sides=Variant(program=program, table=table),
            dispatches=piece.dispatches,
            is_all=piece is not convolved[0],
        )


def _equal() -> Iterator[Pair]:
    """Nothing takes another time: the same module, or another constant in one dispatch."""
    kind = "nothing takes another time"
    for number in range(1, 8):
        yield Pair(name=f"same-module-{number}", kind=kind, sides=Programs(base=ten(), head=ten()))
    for size in (6, 10, 24, 48):
        head = ten({f"loop of {size}": loop(size, factor=0.998)})
        yield Pair(name=f"another-constant-{size}", kind=kind, sides=Programs(base=ten(), head=head))


def _alone() -> Iterator[Pair]:
    """Some of the others under a release whose dispatches are timed one by one."""
    names = ("loop-24-slower-1.1", "loop-10-faster-1.5", "matmuls-1.1", "softmaxes-2", "same-module-1")
    for pair in (*_longer_loops(), *_longer_rows(), *_equal()):
        if pair.name in names and isinstance(pair.sides, Programs):
            sides = replace(pair.sides, toolchain=ALONE)
            yield replace(pair, name=f"alone-{pair.name}", kind=f"some of these by IREE {ALONE}", sides=sides)


def _releases() -> Iterator[Pair]:
    """ESRGAN's block, whose five convolutions 3.12 configures anew; all else keeps its code."""
    yield Pair(
        name="rdb-3.10.0-3.12.0",
        kind="ESRGAN's block by IREE 3.10.0 and 3.12.0",
        sides=Releases(base="3.10.0", head="3.12.0", suite="suites/esrgan.toml", case="rdb/stock@cpu"),
        dispatches=("conv*",),
    )
