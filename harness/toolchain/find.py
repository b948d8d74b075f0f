"""Finding a compiler and runtime pair without importing either: the harness's own, or one in its own environment.

In the place of a release's compiler or runtime may stand one that somebody built, for who bisects IREE's own commits.
"""

import hashlib
import os
import re
import shlex
import sys
import sysconfig
from collections.abc import Iterable
from dataclasses import dataclass, replace
from importlib.metadata import Distribution, PackageNotFoundError, distribution, distributions
from pathlib import Path

from packaging.version import InvalidVersion, Version

from harness.cache import cache_root, read_memo, write_atomically, write_memo
from harness.errors import ToolchainError
from harness.process import Limits, run


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
        environments.append(Environment(version=version, folder=folder, disk_bytes=_bytes_below(folder)))
    return tuple(environments)


def _bytes_below(folder: Path) -> int:
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


def find_in_environment(folder: Path, *, unfinished: bool = False) -> Toolchain:
    """The pair in a Python environment of its own; this process looks at its files and imports nothing of it."""
    python = environment_python(folder)
    if being_made(folder).exists() and not unfinished:
        raise ToolchainError(f"{folder} is being made; {_OTHER_VERSION}")
    if not python.exists():
        raise ToolchainError(f"the Python that made {folder} is gone; {_OTHER_VERSION}")
    return _pair(next(iter(sorted(folder.glob("lib/python*/site-packages"))), folder), python, ("-I",))


def environment_python(folder: Path) -> Path:
    """The interpreter of a Python environment."""
    return folder / "bin" / "python"


def _pair(site_packages: Path | None, python: Path, options: tuple[str, ...]) -> Toolchain:
    """The pair in a folder of packages; None: wherever this interpreter finds its own."""
    advice = "" if site_packages is None else _OTHER_VERSION
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
        revision=_revision(compiler_tools.parent / "version.py"),
        compiler_sha256=_compiler_hash(compiler_tools),
        python=python,
        compiler_tools=compiler_tools,
        runtime_tools=runtime_tools,
        python_options=options,
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


def _revision(version_file: Path) -> str:
    """The IREE commit that a wheel's version.py names; "" when it names none."""
    try:
        match = re.search(r'"IREE":\s*"([0-9a-f]{7,40})"', version_file.read_text())
    except OSError:
        return ""
    return match.group(1) if match else ""


def _compiler_hash(folder: Path) -> str:
    """Hash of the compiler's program and library; 300 MB take a second, so a memo keeps it by size and time."""
    parts = [folder / "iree-compile", *sorted(folder.glob("*IREECompiler.*"))]
    stamp = "\n".join(f"{part}:{part.stat().st_size}:{part.stat().st_mtime_ns}" for part in parts)
    memo = cache_root() / "toolchains" / f"{hashlib.sha256(stamp.encode()).hexdigest()[:32]}.json"
    kept = read_memo(memo)
    if isinstance(kept, str):
        return kept
    digest = _hash(parts)
    write_memo(memo, digest)
    return digest


_LIMITS = Limits(seconds=120)
_COMPILER, _RUNTIME = "iree-compile", "iree-run-module"
# Where a program lies in what somebody may name: its own folder, IREE's build folder, or an installed one.
_BELOW = ("", "tools", "bin")
_STATED = re.compile(r"IREE compiler version (?P<version>\S+)(?:.*@ ?(?P<revision>[0-9a-f]{7,40}))?")
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
        version, revision = _stated_version(tools / _COMPILER)
        built = replace(built, compiler_tools=tools, version=version or toolchain.version, revision=revision)
        # Its library lies beside it, or in the build's library folder.
        folders = (tools, tools.parent / "lib")
        libraries = (file for folder in folders for file in folder.glob("*IREECompiler.*") if file.is_file())
        parts += [tools / _COMPILER, *sorted(libraries)]
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
    folder = place.absolute()
    if folder.name == program and folder.is_file():
        return folder.parent
    found = next((folder / below for below in _BELOW if (folder / below / program).is_file()), None)
    if found is None:
        raise ToolchainError(f"{option} {place}: there is no {program}; name it, its folder, or IREE's build folder")
    return found


def _stated_version(program: Path) -> tuple[str, str]:
    """Version and commit that a compiler says of itself; "" of what it does not say."""
    try:
        finished = run([str(program), "--version"], limits=_LIMITS)
    except OSError as error:
        raise ToolchainError(f"--compiler {program}: cannot be started ({error.strerror}); build it again") from None
    if not finished.ok:
        raise ToolchainError(f"--compiler {program}: {finished.how_it_ended(_LIMITS)}; build it again")
    said = _STATED.search(finished.stdout)
    if said is None:
        return "", ""
    try:
        return str(Version(said["version"])), said["revision"] or ""
    except InvalidVersion:  # of a build that was told none
        return "", said["revision"] or ""


def _hash(parts: Iterable[Path], release: str = "") -> str:
    digest = hashlib.sha256(release.encode())
    for part in parts:
        try:
            with part.open("rb") as file:
                while chunk := file.read(1 << 20):
                    digest.update(chunk)
        except OSError as error:
            raise ToolchainError(f"{part}: cannot be read ({error.strerror}); make it anew") from None
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
