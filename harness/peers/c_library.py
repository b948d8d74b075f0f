"""A C source of a peer -> a shared library for this machine, compiled once and kept."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Sequence
from pathlib import Path

from harness import process
from harness.cache import held

_LIMITS = process.Limits(seconds=120)


def compiler() -> str:
    """The C compiler: $CC, else cc."""
    return os.environ.get("CC") or "cc"


def missing_compiler() -> str | None:
    """Why nothing can be compiled, as a phrase; None: there is a C compiler."""
    return None if shutil.which(compiler()) else f"there is no C compiler {compiler()}"


def build_library(source: Path, libraries: Sequence[str], cache: Path) -> Path:
    """Compile a source for this processor, unless that was done already.

    It is compiled anew where the source changes, or a macro: those of the compiler say its version and the processor's
    instruction sets, those of a library's headers its version.

    Args:
        libraries: To link with, in order: `xsmm`.
        cache: The folder in which it is kept.

    Raises:
        RuntimeError: It cannot be compiled.
        OSError: The compiler cannot be started.
    """
    flags = ["-O3", "-march=native", "-std=gnu11", "-shared", "-fPIC"]
    links = [f"-l{library}" for library in libraries]
    macros = _run([compiler(), *flags, "-E", "-dM", str(source)])
    key = hashlib.sha256("\0".join([*flags, *links, macros, source.read_text()]).encode()).hexdigest()[:16]
    library = cache / f"{source.stem}-{key}.so"
    with held(cache / f"{library.name}.lock", lambda: None):
        if not library.exists():
            unfinished = library.with_suffix(".unfinished")
            _run([compiler(), *flags, str(source), "-o", str(unfinished), *links])
            unfinished.replace(library)
    return library


def _run(command: Sequence[str]) -> str:
    finished = process.run(command, limits=_LIMITS)
    if not finished.ok:
        lines = [line for line in finished.stderr.splitlines() if "error" in line] or finished.stderr.splitlines()
        reason = f": {lines[0]}" if lines else ""
        raise RuntimeError(f"{command[0]} {finished.how_it_ended(_LIMITS)}{reason}")
    return finished.stdout
