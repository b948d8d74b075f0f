"""`harness bench`: a model's file and several sets of flags -> a suite, in which each set is a variant.

The suite is a file like any other, so that its run can be repeated, resumed, exported and compared like any other's.
"""

from __future__ import annotations

import hashlib
import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

import tomli_w

from harness.errors import UsageError
from harness.stages.ablating import joined_name, moved_path
from harness.stages.options import BenchOptions
from harness.store.files import writing
from harness.suite.schema import Dtype

_LOCAL = ["--iree-hal-target-device=local", "--iree-hal-local-target-device-backends=llvm-cpu"]
_DEVICES: Mapping[str, Mapping[str, Any]] = {
    "cpu": {
        "uri": "local-sync",
        "backend": "llvm-cpu",
        "compile_flags": [*_LOCAL, "--iree-llvmcpu-target-cpu=host"],
        "pin": True,
    },
    "cpu-threads": {
        "uri": "local-task",
        "backend": "llvm-cpu",
        "compile_flags": [*_LOCAL, "--iree-llvmcpu-target-cpu=host"],
    },
    "vulkan": {"uri": "vulkan", "backend": "vulkan-spirv", "compile_flags": ["--iree-hal-target-device=vulkan"]},
    "cuda": {"uri": "cuda", "backend": "cuda", "compile_flags": ["--iree-hal-target-device=cuda"]},
    "hip": {"uri": "hip", "backend": "rocm", "compile_flags": ["--iree-hal-target-device=hip"]},
}
_BASELINE = "stock"
_LONGEST_VARIANT = 40
_SIGNATURE_CHARACTERS = 1_000_000  # of a file, in which its first public function is looked for
_FUNCTION = re.compile(r"\b(?:func|util)\.func\s+(?:public\s+)?@(?P<name>[\w$.-]+)\s*\((?P<arguments>[^)]*)\)")
_ARGUMENT = re.compile(r"%[\w$.-]+\s*:\s*(?P<type>[^%]*?)\s*(?:\{[^{}]*\})?\s*(?:,\s*(?=%)|$)")
_TENSOR = re.compile(r"tensor<(?P<sizes>(?:\d+x)*)(?P<dtype>\w+)>|!torch\.vtensor<\[(?P<list>[\d,]*)\],(?P<of>\w+)>")
_INPUT = re.compile(r"(?P<sizes>(?:\d+x)*)(?P<dtype>[a-z]+\d*)(?:=(?P<value>[-+]?\d+(?:\.\d*)?(?:[eE][-+]?\d+)?))?")


def write_bench(options: BenchOptions) -> Path:
    """Write the suite of a comparison of flags; its file."""
    folder = options.save.parent if options.save is not None else options.results
    variants = name_variants(options.flags)
    content = {
        "name": _named(options.save.stem if options.save is not None else f"bench-{options.model.stem}"),
        "description": f"{options.model.name}: {'; '.join(flags or 'no flags' for flags in variants.values())}",
        "baseline": next(iter(variants)),
        "models": {_named(options.model.stem): _model(options, folder)},
        "variants": {name: {"flags": shlex.split(flags)} if flags else {} for name, flags in variants.items()},
        "devices": {options.device: _DEVICES[options.device]},
        "measure": {"budget_s": options.budget_s},
    }
    digest = hashlib.sha256(tomli_w.dumps(content).encode()).hexdigest()[:8]
    path = options.save or folder / f"{joined_name(['bench', options.model.stem, digest])}.toml"
    if options.save is not None and path.exists():
        raise UsageError(f"{path}: is there already; give --save a new file")
    with writing(path, "choose another folder"):
        folder.mkdir(parents=True, exist_ok=True)
        path.write_text(tomli_w.dumps(content), encoding="utf-8")
    return path


def _named(stem: str) -> str:
    return joined_name([stem]).lstrip("._+-") or "bench"


def name_variants(sets: Sequence[str]) -> dict[str, str]:
    """Sets of flags by names that are made of them: `--iree-opt-level=O3` -> `iree-opt-level-O3`; no flags: `stock`."""
    sets = [" ".join(flags.split()) for flags in sets]
    if len(sets) == 1:
        sets = ["", *sets] if sets[0] else sets
    if len(set(sets)) < max(len(sets), 2):
        raise UsageError("--flags: two sets are equal, so there is nothing to compare; give each set of flags once")
    names: dict[str, str] = {}
    for flags in sets:
        try:
            shlex.split(flags)
        except ValueError as error:
            raise UsageError(f"--flags {flags!r}: {error}; close the quotation") from None
        name = re.sub(r"[^A-Za-z0-9.]+", "-", flags).strip("-.")[:_LONGEST_VARIANT].strip("-.") or _BASELINE
        alike = sum(other == name or other.startswith(f"{name}+") for other in names)
        names[f"{name}+{alike + 1}" if alike else name] = flags
    return names


def _model(options: BenchOptions, folder: Path) -> dict[str, Any]:
    model = options.model
    kind = {".mlir": "mlir", ".mlirbc": "mlir", ".onnx": "onnx"}.get(model.suffix)
    if kind is None or not model.is_file():
        what = "there is no such file" if kind is not None else "is no model's file"
        raise UsageError(f"{model}: {what}; give one that ends in .mlir, .mlirbc or .onnx")
    table: dict[str, Any] = {kind: moved_path(str(model.resolve()), Path("x"), folder)}
    inputs = [_input(text, folder) for text in options.model_inputs]
    function = options.function
    if kind == "mlir" and (function is None or not inputs):
        function, inputs = _signature(model, function, inputs)
    if function is not None:
        table["function"] = function
    if inputs or kind == "mlir":
        table["inputs"] = inputs
    return table


def _input(text: str, folder: Path) -> dict[str, Any]:
    if text.endswith(".npy"):
        return {"npy": moved_path(str(Path(text).resolve()), Path("x"), folder)}
    found = _INPUT.fullmatch(text)
    scalar = found is not None and not found["sizes"]
    if found is None or found["dtype"] not in get_args(Dtype) or (scalar and found["value"] is None):
        raise UsageError(f"--model-input {text!r}: is no argument; write 4x8xf32, 4x8xf32=1.5, i32=3 or values.npy")
    table: dict[str, Any] = {"dtype": found["dtype"]}
    if not scalar:
        table["shape"] = [int(size) for size in found["sizes"].split("x")[:-1]]
    return table if found["value"] is None else {**table, "value": float(found["value"])}


def _signature(model: Path, function: str | None, inputs: list[dict[str, Any]]) -> tuple[str, list[dict[str, Any]]]:
    """The entry function of a file of MLIR, and its arguments where none are given."""
    text = model.read_bytes()[:_SIGNATURE_CHARACTERS].decode(errors="replace")
    found = next((match for match in _FUNCTION.finditer(text) if function in (None, match["name"])), None)
    if found is None:
        which = f"function @{function}" if function is not None else "public function"
        raise UsageError(f"{model}: no {which} is found in it; give --function, and --model-input for each argument")
    if inputs:
        return found["name"], inputs
    types = [match["type"] for match in _ARGUMENT.finditer(found["arguments"].strip())]
    return found["name"], [_of_type(kind, f"{model}: @{found['name']}") for kind in types]


def _of_type(kind: str, where: str) -> dict[str, Any]:
    found = _TENSOR.fullmatch(kind.strip())
    dtype = (found["dtype"] or found["of"]) if found is not None else ""
    if found is None or dtype not in get_args(Dtype):
        raise UsageError(f"{where} has an argument of type {kind}; give --model-input for each argument, as in 4x8xf32")
    sizes = found["list"].split(",") if found["list"] is not None else found["sizes"].split("x")[:-1]
    return {"shape": [int(size) for size in sizes if size], "dtype": dtype}
