"""The three sources of a program, which each puts into the store: a builder, an MLIR file, an ONNX file."""

from __future__ import annotations

import hashlib
import os
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from harness import process
from harness.errors import CaseError, SuiteError
from harness.models.builder import Builder, BuiltModel, check_params, find_builder
from harness.models.onnx_import import import_onnx, read_onnx
from harness.models.program import MLIR_NAME, Program, ProgramStore
from harness.models.tools import file_sha256, require_file, run_tool
from harness.suite.values import Model
from harness.toolchain.values import Toolchain


def from_builder(name: str, model: Model, store: ProgramStore, where: str) -> Program:
    """The program that a builder writes, written only when the store has none of this builder and these parameters.

    Raises:
        SuiteError: The builder is unknown, a parameter is wrong, or the suite gives what a builder gives itself.
        CaseError: The builder failed (stage `model`).
    """
    for given in ("function", "inputs"):
        if getattr(model, given):
            raise SuiteError(f"{where} {given} is for mlir and onnx files; a builder gives its own, so remove it")
    builder = find_builder(name, f"{where} builder")
    params = check_params(builder, model.params, f"{where} params")
    key = ("builder", name, builder.version, _source_sha256(builder), np.__version__, asdict(params))
    program = store.recall(key)
    if program is not None:
        return program
    try:
        built: BuiltModel = builder.build(params)
    except Exception as error:
        raise CaseError(
            "model", f"{where} builder {name!r} failed ({type(error).__name__}: {error}); change params or repair it"
        ) from error
    text = built.text.encode() if isinstance(built.text, str) else built.text
    sha256, size = store.keep(text)
    program = Program(mlir_sha256=sha256, mlir_bytes=size, function=built.function, inputs=built.inputs)
    return store.remember(key, program)


def from_mlir(
    path: Path, model: Model, store: ProgramStore, *, toolchain: Toolchain, limits: process.Limits, where: str
) -> Program:
    """The program of an MLIR file, text or bytecode, once iree-opt has read it.

    Raises:
        SuiteError: There is no such file, or the suite names no entry function.
        CaseError: The file is no MLIR, or does not have the entry function (stage `model`).
    """
    if not model.function:
        raise SuiteError(f"{where} function is missing; an mlir file needs its entry function")
    require_file(path, (".mlir", ".mlirbc"), f"{where} mlir")
    text = path.read_bytes()
    key = ("mlir", hashlib.sha256(text).hexdigest(), model.function, toolchain.version)
    program = store.recall(key)
    if program is not None:
        return program
    sha256, size = store.keep(text)
    parser = toolchain.compiler_tools / "iree-opt"
    if parser.is_file():
        run_tool(
            [parser, "--allow-unregistered-dialect", MLIR_NAME, "-o", os.devnull],
            cwd=store.folder(sha256),
            limits=limits,
            complaint=f"{where} mlir: {path} is no MLIR that IREE {toolchain.version} reads",
            remedy="check the file",
        )
    if model.function.isidentifier() and model.function.encode() not in text:
        raise CaseError("model", f"{where} function: {path} has no function {model.function!r}; correct the name")
    return store.remember(key, Program(mlir_sha256=sha256, mlir_bytes=size, function=model.function))


def from_onnx(
    path: Path, model: Model, store: ProgramStore, *, toolchain: Toolchain, limits: process.Limits, where: str
) -> Program:
    """The program that iree-import-onnx makes of an ONNX file, imported only when the store has none of these bytes.

    Raises:
        SuiteError: There is no such file, or `function` or `opset` do not fit it.
        CaseError: The file is broken or cannot be imported (stage `model`).
    """
    require_file(path, (".onnx",), f"{where} onnx")
    key = ("onnx", file_sha256(path), model.opset, toolchain.version)
    program = store.recall(key)
    if program is None or any(_hash_if_there(path.parent / name) != sha for name, sha in program.read_files.items()):
        program = store.remember(key, _import(path, model, store, toolchain, limits, where))
    if model.function and model.function != program.function:
        raise SuiteError(
            f"{where} function: the entry function of {path} is {program.function!r}, not {model.function!r}; "
            "leave function out"
        )
    return program


def _import(
    path: Path, model: Model, store: ProgramStore, toolchain: Toolchain, limits: process.Limits, where: str
) -> Program:
    facts = read_onnx(path, where)
    for name in facts.external_files:
        if not (path.parent / name).is_file():
            raise SuiteError(f"{where} onnx: {path} keeps weights in {name}, which is not beside it; put it there")
    store.root.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=store.root, prefix=".importing-") as folder:
        output = Path(folder).resolve() / MLIR_NAME
        import_onnx(path, output, opset=model.opset, facts=facts, toolchain=toolchain, limits=limits, where=where)
        sha256, size = store.keep_file(output)
    return Program(
        mlir_sha256=sha256,
        mlir_bytes=size,
        function=facts.function,
        inputs=facts.inputs,
        unknown_inputs=facts.unknown_inputs,
        read_files={name: file_sha256(path.parent / name) for name in facts.external_files},
    )


def _source_sha256(builder: Builder[Any]) -> str:
    """Hash of the modules that define a builder, so that editing one builds anew."""
    digest = hashlib.sha256()
    for name in sorted({builder.parameters.__module__, builder.build.__module__}):
        file = getattr(sys.modules.get(name), "__file__", None)
        digest.update(Path(file).read_bytes() if file else name.encode())
    return digest.hexdigest()


def _hash_if_there(path: Path) -> str | None:
    return file_sha256(path) if path.is_file() else None
