"""Getting the toolchains that a user asks for: which releases there are, and an environment for each, by pip."""

import re
import shlex
import shutil
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from packaging.version import InvalidVersion, Version

from harness.cache import environments_root, held
from harness.errors import ToolchainError
from harness.process import Limits, run
from harness.text import plural, shown
from harness.toolchain.fetched import fetched_named, is_fetched, trim_wheels
from harness.toolchain.find import (
    COMPILER_PACKAGE,
    LABEL_FILE,
    RUNTIME_PACKAGE,
    Toolchain,
    being_made,
    environment_folder,
    environment_python,
    find_in_environment,
    find_toolchain,
)
from harness.toolchain.own import NEWEST, is_own, own_named, own_toolchain, packages_of, place_named

# Between the two ends of a range, as in `3.0.0..3.13.0`.
RANGE = ".."

DISK_FULL = re.compile(r"No space left on device|os error 28\b|Errno 28\b|not enough space on the disk|quota exceeded")
_UNREACHABLE = re.compile(
    r"Could not fetch URL \S+ (?:connection error|There was a problem)|connection broken by|tim(?:ed|e) ?out"
    r"|name resolution|Name or service not known|ProxyError|SSLError",
    re.IGNORECASE,
)
_LIMITS = Limits(seconds=120)
_AVAILABLE = re.compile(r"^Available versions: (?P<versions>.+)$", re.MULTILINE)


def trouble_in(printed: str) -> str | None:
    """What is wrong by what pip printed, and what to do, as a phrase; None where it is something else."""
    if DISK_FULL.search(printed):
        return "the disk of the cache or of the temporary folder is full; set HARNESS_CACHE or TMPDIR to another disk"
    if _UNREACHABLE.search(printed):
        return "the package index cannot be reached; connect to it once"
    return None


def is_range(text: str) -> bool:
    """Whether a user means all releases between two, and no folder such as `../build`."""
    return RANGE in text and not is_fetched(text) and place_named(text.strip()) is None


def releases_named(texts: Sequence[str], on_install: Callable[[str], None], *, pre: bool = False) -> tuple[str, ...]:
    """The releases of `3.12`, `iree==3.12.0`, `newest`, `3.0.0..3.13.0` or `3.0.0..newest`, each once, in order."""
    found: list[str] = []
    for text in texts:
        if not is_range(text):
            found.append(release_named(text, on_install))
            continue
        first, _, last = text.strip().removeprefix("iree==").partition(RANGE)
        if not first or not last:
            raise ToolchainError(f"--toolchain {shown(text)}: a range has two ends, as in 3.0.0..3.13.0")
        ends = release_named(first, on_install), release_named(last, on_install)
        between = releases_between(*ends, pre=pre)
        if not between:
            raise ToolchainError(
                f"--toolchain {shown(text)}: the package index has no release of that range; correct it"
            )
        on_install(f"{text} is {plural(len(between), 'release')}: {', '.join(between)}")
        found += between
    return tuple(dict.fromkeys(found))


def release_named(text: str, on_install: Callable[[str], None], option: str = "--toolchain") -> str:
    """The release that a user means with that option, which may be the newest there is; of a folder, its label."""
    if is_fetched(text):
        return fetched_named(text, on_install, option)
    if (place := place_named(text.strip())) is not None:
        return own_named(place, on_install, option)
    if text.strip().removeprefix("iree==") != NEWEST:
        return parse_release(text, option)
    release = newest_release(option)
    on_install(f"The newest release of IREE is {release}")
    return release


def parse_release(text: str, option: str = "--toolchain") -> str:
    """`iree==3.12` -> `3.12.0`: the release that a user means, with the three numbers that IREE's releases have."""
    number = text.strip().removeprefix("iree==")
    try:
        version = Version(number)
    except InvalidVersion:
        how = f"write the release, as in {option} 3.12.0, or what CI built, as in {option} pr:24701"
        raise ToolchainError(f"{option} {text}: is no version; {how}") from None
    return written(version)


def written(version: Version) -> str:
    """A version with the three numbers that IREE's releases have: `3.12` -> `3.12.0`."""
    numbers = ".".join(map(str, version.release))
    return f"{numbers}{'.0' * (3 - len(version.release))}{str(version)[len(numbers) :]}"


def newest_release(option: str = "--toolchain") -> str:
    """The newest release that both halves of the pair have, as pip's own settings see it."""
    return str(max(_pairs(f"{option} {NEWEST}", "give a version")))


def releases_between(first: str, last: str, *, pre: bool = False) -> tuple[str, ...]:
    """The releases that both halves of the pair have, from either end to the other, both included, the oldest first."""
    low, high = sorted((Version(first), Version(last)))
    pairs = _pairs(f"the releases from {low} to {high}", "name each of them", pre=pre)
    return tuple(written(version) for version in sorted(pairs) if low <= version <= high)


def _pairs(what: str, instead: str, *, pre: bool = False) -> set[Version]:
    """All releases of which the index has both halves."""
    both = _versions(COMPILER_PACKAGE, what, instead, pre) & _versions(RUNTIME_PACKAGE, what, instead, pre)
    if not both:
        raise ToolchainError(
            f"{what}: no release has both {COMPILER_PACKAGE} and {RUNTIME_PACKAGE} for this Python; {instead}"
        )
    return both


def _versions(package: str, what: str, instead: str, pre: bool) -> set[Version]:
    """All releases of a package that fit this Python and this system."""
    options = ["-vv", "--no-input", *(["--pre"] if pre else [])]
    finished = run([sys.executable, "-I", "-m", "pip", "index", "versions", *options, package], limits=_LIMITS)
    listed = _AVAILABLE.search(finished.stdout)
    if not finished.ok or listed is None:
        see = f"pip cannot say which releases {package} has; see what `pip index versions {package}` says"
        raise ToolchainError(f"{what}: {trouble_in(finished.stdout + finished.stderr) or see}, or {instead}")
    versions = set()
    for text in listed["versions"].split(","):
        try:
            versions.add(Version(text.strip()))
        except InvalidVersion:  # of an index with files of old
            continue
    return versions


_HAS = re.compile(r"Could not find a version that satisfies .*\(from versions: (?!none)(?P<releases>[^)]+)\)")
_SHOWN_RELEASES = 5


def commands_for(folder: Path, release: str) -> tuple[tuple[str, ...], ...]:
    """The command lines that make an environment with a release's pair, to be run one after the other."""
    install = ("-I", "-m", "pip", "install", "-vv", "--no-input", "--only-binary", ":all:")
    return (
        (sys.executable, "-I", "-m", "venv", str(folder)),
        # With -vv, pip says which files it passed over and why.
        (str(environment_python(folder)), *install, *_packages(release)),
    )


def _packages(release: str) -> tuple[str, ...]:
    """What an environment gets: the pair, the importer's packages, and what the worker needs."""
    if is_own(release):
        return (*packages_of(release), "numpy")
    return (f"{COMPILER_PACKAGE}[onnx]=={release}", f"{RUNTIME_PACKAGE}=={release}", "numpy")


def why_it_failed(release: str, printed: str, how_it_ended: str) -> str:
    """One sentence about an installation that failed."""
    if trouble := trouble_in(printed):
        return f"IREE {release} (about 700 MB) is not in the cache, and {trouble}"
    if listed := _HAS.search(printed):
        releases = ", ".join(listed["releases"].split(", ")[-_SHOWN_RELEASES:])
        return (
            f"the package index has no IREE {release} for this Python; give a release that it has, such as {releases}"
        )
    by_hand = f"pip install {shlex.join(_packages(release))}"
    return f"IREE {release} cannot be installed (pip {how_it_ended}); see what `{by_hand}` says"


# 200 MB over a slow line; a start that takes minutes will not get better.
_INSTALL_LIMITS = Limits(seconds=3600)
_START_LIMITS = Limits(seconds=120)
_START = "import numpy, iree.runtime"
# Users set this one for their own shells; in an environment, pip refuses to go on with it.
_VARIABLES = {"PIP_USER": "0"}


def toolchain_named(release: str | None, on_install: Callable[[str], None]) -> Toolchain:
    """The toolchain of a release, installed where it is not here; of None the one that is."""
    if release is None:
        return find_toolchain()
    (found,) = get_toolchains([release], root=environments_root(), on_install=on_install)
    return found


def get_toolchains(
    versions: Sequence[str], *, root: Path, on_install: Callable[[str], None] = lambda _: None
) -> tuple[Toolchain, ...]:
    """The toolchains of these releases, in this order, each once; those that are not here are installed."""
    releases = dict.fromkeys(release_named(version, on_install) for version in versions)
    if not releases:
        return ()
    own = _or_none(find_toolchain)  # releases in environments do not need the harness's own
    return tuple(
        own
        if own is not None and Version(own.version) == Version(release)
        else install_toolchain(release, root=root, on_install=on_install)
        for release in releases
    )


def install_toolchain(release: str, *, root: Path, on_install: Callable[[str], None]) -> Toolchain:
    """The pair of a release, with three numbers, from its environment; the first use makes it and needs the network.

    Of a label of somebody's own, see harness.toolchain.own: the build or the environment itself, or one of its wheels.
    """
    folder = environment_folder(root, release)
    if toolchain := _or_none(lambda: find_in_environment(folder)):
        if is_own(release):
            (folder / LABEL_FILE).touch()  # which is used now
        return toolchain
    if is_own(release) and (own := own_toolchain(release)) is not None:
        return own
    try:
        root.mkdir(parents=True, exist_ok=True)
        with held(root / f"{folder.name}.lock", lambda: on_install(f"Another harness installs IREE {release} ...")):
            if toolchain := _or_none(lambda: find_in_environment(folder)):
                return toolchain
            on_install(f"Installing IREE {release} (some 200 MB) ...")
            _make(release, folder)
            if is_own(release):
                trim_wheels()
    except OSError as error:
        raise ToolchainError(
            f"{root}: cannot be written ({error.strerror}); make room or set HARNESS_CACHE to another folder"
        ) from None
    return find_in_environment(folder)


def _or_none(find: Callable[[], Toolchain]) -> Toolchain | None:
    try:
        return find()
    except ToolchainError:
        return None


def _make(release: str, folder: Path) -> None:
    """Make the environment; nobody takes it for one before it is whole and works."""
    being_made(folder).touch()
    try:
        shutil.rmtree(folder, ignore_errors=True)
        for command in commands_for(folder, release):
            finished = run(command, cwd=folder.parent, limits=_INSTALL_LIMITS, env=_VARIABLES)
            if not finished.ok:
                printed = f"{finished.stdout}\n{finished.stderr}"
                how = finished.how_it_ended(_INSTALL_LIMITS)
                raise ToolchainError(why_it_failed(release, printed, how))
        if is_own(release):
            (folder / LABEL_FILE).write_text(release)
        _require_that_it_works(release, folder)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    finally:
        being_made(folder).unlink(missing_ok=True)


def _require_that_it_works(release: str, made: Path) -> None:
    """Refuse an environment in which a worker would not start."""
    version = find_in_environment(made, unfinished=True).version
    if Version(version) != Version(release):
        raise ToolchainError(f"the package index gave IREE {version} for {release}; give --toolchain {version}")
    started = run([str(environment_python(made)), "-I", "-c", _START], limits=_START_LIMITS)
    if not started.ok:
        last = next((line.strip() for line in reversed(started.stderr.splitlines()) if line.strip()), "")
        why = f": {last}" if last else ""
        raise ToolchainError(
            f"the runtime of IREE {release} does not start here (Python {started.how_it_ended(_START_LIMITS)}{why}); "
            "give another release"
        )
