"""What each case's outputs are compared with, in which order, and what becomes of the others when one is wrong."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from harness.cache import cache_root
from harness.models.inputs import load_argument, write_arguments
from harness.models.materialize import ModelArtifact, lay_out, materialize
from harness.models.model import Input, Model, Tolerance
from harness.peers.peer import PeerModel
from harness.peers.worker import LoadablePeer
from harness.process import Limits
from harness.records.case import Case
from harness.records.run import Build, Check
from harness.toolchain import Toolchain
from harness.verify import References, Runnable, RunnablePeer, check_cases
from harness.verify.difference import Right
from harness.verify.kept import kept_outputs, later_problem
from tests.builders import a_peer, make_artifact, make_case, make_model
from tests.fakes.fake_toolchain import calls, make_fake_toolchain
from tests.verify.conftest import Compile

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
            run_flags=[*(f"--fake-values={text}" for text in values), *flags],
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


Evaluated = Callable[[ModelArtifact], Right | str]


class Scripted(References):
    """References whose evaluator says what it is told, and whose interpreter says nothing."""

    evaluator: Evaluated

    def _from_evaluator(self, _case: Case, artifact: ModelArtifact, _model: Model) -> Right | str:
        return type(self).evaluator(artifact)

    def _from_interpreter(self, _runnable: Runnable, _why: str) -> Right | str:
        return "and no interpreter"


def references(models: Mapping[str, Model], evaluated: Evaluated = lambda _: "it is scripted") -> References:
    kind = type("_Scripted", (Scripted,), {"evaluator": staticmethod(evaluated)})
    made: References = kind(models=models, scratch=Path(), compile_limits=LIMITS, call_limits=LIMITS)
    return made


def check(
    cases: Sequence[Runnable], toolchain: Toolchain, *models: Model, evaluated: Evaluated = lambda _: "it is scripted"
) -> dict[str, Check]:
    """All checks by case name under one toolchain, after a look that they come in the order of the cases."""
    by_name = {model.name: model for model in (models or (make_model(),))}
    cases = [
        replace(case, toolchain=toolchain, artifact=replace(case.artifact, onnx=by_name[case.case.model].onnx))
        for case in cases
    ]
    checks = list(check_cases(cases, references(by_name, evaluated), LIMITS, lambda _: None, cache_root()))
    assert [check.case for check in checks] == [case.case.name for case in cases]
    for check in checks:
        assert check.failure is None or (check.failure.stage == "verify" and "\n" not in check.failure.message)
    return {check.case: check for check in checks}


def words(checks: dict[str, Check]) -> dict[str, str]:
    """What each case was compared with, or what is wrong with it."""
    return {name: check.failure.message if check.failure else check.against for name, check in checks.items()}


FINITE = "itself: its values are finite"


def test_a_variant_is_compared_with_the_baseline(make_runnable: MakeRunnable, fake: Toolchain) -> None:
    cases = [
        make_runnable("stock", "1,2"),
        make_runnable("same", "1,2"),
        make_runnable("off", "1,3"),
        make_runnable("more", "1,2", "3"),
        make_runnable("crash", "1,2", flags=["--fake-exit=1"]),
        make_runnable("last", "1,2"),
    ]
    checks = check(cases, fake)
    assert words(checks) == {
        "net/stock@cpu": FINITE,
        "net/same@cpu": "net/stock@cpu",
        "net/off@cpu": "its output 0 differs in 1 of 2 values, worst at [1]: 3 where 2 is right, "
        "compared with net/stock@cpu",
        "net/more@cpu": "its outputs are 2 where 1 are right, compared with net/stock@cpu",
        "net/crash@cpu": "iree-run-module exited with status 1",
        "net/last@cpu": "net/stock@cpu",
    }
    mismatches = {name: check.failure.mismatch for name, check in checks.items() if check.failure}
    assert mismatches == {"net/off@cpu": True, "net/more@cpu": True, "net/crash@cpu": False}
    assert (checks["net/off@cpu"].max_absolute, checks["net/off@cpu"].max_relative) == (1.0, 0.5)
    assert checks["net/stock@cpu"].max_absolute is None


def test_each_case_is_held_against_the_reference_by_itself(make_runnable: MakeRunnable, fake: Toolchain) -> None:
    cases = [make_runnable("stock", "1,2"), make_runnable("near", "1,3.0001"), make_runnable("same", "1,3")]
    right = Right(source="the reference", outputs=[np.array([1, 3], np.float32)], allowed=[np.array([0, 1e-3])])
    checks = check(cases, fake, evaluated=lambda _: right)
    assert words(checks) == {
        "net/stock@cpu": "its output 0 differs in 1 of 2 values, worst at [1]: 2 where 3 is right (6e+03 spreads of "
        "its rounding; 6 are allowed), compared with the reference",
        "net/near@cpu": "the reference",
        "net/same@cpu": "the reference",
    }
    assert checks["net/near@cpu"].spreads == pytest.approx(0.6, rel=0.01)
    kept = cache_root() / checks["net/stock@cpu"].reproducer
    assert np.load(kept / "refused0.npy").tolist() == [1, 2]
    assert np.load(kept / "right0.npy").tolist() == [1, 3]
    commands = (kept / "reproduce.sh").read_text()
    assert "# its output 0 differs in 1 of 2 values, worst at [1]: 2 where 3 is right" in commands
    assert "iree-run-module --module=module.vmfb" in commands


def test_what_judges_beside_the_reference_has_the_last_word(
    make_runnable: MakeRunnable, fake: Toolchain, tmp_path: Path
) -> None:
    np.save(tmp_path / "expected.npy", np.array([1, 3], np.float32))
    right = Right(source="the reference", outputs=[np.array([1, 2], np.float32)], allowed=[np.zeros(2)])
    model = make_model(expected=[tmp_path / "expected.npy"])
    checks = check([make_runnable("stock", "1,2")], fake, model, evaluated=lambda _: right)
    assert words(checks) == {
        "net/stock@cpu": "its output 0 differs in 1 of 2 values, worst at [1]: 2 where 3 is right, compared with "
        "expected files; the reference agrees with it, so expected files are to be doubted"
    }
    item = make_runnable("torch", "1,2")
    item.artifact.mlir.write_text("torch.constant.int 1")
    (message,) = words(check([item], fake, model, evaluated=lambda _: right)).values()
    assert message.endswith("so either expected files or IREE's conversion of the model is to be doubted")
    right = replace(right, outputs=[np.array([1, 3], np.float32)])
    checks = check([make_runnable("agreeing", "1,3")], fake, model, evaluated=lambda _: right)
    assert checks["net/agreeing@cpu"].also_against == "expected files"


def test_right_outputs_are_kept_for_later_calls_and_other_runs(
    make_runnable: MakeRunnable, fake: Toolchain, tmp_path: Path
) -> None:
    cases = [make_runnable("stock", "1,2"), make_runnable("off", "1,3"), make_runnable("same", "1,2")]
    checks = check(cases, fake)
    stock = checks["net/stock@cpu"]
    assert stock.outputs == checks["net/same@cpu"].outputs
    assert checks["net/off@cpu"].outputs == ()
    (kept,) = kept_outputs(stock.outputs, cache_root()) or []
    assert kept.tolist() == [1, 2]
    assert kept_outputs(stock.outputs, tmp_path) is None

    np.save(tmp_path / "later.npy", np.array([1, 2.00001], np.float32))
    assert later_problem(stock, [tmp_path / "later.npy"], cache_root()) is None
    np.save(tmp_path / "later.npy", np.array([1, 3], np.float32))
    failure = later_problem(stock, [tmp_path / "later.npy"], cache_root())
    assert failure is not None
    assert failure.mismatch
    assert failure.message == (
        "a later call in one process gives other outputs than the first: output 0 differs in 1 of 2 values, worst at "
        "[1]: 3 where 2 is the first call's"
    )


def test_each_case_runs_in_the_runtime_of_its_own_toolchain(
    make_runnable: MakeRunnable, fake: Toolchain, tmp_path: Path
) -> None:
    other = make_fake_toolchain(tmp_path / "other")
    cases = [make_runnable("stock", "1,2"), replace(make_runnable("later", "1,2"), toolchain=other)]
    checks = {
        check.case: check
        for check in check_cases(cases, references({"net": make_model()}), LIMITS, lambda _: None, cache_root())
    }
    assert len(calls(fake)) == len(calls(other)) == 1
    assert words(checks)["net/later@cpu"] == "net/stock@cpu"


def test_cases_run_one_after_the_other_each_announced_before(make_runnable: MakeRunnable, fake: Toolchain) -> None:
    events: list[object] = []
    cases = [make_runnable(name, "1") for name in ("stock", "a")]
    checks = check_cases(cases, references({"net": make_model()}), LIMITS, events.append, cache_root())
    events.extend((check.case, len(calls(fake))) for check in checks)
    assert events == ["net/stock@cpu", ("net/stock@cpu", 1), "net/a@cpu", ("net/a@cpu", 2)]


def test_other_releases_are_held_against_the_first(
    make_runnable: MakeRunnable, fake: Toolchain, tmp_path: Path
) -> None:
    """Of several releases the first that runs a group has its one baseline; the others' are variants of it."""
    other = make_fake_toolchain(tmp_path / "other")

    def of_release(release: str, variant: str, values: str) -> Runnable:
        made = make_runnable(f"{variant}-{release}", values)
        baseline = (release, variant) == ("1", "stock")
        case = replace(made.case, variant=variant, toolchain=release, baseline=baseline)
        return replace(made, case=case, toolchain=fake if release == "1" else other)

    cases = [
        of_release("1", "stock", "1,2"),
        of_release("2", "stock", "1,3"),
        of_release("1", "a", "1,2"),
        of_release("2", "a", "1,2"),
    ]
    checks = list(check_cases(cases, references({"net": make_model()}), LIMITS, lambda _: None, cache_root()))
    assert [check.failure.message if check.failure else check.against for check in checks] == [
        FINITE,
        "its output 0 differs in 1 of 2 values, worst at [1]: 3 where 2 is right, compared with net/stock-1@cpu",
        "net/stock-1@cpu",
        "net/stock-1@cpu",
    ]


RANDOM = Input(shape=(3,), seed=7)


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """However busy the machine is, each call counts as quick."""
    monkeypatch.setattr("harness.verify.cases._QUICK_S", 60.0)
    monkeypatch.setattr("harness.verify.cases._QUICK_PEER_S", 60.0)


def test_what_takes_long_is_run_once(
    make_runnable: MakeRunnable, fake: Toolchain, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("harness.verify.cases._QUICK_S", 0.0)
    check([make_runnable("stock", "1,2,3", inputs=[RANDOM])], fake)
    assert len(calls(fake)) == 1


def doubled(artifact: ModelArtifact) -> np.ndarray[Any, Any]:
    return 2 * load_argument(artifact.arguments[0])


@pytest.mark.usefixtures("patient")
@pytest.mark.parametrize(
    ("inputs", "finds"),
    [([RANDOM], True), ([RANDOM, replace(RANDOM, fill="constant")], False)],
)
def test_an_answer_that_is_folded_is_wrong_for_other_random_inputs(
    make_runnable: MakeRunnable, fake: Toolchain, tmp_path: Path, inputs: list[Input], finds: bool
) -> None:
    arguments = write_arguments(inputs, tmp_path / "first")
    folded = ",".join(str(value) for value in (2 * load_argument(arguments[0])).tolist())
    stock = make_runnable("stock", folded, inputs=inputs)
    stock = replace(stock, artifact=replace(stock.artifact, arguments=arguments))
    checks = check(
        [stock], fake, evaluated=lambda made: Right(source="2 x", outputs=[doubled(made)], allowed=[np.zeros(3)])
    )
    message = words(checks)["net/stock@cpu"]
    if not finds:
        assert message == "2 x"
        return
    assert message.startswith("right with the suite's inputs; with other random values of them its output 0 differs in")
    assert message.endswith("compared with 2 x")
    failure = checks["net/stock@cpu"].failure
    assert failure is not None
    assert failure.mismatch


@pytest.mark.usefixtures("patient")
def test_a_variant_is_held_against_the_baseline_with_other_inputs_too(
    make_runnable: MakeRunnable, fake: Toolchain
) -> None:
    cases = [make_runnable(name, "1,2,3", inputs=[RANDOM]) for name in ("stock", "a")]
    checks = check(cases, fake)
    assert [check.other_inputs for check in checks.values()] == [False, True]  # the baseline has nothing to meet
    assert len(calls(fake)) == 4
    first, other = cases[0].bench.folder, cases[0].bench.folder.with_name("stock@cpu-other-inputs")
    assert not np.array_equal(np.load(first / "input0.npy"), np.load(other / "input0.npy"))


@pytest.mark.usefixtures("patient")
def test_a_peer_meets_other_inputs_too(
    make_runnable: MakeRunnable, fake: Toolchain, monkeypatch: pytest.MonkeyPatch
) -> None:
    stock = make_runnable("stock", "1,2,3", inputs=[RANDOM])
    arguments = tuple(argument.for_worker() for argument in stock.artifact.arguments)
    loadable = LoadablePeer(
        name="net/onnxruntime@cpu",
        peer=a_peer(),
        model=PeerModel(name="net", builder=None, inputs=()),
        arguments=arguments,
        threads=1,
        cache=stock.bench.folder,
    )
    case = replace(stock.case, name=loadable.name, variant="onnxruntime", baseline=False, peer="onnxruntime")
    peer = RunnablePeer(case=case, artifact=stock.artifact, loadable=loadable, cpus=None)
    asked = []

    def folded(self: RunnablePeer, _: Limits) -> list[Any]:
        asked.append(self.loadable.arguments)
        return [np.array([1, 2, 3 if self.loadable.arguments == arguments else 4], np.float32)]

    monkeypatch.setattr(RunnablePeer, "outputs", folded)
    checks = check_cases([stock, peer], references({"net": make_model()}), LIMITS, lambda _: None, cache_root())
    message = words({found.case: found for found in checks})[loadable.name]
    assert message.startswith(
        "right with the suite's inputs; with other random values of them its output 0 differs in 1"
    )
    assert len(asked) == 2 and asked[0] != asked[1]


def test_zeros_that_would_pass_are_told(make_runnable: MakeRunnable, fake: Toolchain) -> None:
    right = Right(
        source="",
        outputs=[np.array([1, 2], np.float32), np.array([3], np.float32)],
        allowed=[np.array([9, 9]), np.zeros(1)],
    )
    (found,) = check([make_runnable("stock", "1,2", "3")], fake, evaluated=lambda _: right).values()
    assert found.below_tolerance == (0,)


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
    files = [tmp_path / "e0.npy", tmp_path / "e1.npy"]
    for file, values in zip(files, ([1, 2], [3]), strict=True):
        np.save(file, np.array(values, np.float32))
    cases = [make_runnable("stock", "1,9", "3"), make_runnable("right", "1,2", "3"), make_runnable("one", "1,2")]
    assert words(check(cases, fake, make_model(expected=files))) == {
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
        (b"\x93NUMPY\x01\x00\x06\x00{(((((", "is no whole .npy file (expected.npy)"),
    ],
)
def test_expected_files_that_cannot_be_read_fail_the_models_cases(
    make_runnable: MakeRunnable, fake: Toolchain, tmp_path: Path, content: bytes | None, why: str
) -> None:
    path = tmp_path / "expected.npy"
    if content is not None:
        path.write_bytes(content)
    cases = [make_runnable("stock", "1"), make_runnable("a", "1"), make_runnable("stock", "1", model="other")]
    found = words(check(cases, fake, make_model(expected=[path]), make_model("other")))
    assert found == {
        "net/stock@cpu": f"{path}: this expected file {why}; write it again",
        "net/a@cpu": f"{path}: this expected file {why}; write it again",
        "other/stock@cpu": FINITE,
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
        make_runnable("stock", "7", device="wrong"),
        make_runnable("a", "7", device="wrong"),
    ]
    assert words(check(cases, fake)) == {
        "net/stock@cpu": FINITE,
        "net/a@cpu": "net/stock@cpu",
        "net/stock@gpu": "net/stock@cpu",
        "net/a@gpu": "net/stock@gpu",
        "net/stock@other": "net/stock@cpu",
        "net/stock@wrong": "its output 0 differs in 1 of 1 values, worst at [0]: 7 where 1 is right, "
        "compared with net/stock@cpu",
        "net/a@wrong": "its output 0 differs in 1 of 1 values, worst at [0]: 7 where 1 is right, "
        "compared with net/stock@cpu",
    }


def test_a_failed_baseline_leaves_its_variants_to_themselves(make_runnable: MakeRunnable, fake: Toolchain) -> None:
    crash = ["--fake-signal=ABRT", "--fake-stderr=an assertion"]
    cases = [
        make_runnable("stock", "1", device="cpu", flags=crash),
        make_runnable("a", "1", device="cpu"),
        make_runnable("stock", "2", device="gpu"),
        make_runnable("a", "2", device="gpu"),
        make_runnable("stock", "3", model="two"),
        make_runnable("a", "3", model="two"),
    ]
    checks = check(cases, fake, make_model(), make_model("two"))
    assert words(checks) == {
        "net/stock@cpu": "iree-run-module was ended by SIGABRT: an assertion",
        "net/a@cpu": FINITE,
        "net/stock@gpu": FINITE,
        "net/a@gpu": "net/stock@gpu",
        "two/stock@cpu": FINITE,
        "two/a@cpu": "two/stock@cpu",
    }
    failure = checks["net/stock@cpu"].failure
    assert failure is not None
    assert failure.stderr == "an assertion"


def test_what_no_reference_judges_has_to_be_finite(make_runnable: MakeRunnable, fake: Toolchain) -> None:
    checks = check([make_runnable("stock", "1", "nan,inf,1"), make_runnable("a", "1", "nan,inf,1")], fake)
    assert words(checks) == {
        "net/stock@cpu": (
            why := "its output 1 has 2 NaN or infinite values of 3, and no reference says that they are "
            "right; give expected files"
        ),
        "net/a@cpu": why,
    }


def test_what_is_not_to_be_checked_is_held_against_nothing(make_runnable: MakeRunnable, fake: Toolchain) -> None:
    model = replace(make_model(), check="none", why="a random one")
    checks = check([make_runnable("stock", "1", "nan,1"), make_runnable("a", "2", "1,1")], fake, model)
    assert words(checks) == {"net/stock@cpu": "nothing", "net/a@cpu": "nothing"}
    assert checks["net/a@cpu"].no_second_opinion == 'the suite says check = "none": a random one'


def test_later_calls_of_a_program_that_keeps_state_are_not_compared(
    make_runnable: MakeRunnable, fake: Toolchain, tmp_path: Path
) -> None:
    right = Right(source="the reference", outputs=[np.ones(1, np.float32)], allowed=[np.zeros(1)], keeps_state=True)
    (found,) = check([make_runnable("stock", "1")], fake, evaluated=lambda _: right).values()
    assert "the outputs of the first were checked" in found.note
    np.save(tmp_path / "later.npy", np.array([2], np.float32))
    assert later_problem(found, [tmp_path / "later.npy"], cache_root()) is None


def test_devices_that_are_not_the_programs_fail_the_case(make_runnable: MakeRunnable, fake: Toolchain) -> None:
    runnable = make_runnable("stock", "1")
    search = b'HAL device `d` not found or unavailable: #hal.device.target<"vulkan", []>'
    (runnable.bench.folder / "module.vmfb").unlink()
    (runnable.bench.folder / "module.vmfb").write_bytes(search)
    assert words(check([runnable], fake)) == {
        "net/stock@cpu": "the program needs a device d (vulkan[0]), and uri has none; add one to uri"
    }
    assert calls(fake) == []


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
    found = words(check(cases, fake, double))
    assert found["net/stock@cpu"].startswith("ONNX Runtime 1.")
    assert found["net/a@cpu"].startswith("its output 0 differs in 1 of 3 values, worst at [2]: 1 where 2 is right")


def test_an_onnx_model_may_ask_for_the_baseline(make_runnable: MakeRunnable, fake: Toolchain, double: Model) -> None:
    model = replace(double, reference="baseline")
    cases = [make_runnable("stock", "7,7,7", inputs=[ONES]), make_runnable("a", "7,7,7", inputs=[ONES])]
    assert words(check(cases, fake, model)) == {
        "net/stock@cpu": FINITE,
        "net/a@cpu": "net/stock@cpu",
    }


def test_without_onnx_runtime_it_is_the_baseline_unless_the_suite_insists(
    make_runnable: MakeRunnable, fake: Toolchain, double: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    case = make_runnable("stock", "7,7,7", inputs=[ONES])
    assert words(check([case], fake, double)) == {"net/stock@cpu": FINITE}
    (found,) = words(check([case], fake, replace(double, reference="onnxruntime"))).values()
    assert found.endswith("run pip install onnxruntime")


def test_inputs_that_onnx_runtime_refuses_fail_the_case(
    make_runnable: MakeRunnable, fake: Toolchain, double: Model
) -> None:
    (found,) = words(check([make_runnable("stock", "2,2,2", inputs=[ONES, ONES])], fake, double)).values()
    assert found.endswith("double.onnx: the graph takes 1 inputs (x), not 2; correct inputs")


def test_a_real_onnx_model_through_iree_agrees_with_onnx_runtime(
    real_toolchain: Toolchain, double: Model, compile_text: Compile, tmp_path: Path
) -> None:
    artifact = materialize(double, store=tmp_path / "store", toolchain=real_toolchain, limits=LIMITS)
    compiled = compile_text(artifact.mlir.read_text())
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
