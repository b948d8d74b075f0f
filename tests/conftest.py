"""What tests of several rooms share: the installed toolchain, a cache of the tests' own, and the need for Vulkan."""

import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import TypeAlias

import hypothesis
import pytest
from filelock import FileLock

from harness.process import Limits, run
from harness.toolchain import Toolchain, find_toolchain
from harness.toolchain.devices import probe_driver
from harness.verify import outputs
from tests.builders import CPU_FLAGS

hypothesis.settings.register_profile("without-deadlines", deadline=None)  # no test is about its own speed
hypothesis.settings.load_profile("without-deadlines")

# What takes many seconds below tests/: whole commands, live hosts, searches, large programs. `make test` leaves it out.
_SLOW = (
    "end_to_end/",
    "fleet/test_live.py",
    "stages/test_tuning.py",
    "workflows/test_pull_request.py",
)

ROOT = Path(__file__).parents[1]
# Rooms whose code decides what lies in the harness's cache.
_MAKERS = ("compile", "ir", "machine", "measure", "models", "peers", "plugins", "rewrites", "stages", "suite", "verify")

MadeOnce: TypeAlias = Callable[[str, Callable[[Path], object]], Path]
Compile: TypeAlias = Callable[..., Path]


def pytest_configure(config: pytest.Config) -> None:
    """Who only lists tests uses no snapshot, which is no failure."""
    if config.option.collectonly:
        config.option.warn_unused_snapshots = True


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what is slow."""
    here = Path(__file__).parent
    for item in items:
        if item.path.relative_to(here).as_posix().startswith(_SLOW):
            item.add_marker("slow")


@pytest.fixture(scope="session")
def _shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of the session, which all its processes have."""
    own = tmp_path_factory.getbasetemp()
    return own.parent if "PYTEST_XDIST_WORKER" in os.environ else own


@pytest.fixture(scope="session")
def made_once(_shared: Path) -> MadeOnce:
    """Fill a folder of this name once for all processes of a session, and give it; tests only read it."""

    def once(name: str, fill: Callable[[Path], object]) -> Path:
        folder, whole = _shared / name, _shared / f"{name}.whole"
        with FileLock(_shared / f"{name}.lock"):
            if not whole.exists():
                folder.mkdir()
                fill(folder)
                whole.touch()
        return folder

    return once


def _cache_of_this_code(config: pytest.Config) -> Path | None:
    """A folder of pytest's own cache for what this code compiles and computes; what other code made there goes."""
    if getattr(config, "cache", None) is None:
        return None
    digest = hashlib.sha256()
    for file in sorted(file for room in _MAKERS for file in (ROOT / "harness" / room).rglob("*.py")):
        digest.update(file.read_bytes())
    folder = config.cache.mkdir(f"harness-{digest.hexdigest()[:16]}")
    for other in folder.parent.glob("harness-*"):
        if other != folder:
            shutil.rmtree(other, ignore_errors=True)
    return folder


@pytest.fixture(scope="session", autouse=True)
def _own_cache(
    request: pytest.FixtureRequest, _shared: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[None]:
    """Keep the user's cache out of the tests, and the tests out of the user's cache.

    All processes of a session share one, and the next session finds it again, so that nothing is compiled twice; tests
    of a cold cache take one of their own. They share no temporary files: harnesses of one user find there who measures,
    and wait for each other.
    """
    temporary = str(tmp_path_factory.mktemp("tmp"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HARNESS_CACHE", str(_cache_of_this_code(request.config) or _shared / "cache"))
        patch.setenv("TMPDIR", temporary)
        patch.setattr(tempfile, "tempdir", temporary)
        yield


@pytest.fixture(scope="session", autouse=True)
def _short_benchmarks() -> Iterator[None]:
    """Let iree-benchmark-module call for hundredths of a second: no test is about its figures."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(outputs, "MIN_TIME_S", 0.01)
        yield


@pytest.fixture(scope="session")
def real_toolchain(_own_cache: None) -> Toolchain:
    """The pair that is installed beside the harness."""
    return find_toolchain()


@pytest.fixture(scope="session")
def compile_text(real_toolchain: Toolchain, tmp_path_factory: pytest.TempPathFactory) -> Compile:
    """Compile a program to module.vmfb in a folder; the folder, which is the same for the same program and flags."""
    folders: dict[tuple[str, ...], Path] = {}

    def compile_it(text: str, *flags: str) -> Path:
        key = (text, *flags)
        if key not in folders:
            folder = folders[key] = tmp_path_factory.mktemp("compiled")
            (folder / "model.mlir").write_text(text)
            command = [str(real_toolchain.iree_compile), "model.mlir", "-o", "module.vmfb", *(flags or CPU_FLAGS)]
            finished = run(command, cwd=folder, limits=Limits(seconds=120))
            assert finished.ok, finished.stderr[:2000]
        return folders[key]

    return compile_it


@cache
def _vulkan_is_missing_because() -> str | None:
    return probe_driver(find_toolchain(), "vulkan", limits=Limits(seconds=60)).reason


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip tests that need Vulkan where there is none; where CI says that there must be one, fail them."""
    if item.get_closest_marker("vulkan") is None or (reason := _vulkan_is_missing_because()) is None:
        return
    if os.environ.get("HARNESS_REQUIRE_VULKAN"):
        pytest.fail(f"HARNESS_REQUIRE_VULKAN is set, and there is {reason}")
    pytest.skip(f"{reason}; `make vulkan` installs a software driver")
