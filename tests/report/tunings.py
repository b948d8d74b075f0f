"""A made-up tuning of a convolutional block: what a search finds, short enough to be read."""

from dataclasses import replace
from typing import Any

from harness.records.bisection import Trial
from harness.records.tuning import TimedCandidate, Tried, TunedDispatch, Tuning

SPEC = "module attributes {transform.with_named_sequence} {\n}\n"
NHWC, O3, BOTH = "channels-last", "--iree-opt-level=O3", "channels-last+O3"
TILES = "ConvTileAndDecomposeExpert, vector_common_parallel = [1, 1, 31, 16, 0, 0, 0]"


def single(name: str, standing: Any, reason: str = "", **fields: Any) -> Tried:
    """A change alone."""
    return Tried(name=name, parts=(name,), standing=standing, reason=reason, **fields)


SINGLES = (
    single(NHWC, "best", purpose="channels innermost", ratio=0.52, low=0.51, high=0.53, generations=9),
    single(O3, "lost", purpose="all that the compiler does at O3", ratio=0.93, low=0.91, high=0.95, generations=5),
    single("--iree-llvmcpu-loop-interleaving", "failed", "iree-compile: Unknown command line argument"),
)
COMBINATIONS = (replace(SINGLES[0], name=BOTH, parts=(NHWC, O3), ratio=0.47, low=0.465, high=0.475),)
DISPATCHES = (
    TunedDispatch(
        name="main_dispatch_2_conv_2d_nhwc_hwcf_1x90x62x32x3x3x64_f32",
        operation="conv_2d_nhwc_hwcf_1x90x62x32x3x3x64_f32",
        places=5,
        share=0.61,
        own="ConvTileAndDecomposeExpert, distribution = [1, 18, 31, 16, 0, 0, 0]",
        chosen=TILES,
        tried=(
            single(TILES, "best", ratio=0.496, low=0.49, high=0.502, generations=11),
            single("ConvTileAndDecomposeExpert, vector_common_parallel = [1, 1, 62, 8, 0, 0, 0]", "failed", "no tiles"),
        ),
        alone=0.496,
        whole=0.72,
        kept=True,
    ),
    TunedDispatch(name="main_dispatch_9", operation="generic_64x92x64", places=1, share=0.06, reason="it has no tiles"),
)
BESIDE_START = Trial(
    floor=0.01,
    head="tuned-rdb",
    base="the start (stock)",
    verdict="improved",
    ratio=0.338,
    ci_low=0.334,
    ci_high=0.342,
    p=1e-9,
    base_value=25.4e6,
    head_value=8.6e6,
    generations=22,
)
BESIDE_BEST = replace(BESIDE_START, base=f"the best single change ({NHWC})", ratio=0.651, ci_low=0.645, ci_high=0.657)
CONFIRMATIONS = (BESIDE_START, BESIDE_BEST)
MOMENTS = (
    TimedCandidate(seconds=61.0, name=NHWC, ratio=0.52, best=True),
    TimedCandidate(seconds=95.0, name=O3, ratio=0.93, best=False),
    TimedCandidate(seconds=790.0, name="tuned-rdb", ratio=0.338, best=True),
)


def make_tuning(**changes: Any) -> Tuning:
    """A search that found a variant."""
    found = Tuning(
        id="rdb@cpu",
        created="2026-11-22T03:50:12+00:00",
        suite="suites/esrgan.toml",
        model="rdb",
        device="cpu",
        start="stock",
        toolchain="3.13.0",
        budget_s=900.0,
        spent_s=884.0,
        answer="faster",
        sentence="rdb@cpu takes 0.338 [0.334, 0.342] of the time of stock with channels-last and 1 tuned dispatch",
        start_ns=25.4e6,
        stages={"compile": 312.0, "dispatches": 572.0},
        singles=SINGLES,
        combinations=COMBINATIONS,
        dispatches=DISPATCHES,
        covered=0.91,
        confirmations=CONFIRMATIONS,
        variant="tuned-rdb",
        parts=(NHWC, O3, "1 tuned dispatch"),
        flags=(O3,),
        plugins=((NHWC, {"pad": True}), ("isolate", {}), ("tuning-spec", {"spec": SPEC})),
        spec=SPEC,
        by_hand=("iree-compile rdb.tuned-rdb.cpu/model.mlir --iree-opt-level=O3 -o rdb.tuned-rdb.cpu/tuned.vmfb",),
        race_error=0.05,
        candidates_a_minute=41.0,
        moments=MOMENTS,
        machine="AMD EPYC, 2 cores",
        settings={"out": "tuned"},
        command=("harness", "tune", "suites/esrgan.toml", "--model", "rdb"),
    )
    return replace(found, **changes)


def make_nothing(**changes: Any) -> Tuning:
    """A search that found nothing."""
    without: dict[str, Any] = {"variant": "", "spec": "", "candidates_a_minute": None}
    without |= dict.fromkeys(("confirmations", "dispatches", "parts", "flags", "plugins", "by_hand"), ())
    sentence = "rdb@cpu: nothing that was tried is confirmed faster than stock"
    return make_tuning(**{**without, "answer": "nothing beats the start", "sentence": sentence, **changes})
