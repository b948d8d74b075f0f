"""The store of programs: MLIR by its content, and memos of what a source has given before.

The store holds one folder a program, `<sha256 of its MLIR>/`, with `model.mlir` and a folder for each set of arguments
it was called with, and `memos/`. Every file is moved into place whole, so processes may share a store.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TypeVar

from pydantic import TypeAdapter, ValidationError

import harness
from harness.cache import read_memo, write_atomically, write_memo
from harness.files import file_sha256
from harness.models.model import Input

MLIR_NAME = "model.mlir"
_ONNX_FOLDER = "onnx"

Key = tuple[object, ...]
_T = TypeVar("_T")


@dataclass(frozen=True, kw_only=True)
class Program:
    """MLIR that lies in the store, and how its entry function is called.

    Attributes:
        inputs: Arguments that its source knows of.
        unknown_inputs: Why `inputs` is empty although the entry function takes some; else "".
        read_files: Hashes (sha256, hex) of further files that it was made from, by path in the source's folder.
        from_onnx: Whether iree-import-onnx made it.
    """

    mlir_sha256: str
    mlir_bytes: int
    function: str
    inputs: tuple[Input, ...] = ()
    unknown_inputs: str = ""
    read_files: dict[str, str] = field(default_factory=dict)
    from_onnx: bool = False


@dataclass(frozen=True, kw_only=True)
class OnnxForm:
    """A model in ONNX that lies in the store, as a builder wrote it.

    Attributes:
        inputs: As the builder gives them; () where they are those of its MLIR.
    """

    onnx_sha256: str
    onnx_bytes: int
    inputs: tuple[Input, ...] = ()


@dataclass(frozen=True, kw_only=True)
class ProgramStore:
    """A folder of programs. Its methods raise OSError where it cannot be written."""

    root: Path

    def folder(self, mlir_sha256: str) -> Path:
        """Where the program of that hash lies."""
        return self.root / mlir_sha256

    def onnx_file(self, form: OnnxForm) -> Path:
        """Where a model in ONNX lies."""
        return self.root / _ONNX_FOLDER / f"{form.onnx_sha256}.onnx"

    def keep(self, text: bytes) -> tuple[str, int]:
        """Put MLIR into the store.

        Returns:
            Its hash (sha256, hex) and its size in bytes.
        """
        sha256 = hashlib.sha256(text).hexdigest()
        if not self._holds(sha256, len(text)):
            write_atomically(self.folder(sha256) / MLIR_NAME, text)
        return sha256, len(text)

    def keep_file(self, path: Path) -> tuple[str, int]:
        """Move a file of MLIR, which lies on the store's own file system, into the store; as `keep`."""
        sha256, size = file_sha256(path), path.stat().st_size
        if not self._holds(sha256, size):
            self.folder(sha256).mkdir(parents=True, exist_ok=True)
            path.replace(self.folder(sha256) / MLIR_NAME)
        return sha256, size

    def recall(self, key: Key) -> Program | None:
        """What a source with this key gave before, if it still lies in the store."""
        program = _read(_adapters()[0], self._memo(key))
        return program if program is not None and self._holds(program.mlir_sha256, program.mlir_bytes) else None

    def remember(self, key: Key, program: Program) -> Program:
        """Say what a source with this key gave; the same program."""
        write_memo(self._memo(key), _adapters()[0].dump_python(program, mode="json"))
        return program

    def recall_onnx(self, key: Key) -> OnnxForm | None:
        """What a builder with this key wrote in ONNX before, if it still lies in the store."""
        form = _read(_adapters()[1], self._memo(("onnx form", *key)))
        return form if form is not None and _has_size(self.onnx_file(form), form.onnx_bytes) else None

    def remember_onnx(self, key: Key, onnx: bytes, inputs: tuple[Input, ...] = ()) -> OnnxForm:
        """Put what a builder with this key wrote in ONNX into the store."""
        form = OnnxForm(onnx_sha256=hashlib.sha256(onnx).hexdigest(), onnx_bytes=len(onnx), inputs=inputs)
        if not _has_size(self.onnx_file(form), form.onnx_bytes):
            write_atomically(self.onnx_file(form), onnx)
        write_memo(self._memo(("onnx form", *key)), _adapters()[1].dump_python(form, mode="json"))
        return form

    def _holds(self, sha256: str, size: int) -> bool:
        return _has_size(self.folder(sha256) / MLIR_NAME, size)

    def _memo(self, key: Key) -> Path:
        text = json.dumps((harness.__version__, *key), sort_keys=True, default=repr)
        return self.root / "memos" / f"{hashlib.sha256(text.encode()).hexdigest()[:32]}.json"


@cache
def _adapters() -> tuple[TypeAdapter[Program], TypeAdapter[OnnxForm]]:
    return TypeAdapter(Program), TypeAdapter(OnnxForm)


def _read(adapter: TypeAdapter[_T], memo: Path) -> _T | None:
    try:
        return adapter.validate_python(read_memo(memo))
    except ValidationError:
        return None


def _has_size(file: Path, size: int) -> bool:
    try:
        return file.stat().st_size == size
    except OSError:
        return False
