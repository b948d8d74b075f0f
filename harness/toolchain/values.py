"""One iree-base-compiler + iree-base-runtime pair, as a value."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, kw_only=True)
class Toolchain:
    """Where one compiler and runtime pair lives and what identifies it.

    Attributes:
        version: The pair's release, as both packages say it: `3.13.0`.
        revision: The git commit that it was built from, or "".
        compiler_sha256: Hash of the compiler's binary and library; part of every cache key.
        python: The interpreter that has iree.runtime; workers run under it.
        compiler_tools: Folder of the compiler's native tools.
        runtime_tools: Folder of the runtime's.
        python_options: What the interpreter is always started with. In an environment of its own it has to overlook
            PYTHONPATH and the user's packages, or another release's modules could come first.
    """

    version: str
    revision: str
    compiler_sha256: str
    python: Path
    compiler_tools: Path
    runtime_tools: Path
    python_options: tuple[str, ...] = ()

    @property
    def python_command(self) -> tuple[str, ...]:
        """How a command line that starts its interpreter begins."""
        return (str(self.python), *self.python_options)

    @property
    def iree_compile(self) -> Path:
        """The native iree-compile, not its Python wrapper."""
        return self.compiler_tools / "iree-compile"

    def runtime_tool(self, name: str) -> Path:
        """Path of one of the runtime's tools, e.g. `iree-benchmark-module`."""
        return self.runtime_tools / name
