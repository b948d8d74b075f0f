"""Upstream's tests of models: torch_models and sharktank_models in JSON, and the two toy models in the checkout."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

import numpy as np

from harness.models.inputs import Array
from harness.upstream.files import Files
from harness.upstream.forms import ModelTest, ModuleFile, SharktankBenchmark, SharktankQuality, Value, is_meant, read_if
from harness.upstream.program import NotHere, Program, Tests, device_of, first_function, latency_limit
from harness.upstream.values import Elements, elements_of, tolerance


def torch_models(source: Path, config: Path | None, files: Files) -> Tests:  # noqa: ARG001
    """Tests of PyTorch's models: quality and benchmark become programs, and compstat limits their modules."""
    found = {file: read_if(file, ModelTest) for file in sorted(source.rglob("*.json"))}
    tests = {file: test for file, test in found.items() if isinstance(test, ModelTest)}
    for file, why in found.items():
        if isinstance(why, str) and is_meant(file, why):
            yield _name(file), f"it is damaged: {why}"
    counts = {
        _module_file(file, test.module): _counts(test.golden_dispatch_count, test.golden_binary_size)
        for file, test in tests.items()
        if test.module is not None
    }
    for file, test in tests.items():
        if test.type == "compstat":
            continue
        if len(test.modules) != 1:
            yield _name(file), f"it links {len(test.modules)} modules, and a case of the harness is one"
            continue
        module_file = _module_file(file, test.modules[0])
        module = read_if(module_file, ModuleFile)
        if isinstance(module, str):
            yield _name(file), f"its module {test.modules[0]} is damaged: {module}"
            continue
        if any(weights.url is None for weights in test.weights):
            yield _name(file), "its weights are random ones, which upstream makes when it runs"
            continue
        program = partial(
            _program,
            files,
            name=_name(file),
            mlir=module.mlir,
            weights={weights.scope: weights.url or "" for weights in test.weights},
            inputs=test.inputs,
            expected=test.expected_outputs,
            compile_flags=module.compiler_flags,
            run_flags=test.run_args,
            limits=counts.get(module_file, {}) | latency_limit(test.golden_time_ms, test.tolerance_factor),
        )
        yield _name(file), program


def _name(file: Path) -> str:
    return f"{file.parent.name}-{file.stem}"


def _module_file(test: Path, module: str) -> Path:
    """A module's file: upstream names it relative to a folder above the tests."""
    places = [(folder / module).with_suffix(".json") for folder in test.parents]
    return next((place for place in places if place.is_file()), places[0])


def sharktank_models(source: Path, config: Path | None, files: Files) -> Tests:  # noqa: ARG001
    """Quality tests of sharktank's models, limited by benchmarks of the same name; and its toy models."""
    found = sorted(source.rglob("benchmarks/*/*.json"))
    benchmarks = {_name(file): read_if(file, SharktankBenchmark) for file in found}
    for file in sorted(source.rglob("quality_tests/*/*.json")):
        test, name = read_if(file, SharktankQuality), _name(file)
        if isinstance(test, str):
            yield name, f"it is damaged: {test}"
            continue
        if test.pipeline_mlir is not None:
            yield name, "it links a pipeline module, and a case of the harness is one module"
            continue
        if test.real_weights is None:
            yield name, "its weights are splat ones, which upstream makes when it runs"
            continue
        golden = benchmarks.get(name)
        said = [f"--device={test.device}"] if test.device is not None else []
        said += [f"--function={test.run_function}"] if test.run_function is not None else []
        program = partial(
            _program,
            files,
            name=name,
            mlir=test.mlir,
            weights={"model": test.real_weights},
            inputs=test.inputs,
            expected=test.outputs,
            compile_flags=test.compiler_flags,
            run_flags=[*said, *test.threshold_args],
            limits=_limits(golden) if isinstance(golden, SharktankBenchmark) else {},
        )
        yield name, program
    yield from _toy_models(source)


def _counts(dispatches: float | None, module_bytes: float | None) -> dict[str, float]:
    limits = {"dispatches": dispatches, "module-size": module_bytes}
    return {metric: float(most) for metric, most in limits.items() if most is not None}


def _limits(test: SharktankBenchmark) -> dict[str, float]:
    """Goldens of the only kind of machine that they are for; of several, the file does not say which this one is."""
    goldens = (test.golden_time_ms, test.golden_time_tolerance_multiplier, test.golden_dispatch, test.golden_size)
    time, factor, dispatches, size = (next(iter(each.values())) if len(each) == 1 else None for each in goldens)
    return _counts(dispatches, size) | latency_limit(time, factor or 1.1)


def _program(
    files: Files,
    *,
    name: str,
    mlir: str,  # A URL, as of weights, inputs and right outputs
    weights: Mapping[str, str],
    inputs: Sequence[Value],
    expected: Sequence[Value],
    compile_flags: Sequence[str],
    run_flags: Sequence[str],  # Of iree-run-module, with device, function and tolerances
    limits: Mapping[str, float],
) -> Program:
    """What a test needs, once all of its files are here."""
    found: dict[str, Path] = {}
    for url in (mlir, *weights.values(), *(value.url for value in (*inputs, *expected) if value.url)):
        file = files.get(url)
        if isinstance(file, str):
            raise NotHere(file)
        found[url] = file
    said = {flag: value for flag, _, value in (flag.partition("=") for flag in run_flags)}
    # Right outputs without a type are .npy files.
    right = [_elements(value, found) if value.value else found[str(value.url)] for value in expected]
    dtypes = [value.dtype for value in right if isinstance(value, Elements)]
    kept = [flag for flag in run_flags if not flag.startswith(("--function=", "--expected_"))]
    return Program(
        name=name,
        device=device_of(compile_flags, kept),
        mlir=found[mlir],
        function=said.get("--function") or first_function(found[mlir]),
        inputs=[_elements(value, found) for value in inputs],
        expected=right,
        parameters={scope: found[url] for scope, url in weights.items()},
        more={"tolerance": tolerance(dtypes, run_flags)} if right else {},
        limits=limits,
    )


def _elements(value: Value, found: Mapping[str, Path]) -> Elements:
    return elements_of(str(value.value), found[value.url] if value.url else None)


# --- The toy models of sharktank_models, whose tests are in Python and whose weights are in the checkout ---


_TOY_FLAGS = (
    "--iree-hal-target-device=local",
    "--iree-hal-local-target-device-backends=llvm-cpu",
    "--iree-llvmcpu-target-cpu=host",
)
# The tokens of upstream's test_llama.py, in one block of the cache.
_TOKENS = (0, 208, 214, 29, 19, 86, 176, 120, 120, 80, 120, 208, 37, 157, 191, 137)
_BLOCK = 32
_CACHE = Elements(shape=(128, 768 * _BLOCK), dtype="f16")


def _toy_models(source: Path) -> Tests:
    """Toy CLIP in f32 and bf16, and toy LLaMA's prefill and decode in batches."""

    def toy(
        name: str, mlir: Path, function: str, inputs: Sequence[Elements | Array], weights: Path
    ) -> tuple[str, Callable[[], Program]]:
        return f"toy-{name}", lambda: Program(
            name=f"toy-{name}",
            device=device_of(_TOY_FLAGS, ()),
            mlir=mlir,
            function=function,
            inputs=inputs,
            parameters={"model": weights},
            more={"tags": ["toy"]},
        )

    for weights in sorted(source.rglob("*_parameters.irpa")):
        folder, dtype = weights.parent, weights.name.partition("_")[0]
        ids = Elements(shape=(4, 17), dtype="i64", file=folder / "forward_bs4_arg0_input_ids.irpa", archived=True)
        yield toy(f"clip-{dtype}", folder / f"{dtype}.mlir", "forward_bs4", [ids], weights)
    for weights in sorted(source.rglob("toy_llama.irpa")):
        for batch in (1, 4, 32):
            mlir = weights.parent / f"bs{batch}" / f"toy_llama_bs{batch}.mlir"
            tokens: Array = np.zeros((batch, _BLOCK), dtype=np.int64)
            tokens[:, : len(_TOKENS)] = _TOKENS
            length: Array = np.full(batch, len(_TOKENS), dtype=np.int64)
            pages: Array = np.arange(batch, dtype=np.int64)[:, None]
            calls: dict[str, list[Elements | Array]] = {
                "prefill": [tokens, length, pages, _CACHE],
                "decode": [tokens[:, 15:16], length, length - 1, pages, _CACHE],
            }
            for phase, inputs in calls.items():
                yield toy(f"llama-{phase}-bs{batch}", mlir, f"{phase}_bs{batch}", inputs, weights)
