"""Upstream's tests of operators: onnx_ops, with raw inputs and outputs, and torch_ops, with inputs by formula."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.errors import UsageError
from harness.upstream.files import Files
from harness.upstream.forms import OperatorConfig, TorchOperator, read
from harness.upstream.program import LeftOut, Program, Target, first_function, latency_limit, target_of
from harness.upstream.values import Elements, elements_of, tolerance, values_of

_ONNX_OPERATOR, _TORCH_OPERATOR = "run_module_io_flags.txt", "run_module_io.json"


@dataclass(frozen=True, kw_only=True)
class _Known:
    """What a configuration says: the target of all tests, and of single ones why they are left out or fail."""

    content: OperatorConfig
    target: Target
    root: Path  # Names of tests are relative to it

    def why_not(self, name: str) -> str:
        """Why a test does not run; "": it does."""
        if name in self.content.skip_compile_tests:
            return "the configuration skips it"
        return "the configuration only compiles it" if name in self.content.skip_run_tests else ""

    def expectation(self, name: str) -> dict[str, Any]:
        """How a test is known to fail, as a model's table says it."""
        if name in self.content.expected_compile_failures:
            return {"expect": "fail: iree-compile"}
        return {"expect": "fail"} if name in self.content.expected_run_failures else {}


def _known(config: Path | None, file: Path, source: Path) -> _Known:
    """The configuration that a user names, or the only one beside the tests."""
    root = next((folder for folder in file.parents if (folder / "configs").is_dir()), source)
    there = sorted(root.glob("configs/*.json"))
    if config is None and len(there) != 1:
        raise UsageError(f"{root}: configs/ has {len(there)} configurations of its tests; name one with --config")
    content = read(config or there[0], OperatorConfig)
    return _Known(
        content=content, target=target_of(content.iree_compile_flags, content.iree_run_module_flags), root=root
    )


def onnx_operators(source: Path, config: Path | None, files: Files) -> Iterator[Program | LeftOut]:  # noqa: ARG001
    """Tests of ONNX's operators: each a program and a flag file of iree-run-module with raw inputs and outputs."""
    found = sorted(source.rglob(_ONNX_OPERATOR))
    known = _known(config, found[0], source) if found else None
    for file in found:
        assert known is not None  # noqa: S101 (there is a file)
        folder, name = file.parent, file.parent.relative_to(known.root).as_posix()
        if why := known.why_not(name):
            yield LeftOut(name=folder.name, why=why)
            continue
        values: dict[str, list[Elements]] = {"--input": [], "--expected_output": []}
        for line in file.read_text(encoding="utf-8").split():
            flag, _, text = line.partition("=")
            text, _, raw = text.partition("=@")
            if flag not in values:
                raise UsageError(f"{file}: {flag[:100]!r} is a flag that the harness does not read; remove the test")
            values[flag].append(elements_of(text, folder / raw if raw else None))
        mlir = folder / "model.mlir"
        expected = values["--expected_output"]
        yield Program(
            name=folder.name,
            target=known.target,
            mlir=mlir,
            function=first_function(mlir),
            inputs=values["--input"],
            expected=expected,
            more={"tolerance": tolerance(value.dtype for value in expected), **known.expectation(name)},
        )


def torch_operators(source: Path, config: Path | None, files: Files) -> Iterator[Program | LeftOut]:
    """Tests of PyTorch's operators: programs by shape, inputs by formula and seed, right outputs by URL."""
    found = sorted(source.rglob(_TORCH_OPERATOR))
    known = _known(config, found[0], source) if found else None
    for file in found:
        assert known is not None  # noqa: S101 (there is a file)
        name, test = "/".join(file.parent.parts[-2:]), read(file, TorchOperator)
        if why := known.why_not(name):
            yield LeftOut(name=name, why=why)
            continue
        right = [files.get(value.url) for value in test.expected_output if value.url]
        there = [path for path in right if isinstance(path, Path)]
        yield Program(
            name=name.replace("/", "-"),
            target=known.target,
            mlir=file.parent / test.file_name,
            function=test.function_name,
            inputs=list(values_of([argument.Formula for argument in test.flat_args], test.seed)),
            expected=there if len(there) == len(right) else [],  # else the float64 reference judges alone
            more={
                "tolerance": {"relative": test.rtol, "absolute": test.atol},
                "tags": [test.mode],
                **known.expectation(name),
            },
            limits=latency_limit(known.content.golden_times_ms.get(name), known.content.tolerance_factor),
        )
