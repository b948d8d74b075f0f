"""Constants that a dispatch holds, given back to a program that iree-compile dumped without them.

What is dumped names a constant, `dense_resource<block0_conv1_bias> : tensor<32xf32>`, and leaves out its bytes, which
MLIR prints at the end of a whole file only; so iree-compile refuses it (`resource does not exist`). The model's text
has them, and iree-opt prints the text of a model that is bytecode. Their values are the true ones, since an optimizer
reads them: of equal numbers it makes one.
"""

from __future__ import annotations

import mmap
import re
from pathlib import Path

from harness.process import Limits
from harness.toolchain import Toolchain
from harness.toolchain.tools import run_tool

_BYTECODE = b"ML\xefR"
_TEXT_FILE = "constants.mlir"
# As MLIR prints keys: bare, or quoted where they have other characters.
_NAMED = re.compile(r'dense_resource<("(?:[^"\\]|\\.)*"|[\w$.-]+)>')
_SECTION = "{-#"


def constants_of(text: str) -> tuple[str, ...]:
    """The keys of the constants whose bytes are not in a program's text, as they stand there, each once."""
    return () if _SECTION in text else tuple(dict.fromkeys(_NAMED.findall(text)))


def as_text(model: Path, toolchain: Toolchain, folder: Path, limits: Limits) -> Path:
    """A model as text with all its constants; the file itself where it is text, or iree-opt cannot print it."""
    with model.open("rb") as file:
        if file.read(len(_BYTECODE)) != _BYTECODE:
            return model
    tool, text = toolchain.compiler_tools / "iree-opt", folder / _TEXT_FILE
    command = [str(tool), str(model.resolve()), "--allow-unregistered-dialect", "-o", str(text)]
    return text if run_tool("measure", "iree-opt", command, limits=limits).ok else model


def with_constants(text: str, model: Path) -> str:
    """A program's text with the bytes of its constants."""
    bytes_of = _bytes_of(constants_of(text), model)
    if not bytes_of:
        return text
    lines = ",\n".join(f'      {key}: "0x{digits}"' for key, digits in bytes_of.items())
    return f"{text.rstrip()}\n\n{{-#\n  dialect_resources: {{\n    builtin: {{\n{lines}\n    }}\n  }}\n#-}}\n"


def _bytes_of(keys: tuple[str, ...], model: Path) -> dict[str, str]:
    """Hexadecimal digits by key, of those that the model's text has; it may have gigabytes."""
    if not keys or not model.stat().st_size:
        return {}
    found = {}
    with model.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        for key in keys:
            said = rb"(?<![\w$.-])" + re.escape(key.encode()) + rb':\s*"0x([0-9A-Fa-f]+)"'
            if match := re.search(said, content):
                found[key] = match[1].decode()
    return found
