"""The real iree-compile on a tiny program: facts of the module, equal code, and errors that it keeps to itself."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.compile import BuildCache, CompileRequest
from harness.process import Limits
from harness.records.run import Build
from harness.toolchain import Toolchain
from tests.builders import CPU_FLAGS, make_case

MATMUL = """
func.func @main(%a: tensor<4x8xf32>, %b: tensor<8x4xf32>) -> (tensor<4x4xf32>, tensor<4xi32>, f32) {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<4x4xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<4x4xf32>) -> tensor<4x4xf32>
  %c = linalg.matmul ins(%a, %b : tensor<4x8xf32>, tensor<8x4xf32>) outs(%init : tensor<4x4xf32>) -> tensor<4x4xf32>
  %ints = arith.constant dense<[1, 2, 3, 4]> : tensor<4xi32>
  %scalar = arith.constant 2.5 : f32
  return %c, %ints, %scalar : tensor<4x4xf32>, tensor<4xi32>, f32
}
"""
REWRITTEN = (
    "// The same program, written otherwise.\nmodule {\n"
    + MATMUL.replace("%c", "%product").replace("\n", "\n\n   ")
    + "\n}"
)

Compile = Callable[..., Build]


@pytest.fixture
def compile_text(tmp_path: Path, cache: BuildCache, real_toolchain: Toolchain) -> Compile:
    """Compile a program with the installed compiler."""

    def compile_it(
        text: str = MATMUL, *flags: str, name: str = "model.mlir", cpu: bool = True, function: str = "main"
    ) -> Build:
        model = tmp_path / "programs" / name
        model.parent.mkdir(exist_ok=True)
        model.write_text(text)
        request = CompileRequest(
            case=make_case(compile_flags=(*(CPU_FLAGS if cpu else CPU_FLAGS[:2]), *flags)),
            toolchain=real_toolchain,
            model=model,
            model_sha256=hashlib.sha256(f"{name}{text}".encode()).hexdigest(),
            function=function,
            host_cpu="this one",
            limits=Limits(seconds=120, memory_bytes=8 << 30),
        )
        return cache.compile(request)[0]

    return compile_it


def test_facts_of_a_real_module(compile_text: Compile, cache: BuildCache) -> None:
    build = compile_text()
    assert build.failure is None
    assert build.outputs == 3
    assert build.warnings == ()
    module = cache.module(build).read_bytes()
    assert build.module_sha256 == hashlib.sha256(module).hexdigest()
    assert build.sizes is not None
    assert build.sizes.module_bytes == len(module)
    assert len(build.sizes.dispatch_bytes) == 1
    parts = build.sizes.vm_bytes + build.sizes.constant_bytes + sum(build.sizes.dispatch_bytes.values())
    assert 0.8 * len(module) < parts < len(module), "what remains is the zip's own headers and padding"
    assert build.statistics is not None
    assert (build.statistics.dispatches, build.statistics.executables) == (1, 1)
    assert build.statistics.transient_bytes > 0


@pytest.mark.parametrize(
    ("text", "name"),
    [
        pytest.param(MATMUL, "another-name.mlir", id="another file name"),
        pytest.param(REWRITTEN, "model.mlir", id="comments, blanks and names of values"),
    ],
)
def test_equal_code_gives_equal_bytes(compile_text: Compile, text: str, name: str) -> None:
    first, second = compile_text(), compile_text(text, name=name)
    assert first.cache_key != second.cache_key
    assert not second.cached
    assert first.module_sha256 == second.module_sha256


def test_a_flag_that_does_nothing_here_gives_equal_bytes(compile_text: Compile) -> None:
    assert (
        compile_text().module_sha256
        == compile_text(MATMUL, "--iree-global-opt-enable-early-materialization=false").module_sha256
    )


def test_other_code_gives_other_bytes(compile_text: Compile) -> None:
    assert compile_text().module_sha256 != compile_text(MATMUL.replace("2.5", "3.5")).module_sha256


@pytest.mark.parametrize(
    ("pipeline", "said"),
    [
        ("builtin.module(bogus)", "'bogus' does not refer to a registered pass or pass pipeline"),
        ("builtin.module(bogus", "mismatched parenthesis in pass pipeline `builtin.module(bogus`"),
    ],
)
def test_a_bogus_pipeline_fails_though_the_compiler_exits_with_0(
    compile_text: Compile, pipeline: str, said: str
) -> None:
    build = compile_text(MATMUL, f"--iree-preprocessing-pass-pipeline={pipeline}")
    assert build.failure is not None
    assert build.failure.message == f"iree-compile printed an error, though it exited with status 0: {said}"
    assert build.module_sha256 is None


def test_two_backends_at_once_crash_the_compiler_and_not_the_harness(compile_text: Compile) -> None:
    build = compile_text(MATMUL, "--iree-hal-local-target-device-backends=llvm-cpu,vmvx")
    assert build.failure is not None
    assert build.failure.message.startswith("iree-compile was ended by SIG")
    assert build.failure.message.endswith(": Default target backend not registered: llvm-cpu,vmvx")
    assert "Stack dump" in build.failure.stderr or "runIreecMain" in build.failure.stderr


def test_a_program_that_does_not_parse_says_where_the_reader_stopped(compile_text: Compile) -> None:
    build = compile_text("func.func @main( {")
    assert build.failure is not None
    assert build.failure.message == "iree-compile exited with status 1: expected non-function type"
    assert "model.mlir:1:17" in build.failure.stderr


def test_a_generic_processor_is_a_warning(compile_text: Compile) -> None:
    (warning,) = compile_text(cpu=False).warnings
    assert "generic CPU" in warning


def test_functions_may_have_any_name_and_no_results(compile_text: Compile) -> None:
    name = 'torch-jit export/1 (a) "b"'
    quoted = name.replace('"', '\\"')
    text = f'func.func @"{quoted}"(%a: tensor<4xf32>) {{ return }}\nfunc.func @f(%a: i32) -> i32 {{ return %a : i32 }}'
    assert compile_text(text, function=name).outputs == 0
    assert compile_text(text, function="f").outputs == 1
