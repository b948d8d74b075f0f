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
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

import harness
from harness.cache import read_memo, write_atomically, write_memo
from harness.models.model import Input

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


_T = TypeVar("_T", Program, OnnxForm)


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

    def keep(self, kept: _T, content: bytes | Path) -> _T:
        """Put what is described into the store: its bytes, or a file on the store's own file system that is moved."""
        file = self.file(kept)
        if not self._holds(kept):
            if isinstance(content, bytes):
                write_atomically(file, content)
            else:
                file.parent.mkdir(parents=True, exist_ok=True)
                content.replace(file)
        return kept

    def recall(self, key: Key, kind: type[_T]) -> _T | None:
        """What a source with this key gave before, if it still lies in the store."""
        try:
            kept: _T = _adapters()[kind].validate_python(read_memo(self._memo(key, kind)))
        except ValidationError:
            return None
        return kept if self._holds(kept) else None

    def remember(self, key: Key, kept: _T) -> _T:
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
