"""The cache of builds: by content, whole or not there, shared between threads and processes."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from harness.compile import BuildCache, cache_key
from harness.records.run import Build
from harness.toolchain import Toolchain
from tests.compile.conftest import MakeRequest
from tests.fakes.fake_toolchain import calls, make_fake_toolchain

_FULL = Path("/dev/full")
_FOR_LONG = ("--fake-sleep=60",)


def test_a_second_compile_comes_from_the_cache(cache: BuildCache, make_request: MakeRequest, fake: Toolchain) -> None:
    first, printed = cache.compile(make_request("--fake-stderr=a remark"))
    again, silence = cache.compile(make_request("--fake-stderr=a remark", variant="same-flags"))
    assert len(calls(fake, "iree-compile")) == 1
    assert (first.cached, printed) == (False, "a remark\n")
    assert (again.cached, silence) == (True, "")
    assert again == replace(first, case="net/same-flags@cpu", cached=True)
    assert cache.module(again).is_file()


def test_another_cache_object_on_the_same_folder_finds_it(
    cache: BuildCache, make_request: MakeRequest, tmp_path: Path
) -> None:
    build, _ = cache.compile(make_request())
    assert BuildCache(tmp_path / "cache").find(build.cache_key, "any/name@here") == replace(
        build, case="any/name@here", cached=True
    )


def test_a_failed_build_is_never_cached(cache: BuildCache, make_request: MakeRequest, fake: Toolchain) -> None:
    request = make_request("--fake-exit=1")
    for _attempt in range(2):
        build, _ = cache.compile(request)
        assert build.failure is not None
        assert not cache.module(build).exists()
    assert cache.find(cache_key(request), "net/stock@cpu") is None
    assert len(calls(fake, "iree-compile")) == 2


@pytest.mark.parametrize("bytes_left", [0, 1, -1])
def test_a_module_that_was_cut_short_is_compiled_again(
    cache: BuildCache, make_request: MakeRequest, fake: Toolchain, bytes_left: int
) -> None:
    build, _ = cache.compile(make_request())
    module = cache.module(build)
    whole = module.read_bytes()
    module.write_bytes(whole[:bytes_left])
    again, _ = cache.compile(make_request())
    assert not again.cached
    assert module.read_bytes() == whole
    assert len(calls(fake, "iree-compile")) == 2


@pytest.mark.parametrize("text", ["", "{", "{}", '{"case": 1}'])
def test_facts_that_cannot_be_read_are_made_again(
    cache: BuildCache, make_request: MakeRequest, fake: Toolchain, text: str
) -> None:
    build, _ = cache.compile(make_request())
    (cache.module(build).parent / "build.json").write_text(text)
    again, _ = cache.compile(make_request())
    assert again.module_sha256 == build.module_sha256
    assert len(calls(fake, "iree-compile")) == 2


def test_what_lies_in_the_cache_for_people_to_look_at(cache: BuildCache, make_request: MakeRequest) -> None:
    build, _ = cache.compile(make_request("--fake-stderr=a remark"))
    folder = cache.module(build).parent
    assert sorted(path.name for path in folder.iterdir()) == [
        "build.json",
        "module.vmfb",
        "statistics.json",
        "stderr.txt",
    ]
    assert (folder / "stderr.txt").read_text() == "a remark\n"
    assert folder.stat().st_mode & 0o777 == 0o755


def test_nothing_is_left_in_the_scratch_folder(cache: BuildCache, make_request: MakeRequest, tmp_path: Path) -> None:
    cache.compile(make_request())
    cache.compile(make_request("--fake-exit=1"))
    assert list((tmp_path / "cache" / "scratch").iterdir()) == []


def test_two_threads_that_want_the_same_build_run_the_compiler_once(
    make_request: MakeRequest, fake: Toolchain, tmp_path: Path
) -> None:
    """As two harnesses that share a cache would: each has a BuildCache of its own."""
    request = make_request("--fake-sleep=0.2")
    together = threading.Barrier(2)

    def compile_it(_: object) -> tuple[bool, str | None]:
        together.wait()
        build, _ = BuildCache(tmp_path / "cache").compile(request)
        return build.cached, build.module_sha256

    with ThreadPoolExecutor(2) as pool:
        (first, sha256), (second, same) = pool.map(compile_it, range(2))
    assert len(calls(fake, "iree-compile")) == 1
    assert sorted([first, second]) == [False, True]
    assert sha256 == same


def test_sweeping_takes_what_was_left_a_day_ago(cache: BuildCache, make_request: MakeRequest, tmp_path: Path) -> None:
    build, _ = cache.compile(make_request())
    scratch = tmp_path / "cache" / "scratch"
    old, new = scratch / "old", scratch / "new"
    for folder in (old, new):
        folder.mkdir()
        (folder / "module.vmfb").write_bytes(b"half of it")
    os.utime(old, (0, 0))
    cache.sweep()
    assert list(scratch.iterdir()) == [new]
    assert cache.find(build.cache_key, build.case)


def test_sweeping_a_cache_that_is_not_there_does_nothing(cache: BuildCache) -> None:
    cache.sweep()


def test_a_cache_that_cannot_be_written_raises(make_request: MakeRequest, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(OSError, match="Not a directory"):
        BuildCache(tmp_path / "file" / "cache").compile(make_request())


@pytest.mark.skipif(not _FULL.exists(), reason="needs a device that is always full")
def test_a_disk_that_fills_up_leaves_no_half_build(
    cache: BuildCache, make_request: MakeRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    request = make_request("--fake-stderr=a remark")
    with monkeypatch.context() as full:
        full.setattr("harness.compile.build._STDERR_FILE", str(_FULL))
        with pytest.raises(OSError, match="No space left"):
            cache.compile(request)
    assert list(cache.module(Build(case="", command=(), cache_key=cache_key(request))).parents[1].iterdir()) == []
    build, _ = cache.compile(request)
    assert (build.failure, build.cached) == (None, False)


_COMPILE_PICKLED = """
import pickle, sys
from pathlib import Path
from harness.compile import BuildCache

BuildCache(Path(sys.argv[1])).compile(pickle.loads(Path(sys.argv[2]).read_bytes()))
"""


def test_a_harness_that_is_killed_while_it_compiles_leaves_a_cache_that_works(
    cache: BuildCache, make_request: MakeRequest, fake: Toolchain, tmp_path: Path
) -> None:
    request = make_request(toolchain=make_fake_toolchain(fake.compiler_tools, always={"iree-compile": _FOR_LONG}))
    (tmp_path / "request").write_bytes(pickle.dumps(request))
    killed = subprocess.Popen(
        [sys.executable, "-c", _COMPILE_PICKLED, str(tmp_path / "cache"), str(tmp_path / "request")]
    )
    while not calls(fake):
        assert killed.poll() is None
        time.sleep(0.02)
    killed.kill()
    killed.wait()
    os.kill(calls(fake)[0].pid, signal.SIGKILL)
    assert cache.find(cache_key(request), "net/stock@cpu") is None

    make_fake_toolchain(fake.compiler_tools)
    build, _ = cache.compile(request)
    assert (build.failure, build.cached) == (None, False)
