"""What loading makes of a suite: plain values, with every default filled in and every path resolved."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.models.model import Expectation, Input, Model, Tolerance
from harness.records.case import Gate, VariantGroup
from harness.suite.load import Device, FlagSet, PluginUse, Suite, Variant, load_suite
from tests.small_suite import FLAGS
from tests.suite.conftest import WriteSuite

TILING = FlagSet(name="tiling", description="", compile=("--iree-opt-data-tiling",), run=(), backends=(), toolchains="")

INPUT = "inputs = [{ shape = [4, 8] }]"


def model(path: Path) -> Model:
    (only,) = load_suite(path).suite.models
    return only


def test_a_suite_that_says_no_more_than_it_must(write_suite: WriteSuite) -> None:
    assert load_suite(write_suite()).suite == Suite(
        name="small",
        description="",
        path=Path("suite.toml"),
        baseline="stock",
        models=(
            Model(
                name="net",
                description="",
                builder=None,
                params={},
                mlir=Path("net.mlir"),
                onnx=None,
                opset=None,
                function="main",
                inputs=(Input(shape=(4, 8), dtype="f32", fill="random", seed=0),),
                parameters={},
                expected=(),
                reference="auto",
                tolerance=Tolerance(relative=1e-4, absolute=1e-5),
                tags=(),
            ),
        ),
        variants=(
            Variant(name="stock", description="", flag_sets=(), compile_flags=(), run_flags=(), plugins=(), tags=()),
            Variant(name="tiled", flag_sets=(TILING,)),
        ),
        devices=(
            Device(
                name="cpu",
                description="",
                uri="local-sync",
                backend="llvm-cpu",
                compile_flags=(),
                run_flags=(),
                pin=False,
                tags=(),
            ),
        ),
        include=("*",),
        exclude=(),
        expectations=(),
        groups=(),
        floors={},
        gates=(),
        ir={},
        budget_s=120.0,
        generations=5,
    )


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
inputs = [{ shape = [], dtype = "i64", value = 3 }, { shape = [2], seed = 7 }, { npy = "x.npy", dtype = "f16" }]
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
                    Input(shape=(), dtype="i64", fill="constant", value=3.0),
                    Input(shape=(2,), dtype="f32", fill="random", seed=7),
                    Input(shape=(), dtype="f16", fill="npy", path=tmp_path / "x.npy"),
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
                plugins=(PluginUse(name="share-concat"),),
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


def test_flag_sets_may_lie_in_another_folder(write_suite: WriteSuite) -> None:
    path = write_suite('"flags.toml"', '"shared/flags.toml"')
    Path("shared").mkdir()
    Path("flags.toml").rename("shared/flags.toml")
    assert load_suite(path).suite.variants[1].flag_sets == (TILING,)


def test_flag_sets_apply_in_the_order_in_which_the_variant_names_them(write_suite: WriteSuite) -> None:
    path = write_suite('["tiling"]', '["zeta", "tiling", "alpha"]', flags=f"{FLAGS}[flagsets.alpha]\n[flagsets.zeta]\n")
    assert [one.name for one in load_suite(path).suite.variants[1].flag_sets] == ["zeta", "tiling", "alpha"]


def test_an_onnx_file_says_its_function_and_inputs_itself(write_suite: WriteSuite) -> None:
    Path("net.onnx").touch()
    found = model(write_suite(f'mlir = "net.mlir"\nfunction = "main"\n{INPUT}', 'onnx = "net.onnx"'))
    assert (found.onnx, found.function, found.inputs, found.opset) == (Path("net.onnx"), None, (), None)


def test_a_device_may_be_several(write_suite: WriteSuite) -> None:
    (device,) = load_suite(write_suite('"local-sync"', '["local-sync", "cuda://0", "local-sync"]')).suite.devices
    assert (device.uri, device.more_uris) == ("local-sync", ("cuda://0", "local-sync"))
    assert device.uris == ("local-sync", "cuda://0", "local-sync")


def test_a_list_of_one_device_is_that_device(write_suite: WriteSuite) -> None:
    assert load_suite(write_suite('"local-sync"', '["local-sync"]')).suite.devices == (
        load_suite(write_suite()).suite.devices
    )


def test_a_device_says_its_vulkan_driver_and_its_threads(write_suite: WriteSuite) -> None:
    text = '"vulkan"\nvulkan_driver = "swiftshader"\nthreads = 4'
    (device,) = load_suite(write_suite('"local-sync"', text)).suite.devices
    assert (device.uri, device.vulkan_driver, device.threads) == ("vulkan", "swiftshader", 4)


def test_the_hash_is_that_of_the_text_of_all_files(write_suite: WriteSuite) -> None:
    first = load_suite(write_suite()).text_sha256
    assert load_suite(write_suite()).text_sha256 == first
    assert load_suite(write_suite("", "# a remark\n")).text_sha256 != first
    assert load_suite(write_suite(flags=f"{FLAGS}# a remark\n")).text_sha256 != first


def test_without_a_seed_the_position_of_an_input_is_its_seed(write_suite: WriteSuite) -> None:
    found = model(write_suite(INPUT, "inputs = [{ shape = [4] }, { shape = [4], seed = 7 }, { shape = [4] }]"))
    assert [one.seed for one in found.inputs] == [0, 7, 2]


def test_an_entry_function_may_take_no_inputs(write_suite: WriteSuite) -> None:
    assert model(write_suite(INPUT, "inputs = []")).inputs == ()


def test_a_byte_order_mark_before_the_text_does_no_harm(write_suite: WriteSuite) -> None:
    path = write_suite()
    expected = load_suite(path).suite
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    assert load_suite(path).suite == expected
