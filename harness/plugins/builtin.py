"""The plugins that come with the harness, registered like any other package's.

What they do is in harness.rewrites; here are their names, versions and options. A version goes up whenever the same
program would be rewritten into another one.
"""

from dataclasses import dataclass, make_dataclass
from typing import Any

from harness.plugins.halide_schedule import HalideScheduleOptions, transform_library
from harness.plugins.options import NoOptions
from harness.plugins.plugin import Plugin, Rewrite, TransformLibrary, TuningSpec, written_file

_SINCE = ">=3.12"


def _rewrite(function: str, **more: Any) -> Rewrite:
    return Rewrite(function=f"harness.rewrites.{function}", **more)


def _plugin(name: str, description: str, *steps: Rewrite, **more: Any) -> Plugin[Any]:
    """A plugin of functions in harness.rewrites."""
    usual = {"version": "1", "options": NoOptions, "toolchains": _SINCE}
    return Plugin(name=name, description=description, steps=lambda _: steps, **{**usual, **more})


def _switches(**defaults: bool) -> type[Any]:
    """Options that are on or off; the functions say what they do."""
    fields = [(name, bool, default) for name, default in defaults.items()]
    return make_dataclass("Switches", fields, frozen=True, kw_only=True)


SHARE_CONCAT = _plugin(
    "share-concat",
    "Concatenations that are a contiguous run of a larger one's parts share its buffer",
    _rewrite("share_concat:share_concat"),
    options=_switches(padding=True),
)
REPLICATE_STORES = _plugin(
    "replicate-stores",
    "A dispatch writes its result into each tensor that it is inserted into",
    _rewrite("dispatches:replicate_stores", phase="flow"),
)
FUSE_PADDING = _plugin(
    "fuse-padding",
    "Padding is written by the dispatch whose result it surrounds; contiguous insertions stay apart",
    _rewrite("dispatches:fuse_padding", phase="flow"),
)
INGRESS_CANONICALIZE = _plugin(
    "ingress-canonicalize",
    "The linalg of PyTorch exporters in the form that tpp-mlir's generator writes",
    _rewrite("ingress:ingress_canonicalize"),
    options=_switches(fill_init=True, outs_style=True, fold_transpose=True, generic_matmul=True, relu_to_maximum=True),
)
CHANNELS_LAST = _plugin(
    "channels-last",
    "NCHW convolutions become NHWC ones, and what is around them goes along",
    _rewrite("channels_last:channels_last"),
    options=_switches(depthwise=True),
)

# What goes before and after any rewrite that isolates convolutions.
_NAMES = _rewrite("tuned:name_convolutions", arguments={})
_IN_PLACE = _rewrite("regions:regions_in_place", arguments={})
ISOLATE = _plugin(
    "isolate",
    "Channels-last convolutions of one image in dispatch regions, where a tuning spec can reach them",
    *(_NAMES, _rewrite("regions:isolate_convolutions"), _IN_PLACE),
    options=_switches(depthwise=False, pooling=True),
    backends=("llvm-cpu",),
)
TUNED = _plugin(
    "tuned",
    "Lowering configurations for channels-last convolutions, derived from their shapes and the target",
    *(_NAMES, _rewrite("tuned:tune_convolutions", arguments={}, for_target=True), _IN_PLACE),
    version="3",
    backends=("llvm-cpu",),
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
