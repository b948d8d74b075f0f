"""Dispatches taken out of a program with the real compiler: what is tiled in them, and what specs make of them."""

import struct
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.compare.samplers import Module
from harness.explain.isolated_timing import as_loadable
from harness.process import Limits
from harness.toolchain import Toolchain
from harness.tune.dispatches import Compiled, Dispatch, Refused, compile_candidate, take_out
from harness.tune.tiles import Configuration, Loop, Root, root_of, spec_of
from tests.explain.conftest import a_module
from tests.ir.conftest import HASWELL_FLAGS, LIMITS
from tests.programs import program


def floats(first: float, count: int) -> str:
    return f'"0x04000000{struct.pack(f"<{count}f", *(first + number for number in range(count))).hex()}"'


# Two layers of the same code with other weights, and a pooling, of which the compiler makes another operation.
LAYER = """
    w{n}:32x32 = | arith.constant dense_resource<w{n}> : tensor<32x32xf32>
    b{n}:32 = | arith.constant dense_resource<b{n}> : tensor<32xf32>
    m{n} = matmul x{n} w{n} start
    x{next} = each addf m{n} b{n}:c out=empty"""
MODEL = program(
    f"""
    main x0:16x32
    empty = empty 16x32
    start = fill zero empty{LAYER.format(n=0, next=1)}{LAYER.format(n=1, next=2)}
    window = empty 2
    pooled = empty 1x8x32
    low = fill zero pooled
    image:1x16x32 = | tensor.expand_shape %x2 [[0, 1], [2]] output_shape [1, 16, 32]
    | : tensor<16x32xf32> into tensor<1x16x32xf32>
    y:1x8x32 = | linalg.pooling_nwc_max {{strides = dense<2> : vector<1xi64>}}
    | ins(%image, %window : tensor<1x16x32xf32>, tensor<2xf32>) outs(%low : tensor<1x8x32xf32>) -> tensor<1x8x32xf32>
    return y
    """,
    blob=", ".join(f"w{n}: {floats(n, 1024)}, b{n}: {floats(n, 32)}" for n in (0, 1)),
)


def a_spec(root: Root, **tiles: tuple[int, ...]) -> str:
    return spec_of([(root, Configuration(pipeline=root.pipeline, tiles={**root.tiles, **tiles}))])


@pytest.fixture(scope="module")
def module(real_toolchain: Toolchain, tmp_path_factory: pytest.TempPathFactory) -> Module:
    module = a_module(real_toolchain, tmp_path_factory.mktemp("module"), compile_flags=HASWELL_FLAGS)
    module.mlir.write_text(MODEL)
    return module


@pytest.fixture(scope="module")
def dispatches(module: Module, tmp_path_factory: pytest.TempPathFactory) -> tuple[Dispatch, ...]:
    return take_out(module, tmp_path_factory.mktemp("dispatches"), LIMITS)


def try_out(
    dispatch: Dispatch, spec: str | None, module: Module, folder: Path, limits: Limits = LIMITS
) -> Compiled | Refused:
    return compile_candidate(dispatch, spec, replace(module, files=(module.mlir,)), folder, limits)  # as a plugin's


def test_a_dispatch_is_one_wherever_it_runs_and_has_a_root_where_a_spec_recognises_it(
    dispatches: tuple[Dispatch, ...],
) -> None:
    layer, pooling = dispatches
    assert [place.partition("_matmul")[0] for place in layer.places] == ["main_dispatch_0", "main_dispatch_1"]
    assert (layer.name, layer.operation) == (layer.places[0], "matmul_16x32x32_f32")
    root = layer.root
    assert root is not None
    assert root.matcher == (
        "%0 = linalg.matmul ins(%arg0, %arg1 : tensor<16x32xf32>, tensor<32x32xf32>) "
        "outs(%arg2 : tensor<16x32xf32>) -> tensor<16x32xf32>"
    )
    assert root.loops == (*(Loop(size=size, kind="parallel") for size in (16, 32)), Loop(size=32, kind="reduction"))
    assert (root.op, root.pipeline) == ("linalg.matmul", "DoubleTilingExpert")
    assert root.operands == ("tensor<16x32xf32>", "tensor<32x32xf32>", "tensor<16x32xf32>")
    assert (root.element_bits, root.innermost, len(root.tiles["vector_reduction"])) == (32, 1, 3)
    assert (pooling.root, pooling.program) == (None, None)
    assert pooling.why == "the compiler tiles a linalg.generic of 1x8x32x2 in it, which it makes just before"


def test_a_spec_changes_the_code_or_it_is_told_why_not(
    dispatches: tuple[Dispatch, ...], module: Module, tmp_path: Path
) -> None:
    layer = dispatches[0]
    assert layer.root is not None
    tiles = {"vector_common_parallel": (2, 8, 0), "vector_reduction": (0, 0, 2)}
    specs = {
        "own": None,
        "other": a_spec(layer.root, **tiles),
        "stranger": a_spec(layer.root).replace("16x32xf32", "64x32xf32"),
    }
    found = {name: try_out(layer, spec, module, tmp_path / name) for name, spec in specs.items()}
    own, other, stranger = (each for each in found.values() if isinstance(each, Compiled))
    assert (own.matched, other.matched, stranger.matched) == (0, 1, 0)
    assert own.sha256 == stranger.sha256 != other.sha256
    called, batch = as_loadable("other", module, other.module, layer.function, LIMITS)
    assert (called.name, called.function, called.module) == ("other", layer.function, other.module)
    assert batch > 1
    wrong = try_out(layer, a_spec(layer.root).replace("linalg.matmul", "linalg.nothing"), module, tmp_path / "wrong")
    assert isinstance(wrong, Refused)
    assert "nothing" in wrong.reason
    late = try_out(layer, None, module, tmp_path / "wrong", Limits(seconds=0.001))
    assert late == Refused(reason="iree-compile ran past its limit of 0.001 s")


# --- what has no root ---


def an_operation(**changes: Any) -> dict[str, Any]:
    matmul = {
        "op": "linalg.matmul",
        "configuration": "#iree_cpu.lowering_config<distribution = [8, 8, 0], vector_reduction = [0, 0, 4]>",
        "loops": [[8, "parallel"], [8, "parallel"], [8, "reduction"]],
        "operands": ["tensor<8x8xf32>"] * 3,
        "element_bits": 32,
        "innermost": 1,
        "matcher": "matmul",
        "computes": "matmul",
    }
    return {key: value for key, value in {**matmul, **changes}.items() if value is not None}


ELEMENTWISE = an_operation(
    op="linalg.generic", configuration="#iree_cpu.lowering_config<vector_common_parallel = [1, 4]>", computes="add"
)


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"configuration": ""}, "the compiler tiles nothing in it"),
        (
            {"configuration": "#iree_gpu.lowering_config<{workgroup = [8]}>"},
            "its configuration is no iree_cpu.lowering_",
        ),
        ({"op": "iree_linalg_ext.scan", "loops": None}, "no spec is written for its iree_linalg_ext.scan"),
        ({"loops": [[-1, "parallel"], [8, "reduction"]]}, "its sizes are not known before it runs"),
        ({"computes": ""}, "the body of its linalg.matmul takes values from outside, which no spec recognises"),
        ({"computes": "x"}, "the compiler tiles a linalg.matmul of 8x8x8 in it, which it makes just before"),
    ],
)
def test_why_a_dispatch_has_no_root(changes: dict[str, Any], why: str) -> None:
    source = {"operations": [an_operation(configuration="")]}
    root, said = root_of(source, {"pipeline": "", "operations": [an_operation(**changes)]})
    assert (root, said[: len(why)]) == (None, why)


def test_the_operation_that_reduces_decides_and_a_plugin_s_wish_is_matched_too() -> None:
    source = {"operations": [an_operation(matcher="matmul {compilation_info}"), ELEMENTWISE]}
    root, _ = root_of(
        source, {"pipeline": "pipeline = #iree_cpu.pipeline<X>", "operations": [an_operation(), ELEMENTWISE]}
    )
    assert root is not None
    assert (root.op, root.matcher, root.pipeline) == ("linalg.matmul", "matmul {compilation_info}", "X")
    assert root.tiles == {"distribution": (8, 8, 0), "vector_reduction": (0, 0, 4)}
