"""Python rewrites between model and compiler: their order, their phases, and all that can go wrong with one."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from iree.compiler import ir

from harness.compile import BuildCache, CompileRequest, cache_key
from harness.compile.program import Program, rewrite_model
from harness.errors import CaseError
from harness.plugins import Applied, PassPipeline, Rewrite
from harness.process import Limits, run
from harness.records.run import Build, PluginEffect
from harness.toolchain import Toolchain
from tests.builders import a_plugin, applied
from tests.compile.real import real_request

SCALE = """
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %scale = arith.constant 3.0 : f32
  %empty = tensor.empty() : tensor<4xf32>
  %y = linalg.generic {
    indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]
  } ins(%x : tensor<4xf32>) outs(%empty : tensor<4xf32>) {
  ^bb0(%in: f32, %out: f32):
    %z = arith.mulf %in, %scale : f32
    linalg.yield %z : f32
  } -> tensor<4xf32>
  return %y : tensor<4xf32>
}
"""
WEIGHTS = """
func.func @main(%x: tensor<1x256xf32>) -> tensor<1x4xf32> {
  %scale = arith.constant 3.0 : f32
  %weights = arith.constant dense_resource<weights> : tensor<256x4xf32>
  %empty = tensor.empty() : tensor<1x4xf32>
  %start = linalg.fill ins(%scale : f32) outs(%empty : tensor<1x4xf32>) -> tensor<1x4xf32>
  %y = linalg.matmul ins(%x, %weights : tensor<1x256xf32>, tensor<256x4xf32>) outs(%start : tensor<1x4xf32>)
    -> tensor<1x4xf32>
  return %y : tensor<1x4xf32>
}
{-# dialect_resources: { builtin: { weights: "0x04000000HEX" } } #-}
"""

Make = Callable[..., CompileRequest]


@pytest.fixture(autouse=True)
def _fakes(monkeypatch: pytest.MonkeyPatch) -> None:
    """The module fake_rewrites can be imported, as if it were installed."""
    monkeypatch.syspath_prepend(str(Path(__file__).parent.parent / "fakes"))


@pytest.fixture
def make(tmp_path: Path, real_toolchain: Toolchain) -> Make:
    """Requests to the installed compiler, as in `make(by("times", factor=2.0), text=SCALE)`."""

    def make_one(*plugins: Applied, text: str = SCALE, toolchain: Toolchain = real_toolchain, **more: Any) -> Any:
        return real_request(tmp_path, toolchain, *plugins, text=text, **more)

    return make_one


def by(function: str, *, phase: str = "input", **options: Any) -> Applied:
    """A plugin of that name, which runs that function of fake_rewrites."""
    plugin = a_plugin(function, Rewrite(function=f"fake_rewrites:{function}", phase=phase, arguments=options))
    return applied(plugin, **options)


def rewritten(request: CompileRequest, folder: Path) -> tuple[Program, str]:
    """What became of the program, and its text."""
    folder.mkdir()
    (folder / "model.mlir").symlink_to(request.model)
    program = rewrite_model(request, folder)
    with ir.Context() as context:
        context.allow_unregistered_dialects = True
        return program, str(ir.Module.parse((folder / "model.mlir").read_bytes()))


def message_of(request: CompileRequest, folder: Path) -> str:
    with pytest.raises(CaseError) as caught:
        rewritten(request, folder)
    assert caught.value.stage == "compile"
    assert "\n" not in str(caught.value)
    return str(caught.value)


def output_of(request: CompileRequest, cache: BuildCache, build: Build, given: str) -> str:
    """What the compiled function makes of an input."""
    assert build.failure is None, build.failure
    command = [
        str(request.toolchain.runtime_tool("iree-run-module")),
        f"--module={cache.module(build)}",
        "--device=local-sync",
        "--function=main",
        f"--input={given}",
    ]
    return run(command).stdout.splitlines()[-1]


def test_rewrites_run_in_the_order_in_which_they_are_named(make: Make, tmp_path: Path) -> None:
    double, add = by("times", factor=2.0), by("plus", term=1.0)
    program, text = rewritten(make(double, add), tmp_path / "one")
    assert "arith.constant 7.000000e+00 : f32" in text
    assert [(one.name, one.matched, one.changed) for one in program.effects] == [("times", 1, True), ("plus", 1, True)]
    assert all(one.wall_ns for one in program.effects)
    assert (program.rewritten, program.flags) == (True, ("--compile-from=input",))
    _, text = rewritten(make(add, double), tmp_path / "other")
    assert "arith.constant 8.000000e+00 : f32" in text


def test_a_rewrite_that_matches_nothing_leaves_the_baselines_own_bytes(make: Make, cache: BuildCache) -> None:
    stock, _ = cache.compile(make())
    inert, _ = cache.compile(make(by("nothing"), by("matched_and_left_alone", phase="flow")))
    assert inert.failure is None
    assert inert.module_sha256 == stock.module_sha256
    assert inert.command == stock.command
    assert not inert.rewritten
    assert cache.program(inert) is None
    assert [(one.name, one.matched, one.changed) for one in inert.effects] == [
        ("nothing", 0, False),
        ("matched_and_left_alone", 3, False),
    ]


def test_without_rewrites_the_program_is_the_models_own(make: Make, tmp_path: Path) -> None:
    program, text = rewritten(make(), tmp_path / "work")
    assert program == Program(flags=(), rewritten=False, effects=(), early=("model.mlir", ()))
    assert "func.func @main" in text


@pytest.mark.parametrize("phase", ["abi", "preprocessing", "global-optimization", "dispatch-creation", "flow"])
def test_a_rewrite_can_stand_at_a_later_phase(make: Make, cache: BuildCache, phase: str) -> None:
    request = make(by("times", phase=phase, factor=2.0))
    build, _ = cache.compile(request)
    assert output_of(request, cache, build, "4xf32=1 2 3 4") == "4xf32=6 12 18 24"
    assert f"--compile-from={phase}" in build.command
    assert build.statistics is not None
    assert build.statistics.dispatches == 1


def test_after_the_phase_stream_there_are_no_scheduling_statistics_any_more(make: Make, cache: BuildCache) -> None:
    request = make(by("times", phase="stream", factor=2.0))
    build, _ = cache.compile(request)
    assert output_of(request, cache, build, "4xf32=1 2 3 4") == "4xf32=6 12 18 24"
    assert build.statistics is None


def test_rewrites_at_several_phases_each_see_what_the_one_before_left(make: Make, cache: BuildCache) -> None:
    request = make(by("times", factor=2.0), by("plus", phase="preprocessing", term=1.0), by("times", phase="flow"))
    build, _ = cache.compile(request)
    assert output_of(request, cache, build, "4xf32=1 2 3 4") == "4xf32=14 28 42 56"


def test_a_change_that_is_followed_by_none_is_kept(make: Make, cache: BuildCache) -> None:
    request = make(by("times", factor=2.0), by("nothing", phase="flow"))
    build, _ = cache.compile(request)
    assert output_of(request, cache, build, "4xf32=1 2 3 4") == "4xf32=6 12 18 24"
    assert [one.changed for one in build.effects] == [True, False]


def test_weights_keep_their_bytes(make: Make, cache: BuildCache) -> None:
    """1,024 numbers of which no two are alike, as a resource beside the program."""
    numbers = b"".join(number.to_bytes(4, "little") for number in range(0x3F000000, 0x3F000000 + 1024))
    text = WEIGHTS.replace("HEX", numbers.hex().upper())
    stock, _ = cache.compile(make(text=text))
    request = make(by("times", factor=2.0), by("times", phase="flow", factor=0.5), text=text)
    build, _ = cache.compile(request)
    given = f"1x256xf32={' '.join(str(number) for number in range(256))}"
    assert output_of(request, cache, build, given) == output_of(request, cache, stock, given)
    once = make(by("times", factor=2.0), text=text)
    build, _ = cache.compile(once)
    program = cache.program(build)
    assert program is not None
    assert numbers in program.read_bytes()


@pytest.mark.parametrize(
    ("function", "message"),
    [
        ("raises", "plugin raises raised KeyError: 'two\\nlines'"),
        ("returns_none", "plugin returns_none returned None, and not how many places it matched"),
        ("denies", "plugin denies changed the module, and says that it matched nothing"),
        ("exits", "plugin exits exited with status 0, but gave no module back"),
        ("aborts", "plugin aborts was ended by SIGABRT: Assertion `it is so' failed."),
    ],
)
def test_a_rewrite_that_goes_wrong_fails_the_case(
    make: Make, tmp_path: Path, cache: BuildCache, function: str, message: str
) -> None:
    build, stderr = cache.compile(make(by(function)))
    assert build.failure is not None
    assert (build.failure.stage, build.failure.message) == ("compile", message)
    assert build.compile_ns is None, "iree-compile itself was not at fault"
    assert build.failure.stderr in stderr
    assert cache.find(build.cache_key, "") is None
    assert not list((tmp_path / "cache" / "scratch").iterdir())


def test_the_traceback_is_kept_for_the_author(make: Make, cache: BuildCache) -> None:
    build, _ = cache.compile(make(by("raises")))
    assert build.failure is not None
    assert "fake_rewrites.py" in build.failure.stderr
    assert build.failure.stderr.count("\n") < 20


def test_a_rewrite_that_uses_too_much_memory_is_stopped(make: Make, tmp_path: Path) -> None:
    request = make(by("hoards"), limits=Limits(seconds=120, memory_bytes=2 << 30))
    assert message_of(request, tmp_path / "work") == (
        "plugin hoards used more than its limit of 2 GiB of memory; give it more with --compile-memory"
    )


def test_a_rewrite_that_never_ends_is_stopped(make: Make, tmp_path: Path, real_toolchain: Toolchain) -> None:
    """The time limit is iree-compile's too, which needs some: so here all of the interpreter hangs."""
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\nexec sleep 600\n")
    python.chmod(0o755)
    request = make(
        by("hangs"), toolchain=replace(real_toolchain, python=python, python_options=()), limits=Limits(seconds=5)
    )
    assert message_of(request, tmp_path / "work") == (
        "plugin hangs ran past its limit of 5 s; give it more with --compile-timeout"
    )


def test_a_toolchain_without_its_interpreter(make: Make, tmp_path: Path, real_toolchain: Toolchain) -> None:
    request = make(by("nothing"), toolchain=replace(real_toolchain, python=tmp_path / "nowhere"))
    assert message_of(request, tmp_path / "work") == (
        "plugin nothing cannot be started (No such file or directory); reinstall the toolchain"
    )


def test_a_program_that_does_not_parse_fails_before_any_rewrite(make: Make, tmp_path: Path) -> None:
    assert message_of(make(by("nothing"), text="func.func @main( {"), tmp_path / "work") == (
        "iree-compile --compile-to=input exited with status 1: expected non-function type"
    )


def test_a_wrong_pipeline_of_an_earlier_plugin_is_told_when_the_compiler_comes_to_it(
    make: Make, tmp_path: Path
) -> None:
    wrong = applied(a_plugin("wrong", PassPipeline(text="builtin.module(util.func(bogus))")))
    message = message_of(make(wrong, by("nothing", phase="flow")), tmp_path / "work")
    assert message == (
        "plugin wrong: iree-compile --compile-to=flow printed an error, though it exited with status 0: "
        "'bogus' does not refer to a registered pass or pass pipeline"
    )


def test_a_second_build_comes_from_the_cache_with_its_effects_and_its_program(make: Make, cache: BuildCache) -> None:
    first, _ = cache.compile(make(by("times")))
    again, _ = cache.compile(make(by("times")))
    assert (first.cached, again.cached) == (False, True)
    assert again.effects == first.effects
    assert again.effects[0].matched == 1
    program = cache.program(again)
    assert program is not None
    program.unlink()
    assert not cache.compile(make(by("times")))[0].cached, "a build without its program is not whole"


def test_other_options_another_phase_or_another_function_are_another_build(make: Make, cache: BuildCache) -> None:
    requests = [
        make(by("times")),
        make(by("times", factor=3.0)),
        make(by("times", phase="flow")),
        make(applied(a_plugin("times", Rewrite(function="fake_rewrites:plus", arguments={})))),
        make(replace(by("times"), sources_sha256="ee" * 32)),
    ]
    assert len({cache_key(request) for request in requests}) == len(requests)


def test_packages_that_are_only_on_the_search_path_are_found(
    make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As with PYTHONPATH: an isolated toolchain does not see it by itself."""
    (tmp_path / "on the path").mkdir()
    (tmp_path / "on the path" / "elsewhere.py").write_text("def fold(module):\n    return 0\n")
    monkeypatch.syspath_prepend(str(tmp_path / "on the path"))
    request = make(applied(a_plugin("fold", Rewrite(function="elsewhere:fold"))))
    isolated = replace(request.toolchain, python=Path(sys.executable), python_options=("-I",))
    program, _ = rewritten(replace(request, toolchain=isolated), tmp_path / "work")
    assert program.effects[0] == replace(
        PluginEffect(name="fold", matched=0, changed=False), wall_ns=program.effects[0].wall_ns
    )
