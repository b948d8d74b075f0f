"""Hand-made runs: what `harness run` would have stored, with every kind of row in them."""

from __future__ import annotations

import pytest

from harness.records.case import VariantGroup
from harness.records.run import Build, Failure, IrCounts, Lost, PluginEffect, Run
from tests.report.compared import (  # noqa: F401 (fixtures)
    full_comparison,
    images,
    links,
    nasty_comparison,
    quiet_comparison,
    recorded_comparison,
)
from tests.report.made import (
    compile_command,
    make_build,
    make_case,
    make_check,
    make_counts,
    make_header,
    make_reference,
    make_rounds,
)

CHANNELS_LAST = (
    "--iree-preprocessing-pass-pipeline=builtin.module(util.func(iree-preprocessing-convert-conv-to-channels-last))"
)
VERIFIER_SAYS = """\
model.mlir:14:12: error: 'linalg.conv_2d_nchw_fchw' op failed to legalize
    %2 = linalg.conv_2d_nchw_fchw ins(%0, %1 : tensor<1x64x92x64xf32>, tensor<32x64x3x3xf32>)
         ^
"""


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
            make_build(
                last,
                code="1a",
                dispatches=14,
                copies=13,
                transient=16_742_912,
                effects=(PluginEffect(name="--iree-preprocessing-pass-pipeline", changed=True),),
            ),
            make_build(im2col, code="12", dispatches=20, copies=13, transient=50_430_464),
            make_build(tiled, code="57", dispatches=10, copies=13, transient=19_796_992, cached=True),
            make_build(fused, code="f0", dispatches=9, copies=13, transient=15_196_160),
            make_build(
                shared,
                code="5c",
                dispatches=10,
                copies=1,
                transient=14_004_224,
                rewritten=True,
                effects=(PluginEffect(name="share-concats", changed=True, matched=5, wall_ns=1_030_000_000),),
            ),
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
        ir=(
            make_counts(stock, linalg=34, updates=13, allocations=2),
            make_counts(last, linalg=34, updates=13, allocations=0),
            make_counts(im2col, linalg=34, updates=13, allocations=2),
            make_counts(tiled, linalg=34, updates=13, allocations=2),
            IrCounts(
                case=fused.name,
                failure=Failure(
                    stage="ir",
                    message="iree-compile ran past its limit of 900 s after phase 'flow', on its way to phase "
                    "'executable-targets'; give it more with --compile-timeout",
                ),
            ),
            make_counts(shared, linalg=None, updates=1, allocations=2),
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
                    mismatch=True,
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
        ir=(IrCounts(case=stock.name, counts={"flow/a.|`b`\n <i>*c*</i>": 1_234_567, "x": 3}),),
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
