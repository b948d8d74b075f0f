"""What each case's outputs are compared with, in which order, and what becomes of the others when one is wrong."""

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

from harness.cache import cache_root
from harness.models.inputs import load_argument, write_arguments
from harness.models.materialize import ModelArtifact, lay_out
from harness.models.model import Input, Model, Tolerance
from harness.peers.peer import PeerModel
from harness.peers.worker import LoadablePeer
from harness.process import Limits
from harness.records.run import Build, Check
from harness.toolchain import Toolchain
from harness.verify import AnyRunnable, References, Runnable, RunnablePeer, check_cases
from harness.verify.cases import kept_outputs, later_problem
from harness.verify.difference import Right
from tests.builders import a_model, a_peer, make_artifact, make_case
from tests.fakes.fake_toolchain import calls, make_fake_toolchain

LIMITS = Limits(seconds=60)
MakeRunnable = Callable[..., Runnable]
Evaluated = Callable[[ModelArtifact], Right | str]


@pytest.fixture
def make_runnable(tmp_path: Path, fake: Toolchain) -> MakeRunnable:
    """Cases that give the values they are told to, as in `make_runnable("net/stock@gpu", "1,2,3")`."""
    numbers = itertools.count()

    def make(name: str, *values: str, inputs: Sequence[Input] = (), flags: Sequence[str] = ()) -> Runnable:
        model, _, rest = name.rpartition("/")
        variant, _, device = rest.partition("@")
        run_flags = [*(f"--fake-values={text}" for text in values), *flags]
        case = make_case(variant, device=device or "cpu", model=model or "net", run_flags=run_flags)
        mlir = tmp_path / "model.mlir"
        mlir.touch()
        artifact = make_artifact(mlir, inputs=inputs)
        return Runnable(
            case=case,
            build=Build(case=case.name, command=(), cache_key="", outputs=len(values)),
            artifact=artifact,
            folder=lay_out(tmp_path / f"bench{next(numbers)}" / case.name, tmp_path / "none", artifact),
            toolchain=fake,
            cpus=None,
        )

    return make


def checking(
    cases: Sequence[AnyRunnable],
    models: Sequence[Model],
    evaluated: Evaluated = lambda _: "it is scripted",
    on_start: Callable[[str], None] = lambda _: None,
) -> Iterator[Check]:
    """Checks by an evaluator that says what it is told."""
    by_name = {model.name: model for model in models}
    made = References(models=by_name, compile_limits=LIMITS, call_limits=LIMITS)
    with (
        patch("harness.verify.reference.evaluated", lambda artifact, *_: evaluated(artifact)),
        patch("harness.verify.reference._interpreted", lambda *_: "and no interpreter"),
    ):
        yield from check_cases(cases, made, LIMITS, on_start, cache_root())


def check(
    cases: Sequence[AnyRunnable], *models: Model, right: Right | None = None, evaluated: Evaluated | None = None
) -> dict[str, Check]:
    """All checks by case name, after a look that they come in the order of the cases."""
    models = models or (a_model(),)
    onnx = {model.name: model.onnx for model in models}
    cases = [replace(case, artifact=replace(case.artifact, onnx=onnx[case.case.model])) for case in cases]
    checks = list(checking(cases, models, evaluated or (lambda _: right or "it is scripted")))
    assert [check.case for check in checks] == [case.case.name for case in cases]
    for check in checks:
        assert check.failure is None or (check.failure.stage == "verify" and "\n" not in check.failure.message)
    return {check.case: check for check in checks}


def words(checks: dict[str, Check]) -> dict[str, str]:
    """What each case was compared with, or what is wrong with it."""
    return {name: check.failure.message if check.failure else check.against for name, check in checks.items()}


def right_values(*values: float, allowed: float = 0.0, **fields: Any) -> Right:
    """What the evaluator says of one output."""
    output = np.array(values, np.float32)
    return Right(
        **{"source": "the reference", "outputs": [output], "allowed": [np.full(len(values), allowed)], **fields}
    )


FINITE = "itself: its values are finite"
ODD = "its output 1 has 2 NaN or infinite values of 3, and no reference says that they are right; give expected files"


def wrong(ours: float, right: float, source: str, size: int = 2) -> str:
    """Of one output of so many values, the last of which is wrong."""
    differs = f"its output 0 differs in 1 of {size} values, worst at [{size - 1}]"
    return f"{differs}: {ours:g} where {right:g} is right, compared with {source}"


# --- Without a reference: against the baseline ---


CRASH = ["--fake-signal=ABRT", "--fake-stderr=an assertion"]
CASES = {
    "net/stock@cpu": ("1,2", FINITE),
    "net/off@cpu": ("1,3", wrong(3, 2, "net/stock@cpu")),
    "net/more@cpu": ("1,2 3", "its outputs are 2 where 1 are right, compared with net/stock@cpu"),
    "net/crash@cpu": ("1,2 crash", "iree-run-module was ended by SIGABRT: an assertion"),
    "net/stock@gpu": ("1,2.00001", "net/stock@cpu"),
    "net/a@gpu": ("1,2.00001", "net/stock@gpu"),
    "net/a@wrong": ("1,7", wrong(7, 2, "net/stock@cpu")),
    # A baseline that fails leaves its variants to themselves.
    "two/stock@cpu": ("1 crash", "iree-run-module was ended by SIGABRT: an assertion"),
    "two/a@cpu": ("1", FINITE),
    "odd/stock@cpu": ("1 nan,inf,1", ODD),
    "odd/a@cpu": ("1 nan,inf,1", ODD),
}


def test_a_case_is_compared_with_the_baseline_of_its_model_if_it_can_on_its_device(make_runnable: MakeRunnable) -> None:
    made = [
        make_runnable(name, *values.removesuffix(" crash").split(), flags=CRASH if "crash" in values else ())
        for name, (values, _) in CASES.items()
    ]
    checks = check(made, *(a_model(name) for name in ("net", "two", "odd")))
    assert words(checks) == {name: expected for name, (_, expected) in CASES.items()}
    mismatches = [name for name, check in checks.items() if check.failure and check.failure.mismatch]
    assert mismatches == ["net/off@cpu", "net/more@cpu", "net/a@wrong"]
    assert (checks["net/off@cpu"].max_absolute, checks["net/off@cpu"].max_relative) == (1.0, 0.5)
    assert checks["net/stock@cpu"].max_absolute is None


def test_another_releases_case_runs_in_its_own_runtime(
    make_runnable: MakeRunnable, fake: Toolchain, tmp_path: Path
) -> None:
    other, later = make_fake_toolchain(tmp_path / "other"), make_runnable("later", "1,2")
    later = replace(later, case=replace(later.case, toolchain="2"), toolchain=other)
    assert words(check([make_runnable("stock", "1,2"), later]))["net/later@cpu"] == "net/stock@cpu"
    assert (len(calls(fake)), len(calls(other))) == (1, 1)


def test_devices_that_are_not_the_programs_fail_the_case(make_runnable: MakeRunnable, fake: Toolchain) -> None:
    runnable = make_runnable("stock", "1")
    module = runnable.folder / "module.vmfb"
    module.unlink()
    module.write_bytes(b'HAL device `d` not found or unavailable: #hal.device.target<"vulkan", []>')
    (message,) = words(check([runnable])).values()
    assert message == "the program needs a device d (vulkan[0]), and uri has none; add one to uri"
    assert calls(fake) == []


# --- Against the reference ---


def test_each_case_is_held_against_the_reference_by_itself(make_runnable: MakeRunnable) -> None:
    cases = [make_runnable("stock", "1,2"), make_runnable("near", "1,3.0001"), make_runnable("same", "1,3")]
    checks = check(cases, right=right_values(1, 3, allowed=1e-3))
    worst = "its output 0 differs in 1 of 2 values, worst at [1]: 2 where 3 is right"
    assert words(checks) == {
        "net/stock@cpu": f"{worst} (6e+03 spreads of its rounding; 6 are allowed), compared with the reference",
        "net/near@cpu": "the reference",
        "net/same@cpu": "the reference",
    }
    assert checks["net/near@cpu"].spreads == pytest.approx(0.6, rel=0.01)
    kept = cache_root() / checks["net/stock@cpu"].reproducer
    assert [np.load(kept / f"{name}0.npy").tolist() for name in ("refused", "right")] == [[1, 2], [1, 3]]
    commands = (kept / "reproduce.sh").read_text()
    assert f"# {worst}" in commands
    assert "iree-run-module --module=module.vmfb" in commands


def test_what_judges_beside_the_reference_has_the_last_word(make_runnable: MakeRunnable, tmp_path: Path) -> None:
    np.save(tmp_path / "expected.npy", np.array([1, 3], np.float32))
    model, right = a_model(expected=(tmp_path / "expected.npy",)), right_values(1, 2)
    (message,) = words(check([make_runnable("stock", "1,2")], model, right=right)).values()
    doubted = "the reference agrees with it, so expected files are to be doubted"
    assert message == f"{wrong(2, 3, 'expected files')}; {doubted}"
    item = make_runnable("torch", "1,2")
    item.artifact.mlir.write_text("torch.constant.int 1")
    (message,) = words(check([item], model, right=right)).values()
    assert message.endswith("so either expected files or IREE's conversion of the model is to be doubted")
    (agreeing,) = check([make_runnable("agreeing", "1,3")], model, right=right_values(1, 3)).values()
    assert agreeing.also_against == "expected files"


def test_what_the_program_leaves_open_an_expected_file_decides(make_runnable: MakeRunnable, tmp_path: Path) -> None:
    np.save(tmp_path / "expected.npy", np.array([1, 3], np.float32))
    item, right = make_runnable("stock", "1,2"), right_values(1, 9, allowed=np.inf)
    (judged,) = check([item], a_model(expected=(tmp_path / "expected.npy",)), right=right).values()
    assert judged.failure is not None
    (alone,) = check([item], right=right).values()
    assert alone.failure is None
    assert alone.note.startswith("not judged: 2 of 2 values of output 0")


def test_the_models_own_tolerance_decides_and_what_is_not_to_be_checked_is_held_against_nothing(
    make_runnable: MakeRunnable,
) -> None:
    cases = [make_runnable("stock", "100"), make_runnable("near", "101")]
    loose = a_model(tolerance=Tolerance(relative=0.02))
    unchecked = replace(a_model(), check="none", why="a random one")
    strict, judged, none = (check(cases, model)["net/near@cpu"] for model in (a_model(), loose, unchecked))
    assert [found.failure is None for found in (strict, judged, none)] == [False, True, True]
    assert (none.against, none.no_second_opinion) == ("nothing", 'the suite says check = "none": a random one')


# --- Later calls, and other inputs ---


def test_right_outputs_are_kept_for_later_calls_and_other_runs(make_runnable: MakeRunnable, tmp_path: Path) -> None:
    checks = check([make_runnable("stock", "1,2"), make_runnable("off", "1,3"), make_runnable("same", "1,2")])
    stock = checks["net/stock@cpu"]
    assert stock.outputs == checks["net/same@cpu"].outputs
    assert checks["net/off@cpu"].outputs == ()
    (kept,) = kept_outputs(stock.outputs, cache_root()) or []
    assert kept.tolist() == [1, 2]
    assert kept_outputs(stock.outputs, tmp_path) is None

    later = tmp_path / "later.npy"
    np.save(later, np.array([1, 2.00001], np.float32))
    assert later_problem(stock, [later], cache_root()) is None
    np.save(later, np.array([1, 3], np.float32))
    failure = later_problem(stock, [later], cache_root())
    assert failure is not None and failure.mismatch
    assert failure.message == (
        "a later call in one process gives other outputs than the first: output 0 differs in 1 of 2 values, worst at "
        "[1]: 3 where 2 is the first call's"
    )
    keeping = right_values(1, 2, keeps_state=True)
    (found,) = check([make_runnable("stock", "1,2")], right=keeping).values()
    assert "the outputs of the first were checked" in found.note
    assert later_problem(found, [later], cache_root()) is None


RANDOM = Input(shape=(3,), seed=7)
OTHERWISE = "right with the suite's inputs; with other random values of them its output 0 differs in"


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """However busy the machine is, each call counts as quick."""
    monkeypatch.setattr("harness.verify.cases._QUICK_S", 60.0)
    monkeypatch.setattr("harness.verify.cases._QUICK_PEER_S", 60.0)


@pytest.mark.usefixtures("patient")
@pytest.mark.parametrize(("fill", "finds"), [("random", True), ("constant", False)])
def test_an_answer_that_is_folded_is_wrong_for_other_random_inputs(
    make_runnable: MakeRunnable, tmp_path: Path, fill: Any, finds: bool
) -> None:
    def doubled(artifact: ModelArtifact) -> Right:
        outputs = [2 * load_argument(artifact.arguments[0])]
        return Right(source="2 x", outputs=outputs, allowed=[np.zeros(3)])

    inputs = [RANDOM, replace(RANDOM, fill=fill)]
    arguments = write_arguments(inputs, tmp_path / "first")
    folded = ",".join(str(value) for value in (2 * load_argument(arguments[0])).tolist())
    stock = make_runnable("stock", folded, inputs=inputs)
    stock = replace(stock, artifact=replace(stock.artifact, arguments=arguments))
    (found,) = check([stock], evaluated=doubled).values()
    assert (found.failure is not None and found.failure.mismatch) == finds
    (message,) = words({"": found}).values()
    assert (message.startswith(OTHERWISE) and message.endswith("compared with 2 x")) == finds


@pytest.mark.usefixtures("patient")
def test_a_peer_meets_other_inputs_too(make_runnable: MakeRunnable, monkeypatch: pytest.MonkeyPatch) -> None:
    stock = make_runnable("stock", "1,2,3", inputs=[RANDOM])
    arguments = stock.artifact.arguments
    loadable = LoadablePeer(
        name="net/onnxruntime@cpu",
        peer=a_peer(),
        model=PeerModel(name="net", builder=None, inputs=()),
        arguments=arguments,
        threads=1,
        cache=stock.folder,
    )
    case = replace(stock.case, name=loadable.name, variant="onnxruntime", baseline=False, peer="onnxruntime")
    asked = []

    def folded(self: RunnablePeer, _: Limits) -> list[Any]:
        asked.append(self.loadable.arguments)
        return [np.array([1, 2, 3 if self.loadable.arguments == arguments else 4], np.float32)]

    monkeypatch.setattr(RunnablePeer, "outputs", folded)
    peer = RunnablePeer(case=case, artifact=stock.artifact, loadable=loadable, cpus=None)
    assert words(check([stock, peer]))[loadable.name].startswith(f"{OTHERWISE} 1")
    assert len(asked) == 2 and asked[0] != asked[1]


# --- Expected files and ONNX Runtime ---


def test_expected_files_that_cannot_be_read_fail_the_models_cases(make_runnable: MakeRunnable, tmp_path: Path) -> None:
    path = tmp_path / "expected.npy"
    path.write_bytes(b"\x93NUMPY\x01\x00\x06\x00{(((((")
    cases = [make_runnable(name, "1") for name in ("stock", "a", "other/stock")]
    message = f"{path}: this expected file is no whole .npy file (expected.npy); write it again"
    found = words(check(cases, a_model(expected=(path,)), a_model("other")))
    assert list(found.values()) == [message, message, FINITE]


def test_an_onnx_model_is_compared_with_onnx_runtime(
    make_runnable: MakeRunnable, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("harness.verify.reference.run_onnx", lambda _, inputs: [2 * inputs[0]])
    double = a_model(onnx=Path("double.onnx"))

    def found(model: Model, *values: str, version: str | None = "1.31") -> list[str]:
        monkeypatch.setattr("harness.verify.reference.onnxruntime_version", lambda: version)
        ones = Input(shape=(3,), fill="constant", value=1.0)
        cases = [make_runnable(name, text, inputs=[ones]) for name, text in zip(("stock", "a"), values, strict=False)]
        return list(words(check(cases, model)).values())

    source = "ONNX Runtime 1.31"
    assert found(double, "2,2,2", "2,2,1") == [source, wrong(1, 2, source, 3)]
    assert found(replace(double, reference="baseline"), "7,7,7", "7,7,7") == [FINITE, "net/stock@cpu"]
    # Without ONNX Runtime it is the baseline.
    assert found(double, "7,7,7", version=None) == [FINITE]
    insisting = replace(double, reference="onnxruntime")
    assert found(insisting, "7,7,7", version=None) != [FINITE], "the suite insists"
    without = 'reference = "onnxruntime": the model has no ONNX form; leave reference out'
    assert found(replace(insisting, onnx=None), "2,2,2") == [without]
