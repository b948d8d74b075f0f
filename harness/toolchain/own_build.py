"""A compiler or a runtime that somebody built, in the place of a release's: for who bisects IREE's own commits."""

from __future__ import annotations

import hashlib
import os
import re
import shlex
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from packaging.version import InvalidVersion, Version

from harness.cache import cache_root, write_atomically
from harness.errors import ToolchainError
from harness.process import Limits, run
from harness.toolchain.find import Toolchain

_LIMITS = Limits(seconds=120)
_COMPILER, _RUNTIME = "iree-compile", "iree-run-module"
# Where a program lies in what somebody may name: its own folder, IREE's build folder, or an installed one.
_BELOW = ("", "tools", "bin")
_VERSION = re.compile(r"IREE compiler version (?P<version>\S+)(?:.*@ ?(?P<revision>[0-9a-f]{7,40}))?")
# Of a build folder, beside its tools.
_BINDINGS = Path("runtime", "bindings", "python")


def with_own_build(toolchain: Toolchain, *, compiler: Path | None = None, runtime: Path | None = None) -> Toolchain:
    """A release's toolchain whose compiler or runtime somebody built.

    Python and what runs under it stay the release's: rewrites of plugins, the reader of programs, and calls of modules
    unless the runtime is a build folder of IREE that has the Python bindings.
    """
    built, python = toolchain, toolchain.python
    parts: list[Path] = []
    if compiler is not None:
        tools = _tools(compiler, _COMPILER, "--compiler")
        version, revision = _version(tools / _COMPILER)
        built = replace(built, compiler_tools=tools, version=version or toolchain.version, revision=revision)
        parts += [tools / _COMPILER, *_libraries(tools)]
    if runtime is not None:
        tools = _tools(runtime, _RUNTIME, "--runtime")
        built = replace(built, runtime_tools=tools)
        parts.append(tools / _RUNTIME)
        bindings = tools.parent / _BINDINGS
        if (bindings / "iree" / "runtime").is_dir():
            parts += sorted((bindings / "iree").glob("_runtime_libs/*.so"))
            python = _python_with(bindings, toolchain)
    if not parts:
        return toolchain
    # The hash stands for all of the toolchain: of another runtime, what was asked of its tools is not known.
    return replace(built, compiler_sha256=_hash(parts, toolchain.compiler_sha256), python=python)


def _tools(place: Path, program: str, option: str) -> Path:
    """The folder of a program."""
    folder = place.absolute()
    if folder.name == program and folder.is_file():
        return folder.parent
    found = next((folder / below for below in _BELOW if (folder / below / program).is_file()), None)
    if found is None:
        raise ToolchainError(f"{option} {place}: there is no {program}; name it, its folder, or IREE's build folder")
    return found


def _version(program: Path) -> tuple[str, str]:
    """Version and commit that a compiler says of itself; "" of what it does not say."""
    try:
        finished = run([str(program), "--version"], limits=_LIMITS)
    except OSError as error:
        raise ToolchainError(f"--compiler {program}: cannot be started ({error.strerror}); build it again") from None
    if not finished.ok:
        raise ToolchainError(f"--compiler {program}: {finished.how_it_ended(_LIMITS)}; build it again")
    said = _VERSION.search(finished.stdout)
    if said is None:
        return "", ""
    try:
        return str(Version(said["version"])), said["revision"] or ""
    except InvalidVersion:  # of a build that was told none
        return "", said["revision"] or ""


def _libraries(tools: Path) -> list[Path]:
    """The compiler's library, beside its program or in the build's library folder."""
    folders = (tools, tools.parent / "lib")
    return sorted(file for folder in folders for file in folder.glob("*IREECompiler.*") if file.is_file())


def _hash(parts: Iterable[Path], release: str) -> str:
    digest = hashlib.sha256(release.encode())
    for part in parts:
        try:
            with part.open("rb") as file:
                while chunk := file.read(1 << 20):
                    digest.update(chunk)
        except OSError as error:
            raise ToolchainError(f"{part}: cannot be read ({error.strerror}); build it again") from None
    return digest.hexdigest()


def _python_with(bindings: Path, toolchain: Toolchain) -> Path:
    """A program that starts the release's Python where it finds the build's iree.runtime first."""
    # -I, which an environment's Python is started with, overlooks PYTHONPATH, and the build's path has to come first.
    lines = [
        "#!/bin/sh",
        'while [ "$1" = "-I" ]; do shift; done',
        f'PYTHONPATH={shlex.quote(str(bindings))} PYTHONNOUSERSITE=1 exec {shlex.quote(str(toolchain.python))} "$@"',
        "",
    ]
    text = os.fsencode("\n".join(lines))
    file = cache_root() / "toolchains" / "own" / hashlib.sha256(text).hexdigest()[:32] / "python"
    if not file.is_file():
        try:
            write_atomically(file, text)
            file.chmod(0o755)
        except OSError as error:
            raise ToolchainError(
                f"{file}: cannot be written ({error.strerror}); make room or set HARNESS_CACHE"
            ) from None
    return file
