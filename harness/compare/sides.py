"""What a user calls a side -> a run: a run directory, or a toolchain that a suite is compiled with now."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from harness.cache import environments_root
from harness.compare.pairs import Side, side_of
from harness.errors import RunError, UsageError
from harness.store.run_directory import load_run
from harness.toolchain import Toolchain, get_toolchains

PREFIX = "iree=="

RunSuite = Callable[[Path, Toolchain], Path]


def is_toolchain(side: str) -> bool:
    """Whether a side is a release of IREE, as in `iree==3.12.0`, and not a directory."""
    return side.startswith(PREFIX)


def require_two(sides: Sequence[str], toolchains: Sequence[str], within: Path | None) -> tuple[str, str]:
    """The two sides, from positional arguments and `--toolchain` options in this order; of `--within`, its run twice.

    Raises:
        UsageError: There are not exactly two.
    """
    given = [*sides, *(one if is_toolchain(one) else f"{PREFIX}{one}" for one in toolchains)]
    if within is not None:
        if given:
            raise UsageError(f"--within {within} compares the variants of that run; leave out {', '.join(given)}")
        return str(within), str(within)
    if len(given) != 2:
        raise UsageError(
            "give two sides, as in `harness compare results/base results/head`; each is a run directory or a "
            "toolchain such as iree==3.12.0; or --within with one run"
        )
    return given[0], given[1]


def suite_of(sides: Sequence[str], suite: Path | None) -> Path | None:
    """The suite that toolchain sides are compiled for: the one given, else that of the side that is a run.

    Raises:
        UsageError: A side is a toolchain, and no suite is known.
    """
    if suite is not None or not any(is_toolchain(side) for side in sides):
        return suite
    runs = [side for side in sides if not is_toolchain(side)]
    if not runs:
        raise UsageError("two toolchains are compared on a suite; give one with --suite, as in --suite suites/x.toml")
    return Path(load_run(Path(runs[0])).header.suite)


def resolve(
    sides: tuple[str, str], suite: Path | None, run_suite: RunSuite, on_install: Callable[[str], None]
) -> tuple[Side, Side]:
    """Both sides as runs; a toolchain's is made now: its modules are compiled and checked, and nothing is timed.

    Args:
        suite: For sides that are toolchains.
        run_suite: Makes such a run and gives its directory.
        on_install: Told before something takes long.

    Raises:
        HarnessError: A directory is no run, a toolchain cannot be had, or both sides are one run.
    """
    if not any(is_toolchain(side) for side in sides) and Path(sides[0]).resolve() == Path(sides[1]).resolve():
        raise UsageError(f"{sides[0]} is given twice; `harness compare --within {sides[0]}` compares its variants")
    releases = {
        side: get_toolchains([side], root=environments_root(), on_install=on_install)[0]
        for side in sides
        if is_toolchain(side)
    }
    runs = {side: load_run(Path(side), rounds=False) for side in sides if not is_toolchain(side)}
    for side, toolchain in releases.items():  # which takes long, and comes after all that may be wrong
        assert suite is not None  # noqa: S101 (suite_of has seen to it)
        runs[side] = load_run(run_suite(suite, toolchain))
    base, head = (side_of(runs[side], side, None if side in releases else Path(side)) for side in sides)
    return base, head


def toolchains_here(sides: Sequence[Side], on_install: Callable[[str], None]) -> Mapping[str, Toolchain]:
    """The toolchains of all cases of these sides, by release; installed where they are not here.

    Raises:
        ToolchainError: One cannot be had, or its compiler is another one than the run's.
    """
    from harness.compare.modules import require_same

    versions = list(dict.fromkeys(version for side in sides for version in side.toolchains))
    found = get_toolchains(versions, root=environments_root(), on_install=on_install)
    if len(found) < len(versions):
        raise RunError("a run names one release of IREE in two ways; make it again")
    here = dict(zip(versions, found, strict=True))
    for side in sides:  # both may be of one release, and of two builds of it
        for version, record in side.toolchains.items():
            require_same(here[version], record, side.label)
    return here
