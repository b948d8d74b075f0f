"""What encoded tensors cost: the arithmetic, and whether it is what the compiler allocates."""

import json
from pathlib import Path
from typing import Any

import pytest

from harness.ir.counts import RUN_TIME_TILE, encoded_tensor, padded, read_storage
from harness.ir.dump import dump_phases
from harness.models.matmul import Parameters, build
from harness.records.run import Storage
from harness.toolchain import Toolchain
from tests.ir.conftest import LIMITS

LOCAL = ("--iree-hal-target-device=local", "--iree-hal-local-target-device-backends=")
X86 = (
    "--iree-llvmcpu-target-triple=x86_64-unknown-linux-gnu",
    "--iree-llvmcpu-target-cpu=znver4",  # AVX-512: tiles of 16x16 f32
)
LLVM_CPU = (LOCAL[0], f"{LOCAL[1]}llvm-cpu", *X86)
VMVX = (LOCAL[0], f"{LOCAL[1]}vmvx")
EARLY = ("--iree-global-opt-data-tiling",)
LATE = (*EARLY, "--iree-global-opt-enable-early-materialization=false")
DISPATCH = ("--iree-dispatch-creation-data-tiling",)
STATISTICS = (
    "--iree-scheduling-dump-statistics-format=json",
    "--iree-scheduling-dump-statistics-file=statistics.json",
)


def storage_of(params: Parameters, flags: tuple[str, ...], toolchain: Toolchain, folder: Path) -> Storage:
    """The encoded tensors of a product, with the shapes of its own inputs."""
    folder.mkdir(exist_ok=True)
    model = build(params)
    file = folder / "product.mlir"
    file.write_text(str(model.text))
    dumps = dump_phases(flags, file, ["encodings"], toolchain=toolchain, folder=folder, limits=LIMITS)
    shapes = [one.shape for one in model.inputs]
    return read_storage(dumps["encodings"], shapes, toolchain=toolchain, limits=LIMITS)


@pytest.mark.parametrize(
    ("bits", "sizes", "layouts", "encoded", "unpadded", "worst"),
    [
        # One row in tiles of 16 rows takes 16 times its bytes; the known number of columns adds 96/90 to that.
        (32, [(70, True), (90, False)], [[16, 16]], 80 * 96 * 4, 70 * 90 * 4, 16 * 96 / 90),
        (32, [(1, True), (90, False)], [[16, 16]], 16 * 96 * 4, 90 * 4, 16 * 96 / 90),
        # Of layouts for several devices the largest is allocated.
        (8, [(17, True), (4, False)], [[16, 1], [8, 4]], 32 * 4, 17 * 4, 16),
        # Two elements of 4 bits share a byte; i1 has one of its own.
        (4, [(3, False), (5, False)], [[1, 1]], 8, 8, 1),
        (1, [(3, False), (5, False)], [[1, 1]], 15, 15, 1),
        (32, [(0, False)], [[16]], 0, 0, 1),
    ],
)
def test_the_cost_of_a_tensor(
    bits: int, sizes: Any, layouts: list[list[int]], encoded: int, unpadded: int, worst: float
) -> None:
    found = encoded_tensor("t", element_bits=bits, sizes=sizes, layouts=layouts)
    assert (found.encoded_bytes, found.unpadded_bytes) == (encoded, unpadded)
    assert found.worst_ratio == pytest.approx(worst)


@pytest.mark.parametrize(
    ("sizes", "dtype", "path"),
    [
        ((1, 20, 20), "f32", EARLY),  # the row need not be packed
        ((20, 1, 20), "i8", LATE),
        ((33, 50, 21), "bf16", DISPATCH),
    ],
    ids=["early", "late", "dispatch"],
)
def test_it_is_what_the_compiler_allocates(
    sizes: tuple[int, int, int], dtype: Any, path: tuple[str, ...], real_toolchain: Toolchain, tmp_path: Path
) -> None:
    """By iree-compile's own statistics: the encoded tensors, each rounded up to 64 bytes, and the result."""
    m, n, k = sizes
    params = Parameters(m=m, n=n, k=k, dtype=dtype)
    found = storage_of(params, (*LLVM_CPU, *path, *STATISTICS), real_toolchain, tmp_path)
    statistics = json.loads((tmp_path / "statistics.json").read_text())["stream-aggregate"]["execution"]
    allocated = sum(padded(one.encoded_bytes, 64) for one in found.tensors) + 4 * m * n
    assert allocated == statistics["transient-memory-size"]


@pytest.mark.parametrize("path", [EARLY, LATE, DISPATCH], ids=["early", "late", "dispatch"])
def test_dynamic_sizes_are_those_of_the_inputs(
    path: tuple[str, ...], real_toolchain: Toolchain, tmp_path: Path
) -> None:
    """As if the compiler had known them, but for the worst case."""
    flags = (*LLVM_CPU, *path)
    dynamic = storage_of(Parameters(m=33, n=50, k=21, dynamic="mnk"), flags, real_toolchain, tmp_path)
    left, right = (48 * 21 * 4, 33 * 21 * 4), (64 * 21 * 4, 21 * 50 * 4)
    expected = [left, right] if path == DISPATCH else [left, right, (48 * 64 * 4, 33 * 50 * 4)]
    assert sorted((one.encoded_bytes, one.unpadded_bytes) for one in dynamic.tensors) == sorted(expected)
    assert dynamic.worst_ratio == (16 if path == DISPATCH else 256)


@pytest.mark.parametrize(
    ("path", "sizes", "constant", "tensors"),
    [
        # The early path leaves nothing of it but its packed form: how wide it was only the result's unpacking tells.
        (EARLY, (33, 50, 21), (64 * 21 * 4, 21 * 50 * 4), 3),
        (LATE, (33, 50, 21), (64 * 21 * 4, 21 * 50 * 4), 3),
        # A row times 32 columns: nothing is packed or unpacked at run time, and only the product itself tells of tiles.
        (EARLY, (1, 32, 21), (32 * 21 * 4, 32 * 21 * 4), 2),
    ],
    ids=["early", "late", "without padding"],
)
def test_a_packed_constant_counts(
    path: Any, sizes: Any, constant: Any, tensors: int, real_toolchain: Toolchain, tmp_path: Path
) -> None:
    m, n, k = sizes
    found = storage_of(Parameters(m=m, n=n, k=k, right="constant"), (*LLVM_CPU, *path), real_toolchain, tmp_path)
    assert constant in [(tensor.encoded_bytes, tensor.unpadded_bytes) for tensor in found.tensors]
    assert len(found.tensors) == tensors


def test_tiles_that_only_the_run_knows_take_up_to_sixteen(real_toolchain: Toolchain, tmp_path: Path) -> None:
    flags = (*VMVX, *LATE, "--iree-vmvx-enable-microkernels")
    found = storage_of(Parameters(m=33, n=50, k=21, dynamic="mnk"), flags, real_toolchain, tmp_path)
    assert {one.worst_ratio for one in found.tensors} == {RUN_TIME_TILE**2}
    assert sum(one.encoded_bytes for one in found.tensors) == 4 * (48 * 32 + 32 * 64 + 48 * 64)
