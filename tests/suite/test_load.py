"""What loading makes of a suite: plain values with defaults and resolved paths, or one sentence about what it means."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.errors import SuiteError
from harness.models.model import Expectation, Input, Model, Tolerance
from harness.records.case import Gate, VariantGroup
from harness.suite.load import Device, FlagSet, Suite, SuiteList, Variant, find_list, load_suite
from harness.suite.schema import PluginTable
from tests.builders import FLAGS, a_device, a_model, a_suite, a_variant
from tests.suite.conftest import WriteSuite, replaced
from tests.suite.test_toml_file import INPUT, Mistake, refusal

ROOT = Path(__file__).parents[2]
TILING = FlagSet(name="tiling", compile=("--iree-opt-data-tiling",))
BUILDER = ('mlir = "net.mlir"\nfunction = "main"\n' + INPUT, 'builder = "any"\n')
FOR_FILES = "for mlir and onnx files; a builder gives its own, so remove"
COUNT = '[ir]\nflow = ["flow.tensor.update"]\n'

# Suites that are wrong by what they refer to or contradict, which the JSON Schema cannot know.
WRONG_MEANING = [
    Mistake("a baseline that is no variant", '"stock"', '"stok"',
        "baseline: there is no variant 'stok'; did you mean \"stock\"?"),
    Mistake("a baseline that is like no variant", '"stock"', '"none"',
        "baseline: there is no variant 'none'; known: stock, tiled"),
    Mistake("an unknown flag set", '"tiling"]', '"tilings"]',
        "[variants.tiled] flagsets: there is no flag set 'tilings'; did you mean \"tiling\"?"),
    Mistake("a flag set without flag-set files", 'flagset_files = ["flags.toml"]\n', "",
        "[variants.tiled] flagsets: there is no flag set 'tiling'; no flagset_files are given"),
    Mistake("a flag-set file that is not there", '"flags.toml"', '"flag.toml"',
        "flagset_files: there is no file flag.toml beside the suite; check the path"),
    Mistake("a flag-set file twice", '["flags.toml"]', '["flags.toml", "flags.toml"]',
        "flagset_files: 'flags.toml' is there twice; remove one of them"),
    Mistake("a file of variants that is not there", '"flags.toml"]', '"flags.toml"]\nvariant_files = ["more.toml"]',
        "variant_files: there is no file more.toml beside the suite; check the path"),
    Mistake("a Vulkan driver without Vulkan", "", 'vulkan_driver = "lavapipe"',
        "[devices.cpu] vulkan_driver is for the URI vulkan, and uri is 'local-sync'; remove it"),
    Mistake("threads on the thread that calls", "", "threads = 2",
        "[devices.cpu] threads: local-sync computes on one thread, so use local-task, or remove threads"),
    Mistake("threads on one core", 'uri = "local-sync"', 'uri = "local-task"\npin = true\nthreads = 2',
        "[devices.cpu] has pin, for one core, and threads = 2; remove one of them"),
    Mistake("a group of an unknown variant", "",
        '[[groups]]\ntitle = "A"\nvariants = ["stock", "tiled"]\n[[groups]]\ntitle = "B"\nvariants = ["stock", "tile"]',
        "[[groups]] #2 variants: there is no variant 'tile'; did you mean \"tiled\"?"),
    Mistake("a group with a variant twice", "", '[[groups]]\ntitle = "A"\nvariants = ["stock", "stock"]',
        "[[groups]] #1 variants: 'stock' is there twice; remove one of them"),
    Mistake("ops at a place that is none", "", '[ir]\nflow = ["dispatch:arith.addf"]',
        "[ir]: there is no place 'dispatch', as in 'dispatch:arith.addf'; write host:... or executables:..."),
    Mistake("an op that is counted twice", "", '[ir]\nstart = ["a.*"]\nflow = ["a.*", "b.*", "a.*"]',
        "[ir] flow: 'a.*' is there twice; remove one of them"),
    Mistake("a gate of an op that nobody counts", "", f'{COUNT}[gates.ops]\nmetric = "input/linalg.fill"',
        "[gates.ops] metric: 'input/linalg.fill' is not counted; add 'linalg.fill' to input in [ir]"),
    Mistake("a gate of a misspelt op", "", f'{COUNT}[gates.ops]\nmetric = "flow/flow.tensor.updates"',
        "[gates.ops] metric: 'flow/flow.tensor.updates' is not counted; did you mean \"flow/flow.tensor.update\"?"),
    Mistake("a peer like a variant", 'name = "small"', 'name = "small"\npeers = ["stock"]',
        "peers: 'stock' is the name of a variant; give the peer another label"),
    Mistake("two peers of one name", 'name = "small"', 'name = "small"\npeers = ["a", { name = "b", label = "a" }]',
        "peers: 'a' is there twice; give one of them a label of its own"),
    Mistake("a model of no kind", 'mlir = "net.mlir"\n', "",
        "[models.net] needs exactly one of builder, mlir and onnx, and has none"),
    Mistake("a model of two kinds", 'mlir = "net.mlir"\n', 'mlir = "net.mlir"\nonnx = "net.onnx"\n',
        "[models.net] needs exactly one of builder, mlir and onnx, and has mlir and onnx"),
    Mistake("a model file that is not there", '"net.mlir"', '"nets/net.mlir"',
        "[models.net] mlir: there is no file nets/net.mlir beside the suite; check the path"),
    Mistake("a model file without a name", '"net.mlir"', '""', "[models.net] mlir: the path is empty; add it"),
    Mistake("a model file with a name that no system takes", '"net.mlir"', f'"{"n" * 5000}"',
        f"[models.net] mlir: '{'n' * 59}... cannot be looked up (File name too long); check the path"),
    Mistake("an mlir file without function", 'function = "main"\n', "",
        "[models.net] function is missing; an mlir file needs its entry function and inputs"),
    Mistake("an mlir file without inputs", f"{INPUT}\n", "",
        "[models.net] inputs are missing; an mlir file needs its entry function and inputs"),
    Mistake("parameters of a builder for a file", INPUT, f"{INPUT}\nparams = {{ height = 4 }}",
        "[models.net] params are for builders; remove them or name a builder"),
    Mistake("inputs for a builder", BUILDER[0], BUILDER[1] + INPUT, f"[models.net] inputs are {FOR_FILES} them"),
    Mistake("a function for a builder", BUILDER[0], f'{BUILDER[1]}function = "f"',
        f"[models.net] function is {FOR_FILES} it"),
    Mistake("weights for a builder", BUILDER[0], f'{BUILDER[1]}parameters = {{ model = "a.irpa" }}',
        f"[models.net] parameters are {FOR_FILES} them"),
    Mistake("an opset for an mlir file", INPUT, f"{INPUT}\nopset = 17",
        "[models.net] opset is for onnx files; remove it"),
    Mistake("static shapes for an mlir file", INPUT, f"{INPUT}\nstatic = true",
        "[models.net] static is for onnx files whose inputs are given; remove it, or give inputs"),
    Mistake("static shapes without inputs", BUILDER[0], 'onnx = "net.onnx"\nstatic = true',
        "[models.net] static is for onnx files whose inputs are given; remove it, or give inputs"),
    Mistake("ONNX Runtime for an mlir file", INPUT, f'{INPUT}\nreference = "onnxruntime"',
        '[models.net] reference = "onnxruntime" is for onnx files and builders; leave it out'),
    Mistake("weights that are not there", INPUT, f'{INPUT}\nparameters = {{ model = "weights.irpa" }}',
        "[models.net] parameters.model: there is no file weights.irpa beside the suite; check the path"),
    Mistake("right outputs that are not there", INPUT, f'{INPUT}\nexpected = ["y.npy"]',
        "[models.net] expected: there is no file y.npy beside the suite; check the path"),
    Mistake("an input without shape", INPUT, "inputs = [{ shape = [4] }, { seed = 1 }]",
        "[models.net] inputs[1] shape is missing; add it, values from an npy file, or the value of an argument that is "
        "no tensor"),
    Mistake("a number of a type that IREE has in tensors only", INPUT, 'inputs = [{ dtype = "bf16", value = 2 }]',
        "[models.net] inputs[0] is a number of bf16, which IREE takes in tensors only"),
    Mistake("a tensor of index", INPUT, 'inputs = [{ dtype = "index", shape = [2] }]',
        "[models.net] inputs[0] dtype: index is for an argument that is no tensor; take i64"),
    Mistake("an input of two kinds", INPUT, "inputs = [{ shape = [4], seed = 1, value = 2 }]",
        "[models.net] inputs[0] has seed and value; keep one of them"),
    Mistake("a shape that the file says too", INPUT, 'inputs = [{ shape = [4], npy = "net.mlir" }]',
        "[models.net] inputs[0] has shape and npy; the .npy file says its shape, so remove shape"),
    Mistake("an input file that is not there", INPUT, 'inputs = [{ npy = "x.npy" }]',
        "[models.net] inputs[0] npy: there is no file x.npy beside the suite; check the path"),
    Mistake("an input file that gives no bytes", INPUT, 'inputs = [{ npy = "/proc/self/mem" }]',
        "[models.net] inputs[0] npy: /proc/self/mem cannot be read (Input/output error); check the path and its "
        "permissions"),
]  # fmt: skip


@pytest.mark.parametrize("mistake", WRONG_MEANING, ids=lambda mistake: mistake.what)
def test_a_suite_that_contradicts_itself_or_its_files(mistake: Mistake, write_suite: WriteSuite) -> None:
    assert refusal(write_suite(mistake.old, mistake.new)) == f"suite.toml: {mistake.sentence}"


def test_releases_that_are_no_version_specifier(write_suite: WriteSuite) -> None:
    assert refusal(write_suite(flags=f'{FLAGS}toolchains = "3.x"')) == (
        "flags.toml: [flagsets.tiling] toolchains: '3.x' is not a version specifier; write it like '>=3.8,<4'"
    )


def test_releases_of_a_variant_that_are_no_version_specifier(write_suite: WriteSuite) -> None:
    path = write_suite("[variants.stock]\n", '[variants.stock]\ntoolchains = "3.x"\n')
    assert refusal(path) == (
        "suite.toml: [variants.stock] toolchains: '3.x' is not a version specifier; write it like '>=3.8,<4'"
    )


def test_a_flag_set_that_two_files_define(write_suite: WriteSuite) -> None:
    path = write_suite('["flags.toml"]', '["flags.toml", "more.toml"]')
    Path("more.toml").write_text(FLAGS)
    assert refusal(path) == "more.toml: [flagsets.tiling] is defined in flags.toml too; rename one of them"


MORE = """\
[variants.fast]
flagsets = ["tiling"]
plugins = ["channels-last"]
"""


@pytest.fixture
def write_with_variants(write_suite: WriteSuite) -> Callable[[str], Path]:
    """Write the small suite beside a file of more variants, which it takes in."""

    def write(text: str) -> Path:
        Path("more.toml").write_text(text)
        return write_suite('"flags.toml"]', '"flags.toml"]\nvariant_files = ["more.toml"]')

    return write


def test_variants_of_another_file_follow_the_suites_own(write_with_variants: Callable[[str], Path]) -> None:
    loaded = load_suite(write_with_variants(MORE))
    *own, fast = loaded.suite.variants
    assert [variant.name for variant in own] == ["stock", "tiled"]
    assert fast == a_variant("fast", flag_sets=(TILING,), plugins=(PluginTable(name="channels-last"),))
    assert load_suite(write_with_variants(f"{MORE}tags = ['a']")).text_sha256 != loaded.text_sha256


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("[variants.stock]", "[variants.stock] is defined in suite.toml too; rename one of them"),
        (
            MORE.replace("tiling", "tilings"),
            "[variants.fast] flagsets: there is no flag set 'tilings'; did you mean \"tiling\"?",
        ),
        (MORE.replace("plugins", "plugin"), '[variants.fast] plugin is not a known key; did you mean "plugins"?'),
        ("[devices.cpu]", "devices is not a known key; known: variants (and 1 more error)"),
        ("", "variants is missing; add it"),
    ],
)
def test_variants_of_another_file_that_are_wrong(
    text: str, sentence: str, write_with_variants: Callable[[str], Path]
) -> None:
    assert refusal(write_with_variants(text)) == f"more.toml: {sentence}"


def test_a_variant_of_two_files(write_with_variants: Callable[[str], Path]) -> None:
    path = write_with_variants(MORE)
    path.write_text(path.read_text().replace('["more.toml"]', '["more.toml", "most.toml"]'))
    Path("most.toml").write_text(MORE)
    assert refusal(path) == "most.toml: [variants.fast] is defined in more.toml too; rename one of them"


def model(path: Path) -> Model:
    (only,) = load_suite(path).suite.models
    return only


def test_a_suite_that_says_no_more_than_it_must(write_suite: WriteSuite) -> None:
    target = ("--iree-hal-target-device=local",)
    small = a_suite(
        a_variant(),
        a_variant("tiled", flag_sets=(TILING,)),
        models=(a_model(function="main", inputs=(Input(shape=(4,), dtype="f32", fill="random", seed=0),)),),
        devices=(a_device(compile_flags=target),),
    )
    assert load_suite(write_suite()).suite == replace(small, name="small", budget_s=120.0, generations=5)


EVERYTHING = """\
name = "all-of-it"
description = "every key there is"
baseline = "stock"
flagset_files = ["flags.toml"]

[models.imported]
description = "from a framework"
onnx = "net.onnx"
opset = 17
function = "run"
inputs = [
    { dtype = "i64", value = 3 },
    { shape = [], value = 3 },
    { shape = [2], seed = 7 },
    { npy = "x.npy", dtype = "f16" },
    { npy = "x.npy" },
]
parameters = { weights = "weights.irpa" }
expected = ["y.npy"]
reference = "onnxruntime"
tolerance = { relative = 0.01, absolute = 0 }
expect = "fail: no such operator"
tags = ["vision"]

[models.built]
builder = "residual-dense-block"
params = { height = 8 }
expect = "mismatch"

[variants.stock]
description = "as it comes"

[variants.both]
flagsets = ["late", "early"]
flags = ["--iree-opt-level=O3"]
run_flags = ["--task_topology_group_count=2"]
plugins = ["share-concat"]
tags = ["data-tiling"]

[devices.gpu]
description = "the second one"
uri = "vulkan://1"
backend = "vulkan-spirv"
compile_flags = ["--iree-hal-target-device=vulkan"]
run_flags = ["--vulkan_device_index=1"]
pin = true
tags = ["gpu"]

[matrix]
include = ["built/*", "imported/*"]
exclude = ["built/both@*"]

[[expect]]
cases = "*/both@gpu"
fails = "shared memory"

[[expect]]
cases = "imported/stock@gpu"
mismatch = true

[[groups]]
title = "Data tiling"
variants = ["stock", "both"]

[floors]
latency = 0.02
compile-time = 0.1

[gates.memory]
metric = "transient-memory"

[gates."latency.gpu"]
metric = "latency"
cases = "*@gpu"
direction = "any"
relative = 0.1
absolute = 50_000

[gates.updates]
metric = "flow/flow.tensor.update"

[ir]
flow = ["flow.tensor.update", "host:arith.*"]
bufferized = ["executables:memref.alloc[ac]"]

[measure]
budget_s = 1.5
generations = 3
"""

EVERY_FLAG = """\
[flagsets.early]
description = "packed on the host"
compile = ["--iree-global-opt-data-tiling"]
run = ["--device_allocator=caching"]
backends = ["llvm-cpu"]
toolchains = ">=3.8,<4"

[flagsets.late]
"""


def test_a_suite_that_says_everything(tmp_path: Path) -> None:
    for name in ("net.onnx", "x.npy", "y.npy", "weights.irpa"):
        (tmp_path / name).touch()
    (tmp_path / "flags.toml").write_text(EVERY_FLAG)
    path = tmp_path / "suite.toml"
    path.write_text(EVERYTHING)
    assert load_suite(path).suite == Suite(
        name="all-of-it",
        description="every key there is",
        path=path,
        baseline="stock",
        models=(
            Model(
                name="imported",
                description="from a framework",
                params={},
                onnx=tmp_path / "net.onnx",
                opset=17,
                function="run",
                inputs=(
                    Input(scalar=True, dtype="i64", fill="constant", value=3.0),
                    Input(fill="constant", value=3.0),
                    Input(shape=(2,), dtype="f32", fill="random", seed=7),
                    Input(shape=(), dtype="f16", fill="npy", path=tmp_path / "x.npy"),
                    Input(dtype="", fill="npy", path=tmp_path / "x.npy"),
                ),
                parameters={"weights": tmp_path / "weights.irpa"},
                expected=(tmp_path / "y.npy",),
                reference="onnxruntime",
                tolerance=Tolerance(relative=0.01, absolute=0.0),
                expectation=Expectation(cases="imported/*", message="no such operator"),
                tags=("vision",),
            ),
            Model(
                name="built",
                builder="residual-dense-block",
                params={"height": 8},
                parameters={},
                expectation=Expectation(cases="built/*", message=None),
            ),
        ),
        variants=(
            Variant(name="stock", description="as it comes"),
            Variant(
                name="both",
                flag_sets=(
                    FlagSet(name="late"),
                    FlagSet(
                        name="early",
                        description="packed on the host",
                        compile=("--iree-global-opt-data-tiling",),
                        run=("--device_allocator=caching",),
                        backends=("llvm-cpu",),
                        toolchains=">=3.8,<4",
                    ),
                ),
                compile_flags=("--iree-opt-level=O3",),
                run_flags=("--task_topology_group_count=2",),
                plugins=(PluginTable(name="share-concat"),),
                tags=("data-tiling",),
            ),
        ),
        devices=(
            Device(
                name="gpu",
                description="the second one",
                uri="vulkan://1",
                backend="vulkan-spirv",
                compile_flags=("--iree-hal-target-device=vulkan",),
                run_flags=("--vulkan_device_index=1",),
                pin=True,
                tags=("gpu",),
            ),
        ),
        include=("built/*", "imported/*"),
        exclude=("built/both@*",),
        expectations=(
            Expectation(cases="*/both@gpu", message="shared memory"),
            Expectation(cases="imported/stock@gpu", message=None),
        ),
        groups=(VariantGroup(title="Data tiling", variants=("stock", "both")),),
        floors={"latency": 0.02, "compile-time": 0.1},
        gates=(
            Gate(name="memory", metric="transient-memory", cases="*", direction="increase"),
            Gate(
                name="latency.gpu",
                metric="latency",
                cases="*@gpu",
                direction="any",
                relative=0.1,
                absolute=50_000.0,
            ),
            Gate(name="updates", metric="flow/flow.tensor.update"),
        ),
        ir={"flow": ("flow.tensor.update", "host:arith.*"), "bufferized": ("executables:memref.alloc[ac]",)},
        budget_s=1.5,
        generations=3,
    )


def test_paths_start_from_the_suite_not_from_the_current_folder(
    write_suite: WriteSuite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_suite().absolute()
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert model(path).mlir == tmp_path / "net.mlir"
    assert model(Path("../suite.toml")).mlir == Path("../net.mlir")


def test_flag_sets_come_from_another_folder_and_apply_in_the_order_of_the_variant(write_suite: WriteSuite) -> None:
    path = write_suite('"flags.toml"', '"shared/flags.toml"', flags=f"{FLAGS}[flagsets.alpha]\n[flagsets.zeta]\n")
    path.write_text(path.read_text().replace('["tiling"]', '["zeta", "tiling", "alpha"]'))
    Path("shared").mkdir()
    Path("flags.toml").rename("shared/flags.toml")
    assert load_suite(path).suite.variants[1].flag_sets == (FlagSet(name="zeta"), TILING, FlagSet(name="alpha"))


def test_an_onnx_file_says_its_function_and_inputs_itself(write_suite: WriteSuite) -> None:
    Path("net.onnx").touch()
    network = model(write_suite(BUILDER[0], 'onnx = "net.onnx"'))
    assert (network.onnx, network.function, network.inputs, network.opset) == (Path("net.onnx"), None, (), None)


@pytest.mark.parametrize(
    ("uri", "uris"),
    [
        ('["local-sync"]', ("local-sync",)),
        ('["local-sync", "cuda://0", "local-sync"]', ("local-sync", "cuda://0", "local-sync")),
    ],
)
def test_a_device_may_be_several(uri: str, uris: tuple[str, ...], write_suite: WriteSuite) -> None:
    (device,) = load_suite(write_suite('"local-sync"', uri)).suite.devices
    assert (device.uri, device.uris) == (uris[0], uris)


def test_a_device_says_its_vulkan_driver_and_its_threads(write_suite: WriteSuite) -> None:
    text = '"vulkan"\nvulkan_driver = "swiftshader"\nthreads = 4'
    (device,) = load_suite(write_suite('"local-sync"', text)).suite.devices
    assert (device.uri, device.vulkan_driver, device.threads) == ("vulkan", "swiftshader", 4)


def test_the_hash_is_that_of_the_text_of_all_files(write_suite: WriteSuite) -> None:
    first = load_suite(write_suite()).text_sha256
    assert load_suite(write_suite()).text_sha256 == first
    assert load_suite(write_suite("", "# a remark\n")).text_sha256 != first
    assert load_suite(write_suite(flags=f"{FLAGS}# a remark\n")).text_sha256 != first


@pytest.mark.parametrize(
    ("inputs", "seeds"), [("{ shape = [4] }, { shape = [4], seed = 7 }, { shape = [4] }", [0, 7, 2]), ("", [])]
)
def test_without_a_seed_the_position_of_an_input_is_its_seed(
    inputs: str, seeds: list[int], write_suite: WriteSuite
) -> None:
    assert [argument.seed for argument in model(write_suite(INPUT, f"inputs = [{inputs}]")).inputs] == seeds


@pytest.mark.parametrize(
    ("options", "label"),
    [
        ({}, "tile"),
        ({"width": 16, "deep": True, "name": "a"}, "tile(width = 16, deep = true, name = 'a')"),
        ({"sizes": [1, 2], "scale": math.nan}, "tile(sizes = [1, 2], scale = nan)"),
    ],
)
def test_the_label_of_a_plugin_is_its_name_and_options(options: dict[str, Any], label: str) -> None:
    assert PluginTable(name="tile", options=options).with_options == label


@given(value=st.text() | st.lists(st.text() | st.floats(), max_size=3) | st.dictionaries(st.text(), st.text()))
def test_a_label_is_one_line_whatever_the_options_hold(value: object) -> None:
    label = PluginTable(name="tile", options={"value": value}).with_options
    assert label.isprintable()
    assert len(label.splitlines()) == 1


LIST = 'name = "night"\nsuites = ["a.toml", "more/b.toml"]\n'


def written(folder: Path, text: str) -> Path:
    path = folder / "night.toml"
    path.write_text(text)
    return path


def test_a_list_says_its_suites_and_perhaps_how_long_to_measure_them(tmp_path: Path) -> None:
    path = written(tmp_path, f'description = "all of them"\n{LIST}[measure]\nbudget_s = 2.5\ngenerations = 3')
    suites = (tmp_path / "a.toml", tmp_path / "more/b.toml")
    assert find_list(path) == SuiteList(
        name="night", description="all of them", path=path, suites=suites, budget_s=2.5, generations=3
    )
    assert find_list(written(tmp_path, LIST)) == SuiteList(name="night", description="", path=path, suites=suites)


def test_a_suite_is_no_list_and_neither_is_what_has_models_as_well(write_suite: WriteSuite, tmp_path: Path) -> None:
    assert find_list(write_suite()) is None
    assert find_list(written(tmp_path, f"{LIST}[models.net]")) is None
    assert find_list(written(tmp_path, "")) is None


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ('name = "night"\n', "", "name is missing; add it"),
        ('"a.toml", "more/b.toml"', "", "suites: [] must have at least 1 entry"),
        ("more/b.toml", "./a.toml", "suites: 'a.toml' is there twice; remove one of them"),
        ("", 'baseline = "s"', "baseline is not a known key; known: description, measure, name, suites"),
    ],
)
def test_a_wrong_list(old: str, new: str, sentence: str, tmp_path: Path) -> None:
    path = written(tmp_path, replaced(LIST, old, new))
    with pytest.raises(SuiteError) as caught:
        find_list(path)
    assert str(caught.value) == f"{path}: {sentence}"


def test_where_one_suite_is_wanted_a_list_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path, LIST)
    assert refusal(path) == f"{path}: is a list of suites; name one of its suites instead, such as 'a.toml'"


def test_the_nightly_list_has_all_suites() -> None:
    nightly = find_list(ROOT / "suites/nightly.toml")
    assert nightly is not None
    assert {path.name for path in nightly.suites} == {
        path.name for path in (ROOT / "suites").glob("*.toml") if find_list(path) is None
    }
