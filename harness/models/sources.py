"""The store of programs, and the three sources that put one into it: a builder, an MLIR file, an ONNX file.

The store holds one folder a program, `<sha256 of its MLIR>/`, with `model.mlir` and a folder for each set of arguments
it was called with; `onnx/` with what builders wrote in ONNX; and `memos/` of what a source has given before. Every file
is moved into place whole, so processes may share a store.
"""

import hashlib
import json
import os
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from pydantic import TypeAdapter, ValidationError

import harness
from harness import process
from harness.cache import read_memo, write_atomically, write_memo
from harness.errors import CaseError, SuiteError
from harness.files import file_sha256
from harness.ir.tools import ask
from harness.models.builder import Builder, BuiltModel, check_params, find_builder
from harness.models.model import Input, Model
from harness.models.onnx_file import LEAST_OPSET, read_onnx, with_static_inputs
from harness.scratch import scratch_folder
from harness.text import did_you_mean
from harness.toolchain.find import Toolchain

MLIR_NAME = "model.mlir"
_BYTECODE = b"ML\xefR"
_T = TypeVar("_T")

Key = tuple[object, ...]


@dataclass(frozen=True, kw_only=True)
class Stored:
    """A program, or a model in ONNX, that lies in the store, and how its entry function is called."""

    sha256: str
    size: int  # Of its file
    is_onnx: bool = False  # Whether it is what a builder wrote in ONNX, and no program yet
    function: str = ""  # Of a program
    inputs: tuple[Input, ...] = ()  # Arguments that its source knows of
    unknown_inputs: str = ""  # Why `inputs` is empty although the entry function takes some; else ""
    # Hashes (sha256, hex) of further files that it was made from, by path in the source's folder
    read_files: dict[str, str] = field(default_factory=dict)
    from_onnx: bool = False  # Whether iree-import-onnx made it


_STORED = TypeAdapter(Stored)


@dataclass(frozen=True, kw_only=True)
class ProgramStore:
    """A folder of programs. Its methods raise OSError where it cannot be written."""

    root: Path

    def file(self, stored: Stored) -> Path:
        """Where a program's MLIR or a model in ONNX lies."""
        if stored.is_onnx:
            return self.root / "onnx" / f"{stored.sha256}.onnx"
        return self.root / stored.sha256 / MLIR_NAME

    def keep(self, content: bytes | str | Path, **what: Any) -> Stored:
        """Put bytes, or a file on the store's own file system that is moved, into the store."""
        if isinstance(content, Path):
            stored = Stored(sha256=file_sha256(content), size=content.stat().st_size, **what)
        else:
            content = content.encode() if isinstance(content, str) else content
            stored = Stored(sha256=hashlib.sha256(content).hexdigest(), size=len(content), **what)
        file = self.file(stored)
        if not self._holds(stored):
            if isinstance(content, bytes):
                write_atomically(file, content)
            else:
                file.parent.mkdir(parents=True, exist_ok=True)
                content.replace(file)
        return stored

    def recall(self, key: Key) -> Stored | None:
        """What a source with this key gave before, if it still lies in the store."""
        try:
            stored = _STORED.validate_python(read_memo(self._memo(key)))
        except ValidationError:
            return None
        return stored if self._holds(stored) else None

    def remember(self, key: Key, stored: Stored) -> Stored:
        """Say what a source with this key gave; the same program."""
        write_memo(self._memo(key), _STORED.dump_python(stored, mode="json"))
        return stored

    def _holds(self, stored: Stored) -> bool:
        file = self.file(stored)
        return file.is_file() and file.stat().st_size == stored.size

    def _memo(self, key: Key) -> Path:
        text = json.dumps((harness.__version__, "stored", *key), sort_keys=True, default=repr)
        return self.root / "memos" / f"{hashlib.sha256(text.encode()).hexdigest()[:32]}.json"


@dataclass(frozen=True, kw_only=True)
class Maker:
    """Makes one model, or finds what was made of it."""

    model: Model
    store: ProgramStore
    toolchain: Toolchain
    limits: process.Limits

    @property
    def where(self) -> str:
        """What errors begin with."""
        return f"[models.{self.model.name}]"

    def program(self) -> Stored:
        """The model's program."""
        if self.model.builder is not None:
            return self._from_builder()
        if self.model.mlir is not None:
            return self._from_mlir(self.model.mlir)
        assert self.model.onnx is not None  # noqa: S101 (loading a suite made sure)
        return self._from_onnx(self.model.onnx)

    def onnx(self) -> Path | None:
        """The model in ONNX, for the engines that read that: its own file, or what its builder writes."""
        if self.model.builder is None:
            return self.model.onnx
        builder, params, key = self._asked_of_builder()
        stored = self.store.recall(key)
        if stored is None or not stored.is_onnx:
            twin = (*key, "twin")
            stored = self.store.recall(twin)
            if stored is None and builder.onnx is not None:
                content = self._run_builder(builder, builder.onnx, params)
                if content is not None:
                    stored = self.store.remember(twin, self.store.keep(content, is_onnx=True))
        return self.store.file(stored) if stored is not None else None

    # ----------------------------------------------------------------------------------------------------- builders

    def _from_builder(self) -> Stored:
        """Written only when the store has none of this builder and these parameters."""
        builder, params, key = self._asked_of_builder()
        stored = self.store.recall(key)
        if stored is None:
            built = self._run_builder(builder, builder.build, params)
            if isinstance(built, BuiltModel):
                stored = self.store.keep(built.text, function=built.function, inputs=built.inputs)
            else:
                stored = self.store.keep(built.onnx, is_onnx=True, inputs=built.inputs)
            self.store.remember(key, stored)
        if not stored.is_onnx:
            return stored
        return replace(self._from_onnx(self.store.file(stored)), inputs=stored.inputs)

    def _asked_of_builder(self) -> tuple[Builder[Any], Any, Key]:
        """The builder, its parameters, and the key under which the store remembers what it wrote."""
        name = str(self.model.builder)
        builder = find_builder(name, f"{self.where} builder")
        params = check_params(builder, self.model.params, f"{self.where} params")
        key = ("builder", name, builder.version, _source_sha256(builder), np.__version__, asdict(params))
        return builder, params, key

    def _run_builder(self, builder: Builder[Any], write: Callable[[Any], _T], params: object) -> _T:
        where = f"{self.where} builder {builder.name!r}"
        try:
            return write(params)
        except CaseError as error:  # such as weights that cannot be had
            raise CaseError("model", f"{where}: {error}", error.stderr) from None
        except MemoryError:
            raise CaseError("model", f"{where}: this machine's memory does not hold it; give smaller params") from None
        except Exception as error:
            raise CaseError(
                "model", f"{where} failed ({type(error).__name__}: {error}); change params or repair it"
            ) from error

    # --------------------------------------------------------------------------------------------------- MLIR files

    def _from_mlir(self, path: Path) -> Stored:
        """The program of an MLIR file, text or bytecode, once iree-opt has read it.

        Where the file has other public functions than the entry function, the program is without them and what only
        they call: IREE would compile them too, and their code, size and compile time would count as the model's.
        """
        function = str(self.model.function)
        require_file(path, (".mlir", ".mlirbc"), f"{self.where} mlir")
        text = path.read_bytes()
        key = ("mlir", "entry", hashlib.sha256(text).hexdigest(), function, self.toolchain.version)
        known = self.store.recall(key)
        if known is not None:
            return known
        program = self.store.keep(text, function=function)
        parser = self.toolchain.compiler_tools / "iree-opt"
        if parser.is_file():
            run_tool(
                [parser, "--allow-unregistered-dialect", MLIR_NAME, "-o", os.devnull],
                cwd=self.store.file(program).parent,
                limits=self.limits,
                complaint=f"{self.where} mlir: {path} is no MLIR that IREE {self.toolchain.version} reads",
                remedy="check the file",
            )
            # Whether there is more than one public function; bytecode does not show it.
            if text.startswith(_BYTECODE) or text.count(b"func.func") + text.count(b"util.func") > 1:
                program = self._reduced(program, path, as_bytecode=text.startswith(_BYTECODE))
        if function.isidentifier() and function.encode() not in text:
            raise CaseError("model", f"{self.where} function: {path} has no function {function!r}; correct the name")
        return self.store.remember(key, program)

    def _reduced(self, program: Stored, path: Path, *, as_bytecode: bool) -> Stored:
        """The program without public functions other than its entry function, and what only they need."""
        entry = program.function
        with scratch_folder(self.store.root, ".reducing-") as folder:
            output = folder.resolve() / MLIR_NAME
            functions = ask(
                "reduced",
                {"start": self.store.file(program)},
                f" on {path}",
                toolchain=self.toolchain,
                limits=self.limits,
                entry=entry,
                target=str(output),
                as_bytecode=as_bytecode,
            )["start"]
            if entry not in functions:
                hint = did_you_mean(entry, functions)
                raise CaseError("model", f"{self.where} function: {path} has no public function {entry!r}{hint}")
            return self.store.keep(output, function=entry) if output.is_file() else program

    # --------------------------------------------------------------------------------------------------- ONNX files

    def _from_onnx(self, path: Path) -> Stored:
        """The program that iree-import-onnx makes of a file, imported only when the store has none of these bytes."""
        require_file(path, (".onnx",), f"{self.where} onnx")
        shapes = [value.shape for value in self.model.inputs] if self.model.static else []
        key = ("onnx", file_sha256(path), self.model.opset, self.toolchain.version, *shapes)
        program = self.store.recall(key)
        if program is None or any(
            not (file := path.parent / name).is_file() or file_sha256(file) != sha256
            for name, sha256 in program.read_files.items()
        ):
            program = self.store.remember(key, self._imported(path))
        if self.model.function and self.model.function != program.function:
            raise SuiteError(
                f"{self.where} function: the entry function of {path} is {program.function!r}, not "
                f"{self.model.function!r}; leave function out"
            )
        return program

    def _imported(self, path: Path) -> Stored:
        facts = read_onnx(path, self.where)
        for name in facts.external_files:
            if not (path.parent / name).is_file():
                raise SuiteError(
                    f"{self.where} onnx: {path} keeps weights in {name}, which is not beside it; put it there"
                )
        if self.model.opset is not None and self.model.opset < facts.opset:
            raise SuiteError(
                f"{self.where} opset is {self.model.opset}, but {path} has opset {facts.opset}; remove opset"
            )
        self.store.root.mkdir(parents=True, exist_ok=True)
        with scratch_folder(self.store.root, ".importing-") as folder:
            output = folder.resolve() / MLIR_NAME
            graph = path
            if self.model.static:
                import onnx

                graph = output.with_suffix(".onnx")
                shapes = [value.shape for value in self.model.inputs]
                static = with_static_inputs(onnx.load(str(path)), shapes, f"{self.where} onnx: {path}")
                onnx.save(static, str(graph))
            wanted = self.model.opset or LEAST_OPSET
            upgrade = [f"--opset-version={wanted}"] if 0 < facts.opset < wanted else []
            importer = [*self.toolchain.python_command, "-m", "iree.compiler.tools.import_onnx"]
            run_tool(
                [*importer, graph.resolve(), "-o", output, *upgrade],
                cwd=output.parent,  # Python would import an `onnx` or `iree` folder of the user's own working folder
                limits=self.limits,
                complaint=(
                    f"{self.where} onnx: iree-import-onnx of IREE {self.toolchain.version} cannot import {path}"
                ),
                remedy=f"check the file, or give another opset than {wanted}" if upgrade else "check the file",
            )
            return self.store.keep(
                output,
                function=facts.function,
                inputs=facts.inputs,
                unknown_inputs=facts.unknown_inputs,
                read_files={name: file_sha256(path.parent / name) for name in facts.external_files},
                from_onnx=True,
            )


def _source_sha256(builder: Builder[Any]) -> str:
    """Hash of the modules that define a builder and of those beside them, so that editing one builds anew."""
    writers = [builder.build, *([builder.onnx] if builder.onnx is not None else [])]
    return _sources_sha256(frozenset({builder.parameters.__module__, *(writer.__module__ for writer in writers)}))


@cache
def _sources_sha256(modules: frozenset[str]) -> str:
    digest = hashlib.sha256("".join(sorted(modules)).encode())
    files: set[Path] = set()
    for name in modules:
        module = sys.modules.get(name)
        if file := getattr(module, "__file__", None):
            files.update(Path(file).parent.glob("*.py") if getattr(module, "__package__", "") else [Path(file)])
    for path in sorted(files):
        digest.update(path.read_bytes())
    return digest.hexdigest()


# --- Files that a suite names, and IREE's tools that read them: one sentence says what is wrong with one ---

_TAIL_LINES = 20
_LFS_POINTER = b"version https://git-lfs.github.com/spec/"
_LINE_CHARACTERS = 300
_RUNTIME_SOURCE = re.compile(r"^\S+\.(?:c|cc|h):\d+: ")
_PARAMETER_SUFFIXES = (".irpa", ".gguf", ".safetensors")


def require_file(path: Path, suffixes: Sequence[str], where: str) -> None:
    """Refuse a file that has none of these endings, an empty one, and a pointer of Git LFS."""
    if path.suffix.lower() not in suffixes:
        raise SuiteError(f"{where}: {path} does not end in {' or '.join(suffixes)}; name a file that does")
    with path.open("rb") as file:
        beginning = file.read(len(_LFS_POINTER))
    if beginning == _LFS_POINTER:
        raise CaseError("model", f"{where}: {path} is a pointer of Git LFS; `git lfs pull` gets the file")
    if not beginning:
        raise CaseError("model", f"{where}: {path} is empty; write it again")


def hash_parameters(
    parameters: Mapping[str, Path], *, toolchain: Toolchain, limits: process.Limits, where: str
) -> dict[str, str]:
    """Hash (sha256, hex) of each scope's file, once iree-dump-parameters has read its header."""
    hashes = {}
    for scope, path in sorted(parameters.items()):
        key = f"{where} parameters.{scope}"
        require_file(path, _PARAMETER_SUFFIXES, key)
        absolute = path.resolve()
        tool = toolchain.runtime_tool("iree-dump-parameters")
        if tool.is_file():
            run_tool(
                [tool, f"--parameters={scope}={absolute}"],
                cwd=absolute.parent,
                limits=limits,
                complaint=f"{key}: {path} is no parameter file that IREE {toolchain.version} reads",
                remedy="write or download it again",
            )
        hashes[scope] = file_sha256(absolute)
    return hashes


def run_tool(
    command: Sequence[str | Path], *, cwd: Path, limits: process.Limits, complaint: str, remedy: str
) -> process.Finished:
    """Run a tool to its successful end."""
    try:
        finished = process.run([str(part) for part in command], cwd=cwd, limits=limits)
    except OSError as error:
        raise CaseError("model", f"{complaint}: {command[0]} cannot be started ({error.strerror}); {remedy}") from None
    if finished.ok:
        return finished
    reason = finished.how_it_ended(limits)
    lines = [line.strip() for line in finished.stderr.splitlines() if line.strip()]
    if lines and finished.limit is None:
        # The line that says why: the first with `error:`, else the last one, as Python's tracebacks have it.
        chosen = next((line for line in lines if "error:" in line), lines[-1])
        reason = _RUNTIME_SOURCE.sub("", chosen)[:_LINE_CHARACTERS].rstrip(".;") or reason
    # Each line cut short: diagnostics repeat the offending line, which may hold a whole weight.
    last_lines = (line[:_LINE_CHARACTERS] for line in finished.stderr.splitlines()[-_TAIL_LINES:])
    raise CaseError("model", f"{complaint}: {reason}; {remedy}", stderr="\n".join(last_lines))
