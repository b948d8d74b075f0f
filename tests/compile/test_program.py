"""Model -> program: rewrites in order at their phases, and all that can go wrong with one."""

from pathlib import Path
from typing import Any

import pytest
from iree.compiler import ir

from harness.compile import CompileRequest
from harness.compile.iree_compile import PRINTED_FILE, rewrite_model
from harness.errors import CaseError
from harness.plugins import (
    Applied,
    PassPipeline,
    Rewrite,
    Step,
)
from harness.process import Limits, run
from harness.records.run import Build, PluginEffect
from tests.builders import CPU_FLAGS, a_plugin, applied
from tests.compile.conftest import RealCompiler
from tests.fakes import fake_rewrites
from tests.programs import program

SCALE = program("main x:4\nscale = constant 3.0\ny = each mulf x scale\nreturn y")
FOUR = "4xf32=1 2 3 4"
RAISED = Path(fake_rewrites.__file__).read_text().split("raise KeyError")[0].count("\n") + 1


@pytest.fixture(autouse=True)
def _fakes(monkeypatch: pytest.MonkeyPatch) -> None:
    """The module fake_rewrites can be imported, as if it were installed."""
    monkeypatch.syspath_prepend(str(Path(__file__).parent.parent / "fakes"))


def by(name: str, *steps: Step) -> Applied:
    return applied(a_plugin(name, *steps))


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
        request = real.request(by("p", step), cpu=(*CPU_FLAGS[:2], f"--iree-llvmcpu-target-cpu={cpu}"))
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
