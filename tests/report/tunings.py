"""A made-up tuning of a convolutional block: what a search of a quarter of an hour finds, short enough to be read."""

from dataclasses import replace
from typing import Any

from harness.records.bisection import Trial
from harness.records.tuning import TimedCandidate, Tried, TunedDispatch, Tuning

SPEC = "module attributes {transform.with_named_sequence} {\n}\n"
NHWC, O3, INNER_TILING = "channels-last", "--iree-opt-level=O3", "--iree-dispatch-creation-data-tiling"
TILES = "ConvTileAndDecomposeExpert, vector_common_parallel = [1, 1, 31, 16, 0, 0, 0]"


def single(name: str, standing: Any, reason: str = "", **fields: Any) -> Tried:
    """A change alone."""
    return Tried(name=name, parts=(name,), standing=standing, reason=reason, **fields)


SINGLES = (
    single(
        NHWC, "best", purpose="images with their channels innermost", ratio=0.52, low=0.51, high=0.53, generations=9
    ),
    single(O3, "lost", purpose="all that the compiler does at O3", ratio=0.93, low=0.91, high=0.95, generations=5),
    single(INNER_TILING, "lost", purpose="operands packed into tiles", ratio=1.31, low=1.2, high=1.43, generations=2),
    single("--iree-llvmcpu-reassociate-fp-reductions=true", "inert", "its module has the bytes of stock's"),
    single("--iree-llvmcpu-loop-interleaving", "failed", "iree-compile: Unknown command line argument"),
    single("im2col", "wrong", "output 0 differs by 3.1e-2 where 1e-3 is allowed"),
    single("pad-producers", "untried", "the budget ended before its turn came"),
)
COMBINATIONS = (
    Tried(name="channels-last+O3", parts=(NHWC, O3), standing="lost", ratio=0.5, low=0.49, high=0.51, generations=8),
    replace(SINGLES[0], name="channels-last+isolate+O3", parts=(NHWC, "isolate", O3), purpose="", ratio=0.47, low=0.465,
            high=0.475, generations=14),
    Tried(name="channels-last+data-tiling", parts=(NHWC, INNER_TILING), standing="failed",
          reason="they contradict each other"),
)  # fmt: skip
CONVOLUTION = TunedDispatch(
    name="main_dispatch_2_conv_2d_nhwc_hwcf_1x90x62x32x3x3x64_f32",
    operation="conv_2d_nhwc_hwcf_1x90x62x32x3x3x64_f32",
    places=5,
    share=0.61,
    own="ConvTileAndDecomposeExpert, distribution = [1, 18, 31, 16, 0, 0, 0]",
    chosen=TILES,
    tried=(
        single(TILES, "best", ratio=0.496, low=0.49, high=0.502, generations=11),
        single("ConvTileAndDecomposeExpert, vector_common_parallel = [1, 1, 8, 32, 0, 0, 0]", "lost", ratio=0.61),
        single("ConvTileAndDecomposeExpert, vector_common_parallel = [1, 1, 62, 8, 0, 0, 0]", "failed", "no pipeline"),
    ),
    alone=0.496,
    whole=0.72,
    kept=True,
)
DISPATCHES = (
    CONVOLUTION,
    TunedDispatch(
        name="main_dispatch_9",
        operation="generic_64x92x64",
        places=1,
        share=0.06,
        reason="no operation of it has tile sizes",
    ),
)
BESIDE_START = Trial(
    floor=0.01,
    head="tuned-rdb",
    base="the start (stock)",
    verdict="improved",
    reason="confirmed in 11 fresh generations",
    ratio=0.338,
    ci_low=0.334,
    ci_high=0.342,
    p=1e-9,
    base_value=25.4e6,
    head_value=8.6e6,
    generations=22,
    seconds=41.0,
)
BESIDE_BEST: dict[str, Any] = {
    "base": f"the best single change ({NHWC})",
    "ratio": 0.651,
    "ci_low": 0.645,
    "ci_high": 0.657,
    "p": 4e-8,
}
CONFIRMATIONS = (BESIDE_START, replace(BESIDE_START, base_value=13.2e6, seconds=36.0, **BESIDE_BEST))
MOMENTS = (
    TimedCandidate(seconds=61.0, name=O3, ratio=0.93, best=True),
    TimedCandidate(seconds=95.0, name=INNER_TILING, ratio=1.31, best=False),
    TimedCandidate(seconds=140.0, name=NHWC, ratio=0.52, best=True),
    TimedCandidate(seconds=215.0, name="channels-last+O3", ratio=0.5, best=True),
    TimedCandidate(seconds=330.0, name="channels-last+isolate+O3", ratio=0.47, best=True),
    TimedCandidate(seconds=350.0, name="isolate", ratio=0.495, best=False),
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
        stages={"compile": 312.0, "race": 255.0, "dispatches": 240.0, "confirm": 77.0},
        singles=SINGLES,
        combinations=COMBINATIONS,
        dispatches=DISPATCHES,
        covered=0.91,
        confirmations=CONFIRMATIONS,
        variant="tuned-rdb",
        parts=(NHWC, "isolate", O3, "1 tuned dispatch"),
        flags=(O3,),
        plugins=((NHWC, {"pad": True}), ("isolate", {}), ("tuning-spec", {"spec": SPEC})),
        spec=SPEC,
        by_hand=("iree-compile rdb.tuned-rdb.cpu/model.mlir --iree-opt-level=O3 -o rdb.tuned-rdb.cpu/tuned.vmfb",),
        race_error=0.05,
        candidates_a_minute=41.0,
        moments=MOMENTS,
        machine="AMD EPYC, 2 cores, Debian GNU/Linux 12 (bookworm)",
        settings={"out": "tuned"},
        command=("harness", "tune", "suites/esrgan.toml", "--model", "rdb", "--device", "cpu", "--budget", "15m"),
    )
    return replace(found, **changes)


def make_nothing(**changes: Any) -> Tuning:
    """A search that found nothing."""
    nothing = make_tuning(
        answer="nothing beats the start",
        sentence="rdb@cpu: nothing that was tried is confirmed faster than stock",
        confirmations=(
            replace(CONFIRMATIONS[0], head=NHWC, verdict="unchanged", ratio=0.997, ci_low=0.991, ci_high=1.003, p=0.4),
        ),
        dispatches=(),
        covered=0.0,
        candidates_a_minute=None,
        variant="",
        parts=(),
        flags=(),
        plugins=(),
        spec="",
        by_hand=(),
    )
    return replace(nothing, **changes)
