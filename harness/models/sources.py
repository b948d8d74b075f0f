"""The store of programs, and the three sources that put one into it: a builder, an MLIR file, an ONNX file.

The store holds one folder a program, `<sha256 of its MLIR>/`, with `model.mlir` and a folder for each set of arguments
it was called with, and `memos/` of what a source has given before. Every file is moved into place whole, so processes
may share a store.
"""

from __future__ import annotations

import hashlib
import json
import os
import resource
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from pathlib import Path
from threading import RLock
from typing import Any, TypeVar

import numpy as np
import psutil
from pydantic import TypeAdapter, ValidationError

import harness
from harness import process
from harness.cache import read_memo, write_atomically, write_memo
from harness.errors import CaseError, SuiteError
from harness.files import file_sha256
from harness.models.builder import Builder, BuiltModel, check_params, find_builder
from harness.models.model import Input, Model
from harness.models.onnx_file import import_onnx, read_onnx, with_static_inputs
from harness.models.tools import require_file, run_tool
from harness.scratch import scratch_folder
from harness.text import did_you_mean
from harness.toolchain.find import Toolchain

MLIR_NAME = "model.mlir"
_ONNX_FOLDER = "onnx"

Key = tuple[object, ...]


@dataclass(frozen=True, kw_only=True)
class Program:
    """MLIR that lies in the store, and how its entry function is called."""

    mlir_sha256: str
    mlir_bytes: int
    function: str
    inputs: tuple[Input, ...] = ()  # Arguments that its source knows of
    unknown_inputs: str = ""  # Why `inputs` is empty although the entry function takes some; else ""
    # Hashes (sha256, hex) of further files that it was made from, by path in the source's folder
    read_files: dict[str, str] = field(default_factory=dict)
    from_onnx: bool = False  # Whether iree-import-onnx made it


@dataclass(frozen=True, kw_only=True)
class OnnxForm:
    """A model in ONNX that lies in the store, as a builder wrote it."""

    onnx_sha256: str
    onnx_bytes: int
    inputs: tuple[Input, ...] = ()  # As the builder gives them; () where they are those of its MLIR


_Kept = TypeVar("_Kept", Program, OnnxForm)


@dataclass(frozen=True, kw_only=True)
class ProgramStore:
    """A folder of programs. Its methods raise OSError where it cannot be written."""

    root: Path

    def folder(self, mlir_sha256: str) -> Path:
        """Where the program of that hash lies."""
        return self.root / mlir_sha256

    def file(self, kept: Program | OnnxForm) -> Path:
        """Where a program's MLIR or a model in ONNX lies."""
        if isinstance(kept, Program):
            return self.folder(kept.mlir_sha256) / MLIR_NAME
        return self.root / _ONNX_FOLDER / f"{kept.onnx_sha256}.onnx"

    def keep(self, kept: _Kept, content: bytes | Path) -> _Kept:
        """Put what is described into the store: its bytes, or a file on the store's own file system that is moved."""
        file = self.file(kept)
        if not self._holds(kept):
            if isinstance(content, bytes):
                write_atomically(file, content)
            else:
                file.parent.mkdir(parents=True, exist_ok=True)
                content.replace(file)
        return kept

    def recall(self, key: Key, kind: type[_Kept]) -> _Kept | None:
        """What a source with this key gave before, if it still lies in the store."""
        try:
            kept: _Kept = _adapters()[kind].validate_python(read_memo(self._memo(key, kind)))
        except ValidationError:
            return None
        return kept if self._holds(kept) else None

    def remember(self, key: Key, kept: _Kept) -> _Kept:
        """Say what a source with this key gave; the same program."""
        kind = type(kept)
        write_memo(self._memo(key, kind), _adapters()[kind].dump_python(kept, mode="json"))
        return kept

    def _holds(self, kept: Program | OnnxForm) -> bool:
        size = kept.mlir_bytes if isinstance(kept, Program) else kept.onnx_bytes
        try:
            return self.file(kept).stat().st_size == size
        except OSError:
            return False

    def _memo(self, key: Key, kind: type) -> Path:
        text = json.dumps((harness.__version__, kind.__name__, *key), sort_keys=True, default=repr)
        return self.root / "memos" / f"{hashlib.sha256(text.encode()).hexdigest()[:32]}.json"


@cache
def _adapters() -> dict[type, TypeAdapter[Any]]:
    return {kind: TypeAdapter(kind) for kind in (Program, OnnxForm)}


_T = TypeVar("_T")
_GROWING = RLock()  # the limit is the process's


def from_builder(
    name: str, model: Model, store: ProgramStore, *, toolchain: Toolchain, limits: process.Limits, where: str
) -> Program:
    """The program that a builder writes, written only when the store has none of this builder and these parameters."""
    for given in ("function", "inputs"):
        if getattr(model, given):
            raise SuiteError(f"{where} {given} is for mlir and onnx files; a builder gives its own, so remove it")
    builder, params, key = _asked_of_builder(name, model, where)
    program = store.recall(key, Program)
    if program is not None:
        return program
    form = store.recall(key, OnnxForm)
    if form is None:
        built = _run_builder(builder.build, builder, params, where)
        if isinstance(built, BuiltModel):
            text = built.text.encode() if isinstance(built.text, str) else built.text
            return store.remember(key, store.keep(_program(text, built.function, built.inputs), text))
        form = store.remember(key, store.keep(_form(built.onnx, built.inputs), built.onnx))
    file = store.file(form)
    return replace(from_onnx(file, model, store, toolchain=toolchain, limits=limits, where=where), inputs=form.inputs)


def onnx_of(model: Model, store: ProgramStore, where: str) -> Path | None:
    """A model in ONNX, for the engines that read that: its own file, or what its builder writes."""
    if model.builder is None:
        return model.onnx
    builder, params, key = _asked_of_builder(model.builder, model, where)
    form = store.recall(key, OnnxForm)
    if form is None and builder.onnx is not None:
        twin = (*key, "twin")  # a name of its own, since the program must not be made of it
        form = store.recall(twin, OnnxForm)
        if form is None and (onnx := _run_builder(builder.onnx, builder, params, where)) is not None:
            form = store.remember(twin, store.keep(_form(onnx), onnx))
    return store.file(form) if form is not None else None


def _asked_of_builder(name: str, model: Model, where: str) -> tuple[Builder[Any], Any, tuple[object, ...]]:
    """A builder, its parameters, and the key under which the store remembers what it wrote."""
    builder = find_builder(name, f"{where} builder")
    params = check_params(builder, model.params, f"{where} params")
    return builder, params, ("builder", name, builder.version, _source_sha256(builder), np.__version__, asdict(params))


def _run_builder(write: Callable[[Any], _T], builder: Builder[Any], params: object, where: str) -> _T:
    try:
        with _within_memory():
            return write(params)
    except CaseError as error:  # such as weights that cannot be had
        raise CaseError("model", f"{where} builder {builder.name!r}: {error}", error.stderr) from None
    except MemoryError:
        raise CaseError(
            "model", f"{where} builder {builder.name!r}: this machine's memory does not hold it; give smaller params"
        ) from None
    except Exception as error:
        raise CaseError(
            "model",
            f"{where} builder {builder.name!r} failed ({type(error).__name__}: {error}); change params or repair it",
        ) from error


@contextmanager
def _within_memory() -> Iterator[None]:
    """Let this process grow by the memory that is free now; what wants more raises MemoryError, and is not killed."""
    with _GROWING:
        limits = resource.getrlimit(resource.RLIMIT_AS)
        most = psutil.Process().memory_info().vms + psutil.virtual_memory().available
        if limits[0] == resource.RLIM_INFINITY or most < limits[0]:
            resource.setrlimit(resource.RLIMIT_AS, (most, limits[1]))
        try:
            yield
        finally:
            resource.setrlimit(resource.RLIMIT_AS, limits)


def from_mlir(
    path: Path, model: Model, store: ProgramStore, *, toolchain: Toolchain, limits: process.Limits, where: str
) -> Program:
    """The program of an MLIR file, text or bytecode, once iree-opt has read it.

    Where the file has other public functions than the entry function, the program is without them and what only they
    call: IREE would compile them too, and their code, size and compile time would count as the model's.
    """
    if not model.function:
        raise SuiteError(f"{where} function is missing; an mlir file needs its entry function")
    require_file(path, (".mlir", ".mlirbc"), f"{where} mlir")
    text = path.read_bytes()
    key = ("mlir", "entry", hashlib.sha256(text).hexdigest(), model.function, toolchain.version)
    program = store.recall(key, Program)
    if program is not None:
        return program
    program = store.keep(_program(text, model.function), text)
    parser = toolchain.compiler_tools / "iree-opt"
    if parser.is_file():
        run_tool(
            [parser, "--allow-unregistered-dialect", MLIR_NAME, "-o", os.devnull],
            cwd=store.folder(program.mlir_sha256),
            limits=limits,
            complaint=f"{where} mlir: {path} is no MLIR that IREE {toolchain.version} reads",
            remedy="check the file",
        )
        # Whether there is more than one public function; bytecode does not show it.
        if text.startswith(b"ML\xefR") or text.count(b"func.func") + text.count(b"util.func") > 1:
            program = _reduced(program, path, store, toolchain, limits, where)
    if model.function.isidentifier() and model.function.encode() not in text:
        raise CaseError("model", f"{where} function: {path} has no function {model.function!r}; correct the name")
    return store.remember(key, program)


_ENTRY_CHILD = Path(__file__).with_name("entry_child.py")


def _reduced(
    program: Program, path: Path, store: ProgramStore, toolchain: Toolchain, limits: process.Limits, where: str
) -> Program:
    """The program without public functions other than its entry function, and what only they need."""
    with scratch_folder(store.root, ".reducing-") as folder:
        output = folder.resolve() / MLIR_NAME
        finished = run_tool(
            [*toolchain.python_command, _ENTRY_CHILD, MLIR_NAME, program.function, output],
            cwd=store.folder(program.mlir_sha256),
            limits=limits,
            complaint=f"{where} function: {path} cannot be reduced to {program.function!r} and what it calls",
            remedy="keep it as the file's only public function",
        )
        functions = json.loads(finished.stdout)["functions"]
        if program.function not in functions:
            raise CaseError(
                "model",
                f"{where} function: {path} has no public function {program.function!r}"
                f"{did_you_mean(program.function, functions)}",
            )
        if not output.is_file():
            return program
        sha256, size = file_sha256(output), output.stat().st_size
        return store.keep(replace(program, mlir_sha256=sha256, mlir_bytes=size), output)


def from_onnx(
    path: Path, model: Model, store: ProgramStore, *, toolchain: Toolchain, limits: process.Limits, where: str
) -> Program:
    """The program that iree-import-onnx makes of an ONNX file, imported only when the store has none of these bytes."""
    require_file(path, (".onnx",), f"{where} onnx")
    shapes = [value.shape for value in model.inputs] if model.static else []
    key = ("onnx", file_sha256(path), model.opset, toolchain.version, *shapes)
    program = store.recall(key, Program)
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
    with scratch_folder(store.root, ".importing-") as folder:
        output = folder.resolve() / MLIR_NAME
        graph = path
        if model.static:
            import onnx

            graph = output.with_suffix(".onnx")
            shapes = [value.shape for value in model.inputs]
            onnx.save(with_static_inputs(onnx.load(str(path)), shapes, f"{where} onnx: {path}"), str(graph))
        import_onnx(graph, output, opset=model.opset, facts=facts, toolchain=toolchain, limits=limits, where=where)
        program = Program(
            mlir_sha256=file_sha256(output),
            mlir_bytes=output.stat().st_size,
            function=facts.function,
            inputs=facts.inputs,
            unknown_inputs=facts.unknown_inputs,
            read_files={name: file_sha256(path.parent / name) for name in facts.external_files},
            from_onnx=True,
        )
        return store.keep(program, output)


def _program(text: bytes, function: str, inputs: tuple[Input, ...] = ()) -> Program:
    sha256 = hashlib.sha256(text).hexdigest()
    return Program(mlir_sha256=sha256, mlir_bytes=len(text), function=function, inputs=inputs)


def _form(onnx: bytes, inputs: tuple[Input, ...] = ()) -> OnnxForm:
    return OnnxForm(onnx_sha256=hashlib.sha256(onnx).hexdigest(), onnx_bytes=len(onnx), inputs=inputs)


def _source_sha256(builder: Builder[Any]) -> str:
    """Hash of the modules that define a builder and of those beside them, so that editing one builds anew."""
    writers = [builder.build, *([builder.onnx] if builder.onnx is not None else [])]
    return _sources_sha256(frozenset({builder.parameters.__module__, *(writer.__module__ for writer in writers)}))


@cache
def _sources_sha256(modules: frozenset[str]) -> str:
    digest = hashlib.sha256()
    files: set[Path] = set()
    for name in sorted(modules):
        module = sys.modules.get(name)
        file = getattr(module, "__file__", None)
        digest.update(name.encode())
        if file and getattr(module, "__package__", ""):
            files.update(Path(file).parent.glob("*.py"))
        elif file:
            files.add(Path(file))
    for path in sorted(files):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def _hash_if_there(path: Path) -> str | None:
    return file_sha256(path) if path.is_file() else None
