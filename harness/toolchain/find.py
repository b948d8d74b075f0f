"""Finding a compiler and runtime pair without importing either: the harness's own, or one in an environment."""

import hashlib
import os
import re
import sys
import sysconfig
import zipfile
from collections.abc import Iterable
from dataclasses import dataclass, replace
from importlib.metadata import Distribution, PackageNotFoundError, distribution, distributions
from pathlib import Path

from harness.cache import cache_root, read_memo, write_memo
from harness.errors import ToolchainError


@dataclass(frozen=True, kw_only=True)
class Toolchain:
    """Where one compiler and runtime pair lives and what identifies it."""

    version: str  # The pair's release, as both packages say it: `3.13.0`
    revision: str  # The git commit that it was built from, or ""
    compiler_sha256: str  # Hash of the compiler's binary and library; part of every cache key
    python: Path  # The interpreter that has iree.runtime; workers run under it
    compiler_tools: Path  # Folder of the compiler's native tools
    runtime_tools: Path  # Folder of the runtime's
    # Options of every start of the interpreter. In an environment of its own it must overlook PYTHONPATH and the user's
    # packages, or another release's modules could come first.
    python_options: tuple[str, ...] = ()
    runtime_sha256: str = ""  # Hash of the libraries that calls go through; "": not known
    remarks: tuple[str, ...] = ()  # What a reader of its figures has to know, as clauses
    # Another compiler has taken the place of the one that is meant: what it made still runs, and nothing more is made
    compiler_is_gone: bool = False

    @property
    def python_command(self) -> tuple[str, ...]:
        """The first words of a command line that starts its interpreter."""
        return (str(self.python), *self.python_options)

    @property
    def iree_compile(self) -> Path:
        """The native iree-compile, not its Python wrapper."""
        return self.compiler_tools / "iree-compile"

    def runtime_tool(self, name: str) -> Path:
        """Path of one of the runtime's tools, e.g. `iree-benchmark-module`."""
        return self.runtime_tools / name


_PREFIX = "iree-"
# In an environment of wheels that nobody released: what they are called, see harness.toolchain.own.
LABEL_FILE = "iree-harness-label"


@dataclass(frozen=True, kw_only=True)
class Environment:
    """One pair that was installed for `--toolchain`."""

    version: str
    folder: Path
    disk_bytes: int  # What its files take


def environment_folder(root: Path, release: str) -> Path:
    """Where a release's environment lies, by the Python that drives its workers and the system."""
    major, minor = sys.version_info[:2]
    return root / f"{_PREFIX}{release}-python{major}.{minor}-{sysconfig.get_platform()}"


def being_made(folder: Path) -> Path:
    """The file that is there while an environment is made, and stays where that was killed."""
    return folder.with_name(f".making-{folder.name}")


def installed_environments(root: Path) -> tuple[Environment, ...]:
    """All whole pairs in a folder of environments, in the order of their folders' names."""
    environments = []
    for folder in sorted(path for path in root.glob(f"{_PREFIX}*") if path.is_dir()):
        try:
            version = find_in_environment(folder).version
        except ToolchainError:
            continue
        environments.append(Environment(version=version, folder=folder, disk_bytes=bytes_below(folder)))
    return tuple(environments)


def bytes_below(folder: Path) -> int:
    """What the files in a folder take."""
    total = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            try:
                total += os.lstat(os.path.join(parent, name)).st_size  # noqa: PTH118 (thousands of files)
            except OSError:
                continue
    return total


COMPILER_PACKAGE = "iree-base-compiler"
RUNTIME_PACKAGE = "iree-base-runtime"
_INSTALL = "pip install 'iree-base-compiler[onnx]' iree-base-runtime"
# What to do about a part of an environment that is missing.
_OTHER_VERSION = "give another version with --toolchain"


def find_toolchain() -> Toolchain:
    """The pair that is installed beside the harness."""
    return _pair(None, Path(sys.executable), ())


def find_in_environment(folder: Path, *, unfinished: bool = False, advice: str = _OTHER_VERSION) -> Toolchain:
    """The pair in a Python environment of its own; this process looks at its files and imports nothing of it."""
    python = environment_python(folder)
    if being_made(folder).exists() and not unfinished:
        raise ToolchainError(f"{folder} is being made; {advice}")
    if not python.exists():
        raise ToolchainError(f"the Python that made {folder} is gone; {advice}")
    pair = _pair(next(iter(sorted(folder.glob("lib/python*/site-packages"))), folder), python, ("-I",), advice)
    label = folder / LABEL_FILE
    return replace(pair, version=label.read_text()) if label.is_file() else pair


def environment_python(folder: Path) -> Path:
    """The interpreter of a Python environment."""
    return folder / "bin" / "python"


def _pair(site_packages: Path | None, python: Path, options: tuple[str, ...], advice: str = "") -> Toolchain:
    """The pair in a folder of packages; None: wherever this interpreter finds its own."""
    compiler, runtime = (_package(name, site_packages, advice) for name in (COMPILER_PACKAGE, RUNTIME_PACKAGE))
    version, of_runtime = _version(compiler), _version(runtime)
    if version != of_runtime:
        pair = f"'{COMPILER_PACKAGE}[onnx]=={version}' {RUNTIME_PACKAGE}=={version}"
        raise ToolchainError(
            f"{COMPILER_PACKAGE} is {version} and {RUNTIME_PACKAGE} is {of_runtime}, and a module of one "
            f"release may not run in another; {advice or f'install a pair: pip install {pair}'}"
        )
    compiler_tools = Path(str(compiler.locate_file("iree/compiler/_mlir_libs")))
    runtime_tools = Path(str(runtime.locate_file("iree/_runtime_libs")))
    for tool in (compiler_tools / "iree-compile", runtime_tools / "iree-run-module"):
        if not tool.is_file():
            raise ToolchainError(
                f"{tool.name} is missing from the installed packages; {advice or f'reinstall them: {_INSTALL}'}"
            )
    return Toolchain(
        version=version,
        revision=revision_in(compiler_tools.parent / "version.py"),
        compiler_sha256=digest_of([compiler_tools / "iree-compile", *sorted(compiler_tools.glob("*IREECompiler.*"))]),
        python=python,
        compiler_tools=compiler_tools,
        runtime_tools=runtime_tools,
        python_options=options,
        runtime_sha256=digest_of(libraries) if (libraries := sorted(runtime_tools.glob("*.so"))) else "",
    )


def _package(name: str, site_packages: Path | None, advice: str) -> Distribution:
    try:
        if site_packages is None:
            return distribution(name)
        return next(iter(distributions(name=name, path=[str(site_packages)])))
    except (PackageNotFoundError, StopIteration):
        raise ToolchainError(f"{name} is not installed; {advice or f'run {_INSTALL}'}") from None


def _version(package: Distribution) -> str:
    """A package's version, as a sentence has it where the metadata has gone."""
    try:
        found: str | None = package.version
    except FileNotFoundError:  # of importlib_metadata, which takes the place of Python's own wherever Dask is imported
        found = None
    return found or "without a version"


def revision_in(version_file: Path | zipfile.Path) -> str:
    """The IREE commit that a wheel's version.py names; "" when it names none."""
    try:
        match = re.search(r'"IREE":\s*"([0-9a-f]{7,40})"', version_file.read_text())
    except OSError:
        return ""
    return match.group(1) if match else ""


def digest_of(parts: Iterable[Path], more: str = "") -> str:
    """Hash of files and of a text; hundreds of megabytes take a second, so a memo keeps it by size and time."""
    files = list(parts)
    stamps = [f"{part}:{status.st_size}:{status.st_mtime_ns}" for part, status in ((p, p.stat()) for p in files)]
    stamp = hashlib.sha256("\n".join([more, *stamps]).encode()).hexdigest()
    memo = cache_root() / "toolchains" / f"{stamp[:32]}.json"
    kept = read_memo(memo)
    if isinstance(kept, str):
        return kept
    digest = hashlib.sha256(more.encode())
    for part in files:
        try:
            with part.open("rb") as file:
                while chunk := file.read(1 << 20):
                    digest.update(chunk)
        except OSError as error:
            raise ToolchainError(f"{part}: cannot be read ({error.strerror}); make it anew") from None
    write_memo(memo, digest.hexdigest())
    return digest.hexdigest()
