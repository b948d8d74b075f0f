"""One small plugin of every kind; the harness's docs/plugins.md walks through them."""

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from harness.plugins import (
    CompilerPlugin,
    ExecutablePlugin,
    Flags,
    NoOptions,
    PassPipeline,
    PdlSpec,
    Plugin,
    Rewrite,
    TransformLibrary,
    TransformSpec,
    TuningSpec,
    package_file,
    written_file,
)

_PACKAGE = "example_plugins"
Positive = Annotated[int, Field(ge=1)]


@dataclass(frozen=True, kw_only=True)
class OneExpOptions:
    """How many products are rewritten at most, from the top of the program."""

    limit: Annotated[int, Field(ge=1)] = 1000


# A Python function over the module; its keyword arguments are the options.
ONE_EXP = Plugin(
    name="one-exp",
    version="1",
    description="exp(x) * exp(y) becomes exp(x + y)",
    options=OneExpOptions,
    steps=lambda _: (Rewrite(function="example_plugins.rewrites:one_exp"),),
)

# The same as a PDL pattern, in a file of the package.
ONE_EXP_PDL = Plugin(
    name="one-exp-pdl",
    version="1",
    description="exp(x) * exp(y) becomes exp(x + y)",
    options=NoOptions,
    steps=lambda _: (PdlSpec(file=package_file(_PACKAGE, "one_exp.pdl.mlir")),),
)


@dataclass(frozen=True, kw_only=True)
class PaddingOptions:
    """What the sizes of a matrix product are padded to a multiple of."""

    size: Annotated[int, Field(ge=2, le=64)] = 16


# Passes that iree-compile has; their text is made from the options.
PADDED_PRODUCT = Plugin(
    name="padded-product",
    version="1",
    description="matrix products of round sizes",
    options=PaddingOptions,
    steps=lambda options: (
        PassPipeline(text=f"builtin.module(util.func(iree-preprocessing-pad-linalg-ops{{pad-size={options.size}}}))"),
    ),
)

# A transform-dialect module that is applied to the whole program.
GENERIC_PRODUCT = Plugin(
    name="generic-product",
    version="1",
    description="linalg.matmul becomes linalg.generic",
    options=NoOptions,
    steps=lambda _: (TransformSpec(file=package_file(_PACKAGE, "generic_product.mlir")),),
)


@dataclass(frozen=True, kw_only=True)
class TilesOptions:
    """How much of a matrix product is computed at once: rows and columns of the result, and terms of each sum."""

    tiles: tuple[Positive, Positive, Positive] = (4, 16, 8)

    def __post_init__(self) -> None:
        rows, columns, _ = self.tiles
        if rows * columns > 1024:
            raise ValueError(f"{rows} x {columns} values do not fit the registers; choose smaller tiles")


def _tuning_spec(options: TilesOptions) -> tuple[TuningSpec]:
    """A spec that is written from the options; it is known by its text."""
    text = package_file(_PACKAGE, "product_tiles.mlir").data.decode()
    for name, size in zip(("ROWS", "COLUMNS", "TERMS"), options.tiles, strict=True):
        text = text.replace(name, str(size))
    return (TuningSpec(file=written_file("product_tiles.mlir", text)),)


# Lowering configurations that code generation takes instead of its own.
PRODUCT_TILES = Plugin(
    name="product-tiles",
    version="1",
    description="tile sizes of matrix products",
    options=TilesOptions,
    steps=_tuning_spec,
    backends=("llvm-cpu",),
    toolchains=">=3.12",
)

# A sequence that code generation runs on every executable.
SMALL_TILES = Plugin(
    name="small-tiles",
    version="1",
    description="small tiles of matrix products",
    options=NoOptions,
    steps=lambda _: (TransformLibrary(file=package_file(_PACKAGE, "small_tiles.mlir"), entry="small_tiles"),),
    backends=("llvm-cpu",),
    toolchains=">=3.12",
)

# A kernel of one's own, in two steps: a spec makes the program call it, and the runtime loads it. It is built by
# cc -O2 -shared -fPIC -o own_product.so own_product.c
OWN_PRODUCT = Plugin(
    name="own-product",
    version="1",
    description="matrix products are computed by a C function",
    options=NoOptions,
    steps=lambda _: (
        TransformSpec(file=package_file(_PACKAGE, "own_product.mlir")),
        ExecutablePlugin(file=package_file(_PACKAGE, "own_product.so")),
    ),
    backends=("llvm-cpu",),
)

# Passes of one's own, in C++. own_pass.so has to be built against the very revision of IREE and of LLVM that the
# compiler comes from, so such a plugin is for one release.
OWN_PASS = Plugin(
    name="own-pass",
    version="1",
    description="shows how a compiler plugin is loaded",
    options=NoOptions,
    steps=lambda _: (CompilerPlugin(file=package_file(_PACKAGE, "own_pass.so"), activate=("own_pass",)),),
)

# Flags alone make a plugin too; a flag set of a suite does the same with less.
STRONG = Plugin(
    name="strong",
    version="1",
    description="the compiler's highest level",
    options=NoOptions,
    steps=lambda _: (Flags(compile=("--iree-opt-level=O3",)),),
)
