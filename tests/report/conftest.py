"""Hand-made runs: what `harness run` would have stored, with every kind of row in them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from harness.plan.values import Case
from harness.results.records import (
    SCHEMA_VERSION,
    Build,
    Check,
    Failure,
    Header,
    Lost,
    ModelRecord,
    Reference,
    Round,
    Run,
    Sizes,
    Statistics,
    ToolchainRecord,
    Turn,
)
from harness.suite.values import VariantGroup

CHANNELS_LAST = (
    "--iree-preprocessing-pass-pipeline=builtin.module(util.func(iree-preprocessing-convert-conv-to-channels-last))"
)
VERIFIER_SAYS = """\
model.mlir:14:12: error: 'linalg.conv_2d_nchw_fchw' op failed to legalize
    %2 = linalg.conv_2d_nchw_fchw ins(%0, %1 : tensor<1x64x92x64xf32>, tensor<32x64x3x3xf32>)
         ^
"""


def make_case(model: str, variant: str, device: str = "local-sync", **given: Any) -> Case:
    """A case of a suite whose baseline is `stock`."""
    facts: dict[str, Any] = {
        "id": f"{len(model):04x}{len(variant):04x}{len(device):08x}",
        "name": f"{model}/{variant}@{device}",
        "toolchain": "3.13.0",
        "baseline": variant == "stock",
        "uri": device,
        "backend": "llvm-cpu",
        "pin": False,
        "compile_flags": ("--iree-hal-target-device=local",),
        "run_flags": (),
        "plugins": (),
        "tags": (),
    }
    return Case(model=model, variant=variant, device=device, **{**facts, **given})


def make_build(case: Case, *, code: str, dispatches: int, copies: int, transient: int, **given: Any) -> Build:
    """A build that succeeded; `code` stands for the module's bytes."""
    facts: dict[str, Any] = {
        "cache_key": f"key of {case.name}",
        "compile_ns": 2_310_000_000 + 40_000_000 * dispatches,
        "peak_rss_bytes": 310 * 2**20,
        "module_sha256": f"{code:0<64}",
        "sizes": Sizes(
            module_bytes=812_345 + 9_000 * dispatches,
            vm_bytes=21_004,
            constant_bytes=524_288,
            dispatch_bytes={f"d{index}.so": 9_000 for index in range(dispatches)},
        ),
        "statistics": Statistics(
            dispatches=dispatches,
            copies=copies,
            fills=5,
            awaits=1,
            submissions=1,
            executables=dispatches,
            transient_bytes=transient,
            constant_bytes=524_288,
            variable_bytes=0,
        ),
        "outputs": 1,
    }
    return Build(case=case.name, command=compile_command(case), **{**facts, **given})


def compile_command(case: Case) -> tuple[str, ...]:
    return (
        "iree-compile",
        "model.mlir",
        "-o",
        "module.vmfb",
        *case.compile_flags,
        "--iree-vm-emit-polyglot-zip=true",
        "--iree-scheduling-dump-statistics-format=json",
        "--iree-scheduling-dump-statistics-file=statistics.json",
    )


def make_check(case: Case, against: str, **given: Any) -> Check:
    where = ("--module=module.vmfb", f"--device={case.uri}", "--function=main", "--input=@input0.npy")
    command = ("iree-run-module", *where, "--output=@output0.npy", *case.run_flags)
    facts: dict[str, Any] = {"relative_tolerance": 1e-4, "absolute_tolerance": 1e-5, **given}
    return Check(case=case.name, against=against, command=command, **facts)


def make_reference(case: Case, *real_time_ns: float, **given: Any) -> Reference:
    command = (
        "iree-benchmark-module",
        "--module=module.vmfb",
        f"--device={case.uri}",
        "--function=main",
        "--input=@input0.npy",
        *case.run_flags,
        "--benchmark_repetitions=3",
        "--benchmark_format=json",
    )
    return Reference(case=case.name, command=command, real_time_ns=real_time_ns, **given)


def jitter(step: int) -> float:
    """Between -1 and 1, without a pattern; plain arithmetic, so that it is the same to the last bit everywhere."""
    return step * 37 % 101 / 50 - 1


def make_rounds(
    group: str,
    base_ns: Mapping[str, float],
    *,
    generations: int,
    rounds: int,
    noisy: str = "",
    instructions: bool = True,
) -> Iterator[Round]:
    """Rounds on a machine whose speed wanders by 3 %, with 0.4 % of noise of each case's own, and 3 % of one's."""
    for generation in range(generations):
        for number in range(rounds):
            wander = 1 + 0.03 * jitter(11 * number + 5 * generation)
            turns = []
            for place, (case, ns) in enumerate(base_ns.items()):
                own = jitter(7 * number + 31 * place + generation) + jitter(17 * generation + 23 * place)
                wall_ns = int(ns * wander * (1 + (0.015 if case == noisy else 0.002) * own))
                counters = {"instructions": int(ns * 3.1) + 7 * number} if instructions else {}
                turns.append(Turn(case=case, calls=1, wall_ns=wall_ns, cpu_ns=wall_ns, counters=counters))
            yield Round(
                group=group,
                generation=generation,
                round=number,
                started_unix_ns=1_795_000_000_000_000_000 + number,
                turns=tuple(turns if number % 2 else reversed(turns)),
            )


def make_header(cases: tuple[Case, ...], **given: Any) -> Header:
    models = dict.fromkeys(case.model for case in cases)
    facts: dict[str, Any] = {
        "schema_version": SCHEMA_VERSION,
        "id": "20261121-031500-esrgan",
        "suite": "suites/esrgan.toml",
        "suite_name": "esrgan",
        "suite_description": "ESRGAN's residual dense block under the flags of iree#11102.",
        "suite_sha256": "5a" * 32,
        "started": "2026-11-21T03:15:00+00:00",
        "harness_version": "0.1.0",
        "harness_commit": "35217dcf00dfeedc0ffee+dirty",
        "command": ("harness", "run", "suites/esrgan.toml"),
        "baseline": "stock",
        "toolchains": (ToolchainRecord(version="3.13.0", revision="e4a3b04d7a0c51b9", compiler_sha256="c0" * 32),),
        "models": tuple(
            ModelRecord(
                name=model,
                mlir_sha256="ab" * 32,
                mlir_bytes=1_204_331,
                function="main",
                inputs=("1x64x90x62xf32 random seed 0",),
            )
            for model in models
        ),
        "cases": cases,
        "groups": (),
        "settings": {"budget_s": 120.0, "generations": 5, "seed": 7},
        "environment": {
            "machine": {"id": "3f2a91c04b7e", "system": "Linux", "virtual": True, "hypervisor": "KVM"},
            "cpu": {"model": "AMD EPYC 7B13", "flags": ["avx2", "fma"], "usable_cores": 2},
            "load": {"load_1min": 0.42},
        },
    }
    return Header(**{**facts, **given})


@pytest.fixture
def full_run() -> Run:
    """Two models, two devices, and every status and kind a row can have."""
    block = "rdb"
    stock = make_case(block, "stock")
    last = make_case(block, "channels-last", compile_flags=(*stock.compile_flags, CHANNELS_LAST))
    im2col = make_case(block, "im2col", compile_flags=(*stock.compile_flags, "--iree-global-opt-use-im2col-for-convs"))
    tiled = make_case(block, "data-tiling", compile_flags=(*stock.compile_flags, "--iree-opt-data-tiling"))
    fused = make_case(block, "fuse-padding")
    shared = make_case(block, "shared-concat", plugins=("share-concats",))
    aggressive = make_case(block, "aggressive-im2col", compile_flags=im2col.compile_flags)
    wide = make_case(block, "wide-vectors")
    wrong = make_case(block, "pixel-shuffle")
    crash = make_case(block, "ukernels")
    known = make_case(block, "strided", expected_failure="failed to legalize")
    fixed = make_case(block, "onnx-if", expected_failure="onnx.If")
    peeled = make_case(block, "loop-peeling")
    forgotten = make_case(block, "forgotten")
    vulkan = make_case(
        block, "stock", "vulkan", backend="vulkan-spirv", skip="no Vulkan device: libvulkan.so.1 is not installed"
    )
    matmul = make_case("matmul-512", "stock", "local-task", run_flags=("--task_topology_max_group_count=2",))
    matmul_tiled = make_case(
        "matmul-512",
        "data-tiling",
        "local-task",
        compile_flags=(*matmul.compile_flags, "--iree-opt-data-tiling"),
        run_flags=matmul.run_flags,
    )
    legalize = Failure(
        stage="compile",
        message="iree-compile exited with status 1: model.mlir:14:12: error: "
        "'linalg.conv_2d_nchw_fchw' op failed to legalize",
        stderr=VERIFIER_SAYS,
    )
    return Run(
        header=make_header(
            (
                *(stock, last, im2col, tiled, fused, shared, aggressive, wide, wrong, crash, known, fixed),
                *(peeled, forgotten, vulkan, matmul, matmul_tiled),
            ),
            groups=(
                VariantGroup(title="Data-Tiling", variants=("stock", "data-tiling")),
                VariantGroup(title="Convolution", variants=("stock", "im2col", "channels-last", "wide-vectors")),
            ),
        ),
        builds=(
            make_build(stock, code="57", dispatches=10, copies=13, transient=19_796_992),
            make_build(last, code="1a", dispatches=14, copies=13, transient=16_742_912),
            make_build(im2col, code="12", dispatches=20, copies=13, transient=50_430_464),
            make_build(tiled, code="57", dispatches=10, copies=13, transient=19_796_992, cached=True),
            make_build(fused, code="f0", dispatches=9, copies=13, transient=15_196_160),
            make_build(shared, code="5c", dispatches=10, copies=1, transient=14_004_224),
            make_build(aggressive, code="12", dispatches=20, copies=13, transient=50_430_464),
            Build(case=wide.name, command=compile_command(wide), cache_key="w", compile_ns=10**9, failure=legalize),
            make_build(wrong, code="b5", dispatches=10, copies=13, transient=19_796_992),
            make_build(crash, code="c4", dispatches=10, copies=13, transient=19_796_992),
            Build(case=known.name, command=compile_command(known), cache_key="k", compile_ns=10**9, failure=legalize),
            make_build(
                fixed,
                code="0f",
                dispatches=10,
                copies=12,
                transient=19_796_992,
                warnings=("data tiling has no effect on linalg.generic",),
            ),
            make_build(peeled, code="9e", dispatches=10, copies=13, transient=19_796_992),
            make_build(matmul, code="33", dispatches=1, copies=0, transient=0),
            make_build(matmul_tiled, code="37", dispatches=4, copies=0, transient=3_145_728),
        ),
        checks=(
            make_check(last, stock.name, max_absolute=3e-6, max_relative=1e-6),
            make_check(
                wrong,
                "ONNX Runtime 1.31.1",
                max_absolute=0.31,
                max_relative=1.2,
                failure=Failure(
                    stage="verify",
                    message="its output 0 differs in 302,481 of 357,120 values, worst at [0, 3, 41, 7]: 0.4113 where "
                    "0.1013 is right, compared with ONNX Runtime 1.31.1",
                ),
            ),
            make_check(crash, stock.name, max_absolute=0.0, max_relative=0.0),
        ),
        references=(
            make_reference(stock, 222e6, 223e6, 240e6, host_peak_bytes=25_510_912, device_peak_bytes=0),
            make_reference(last, 171e6, 172e6, 168e6, host_peak_bytes=21_004_288, device_peak_bytes=0),
            make_reference(
                im2col, failure=Failure(stage="reference", message="iree-benchmark-module ran for longer than 60 s")
            ),
        ),
        rounds=(
            *make_rounds(
                stock.group,
                {
                    stock.name: 220e6,
                    last.name: 132e6,
                    im2col.name: 218.9e6,
                    fused.name: 231e6,
                    shared.name: 217e6,
                    fixed.name: 220.1e6,
                    peeled.name: 221e6,
                },
                generations=5,
                rounds=8,
                noisy=peeled.name,
            ),
            *make_rounds(
                matmul.group,
                {matmul.name: 2.4e6, matmul_tiled.name: 1.9e6},
                generations=5,
                rounds=40,
                instructions=False,
            ),
        ),
        lost=(
            Lost(
                case=crash.name,
                generation=2,
                failure=Failure(
                    stage="measure",
                    message="the worker ended by signal 11 while loading the module",
                    stderr="iree/runtime: \x1b[31mFatal Python error: Segmentation fault\x1b[0m\n",
                ),
            ),
        ),
        finished=True,
    )


def make_small_run(*, generations: int = 5, finished: bool = True) -> Run:
    """Three variants of one model: the baseline, one that is faster, and one whose flag changes nothing."""
    stock = make_case("mm", "stock")
    fast = make_case("mm", "fast", compile_flags=(*stock.compile_flags, "--iree-opt-level=O3"))
    inert = make_case("mm", "inert", compile_flags=(*stock.compile_flags, "--iree-opt-data-tiling"))
    return Run(
        header=make_header((stock, fast, inert)),
        builds=(
            make_build(stock, code="57", dispatches=1, copies=0, transient=0),
            make_build(fast, code="fa", dispatches=1, copies=0, transient=0),
            make_build(inert, code="57", dispatches=1, copies=0, transient=0),
        ),
        rounds=tuple(
            make_rounds(
                stock.group,
                {stock.name: 4.7e6, fast.name: 4.2e6},
                generations=generations,
                rounds=10,
                instructions=False,
            )
        ),
        finished=finished,
    )


@pytest.fixture
def nasty_run() -> Run:
    """Names and messages made to break tables: a pipe, backticks, a tag, a newline, a fence, an emoji."""
    stock = make_case("m|`<b>\n🚀", "stock", name="m|`<b>\n🚀/stock@cpu #1", device="cpu #1", uri="local-sync")
    odd = make_case(
        stock.model,
        "a|b`c` <i>*x*</i> _y_ [z](http://e.org) -->",
        name="odd | `one` <script>\n~~gone~~ \\| @octocat",
        device=stock.device,
        uri=stock.uri,
    )
    message = "line one | two\nline `three` <details>"
    return Run(
        header=make_header(
            (stock, odd),
            suite_name="n|asty --> <suite>",
            suite="suites/it's nasty.toml",
            suite_description="<h1>*bold*</h1>\n| a | b |",
            groups=(VariantGroup(title="A | `B`\n## C", variants=("stock", odd.variant)),),
        ),
        builds=(
            make_build(stock, code="57", dispatches=1, copies=0, transient=0, warnings=(message,)),
            Build(
                case=odd.name,
                command=compile_command(odd),
                cache_key="o",
                failure=Failure(stage="compile", message=message, stderr="```\n</details>\n\x1b[1mbold\x1b[0m\x07\n"),
            ),
        ),
        rounds=tuple(make_rounds(stock.group, {stock.name: 20_311.0}, generations=2, rounds=3)),
        finished=True,
    )


@pytest.fixture
def small_run() -> Run:
    return make_small_run()


@pytest.fixture
def one_generation_run() -> Run:
    return make_small_run(generations=1)


@pytest.fixture
def unfinished_run() -> Run:
    """Killed after the builds of a first model and before its first round; of the second, nothing is there."""
    whole = make_small_run(finished=False)
    more = (*whole.header.cases, make_case("later", "stock"), make_case("later", "fast"))
    return Run(header=make_header(more), builds=whole.builds, rounds=whole.rounds[:14])
