"""The store of programs, and the three sources that put one into it: a builder, an MLIR file, an ONNX file.

The store holds one folder a program, `<sha256 of its MLIR>/`, with `model.mlir` and a folder for each set of arguments;
`onnx/` with what builders wrote in ONNX; and `memos/` of what a source has given before.
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
from harness.cache import read_memo, write_atomically, write_memo
from harness.errors import CaseError, SuiteError
from harness.files import file_sha256
from harness.ir.dump import ask
from harness.models.builder import Builder, BuiltModel, check_params, find_builder
from harness.models.model import Input, Model
from harness.models.onnx_file import LEAST_OPSET, read_onnx, with_static_inputs
from harness.process import Limits
from harness.scratch import scratch_folder
from harness.text import did_you_mean
from harness.toolchain.find import Toolchain
from harness.toolchain.tools import excerpt, run_tool

MLIR_NAME = "model.mlir"
_BYTECODE = b"ML\xefR"
_LFS_POINTER = b"version https://git-lfs.github.com/spec/"
_PARAMETER_SUFFIXES = (".irpa", ".gguf", ".safetensors")
_RUNTIME_SOURCE = re.compile(r"^\S+\.(?:c|cc|h):\d+: ")
_LONGEST_REASON = 300
_T = TypeVar("_T")


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
_MaybeStored = TypeVar("_MaybeStored", Stored, Stored | None)


@dataclass(frozen=True, kw_only=True)
class Maker:
    """Makes one model, or finds in the store what was made of it. OSError where the store cannot be written."""

    model: Model
    store: Path
    toolchain: Toolchain
    limits: Limits

    @property
    def where(self) -> str:
        """What errors begin with."""
        return f"[models.{self.model.name}]"

    def program(self) -> Stored:
        """The model's program."""
        if self.model.builder is not None:
            built = self._built()
            return replace(self._from_onnx(self.file(built)), inputs=built.inputs) if built.is_onnx else built
        if self.model.mlir is not None:
            return self._from_mlir(self.model.mlir)
        assert self.model.onnx is not None  # noqa: S101 (loading a suite made sure)
        return self._from_onnx(self.model.onnx)

    def onnx(self) -> Path | None:
        """The model in ONNX, for the engines that read that: its own file, or what its builder writes."""
        if self.model.builder is None:
            return self.model.onnx
        builder, params, key = self._asked_of_builder()
        built = self._built()
        if built.is_onnx:
            return self.file(built)

        def make() -> Stored | None:
            content = self._run_builder(builder, builder.onnx, params) if builder.onnx is not None else None
            return self._keep(content, is_onnx=True) if content is not None else None

        twin = self._made_once((*key, "twin"), make)
        return self.file(twin) if twin is not None else None

    def weights(self) -> dict[str, str]:
        """Hash (sha256, hex) of each scope's file of weights, once iree-dump-parameters has read its header."""
        hashes = {}
        for scope, path in sorted(self.model.parameters.items()):
            key = f"{self.where} parameters.{scope}"
            _require_file(path, _PARAMETER_SUFFIXES, key)
            absolute = path.resolve()
            tool = self.toolchain.runtime_tool("iree-dump-parameters")
            if tool.is_file():
                complaint = f"{key}: {path} is no parameter file that IREE {self.toolchain.version} reads"
                command: list[str | Path] = [tool, f"--parameters={scope}={absolute}"]
                self._run(command, absolute.parent, complaint, "write or download it again")
            hashes[scope] = file_sha256(absolute)
        return hashes

    # -------------------------------------------------------------------------------------------------------- store

    def file(self, stored: Stored) -> Path:
        """Where a program's MLIR or a model in ONNX lies."""
        if stored.is_onnx:
            return self.store / "onnx" / f"{stored.sha256}.onnx"
        return self.store / stored.sha256 / MLIR_NAME

    def _keep(self, content: bytes | str, **what: Any) -> Stored:
        content = content.encode() if isinstance(content, str) else content
        stored = Stored(sha256=hashlib.sha256(content).hexdigest(), size=len(content), **what)
        if not self._holds(stored):
            write_atomically(self.file(stored), content)
        return stored

    def _holds(self, stored: Stored) -> bool:
        file = self.file(stored)
        return file.is_file() and file.stat().st_size == stored.size

    def _made_once(
        self,
        key: Sequence[object],
        make: Callable[[], _MaybeStored],
        is_current: Callable[[Stored], bool] = lambda _: True,
    ) -> _MaybeStored:
        """What a source with this key gave before, if that still lies in the store; else what it gives now."""
        text = json.dumps((harness.__version__, "stored", *key), sort_keys=True, default=repr)
        memo = self.store / "memos" / f"{hashlib.sha256(text.encode()).hexdigest()[:32]}.json"
        try:
            known = _STORED.validate_python(read_memo(memo))
            if self._holds(known) and is_current(known):
                return known
        except ValidationError:
            pass
        made = make()
        if made is not None:
            write_memo(memo, _STORED.dump_python(made, mode="json"))
        return made

    # ----------------------------------------------------------------------------------------------------- builders

    def _asked_of_builder(self) -> tuple[Builder[Any], Any, Sequence[object]]:
        """The builder, its parameters, and the key under which the store remembers what it wrote."""
        builder = find_builder(str(self.model.builder), f"{self.where} builder")
        params = check_params(builder, self.model.params, f"{self.where} params")
        writers = (builder.parameters, builder.build, builder.onnx)
        sources = _sources_sha256(frozenset(writer.__module__ for writer in writers if writer is not None))
        key = ("builder", self.model.builder, builder.version, sources, np.__version__, asdict(params))
        return builder, params, key

    def _built(self) -> Stored:
        builder, params, key = self._asked_of_builder()

        def make() -> Stored:
            built = self._run_builder(builder, builder.build, params)
            if isinstance(built, BuiltModel):
                return self._keep(built.text, function=built.function, inputs=built.inputs)
            return self._keep(built.onnx, is_onnx=True, inputs=built.inputs)

        return self._made_once(key, make)

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
        """The program of an MLIR file once iree-opt has read it, without what its entry function does not need.

        IREE would compile other public functions too, and their code, size and compile time would count as the model's.
        """
        function = str(self.model.function)
        _require_file(path, (".mlir", ".mlirbc"), f"{self.where} mlir")
        text = path.read_bytes()

        def make() -> Stored:
            program = self._keep(text, function=function)
            parser = self.toolchain.compiler_tools / "iree-opt"
            if parser.is_file():
                command: list[str | Path] = [parser, "--allow-unregistered-dialect", MLIR_NAME, "-o", os.devnull]
                complaint = f"{self.where} mlir: {path} is no MLIR that IREE {self.toolchain.version} reads"
                self._run(command, self.file(program).parent, complaint, "check the file")
                # Whether there is more than one public function; bytecode does not show it.
                if text.startswith(_BYTECODE) or text.count(b"func.func") + text.count(b"util.func") > 1:
                    program = self._reduced(program, path, as_bytecode=text.startswith(_BYTECODE))
            if function.isidentifier() and function.encode() not in text:
                raise CaseError(
                    "model", f"{self.where} function: {path} has no function {function!r}; correct the name"
                )
            return program

        sha256 = hashlib.sha256(text).hexdigest()
        return self._made_once(("mlir", "entry", sha256, function, self.toolchain.version), make)

    def _reduced(self, program: Stored, path: Path, *, as_bytecode: bool) -> Stored:
        """The program without public functions other than its entry function, and what only they need."""
        entry = program.function
        with scratch_folder(self.store, ".reducing-") as folder:
            output = folder.resolve() / MLIR_NAME
            functions = ask(
                "reduced",
                {"start": self.file(program)},
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
            return self._keep(output.read_bytes(), function=entry) if output.is_file() else program

    # --------------------------------------------------------------------------------------------------- ONNX files

    def _from_onnx(self, path: Path) -> Stored:
        """The program that iree-import-onnx makes of a file, imported only when the store has none of these bytes."""
        _require_file(path, (".onnx",), f"{self.where} onnx")
        shapes = [value.shape for value in self.model.inputs] if self.model.static else []
        key = ("onnx", file_sha256(path), self.model.opset, self.toolchain.version, *shapes)
        program = self._made_once(
            key, lambda: self._imported(path), lambda known: _hashes(path, known.read_files) == known.read_files
        )
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
        self.store.mkdir(parents=True, exist_ok=True)
        with scratch_folder(self.store, ".importing-") as folder:
            output = folder.resolve() / MLIR_NAME
            graph = path
            if self.model.static:
                import onnx

                graph = output.with_suffix(".onnx")
                shapes = [value.shape for value in self.model.inputs]
                onnx.save(with_static_inputs(onnx.load(str(path)), shapes, f"{self.where} onnx: {path}"), str(graph))
            wanted = self.model.opset or LEAST_OPSET
            upgrade = [f"--opset-version={wanted}"] if 0 < facts.opset < wanted else []
            importer = [*self.toolchain.python_command, "-m", "iree.compiler.tools.import_onnx"]
            self._run(
                [*importer, graph.resolve(), "-o", output, *upgrade],
                output.parent,  # Python would import an `onnx` or `iree` folder of the user's own working folder
                f"{self.where} onnx: iree-import-onnx of IREE {self.toolchain.version} cannot import {path}",
                f"check the file, or give another opset than {wanted}" if upgrade else "check the file",
            )
            return self._keep(
                output.read_bytes(),
                function=facts.function,
                inputs=facts.inputs,
                unknown_inputs=facts.unknown_inputs,
                read_files=_hashes(path, facts.external_files),
                from_onnx=True,
            )

    def _run(self, command: Sequence[str | Path], folder: Path, complaint: str, remedy: str) -> None:
        finished = run_tool(
            "model", Path(command[0]).name, [str(part) for part in command], cwd=folder, limits=self.limits
        )
        if not finished.ok:
            said = excerpt(finished.stderr)
            reason = finished.how_it_ended(self.limits)
            if said and finished.limit is None:
                # The line that says why: the first with `error:`, else the last one, as Python's tracebacks have it.
                why = next((line for line in said.splitlines() if "error:" in line), said.splitlines()[-1])
                reason = _RUNTIME_SOURCE.sub("", why.strip())[:_LONGEST_REASON].rstrip(".;")
            raise CaseError("model", f"{complaint}: {reason}; {remedy}", stderr=said)


def _hashes(path: Path, names: Sequence[str] | Mapping[str, str]) -> dict[str, str]:
    files = {name: path.parent / name for name in names}
    return {name: file_sha256(file) for name, file in files.items() if file.is_file()}


@cache
def _sources_sha256(modules: frozenset[str]) -> str:
    """Hash of some modules, and of all code and templates beside them, so that editing one builds anew."""
    digest = hashlib.sha256("".join(sorted(modules)).encode())
    files: set[Path] = set()
    for name in modules:
        module = sys.modules.get(name)
        if file := getattr(module, "__file__", None):
            beside = Path(file).parent.rglob("*.[pm][yl]*") if getattr(module, "__package__", "") else ()
            files.update([Path(file), *(path for path in beside if path.suffix in (".py", ".mlir"))])
    for path in sorted(files):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def _require_file(path: Path, suffixes: Sequence[str], where: str) -> None:
    """Refuse a file that has none of these endings, an empty one, and a pointer of Git LFS."""
    if path.suffix.lower() not in suffixes:
        raise SuiteError(f"{where}: {path} does not end in {' or '.join(suffixes)}; name a file that does")
    with path.open("rb") as file:
        beginning = file.read(len(_LFS_POINTER))
    if beginning == _LFS_POINTER:
        raise CaseError("model", f"{where}: {path} is a pointer of Git LFS; `git lfs pull` gets the file")
    if not beginning:
        raise CaseError("model", f"{where}: {path} is empty; write it again")
