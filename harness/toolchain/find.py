"""Finding the installed compiler and runtime pair, without importing either."""

from __future__ import annotations

import hashlib
import re
import sys
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from importlib.util import find_spec
from pathlib import Path

from harness.cache import cache_root, read_memo, write_memo
from harness.errors import ToolchainError
from harness.toolchain.values import Toolchain

COMPILER_PACKAGE = "iree-base-compiler"
RUNTIME_PACKAGE = "iree-base-runtime"
_INSTALL = "pip install 'iree-base-compiler[onnx]' iree-base-runtime"


def find_toolchain() -> Toolchain:
    """The pair that is installed beside the harness.

    Raises:
        ToolchainError: A half is missing, the halves are of different versions, or tools are missing.
    """
    compiler, runtime = _require(COMPILER_PACKAGE), _require(RUNTIME_PACKAGE)
    if compiler.version != runtime.version:
        pair = f"'{COMPILER_PACKAGE}[onnx]=={compiler.version}' {RUNTIME_PACKAGE}=={compiler.version}"
        raise ToolchainError(
            f"{COMPILER_PACKAGE} is {compiler.version} and {RUNTIME_PACKAGE} is {runtime.version}, and a module of one "
            f"release may not run in another; install a pair: pip install {pair}"
        )
    compiler_tools = _package_folder("iree.compiler", COMPILER_PACKAGE) / "_mlir_libs"
    runtime_tools = _package_folder("iree._runtime_libs", RUNTIME_PACKAGE)
    for tool in (compiler_tools / "iree-compile", runtime_tools / "iree-run-module"):
        if not tool.is_file():
            raise ToolchainError(f"{tool.name} is missing from the installed packages; reinstall them: {_INSTALL}")
    return Toolchain(
        version=compiler.version,
        revision=_revision(compiler_tools.parent / "version.py"),
        compiler_sha256=_compiler_hash(compiler_tools),
        python=Path(sys.executable),
        compiler_tools=compiler_tools,
        runtime_tools=runtime_tools,
    )


def _require(package: str) -> Distribution:
    try:
        return distribution(package)
    except PackageNotFoundError:
        raise ToolchainError(f"{package} is not installed; run {_INSTALL}") from None


def _package_folder(module: str, package: str) -> Path:
    try:
        spec = find_spec(module)
    except ModuleNotFoundError:
        spec = None
    if spec is None or not spec.submodule_search_locations:
        raise ToolchainError(f"{package} is installed without its module {module}; reinstall it: {_INSTALL}")
    return Path(next(iter(spec.submodule_search_locations)))


def _revision(version_file: Path) -> str:
    """The IREE commit that a wheel's version.py names; "" when it names none."""
    try:
        match = re.search(r'"IREE":\s*"([0-9a-f]{7,40})"', version_file.read_text())
    except OSError:
        return ""
    return match.group(1) if match else ""


def _compiler_hash(folder: Path) -> str:
    """Hash of the compiler's program and library; hashing 300 MB takes a second, so it is kept by size and time."""
    parts = [folder / "iree-compile", *sorted(folder.glob("*IREECompiler.*"))]
    stamp = "\n".join(f"{one}:{one.stat().st_size}:{one.stat().st_mtime_ns}" for one in parts)
    memo = cache_root() / "toolchains" / f"{hashlib.sha256(stamp.encode()).hexdigest()[:32]}.json"
    kept = read_memo(memo)
    if isinstance(kept, str):
        return kept
    digest = hashlib.sha256()
    for part in parts:
        with part.open("rb") as file:
            while chunk := file.read(1 << 20):
                digest.update(chunk)
    write_memo(memo, digest.hexdigest())
    return digest.hexdigest()
