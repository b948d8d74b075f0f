"""Getting the toolchains that a user asks for by version: each is installed once, into an environment of its own."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from packaging.version import InvalidVersion, Version

from harness.cache import held
from harness.errors import ToolchainError
from harness.process import Limits, run
from harness.toolchain.environments import environment_folder
from harness.toolchain.find import environment_python, find_in_environment, find_toolchain, pair_in_environment
from harness.toolchain.installer import choose_installer, why_it_failed
from harness.toolchain.newest import NEWEST, newest_release
from harness.toolchain.values import Toolchain

# 200 MB over a slow line; a start that takes minutes will not get better.
_INSTALL_LIMITS = Limits(seconds=3600)
_START_LIMITS = Limits(seconds=120)
_START = "import numpy, iree.runtime"
# Users set this one for their own shells; in an environment, pip refuses to go on with it.
_VARIABLES = {"PIP_USER": "0"}


def get_toolchains(
    versions: Sequence[str], *, root: Path, on_install: Callable[[str], None] = lambda _: None
) -> tuple[Toolchain, ...]:
    """The toolchains of these releases, in this order, each once; those that are not here are installed.

    Args:
        versions: As the user wrote them: `3.12.0`, `3.12`, `iree==3.12.0` or `newest`. () gives ().
        root: Folder of the environments.
        on_install: Told in a sentence before something takes long.

    Raises:
        ToolchainError: A version is none, or cannot be had here.
    """
    releases = dict.fromkeys(release_named(version, on_install) for version in versions)
    if not releases:
        return ()
    beside = _beside_the_harness()
    return tuple(
        beside
        if beside is not None and Version(beside.version) == Version(release)
        else install_toolchain(release, root=root, on_install=on_install)
        for release in releases
    )


def release_named(text: str, on_install: Callable[[str], None]) -> str:
    """The release that a user means, which may be the newest there is.

    Raises:
        ToolchainError: It is no version, or the package index cannot be asked.
    """
    if text.strip().removeprefix("iree==") != NEWEST:
        return parse_release(text)
    release = newest_release()
    on_install(f"The newest release of IREE is {release}")
    return release


def parse_release(text: str) -> str:
    """`iree==3.12` -> `3.12.0`: the release that a user means, with the three numbers that IREE's releases have.

    Raises:
        ToolchainError: It is no version.
    """
    number = text.strip().removeprefix("iree==")
    try:
        version = Version(number)
    except InvalidVersion:
        raise ToolchainError(
            f"--toolchain {text}: is no version; write the release, as in --toolchain 3.12.0"
        ) from None
    missing = 3 - len(version.release)
    epoch = f"{version.epoch}!" if version.epoch else ""
    rest = str(version).removeprefix(epoch)[len(".".join(map(str, version.release))) :]
    return epoch + ".".join(map(str, (*version.release, *[0] * missing))) + rest


def install_toolchain(release: str, *, root: Path, on_install: Callable[[str], None]) -> Toolchain:
    """The pair of a release from its environment, which is made first where it is not there; then it needs the network.

    An environment appears whole or not at all, also when two harnesses want it at once.

    Args:
        release: With three numbers.
        root: Folder of the environments.
        on_install: Told in a sentence before something takes long.

    Raises:
        ToolchainError: It cannot be had here.
    """
    folder = environment_folder(root, release)
    if found := _whole(folder):
        return found
    try:
        root.mkdir(parents=True, exist_ok=True)
        with held(root / f"{folder.name}.lock", lambda: on_install(f"Another harness installs IREE {release} ...")):
            if found := _whole(folder):
                return found
            on_install(f"Installing IREE {release} (some 200 MB) ...")
            for left in root.glob(f".making-{folder.name}-*"):
                shutil.rmtree(left, ignore_errors=True)
            _make(release, folder)
    except OSError as error:
        raise ToolchainError(
            f"{root}: cannot be written ({error.strerror}); make room or set HARNESS_CACHE to another folder"
        ) from None
    return find_in_environment(folder)


def _beside_the_harness() -> Toolchain | None:
    try:
        return find_toolchain()
    except ToolchainError:  # what was asked for by version does not need it
        return None


def _whole(folder: Path) -> Toolchain | None:
    try:
        return find_in_environment(folder)
    except ToolchainError:
        return None


def _make(release: str, folder: Path) -> None:
    """Make the environment beside its place and move it there; its Python finds its packages from wherever it lies."""
    installer = choose_installer()
    with tempfile.TemporaryDirectory(
        dir=folder.parent, prefix=f".making-{folder.name}-", ignore_cleanup_errors=True
    ) as scratch:
        made = Path(scratch) / "environment"
        for command in installer.commands(made, release):
            finished = run(command, cwd=Path(scratch), limits=_INSTALL_LIMITS, env=_VARIABLES)
            if not finished.ok:
                printed = f"{finished.stdout}\n{finished.stderr}"
                how = finished.how_it_ended(_INSTALL_LIMITS)
                raise ToolchainError(why_it_failed(release, printed, how, installer.by_hand(release)))
        _require_that_it_works(release, made)
        if folder.exists():  # one that `find_in_environment` refused
            shutil.rmtree(folder)
        made.replace(folder)


def _require_that_it_works(release: str, made: Path) -> None:
    """Refuse an environment in which a worker would not start."""
    version = pair_in_environment(made).version
    if Version(version) != Version(release):
        raise ToolchainError(f"the package index gave IREE {version} for {release}; give --toolchain {version}")
    started = run([str(environment_python(made)), "-I", "-c", _START], limits=_START_LIMITS)
    if not started.ok:
        last = next((line.strip() for line in reversed(started.stderr.splitlines()) if line.strip()), "")
        why = f": {last}" if last else ""
        raise ToolchainError(
            f"the runtime of IREE {release} does not start here (Python {started.how_it_ended(_START_LIMITS)}{why}); "
            "give another --toolchain"
        )
