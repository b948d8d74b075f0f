"""A model's entry function against what a suite says of it, before anything is compiled: its name and its arguments."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import harness
from harness.cache import cache_root, read_memo, write_memo
from harness.errors import CaseError, SuiteError
from harness.ir.tools import ask
from harness.models.inputs import Argument
from harness.models.materialize import ModelArtifact
from harness.models.model import Model
from harness.process import Limits
from harness.text import did_you_mean, plural
from harness.toolchain import Toolchain
from harness.verify.outputs import load_array

# `tensor<4x?xf32>`, with or without an encoding, and `!torch.vtensor<[4,?],f32>`.
_TENSOR = re.compile(r"tensor<(?P<shape>(?:(?:\d+|\?)x)*)(?P<dtype>[a-z]+\d+)(?:,.*)?>")
_TORCH = re.compile(r"!torch\.vtensor<\[(?P<shape>[\d?,]*)\],(?P<dtype>[a-z]+\d+)>")
_NUMBER = re.compile(r"[if]\d+|index")
# Flags that make a function take another element type than it declares. IREE demotes f64 unless it is told otherwise.
_CONVERSION = re.compile(r"^--?iree-input-(?:demote|promote)-(\w+)-to-(\w+)")
_ALWAYS = frozenset({("f64", "f32"), ("i1", "i8")})


@dataclass(frozen=True, kw_only=True)
class Tensor:
    """A declared argument or result; None in `shape` is a dynamic size."""

    shape: tuple[int | None, ...]
    dtype: str

    def __str__(self) -> str:
        return "x".join([*("?" if size is None else str(size) for size in self.shape), self.dtype])


def tensor_of(text: str) -> Tensor | None:
    """The tensor that a type of MLIR is; None for anything else."""
    found = _TENSOR.fullmatch(text) or _TORCH.fullmatch(text)
    if found is None:
        return None
    sizes = [size for size in re.split("[x,]", found["shape"]) if size]
    dtype = re.sub(r"^[su]i", "i", found["dtype"])
    return Tensor(shape=tuple(None if size == "?" else int(size) for size in sizes), dtype=dtype)


def check_entry(
    model: Model, artifact: ModelArtifact, flags: Iterable[str], *, toolchain: Toolchain, limits: Limits
) -> None:
    """Hold what a suite says of a model's entry function against the program.

    A program that cannot be read here, and an argument that is no tensor, is left to the compiler to judge.
    """
    where = f"[models.{model.name}]"
    expected = [_require_array(file, f"{where} expected") for file in model.expected]
    if model.builder is not None:
        return
    functions = _functions(artifact.mlir, toolchain, limits)
    name = artifact.function.removesuffix("$async")  # IREE gives each function such a twin
    if not functions:
        return
    if name not in functions:
        raise SuiteError(f"{where} function: {_source(model)} has no function {name!r}{_hint(name, functions)}")
    if not functions[name]["public"]:
        raise SuiteError(f"{where} function: {name!r} of {_source(model)} is private; make it public there")
    arguments: list[str] = functions[name]["arguments"]
    if any(text.startswith("!hal.fence") for text in arguments):
        return
    given = artifact.arguments
    if len(given) != len(arguments):
        takes = f"{plural(len(arguments), 'argument')}{f' ({_listed(arguments)})' if arguments else ''}"
        raise SuiteError(
            f"{where} inputs: {name} takes {takes}, and {len(given)} {'is' if len(given) == 1 else 'are'} given; "
            f"{'add what is missing' if len(given) < len(arguments) else 'remove what is too many'}"
        )
    conversions = _ALWAYS | {match.groups() for flag in flags if (match := _CONVERSION.match(flag))}
    for position, (text, argument) in enumerate(zip(arguments, given, strict=True)):
        _check_kind(f"{where} inputs[{position}]", name, text, argument)
        if argument.scalar:
            _check_number(f"{where} inputs[{position}]", name, text, argument, conversions)
        else:
            from_file = any(value.fill == "npy" for value in artifact.inputs[position : position + 1])
            _check_tensor(f"{where} inputs[{position}]", name, tensor_of(text), argument, conversions, from_file)
    results: list[str] = functions[name]["results"]
    if expected and len(expected) != len(results):
        raise SuiteError(
            f"{where} expected: {name} gives {plural(len(results), 'result')}, and {len(expected)} "
            f"{'file is' if len(expected) == 1 else 'files are'} named; name a file for each"
        )


def _check_kind(where: str, function: str, declared: str, given: Argument) -> None:
    """Refuse a number for a tensor, and a tensor for a number."""
    if given.scalar and (tensor := tensor_of(declared)):
        raise SuiteError(f"{where} shape: {function} takes {tensor}, and a number is given; add shape")
    if not given.scalar and _NUMBER.fullmatch(declared):
        raise SuiteError(
            f"{where} shape: {function} takes a number of {declared}, and a tensor is given; write "
            f'{{ dtype = "{declared}", value = ... }} without shape'
        )


def _check_number(
    where: str, function: str, declared: str, given: Argument, conversions: frozenset[tuple[Any, ...]]
) -> None:
    """Refuse a number of another type: the tools would hand its bits on as if they were the declared type's."""
    if not _NUMBER.fullmatch(declared) or given.dtype == declared or (declared, given.dtype) in conversions:
        return
    raise SuiteError(
        f"{where} dtype: {function} takes a number of {declared}, and one of {given.dtype} is given; "
        f'write dtype = "{declared}"'
    )


def _check_tensor(
    where: str,
    function: str,
    declared: Tensor | None,
    given: Argument,
    conversions: frozenset[tuple[Any, ...]],
    from_file: bool,
) -> None:
    if declared is None:
        return
    is_same = len(declared.shape) == len(given.shape) and all(
        size in (None, ours) for size, ours in zip(declared.shape, given.shape, strict=True)
    )
    ours = Tensor(shape=given.shape, dtype=given.dtype)
    if not is_same:
        raise SuiteError(f"{where} shape: {function} takes {declared}, and {ours} is given; correct shape")
    if given.dtype != declared.dtype and (declared.dtype, given.dtype) not in conversions:
        remedy = f"write {declared.dtype} into the .npy file" if from_file else f'write dtype = "{declared.dtype}"'
        raise SuiteError(f"{where} dtype: {function} takes {declared}, and {ours} is given; {remedy}")


def _functions(mlir: Path, toolchain: Toolchain, limits: Limits) -> dict[str, Any]:
    """The program's functions by name; {} where the bindings do not read it."""
    sha256 = mlir.parent.name  # the store names folders by their program's hash
    key = hashlib.sha256(f"{harness.__version__} {sha256} {toolchain.compiler_sha256}".encode()).hexdigest()[:32]
    memo = cache_root() / "models" / "memos" / f"entries-{key}.json"
    kept = read_memo(memo)
    if isinstance(kept, dict):
        return kept
    try:
        answer = ask("entries", {"input": mlir}, f" on {mlir.name}", toolchain=toolchain, limits=limits)
    except CaseError:
        return {}
    functions: dict[str, Any] = answer["input"]
    write_memo(memo, functions)
    return functions


def _require_array(file: Path, where: str) -> Path:
    try:
        load_array(file)
    except ValueError as error:
        raise SuiteError(f"{where}: {file} {error}; write it again") from None
    return file


def _source(model: Model) -> str:
    return str(model.mlir or model.onnx)


def _hint(name: str, functions: dict[str, Any]) -> str:
    public = [other for other, function in functions.items() if function["public"]]
    return did_you_mean(name, public) if public else "; it has no public function"


def _listed(arguments: Sequence[str]) -> str:
    return ", ".join(str(tensor_of(text) or text) for text in arguments)
