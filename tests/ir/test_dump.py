"""A program's IR with the real compiler, as files and as text, and how many of which ops it has at each phase."""

import ast
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

import harness
from harness.errors import CaseError, UsageError
from harness.ir.counts import OpCounts, check_wanted, count_files, select_counts
from harness.ir.dump import LacksPhase, dump_phases, print_ir
from harness.metrics import PHASES
from harness.models.channelled_convolution import Parameters, build
from harness.plugins.halide_schedule import HalideScheduleOptions, transform_library
from harness.process import Limits, run
from harness.toolchain import Toolchain
from tests.fakes.fake_toolchain import make_fake_toolchain
from tests.ir.conftest import HASWELL_FLAGS, LIMITS, WEIGHT, Count, Dump
from tests.programs import program

MATMUL = program("main a:16x32 b:32x8\ne = empty 16x8\nz = fill zero e\nc = matmul a b z\nreturn c")
# The compiler computes the weight by itself, in a program of its own, and keeps its result.
FOLDED = program(
    """
    main a:16x32
    weight:32x8 = | arith.constant dense_resource<weight> : tensor<32x8xf32>
    square = mulf weight weight
    b = math.exp square
    e = empty 16x8
    z = fill zero e
    c = matmul a b z
    return c
    """,
    blob=f'weight: "0x04000000{WEIGHT[: 8 * 32 * 8]}"',
)


def test_every_phase_has_a_file_without_the_weights(dumps: Mapping[str, Path], model: Path) -> None:
    assert tuple(dumps) == PHASES
    assert dumps["start"] == model
    assert (dumps["input"].name, dumps["vm"].name) == ("model.1.input.mlir", "model.12.vm.mlir")
    assert [phase for phase in PHASES if WEIGHT[:64] in dumps[phase].read_text()] == ["start"]
    assert "dense_resource<weight> : tensor<32x8x3x3xf32>" in dumps["input"].read_text()
    assert "dense<1> : vector<2xi64>" in dumps["input"].read_text(), "small constants are not left out"


def test_the_model_may_be_bytecode_of_a_later_phase(
    dumps: Mapping[str, Path], model: Path, dump: Dump, count: Count, real_toolchain: Toolchain, tmp_path: Path
) -> None:
    bytecode = tmp_path / "in.mlirbc"
    command = [str(real_toolchain.iree_compile), str(model), *HASWELL_FLAGS, "--compile-to=input"]
    assert run([*command, "--emit-mlir-bytecode", "-o", str(bytecode)], limits=LIMITS).ok
    flags = (*HASWELL_FLAGS, "--compile-from=input")
    files = dump(bytecode, ["flow", "input"], flags)
    assert files["input"] == bytecode
    assert count(files) == count({phase: dumps[phase] for phase in files})
    assert "linalg.conv" in print_ir(bytecode, toolchain=real_toolchain, limits=LIMITS), "which becomes text"
    with pytest.raises(CaseError, match="enters the compiler at phase 'input', so it has no IR at 'start'; take a la"):
        dump(bytecode, ["start"], flags)


@pytest.mark.parametrize("name", ['@"a/b (c)"', '@"x.6.flow"'])
def test_a_module_may_have_any_name(name: str, dump: Dump, count: Count) -> None:
    counts = count(dump(f"module {name} {{ {MATMUL} }}", ["flow", "input", "bufferized"]))
    ops = [("input", "linalg.matmul"), ("flow", "flow.dispatch"), ("bufferized", "func.func")]
    assert [counts[phase].count(op) for phase, op in ops] == [1, 1, 1]


def test_programs_that_the_compiler_runs_by_itself_are_not_the_model(dump: Dump, count: Count) -> None:
    files = dump(FOLDED, ["bufferized"])
    assert list(files["bufferized"].parent.rglob("*_jit_eval*")), "there was such a program"
    assert "jit_eval" not in files["bufferized"].read_text()
    assert count(files)["bufferized"].count("func.func") == 1


def test_a_dispatch_may_have_a_transform_script(dump: Dump, count: Count, tmp_path: Path) -> None:
    """It is only made to have buffers by the script, and not by the compiler's own pipeline."""
    script = tmp_path / "script.mlir"
    script.write_bytes(transform_library(HalideScheduleOptions(step="tile", vectors=2, lanes=4)).data)
    sizes = Parameters(batch=1, height=2, width=10, channels_in=2, channels_out=8, form="generic")
    flags = (*HASWELL_FLAGS, "--iree-codegen-transform-dialect-library=script.mlir")
    files = dump(str(build(sizes).text), ["bufferized"], flags, files=[script])
    counts = count(files)["bufferized"]
    assert [counts.count(op) for op in ("func.func", "transform.*")] == [1, 0]
    assert "memref<2x10x8xf32" in files["bufferized"].read_text()


EARLIER = "take an earlier phase, or make the case compile"


@pytest.mark.parametrize(
    ("text", "flag", "phase", "message"),
    [
        (MATMUL, "--iree-flow-break-dispatch=@missing:0", "stream",
         "iree-compile exited with status 1 after phase 'dispatch-creation', on its way to phase 'stream': "
         f"Failed to find breaking or tracing target function; {EARLIER}"),
        ("func.func @main( {", "--iree-opt-level=O0", "flow",
         f"iree-compile exited with status 1, on its way to phase 'flow': expected non-function type; {EARLIER}"),
        # It exits with 0, and goes on after the error.
        (MATMUL, "--iree-preprocessing-pass-pipeline=builtin.module(bogus)", "flow",
         "iree-compile printed an error, on its way to phase 'flow': 'bogus' does not refer to a registered pass or "
         f"pass pipeline; {EARLIER}"),
    ],
    ids=["fails at flow", "does not parse", "fails though it exits with 0"],
)  # fmt: skip
def test_a_phase_that_is_not_reached_is_a_failed_case(
    text: str, flag: str, phase: str, message: str, dump: Dump
) -> None:
    with pytest.raises(CaseError) as failed:
        dump(text, ["input", phase], (*HASWELL_FLAGS, flag))
    assert (failed.value.stage, str(failed.value)) == ("ir", message)


NO_SUCH = "--fake-stderr=iree-compile: for the --{} option: Cannot find option named '{}'!"


def test_a_phase_that_the_release_does_not_have_is_named(model: Path, tmp_path: Path) -> None:
    flags = ("--fake-exit=1", NO_SUCH.format("mlir-print-ir-after", "iree-stream-specialize-encodings"))
    fake = make_fake_toolchain(tmp_path / "toolchain")
    with pytest.raises(LacksPhase, match=r"^IREE 0\.0\.0 has no phase 'encodings'; take another$"):
        dump_phases(flags, model, ["encodings", "flow"], toolchain=fake, folder=tmp_path, limits=LIMITS)


@pytest.mark.parametrize("phase", ["start", "bufferized", "vm"])
def test_the_text_has_every_op_and_no_weights(
    phase: str, dumps: Mapping[str, Path], count: Count, real_toolchain: Toolchain, tmp_path: Path
) -> None:
    text = print_ir(dumps[phase], toolchain=real_toolchain, limits=LIMITS)
    assert WEIGHT[:64] not in text
    assert "{-#" not in text
    if phase == "bufferized":
        assert text.count("func.func @main_dispatch_") == 2
    else:
        again = tmp_path / "again.mlir"
        again.write_text(text)
        assert count({phase: dumps[phase]}) == count({phase: again})


def test_what_runs_under_a_toolchains_python_needs_nothing_but_iree(real_toolchain: Toolchain) -> None:
    modules = ", ".join(f"harness.ir.{name}" for name in ("readers", "layouts", "program"))
    code = f"import sys, {modules}; print({{name.partition('.')[0] for name in sys.modules}} - sys.stdlib_module_names)"
    finished = run([*real_toolchain.python_command, "-c", code], cwd=Path(harness.__file__).parents[1], limits=LIMITS)
    assert finished.ok, finished.stderr
    foreign = {name for name in ast.literal_eval(finished.stdout) if not name.startswith("_")}
    assert foreign <= {"harness", "iree", "numpy", "sitecustomize", "usercustomize"}


COUNTS = OpCounts(host={"flow.dispatch": 10, "arith.constant": 3}, executables={"arith.constant": 5, "memref.alloc": 2})


def test_a_pattern_may_have_a_place_and_wildcards() -> None:
    counted = {"flow.dispatch": 10, "arith.constant": 8, "host:arith.constant": 3, "executables:arith.constant": 5,
               "*": 20, "memref.a*": 2, "memref": 0, "mystery.op": 0}  # fmt: skip
    assert select_counts({"flow": COUNTS}, {"flow": list(counted)}) == {
        f"flow/{pattern}": count for pattern, count in counted.items()
    }


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        ({"flwo": ["linalg.*"]}, "there is no phase 'flwo'; name one of start, input, abi, preprocessing, "),
        ({"flow": ["device:linalg.*"]}, "there is no place 'device', as in 'device:linalg.*'; write host:... or "),
    ],
)
def test_an_unknown_phase_or_place_is_refused(wanted: Mapping[str, Sequence[str]], message: str) -> None:
    with pytest.raises(UsageError, match=re.escape(message)):
        check_wanted(wanted)


EXPECTED = {
    "start": {
        "func.func": 1,
        "linalg.conv_2d_nchw_fchw": 1,
        "linalg.*": 6,  # a fill, the convolution, a generic, and each has its linalg.yield
        "tensor.insert_slice": 2,
        "builtin.module": 0,  # the outermost is not counted
    },
    "input": {"util.func": 1, "func.func": 0, "linalg.conv_2d_nchw_fchw": 1, "executables:*": 0},
    "flow": {
        "host:flow.executable": 2,  # what holds an executable is not inside it
        "executables:flow.executable.export": 2,
        "flow.dispatch": 2,
        "flow.tensor.update": 2,
        "linalg.generic": 2,
    },
    "stream": {"stream.cmd.dispatch": 2, "stream.cmd.fill": 0, "flow.*": 0},
    # The convolution's tile does not fit its result's rows, so it is made on the stack and then copied. The dispatch
    # that only copies has buffers earlier.
    "bufferized": {"memref.alloca": 1, "func.func": 2, "host:*": 0},
    "executable-targets": {"linalg.*": 0, "memref.*": 0, "llvm.func": 2, "llvm.alloca": 1},
    "hal": {"hal.executable.binary": 1, "llvm.*": 0},
    "vm": {"vm.module": 1, "hal.*": 0},
}


def test_every_phase_has_its_ops(counts: Mapping[str, OpCounts]) -> None:
    assert tuple(counts) == PHASES
    selected = select_counts(counts, {phase: list(expected) for phase, expected in EXPECTED.items()})
    assert selected == {f"{phase}/{op}": n for phase, expected in EXPECTED.items() for op, n in expected.items()}
    assert {phase for phase, ops in counts.items() if ops.count("memref.alloc*")} == {"bufferized"}


def test_a_counter_that_fails_is_a_failed_case(model: Path, real_toolchain: Toolchain, tmp_path: Path) -> None:
    broken = tmp_path / "flow.mlir"
    broken.write_text("func.func @main( {")
    slow = replace(real_toolchain, python_options=("-c", "import time; time.sleep(60)"))
    for files, toolchain, limits, why in (
        ({"start": model, "flow": broken}, real_toolchain, LIMITS,
         "the IR at phase 'flow' cannot be read back (expected non-function type); leave phases out"),
        ({"start": tmp_path / "gone.mlir"}, real_toolchain, LIMITS,
         "the counter of ops exited with status 1 at start: FileNotFoundError: "),
        ({"start": model}, slow, Limits(seconds=0.5),
         "the counter of ops ran past its limit of 0.5 s at start; give it more with --compile-timeout"),
    ):  # fmt: skip
        with pytest.raises(CaseError, match=re.escape(why)):
            count_files(files, toolchain=toolchain, limits=limits)
