"""What is searched, from which variant on and without what, and what each result is measured beside."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

Part = Literal["rdb", "convolution", "mlp", "networks", "again", "rate", "first-answers"]
DEVICE = "cpu"

# Of a try: too short for evidence.
_QUICK_BUDGET_S, _QUICK_BESIDE_S, _QUICK_GENERATIONS = 60.0, 10.0, 2
_NETWORKS = (
    "minilm",
    "minilm-l3",
    "efficientnet",
    "text-detector",
    "text-direction",
    "crepe",
    "upscale-video",
    "upscale-anime",
    "speech",
    "speech-branches",
)
_MLPS = ("pytorch-f32", "generated-f32", "pytorch-bf16", "generated-bf16")


@dataclass(frozen=True, kw_only=True)
class Search:
    """One call of `harness tune`, and what follows it.

    Attributes:
        suite: Its path in this repository.
        start: A variant; "": the suite's baseline.
        without: What the search may not use.
        budget_s: Of the search.
        beside: Shell patterns of the variants and other engines that are measured in the same rounds as the result.
        judged: Variants that the result is held against by `harness compare` too.
        beside_s: Of timed rounds; generations: fresh processes.
    """

    part: Part
    suite: str
    model: str
    start: str = ""
    without: tuple[str, ...] = ()
    budget_s: float = 900.0
    beside: tuple[str, ...] = ("*",)
    judged: tuple[str, ...] = ()
    beside_s: float = 240.0
    generations: int = 10

    @property
    def name(self) -> str:
        """Unique among the searches: `networks/crepe`."""
        return f"{self.part}/{self.model}"

    def case(self, variant: str) -> str:
        """A case of the search's model, by variant or engine."""
        return f"{self.model}/{variant}@{DEVICE}"

    def quick(self) -> Search:
        """The same, only to see that it works."""
        return replace(self, budget_s=_QUICK_BUDGET_S, beside_s=_QUICK_BESIDE_S, generations=_QUICK_GENERATIONS)


SEARCHES: Mapping[Part, tuple[Search, ...]] = {
    "rdb": (
        Search(
            part="rdb",
            suite="suites/esrgan.toml",
            model="rdb",
            start="nhwc-share",
            without=("tuned",),
            beside=("nhwc-share", "nhwc-share-tuned", "onnxruntime"),
            judged=("stock", "nhwc-share-tuned"),
        ),
    ),
    # By the rules of these plugins the best tiles of this convolution are known already.
    "convolution": tuple(
        Search(
            part="convolution",
            suite="suites/conv-schedule.toml",
            model=form,
            without=("tuned", "halide-schedule"),
            beside=("vectors", "tuned", "halide-*"),
            judged=("tuned",) if form == "generic" else (),
        )
        for form in ("generic", "named")
    ),
    "mlp": tuple(Search(part="mlp", suite="suites/mlp.toml", model=model, budget_s=600.0) for model in _MLPS),
    "networks": tuple(Search(part="networks", suite="suites/models.toml", model=model) for model in _NETWORKS),
}
