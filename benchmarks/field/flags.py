"""Which flags of the newest release undo what is slower in it: each beside none, on the programs of the findings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

from benchmarks.field.parts import KEPT, RESULTS, ROOT, SUITE, harness, read_json, write_json
from harness.bisect.variants import CompileConfig
from harness.errors import RunError
from harness.machine.environment import processor
from harness.records.run import Run
from harness.report.run_report import build_report
from harness.stages.derived_suites import derived_suite
from harness.store.folders import folder_names
from harness.store.run_directory import load_run

# Those of the newest release that change how a program is cut into dispatches, tiled or made into vectors.
FLAGS: Mapping[str, Sequence[str]] = {
    "O2": ["--iree-opt-level=O2"],
    "O3": ["--iree-opt-level=O3"],
    "data-tiling": ["--iree-opt-data-tiling"],
    "data-tiling-convolutions": [
        "--iree-opt-data-tiling",
        "--iree-dispatch-creation-experimental-set-data-tiling-ops=matmul",
        "--iree-dispatch-creation-experimental-set-data-tiling-ops=convolution",
    ],
    "data-tiling-early": ["--iree-global-opt-data-tiling"],
    "transposes-stay": ["--iree-global-opt-propagate-transposes=false"],
    "aggressive-fusion": ["--iree-dispatch-creation-enable-aggressive-fusion"],
    "split-reduction": ["--iree-dispatch-creation-enable-split-reduction"],
    "peel": ["--iree-llvmcpu-vector-pproc-strategy=peel"],
    "mask": ["--iree-llvmcpu-vector-pproc-strategy=mask"],
    "neither": ["--iree-llvmcpu-vector-pproc-strategy=none"],
    "softmax-apart": ["--iree-llvmcpu-use-decompose-softmax-fuse=false"],
    "sums-in-any-order": ["--iree-llvmcpu-reassociate-fp-reductions=true"],
    "codegen-O2": ["--iree-llvmcpu-mlir-opt-level=O2"],
    "fast-min-max": ["--iree-llvmcpu-use-fast-min-max-ops"],
    "im2col": ["--iree-global-opt-use-im2col-for-convs"],
    "llvm-loops": [
        "--iree-llvmcpu-loop-vectorization",
        "--iree-llvmcpu-loop-unrolling",
        "--iree-llvmcpu-slp-vectorization",
    ],
}
TRIED = KEPT / "flags.json"
SECONDS = 4.0


@dataclass(frozen=True, kw_only=True)
class Tried:
    """Flags on a program under the newest release, beside no flags."""

    release: str
    cpu: str
    line: str  # model/stock@device
    flags: tuple[str, ...]
    ratio: float | None  # To no flags; None: it failed, was not decided, or takes the same time
    low: float | None
    high: float | None
    verdict: str
    why: str = ""


def known_flags() -> list[Tried]:
    """What was tried so far."""
    found = read_json(TRIED) or []
    return [Tried(**{**each, "flags": tuple(each["flags"])}) for each in found]


def try_flags(lines: Sequence[tuple[str, str]], release: str) -> None:
    """Measure the flags of a release on these models and devices that were not tried yet."""
    done = {each.line for each in known_flags()}
    for device in dict.fromkeys(device for _, device in lines):
        models = [model for model, other in lines if other == device and f"{model}/stock@{device}" not in done]
        if models:
            _try(models, device, release)


def _try(models: Sequence[str], device: str, release: str) -> None:
    variants = {"stock": CompileConfig()} | {name: CompileConfig(flags=tuple(flags)) for name, flags in FLAGS.items()}
    text = derived_suite(
        ROOT / SUITE,
        RESULTS,
        variants,
        models=models,
        devices=[device],
        named=["flags", device],
        description=f"Flags of {release} on what is slower in it than in an earlier one",
        benchmark_module=False,
        measure={"generations": 8, "budget_s": 8 * SECONDS * len(models)},
    )
    suite = RESULTS / f"flags-{device}-{len(models)}.toml"
    suite.parent.mkdir(parents=True, exist_ok=True)
    suite.write_text(text)
    before = set(folder_names(RESULTS, "run"))
    harness("run", str(suite), "--toolchain", release, "--results", str(RESULTS), "--format", "csv", quiet=True)
    run = next((load_run(RESULTS / name) for name in set(folder_names(RESULTS, "run")) - before), None)
    if run is None or not run.finished:
        raise RunError(
            f"the flags on {', '.join(models)} were not all measured; the same command begins with them again"
        )
    write_json(TRIED, [asdict(each) for each in [*known_flags(), *_tried(run, release)]])


def _tried(run: Run, release: str) -> list[Tried]:
    return [
        Tried(
            release=release,
            cpu=processor(run.header.environment) or "",
            line=f"{row.model}/stock@{row.device}",
            flags=tuple(FLAGS[row.variant]),
            ratio=row.estimate.ratio if row.estimate is not None else None,
            low=row.estimate.low if row.estimate is not None else None,
            high=row.estimate.high if row.estimate is not None else None,
            verdict=row.kind or row.status,
            why=row.failure.message if row.failure is not None else "",
        )
        for row in build_report(run).rows()
        if row.variant in FLAGS
    ]
