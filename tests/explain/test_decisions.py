"""What the compiler decided for a dispatch, read from its IR."""

from __future__ import annotations

import pytest

from harness.explain.decisions import Tensor, decisions_of, inside, operations_in, split
from harness.ir.differences import Executable
from tests.explain.conftest import FLOW, OLD_PIPELINE, OLD_TILES, an_executable, configured


def test_a_convolution_of_a_real_program() -> None:
    found = decisions_of(an_executable(targets="llvm.call @iree_uk_mmt4d(%0)"))
    assert dict(found.operations) == {"linalg.fill": 1, "a contraction": 1, "elementwise maximumf": 1}
    assert [(tensor.access, tensor.text) for tensor in found.tensors] == [
        ("readonly", "8x12x8xf32"),
        ("readonly", "32x8x3x3xf32"),
        ("writeonly", "32x10x6xf32"),
    ]
    assert (found.pipeline, found.options) == ("ConvTileAndDecomposeExpert", ())
    assert found.tiles == {
        "distribution": "[0, 4, 5, 6]",
        "vector_common_parallel": "[1, 4, 1, 6]",
        "vector_reduction": "[8, 1, 1]",
    }
    assert dict(found.configured) == {"linalg.fill": 1, "a contraction": 1}
    assert found.microkernels == ("iree_uk_mmt4d",)


@pytest.mark.parametrize(
    "tiles",
    [
        OLD_TILES,
        "#iree_codegen.lowering_config<tile_sizes = [[4, 5, 6, 0, 0, 0], [1, 1, 8, 0, 0, 0], [0, 0, 0, 1, 1, 1], "
        "[0, 0, 0, 0, 0, 0]]>",
        "#iree_codegen.lowering_config<tile_sizes = [[4, 5, 6, 0, 0, 0], [0, 0, 0, 0, 0, 0], [0, 0, 0, 0, 0, 0], "
        "[1, 1, 8, 0, 0, 0], [0, 0, 0, 1, 1, 1], [0, 0, 0, 0, 0, 0]]>",
    ],
    ids=["names", "four levels", "six levels"],
)
def test_tile_sizes_of_releases_that_number_them(tiles: str) -> None:
    found = decisions_of(an_executable(configured=configured(OLD_PIPELINE, tiles, "[1, 1, 8]")))
    assert found.tiles == {
        "distribution": "[4, 5, 6]",
        "vector_common_parallel": "[1, 1, 8]",
        "vector_reduction": "[1, 1, 1]",
    }


def test_a_pipelines_options() -> None:
    peeled = decisions_of(an_executable(configured=configured("#iree_cpu.pipeline<Default>, {enable_loop_peeling}")))
    assert (peeled.pipeline, peeled.options) == ("Default", ("enable_loop_peeling",))
    of_gpu = configured(
        "#iree_gpu.pipeline<TileAndFuse> workgroup_size = [256, 1, 1] subgroup_size = 64, "
        "{gpu_pipeline_options = #iree_gpu.pipeline_options<prefetch_num_stages = 2>}",
        "#iree_gpu.lowering_config<{mma_kind = #iree_gpu.mma_layout<MFMA_F32_16x16x4_F32>, reduction = [0, 0, 8], "
        "workgroup = [64, 128, 0]}>",
    )
    found = decisions_of(an_executable(configured=of_gpu))
    assert found.pipeline == "TileAndFuse"
    assert found.options == (
        "workgroup_size = [256, 1, 1]",
        "subgroup_size = 64",
        "gpu_pipeline_options = #iree_gpu.pipeline_options<prefetch_num_stages = 2>",
    )
    assert found.tiles == {
        "mma_kind": "#iree_gpu.mma_layout<MFMA_F32_16x16x4_F32>",
        "reduction": "[8]",
        "workgroup": "[64, 128]",
    }


def test_scalable_tiles() -> None:
    tiles = "#iree_cpu.lowering_config<vector_common_parallel = [1, [4], 0], vector_reduction = [0, 0, 1]>"
    assert decisions_of(an_executable(configured=configured(tiles=tiles))).tiles == {
        "vector_common_parallel": "[1, [4]]",
        "vector_reduction": "[1]",
    }


def test_an_encoded_tensor() -> None:
    encoding = "#iree_encoding.encoding<operand_index = 0 : index, op_type = matmul, element_types = [f32, f32, f32]>"
    flow = FLOW.replace("readonly:tensor<8x12x8xf32>>,", f"readonly:tensor<8x12x?xf16, {encoding}>>,", 1)
    assert decisions_of(an_executable(flow=flow)).tensors[0] == Tensor(
        access="readonly", shape=("8", "12", "?"), element="f16", encoding=encoding
    )


def test_a_dispatch_of_an_older_dialect_without_configuration() -> None:
    old = FLOW.replace("iree_tensor_ext.dispatch", "flow.dispatch")
    found = decisions_of(an_executable(flow=old, configured=""))
    assert len(found.tensors) == 3
    assert (found.pipeline, found.options, found.tiles, dict(found.configured)) == ("", (), {}, {})
    nothing = decisions_of(Executable(name="f", phases={}))
    assert (nothing.tensors, dict(nothing.operations)) == ((), {})


def test_what_operations_are_called() -> None:
    def generic(kinds: str) -> str:
        return f"%0 = linalg.generic {{iterator_types = [{kinds}]}} ins(%1 : t) outs(%2 : t) {{"

    texts = [
        generic('"parallel", "reduction"'),
        "^bb0(%in: f32, %out: f32):",
        "  %3 = arith.extf %in : f16 to f32",
        "  %4 = arith.maximumf %3, %out : f32",
        "  linalg.yield %4 : f32",
        "} -> t",
        generic('"parallel"'),
        "^bb0(%in: f32, %out: f32):",
        "  linalg.yield %in : f32",
        "} -> t",
        generic('"parallel"'),
        "^bb0(%in: f32, %out: f32):",
        *(f"  %{n} = math.{name} %in : f32" for n, name in enumerate(("exp", "tanh", "sqrt", "absf"))),
        "  linalg.yield %3 : f32",
        "} -> t",
        "%5 = tensor.pad %4 low[1] high[1] {",
        "^bb0(%arg0: index):",
        "  tensor.yield %cst : f32",
        "} : t to t",
        "%6 = linalg.conv_2d_nchw_fchw",
        "    {dilations = dense<1> : tensor<2xi64>}",
        "    linalg.memoized_indexing_maps = [affine_map<(d0) -> (d0)>]",
        "%7:2 = iree_linalg_ext.topk ins(%6 : t)",
        "%8 = tensor.empty() : t",
    ]
    assert dict(operations_in(texts)) == {
        "a reduction by maximumf": 1,
        "a copy": 1,
        "elementwise exp, tanh, sqrt, ...": 1,
        "tensor.pad": 1,
        "linalg.conv_2d_nchw_fchw": 1,
        "iree_linalg_ext.topk": 1,
    }


def test_brackets() -> None:
    text = 'a = <[1, 2], "x, >", (d0) -> (d1, d2)>, b = {c = 1, d}'
    assert split(text) == ['a = <[1, 2], "x, >", (d0) -> (d1, d2)>', "b = {c = 1, d}"]
    assert inside(text, text.index("<")) == '[1, 2], "x, >", (d0) -> (d1, d2)'
    assert inside("(a, [b", 0) == "a, [b"
    assert split("") == []
