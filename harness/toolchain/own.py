"""Toolchains that nobody released, by the folder that holds them: a build of IREE, an environment, or wheels.

Where a release has its number, each of them has a label, `3.14.0.dev0+local.build.9f3a2c`: the version that its
compiler states, the folder's name, and a digest of its tools. What is built again has another label; what is only
touched keeps its own. The cache keeps which folder a label stands for.
"""

import contextlib
import hashlib
import os
import re
import shlex
import sys
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from packaging.tags import sys_tags
from packaging.utils import InvalidWheelFilename, parse_wheel_filename
from packaging.version import InvalidVersion, Version

from harness.cache import cache_root, environments_root, read_memo, write_atomically, write_memo
from harness.errors import NoToolchain, ToolchainError
from harness.process import Limits, run
from harness.toolchain.find import (
    COMPILER_PACKAGE,
    RUNTIME_PACKAGE,
    Toolchain,
    digest_of,
    find_in_environment,
    find_toolchain,
    installed_environments,
    revision_in,
)

Kind = Literal["an environment", "a build", "wheels"]
NEWEST = "newest"

_LIMITS = Limits(seconds=120)
_COMPILER = "iree-compile"
# The runtime's tools are a build's where all of these are built, and else the release's.
_RUNTIME = ("iree-run-module", "iree-benchmark-module", "iree-dump-module", "iree-dump-parameters")
# Where a program lies in what somebody may name: its own folder, IREE's build folder, or an installed one.
_BELOW = ("", "tools", "bin")
# Python packages of a build folder, and of an installed one.
_BINDINGS = {
    "compiler": ("compiler/bindings/python", "python_packages/iree_compiler"),
    "runtime": ("runtime/bindings/python", "python_packages/iree_runtime"),
}
_STATED = re.compile(r"IREE compiler version (?P<version>\S+)(?:.*@ ?(?P<revision>[0-9a-f]{7,40}))?")
_SLOW_BUILD = re.compile(r"DEBUG build|with assertions", re.IGNORECASE)
_SLOW = "a debug build or one with assertions, so its compile times are not comparable"
WHEELS = tuple(package.replace("-", "_") for package in (COMPILER_PACKAGE, RUNTIME_PACKAGE))
# What reading a damaged archive raises, beside OSError; of one with a password or a compression of its own too.
DAMAGED = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, ValueError)
_MARK = "+local."
_DIGITS, _MOST_LETTERS = 6, 40
_UNSTATED = "0.0.0"
# What a runtime has to load and call where a compiler of another version made the module.
_PROGRAM = "func.func @f(%a: tensor<4xf32>) -> tensor<4xf32> { return %a : tensor<4xf32> }\n"
_TARGET = ("--iree-hal-target-device=local", "--iree-hal-local-target-device-backends=llvm-cpu")
_CALL = (
    "import sys, numpy, iree.runtime as runtime\n"
    "runtime.load_vm_flatbuffer_file(sys.argv[1], driver='local-sync').f(numpy.ones(4, 'f')).to_host()\n"
)
_NEEDS_BINDINGS = "build it with -DIREE_BUILD_PYTHON_BINDINGS=ON"


def is_own(label: str) -> bool:
    """Whether a label is of a toolchain that nobody released."""
    return _MARK in label


def kind_named(word: str) -> Kind | None:
    """What a user means by a word, also by `FOLDER/newest`, as a toolchain; None: nothing of the kind."""
    place = place_named(word)
    if place is not None and place.name == NEWEST and not place.exists():
        return next((kind for one in _toolchains_in(place.parent) for kind in _kinds(one)), None)
    return None if place is None else next(iter(_kinds(place)), None)


def _kinds(place: Path) -> list[Kind]:
    """What a folder, or iree-compile itself, is as a toolchain."""
    kinds: list[Kind] = ["wheels"] if any(place.glob(f"{WHEELS[0]}-*.whl")) else []
    if _environment_of(place) is not None:
        return ["an environment", *kinds]
    return ["a build", *kinds] if _program(place, _COMPILER) is not None else kinds


def _environment_of(place: Path) -> Path | None:
    """The environment with IREE that a place is, or whose iree-compile it has, which is a script."""
    program, packages = _program(place, _COMPILER), f"lib/python*/site-packages/{WHEELS[0]}-*.dist-info"
    folders = (place, *([program.resolve().parent.parent] if program is not None else []))
    return next((found for found in folders if (found / "pyvenv.cfg").is_file() and any(found.glob(packages))), None)


def place_named(word: str) -> Path | None:
    """The place that a user means by a word; None: a release or a range of releases."""
    word = word.removeprefix("iree==")
    try:
        Version(word)
    except InvalidVersion:
        place = Path(word).expanduser()
        is_path = os.sep in word or word.startswith(("~", ".")) or place.exists()
        return place if is_path and word != NEWEST else None
    return None


def own_named(place: Path, on_install: Callable[[str], None], option: str = "--toolchain") -> str:
    """The label of the toolchain in a place; of `FOLDER/newest`, of the one there that was built last.

    Raises:
        NoToolchain: there is none, or it lacks a part; the message says what to build.
    """
    if place.name == NEWEST and not place.exists():
        place = _last_built(place.parent, option)
    try:
        found = _found(place, option)
    except ToolchainError as error:
        raise NoToolchain(str(error)) from None
    write_memo(_memo(found.label), str(place.absolute()))
    remarks = found.toolchain.remarks if found.toolchain is not None else ()
    commit = f", commit {found.revision[:10]}" if found.revision else ""
    on_install("; ".join((f"{place} is {found.label}{commit}", *remarks)))
    return found.label


def revision_of(place: Path) -> str:
    """The commit of which a toolchain in a place says that it is; "": it says none, or it is none."""
    try:
        return _found(place, "").revision
    except ToolchainError:
        return ""


def in_public(word: str) -> str:
    """A word for a side or toolchain, with its label in place of a folder."""
    try:
        place = place_named(word) if kind_named(word) is not None else None
        return word if place is None else f"iree=={own_named(place, lambda _: None)}"
    except (OSError, ToolchainError):  # no name of a file, or nothing that works is built there
        return word


def own_toolchain(label: str) -> Toolchain | None:
    """The toolchain of a label, where that is a build or an environment; None of wheels, which are installed first."""
    return _still(label).toolchain


def own_toolchains() -> Iterable[Toolchain]:
    """The builds and environments that this machine's cache knows and that are still what they were."""
    for memo in _memo("any").parent.glob("*.json"):
        with contextlib.suppress(ToolchainError):
            if (toolchain := own_toolchain(memo.stem)) is not None:
                yield toolchain


def packages_of(label: str) -> tuple[str, ...]:
    """What pip installs for a label of wheels."""
    return _still(label).packages


def _memo(label: str) -> Path:
    return cache_root() / "toolchains" / "own" / f"{label}.json"


@dataclass(frozen=True, kw_only=True)
class _Found:
    """A toolchain in a place."""

    label: str
    revision: str = ""
    toolchain: Toolchain | None = None  # None of wheels, which are installed first
    packages: tuple[str, ...] = ()  # Of wheels


def _still(label: str) -> _Found:
    """What a label stands for, as long as it is what it was."""
    kept = read_memo(_memo(label))
    if not isinstance(kept, str):
        raise ToolchainError(f"{label}: this machine's cache does not know where it lies; give its folder")
    place = Path(kept)
    if not _kinds(place):
        raise ToolchainError(f"{label}: {place.name} holds no toolchain any more; give another folder")
    found = _found(place, "--toolchain")
    if found.label != label:
        raise ToolchainError(f"{label}: {place.name} was built again since, and is {found.label} now; give its folder")
    return found


def _found(place: Path, option: str) -> _Found:
    kinds = _kinds(place)
    if len(kinds) > 1:
        raise ToolchainError(f"{option} {place}: holds {' and '.join(kinds)}; move the wheels to a folder of their own")
    if (environment := _environment_of(place)) is not None:
        return _environment(environment)
    if kinds:
        return _wheels(place) if kinds == ["wheels"] else _build(place)
    if not place.exists():
        raise ToolchainError(f"{option} {place}: is no version, and there is no such folder; correct it")
    has = ", ".join(sorted(file.name for file in place.iterdir())[:5]) if place.is_dir() else "a file"
    raise ToolchainError(
        f"{option} {place}: holds no toolchain ({has or 'nothing'}); give a build folder of IREE, an environment with "
        "IREE, or a folder with a pair of wheels"
    )


def _toolchains_in(folder: Path) -> list[Path]:
    return [place for place in (folder, *sorted(folder.glob("*"))) if _kinds(place)]


def _last_built(folder: Path, option: str) -> Path:
    if not (places := _toolchains_in(folder)):
        raise ToolchainError(f"{option} {folder / NEWEST}: {folder} has no toolchain in it; give the folder of builds")
    return max(places, key=_built_ns)


def _built_ns(place: Path) -> int:
    files = [_program(place, _COMPILER), *place.glob(f"{WHEELS[0]}-*.whl")]
    return max((file.stat().st_mtime_ns for file in files if file is not None), default=place.stat().st_mtime_ns)


def _label(version: str, place: Path, digest: str) -> str:
    folder = place.resolve()
    while folder.name in (_COMPILER, "tools", "bin"):
        folder = folder.parent
    name = re.sub(r"[^a-z0-9]+", ".", folder.name.lower())[:_MOST_LETTERS].strip(".") or "build"
    return str(Version(f"{Version(version).public}{_MARK}{name}.{digest[:_DIGITS]}"))


# --- an environment of the user's ---


def _environment(place: Path) -> _Found:
    pair = find_in_environment(place, advice=f"make {place} again with a pair of IREE, or give another folder")
    digest = hashlib.sha256(f"{pair.compiler_sha256} {pair.runtime_sha256}".encode()).hexdigest()
    label = _label(pair.version, place, digest)
    return _Found(label=label, revision=pair.revision, toolchain=replace(pair, version=label))


# --- a build folder of IREE, or an installed one ---


def _program(place: Path, name: str) -> Path | None:
    """A program that a user names by itself, by its folder, or by a build folder."""
    if place.name == name and place.is_file():
        return place
    return next((place / below / name for below in _BELOW if (place / below / name).is_file()), None)


def _build(place: Path) -> _Found:
    compiler = _program(place.absolute(), _COMPILER)
    assert compiler is not None  # noqa: S101 (else it is of another kind)
    said = _what_it_says(compiler)
    stated = _STATED.search(said)
    version = _version_or(stated["version"] if stated is not None else "", _UNSTATED)
    release = _nearest(version, place)
    compiler = compiler.resolve() if compiler.resolve().name == _COMPILER else compiler  # else a link hides a rebuild
    tools = compiler.parent
    libraries = (file for folder in (tools, tools.parent / "lib") for file in folder.glob("*IREECompiler.*"))
    sha256 = digest_of([compiler, *sorted(file for file in libraries if file.is_file())])
    bindings = {name: _bindings(tools.parent, name) for name in _BINDINGS}
    runtime_tools = tools if all((tools / name).is_file() for name in _RUNTIME) else release.runtime_tools
    parts = sorted((bindings["runtime"] / "iree").rglob("*.so")) if bindings["runtime"] is not None else []
    own_runtime_sha256 = digest_of(parts) if parts else ""
    remarks = [_SLOW] if _SLOW_BUILD.search(said) else []
    if bindings["runtime"] is None:
        _require_that_it_loads(place, compiler, sha256, release)
        remarks.append(f"measured through the runtime of {release.version}")
    # Of its own parts alone: which releases are installed makes no other build of it.
    label = _label(version, place, hashlib.sha256(f"{sha256} {own_runtime_sha256}".encode()).hexdigest())
    toolchain = replace(
        release,
        version=label,
        revision=(stated["revision"] or "") if stated is not None else "",
        compiler_sha256=sha256,
        compiler_tools=tools,
        runtime_tools=runtime_tools,
        runtime_sha256=own_runtime_sha256 or release.runtime_sha256,
        python=_python_with([folder for folder in bindings.values() if folder is not None], release),
        remarks=tuple(remarks),
    )
    return _Found(label=label, revision=toolchain.revision, toolchain=toolchain)


def _what_it_says(compiler: Path) -> str:
    """What a compiler says of itself."""
    try:
        finished = run([str(compiler), "--version"], limits=_LIMITS)
    except OSError as error:
        raise ToolchainError(f"{compiler}: cannot be started ({error.strerror}); build it again") from None
    if not finished.ok:
        raise ToolchainError(f"{compiler}: {finished.how_it_ended(_LIMITS)}; build it again")
    return finished.stdout


def _version_or(text: str, other: str) -> str:
    try:
        return str(Version(text))
    except InvalidVersion:  # of a build that was told none
        return other


def _nearest(version: str, place: Path) -> Toolchain:
    """The installed release whose version is nearest to a build's: Python and what runs under it are that one's."""
    here = [find_in_environment(found.folder) for found in installed_environments(environments_root())]
    with contextlib.suppress(ToolchainError):
        here.append(find_toolchain())
    releases = sorted((one for one in here if not is_own(one.version)), key=lambda one: Version(one.version))
    if not releases:
        raise ToolchainError(f"{place}: runs under a release's Python, and none is here; give --toolchain newest once")
    before = [one for one in releases if Version(one.version).release <= Version(version).release]
    return before[-1] if before else releases[-1 if version == _UNSTATED else 0]


def _bindings(build: Path, name: str) -> Path | None:
    found = (build / below for below in _BINDINGS[name])
    return next((folder for folder in found if (folder / "iree" / name).is_dir()), None)


def _require_that_it_loads(place: Path, compiler: Path, sha256: str, release: Toolchain) -> None:
    """Refuse a compiler whose modules the release's runtime does not load."""
    memo = cache_root() / "toolchains" / f"loads-{sha256[:16]}-{release.version}.json"
    if read_memo(memo) is True:
        return
    with tempfile.TemporaryDirectory(prefix="toolchain-") as folder:
        model, module = Path(folder, "program.mlir"), Path(folder, "module.vmfb")
        model.write_text(_PROGRAM)
        compiled = run([str(compiler), str(model), "-o", str(module), *_TARGET], limits=_LIMITS)
        if not compiled.ok:
            raise ToolchainError(f"{compiler}: compiles no program ({compiled.how_it_ended(_LIMITS)}); build it again")
        if not run([*release.python_command, "-c", _CALL, str(module)], limits=_LIMITS).ok:
            raise ToolchainError(
                f"{place}: has no Python runtime, and the one of IREE {release.version} does not load its modules; "
                f"{_NEEDS_BINDINGS}"
            )
    write_memo(memo, True)


def _python_with(packages: Sequence[Path], release: Toolchain) -> Path:
    """A program that starts the release's Python where it finds these packages first."""
    if not packages:
        return release.python
    # -I, which an environment's Python is started with, overlooks PYTHONPATH, and the build's packages come first.
    path = os.pathsep.join(map(str, packages))
    lines = [
        "#!/bin/sh",
        'while [ "$1" = "-I" ]; do shift; done',
        f'PYTHONPATH={shlex.quote(path)} PYTHONNOUSERSITE=1 exec {shlex.quote(str(release.python))} "$@"',
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


# --- a pair of wheels ---


def _wheels(place: Path) -> _Found:
    compiler, runtime = (_wheel(place, name) for name in WHEELS)
    versions = [str(parse_wheel_filename(wheel.name)[1]) for wheel in (compiler, runtime)]
    if versions[0] != versions[1]:
        raise ToolchainError(f"{place}: {compiler.name} and {runtime.name} are of two versions; give a pair of one")
    read = [_read(wheel) for wheel in (compiler, runtime)]
    digest = hashlib.sha256("\n".join(line for lines, _ in read for line in lines).encode())
    label, revision = _label(versions[0], place, digest.hexdigest()), read[0][1]
    packages = f"{compiler.absolute()}[onnx]", str(runtime.absolute())
    return _Found(label=label, revision=revision, packages=packages)


def _wheel(place: Path, name: str) -> Path:
    """The wheel of a package that fits this Python."""
    wheels, fitting = sorted(place.glob(f"{name}-*.whl")), frozenset(sys_tags())
    try:
        here = [wheel for wheel in wheels if fitting & parse_wheel_filename(wheel.name)[3]]
    except InvalidWheelFilename as error:
        raise ToolchainError(f"{place}: {error}; give it the name that it was built with") from None
    if len(here) == 1:
        return here[0]
    if here:
        raise ToolchainError(f"{place}: has {' and '.join(wheel.name for wheel in here)}; put each pair into a folder")
    python = ".".join(map(str, sys.version_info[:2]))
    why = f"is not for Python {python} on this machine" if wheels else "is not there"
    raise ToolchainError(f"{place}: {wheels[0].name if wheels else f'{name}-*.whl'} {why}; give a pair that is")


def _read(wheel: Path) -> tuple[list[str], str]:
    """What is in a wheel, without times: names, sizes and checksums of its files; and the commit of a compiler's."""
    try:
        with zipfile.ZipFile(wheel) as archive:
            lines = sorted(f"{entry.filename} {entry.file_size} {entry.CRC:08x}" for entry in archive.infolist())
            return lines, revision_in(zipfile.Path(archive, "iree/compiler/version.py"))
    except (OSError, *DAMAGED) as error:
        raise ToolchainError(f"{wheel}: cannot be read ({error}); build it again") from None
