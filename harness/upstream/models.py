"""Upstream's tests of models: torch_models and sharktank_models in JSON, and the two toy models in the checkout."""

import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from harness.models.inputs import Array
from harness.upstream.files import Files
from harness.upstream.forms import (
    ModelTest,
    ModuleFile,
    SharktankBenchmark,
    SharktankQuality,
    Value,
    read,
    read_if,
)
from harness.upstream.program import LeftOut, Program, latency_limit, target_of
from harness.upstream.values import Value as Elements
from harness.upstream.values import tolerance, value_of_flag

# Metrics that goldens limit.
_DISPATCHES, _MODULE_SIZE = "dispatches", "module-size"


class _Missing(Exception):
    """Something that a test needs cannot be had; its message says what, and why."""


@dataclass(frozen=True, kw_only=True)
class _Fetching:
    """Files of one test; _Missing where one cannot be had."""

    files: Files

    def file(self, url: str) -> Path:
        found = self.files.get(url)
        if isinstance(found, str):
            raise _Missing(found)
        return found

    def inputs(self, values: Sequence[Value]) -> list[Elements]:
        return [value_of_flag(str(each.value), self.file(each.address) if each.address else None) for each in values]

    def expected(self, values: Sequence[Value]) -> list[Elements | Path]:
        """Right outputs: raw elements where their type is said, else .npy files."""
        pairs = [(each, self.file(str(each.address))) for each in values]
        return [value_of_flag(each.value, file) if each.value else file for each, file in pairs]


def _kept(flags: Sequence[str]) -> list[str]:
    """What of the flags of iree-run-module is neither a device, nor a function, nor a tolerance."""
    return [flag for flag in flags if not flag.startswith(("--function=", "--expected_", "--device="))]


def _said(flags: Sequence[str], name: str) -> str:
    return next((flag.partition("=")[2] for flag in flags if flag.startswith(f"--{name}=")), "")


def _first_function(mlir: Path) -> str:
    return mlir.read_text(encoding="utf-8", errors="replace").partition("func.func @")[2].partition("(")[0]


def _dtypes(expected: Sequence[Elements | Path]) -> list[str]:
    return [right.dtype for right in expected if isinstance(right, Elements)]


# --- torch_models: tests name modules, and modules name programs ---


def torch_models(source: Path, config: Path | None, files: Files) -> Iterator[Program | LeftOut]:  # noqa: ARG001
    """Tests of PyTorch's models: quality and benchmark become programs, compstat gives these limits."""
    tests = {
        file: test for file in sorted(source.rglob("*.json")) if isinstance(test := read_if(file, ModelTest), ModelTest)
    }
    limits: dict[Path, dict[str, float]] = {}
    for file, test in tests.items():
        if test.type == "compstat" and test.module:
            golden = {_DISPATCHES: test.golden_dispatch_count, _MODULE_SIZE: test.golden_binary_size}
            known = {name: float(value) for name, value in golden.items() if value is not None}
            limits.setdefault(_module_file(file, test.module), {}).update(known)
    for file, test in tests.items():
        name = file.stem
        if test.type == "compstat":
            continue
        try:
            yield _of_test(name, file, test, _Fetching(files=files), limits)
        except _Missing as missing:
            yield LeftOut(name=name, why=str(missing))


def _module_file(test: Path, module: str) -> Path:
    """A module's file: upstream names it relative to a folder above the tests."""
    places = [(folder / module).with_suffix(".json") for folder in test.parents]
    return next((place for place in places if place.is_file()), places[0])


def _of_test(
    name: str, file: Path, test: ModelTest, fetching: _Fetching, limits: Mapping[Path, Mapping[str, float]]
) -> Program:
    if len(test.modules) != 1:
        raise _Missing(f"it links {len(test.modules)} modules, and a case of the harness is one")
    if any(weights.url is None for weights in test.weights):
        raise _Missing("its weights are random ones, which upstream makes when it runs")
    module_file = _module_file(file, test.modules[0])
    module = read(module_file, ModuleFile)
    mlir = fetching.file(module.mlir)
    expected = fetching.expected(test.expected_outputs)
    return Program(
        name=name,
        target=target_of(module.compiler_flags, _kept(test.run_args), _said(test.run_args, "device")),
        mlir=mlir,
        function=_said(test.run_args, "function") or _first_function(mlir),
        inputs=fetching.inputs(test.inputs),
        expected=expected,
        parameters={weights.scope: fetching.file(str(weights.url)) for weights in test.weights},
        more={"tolerance": tolerance(_dtypes(expected), test.run_args)} if expected else {},
        limits={**limits.get(module_file, {}), **latency_limit(test.golden_time_ms, test.tolerance_factor)},
    )


# --- sharktank_models: quality tests are programs, and benchmarks of the same name give them limits ---


def sharktank_models(source: Path, config: Path | None, files: Files) -> Iterator[Program | LeftOut]:  # noqa: ARG001
    """Tests of sharktank's models, and its toy models, whose weights are in the checkout."""
    found = sorted(source.rglob("*.json"))
    benchmarks = {file: read_if(file, SharktankBenchmark) for file in found}
    limits = {_name(file): _limits(test) for file, test in benchmarks.items() if isinstance(test, SharktankBenchmark)}
    for file in found:
        test = read_if(file, SharktankQuality)
        if not isinstance(test, SharktankQuality) or "quality_tests" not in file.parts:
            continue
        try:
            yield _of_quality(_name(file), test, _Fetching(files=files), limits.get(_name(file), {}))
        except _Missing as missing:
            yield LeftOut(name=_name(file), why=str(missing))
    for toy in _TOYS:
        for weights in sorted(source.rglob(toy.weights)):
            yield toy.program(weights)


def _name(file: Path) -> str:
    return f"{file.parent.name}-{file.stem}"


def _limits(test: SharktankBenchmark) -> dict[str, float]:
    """Goldens of the only kind of machine that they are for; of several, the file does not say which this one is."""

    def only(goldens: Mapping[str, float]) -> float | None:
        return next(iter(goldens.values())) if len(goldens) == 1 else None

    factor = only(test.golden_time_tolerance_multiplier) or 1.1
    counts = {_DISPATCHES: only(test.golden_dispatch), _MODULE_SIZE: only(test.golden_size)}
    return {
        **latency_limit(only(test.golden_time_ms), factor),
        **{name: float(value) for name, value in counts.items() if value is not None},
    }


def _of_quality(name: str, test: SharktankQuality, fetching: _Fetching, limits: Mapping[str, float]) -> Program:
    if test.pipeline_mlir is not None:
        raise _Missing("it links a pipeline module, and a case of the harness is one module")
    if test.real_weights is None:
        raise _Missing("its weights are splat ones, which upstream makes when it runs")
    mlir, expected = fetching.file(test.mlir), fetching.expected(test.outputs)
    return Program(
        name=name,
        target=target_of(test.compiler_flags, (), test.device),
        mlir=mlir,
        function=test.run_function or _first_function(mlir),
        inputs=fetching.inputs(test.inputs),
        expected=expected,
        parameters={"model": fetching.file(test.real_weights)},
        more={"tolerance": tolerance(_dtypes(expected), test.threshold_args)} if expected else {},
        limits=limits,
    )


# --- The toy models of sharktank_models, whose tests are in Python ---


@dataclass(frozen=True, kw_only=True)
class _Toy:
    """A model whose weights are in the checkout; what its inputs are, upstream's test says in Python."""

    name: str
    weights: str
    mlir: str  # Beside the weights
    function: str
    inputs: Callable[[Path], list[Elements | Array]]  # From the folder of the weights
    why: str

    def program(self, weights: Path) -> Program:
        folder = weights.parent
        return Program(
            name=self.name,
            target=target_of(_TOY_FLAGS, ()),
            mlir=folder / self.mlir,
            function=self.function,
            inputs=self.inputs(folder),
            parameters={"model": weights},
            more={"description": self.why, "tags": ["toy"]},
        )


_TOY_FLAGS = (
    "--iree-hal-target-device=local",
    "--iree-hal-local-target-device-backends=llvm-cpu",
    "--iree-llvmcpu-target-cpu=host",
)
# The tokens of upstream's test_llama.py, one block of the cache.
_TOKENS = (0, 208, 214, 29, 19, 86, 176, 120, 120, 80, 120, 208, 37, 157, 191, 137)
_BLOCK = 32
_CACHE = Elements(shape=(128, 768 * _BLOCK), dtype="f16")
# Where a parameter archive says that its values begin: runtime/src/iree/schemas/parameter_archive.h of IREE.
_STORAGE_OFFSET_AT = 72


def _only_tensor(file: Path, shape: tuple[int, ...], dtype: str) -> Elements:
    """The only tensor of a parameter archive, whose type its user knows."""
    with file.open("rb") as archive:
        archive.seek(_STORAGE_OFFSET_AT)
        (offset,) = struct.unpack("<Q", archive.read(8))
    return Elements(shape=shape, dtype=dtype, file=file, offset=offset)


def _clip_inputs(folder: Path) -> list[Elements | Array]:
    return [_only_tensor(folder / "forward_bs4_arg0_input_ids.irpa", (4, 17), "i64")]


def _prefill(batch: int) -> Callable[[Path], list[Elements | Array]]:
    tokens = np.zeros((batch, _BLOCK), dtype=np.int64)
    tokens[:, : len(_TOKENS)] = _TOKENS
    length = np.full(batch, len(_TOKENS), dtype=np.int64)
    return lambda _: [tokens, length, _pages(batch), _CACHE]


def _decode(batch: int) -> Callable[[Path], list[Elements | Array]]:
    token = np.full((batch, 1), _TOKENS[-1], dtype=np.int64)
    length = np.full(batch, len(_TOKENS), dtype=np.int64)
    return lambda _: [token, length, length - 1, _pages(batch), _CACHE]


def _pages(batch: int) -> Array:
    """A page of the cache for each of a batch."""
    return np.arange(batch, dtype=np.int64)[:, None]


_CLIP = "toy CLIP, text model; upstream holds its hidden state against a file by cosine"
_LLAMA = "toy LLaMA; upstream holds the cross entropy of its tokens against a number"
_TOYS = (
    *(
        _Toy(
            name=f"toy-clip-{dtype}",
            weights=f"{dtype}_parameters.irpa",
            mlir=f"{dtype}.mlir",
            function="forward_bs4",
            inputs=_clip_inputs,
            why=_CLIP,
        )
        for dtype in ("f32", "bf16")
    ),
    *(
        _Toy(
            name=f"toy-llama-{phase}-bs{batch}",
            weights="toy_llama.irpa",
            mlir=f"bs{batch}/toy_llama_bs{batch}.mlir",
            function=f"{phase}_bs{batch}",
            inputs=inputs(batch),
            why=_LLAMA,
        )
        for batch in (1, 4, 32)
        for phase, inputs in (("prefill", _prefill), ("decode", _decode))
    ),
)
