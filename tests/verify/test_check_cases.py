"""What each case's outputs are compared with, in which order, and what becomes of the others when one is wrong."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from harness.models.bench_folder import lay_out
from harness.models.materialize import materialize
from harness.models.model import Input, Model, Tolerance
from harness.process import Limits
from harness.records.run import Build, Check
from harness.toolchain import Toolchain
from harness.verify import Runnable, check_cases
from tests.builders import make_artifact, make_case, make_model
from tests.fakes.fake_toolchain import calls, make_fake_toolchain
from tests.verify.conftest import CompileInto

LIMITS = Limits(seconds=60)

MakeRunnable = Callable[..., Runnable]


@pytest.fixture
def make_runnable(tmp_path: Path, fake: Toolchain) -> MakeRunnable:
    """Cases that give the values they are told to, as in `make_runnable("stock", "1,2,3", device="gpu")`."""

    def make(
        variant: str,
        *values: str,
        device: str = "cpu",
        model: str = "net",
        inputs: Sequence[Input] = (),
        flags: Sequence[str] = (),
    ) -> Runnable:
        case = make_case(
            variant,
            device=device,
            model=model,
            run_flags=[*(f"--fake-values={one}" for one in values), *flags],
        )
        mlir, module = tmp_path / "model.mlir", tmp_path / "none"
        mlir.touch()
        artifact = make_artifact(mlir, inputs=inputs)
        return Runnable(
            case=case,
            build=Build(case=case.name, command=(), cache_key="", outputs=len(values)),
            artifact=artifact,
            bench=lay_out(tmp_path / "bench" / case.name, module, artifact),
            toolchain=fake,
            cpus=None,
        )

    return make


def check(cases: Sequence[Runnable], toolchain: Toolchain, *models: Model) -> dict[str, Check]:
    """All checks by case name under one toolchain, after a look that they come in the order of the cases."""
    by_name = {model.name: model for model in (models or (make_model(),))}
    cases = [
        replace(one, toolchain=toolchain, artifact=replace(one.artifact, onnx=by_name[one.case.model].onnx))
        for one in cases
    ]
    checks = list(check_cases(cases, by_name, LIMITS, lambda _: None))
    assert [one.case for one in checks] == [one.case.name for one in cases]
    for one in checks:
        assert one.failure is None or (one.failure.stage == "verify" and "\n" not in one.failure.message)
    return {one.case: one for one in checks}


def said(checks: dict[str, Check]) -> dict[str, str]:
    """What each case was compared with, or what is wrong with it."""
    return {name: one.failure.message if one.failure else one.against for name, one in checks.items()}


def write_npy(path: Path, values: Sequence[float]) -> Path:
    np.save(path, np.array(values, np.float32))
    return path


def test_a_variant_is_compared_with_the_baseline(make_runnable: MakeRunnable, fake: Toolchain) -> None:
    checks = check([make_runnable("stock", "1,2"), make_runnable("same", "1,2"), make_runnable("off", "1,3")], fake)
    assert said(checks) == {
        "net/stock@cpu": "itself: its values are finite",
        "net/same@cpu": "net/stock@cpu",
        "net/off@cpu": "its output 0 differs in 1 of 2 values, worst at [1]: 3 where 2 is right, "
        "compared with net/stock@cpu",
    }
    assert checks["net/off@cpu"].max_absolute == 1.0
    assert checks["net/off@cpu"].max_relative == 0.5
    assert checks["net/stock@cpu"].max_absolute is None


def test_wrong_outputs_are_told_apart_from_having_none(make_runnable: MakeRunnable, fake: Toolchain) -> None:
    cases = [make_runnable("stock", "1,2"), make_runnable("off", "1,3"), make_runnable("more", "1,2", "3")]
    cases.append(make_runnable("crash", "1,2", flags=["--fake-exit=1"]))
    failures = {name: one.failure for name, one in check(cases, fake).items() if one.failure}
    assert {name: failure.mismatch for name, failure in failures.items()} == {
        "net/off@cpu": True,
        "net/more@cpu": True,
        "net/crash@cpu": False,
    }


def test_each_case_runs_in_the_runtime_of_its_own_toolchain(
    make_runnable: MakeRunnable, fake: Toolchain, tmp_path: Path
) -> None:
    other = make_fake_toolchain(tmp_path / "other")
    cases = [make_runnable("stock", "1,2"), replace(make_runnable("later", "1,2"), toolchain=other)]
    checks = {one.case: one for one in check_cases(cases, {"net": make_model()}, LIMITS, lambda _: None)}
    assert len(calls(fake)) == len(calls(other)) == 1
    assert said(checks)["net/later@cpu"] == "net/stock@cpu"


def test_cases_run_one_after_the_other_each_announced_before(make_runnable: MakeRunnable, fake: Toolchain) -> None:
    events: list[str] = []
    cases = [make_runnable(name, "1") for name in ("stock", "a", "b")]
    checks = check_cases(cases, {"net": make_model()}, LIMITS, lambda name: events.append(f"start {name}"))
    events.extend(f"checked {one.case} after {len(calls(fake))} runs" for one in checks)
    assert events == [
        "start net/stock@cpu",
        "checked net/stock@cpu after 1 runs",
        "start net/a@cpu",
        "checked net/a@cpu after 2 runs",
        "start net/b@cpu",
        "checked net/b@cpu after 3 runs",
    ]


def test_a_check_keeps_its_command_and_tolerance(make_runnable: MakeRunnable, fake: Toolchain) -> None:
    model = make_model(tolerance=Tolerance(relative=0.5, absolute=0.25))
    (kept,) = check([make_runnable("stock", "1", inputs=[Input(shape=(2,))])], fake, model).values()
    assert (kept.relative_tolerance, kept.absolute_tolerance) == (0.5, 0.25)
    assert kept.command == ("iree-run-module", *calls(fake)[0].arguments)
    assert "--input=@input0.npy" in kept.command


def test_the_models_own_tolerance_decides(make_runnable: MakeRunnable, fake: Toolchain) -> None:
    cases = [make_runnable("stock", "100"), make_runnable("near", "101")]
    strict, loose = check(cases, fake), check(cases, fake, make_model(tolerance=Tolerance(relative=0.02)))
    assert strict["net/near@cpu"].failure is not None
    assert loose["net/near@cpu"].failure is None


def test_expected_files_come_before_the_baseline(make_runnable: MakeRunnable, fake: Toolchain, tmp_path: Path) -> None:
    model = make_model(expected=[write_npy(tmp_path / "e0.npy", [1, 2]), write_npy(tmp_path / "e1.npy", [3])])
    cases = [make_runnable("stock", "1,9", "3"), make_runnable("right", "1,2", "3"), make_runnable("one", "1,2")]
    assert said(check(cases, fake, model)) == {
        "net/stock@cpu": "its output 0 differs in 1 of 2 values, worst at [1]: 9 where 2 is right, "
        "compared with expected files",
        "net/right@cpu": "expected files",
        "net/one@cpu": "its outputs are 1 where 2 are right, compared with expected files",
    }


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (None, "cannot be read (expected.npy: No such file or directory)"),
        (b"", "is no whole .npy file (expected.npy)"),
        (b"no array", "is no whole .npy file (expected.npy)"),
    ],
)
def test_expected_files_that_cannot_be_read_fail_the_models_cases(
    make_runnable: MakeRunnable, fake: Toolchain, tmp_path: Path, content: bytes | None, why: str
) -> None:
    path = tmp_path / "expected.npy"
    if content is not None:
        path.write_bytes(content)
    cases = [make_runnable("stock", "1"), make_runnable("a", "1"), make_runnable("stock", "1", model="other")]
    told = said(check(cases, fake, make_model(expected=[path]), make_model("other")))
    assert told == {
        "net/stock@cpu": f"{path}: this expected file {why}; write it again",
        "net/a@cpu": f"{path}: this expected file {why}; write it again",
        "other/stock@cpu": "itself: its values are finite",
    }


def test_other_devices_baselines_are_compared_with_the_first_devices(
    make_runnable: MakeRunnable, fake: Toolchain
) -> None:
    cases = [
        make_runnable("stock", "1", device="cpu"),
        make_runnable("a", "1", device="cpu"),
        make_runnable("stock", "1.00001", device="gpu"),
        make_runnable("a", "1.00001", device="gpu"),
        make_runnable("stock", "1.00002", device="other"),
    ]
    assert said(check(cases, fake)) == {
        "net/stock@cpu": "itself: its values are finite",
        "net/a@cpu": "net/stock@cpu",
        "net/stock@gpu": "net/stock@cpu",
        "net/a@gpu": "net/stock@gpu",
        "net/stock@other": "net/stock@cpu",
    }


def test_a_device_that_computes_something_else_is_noticed(make_runnable: MakeRunnable, fake: Toolchain) -> None:
    cases = [
        make_runnable("stock", "1", device="cpu"),
        make_runnable("stock", "7", device="gpu"),
        make_runnable("a", "7", device="gpu"),
        make_runnable("a", "1", device="cpu"),
    ]
    assert said(check(cases, fake)) == {
        "net/stock@cpu": "itself: its values are finite",
        "net/stock@gpu": "its output 0 differs in 1 of 1 values, worst at [0]: 7 where 1 is right, "
        "compared with net/stock@cpu",
        "net/a@gpu": "nothing to compare its outputs with: the baseline on this device failed",
        "net/a@cpu": "net/stock@cpu",
    }


def test_a_failed_baseline_takes_its_variants_with_it_and_no_one_else(
    make_runnable: MakeRunnable, fake: Toolchain
) -> None:
    crash = ["--fake-signal=ABRT", "--fake-stderr=an assertion"]
    cases = [
        make_runnable("stock", "1", device="cpu", flags=crash),
        make_runnable("a", "1", device="cpu"),
        make_runnable("stock", "2", device="gpu"),
        make_runnable("a", "2", device="gpu"),
    ]
    checks = check(cases, fake)
    assert said(checks) == {
        "net/stock@cpu": "iree-run-module was ended by SIGABRT: an assertion",
        "net/a@cpu": "nothing to compare its outputs with: the baseline on this device failed",
        "net/stock@gpu": "itself: its values are finite",
        "net/a@gpu": "net/stock@gpu",
    }
    failure = checks["net/stock@cpu"].failure
    assert failure is not None
    assert failure.stderr == "an assertion"


def test_a_variant_that_fails_takes_no_one_with_it(make_runnable: MakeRunnable, fake: Toolchain) -> None:
    cases = [make_runnable("stock", "1"), make_runnable("a", "1", flags=["--fake-exit=1"]), make_runnable("b", "1")]
    assert said(check(cases, fake)) == {
        "net/stock@cpu": "itself: its values are finite",
        "net/a@cpu": "iree-run-module exited with status 1",
        "net/b@cpu": "net/stock@cpu",
    }


def test_a_baseline_that_is_the_only_reference_has_to_be_finite(make_runnable: MakeRunnable, fake: Toolchain) -> None:
    checks = check([make_runnable("stock", "1", "nan,inf,1"), make_runnable("a", "1", "nan,inf,1")], fake)
    assert said(checks) == {
        "net/stock@cpu": "its output 1 has 2 NaN or infinite values of 3, so variants cannot be compared with it; "
        "change the inputs, or give expected files",
        "net/a@cpu": "nothing to compare its outputs with: the baseline on this device failed",
    }


def test_models_are_checked_apart(make_runnable: MakeRunnable, fake: Toolchain) -> None:
    cases = [
        make_runnable("stock", "1", model="one"),
        make_runnable("stock", "2", model="two"),
        make_runnable("a", "2", model="two"),
    ]
    assert said(check(cases, fake, make_model("one"), make_model("two"))) == {
        "one/stock@cpu": "itself: its values are finite",
        "two/stock@cpu": "itself: its values are finite",
        "two/a@cpu": "two/stock@cpu",
    }


def test_a_missing_tool_fails_every_case(make_runnable: MakeRunnable, tmp_path: Path) -> None:
    broken = make_fake_toolchain(tmp_path / "broken", missing=["iree-run-module"])
    told = said(check([make_runnable("stock", "1"), make_runnable("a", "1")], broken))
    assert set(told.values()) == {
        "iree-run-module cannot be started (No such file or directory); reinstall the toolchain"
    }


@pytest.fixture
def double(tmp_path: Path) -> Model:
    """An ONNX model that doubles three numbers."""
    graph = helper.make_graph(
        [helper.make_node("Add", ["x", "x"], ["y"])],
        "graph",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [3])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [3])],
    )
    path = tmp_path / "double.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), str(path))
    return make_model(onnx=path)


ONES = Input(shape=(3,), fill="constant", value=1.0)


def test_an_onnx_model_is_compared_with_onnx_runtime(
    make_runnable: MakeRunnable, fake: Toolchain, double: Model
) -> None:
    cases = [make_runnable("stock", "2,2,2", inputs=[ONES]), make_runnable("a", "2,2,1", inputs=[ONES])]
    told = said(check(cases, fake, double))
    assert told["net/stock@cpu"].startswith("ONNX Runtime 1.")
    assert told["net/a@cpu"].startswith("its output 0 differs in 1 of 3 values, worst at [2]: 1 where 2 is right")


def test_an_onnx_model_may_ask_for_the_baseline(make_runnable: MakeRunnable, fake: Toolchain, double: Model) -> None:
    model = replace(double, reference="baseline")
    cases = [make_runnable("stock", "7,7,7", inputs=[ONES]), make_runnable("a", "7,7,7", inputs=[ONES])]
    assert said(check(cases, fake, model)) == {
        "net/stock@cpu": "itself: its values are finite",
        "net/a@cpu": "net/stock@cpu",
    }


def test_without_onnx_runtime_it_is_the_baseline_unless_the_suite_insists(
    make_runnable: MakeRunnable, fake: Toolchain, double: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    case = make_runnable("stock", "7,7,7", inputs=[ONES])
    assert said(check([case], fake, double)) == {"net/stock@cpu": "itself: its values are finite"}
    (told,) = said(check([case], fake, replace(double, reference="onnxruntime"))).values()
    assert told.endswith("run pip install onnxruntime")


def test_inputs_that_onnx_runtime_refuses_fail_the_case(
    make_runnable: MakeRunnable, fake: Toolchain, double: Model
) -> None:
    (told,) = said(check([make_runnable("stock", "2,2,2", inputs=[ONES, ONES])], fake, double)).values()
    assert told.endswith("double.onnx: the graph takes 1 inputs (x), not 2; correct inputs")


def test_a_real_onnx_model_through_iree_agrees_with_onnx_runtime(
    real_toolchain: Toolchain, double: Model, compile_into: CompileInto, tmp_path: Path
) -> None:
    artifact = materialize(double, store=tmp_path / "store", toolchain=real_toolchain, limits=LIMITS)
    compiled = compile_into(tmp_path / "compiled", artifact.mlir.read_text())
    case = make_case()
    runnable = Runnable(
        case=case,
        build=Build(case=case.name, command=(), cache_key="", outputs=1),
        artifact=artifact,
        bench=lay_out(tmp_path / "bench", compiled / "module.vmfb", artifact),
        toolchain=real_toolchain,
        cpus=frozenset({0}),
    )
    (checked,) = check([runnable], real_toolchain, double).values()
    assert checked.failure is None
    assert checked.against.startswith("ONNX Runtime 1.")
    assert checked.max_absolute == 0.0
