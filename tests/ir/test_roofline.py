"""The roof: the work of models and this machine's peaks, by the real toolchain, and what a case reaches."""

from dataclasses import astuple, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from harness.errors import CaseError
from harness.ir import roofline
from harness.ir.roofline import attained, count_work, measure_peak, peak_threads
from harness.models.materialize import ModelArtifact, materialize
from harness.models.model import Input, Model
from harness.process import Limits
from harness.records.run import Failure, Peak, Work
from harness.toolchain import Toolchain
from tests.builders import make_case
from tests.fakes.fake_toolchain import make_fake_toolchain
from tests.ir.conftest import work

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


LIMITS = Limits(seconds=120)


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
    size = "%v = tensor.extract %n[] : tensor<i32>\n%size = arith.index_cast %v : i32 to index"
    source.write_text(f"""func.func @main(%n: tensor<i32>) -> tensor<?xf32> {{
      {size}
      %one = arith.constant 1.0 : f32
      %a = tensor.splat %one[%size] : tensor<?xf32>
      %b = arith.addf %a, %a : tensor<?xf32>
      return %b : tensor<?xf32>
    }}""")

    artifact = make(
        tmp_path, real_toolchain, mlir=source, function="main", inputs=(Input(dtype="i32", fill="constant", value=3),)
    )
    with pytest.raises(CaseError, match=r"the result of tensor\.extract does not follow from the inputs"):
        count(tmp_path, real_toolchain, artifact)
