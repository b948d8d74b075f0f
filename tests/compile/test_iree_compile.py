"""One compile: what is kept of a success, what counts as a failure, a module's facts, and what rewrites make of it."""

import hashlib
import os
import zipfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from iree.compiler import ir

from harness.compile import CompileRequest
from harness.compile.iree_compile import (
    PRINTED_FILE,
    blamed_plugin,
    compile_command,
    exported_functions,
    module_sizes,
    parse_statistics,
    rewrite_model,
)
from harness.errors import CaseError
from harness.plugins import Applied, Flags, PassPipeline, PdlSpec, Rewrite, Step, written_file
from harness.process import Limits, run
from harness.records.run import Build, Failure, PluginEffect, Sizes, Statistics
from tests.builders import CPU_FLAGS, a_plugin, applied
from tests.compile.conftest import FakeCompiler, RealCompiler, a_request
from tests.fakes import fake_rewrites
from tests.fakes.fake_toolchain import calls, make_fake_toolchain
from tests.programs import program


def by(name: str, *steps: Step) -> Applied:
    return applied(a_plugin(name, *steps))


def failure_of(build: Build) -> Failure:
    """The failure, after a look that nothing else is claimed of the build."""
    assert build.failure is not None
    assert build.failure.stage == "compile"
    assert "\n" not in build.failure.message
    assert (build.module_sha256, build.sizes, build.statistics, build.outputs) == (None, None, None, None)
    return build.failure


def test_a_build_keeps_what_a_report_needs(fake: FakeCompiler) -> None:
    flags = ("--fake-exports=main:3", "--fake-stderr=model.mlir:1:1: warning: a generic CPU")
    build, stderr = fake.compile(*flags)
    assert (build.failure, build.case, build.outputs) == (None, "net/stock@cpu", 3)
    assert (build.warnings, stderr) == (("a generic CPU",), "model.mlir:1:1: warning: a generic CPU\n")
    assert (build.compile_ns or 0) > 0
    assert build.statistics is not None and build.sizes is not None
    assert (build.statistics.dispatches, build.statistics.copies) == (3, 2)
    module = fake.cache.module(build).read_bytes()
    assert (build.sizes.module_bytes, build.module_sha256) == (len(module), hashlib.sha256(module).hexdigest())
    assert list(build.sizes.dispatch_bytes) == ["main_dispatch_0.so"]
    (ran,) = calls(fake.toolchain, "iree-compile")
    assert build.command == ("iree-compile", *ran.arguments) == compile_command(flags)
    assert build.command[:6] == ("iree-compile", "model.mlir", "-o", "module.vmfb", *flags)


STACK = [
    "Please report issues to https://example.org and include the crash backtrace.",
    "Stack dump:",
    "Default target backend not registered: llvm-cpu,vmvx",
    " #0 0x00007f54e8d5a0ab PrintStackTrace",
]
ERRORS = ["model.mlir:3:5: warning: odd", "model.mlir:9:1: error: bad"]
NO_MODULE = "iree-compile exited with status 0, but wrote no module; run its command line by hand"
NO_FUNCTION = "the module exports no function 'main'; name one that it exports: init, run"


@pytest.mark.parametrize(
    ("flag", "printed", "message"),
    [
        ("--fake-exit=1", ERRORS, "iree-compile exited with status 1: bad"),
        ("--fake-exit=1", ["Unknown argument", "See --help"], "iree-compile exited with status 1: Unknown argument"),
        ("--fake-signal=SEGV", STACK, f"iree-compile was ended by SIGSEGV: {STACK[2]}"),
        ("--fake-no-output", [], NO_MODULE),
        ("--fake-exports=run:1,init:0", [], NO_FUNCTION),
    ],
)
def test_a_failure_says_why_in_one_sentence(fake: FakeCompiler, flag: str, printed: list[str], message: str) -> None:
    build, stderr = fake.compile(flag, *(f"--fake-stderr={line}" for line in printed))
    failure = failure_of(build)
    from_the_error_on = [line for line in printed if "warning:" not in line]
    assert (failure.message, failure.stderr.splitlines()) == (message, from_the_error_on)
    assert stderr.splitlines() == printed
    assert build.compile_ns is not None


LITTLE = Limits(seconds=60, memory_bytes=1 << 27)
TOO_MUCH = "used more than its limit of 0.125 GiB of memory; give it more with --compile-memory"


@pytest.mark.parametrize(
    ("flag", "limits", "message"),
    [
        ("--fake-sleep=60", Limits(seconds=1.5), "ran past its limit of 1.5 s; give it more with --compile-timeout"),
        ("--fake-allocate=200", LITTLE, TOO_MUCH),
    ],
)
def test_a_compile_that_takes_too_much_is_stopped(fake: FakeCompiler, flag: str, limits: Limits, message: str) -> None:
    build, _ = fake.compile(flag, "--fake-sleep=60", "--fake-stderr=so far", limits=limits)
    assert failure_of(build).message == f"iree-compile {message}"
    (ran,) = calls(fake.toolchain, "iree-compile")
    with pytest.raises(ProcessLookupError):
        os.kill(ran.pid, 0)


def test_tools_that_are_missing_or_cannot_read_the_module_back(fake: FakeCompiler, tmp_path: Path) -> None:
    for tool in ("iree-compile", "iree-dump-module"):
        build, _ = fake.compile(toolchain=make_fake_toolchain(tmp_path / f"without {tool}", missing=[tool]))
        message = f"{tool} cannot be started (No such file or directory); reinstall the toolchain"
        assert failure_of(build).message == message
    flags = ["--fake-exit=1", "--fake-stderr=c/x/archive.c:106: INVALID_ARGUMENT; no data"]
    build, _ = fake.compile(toolchain=make_fake_toolchain(tmp_path / "broken", always={"iree-dump-module": flags}))
    message = "iree-dump-module cannot read the compiled module: it exited with status 1: INVALID_ARGUMENT; no data"
    assert failure_of(build).message == message


# As IREE 3.6.0 to 3.13.0 write it.
STATISTICS = """\
//   Constants: 1, estimated storage of 64 B (0.00 MiB)
//   Variables: 9, (TBD) 8 B (0.00 MiB)
//  D->H Syncs: 2
// Submissions: 3, using cumulative 128 B (0.00 MiB)
//   DMA Fills: 4
//  DMA Copies: 5
// Collectives: 0
//  Dispatches: 6
// Async Calls: 0
// Executables: 7, 12% reuse
"""
# As IREE 3.13.0 writes it.
DUMP = """\
Imported Functions:
  [  0] hal.ex.file.from_memory(!vm.ref<?>, i64, i32) -> (!vm.ref<?>)

Exported Functions:
  [  0] main(!vm.ref<?>, !vm.ref<?>) -> (!vm.ref<?>, !vm.ref<?>, f32)
        iree.abi.declaration: sync func @main(%input0: tensor<4x8xf32>) -> (%output0: tensor<4x4xf32>, %output2: f32)
  [  1] nothing(!vm.ref<?>) -> ()
  [ 12] torch-jit export/1 (a) "ü"(!vm.ref<?>) -> (!vm.ref<?>)
        iree.abi.declaration: sync func @torch-jit export/1 (a) "ü"(%input0: i32) -> (%output0: tensor<4xbf16>)
  [ 13] __init() -> ()

//===----------------------------------------------------------------------===//
  [  0] section(a) -> (b)
"""


def test_exports_have_their_number_of_results() -> None:
    assert exported_functions(DUMP) == {"main": 3, "nothing": 0, 'torch-jit export/1 (a) "ü"': 1}
    assert exported_functions("Imported Functions:\n  [  0] f() -> ()\n") == {}


def test_statistics_are_read_as_the_compiler_prints_them() -> None:
    counts = {"dispatches": 6, "copies": 5, "fills": 4, "awaits": 2, "submissions": 3, "executables": 7}
    known = Statistics(**counts, transient_bytes=128, constant_bytes=64, variable_bytes=8)
    assert parse_statistics(STATISTICS) == known
    least = STATISTICS.replace("cumulative 128 B", "cumulative minimum 128 B")
    assert parse_statistics(least) == replace(known, transient_bytes=None)
    assert parse_statistics(STATISTICS[:-20]) is parse_statistics("{}") is None


def test_sizes_of_a_module(tmp_path: Path) -> None:
    module = tmp_path / "m.vmfb"
    module.write_bytes(b"0123456789")
    assert module_sizes(module) == Sizes(module_bytes=10, vm_bytes=10, constant_bytes=0, dispatch_bytes={})
    with zipfile.ZipFile(module, "w") as archive:
        for name, size in {"module.fb": 5, "b.so": 3, "_const.bin": 7, "a.so": 2}.items():
            archive.writestr(name, b"x" * size)
    parts = {"vm_bytes": 5, "constant_bytes": 7}
    assert module_sizes(module) == Sizes(
        module_bytes=module.stat().st_size, dispatch_bytes={"a.so": 2, "b.so": 3}, **parts
    )


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
WRITTEN_OTHERWISE = f"// Comments.\nmodule {{\n{MATMUL.replace('%c', '%product')}\n}}".replace("\n", "\n\n   ")
PIPELINE = "--iree-preprocessing-pass-pipeline"
INERT = "--iree-global-opt-enable-early-materialization=false"


def test_facts_of_a_real_module(real: RealCompiler) -> None:
    build = real.build(text=MATMUL)
    assert (build.failure, build.outputs, build.warnings) == (None, 3, ())
    (warning,) = real.build(text=MATMUL, cpu=CPU_FLAGS[:2]).warnings
    assert "generic CPU" in warning
    assert build.sizes is not None and build.statistics is not None
    size = real.cache.module(build).stat().st_size
    parts = build.sizes.vm_bytes + build.sizes.constant_bytes + sum(build.sizes.dispatch_bytes.values())
    assert (build.sizes.module_bytes, len(build.sizes.dispatch_bytes)) == (size, 1)
    assert 0.8 * size < parts < size, "what remains is the zip's own headers and padding"
    assert (build.statistics.dispatches, build.statistics.executables) == (1, 1)
    assert build.statistics.transient_bytes


def test_equal_code_gives_equal_bytes_and_other_code_does_not(real: RealCompiler, tmp_path: Path) -> None:
    copy = tmp_path / "another-name.mlir"
    copy.write_text(MATMUL)
    builds = [
        real.build(text=MATMUL),
        real.build(text=MATMUL, flags=(INERT,)),
        real.build(text=WRITTEN_OTHERWISE),
        real.build(text=MATMUL, model=copy, model_sha256="11" * 32),
    ]
    assert len({build.cache_key for build in builds}) == 4
    assert len({build.module_sha256 for build in builds}) == 1
    assert real.build(text=MATMUL.replace("2.5", "3.5")).module_sha256 != builds[0].module_sha256


UNKNOWN_STEP = "'bogus' does not refer to a registered pass or pass pipeline"


FILE = written_file("spec.mlir", "module {}")
NAME = FILE.unique_name
OTHER = by("other", Flags(compile=("--a",)))
SPEC = by("spec", PdlSpec(file=FILE))
CSE = by("cse", PassPipeline(text="builtin.module(cse)"))
BOGUS = by("bogus", Flags(compile=(f"{PIPELINE}=builtin.module(bogus)",)))
NO_TARGET = "model.mlir:9:1: error: no such target"


@pytest.mark.parametrize(
    ("stderr", "plugins", "blamed"),
    [
        (f"{NAME}:1:10: error: custom op 'nonsense' is unknown", [OTHER, SPEC], "spec"),
        (f"model.mlir:6:1: error: failed to apply\n{NAME}:4:3: note: called from here", [OTHER, SPEC], "spec"),
        # A warning about a file is not what the compile failed with.
        (f"{NAME}:2:3: warning: op argument #0 is not consumed\n{NO_TARGET}", [OTHER, SPEC], None),
        (UNKNOWN_STEP, [CSE, BOGUS], "bogus"),
        (UNKNOWN_STEP, [CSE], None),
        (NO_TARGET, [OTHER, CSE, SPEC], None),
    ],
)
def test_blamed_plugin(stderr: str, plugins: Sequence[Applied], blamed: str | None) -> None:
    assert blamed_plugin(replace(a_request(), plugins=tuple(plugins)), stderr) == blamed


# --- Model -> program: rewrites in order at their phases, and all that can go wrong with one ---

SCALE = program("main x:4\nscale = constant 3.0\ny = each mulf x scale\nreturn y")
FOUR = "4xf32=1 2 3 4"
RAISED = Path(fake_rewrites.__file__).read_text().split("raise KeyError")[0].count("\n") + 1


@pytest.fixture(autouse=True)
def _fakes(monkeypatch: pytest.MonkeyPatch) -> None:
    """The module fake_rewrites can be imported, as if it were installed."""
    monkeypatch.syspath_prepend(str(Path(__file__).parent.parent / "fakes"))


WRONG = by("wrong", PassPipeline(text="builtin.module(util.func(bogus))"))


def rewrite(function: str, *, phase: str = "input", **options: Any) -> Applied:
    """A plugin of that name, which runs that function of fake_rewrites."""
    step = Rewrite(function=f"fake_rewrites:{function}", phase=phase, arguments=options)
    return applied(a_plugin(function, step), **options)


Rewritten = tuple[tuple[str, ...], tuple[PluginEffect, ...], str]


def rewritten(request: CompileRequest, folder: Path) -> Rewritten:
    """What is said of the program, and its text."""
    folder.mkdir()
    (folder / "model.mlir").symlink_to(request.model)
    made = rewrite_model(request, folder)
    with ir.Context() as context:
        context.allow_unregistered_dialects = True
        return *made, str(ir.Module.parse((folder / "model.mlir").read_bytes()))


def output_of(real: RealCompiler, build: Build, argument: str = FOUR) -> str:
    """What the compiled function makes of an input."""
    assert build.failure is None, build.failure
    tool = str(real.toolchain.runtime_tool("iree-run-module"))
    module = f"--module={real.cache.module(build)}"
    return run([tool, module, "--device=local-sync", "--function=main", f"--input={argument}"]).stdout.splitlines()[-1]


def test_rewrites_run_in_the_order_in_which_they_are_named(real: RealCompiler, tmp_path: Path) -> None:
    double, add = rewrite("times", factor=2.0), rewrite("plus", term=1.0)
    flags, effects, text = rewritten(real.request(double, add, text=SCALE), tmp_path / "one")
    assert "arith.constant 7.000000e+00 : f32" in text
    found = [(effect.name, effect.matched, effect.changed) for effect in effects]
    assert found == [("times", 1, True), ("plus", 1, True)]
    assert flags == ("--compile-from=input",)
    *_, text = rewritten(real.request(add, double, text=SCALE), tmp_path / "other")
    assert "arith.constant 8.000000e+00 : f32" in text


def test_rewrites_that_change_nothing_leave_the_baselines_own_bytes(real: RealCompiler) -> None:
    stock = real.build(text=SCALE)
    inert = real.build(rewrite("nothing"), rewrite("matched_and_left_alone", phase="flow"), text=SCALE)
    assert (inert.module_sha256, inert.command) == (stock.module_sha256, stock.command)
    assert (inert.rewritten, real.cache.program(inert)) == (False, None)
    assert [(effect.matched, effect.changed) for effect in inert.effects] == [(0, False), (3, False)]


@pytest.mark.parametrize("phase", ["abi", "flow", "stream"])
def test_a_rewrite_at_a_later_phase_sees_what_earlier_ones_left(real: RealCompiler, phase: str) -> None:
    build = real.build(rewrite("plus"), rewrite("times", phase=phase, factor=2.0), text=SCALE)
    assert output_of(real, build) == "4xf32=8 16 24 32"
    assert f"--compile-from={phase}" in build.command
    # After the phase stream there are no scheduling statistics any more.
    assert (build.statistics and build.statistics.dispatches) == (None if phase == "stream" else 1)


def test_weights_keep_their_bytes(real: RealCompiler) -> None:
    """1,024 numbers of which no two are alike, as a resource beside the program."""
    numbers = b"".join(number.to_bytes(4, "little") for number in range(0x3F000000, 0x3F000000 + 1024))
    lines = """
    main x:1x256
    scale = constant 3.0
    w:256x4 = | arith.constant dense_resource<w> : tensor<256x4xf32>
    e = empty 1x4
    start = fill scale e
    y = matmul x w start
    return y
    """
    text = program(lines, blob=f'w: "0x04000000{numbers.hex().upper()}"')
    twice = rewrite("times", factor=2.0)
    build = real.build(twice, rewrite("times", phase="flow", factor=0.5), text=text)
    argument = f"1x256xf32={' '.join(str(number) for number in range(256))}"
    assert output_of(real, build, argument) == output_of(real, real.build(text=text), argument)
    file = real.cache.program(real.build(twice, text=text))
    assert file is not None
    assert numbers in file.read_bytes()


def test_a_second_build_comes_from_the_cache_with_its_effects_and_its_program(real: RealCompiler) -> None:
    first, again = (real.build(rewrite("plus"), text=SCALE) for _ in range(2))
    assert (again.cached, again.effects) == (True, first.effects)
    file = real.cache.program(again)
    assert file is not None
    file.unlink()
    assert not real.build(rewrite("plus"), text=SCALE).cached, "a build without its program is not whole"


def test_what_rewrites_print_is_kept_with_the_build_and_of_one_that_fails_is_its_log(real: RealCompiler) -> None:
    said = "# plugin talks\none\ntwo\nthree\n"
    build = real.build(rewrite("talks"), rewrite("plus"), rewrite("talks", phase="flow"), text=SCALE)
    assert (real.cache.printed(build), real.cache.printed(real.build(text=SCALE))) == (said * 2, "")

    def log(*plugins: Applied) -> str:
        return real.cache.compile(real.request(rewrite("talks"), *plugins, text=SCALE))[1]

    raised = log(rewrite("prints"), rewrite("raises"))
    assert raised.startswith(f"{said}# plugin prints\n") and raised.splitlines()[-1] == "KeyError: 'two\\nlines'"
    assert log(WRONG).startswith(said) and "'bogus' does not refer" in log(WRONG)
    assert "three\n# iree-compile to flow\n" in log(WRONG, rewrite("nothing", phase="flow"))


@pytest.mark.parametrize(
    ("function", "message"),
    [
        ("raises", f"plugin raises raised KeyError: 'two\\nlines' (fake_rewrites.py:{RAISED})"),
        ("exits", "plugin exits exited with status 0, but gave no module back"),
        ("aborts", "plugin aborts was ended by SIGABRT: Assertion `it is so' failed."),
    ],
)
def test_a_rewrite_that_goes_wrong_fails_the_case(real: RealCompiler, function: str, message: str) -> None:
    build, stderr = real.cache.compile(real.request(rewrite(function), text=SCALE))
    assert build.failure is not None
    assert (build.failure.stage, build.failure.message) == ("compile", message)
    assert build.compile_ns is None, "iree-compile itself was not at fault"
    assert build.failure.stderr in stderr
    assert ("fake_rewrites.py" in build.failure.stderr) == (function == "raises"), "the traceback is for its author"
    assert build.failure.stderr.count("\n") < 20
    assert real.cache.find(build.cache_key, "") is None
    assert not list((real.folder / "cache" / "scratch").iterdir())


def test_what_else_can_go_wrong_on_the_way_to_a_rewrite(real: RealCompiler, tmp_path: Path) -> None:
    little, later = Limits(seconds=120, memory_bytes=1 << 30), rewrite("nothing", phase="flow")
    requests = {
        "plugin hoards used more than its limit of 1 GiB of memory; give it more with --compile-memory": real.request(
            rewrite("hoards"), text=SCALE, limits=little
        ),
        "iree-compile --compile-to=input exited with status 1: expected non-function type": real.request(
            rewrite("nothing"), text="func.func @main( {"
        ),
        "plugin wrong: iree-compile --compile-to=flow printed an error, though it exited with status 0: "
        "'bogus' does not refer to a registered pass or pass pipeline": real.request(WRONG, later, text=SCALE),
    }
    for number, (message, request) in enumerate(requests.items()):
        with pytest.raises(CaseError) as caught:
            rewritten(request, tmp_path / f"work-{number}")
        assert (caught.value.stage, str(caught.value)) == ("compile", message)


def test_a_rewrite_learns_the_processor_that_is_compiled_for_and_not_the_one_that_compiles(
    real: RealCompiler, tmp_path: Path
) -> None:
    step = Rewrite(function="fake_rewrites:tells_target", arguments={}, for_target=True)

    def told(cpu: str) -> str:
        request = real.request(by("p", step), text=SCALE, cpu=(*CPU_FLAGS[:2], f"--iree-llvmcpu-target-cpu={cpu}"))
        folder = tmp_path / cpu
        folder.mkdir()
        (folder / "model.mlir").symlink_to(request.model)
        rewrite_model(request, folder)
        return (folder / PRINTED_FILE).read_text().splitlines()[-1]

    assert told("x86-64-v3") == "x86-64-v3 False x86_64"
    assert told("x86-64-v4") == "x86-64-v4 True x86_64"
    unknown = r"plugin p has to know the target, and iree-compile .* does not say which CPU .*abacus"
    with pytest.raises(CaseError, match=unknown):
        told("abacus")
