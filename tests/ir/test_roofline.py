"""The roof: the work of models and this machine's peaks, by the real toolchain; and what encoded tensors cost."""

import json
from dataclasses import astuple, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from harness.errors import CaseError
from harness.ir import roofline
from harness.ir.counts import RUN_TIME_TILE, encoded_tensor, padded, read_storage
from harness.ir.dump import dump_phases
from harness.ir.roofline import attained, count_work, measure_peak, peak_threads
from harness.models.materialize import ModelArtifact, materialize
from harness.models.matmul import Parameters, build
from harness.models.model import Input, Model
from harness.records.run import Failure, Peak, Storage, Work
from harness.toolchain import Toolchain
from tests.builders import make_case
from tests.fakes.fake_toolchain import make_fake_toolchain
from tests.ir.conftest import LIMITS, work
from tests.programs import program

PEAK = Peak(
    device="cpu", threads=1, operations_per_s=100e9, operations_by="FMA loop", bytes_per_s=10e9, bytes_by="copy"
)


BROKEN = Peak(device="cpu", threads=1, failure=Failure(stage="measure", message="it broke"))


@pytest.mark.parametrize(
    ("compulsory_bytes", "call_ns", "peak", "narrow", "reached"),
    [
        # The flat part of the roof, and memory that bounds it: operations and bytes a second, intensity, shares.
        (10_000, 40e3, PEAK, False, (50e9, 0.25e9, 200.0, 0.5, 0.5)),
        (4_000_000, 800e3, PEAK, False, (2.5e9, 5e9, 0.5, 0.025, 0.5)),
        (10_000, 40e3, BROKEN, False, (50e9, 0.25e9, 200.0, None, None)),
        # A processor with bf16 or i8 units does more of those than the peak that was measured.
        (10_000, 40e3, PEAK, True, (50e9, 0.25e9, 200.0, None, None)),
    ],
)
def test_what_a_case_reaches(compulsory_bytes: int, call_ns: float, peak: Peak, narrow: bool, reached: Any) -> None:
    work = Work(model="m", operations=2_000_000, compulsory_bytes=compulsory_bytes)
    found = attained(work, call_ns, peak, narrow=narrow)
    assert found is not None
    assert astuple(found) == reached


@pytest.mark.parametrize(
    ("given", "threads"),
    [
        ({"uri": "local-sync"}, 1),
        ({"uri": "local-task", "pin": True}, 1),
        ({"uri": "local-task", "pin": False, "threads": 3}, 3),
        ({"uri": "local-task", "pin": False}, 4),
        ({"uri": "local-sync", "more_uris": ("local-sync",), "pin": False}, 1),
        ({"uri": "local-sync", "more_uris": ("local-task",), "pin": False, "threads": 1}, 4),
        ({"uri": "vulkan://0"}, None),
        ({"uri": "local-sync", "more_uris": ("vulkan",)}, None),
    ],
)
def test_the_peak_of_a_device(given: dict[str, Any], threads: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Here with four cores."""
    monkeypatch.setattr(roofline, "usable_cores", lambda: 4)
    assert peak_threads(replace(make_case(), **given)) == threads


def test_the_best_program_is_the_peak(tmp_path: Path, real_toolchain: Toolchain) -> None:
    peak = measure_peak("cpu", 1, real_toolchain, host_cpu="this one", cache=tmp_path)
    assert peak.failure is None
    assert peak.operations_per_s == max(peak.measured[name] for name in ("sgemm 384", "sgemm 768", "FMA loop"))
    assert peak.bytes_per_s == max(peak.measured[name] for name in ("copy", "add", "dot"))
    assert all(np.isfinite(figure) and figure > 0 for figure in peak.measured.values())
    assert len(list(tmp_path.glob("*.vmfb"))) == 1


def test_the_loop_of_multiply_adds_has_the_operations_it_says() -> None:
    assert work(roofline._multiply_add_loop(10)).operations == 10 * roofline._OPERATIONS_PER_ELEMENT


def test_a_toolchain_that_fails_leaves_a_peak_that_says_so(tmp_path: Path) -> None:
    broken = make_fake_toolchain(tmp_path / "tools", always={"iree-compile": ["--fake-exit=3"]})
    peak = measure_peak("cpu", 2, broken, host_cpu="", cache=tmp_path)
    assert peak.failure is not None
    assert peak.failure.message == "iree-compile exited with status 3"
    assert (peak.device, peak.threads, peak.operations_per_s) == ("cpu", 2, None)


def make(tmp_path: Path, toolchain: Toolchain, **given: Any) -> ModelArtifact:
    model = Model(name="model", **{"params": {}, "parameters": {}, **given})
    return materialize(model, store=tmp_path / "models", toolchain=toolchain, limits=LIMITS)


def count(tmp_path: Path, toolchain: Toolchain, artifact: ModelArtifact) -> Work:
    shapes, identity = [argument.shape for argument in artifact.inputs], {"sha256": artifact.sha256, "flags": ("--x",)}
    given: dict[str, Any] = {**identity, "toolchain": toolchain, "limits": LIMITS, "memos": tmp_path / "memos"}
    return count_work(artifact.name, artifact.mlir, artifact.function, shapes, **given)


def test_what_was_counted_is_kept_under_the_models_content(
    tmp_path: Path, real_toolchain: Toolchain, monkeypatch: pytest.MonkeyPatch
) -> None:
    artifact = make(tmp_path, real_toolchain, builder="residual-dense-block", params={"height": 8, "width": 8})
    first = count(tmp_path, real_toolchain, artifact)
    nowhere = replace(real_toolchain, compiler_tools=tmp_path / "nowhere", python=tmp_path / "no-python")
    again = count(tmp_path, nowhere, replace(artifact, name="other"))
    assert again == replace(first, model="other")
    monkeypatch.setattr("harness.ir.roofline._sources_sha256", lambda: "another way to count")
    with pytest.raises(CaseError, match="cannot be started"):
        count(tmp_path, nowhere, artifact)


def test_a_size_that_depends_on_data_is_told(tmp_path: Path, real_toolchain: Toolchain) -> None:
    source = tmp_path / "data.mlir"
    source.write_text(
        program("""
        main n:tensor<i32>
        | %v = tensor.extract %n[] : tensor<i32>
        | %size = arith.index_cast %v : i32 to index
        | %a = tensor.splat %one[%size] : tensor<?xf32>
        | %b = arith.addf %a, %a : tensor<?xf32>
        c:1 = | tensor.cast %b : tensor<?xf32> to tensor<1xf32>
        return c
        """)
    )
    inputs = (Input(dtype="i32", fill="constant", value=3),)
    artifact = make(tmp_path, real_toolchain, mlir=source, function="main", inputs=inputs)
    with pytest.raises(CaseError, match=r"the result of tensor\.extract does not follow from the inputs"):
        count(tmp_path, real_toolchain, artifact)


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


LEFT, RIGHT, RESULT = (48 * 21 * 4, 33 * 21 * 4), (64 * 21 * 4, 21 * 50 * 4), (48 * 64 * 4, 33 * 50 * 4)


@pytest.mark.parametrize(
    ("flags", "given", "tensors", "worst"),
    [
        # Dynamic sizes are those of the inputs, as if the compiler had known them, but for the worst case.
        ((*LLVM_CPU, *EARLY), {"dynamic": "mnk"}, [LEFT, RIGHT, RESULT], 256),
        ((*LLVM_CPU, *LATE), {"dynamic": "mnk"}, [LEFT, RIGHT, RESULT], 256),
        ((*LLVM_CPU, *DISPATCH), {"dynamic": "mnk"}, [LEFT, RIGHT], 16),
        # The early path leaves nothing of a constant but its packed form: only the result's unpacking tells its width.
        ((*LLVM_CPU, *EARLY), {"right": "constant"}, [LEFT, RIGHT, RESULT], None),
        ((*LLVM_CPU, *LATE), {"right": "constant"}, [LEFT, RIGHT, RESULT], None),
        # Nothing is packed or unpacked at run time, and only the product itself tells of tiles.
        ((*LLVM_CPU, *EARLY), {"m": 1, "n": 32, "right": "constant"}, [(32 * 21 * 4,) * 2, (32 * 4,) * 2], None),
        # Tiles that only the run knows take up to sixteen.
        (
            (*VMVX, *LATE, "--iree-vmvx-enable-microkernels"),
            {"dynamic": "mnk"},
            [(48 * 32 * 4, 33 * 21 * 4), (32 * 64 * 4, 21 * 50 * 4), RESULT],
            RUN_TIME_TILE**2,
        ),
    ],
    ids=["early", "late", "dispatch", "early constant", "late constant", "constant without padding", "at run time"],
)
def test_tensors_that_are_packed_and_what_they_would_take_unpacked(
    flags: Any, given: Any, tensors: Any, worst: float | None, real_toolchain: Toolchain, tmp_path: Path
) -> None:
    found = storage_of(Parameters(**{"m": 33, "n": 50, "k": 21, **given}), flags, real_toolchain, tmp_path)
    assert sorted((one.encoded_bytes, one.unpadded_bytes) for one in found.tensors) == sorted(tensors)
    assert worst is None or found.worst_ratio == worst
