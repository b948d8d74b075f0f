"""The suites of `harness ablate` and `harness bench`: files that stand by themselves wherever they lie."""

from dataclasses import make_dataclass
from pathlib import Path
from typing import Any

import pytest
import tomli

from harness.cli.app import application_for
from harness.errors import UsageError
from harness.plugins import Flags, NoOptions, Plugin
from harness.stages import prepare
from harness.stages.derived_suites import DEFAULT_IR, ablation_steps, name_variants, write_ablation, write_bench
from harness.stages.options import AblateOptions, BenchOptions
from harness.suite.load import load_suite
from tests.builders import flag_plugin, register
from tests.stages.conftest import AT_END, lay_out_suite


def switched(name: str, *fields: Any) -> Plugin[Any]:
    """A plugin with options of these names, types and defaults, which change nothing that matters here."""
    options = make_dataclass("Options", fields, kw_only=True, frozen=True) if fields else NoOptions
    steps = (Flags(compile=("--iree-opt-level=O3",)),)
    return Plugin(name=name, version="1", description="", options=options, steps=lambda _: steps)


PLUGINS = {
    "sized": switched("sized", ("strided", bool, False), ("most", int, 3)),
    "bare": switched("bare"),
    "other": flag_plugin("other", "--iree-opt-strip-assertions"),
}
CPU = {"uri": "local-sync", "backend": "llvm-cpu", "compile_flags": ["--iree-hal-target-device=local"]}
# Instead of parts of the small suite's text.
CHANGES = {
    "[{ shape = [4] }]": """[{ npy = "x.npy" }, { shape = [4], seed = 7 }]
parameters = { model = "weights.irpa" }
expected = ["y.npy"]
expect = "mismatch"

[models.imported]
onnx = "net.onnx"
""",
    'flagsets = ["tiling"]': """flagsets = ["tiling"]
flags = ["--iree-opt-level=O2"]
plugins = [{ name = "sized", options = { strided = true, most = 8 } }, "other"]
""",
    AT_END: """
[devices.threads]
uri = "local-task"
backend = "llvm-cpu"

[matrix]
exclude = ["imported/*@threads"]
""",
}


@pytest.fixture
def suite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The suite, beside the files that it names, in the current folder."""
    register(monkeypatch, "harness.plugins", *PLUGINS.items())
    monkeypatch.chdir(tmp_path)
    for name in ("net.onnx", "x.npy", "y.npy", "weights.irpa"):
        Path(name).touch()
    return lay_out_suite(CHANGES)


def ablation(plugin: str = "sized", *models: str, **fields: Any) -> AblateOptions:
    return AblateOptions(Path("suite.toml"), models=models or ("net",), plugin=plugin, **fields)


# --- ablations ---


def test_switches_become_variants_and_what_would_be_there_twice_is_left_out() -> None:
    steps = ablation_steps(("a", "b", "c"))
    assert list(steps) == ["without", "none", "only-a", "only-b", "only-c", "no-a", "no-b", "no-c", "all"]
    assert (steps["without"], steps["none"]) == (None, {"a": False, "b": False, "c": False})
    assert (steps["only-b"], steps["no-b"]) == ({"a": False, "b": True, "c": False}, {"a": True, "b": False, "c": True})
    assert list(ablation_steps(("a", "b"))) == ["without", "none", "only-a", "only-b", "all"]
    assert list(ablation_steps(("a",))) == ["without", "none", "all"]


def test_the_suite_says_all_there_is_to_say(suite: Path) -> None:
    path = write_ablation(ablation())
    made = tomli.loads(path.read_text())
    assert path == Path("results/small-ablate-sized-net.toml")
    assert (made["name"], made["baseline"]) == ("small-ablate-sized", "without")
    assert made["description"] == "What each option of sized does: added to stock alone, left out alone, and all"
    net = made["models"]["net"]
    assert (net["function"], net["inputs"][1]) == ("main", {"shape": [4], "seed": 7})
    assert "expect" not in net, "what is known of the suite's own variants says nothing about these"
    assert made["variants"] == {
        "without": {},
        "none": {"plugins": [{"name": "sized", "options": {"strided": False}}]},
        "all": {"plugins": [{"name": "sized", "options": {"strided": True}}]},
    }
    assert (made["devices"], made["ir"]) == ({"cpu": CPU}, DEFAULT_IR)
    assert made["measure"] == {"budget_s": 120.0, "generations": 5}


def test_what_is_chosen_is_there_once_and_what_the_baseline_gives_besides_stays(suite: Path) -> None:
    suite.write_text(f'{suite.read_text()}[ir]\nflow = ["flow.dispatch"]\n'.replace('"stock"', '"tiled"'))
    path = write_ablation(ablation("sized", "net", "net", devices=("threads", "cpu"), budget_s=2.5))
    made, other = tomli.loads(path.read_text()), {"name": "other", "options": {}}
    assert (path.stem, list(made["models"])) == ("small-ablate-sized-net-threads-cpu", ["net"])
    assert list(made["devices"]) == ["threads", "cpu"]
    assert (made["ir"], made["measure"]["budget_s"]) == ({"flow": ["flow.dispatch"]}, 2.5)
    flags = ["--iree-opt-data-tiling", "--iree-opt-level=O2"]
    assert made["variants"]["without"] == {"flags": flags, "plugins": [other]}
    switched_on = {"name": "sized", "options": {"strided": True, "most": 8}}
    assert made["variants"]["all"]["plugins"] == [other, switched_on], "the plugin comes last"


def test_the_same_files_are_meant_wherever_the_suite_goes(suite: Path, tmp_path: Path) -> None:
    (tmp_path / "far/b c").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "far/b c")
    for folder in (Path("link"), Path("far/ü/../d"), tmp_path / "e"):
        made = load_suite(write_ablation(ablation("sized", "net", "imported", results=folder)))
        net, imported = made.models
        files = [net.mlir, imported.onnx, *net.expected, *net.parameters.values(), net.inputs[0].path]
        names = ("net.mlir", "net.onnx", "y.npy", "weights.irpa", "x.npy")
        assert [file and file.resolve() for file in files] == [tmp_path / name for name in names]
        assert str(tmp_path) not in made.path.read_text()


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        (ablation("sized", "nets"), "suite.toml: there is no model 'nets'; did you mean \"net\"?"),
        (ablation("size"), "there is no plugin 'size'; did you mean \"sized\"?"),
        (ablation("bare"), "plugin 'bare' has no options that are true or false, so there is nothing to ablate;"),
    ],
)
def test_what_cannot_be_ablated(suite: Path, asked: AblateOptions, words: str) -> None:
    with pytest.raises(UsageError) as caught:
        write_ablation(asked)
    assert str(caught.value).startswith(words)
    assert not Path("results").exists()


# --- `harness bench` ---

DOUBLE = """
func.func private @helper(%x: tensor<4xf32>) -> tensor<4xf32>
func.func @main(%x: tensor<4x8xf32> {a.b = 1}, %n: !torch.vtensor<[2,3],f16>, %e: tensor<i8>) -> tensor<4x8xf32> {
  %y = arith.addf %x, %x : tensor<4x8xf32>
  return %y : tensor<4x8xf32>
}
util.func public @later(%x: tensor<?xf32>, %n: i32) { util.return }
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x.mlir").write_text(DOUBLE)
    monkeypatch.setattr(prepare, "compiler_flags", lambda _: frozenset("abc"))
    return tmp_path


def bench(*flags: str, model: str = "x.mlir", **options: Any) -> Path:
    return write_bench(BenchOptions(Path(model), flags=flags, **options), print)[0]


def test_sets_of_flags_have_names_of_their_own() -> None:
    assert name_variants(["--a=b --c", "", "--a=b --d"]) == {"a-b-c": "--a=b --c", "stock": "", "a-b-d": "--a=b --d"}
    assert name_variants(["--a"]) == {"stock": "", "a": "--a"}, "one alone is compared with no flags"
    assert name_variants(["--a"], alone=True) == {"a": "--a"}, "with itself under another toolchain"
    assert name_variants([], alone=True) == {"stock": ""}
    long = "--" + "f" * 60
    assert list(name_variants([f"{long}=1", f"{long}=2"])) == ["f" * 40, f"{'f' * 40}+2"]


def test_function_and_arguments_come_from_the_file_or_are_given(folder: Path) -> None:
    path = bench("--a --b", "--c", save=Path("suites/mine.toml"))
    suite = load_suite(path)
    variants = [(variant.name, variant.flags) for variant in suite.variants]
    assert variants == [("a-b", ("--a", "--b")), ("c", ("--c",))]
    (model,) = suite.models
    assert (path, suite.name, model.function, suite.baseline) == (Path("suites/mine.toml"), "mine", "main", "a-b")
    assert [(value.shape, value.dtype) for value in model.inputs] == [((4, 8), "f32"), ((2, 3), "f16"), ((), "i8")]
    assert model.mlir is not None
    assert model.mlir.resolve() == folder / "x.mlir"
    path = bench("--a", save=Path("my/answer"))
    assert (path, load_suite(path).name) == (Path("my/answer/suite.toml"), "answer"), "a folder, with more to come"
    arguments = ("4xf32", "2x3xf16=1.5", "i32=3", "x.npy")
    (model,) = load_suite(bench("--a", function="later", model_inputs=arguments[:3])).models
    assert model.function == "later"
    assert [(value.shape, value.dtype, value.fill, value.value, value.scalar) for value in model.inputs] == [
        ((4,), "f32", "random", 0.0, False),
        ((2, 3), "f16", "constant", 1.5, False),
        ((), "i32", "constant", 3.0, True),
    ]
    assert '"../x.npy"' in bench("--a", model_inputs=arguments).read_text()


EQUAL = "--flags: two sets are equal, so there is nothing to compare; give each set of flags once"


@pytest.mark.parametrize(
    ("flags", "options", "words"),
    [
        (("--a", "--a "), {}, EQUAL),
        (("",), {}, "there is nothing to compare; give --flags, or --toolchain for each of several toolchains"),
        (
            ("",),
            {"toolchains": ("3.11.0", "3.11.0")},
            "there is nothing to compare; give --flags, or --toolchain for each",
        ),
        (("--lost",), {}, "--flags '--lost': iree-compile 3."),
        (("--o=x",), {}, "--flags '--o=x': --o is the harness's own to give; remove it"),
        (("--a='b",), {}, '--flags "--a=\'b": No closing quotation; close the quotation'),
        ((), {"model": "y.mlir"}, "y.mlir: there is no such file; give one that ends in .mlir, .mlirbc or .onnx"),
        ((), {"model": "x.txt"}, "x.txt: is no model's file; give one that ends in .mlir, .mlirbc or .onnx"),
        ((), {"save": Path("x.mlir")}, "x.mlir: is there already; give --save a new file"),
        ((), {"function": "lost"}, "x.mlir: no function @lost is found in it; give --function, and --model-input "),
        ((), {"function": "later"}, "x.mlir: @later has an argument of type tensor<?xf32>; give --model-input "),
        ((), {"model_inputs": ("4xf33",)}, "--model-input '4xf33': is no argument; write 4x8xf32, 4x8xf32=1.5, "),
        ((), {"model_inputs": ("i32",)}, "--model-input 'i32': is no argument; write "),
    ],
)
def test_what_cannot_be_measured(flags: tuple[str, ...], options: dict[str, Any], words: str, folder: Path) -> None:
    with pytest.raises(UsageError) as caught:
        bench(*(flags or ("--a",)), **options)
    assert str(caught.value).startswith(words)
    assert not list(folder.glob("results/*"))


def test_flags_begin_with_dashes_and_may_be_none() -> None:
    words = ["bench", "x.mlir", "--flags", "", "--flags", "--iree-opt-level=O3 --b", "--budget", "0.1"]
    _, bound, _ = application_for(words[:1]).parse_args(words)
    assert bound.arguments["options"].flags == ("", "--iree-opt-level=O3 --b")
