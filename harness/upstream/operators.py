"""Upstream's tests of operators: onnx_ops, with raw inputs and outputs, and torch_ops, with inputs by formula."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from harness.errors import UsageError
from harness.suite.schema import DeviceTable
from harness.upstream.files import Files
from harness.upstream.forms import OperatorConfig, TorchOperator, read
from harness.upstream.program import Program, Tests, device_of, first_function, latency_limit
from harness.upstream.values import Elements, elements_of, tolerance, values_of


@dataclass(frozen=True, kw_only=True)
class _Known:
    """What a configuration says: the device of all tests, and of single ones why they are left out or fail."""

    content: OperatorConfig
    device: DeviceTable
    root: Path  # Names of tests are relative to it

    def why_not(self, name: str) -> str:
        if name in self.content.skip_compile_tests:
            return "the configuration skips it"
        return "the configuration only compiles it" if name in self.content.skip_run_tests else ""

    def expectation(self, name: str) -> dict[str, Any]:
        if name in self.content.expected_compile_failures:
            return {"expect": "fail: iree-compile"}
        return {"expect": "fail"} if name in self.content.expected_run_failures else {}


def _tests(marker: str, source: Path, config: Path | None) -> Iterator[tuple[Path, _Known]]:
    """Each test's file, with the configuration that a user names, or the only one beside the tests."""
    found = sorted(source.rglob(marker))
    if not found:
        return
    root = next((folder for folder in found[0].parents if (folder / "configs").is_dir()), source)
    there = sorted(root.glob("configs/*.json"))
    if config is None and len(there) != 1:
        raise UsageError(f"{root}: configs/ has {len(there)} configurations of its tests; name one with --config")
    content = read(config or there[0], OperatorConfig)
    device = device_of(content.iree_compile_flags, content.iree_run_module_flags)
    known = _Known(content=content, device=device, root=root)
    yield from ((file, known) for file in found)


def onnx_operators(source: Path, config: Path | None, files: Files) -> Tests:  # noqa: ARG001
    """Tests of ONNX's operators: each a program and a flag file of iree-run-module with raw inputs and outputs."""
    for file, known in _tests("run_module_io_flags.txt", source, config):
        name = file.parent.relative_to(known.root).as_posix()
        yield file.parent.name, known.why_not(name) or partial(_onnx_operator, file, known, name)


def _onnx_operator(file: Path, known: _Known, name: str) -> Program:
    folder, values = file.parent, {"--input": list[Elements](), "--expected_output": list[Elements]()}
    for line in file.read_text(encoding="utf-8").split():
        flag, _, text = line.partition("=")
        text, _, raw = text.partition("=@")
        if flag not in values:
            raise UsageError(f"{flag[:100]!r} is a flag that the harness does not read")
        values[flag].append(elements_of(text, folder / raw if raw else None))
    mlir, expected = folder / "model.mlir", values["--expected_output"]
    return Program(
        name=folder.name,
        device=known.device,
        mlir=mlir,
        function=first_function(mlir),
        inputs=values["--input"],
        expected=expected,
        more={"tolerance": tolerance(value.dtype for value in expected), **known.expectation(name)},
    )


def torch_operators(source: Path, config: Path | None, files: Files) -> Tests:
    """Tests of PyTorch's operators: programs by shape, inputs by formula and seed, right outputs by URL."""
    for file, known in _tests("run_module_io.json", source, config):
        name = "/".join(file.parent.parts[-2:])
        yield name.replace("/", "-"), known.why_not(name) or partial(_torch_operator, file, known, name, files)


def _torch_operator(file: Path, known: _Known, name: str, files: Files) -> Program:
    test = read(file, TorchOperator)
    right = [files.get(value.url) for value in test.expected_output if value.url]
    away = next((why for why in right if isinstance(why, str)), "")
    return Program(
        name=name.replace("/", "-"),
        device=known.device,
        mlir=file.parent / test.file_name,
        function=test.function_name,
        inputs=list(values_of([argument.Formula for argument in test.flat_args], test.seed)),
        expected=[path for path in right if isinstance(path, Path)] if not away else [],
        without=away,
        more={
            "tolerance": {"relative": test.rtol, "absolute": test.atol},
            "tags": [test.mode],
            **known.expectation(name),
        },
        limits=latency_limit(known.content.golden_times_ms.get(name), known.content.tolerance_factor),
    )
