"""What encoded tensors cost: the arithmetic, and whether it is what the compiler allocates."""

import itertools
import json
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st

from harness.ir.counts import RUN_TIME_TILE, encoded_tensor, padded, read_storage
from harness.ir.dump import dump_phases
from harness.models.matmul import Parameters, build
from harness.records.run import EncodedTensor, Storage
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

TILES = st.sampled_from([1, 2, 3, 4, 8, 16])
DIMS = st.lists(st.tuples(st.integers(1, 70), st.booleans(), TILES), min_size=1, max_size=3)


def of_one(dims: list[tuple[int, bool, int]], bits: int = 32) -> EncodedTensor:
    sizes, tiles = [dim[:2] for dim in dims], [dim[2] for dim in dims]
    return encoded_tensor("t", element_bits=bits, sizes=sizes, layouts=[tiles])


def storage_of(params: Parameters, flags: tuple[str, ...], toolchain: Toolchain, folder: Path) -> Storage:
    """The encoded tensors of a product, with the shapes of its own inputs."""
    folder.mkdir(exist_ok=True)
    model = build(params)
    file = folder / "product.mlir"
    file.write_text(str(model.text))
    dumps = dump_phases(flags, file, ["encodings"], toolchain=toolchain, folder=folder, limits=LIMITS)
    shapes = [one.shape for one in model.inputs]
    return read_storage(dumps["encodings"], shapes, toolchain=toolchain, limits=LIMITS)


# ------------------------------------------------------------------------------------------------------ arithmetic


def test_a_size_that_inputs_decide_is_worst_where_it_is_one() -> None:
    """One row in tiles of 16 rows takes 16 times its bytes; the known number of columns adds 96/90 to that."""
    found = of_one([(70, True, 16), (90, False, 16)])
    assert (found.encoded_bytes, found.unpadded_bytes) == (80 * 96 * 4, 70 * 90 * 4)
    assert found.worst_ratio == pytest.approx(16 * 96 / 90)
    assert of_one([(1, True, 16), (90, False, 16)]).encoded_bytes == 16 * 96 * 4


@given(DIMS)
def test_the_worst_ratio_is_reached_and_never_passed(dims: list[tuple[int, bool, int]]) -> None:
    """Over all sizes up to 40 of what inputs decide, by trying them."""
    ranges = [range(1, 41) if is_dynamic else (size,) for size, is_dynamic, _ in dims]
    if math.prod(map(len, ranges)) > 2_000:
        ranges = [one[:12] for one in ranges]
    tried = max(
        math.prod(padded(size, tile) / size for size, (_, _, tile) in zip(sizes, dims, strict=True))
        for sizes in itertools.product(*ranges)
    )
    found = of_one(dims)
    assert found.worst_ratio == pytest.approx(tried)
    assert found.unpadded_bytes <= found.encoded_bytes <= found.unpadded_bytes * found.worst_ratio * (1 + 1e-12)


def test_with_layouts_for_several_devices_the_largest_is_allocated() -> None:
    two = encoded_tensor("t", element_bits=8, sizes=[(17, True), (4, False)], layouts=[[16, 1], [8, 4]])
    assert (two.encoded_bytes, two.worst_ratio) == (32 * 4, 16)


@pytest.mark.parametrize(("bits", "expected"), [(1, 15), (4, 8), (8, 15), (16, 30), (32, 60)])
def test_elements_smaller_than_a_byte(bits: int, expected: int) -> None:
    assert of_one([(3, False, 1), (5, False, 1)], bits).encoded_bytes == expected


def test_a_program_without_encodings_has_no_overhead() -> None:
    assert (Storage().encoded_bytes, Storage().overhead, Storage().worst_ratio) == (0, None, None)
    empty = of_one([(0, False, 16)])
    assert (empty.encoded_bytes, empty.unpadded_bytes, empty.worst_ratio) == (0, 0, 1.0)


# -------------------------------------------------------------------------------------------------------- programs


@settings(
    max_examples=2,
    deadline=None,
    phases=[Phase.explicit, Phase.generate],  # each example is a compile, so none is made smaller
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@example(sizes=(1, 20, 20), dtype="f32", path=EARLY)  # the row need not be packed
@example(sizes=(20, 1, 20), dtype="i8", path=LATE)
@given(
    sizes=st.tuples(*[st.integers(2, 50)] * 3),
    dtype=st.sampled_from(["f32", "i8", "bf16"]),
    path=st.sampled_from([EARLY, LATE, DISPATCH]),
)
def test_it_is_what_the_compiler_allocates(
    sizes: tuple[int, int, int],
    dtype: str,
    path: tuple[str, ...],
    real_toolchain: Toolchain,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """By iree-compile's own statistics: the encoded tensors, each rounded up to 64 bytes, and the result."""
    m, n, k = sizes
    folder = tmp_path_factory.mktemp("product")
    params = Parameters(m=m, n=n, k=k, dtype=dtype)  # type: ignore[arg-type]
    found = storage_of(params, (*LLVM_CPU, *path, *STATISTICS), real_toolchain, folder)
    statistics = json.loads((folder / "statistics.json").read_text())["stream-aggregate"]["execution"]
    allocated = sum(padded(one.encoded_bytes, 64) for one in found.tensors) + 4 * m * n
    assert allocated == statistics["transient-memory-size"]


@pytest.mark.parametrize("path", [EARLY, LATE, DISPATCH], ids=["early", "late", "dispatch"])
def test_dynamic_sizes_are_those_of_the_inputs(
    path: tuple[str, ...], real_toolchain: Toolchain, tmp_path: Path
) -> None:
    """As if the compiler had known them, but for the worst case."""
    sizes: dict[str, Any] = {"m": 33, "n": 50, "k": 21}
    flags = (*LLVM_CPU, *path)
    static = storage_of(Parameters(**sizes), flags, real_toolchain, tmp_path / "static")
    dynamic = storage_of(Parameters(**sizes, dynamic="mnk"), flags, real_toolchain, tmp_path / "dynamic")
    bytes_of = [[(one.encoded_bytes, one.unpadded_bytes) for one in found.tensors] for found in (static, dynamic)]
    assert sorted(bytes_of[0]) == sorted(bytes_of[1])
    left, right = (48 * 21 * 4, 33 * 21 * 4), (64 * 21 * 4, 21 * 50 * 4)
    result = (48 * 64 * 4, 33 * 50 * 4)
    assert sorted(bytes_of[1]) == sorted([left, right] if path == DISPATCH else [left, right, result])
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
    path: tuple[str, ...],
    sizes: tuple[int, int, int],
    constant: tuple[int, int],
    tensors: int,
    real_toolchain: Toolchain,
    tmp_path: Path,
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
