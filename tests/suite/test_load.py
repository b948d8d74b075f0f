"""What loading makes of a right suite: plain values with defaults and resolved paths; and lists of suites."""

import math
from dataclasses import replace
from pathlib import Path

import pytest

from harness.errors import SuiteError
from harness.models.model import Expectation, Input, Model, Tolerance
from harness.records.case import Gate, VariantGroup
from harness.suite.load import FlagSet, SuiteList, Variant, find_list, load_suite
from harness.suite.schema import PluginTable
from tests.builders import FLAGS, SUITE, a_device, a_model, a_suite, a_variant
from tests.suite.conftest import WriteSuite, refusal, replaced
from tests.suite.test_mistakes import MORE

ROOT = Path(__file__).parents[2]
TILING = FlagSet(name="tiling", compile=("--iree-opt-data-tiling",))


def test_a_suite_that_says_no_more_than_it_must(write_suite: WriteSuite) -> None:
    target = ("--iree-hal-target-device=local",)
    small = a_suite(
        a_variant(),
        a_variant("tiled", flagsets=("tiling",), flag_sets=(TILING,)),
        models=(a_model(function="main", inputs=(Input(shape=(4,), dtype="f32", fill="random", seed=0),)),),
        devices=(a_device(compile_flags=target),),
    )
    assert load_suite(write_suite()) == replace(small, name="small", budget_s=120.0, generations=5)


EVERYTHING = """\
name = "all-of-it"
baseline = "stock"
flagset_files = ["flags.toml"]

[models.imported]
onnx = "net.onnx"
inputs = [
    { dtype = "i64", value = 3 },
    { shape = [], value = 3 },
    { shape = [2], seed = 7 },
    { shape = [2] },
    { npy = "x.npy", dtype = "f16" },
]
parameters = { weights = "weights.irpa" }
expected = ["y.npy"]
reference = "onnxruntime"
tolerance = { relative = 0.01, absolute = 0 }
expect = "fail: no such operator"

[models.built]
builder = "residual-dense-block"
params = { height = 8 }
expect = "mismatch"

[variants.stock]
[variants.both]
flagsets = ["late", "early"]
flags = ["--iree-opt-level=O3"]
plugins = ["share-concat"]

[devices.gpu]
uri = ["vulkan://1", "local-task"]
threads = 4
on = "*EPYC*"
hosts = "each"
backend = "vulkan-spirv"
[matrix]
include = ["built/*", "imported/*"]
exclude = ["built/both@*"]
[[expect]]
cases = "*/both@gpu"
fails = "shared memory"
[[groups]]
title = "Data tiling"
variants = ["stock", "both"]
[floors]
latency = 0.02
[gates.latency]
metric = "latency"
cases = "*@gpu"
direction = "any"
relative = 0.1
[gates.updates]
metric = "flow/flow.tensor.update"
[ir]
flow = ["flow.tensor.update", "host:arith.*"]
[measure]
budget_s = 1.5
generations = 3
"""


def test_a_suite_that_says_everything(tmp_path: Path) -> None:
    for name in ("net.onnx", "x.npy", "y.npy", "weights.irpa"):
        (tmp_path / name).touch()
    (tmp_path / "flags.toml").write_text('[flagsets.early]\nbackends = ["llvm-cpu"]\n[flagsets.late]\n')
    path = tmp_path / "suite.toml"
    path.write_text(EVERYTHING)
    suite = load_suite(path)
    assert suite.models == (
        Model(
            name="imported",
            params={},
            onnx=tmp_path / "net.onnx",
            inputs=(
                Input(scalar=True, dtype="i64", fill="constant", value=3.0),
                Input(fill="constant", value=3.0),
                Input(shape=(2,), dtype="f32", fill="random", seed=7),
                Input(shape=(2,), dtype="f32", fill="random", seed=3),  # the position, where none is given
                Input(shape=(), dtype="f16", fill="npy", path=tmp_path / "x.npy"),
            ),
            parameters={"weights": tmp_path / "weights.irpa"},
            expected=(tmp_path / "y.npy",),
            reference="onnxruntime",
            tolerance=Tolerance(relative=0.01, absolute=0.0),
            expectation=Expectation(cases="imported/*", message="no such operator"),
        ),
        Model(
            name="built",
            builder="residual-dense-block",
            params={"height": 8},
            parameters={},
            expectation=Expectation(cases="built/*", message=None),
        ),
    )
    early = FlagSet(name="early", backends=("llvm-cpu",))
    assert suite.variants[1] == Variant(
        name="both",
        flagsets=("late", "early"),
        flag_sets=(FlagSet(name="late"), early),  # in the order of the variant
        flags=("--iree-opt-level=O3",),
        plugins=(PluginTable(name="share-concat"),),
    )
    assert suite.devices == (
        a_device("gpu", "vulkan://1", ["local-task"], threads=4, backend="vulkan-spirv", on="*EPYC*", hosts="each"),
    )
    assert (suite.include, suite.exclude) == (("built/*", "imported/*"), ("built/both@*",))
    assert suite.expectations == (Expectation(cases="*/both@gpu", message="shared memory"),)
    assert suite.groups == (VariantGroup(title="Data tiling", variants=("stock", "both")),)
    assert suite.gates == (
        Gate(name="latency", metric="latency", cases="*@gpu", direction="any", relative=0.1),
        Gate(name="updates", metric="flow/flow.tensor.update"),
    )
    assert (suite.floors, suite.ir) == ({"latency": 0.02}, {"flow": ("flow.tensor.update", "host:arith.*")})
    assert (suite.budget_s, suite.generations) == (1.5, 3)


def test_variants_of_another_file_follow_the_suites_own_and_the_hash_is_that_of_all_text(
    write_suite: WriteSuite,
) -> None:
    plain = load_suite(write_suite()).text_sha256
    assert load_suite(write_suite()).text_sha256 == plain
    Path("more.toml").write_text(MORE)
    path = write_suite('"flags.toml"]', '"flags.toml"]\nvariant_files = ["more.toml"]')
    loaded = load_suite(path)
    *own, fast = loaded.variants
    assert [variant.name for variant in own] == ["stock", "tiled"]
    plugins = (PluginTable(name="channels-last"),)
    assert fast == a_variant("fast", flagsets=("tiling",), flag_sets=(TILING,), plugins=plugins)
    Path("more.toml").write_text(f"{MORE}# a remark\n")
    others = {load_suite(path).text_sha256, load_suite(write_suite(flags=f"{FLAGS}# a remark\n")).text_sha256}
    assert len({plain, loaded.text_sha256, *others}) == 4


def test_models_of_another_suite_have_its_files_and_a_name_of_their_own(write_suite: WriteSuite) -> None:
    plain = load_suite(write_suite())
    Path("more").mkdir()
    Path("more/nets.toml").write_text(SUITE.replace("net.mlir", "../net.mlir").replace("[models.net", "[models.far"))
    Path("more/flags.toml").write_text(FLAGS)
    loaded = load_suite(write_suite("", '\n[model_files]\n"more/nets.toml" = { models = ["f*"], prefix = "o-" }\n'))
    own, far = loaded.models
    assert (own, far) == (plain.models[0], replace(own, name="o-far"))
    assert far.mlir == Path("net.mlir")
    assert loaded.text_sha256 != plain.text_sha256


def test_the_label_of_a_plugin_is_its_name_and_options() -> None:
    options = {"width": 16, "deep": True, "name": "a", "sizes": [1, 2], "scale": math.nan}
    label = "tile(width = 16, deep = true, name = 'a', sizes = [1, 2], scale = nan)"
    assert PluginTable(name="tile", options=options).with_options == label
    assert PluginTable(name="tile").with_options == "tile"


LIST = 'name = "night"\nsuites = ["a.toml", "more/b.toml"]\n'


def written(folder: Path, text: str) -> Path:
    path = folder / "night.toml"
    path.write_text(text)
    return path


def test_a_list_says_its_suites_and_perhaps_how_long_to_measure_them(tmp_path: Path) -> None:
    suites = (tmp_path / "a.toml", tmp_path / "more/b.toml")
    path = written(tmp_path, f"{LIST}[measure]\ngenerations = 3")
    plain = SuiteList(name="night", description="", path=path, suites=suites)
    assert find_list(path) == replace(plain, generations=3)
    assert find_list(written(tmp_path, LIST)) == plain
    assert refusal(path) == f"{path}: is a list of suites; name one of its suites instead"
    assert find_list(written(tmp_path, f"{LIST}[models.net]")) is None
    for old, new, sentence in (
        ('name = "night"\n', "", "name is missing; add it"),
        ("more/b.toml", "./a.toml", "suites: 'a.toml' is there twice; remove one of them"),
    ):
        with pytest.raises(SuiteError) as caught:
            find_list(written(tmp_path, replaced(LIST, old, new)))
        assert str(caught.value) == f"{path}: {sentence}"


def test_the_nightly_list_has_all_suites_but_that_of_all_releases() -> None:
    nightly = find_list(ROOT / "suites/nightly.toml")
    assert nightly is not None
    suites = {path.name for path in (ROOT / "suites").glob("*.toml") if find_list(path) is None}
    assert {path.name for path in nightly.suites} == suites - {"field.toml"}
