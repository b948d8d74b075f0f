"""`harness ablate`'s suite: each switch of a plugin is a variant, and the file stands by itself wherever it lies."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, make_dataclass
from pathlib import Path
from typing import Annotated, Any

import pytest
import tomli
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import Field

from harness.errors import RunError, SuiteError, UsageError
from harness.models.model import Model
from harness.plugins import Flags, NoOptions, Plugin
from harness.stages.ablating import ALL, DEFAULT_IR, NONE, WITHOUT, ablation_steps, switches, write_ablation
from harness.stages.options import AblateOptions
from harness.stages.prepare import prepare
from harness.suite.cases import Selection
from harness.suite.load import load_suite
from harness.toolchain import Toolchain
from tests.builders import CPU_FLAGS, FLAGS, flag_plugin, register


@dataclass(frozen=True, kw_only=True)
class Careful:
    """Two switches that do not go together in every way."""

    first: bool = True
    second: bool = True

    def __post_init__(self) -> None:
        if self.second and not self.first:
            raise ValueError("second needs first")


def switched(name: str, options: type[Any]) -> Plugin[Any]:
    """A plugin whose options change nothing that matters here."""
    steps = (Flags(compile=("--iree-opt-level=O3",)),)
    return Plugin(name=name, version="1", description="", options=options, steps=lambda _: steps)


def options(*fields: Any) -> type[Any]:
    """Options of these names, types and defaults."""
    return make_dataclass("Options", fields, kw_only=True, frozen=True)


LATE = Annotated[bool, Field(description="off by default")]
THREE = options(("fill", bool, True), ("size", int, 4), ("late", LATE, False), ("relu", "bool"))
PLUGINS = {
    "three": switched(
        "three", options(("fill", bool, True), ("size", int, 4), ("late", LATE, False), ("relu", "bool"))
    ),
    "one": switched("one", options(("strided", bool, False))),
    "sized": switched("sized", options(("size", int), ("padded", bool, True))),
    "careful": switched("careful", Careful),
    "bare": switched("bare", NoOptions),
    "other": flag_plugin("other", "--iree-opt-strip-assertions"),
    "my org/one": switched("my org/one", options(("strided", bool, False))),
}
FILES = ("net.mlir", "net.onnx", "x.npy", "y.npy", "z.npy", "weights.irpa", "flags.toml")
SUITE = f"""\
name = "small"
description = "what is measured otherwise"
baseline = "stock"
flagset_files = ["flags.toml"]

[models.net]
mlir = "net.mlir"
function = "main"
inputs = [{{ npy = "x.npy" }}, {{ shape = [4], seed = 7 }}, {{ shape = [], value = 2.0 }}]
parameters = {{ model = "weights.irpa", more = "weights.irpa" }}
expected = ["y.npy", "z.npy"]
tolerance = {{ relative = 0.01 }}

[models.imported]
onnx = "net.onnx"
opset = 18

[models.built]
builder = "residual-dense-block"
params = {{ height = 8, width = 8 }}

[variants.stock]
description = "as it comes"

[variants.tiled]
flagsets = ["tiling"]
flags = ["--iree-opt-level=O2"]
plugins = ["other"]

[variants.padded]
plugins = [{{ name = "sized", options = {{ size = 8, padded = false }} }}, "other"]

[devices.cpu]
uri = "local-sync"
backend = "llvm-cpu"
compile_flags = {list(CPU_FLAGS)}

[devices.threads]
uri = "local-task"
backend = "llvm-cpu"
compile_flags = {list(CPU_FLAGS)}

[matrix]
exclude = ["built/*@threads"]

[[expect]]
cases = "net/tiled@*"
fails = "no"

[floors]
latency = 0.5

[gates.copies]
metric = "copies"

[measure]
budget_s = 60
generations = 4
"""


@pytest.fixture(autouse=True)
def _registered(monkeypatch: pytest.MonkeyPatch) -> None:
    register(monkeypatch, "harness.plugins", *PLUGINS.items())


def write_suite(folder: Path) -> Path:
    """Write the suite and the files that it names; its path."""
    for name in FILES:
        (folder / name).touch()
    (folder / "flags.toml").write_text(FLAGS)
    (folder / "suite.toml").write_text(SUITE)
    return folder / "suite.toml"


@pytest.fixture
def suite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The suite, beside the files that it names, in the current folder."""
    monkeypatch.chdir(tmp_path)
    return write_suite(Path())


def ablation(plugin: str = "one", *models: str, suite: Path = Path("suite.toml"), **fields: Any) -> AblateOptions:
    return AblateOptions(suite, models=models or ("net",), plugin=plugin, **fields)


def written(plugin: str = "one", *models: str, **fields: Any) -> dict[str, Any]:
    """The suite of an ablation, as TOML has it."""
    return tomli.loads(write_ablation(ablation(plugin, *models, **fields)).read_text())


# ----------------------------------------------------------------------------------------------------------- variants


def test_switches_become_variants_and_what_would_be_there_twice_is_left_out() -> None:
    assert ablation_steps(("a", "b", "c"))["no-b"] == {"a": True, "b": False, "c": True}
    assert list(ablation_steps(("a", "b"))) == ["without", "none", "only-a", "only-b", "all"]
    assert list(ablation_steps(("a",))) == ["without", "none", "all"]


@settings(max_examples=30)
@given(names=st.lists(st.from_regex(r"[a-z_]{1,8}", fullmatch=True), min_size=1, max_size=8, unique=True))
def test_no_two_variants_are_alike_and_each_says_what_it_is(names: list[str]) -> None:
    steps = ablation_steps(names)
    alone, but_one = [f"only-{name}" for name in names], [f"no-{name}" for name in names]
    middle = [*(alone if len(names) > 1 else []), *(but_one if len(names) > 2 else [])]
    assert list(steps) == [WITHOUT, NONE, *middle, ALL]
    assert steps.pop(WITHOUT) is None
    assert len({tuple((options or {}).items()) for options in steps.values()}) == len(steps)
    for step, options in steps.items():
        assert options is not None
        assert list(options) == names
        on = [name for name in names if options[name]]
        if step == NONE:
            assert on == []
        elif step == ALL:
            assert on == names
        else:
            kind, _, name = step.partition("-")
            assert on == ([name] if kind == "only" else [other for other in names if other != name])


# ----------------------------------------------------------------------------------------------------------- switches


def test_switches_are_the_options_that_are_true_or_false_whatever_their_default() -> None:
    assert switches(PLUGINS["three"]) == ("fill", "late", "relu")
    assert switches(PLUGINS["one"]) == ("strided",)


def test_an_option_that_has_to_be_given_is_the_variants_to_give(suite: Path) -> None:
    variants = written("sized", on="padded")["variants"]
    assert {name: table["plugins"] for name, table in variants.items()} == {
        "without": [{"name": "other"}],
        "none": [{"name": "sized", "options": {"size": 8, "padded": False}}, {"name": "other"}],
        "all": [{"name": "sized", "options": {"size": 8, "padded": True}}, {"name": "other"}],
    }


# ------------------------------------------------------------------------------------------------------ the suite file


def test_the_suite_says_all_there_is_to_say(suite: Path) -> None:
    path = write_ablation(ablation("one"))
    assert path == Path("results/small-ablate-one-net.toml")
    assert tomli.loads(path.read_text()) == {
        "name": "small-ablate-one",
        "description": "What each option of one does: added to stock alone, left out alone, and all",
        "baseline": "without",
        "flagset_files": ["../flags.toml"],
        "models": {
            "net": {
                "mlir": "../net.mlir",
                "function": "main",
                "inputs": [{"npy": "../x.npy"}, {"shape": [4], "seed": 7}, {"shape": [], "value": 2.0}],
                "parameters": {"model": "../weights.irpa", "more": "../weights.irpa"},
                "expected": ["../y.npy", "../z.npy"],
                "tolerance": {"relative": 0.01},
            }
        },
        "variants": {
            "without": {"description": "as it comes"},
            "none": {"description": "as it comes", "plugins": [{"name": "one", "options": {"strided": False}}]},
            "all": {"description": "as it comes", "plugins": [{"name": "one", "options": {"strided": True}}]},
        },
        "devices": {"cpu": {"uri": "local-sync", "backend": "llvm-cpu", "compile_flags": list(CPU_FLAGS)}},
        "ir": DEFAULT_IR,
        "measure": {"budget_s": 60, "generations": 4},
    }


def test_the_plugin_comes_last_in_the_variant_that_it_is_added_to(suite: Path) -> None:
    variants = written("one", on="tiled")["variants"]
    assert variants["without"] == {
        "flagsets": ["tiling"],
        "flags": ["--iree-opt-level=O2"],
        "plugins": [{"name": "other"}],
    }
    assert variants["all"]["plugins"] == [{"name": "other"}, {"name": "one", "options": {"strided": True}}]
    assert variants["all"]["flags"] == ["--iree-opt-level=O2"]


def test_it_is_added_to_a_variant_of_another_file(suite: Path) -> None:
    Path("more.toml").write_text('[variants.more]\nflags = ["--iree-opt-level=O1"]\n')
    suite.write_text(SUITE.replace("[models.net]", 'variant_files = ["more.toml"]\n[models.net]'))
    assert written("one", on="more")["variants"]["without"] == {"flags": ["--iree-opt-level=O1"]}


def test_models_and_devices_are_the_chosen_ones_each_once(suite: Path) -> None:
    made = written("one", "built", "imported", "built", devices=("threads", "cpu", "threads"))
    assert made["models"] == {
        "built": {"builder": "residual-dense-block", "params": {"height": 8, "width": 8}},
        "imported": {"onnx": "../net.onnx", "opset": 18},
    }
    assert list(made["devices"]) == ["threads", "cpu"]


def test_ops_and_settings_are_the_suites_own_where_it_has_any(suite: Path) -> None:
    suite.write_text(f'{SUITE}[ir]\nflow = ["flow.dispatch"]\n')
    assert written()["ir"] == {"flow": ["flow.dispatch"]}
    assert written(budget_s=2.5)["measure"] == {"budget_s": 2.5, "generations": 4}


def test_ablations_of_other_variants_and_devices_have_files_of_their_own(suite: Path) -> None:
    choices: list[dict[str, Any]] = [
        {},
        {"on": "tiled"},
        {"devices": ("threads",)},
        {"on": "tiled", "devices": ("cpu",)},
    ]
    paths = [write_ablation(ablation("one", **choice)) for choice in choices]
    assert [path.name for path in paths] == [
        "small-ablate-one-net.toml",
        "small-ablate-one-net-tiled.toml",
        "small-ablate-one-net-threads.toml",
        "small-ablate-one-net-tiled-cpu.toml",
    ]


def test_names_that_no_suite_and_no_file_can_have(suite: Path) -> None:
    long = "n" * 100
    suite.write_text(SUITE.replace('name = "small"', f'name = "{long}"').replace("models.net]", f"models.{long}]"))
    path = write_ablation(ablation("my org/one", long))
    assert load_suite(path).suite.name == long
    suite.write_text(SUITE)
    path = write_ablation(ablation("my org/one"))
    assert path.name == "small-ablate-my-org-one-net.toml"
    assert load_suite(path).suite.variants[-1].plugins[0].name == "my org/one"


# -------------------------------------------------------------------------------------------------------------- paths


def files_of(model: Model) -> list[Path]:
    inputs = [value.path for value in model.inputs]
    found = [model.mlir, model.onnx, *model.expected, *model.parameters.values(), *inputs]
    return [path for path in found if path is not None]


PARTS = st.lists(st.sampled_from(["a", "b c", "ü", "..", "suites"]), max_size=5)


@settings(max_examples=10)
@given(folder=PARTS, suite_folder=PARTS)
def test_the_same_files_are_meant_wherever_the_suite_goes(folder: list[str], suite_folder: list[str]) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        root = Path(scratch).resolve() / "1/2/3/4/5"
        there, here = root.joinpath(*suite_folder), root.joinpath(*folder)
        for path in (there, here):
            path.mkdir(parents=True, exist_ok=True)
        suite = write_suite(there)
        made = load_suite(write_ablation(ablation("one", "net", "imported", suite=suite, results=here))).suite
        expected = [file.resolve() for model in load_suite(suite).suite.models for file in files_of(model)]
        assert [file.resolve() for model in made.models for file in files_of(model)] == expected
        assert not any(str(root) in line for line in made.path.read_text().splitlines())


def test_a_results_folder_that_is_a_link(suite: Path) -> None:
    (suite.absolute().parent / "large disk/deep").mkdir(parents=True)
    Path("results").symlink_to("large disk/deep")
    path = write_ablation(ablation("one"))
    (model,) = load_suite(path).suite.models
    assert model.mlir is not None
    assert model.mlir.resolve() == Path("net.mlir").resolve()


@pytest.mark.parametrize("on", ["stock", "tiled"])
def test_the_file_is_planned_like_any_other(suite: Path, on: str, real_toolchain: Toolchain) -> None:
    path = write_ablation(ablation("three", "net", "built", on=on, devices=("cpu", "threads")))
    cases = prepare(path, Selection(), (real_toolchain,)).cases
    steps = ablation_steps(("fill", "late", "relu"))
    assert [case.name for case in cases] == [
        f"{model}/{step}@{device}" for model in ("net", "built") for device in ("cpu", "threads") for step in steps
    ]
    assert {case.skip for case in cases} == {None}
    assert [case.variant for case in cases if case.baseline] == ["without"] * 4
    assert len({case.id for case in cases}) == len(cases)
    label = "three(fill = true, late = false, relu = false)"
    (only_fill,) = (case for case in cases if case.name == "net/only-fill@cpu")
    assert only_fill.plugins == (("other", label) if on == "tiled" else (label,))


# ---------------------------------------------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        (ablation("one", "nets"), "suite.toml: there is no model 'nets'; did you mean \"net\"?"),
        (ablation("one", devices=("cuda",)), "suite.toml: there is no device 'cuda'; known: cpu, threads"),
        (ablation("one", on="tile"), "suite.toml: there is no variant 'tile'; did you mean \"tiled\"?"),
        (ablation("ones"), "there is no plugin 'ones'; did you mean \"one\"?"),
        (ablation("sized"), "plugin 'sized' needs its option 'size'; name a variant with --on that gives it"),
        (
            ablation("bare"),
            "plugin 'bare' has no options that are true or false, so there is nothing to ablate; compare a variant "
            "with it and one without",
        ),
    ],
)
def test_what_cannot_be_ablated(suite: Path, asked: AblateOptions, sentence: str) -> None:
    with pytest.raises(UsageError) as caught:
        write_ablation(asked)
    assert str(caught.value) == sentence
    assert not Path("results").exists()


def test_a_suite_that_is_wrong_and_a_folder_that_cannot_be_written(suite: Path) -> None:
    with pytest.raises(RunError) as unwritable:
        write_ablation(ablation("one", results=Path("net.mlir/results")))
    assert str(unwritable.value) == (
        "net.mlir/results/small-ablate-one-net.toml: cannot be written (Not a directory); choose another folder with "
        "--results"
    )
    suite.write_text(SUITE.replace("net.mlir", "nets.mlir"))
    with pytest.raises(SuiteError, match=r"^suite\.toml: \[models\.net\] mlir: there is no file nets\.mlir"):
        write_ablation(ablation("one"))


def test_switches_that_do_not_go_together_are_told_when_the_file_is_planned(
    suite: Path, real_toolchain: Toolchain
) -> None:
    path = write_ablation(ablation("careful"))
    with pytest.raises(SuiteError) as caught:
        prepare(path, Selection(), (real_toolchain,))
    assert str(caught.value) == f"{path}: [variants.only-second] plugins: careful: second needs first"
