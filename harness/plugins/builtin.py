"""The plugins that come with the harness, registered like any other package's.

What they do is in harness.rewrites; here are their names, versions and options. A version goes up whenever the same
program would be rewritten into another one.
"""

from dataclasses import dataclass
from typing import Any

from harness.plugins.halide_schedule import HalideScheduleOptions, transform_library
from harness.plugins.options import NoOptions
from harness.plugins.plugin import Plugin, Rewrite, TransformLibrary, TuningSpec, written_file

_SINCE = ">=3.12"
# What goes before and after any rewrite that isolates convolutions.
_NAMES = Rewrite(function="harness.rewrites.tuned:name_convolutions", arguments={})
_IN_PLACE = Rewrite(function="harness.rewrites.regions:regions_in_place", arguments={})


def _one_rewrite(
    name: str, description: str, function: str, options: type[Any] = NoOptions, **step: Any
) -> Plugin[Any]:
    """A plugin of a single function in harness.rewrites, which takes its options."""
    rewrite = Rewrite(function=f"harness.rewrites.{function}", **step)
    return Plugin(
        name=name,
        version="1",
        description=description,
        options=options,
        steps=lambda _: (rewrite,),
        toolchains=_SINCE,
    )


@dataclass(frozen=True, kw_only=True)
class ShareConcatOptions:
    """See harness.rewrites.share_concat."""

    padding: bool = True


@dataclass(frozen=True, kw_only=True)
class IngressOptions:
    """See harness.rewrites.ingress."""

    fill_init: bool = True
    outs_style: bool = True
    fold_transpose: bool = True
    generic_matmul: bool = True
    relu_to_maximum: bool = True


@dataclass(frozen=True, kw_only=True)
class ChannelsLastOptions:
    """See harness.rewrites.channels_last."""

    depthwise: bool = True


SHARE_CONCAT = _one_rewrite(
    "share-concat",
    "Concatenations that are a contiguous run of a larger one's parts share its buffer",
    "share_concat:share_concat",
    ShareConcatOptions,
)
REPLICATE_STORES = _one_rewrite(
    "replicate-stores",
    "A dispatch writes its result into each tensor that it is inserted into",
    "dispatches:replicate_stores",
    phase="flow",
)
FUSE_PADDING = _one_rewrite(
    "fuse-padding",
    "Padding is written by the dispatch whose result it surrounds; contiguous insertions stay apart",
    "dispatches:fuse_padding",
    phase="flow",
)
INGRESS_CANONICALIZE = _one_rewrite(
    "ingress-canonicalize",
    "The linalg of PyTorch exporters in the form that tpp-mlir's generator writes",
    "ingress:ingress_canonicalize",
    IngressOptions,
)
CHANNELS_LAST = _one_rewrite(
    "channels-last",
    "NCHW convolutions become NHWC ones, and what is around them goes along",
    "channels_last:channels_last",
    ChannelsLastOptions,
)


@dataclass(frozen=True, kw_only=True)
class IsolateOptions:
    """See harness.rewrites.regions."""

    depthwise: bool = False
    pooling: bool = True


ISOLATE = Plugin(
    name="isolate",
    version="1",
    description="Channels-last convolutions of one image in dispatch regions, where a tuning spec can reach them",
    options=IsolateOptions,
    steps=lambda _: (_NAMES, Rewrite(function="harness.rewrites.regions:isolate_convolutions"), _IN_PLACE),
    backends=("llvm-cpu",),
    toolchains=_SINCE,
)


TUNED = Plugin(
    name="tuned",
    version="3",
    description="Lowering configurations for channels-last convolutions, derived from their shapes and the target",
    options=NoOptions,
    steps=lambda _: (
        _NAMES,
        Rewrite(function="harness.rewrites.tuned:tune_convolutions", arguments={}, for_target=True),
        _IN_PLACE,
    ),
    backends=("llvm-cpu",),
    toolchains=_SINCE,
)


HALIDE_SCHEDULE = Plugin(
    name="halide-schedule",
    version="1",
    description="A channelled convolution lowered by the schedule of MLIR's Transform tutorial, chapter H",
    options=HalideScheduleOptions,
    steps=lambda options: (TransformLibrary(file=transform_library(options)),),
    backends=("llvm-cpu",),
    toolchains=">=3.13",
)


@dataclass(frozen=True, kw_only=True)
class TuningSpecOptions:
    """A tuning spec."""

    spec: str  # Its text: a module of the transform dialect with a sequence @__kernel_config

    def __post_init__(self) -> None:
        if not self.spec.strip():
            raise ValueError("spec is empty; give it the text of a tuning spec")


# IREE 3.13's other backends ignore tuning specs; 3.11 wants other words for a pipeline, and 3.10 ignores them on CPUs.
TUNING_SPEC = Plugin(
    name="tuning-spec",
    version="1",
    description="Lowering configurations from a tuning spec, whose text the variant gives",
    options=TuningSpecOptions,
    steps=lambda options: (TuningSpec(file=written_file("tuning_spec.mlir", options.spec)),),
    backends=("llvm-cpu", "rocm"),
    toolchains=_SINCE,
)
