"""Suites of upstream's tests, from checkouts in the forms that these have; and one that runs."""

import base64
import hashlib
import json
import re
import shutil
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
import pytest

from harness.cli import run_command_line
from harness.errors import RunError, UsageError
from harness.models.inputs import make_array
from harness.report.run_report import build_report
from harness.store.run_directory import load_run
from harness.suite.load import Suite, load_suite
from harness.suite.schema import DeviceTable
from harness.upstream import write_suites
from harness.upstream.files import Files
from harness.upstream.program import device_of

CPU = ["--iree-hal-target-device=local", "--iree-hal-local-target-device-backends=llvm-cpu"]
ADD = """func.func @test_add(%a: tensor<4xf32>, %b: tensor<4xf32>) -> tensor<4xf32> {
  %0 = arith.addf %a, %b : tensor<4xf32>
  return %0 : tensor<4xf32>
}
"""


def put(folder: Path, files: dict[str, Any]) -> Path:
    """Write files of text, of bytes, or of JSON."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        content = content.encode() if isinstance(content, str) else content
        path.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
    return folder


def raw(*values: float, dtype: str = "<f4") -> bytes:
    return np.array(values, dtype=dtype).tobytes()


def onnx_ops(folder: Path, **config: Any) -> Path:
    """Two tests of one program: `test_add`, and `test_wrong`, whose right outputs are not."""
    flags = "".join(f"--input=4xf32=@in{number}.bin\n" for number in (0, 1)) + "--expected_output=4xf32=@out.bin\n"
    test = {"model.mlir": ADD, "flags.txt": flags, "in0.bin": raw(1, 2, 3, 4), "in1.bin": raw(1, 1, 1, 1)}
    tests = {"test_add": raw(2, 3, 4, 5), "test_wrong": raw(2, 3, 4, 6)}
    configuration = {"iree_compile_flags": CPU, "iree_run_module_flags": ["--device=local-sync"], **config}
    files: dict[str, Any] = {"configs/cpu.json": configuration}
    for name, right in tests.items():
        for file, content in {**test, "out.bin": right}.items():
            files[f"node/{name}/{file.replace('flags.txt', 'run_module_io_flags.txt')}"] = content
    return put(folder, files)


def written(source: Path, out: Path, **options: Any) -> tuple[Suite, dict[str, str]]:
    """The suite of a checkout of one kind of tests, and why tests are left out."""
    file = write_suites(source, "upstream", out, lambda _: None, **{"config": None, "files": None, **options})
    return load_suite(file), dict(re.findall(r"^# without (.+?), since (.+)$", file.read_text(), re.MULTILINE))


def test_raw_operators_run_and_are_checked_as_upstream_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    source = onnx_ops(tmp_path / "ops", expected_run_failures=["node/test_wrong", "node/test_add"])
    assert run_command_line(["new", "suite", "ops", "--from", str(source)]) == 0
    assert "ops.toml: 2 tests of onnx-ops" in capsys.readouterr().err
    assert run_command_line(["run", "ops.toml", "--no-measure", "--results", "results"]) == 0
    (run,) = (tmp_path / "results").glob("*-ops")
    report = build_report(load_run(run))
    assert {row.model: row.status for row in report.rows()} == {
        "test_add": "not timed",
        "test_wrong": "expected failure",
    }
    assert report.summary.works_again == 1
    assert {check.against for check in load_run(run).checks} == {"expected files"}


def test_what_a_configuration_skips_is_left_out_and_what_it_expects_is_said(tmp_path: Path) -> None:
    config = {"skip_run_tests": ["node/test_wrong"], "expected_compile_failures": ["node/test_add"]}
    suite, left_out = written(onnx_ops(tmp_path / "ops", **config), tmp_path / "out")
    assert left_out == {"test_wrong": "the configuration only compiles it"}
    (model,) = suite.models
    assert (model.function, model.reference) == ("test_add", "expected")
    assert model.tolerance is not None
    assert (model.tolerance.relative, model.tolerance.absolute) == (1e-5, 1e-4)
    assert model.expectation is not None and model.expectation.message == "iree-compile"
    assert [list(make_array(value)) for value in model.inputs] == [[1, 2, 3, 4], [1, 1, 1, 1]]


def torch_op(mode: str, **more: Any) -> dict[str, Any]:
    formula = {"shape": [2, 3], "dtype": "float16", "coeff": 2, "offset": -1}
    test = {"function_name": "main", "file_name": "test.mlir", "flat_args": [{"Formula": formula}] * 2, "seed": 9}
    return {"run_module_io.json": {**test, "rtol": 1e-3, "atol": 1e-2, "mode": mode, **more}, "test.mlir": ADD}


def test_operators_by_formula_have_numpys_values_and_goldens_are_limits(tmp_path: Path) -> None:
    away = {"expected_output": [{"url": "http://127.0.0.1:1/right.npy", "value": None}]}
    config = {"iree_compile_flags": CPU, "iree_run_module_flags": [], "golden_times_ms": {"AB/2x3_bench": 0.25}}
    tests = {"2x3_bench": torch_op("benchmark"), "2x3": torch_op("compare", **away)}
    files = {f"generated/AB/{name}/{file}": text for name, test in tests.items() for file, text in test.items()}
    suite, _ = written(put(tmp_path / "ops", {"configs/cpu.json": config, **files}), tmp_path / "out")
    compared, timed = suite.models
    assert (compared.name, timed.tags, compared.reference) == ("AB-2x3", ("benchmark",), "auto")
    np.random.seed(9)
    for value in compared.inputs:
        right = (2 * np.random.rand(2, 3) - 1).astype("float16")
        assert np.array_equal(make_array(value), right)
    (gate,) = suite.gates
    assert (gate.metric, gate.cases) == ("latency", "AB-2x3_bench/*")
    assert gate.at_most == pytest.approx(0.25e6 * 1.1)


def test_models_of_json_have_their_module_weights_and_goldens(tmp_path: Path) -> None:
    module = {
        "mlir": "https://x.example/a/model.mlir",
        "compiler_flags": [*CPU, "--iree-scheduling-dump-statistics-file=x"],
    }
    weights = [{"type": "url", "scope": "model", "url": "https://x.example/a/w.irpa"}]
    test = {"markers": ["cpu"], "modules": ["sdxl/modules/clip"], "weights": weights, "inputs": [{"value": "1x64xi64"}]}
    right = {"url": "https://x.example/a/out.bin", "value": "2x2xf16"}
    run_args = [
        "--device=local-task",
        "--function=encode",
        "--expected_f16_threshold=1.0f",
        "--device_allocator=caching",
    ]
    source = put(
        tmp_path / "torch_models",
        {
            "sdxl/modules/clip.json": module,
            "sdxl/clip_quality.json": {"type": "quality", **test, "expected_outputs": [right], "run_args": run_args},
            "sdxl/clip_benchmark.json": {"type": "benchmark", **test, "run_args": run_args, "golden_time_ms": 20.0},
            "sdxl/clip_compstat.json": {"type": "compstat", "module": "sdxl/modules/clip", "golden_dispatch_count": 74},
            "sdxl/broken.json": "{",
            "sdxl/two.json": {"type": "benchmark", **test, "modules": ["sdxl/modules/clip"] * 2},
            "sdxl/drawn.json": {"type": "benchmark", **test, "weights": [{"type": "random", "scope": "model"}]},
            "local/model.mlir": ADD,
            "local/w.irpa": b"IRPA",
            "local/out.bin": raw(1, 2, 3, 4, dtype="<f2"),
            "files.toml": "[files]\n"
            + "".join(
                f'"https://x.example/a/{name}" = "local/{name}"\n' for name in ("model.mlir", "w.irpa", "out.bin")
            ),
        },
    )
    suite, left_out = written(source, tmp_path / "out", files=source / "files.toml")
    assert left_out == {
        "sdxl-broken": "it is damaged: Invalid JSON: EOF while parsing an object at line 1 column 1",
        "sdxl-drawn": "its weights are random ones, which upstream makes when it runs",
        "sdxl-two": "it links 2 modules, and a case of the harness is one",
    }
    benchmark, quality = suite.models
    assert (benchmark.name, benchmark.function, benchmark.mlir) == (
        "sdxl-clip_benchmark",
        "encode",
        tmp_path / "out/../torch_models/local/model.mlir",
    )
    assert benchmark.parameters == {"model": tmp_path / "out/../torch_models/local/w.irpa"}
    assert quality.tolerance is not None and quality.tolerance.absolute == 1.0
    assert np.array_equal(np.load(quality.expected[0]), np.array([[1, 2], [3, 4]], dtype=np.float16))
    limits = {(gate.cases, gate.metric): gate.at_most for gate in suite.gates}
    assert limits == {
        ("sdxl-clip_benchmark/*", "dispatches"): 74,
        ("sdxl-clip_benchmark/*", "latency"): pytest.approx(22e6),
        ("sdxl-clip_quality/*", "dispatches"): 74,
    }
    (device,) = suite.devices
    assert (device.uri, device.compile_flags, device.run_flags) == (
        "local-task",
        tuple(CPU),
        ("--device_allocator=caching",),
    )


def test_a_quality_test_of_sharktank_has_the_goldens_of_the_benchmark_of_its_name(tmp_path: Path) -> None:
    url = "https://x.example/m"
    quality = {"mlir": f"{url}.mlir", "real_weights": f"{url}.irpa", "run_function": "f", "device": "local-task"}
    golden = {"function_run": "f", "golden_time_ms": {"cpu": 10.0}, "golden_dispatch": {"mi300": 1, "mi325": 2}}
    source = put(
        tmp_path / "sharktank_models",
        {
            "quality_tests/sdxl/clip_cpu.json": {**quality, "compiler_flags": CPU},
            "quality_tests/sdxl/away.json": {**quality, "mlir": "http://127.0.0.1:1/a.mlir"},
            "benchmarks/sdxl/clip_cpu.json": golden,
            "m.mlir": ADD,
            "m.irpa": b"IRPA",
            "files.toml": f'[files]\n"{url}.mlir" = "m.mlir"\n"{url}.irpa" = "m.irpa"\n',
        },
    )
    suite, left_out = written(source, tmp_path / "out", files=source / "files.toml")
    assert left_out == {"sdxl-away": "127.0.0.1 cannot be reached; give what it has with --files"}
    assert [model.name for model in suite.models] == ["sdxl-clip_cpu"]
    (gate,) = suite.gates
    assert gate.metric == "latency" and gate.at_most == pytest.approx(11e6)


def test_toy_models_read_their_inputs_from_parameter_archives(tmp_path: Path) -> None:
    header = struct.pack("<4sI9Q", b"IRPA", 0, 88, 0, 0, 1, 96, 76, 172, 184, 384)
    tokens = np.arange(4 * 17, dtype="<i8")
    archive = header[:72] + struct.pack("<Q", 384) + bytes(384 - 80) + tokens.tobytes() + bytes(64)
    toy = {"f32_parameters.irpa": b"IRPA", "f32.mlir": ADD, "forward_bs4_arg0_input_ids.irpa": archive}
    source = put(tmp_path / "sharktank_models", {f"clip/toy/{name}": content for name, content in toy.items()})
    suite, _ = written(source, tmp_path / "out")
    (model,) = suite.models
    assert (model.name, model.function) == ("toy-clip-f32", "forward_bs4")
    assert np.array_equal(make_array(model.inputs[0]), tokens.reshape(4, 17))


def test_a_checkout_with_several_kinds_is_a_list_of_suites(tmp_path: Path) -> None:
    source = tmp_path / "checkout"
    onnx_ops(source / "onnx_ops")
    put(source / "torch_ops", {f"generated/AB/2x3/{name}": text for name, text in torch_op("compare").items()})
    put(source / "torch_ops", {"configs/cpu.json": {"iree_compile_flags": CPU, "iree_run_module_flags": []}})
    file = write_suites(source, "all", tmp_path, lambda _: None, config=None, files=None)
    assert 'suites = [\n    "all-onnx-ops.toml",\n    "all-torch-ops.toml",\n]' in file.read_text()
    with pytest.raises(UsageError, match=r"all\.toml: is there already"):
        write_suites(source, "all", tmp_path, lambda _: None, config=None, files=None)


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({}, "has none of the tests of iree-test-suites"),
        ({"node/t/run_module_io_flags.txt": ""}, r"configs/ has 0 configurations of its tests; name one with --config"),
        (
            {"configs/c.json": {"iree_compile_flags": 3}, "node/t/run_module_io_flags.txt": ""},
            r"c\.json: is not what upstream's tests have there \(iree_compile_flags: ",
        ),
    ],
    ids=["another folder", "no configuration", "another form"],
)
def test_what_is_not_upstreams_is_refused_in_a_sentence(tmp_path: Path, files: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        written(put(tmp_path / "x", files), tmp_path / "out") if files else written(tmp_path, tmp_path / "out")


@pytest.mark.parametrize(
    ("files", "why"),
    [
        ({"run_module_io_flags.txt": "--input=4xf32=1,2"}, "'4xf32=1,2' lists elements, which"),
        ({"run_module_io_flags.txt": "--seed=3"}, "'--seed' is a flag that the harness does not read"),
        ({"run_module_io_flags.txt": b"\xff"}, "'utf-8' codec can't decode byte 0xff"),
        ({"in0.bin": b"123"}, "in0.bin does not hold 4xf32"),
    ],
    ids=["elements", "flag", "no text", "cut short"],
)
def test_a_damaged_test_is_left_out_and_the_others_stay(tmp_path: Path, files: dict[str, Any], why: str) -> None:
    source = onnx_ops(tmp_path / "ops")
    put(source / "node" / "test_wrong", files)
    suite, left_out = written(source, tmp_path / "out")
    assert [model.name for model in suite.models] == ["test_add"]
    assert why in left_out["test_wrong"]


def test_what_cannot_be_written_is_no_fault_of_a_test(tmp_path: Path) -> None:
    put(tmp_path / "out", {"upstream": "a file where the folder of values would be"})
    with pytest.raises(RunError, match=r"\.npy: cannot be written \(.+\); choose another folder with --out"):
        written(onnx_ops(tmp_path / "ops"), tmp_path / "out")


def test_reasons_are_comments_without_credentials_and_names_are_told_apart(tmp_path: Path) -> None:
    source = onnx_ops(tmp_path / "ops")
    shutil.copytree(source / "node" / "test_add", source / "other" / "test_add")
    shutil.copytree(source / "node" / "test_add", source / "node" / "test add")
    _, left_out = written(source, tmp_path / "out")
    assert set(left_out) == {"test add", "test_add"}
    url = "http://user:secret@127.0.0.1:1/a.npy\n[variants.evil]"
    test = torch_op("compare", expected_output=[{"url": url}])
    source = put(tmp_path / "torch", {f"generated/AB/2x3/{name}": text for name, text in test.items()})
    put(source, {"configs/cpu.json": {"iree_compile_flags": CPU, "iree_run_module_flags": []}})
    suite, _ = written(source, tmp_path / "torch-suites")
    assert [variant.name for variant in suite.variants] == ["upstream"]
    text = suite.path.read_text()
    assert (
        text.startswith("# without right outputs of AB-2x3, since 127.0.0.1 cannot be reached") and "secret" not in text
    )


def test_flags_choose_the_target() -> None:
    hip = device_of(["--iree-hal-target-device=hip[0]"], ["--device=hip"])
    assert hip == DeviceTable(uri=("hip",), backend="rocm", compile_flags=("--iree-hal-target-device=hip[0]",))
    assert device_of(["--iree-hal-target-backends=vmvx"], []).backend == "vmvx"


# --- Files by URL ---


@contextmanager
def serving(content: bytes, stated: bytes) -> Iterator[tuple[str, list[str]]]:
    """A server that has one file, states the hash of another content, and notes what it is asked for."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_response(200 if self.path == "/w.irpa" else 404)
            self.send_header(
                "Content-MD5", base64.b64encode(hashlib.md5(stated, usedforsecurity=False).digest()).decode()
            )
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", asked
    finally:
        server.shutdown()
        server.server_close()


def test_a_file_is_fetched_once_and_held_against_the_hash_that_its_server_states() -> None:
    with serving(b"weights", b"weights") as (address, asked):
        files = Files(None, lambda _: None)
        found = [files.get(f"{address}/w.irpa") for _ in range(2)]
        assert isinstance(found[0], Path) and found[0].read_bytes() == b"weights"
        assert (found[0], asked) == (found[1], ["/w.irpa"])
        assert files.get(f"{address}/none") == f"{address}/none answers 404"
    with serving(b"weights", b"other") as (address, _):
        assert files.get(f"{address}/w.irpa") == f"{address}/w.irpa came damaged; try again"
