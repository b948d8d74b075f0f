"""Which pass pipelines, specs and libraries changed the program; the compiler does not say, so it is compared."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.compile import BuildCache
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
from harness.records.run import Build
from harness.toolchain import Toolchain
from tests.builders import a_plugin, applied
from tests.compile.real import PRODUCT, example_file, real_request

PASSES = "iree-preprocessing-pad-linalg-ops{pad-size=16}"
OWN = "--iree-preprocessing-pass-pipeline"
TILES = (
    example_file("product_tiles.mlir").data.decode().replace("ROWS", "4").replace("COLUMNS", "16").replace("TERMS", "8")
)

SUM = """
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = arith.addf %x, %x : tensor<4xf32>
  return %y : tensor<4xf32>
}
"""

Compile = Callable[..., Build]


@pytest.fixture
def compile_with(tmp_path: Path, cache: BuildCache, real_toolchain: Toolchain) -> Compile:
    """Compile the example program with plugins."""

    def compile_it(*plugins: Applied, **more: Any) -> Build:
        return cache.compile(real_request(tmp_path, real_toolchain, *plugins, **more))[0]

    return compile_it


def by(name: str, *steps: Step) -> Applied:
    return applied(a_plugin(name, *steps))


def passes(name: str, *texts: str) -> Applied:
    return by(name, PassPipeline(text=f"builtin.module({','.join(texts)})"))


def told(build: Build) -> dict[str, bool]:
    """Whether each plugin changed something, in order."""
    assert build.failure is None, build.failure
    return {effect.name: effect.changed for effect in build.effects if effect.matched is None}


# Kinds by what of the example program they find, and by what of another one.
FINDS: dict[str, Step] = {
    "passes": PassPipeline(text=f"builtin.module(util.func({PASSES}))"),
    "transform-spec": TransformSpec(file=example_file("generic_product.mlir")),
    "pdl-spec": PdlSpec(file=example_file("one_exp.pdl.mlir")),
    "tuning-spec": TuningSpec(file=written_file("tiles.mlir", TILES)),
    "library": TransformLibrary(file=example_file("small_tiles.mlir"), entry="small_tiles"),
}


@pytest.mark.parametrize("kind", FINDS)
def test_each_kind_of_step_is_seen_to_have_changed_something(compile_with: Compile, kind: str) -> None:
    assert told(compile_with(by(kind, FINDS[kind]))) == {kind: True}


@pytest.mark.parametrize("kind", FINDS)
def test_where_it_finds_nothing_it_is_seen_to_have_changed_nothing(compile_with: Compile, kind: str) -> None:
    """A tuning spec or a library that is loaded leaves no trace in the program unless it matches."""
    build, stock = compile_with(by(kind, FINDS[kind]), text=SUM), compile_with(text=SUM)
    assert told(build) == {kind: False}
    assert build.module_sha256 == stock.module_sha256


def test_passes_for_func_func_find_nothing(compile_with: Compile) -> None:
    """Functions are util.func by the time preprocessing runs."""
    assert told(compile_with(passes("anchored", f"func.func({PASSES})"))) == {"anchored": False}


def test_tidying_up_is_no_change_of_a_pdl_spec(compile_with: Compile) -> None:
    """Patterns are applied by a driver that folds what it sees; after padding, there is something to fold."""
    text = PRODUCT.replace("math.exp", "math.tanh")
    build = compile_with(passes("pad", f"util.func({PASSES})"), by("one-exp", FINDS["pdl-spec"]), text=text)
    assert told(build) == {"pad": True, "one-exp": False}


def test_each_of_several_is_judged_beside_the_ones_before_it(compile_with: Compile) -> None:
    build = compile_with(
        passes("pad", f"util.func({PASSES})"),
        passes("pad-again", f"util.func({PASSES})"),
        passes("anchored", f"func.func({PASSES})"),
        by("generic", FINDS["transform-spec"]),
        by("one-exp", FINDS["pdl-spec"]),
        by("tiles", FINDS["tuning-spec"]),
    )
    assert told(build) == {
        "pad": True,
        "pad-again": False,
        "anchored": False,
        "generic": True,
        "one-exp": True,
        "tiles": False,
    }, "after generic there is no linalg.matmul for tiles to find"


def test_a_suites_own_flags_are_judged_by_their_name(compile_with: Compile, tmp_path: Path) -> None:
    spec = tmp_path / "own.mlir"
    spec.write_bytes(example_file("one_exp.pdl.mlir").data)
    own = (f"{OWN}=builtin.module(func.func({PASSES}))", f"--iree-preprocessing-pdl-spec-filename={spec}")
    build = compile_with(passes("pad", f"util.func({PASSES})"), flags=own)
    assert told(build) == {OWN: False, "pad": True, "--iree-preprocessing-pdl-spec-filename": True}
    assert [effect.name for effect in build.effects] == [OWN, "pad", "--iree-preprocessing-pdl-spec-filename"]


def test_other_flags_are_not_judged(compile_with: Compile) -> None:
    assert told(compile_with(by("strong", Flags(compile=("--iree-opt-level=O3",))))) == {}


@pytest.mark.parametrize("phase", ["input", "preprocessing", "flow"])
def test_beside_rewrites_everything_is_still_judged(
    compile_with: Compile, monkeypatch: pytest.MonkeyPatch, phase: str
) -> None:
    """Also where a later rewrite made another program, in which the passes have run already."""
    monkeypatch.syspath_prepend(str(Path(__file__).parent.parent / "fakes"))
    plus = by("plus", Rewrite(function="fake_rewrites:plus", phase=phase))
    around = [
        passes("pad", f"util.func({PASSES})"),
        passes("anchored", f"func.func({PASSES})"),
        by("tiles", FINDS["tuning-spec"]),
    ]
    around.insert(0 if phase == "input" else 2, plus)
    build = compile_with(*around)
    assert build.rewritten
    assert told(build) == {"pad": True, "anchored": False, "tiles": True}
    assert [effect.name for effect in build.effects] == ["plus", "pad", "anchored", "tiles"]


def test_nothing_is_left_in_the_cache_but_what_is_needed(compile_with: Compile, cache: BuildCache) -> None:
    build = compile_with(by("one-exp", FINDS["pdl-spec"]))
    (file,) = cache.files(build)
    assert sorted(path.name for path in file.parent.iterdir()) == sorted(
        ["build.json", "module.vmfb", "statistics.json", "stderr.txt", file.name]
    )


@pytest.mark.parametrize(
    ("step", "message"),
    [
        (
            TransformSpec(file=written_file("spec.mlir", "module { nonsense }")),
            "iree-compile exited with status 1: custom op 'nonsense' is unknown (tried 'builtin.nonsense' as well)",
        ),
        (
            PdlSpec(file=written_file("spec.mlir", "module { nonsense }")),
            "iree-compile printed an error, though it exited with status 0: "
            "custom op 'nonsense' is unknown (tried 'builtin.nonsense' as well)",
        ),
        (
            TransformSpec(file=written_file("spec.mlir", "module attributes { transform.with_named_sequence } {}")),
            "iree-compile exited with status 1: could not find a nested named sequence with name: __transform_main",
        ),
        (
            TransformLibrary(file=example_file("small_tiles.mlir")),
            "iree-compile exited with status 1: could not find a nested named sequence with name: __kernel_config",
        ),
        (
            PassPipeline(text="builtin.module(util.func(bogus))"),
            "iree-compile printed an error, though it exited with status 0: "
            "'bogus' does not refer to a registered pass or pass pipeline",
        ),
        (
            PassPipeline(text="cse"),
            "iree-compile printed an error, though it exited with status 0: "
            "expected preprocessing pass pipeline string to be nested within `builtin.module(..)`; got `cse`",
        ),
    ],
)
def test_a_step_that_the_compiler_refuses_fails_the_case_in_its_plugins_name(
    compile_with: Compile, step: Step, message: str
) -> None:
    build = compile_with(by("strong", Flags(compile=("--iree-opt-level=O3",))), by("wrong", step))
    assert build.failure is not None
    assert (build.failure.stage, build.failure.message) == ("compile", f"plugin wrong: {message}")
