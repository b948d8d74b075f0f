"""Model -> program: rewrites in order at their phases, all that can go wrong with one, and what flags changed."""

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from iree.compiler import ir

from harness.compile import CompileRequest
from harness.compile.program import PRINTED_FILE, Program, rewrite_model
from harness.errors import CaseError
from harness.plugins import (
    Applied,
    Flags,
    PassPipeline,
    PdlSpec,
    Rewrite,
    Step,
    TransformLibrary,
    TransformSpec,
    TuningSpec,
    written_file,
)
from harness.process import Limits, run
from harness.records.run import Build, PluginEffect
from tests.builders import CPU_FLAGS, PRODUCT, a_plugin, applied, example_file
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


def rewritten(request: CompileRequest, folder: Path) -> tuple[Program, str]:
    """What became of the program, and its text."""
    folder.mkdir()
    (folder / "model.mlir").symlink_to(request.model)
    made = rewrite_model(request, folder)
    with ir.Context() as context:
        context.allow_unregistered_dialects = True
        return made, str(ir.Module.parse((folder / "model.mlir").read_bytes()))


def output_of(real: RealCompiler, build: Build, argument: str = FOUR) -> str:
    """What the compiled function makes of an input."""
    assert build.failure is None, build.failure
    tool = str(real.toolchain.runtime_tool("iree-run-module"))
    module = f"--module={real.cache.module(build)}"
    return run([tool, module, "--device=local-sync", "--function=main", f"--input={argument}"]).stdout.splitlines()[-1]


# ----------------------------------------------------------------------------------------------------------- rewrites


def test_rewrites_run_in_the_order_in_which_they_are_named(real: RealCompiler, tmp_path: Path) -> None:
    double, add = rewrite("times", factor=2.0), rewrite("plus", term=1.0)
    made, text = rewritten(real.request(double, add, text=SCALE), tmp_path / "one")
    assert "arith.constant 7.000000e+00 : f32" in text
    assert [(effect.name, effect.matched, effect.changed) for effect in made.effects] == [
        ("times", 1, True),
        ("plus", 1, True),
    ]
    assert all(effect.wall_ns for effect in made.effects)
    assert (made.rewritten, made.flags) == (True, ("--compile-from=input",))
    _, text = rewritten(real.request(add, double, text=SCALE), tmp_path / "other")
    assert "arith.constant 8.000000e+00 : f32" in text
    made, _ = rewritten(real.request(text=SCALE), tmp_path / "none")
    assert made == Program(flags=(), rewritten=False, effects=(), early=("model.mlir", ()))


def test_a_rewrite_that_changes_nothing_leaves_the_baselines_own_bytes(real: RealCompiler) -> None:
    stock = real.build(text=SCALE)
    inert = real.build(rewrite("nothing"), rewrite("matched_and_left_alone", phase="flow"), text=SCALE)
    assert inert.failure is None
    assert (inert.module_sha256, inert.command) == (stock.module_sha256, stock.command)
    assert (inert.rewritten, real.cache.program(inert)) == (False, None)
    assert [(effect.name, effect.matched, effect.changed) for effect in inert.effects] == [
        ("nothing", 0, False),
        ("matched_and_left_alone", 3, False),
    ]


@pytest.mark.parametrize("phase", ["abi", "flow", "stream"])
def test_a_rewrite_can_stand_at_a_later_phase(real: RealCompiler, phase: str) -> None:
    build = real.build(rewrite("times", phase=phase, factor=2.0), text=SCALE)
    assert output_of(real, build) == "4xf32=6 12 18 24"
    assert f"--compile-from={phase}" in build.command
    # After the phase stream there are no scheduling statistics any more.
    assert (build.statistics and build.statistics.dispatches) == (None if phase == "stream" else 1)


def test_rewrites_at_several_phases_each_see_what_the_one_before_left(real: RealCompiler) -> None:
    plugins = rewrite("times", factor=2.0), rewrite("plus", phase="preprocessing", term=1.0)
    build = real.build(*plugins, rewrite("times", phase="flow"), rewrite("nothing", phase="flow"), text=SCALE)
    assert output_of(real, build) == "4xf32=14 28 42 56"
    assert [effect.changed for effect in build.effects] == [True, True, True, False]


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


def test_packages_that_are_only_on_the_search_path_are_found(
    real: RealCompiler, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As with PYTHONPATH: an isolated toolchain does not see it by itself."""
    (tmp_path / "on the path").mkdir()
    (tmp_path / "on the path" / "elsewhere.py").write_text("def fold(module):\n    return 0\n")
    monkeypatch.syspath_prepend(str(tmp_path / "on the path"))
    isolated = replace(real.toolchain, python=Path(sys.executable), python_options=("-I",))
    plugin = by("fold", Rewrite(function="elsewhere:fold"))
    made, _ = rewritten(real.request(plugin, text=SCALE, toolchain=isolated), tmp_path / "work")
    (effect,) = made.effects
    assert effect == PluginEffect(name="fold", matched=0, changed=False, wall_ns=effect.wall_ns)


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


# -------------------------------------------------------------------------------------------- what can go wrong there


@pytest.mark.parametrize(
    ("function", "message"),
    [
        ("raises", f"plugin raises raised KeyError: 'two\\nlines' (fake_rewrites.py:{RAISED})"),
        ("returns_none", "plugin returns_none returned None, and not how many places it matched"),
        ("denies", "plugin denies changed the module, and says that it matched nothing"),
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
    """The time limit is iree-compile's too, which needs some: so all of the interpreter hangs."""
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\nexec sleep 600\n")
    python.chmod(0o755)
    asleep = replace(real.toolchain, python=python, python_options=())
    little, short = Limits(seconds=120, memory_bytes=1 << 30), Limits(seconds=5)
    later = rewrite("nothing", phase="flow")
    hoards = real.request(rewrite("hoards"), text=SCALE, limits=little)
    hangs = real.request(rewrite("hangs"), text=SCALE, toolchain=asleep, limits=short)
    requests = {
        "plugin hoards used more than its limit of 1 GiB of memory; give it more with --compile-memory": hoards,
        "plugin hangs ran past its limit of 5 s; give it more with --compile-timeout": hangs,
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


# -------------------------------------------------------------------------------------------- what flags and specs did

PAD = "iree-preprocessing-pad-linalg-ops{pad-size=16}"
OWN = "--iree-preprocessing-pass-pipeline"
TILES = (
    example_file("product_tiles.mlir").data.decode().replace("ROWS", "4").replace("COLUMNS", "16").replace("TERMS", "8")
)
SUM = program("main x:4\ny = addf x x\nreturn y")
# Each finds something in PRODUCT and nothing in SUM. Passes for func.func find nothing anywhere, since functions are
# util.func by the time preprocessing runs.
FINDS = {
    "passes": by("passes", PassPipeline(text=f"builtin.module(util.func({PAD}))")),
    "transform-spec": by("transform-spec", TransformSpec(file=example_file("generic_product.mlir"))),
    "pdl-spec": by("pdl-spec", PdlSpec(file=example_file("one_exp.pdl.mlir"))),
    "tuning-spec": by("tuning-spec", TuningSpec(file=written_file("tiles.mlir", TILES))),
    "library": by("library", TransformLibrary(file=example_file("small_tiles.mlir"), entry="small_tiles")),
}
PASSES, GENERIC, PDL, TUNING, _ = FINDS.values()
ANCHORED = by("anchored", PassPipeline(text=f"builtin.module(func.func({PAD}))"))


def changes_of(build: Build) -> dict[str, bool]:
    """Whether each plugin that is no rewrite changed something, in order."""
    assert build.failure is None, build.failure
    return {effect.name: effect.changed for effect in build.effects if effect.matched is None}


@pytest.mark.parametrize("kind", FINDS)
def test_each_kind_of_step_changes_what_it_finds(real: RealCompiler, kind: str) -> None:
    assert changes_of(real.build(FINDS[kind])) == {kind: True}


@pytest.mark.parametrize("kinds", [list(FINDS)[:-1], list(FINDS)[-1:]])
def test_where_it_finds_nothing_it_changes_nothing(real: RealCompiler, kinds: list[str]) -> None:
    """A tuning spec or a library that is loaded leaves no trace in the program unless it matches."""
    build = real.build(*(FINDS[kind] for kind in kinds), text=SUM)
    assert changes_of(build) == dict.fromkeys(kinds, False)
    assert build.module_sha256 == real.build(text=SUM).module_sha256


def test_tidying_up_is_no_change_of_a_pdl_spec(real: RealCompiler) -> None:
    """Patterns are applied by a driver that folds what it sees; after padding, there is something to fold."""
    build = real.build(PASSES, PDL, text=PRODUCT.replace("math.exp", "math.tanh"))
    assert changes_of(build) == {"passes": True, "pdl-spec": False}


def test_each_of_several_is_judged_after_the_ones_before_it(real: RealCompiler) -> None:
    again = by("pad-again", PassPipeline(text=f"builtin.module(util.func({PAD}))"))
    strong = by("strong", Flags(compile=("--iree-opt-level=O3",)))  # of which nothing can be told
    assert changes_of(real.build(PASSES, again, ANCHORED, GENERIC, PDL, TUNING, strong)) == {
        "passes": True,
        "pad-again": False,
        "anchored": False,
        "transform-spec": True,
        "pdl-spec": True,
        "tuning-spec": False,
    }, "after the transform spec there is no linalg.matmul for the tuning spec to find"


def test_a_suites_own_flags_are_judged_by_their_name(real: RealCompiler, tmp_path: Path) -> None:
    spec = tmp_path / "own.mlir"
    spec.write_bytes(example_file("one_exp.pdl.mlir").data)
    own = (f"{OWN}=builtin.module(func.func({PAD}))", f"--iree-preprocessing-pdl-spec-filename={spec}")
    changes = changes_of(real.build(PASSES, flags=own))
    assert list(changes.items()) == [(OWN, False), ("passes", True), ("--iree-preprocessing-pdl-spec-filename", True)]


@pytest.mark.parametrize("phase", ["input", "preprocessing", "flow"])
def test_flags_are_judged_beside_rewrites_too(real: RealCompiler, phase: str) -> None:
    """Also where a later rewrite made another program, in which the passes have run already."""
    plugins = [PASSES, ANCHORED, TUNING]
    plugins.insert(0 if phase == "input" else 2, rewrite("plus", phase=phase))
    build = real.build(*plugins)
    assert build.rewritten
    assert changes_of(build) == {"passes": True, "anchored": False, "tuning-spec": True}
    assert [effect.name for effect in build.effects] == ["plus", "passes", "anchored", "tuning-spec"]


NONSENSE = written_file("spec.mlir", "module { nonsense }")
REFUSED = "iree-compile exited with status 1: "
PRINTED = "iree-compile printed an error, though it exited with status 0: "


@pytest.mark.parametrize(
    ("step", "message"),
    [
        (PdlSpec(file=NONSENSE), f"{PRINTED}custom op 'nonsense' is unknown (tried 'builtin.nonsense' as well)"),
        (
            TransformLibrary(file=example_file("small_tiles.mlir")),
            f"{REFUSED}could not find a nested named sequence with name: __kernel_config",
        ),
        (
            PassPipeline(text="cse"),
            f"{PRINTED}expected preprocessing pass pipeline string to be nested within `builtin.module(..)`; got `cse`",
        ),
    ],
)
def test_a_step_that_the_compiler_refuses_fails_the_case_in_its_plugins_name(
    real: RealCompiler, step: Step, message: str
) -> None:
    build = real.build(by("strong", Flags(compile=("--iree-opt-level=O3",))), by("wrong", step))
    assert build.failure is not None
    assert (build.failure.stage, build.failure.message) == ("compile", f"plugin wrong: {message}")


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
