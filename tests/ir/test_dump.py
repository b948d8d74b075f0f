"""The files of a program's IR, with the real compiler: what is in them, and what is left out."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from harness.errors import CaseError, UsageError
from harness.ir import count_files, dump_phases
from harness.metrics import PHASES
from harness.process import Limits, run
from harness.toolchain import Toolchain
from tests.fakes.fake_toolchain import make_fake_toolchain
from tests.ir.programs import HASWELL_FLAGS, LIMITS, WEIGHT

MATMUL = """
func.func @main(%a: tensor<16x32xf32>, %b: tensor<32x8xf32>) -> tensor<16x8xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<16x8xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<16x8xf32>) -> tensor<16x8xf32>
  %c = linalg.matmul ins(%a, %b : tensor<16x32xf32>, tensor<32x8xf32>)
    outs(%init : tensor<16x8xf32>) -> tensor<16x8xf32>
  return %c : tensor<16x8xf32>
}
"""
CONSTANT_WEIGHT = """) -> tensor<16x8xf32> {
  %weight = arith.constant dense_resource<weight> : tensor<32x8xf32>
  %square = arith.mulf %weight, %weight : tensor<32x8xf32>
  %b = math.exp %square : tensor<32x8xf32>"""
# The compiler computes the weight by itself, in a program of its own, and keeps its result.
FOLDED = f"""
{MATMUL.replace(", %b: tensor<32x8xf32>) -> tensor<16x8xf32> {", CONSTANT_WEIGHT)}
{{-#
  dialect_resources: {{ builtin: {{ weight: "0x04000000{WEIGHT[: 8 * 32 * 8]}" }} }}
#-}}
"""
# A dispatch with a matmul is only made to have buffers, by a script and not by the compiler's own pipeline.
SCRIPT = """
module attributes {transform.with_named_sequence} {
  transform.named_sequence @codegen(%dispatch: !transform.any_op {transform.consumed}) {
    transform.iree.eliminate_empty_tensors %dispatch : (!transform.any_op) -> ()
    %with_buffers = transform.iree.bufferize %dispatch : (!transform.any_op) -> !transform.any_op
    %function = transform.structured.match ops{["func.func"]} in %with_buffers
      : (!transform.any_op) -> !transform.any_op
    %done = transform.param.constant #iree_codegen.translation_info<pipeline = #iree_codegen.no_pipeline>
      -> !transform.any_param
    transform.annotate %function "translation_info" = %done : !transform.any_op, !transform.any_param
    transform.yield
  }
  transform.named_sequence @is_matmul(%op: !transform.any_op {transform.readonly}) -> !transform.any_op {
    transform.match.operation_name %op ["linalg.matmul"] : !transform.any_op
    transform.yield %op : !transform.any_op
  }
  transform.named_sequence @use_script(%op: !transform.any_op {transform.readonly}) {
    %function = "transform.get_parent_op"(%op) <{op_name = "func.func"}> : (!transform.any_op) -> !transform.any_op
    %info = transform.param.constant #iree_codegen.translation_info<
      pipeline = #iree_codegen.transform_dialect_codegen codegen_spec = @codegen> -> !transform.any_param
    transform.annotate %function "translation_info" = %info : !transform.any_op, !transform.any_param
    transform.yield
  }
  transform.named_sequence @__kernel_config(%variant: !transform.any_op {transform.consumed}) {
    transform.foreach_match in %variant @is_matmul -> @use_script : (!transform.any_op) -> !transform.any_op
    transform.yield
  }
}
"""


def _written(text: str, folder: Path) -> Path:
    folder.mkdir()
    file = folder / "net.mlir"
    file.write_text(text)
    return file


def test_every_phase_has_a_file(dumps: Mapping[str, Path], model: Path) -> None:
    assert tuple(dumps) == PHASES
    assert dumps["start"] == model
    assert dumps["input"].name == "model.1.input.mlir"
    assert dumps["vm"].name == "model.12.vm.mlir"


def test_weights_are_left_out_and_small_constants_are_not(dumps: Mapping[str, Path]) -> None:
    assert WEIGHT[:64] in dumps["start"].read_text()
    for phase in PHASES[1:]:
        assert WEIGHT[:64] not in dumps[phase].read_text(), phase
    assert "dense_resource<weight> : tensor<32x8x3x3xf32>" in dumps["input"].read_text()
    assert "dense<1> : vector<2xi64>" in dumps["input"].read_text()


def test_the_model_may_be_bytecode_of_a_later_phase(
    dumps: Mapping[str, Path], model: Path, real_toolchain: Toolchain, tmp_path: Path
) -> None:
    command = [str(real_toolchain.iree_compile), str(model), *HASWELL_FLAGS, "--compile-to=input"]
    assert run([*command, "--emit-mlir-bytecode", "-o", str(tmp_path / "in.mlirbc")], limits=LIMITS).ok
    flags = (*HASWELL_FLAGS, "--compile-from=input")
    files = dump_phases(
        flags, tmp_path / "in.mlirbc", ["flow", "input"], toolchain=real_toolchain, folder=tmp_path, limits=LIMITS
    )
    assert files["input"] == tmp_path / "in.mlirbc"
    counts = count_files(files, toolchain=real_toolchain, limits=LIMITS)
    assert counts == count_files({phase: dumps[phase] for phase in files}, toolchain=real_toolchain, limits=LIMITS)
    with pytest.raises(CaseError) as failed:
        dump_phases(flags, tmp_path / "in.mlirbc", ["start"], toolchain=real_toolchain, folder=tmp_path, limits=LIMITS)
    assert str(failed.value) == (
        "the model enters the compiler at phase 'input', so it has no IR at 'start'; take a later phase"
    )


@pytest.mark.parametrize("name", ["@net", '@"a/b (c)"', '@"x.6.flow"'])
def test_a_module_may_have_any_name(name: str, real_toolchain: Toolchain, tmp_path: Path) -> None:
    model = _written(f"module {name} {{ {MATMUL} }}", tmp_path / "program")
    phases = ["flow", "input", "bufferized"]
    files = dump_phases(HASWELL_FLAGS, model, phases, toolchain=real_toolchain, folder=tmp_path, limits=LIMITS)
    counts = count_files(files, toolchain=real_toolchain, limits=LIMITS)
    assert counts["input"].count("linalg.matmul") == 1
    assert counts["flow"].count("flow.dispatch") == 1
    assert counts["bufferized"].count("func.func") == 1


def test_programs_that_the_compiler_runs_by_itself_are_not_the_model(real_toolchain: Toolchain, tmp_path: Path) -> None:
    model = _written(FOLDED, tmp_path / "program")
    files = dump_phases(HASWELL_FLAGS, model, ["bufferized"], toolchain=real_toolchain, folder=tmp_path, limits=LIMITS)
    assert list(tmp_path.rglob("*_jit_eval*")), "there was such a program"
    assert "jit_eval" not in files["bufferized"].read_text()
    counts = count_files(files, toolchain=real_toolchain, limits=LIMITS)
    assert counts["bufferized"].count("func.func") == 1


def test_a_dispatch_may_have_a_transform_script(real_toolchain: Toolchain, tmp_path: Path) -> None:
    model = _written(MATMUL, tmp_path / "program")
    script = model.with_name("script.mlir")
    script.write_text(SCRIPT)
    flags = (*HASWELL_FLAGS, "--iree-codegen-transform-dialect-library=script.mlir@__kernel_config")
    files = dump_phases(
        flags, model, ["bufferized"], toolchain=real_toolchain, folder=tmp_path, limits=LIMITS, files=[script]
    )
    counts = count_files(files, toolchain=real_toolchain, limits=LIMITS)["bufferized"]
    assert counts.count("func.func") == counts.count("linalg.matmul") == 1
    assert counts.count("transform.*") == 0
    assert "memref<16x8xf32" in files["bufferized"].read_text()


@pytest.mark.parametrize(
    ("text", "flags", "phase", "said"),
    [
        pytest.param(
            MATMUL,
            (*HASWELL_FLAGS, "--iree-flow-break-dispatch=@missing:0"),
            "stream",
            "iree-compile exited with status 1 after phase 'dispatch-creation', on its way to phase 'stream': "
            "Failed to find breaking or tracing target function; take an earlier phase, or make the case compile",
            id="fails at flow",
        ),
        pytest.param(
            "func.func @main( {",
            HASWELL_FLAGS,
            "flow",
            "iree-compile exited with status 1, on its way to phase 'flow': expected non-function type; "
            "take an earlier phase, or make the case compile",
            id="does not parse",
        ),
        pytest.param(
            MATMUL,
            (*HASWELL_FLAGS, "--iree-preprocessing-pass-pipeline=builtin.module(bogus)"),
            "flow",
            "iree-compile printed an error, on its way to phase 'flow': 'bogus' does not refer to a registered pass or "
            "pass pipeline; take an earlier phase, or make the case compile",
            id="fails though it exits with 0",
        ),
        pytest.param(
            MATMUL.replace("@main", f"@{'f' * 250}"),
            HASWELL_FLAGS,
            "bufferized",
            "the IR of a dispatch cannot be written (File name too long); give the model's function a short name",
            id="a name too long for a file",
        ),
    ],
)
def test_a_phase_that_is_not_reached_is_a_failed_case(
    text: str, flags: tuple[str, ...], phase: str, said: str, real_toolchain: Toolchain, tmp_path: Path
) -> None:
    model = _written(text, tmp_path / "program")
    with pytest.raises(CaseError) as failed:
        dump_phases(flags, model, ["input", phase], toolchain=real_toolchain, folder=tmp_path, limits=LIMITS)
    assert failed.value.stage == "ir"
    assert str(failed.value) == said


def test_phases_before_a_failure_can_be_had(real_toolchain: Toolchain, tmp_path: Path) -> None:
    model = _written(MATMUL, tmp_path / "program")
    flags = (*HASWELL_FLAGS, "--iree-flow-break-dispatch=@missing:0")
    phases = ["dispatch-creation"]
    assert dump_phases(flags, model, phases, toolchain=real_toolchain, folder=tmp_path, limits=LIMITS).keys() == {
        "dispatch-creation"
    }


@pytest.mark.parametrize(
    ("flag", "limits", "said"),
    [
        (
            "--fake-sleep=60",
            Limits(seconds=0.5),
            "ran past its limit of 0.5 s, on its way to phase 'flow'; give it more with --compile-timeout",
        ),
        (
            "--fake-allocate=500",
            Limits(memory_bytes=200 << 20),
            "used more than its limit of 0.1953 GiB of memory, on its way to phase 'flow'; "
            "give it more with --compile-memory",
        ),
        (
            "--fake-signal=ABRT",
            LIMITS,
            "was ended by SIGABRT, on its way to phase 'flow'; take an earlier phase, or make the case compile",
        ),
        ("--fake-exit=0", LIMITS, "wrote no IR at phase 'flow'; run its command line by hand"),
    ],
    ids=["time", "memory", "crash", "no output"],
)
def test_how_a_compiler_ends_is_told(flag: str, limits: Limits, said: str, model: Path, tmp_path: Path) -> None:
    fake = make_fake_toolchain(tmp_path / "toolchain")
    flags = (flag, "--fake-sleep=60") if "allocate" in flag else (flag,)
    with pytest.raises(CaseError) as failed:
        dump_phases(flags, model, ["flow"], toolchain=fake, folder=tmp_path, limits=limits)
    assert str(failed.value) == f"iree-compile {said}"


def test_a_compiler_that_is_gone_is_a_failed_case(model: Path, tmp_path: Path) -> None:
    gone = make_fake_toolchain(tmp_path / "toolchain", missing=["iree-compile"])
    with pytest.raises(CaseError) as failed:
        dump_phases((), model, ["flow"], toolchain=gone, folder=tmp_path, limits=LIMITS)
    assert str(failed.value) == ("iree-compile cannot be started (No such file or directory); reinstall the toolchain")


def test_an_unknown_phase_is_refused(model: Path, real_toolchain: Toolchain, tmp_path: Path) -> None:
    with pytest.raises(UsageError) as refused:
        dump_phases(HASWELL_FLAGS, model, ["flwo"], toolchain=real_toolchain, folder=tmp_path, limits=LIMITS)
    assert str(refused.value).startswith("there is no phase 'flwo'; name one of start, input, abi")
