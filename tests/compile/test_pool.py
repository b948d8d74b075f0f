"""Compiling many cases at once: each distinct one once, and every case gets its own build."""

from __future__ import annotations

from collections.abc import Sequence

from harness.compile import BuildCache, CompileRequest, Underway, compile_cases
from harness.records.run import Build
from harness.toolchain import Toolchain
from tests.compile.conftest import MakeRequest
from tests.fakes.fake_toolchain import calls


def compile_all(requests: Sequence[CompileRequest], cache: BuildCache, jobs: int = 2) -> dict[str, Build]:
    """All builds by case name, after a look that each case has one."""
    builds = [item[0] for item in compile_cases(requests, cache, jobs) if not isinstance(item, Underway)]
    assert sorted(build.case for build in builds) == sorted(request.case.name for request in requests)
    return {build.case: build for build in builds}


def test_cases_with_equal_flags_share_one_compile(
    cache: BuildCache, make_request: MakeRequest, fake: Toolchain
) -> None:
    """As `local-sync` and `local-task` do: two devices, one module."""
    builds = compile_all([make_request(device="sync"), make_request(device="task")], cache)
    assert len(calls(fake, "iree-compile")) == 1
    assert builds["net/stock@sync"].module_sha256 == builds["net/stock@task"].module_sha256


def test_each_distinct_case_is_compiled_once(cache: BuildCache, make_request: MakeRequest, fake: Toolchain) -> None:
    requests = [make_request(f"--fake-code={name}", variant=name) for name in "abcde"]
    builds = compile_all(requests, cache)
    assert len(calls(fake, "iree-compile")) == 5
    assert len({build.module_sha256 for build in builds.values()}) == 5


def test_different_flags_that_give_the_same_code_give_the_same_module(
    cache: BuildCache, make_request: MakeRequest, fake: Toolchain
) -> None:
    requests = [make_request(variant="stock"), make_request("--iree-llvmcpu-target-cpu=x", variant="inert")]
    builds = compile_all(requests, cache)
    assert len(calls(fake, "iree-compile")) == 2
    assert builds["net/stock@cpu"].cache_key != builds["net/inert@cpu"].cache_key
    assert builds["net/stock@cpu"].module_sha256 == builds["net/inert@cpu"].module_sha256


def test_the_others_go_on_when_one_fails(cache: BuildCache, make_request: MakeRequest) -> None:
    requests = [
        make_request(variant="stock"),
        make_request("--fake-signal=ABRT", variant="crash"),
        make_request("--fake-exit=1", "--fake-stderr=x: error: no", variant="refused"),
        make_request("--fake-code=z", variant="last"),
    ]
    builds = compile_all(requests, cache, jobs=1)
    said = {name: build.failure.message if build.failure else "ok" for name, build in builds.items()}
    assert said == {
        "net/stock@cpu": "ok",
        "net/crash@cpu": "iree-compile was ended by SIGABRT",
        "net/refused@cpu": "iree-compile exited with status 1: no",
        "net/last@cpu": "ok",
    }


def test_cases_that_share_a_failed_compile_all_fail(
    cache: BuildCache, make_request: MakeRequest, fake: Toolchain
) -> None:
    requests = [make_request("--fake-exit=1", device=device) for device in ("sync", "task")]
    assert all(build.failure for build in compile_all(requests, cache).values())
    assert len(calls(fake, "iree-compile")) == 1


def test_builds_come_as_they_end_with_what_was_printed(cache: BuildCache, make_request: MakeRequest) -> None:
    slow = make_request("--fake-sleep=0.5", variant="slow")
    quick = make_request("--fake-stderr=done", variant="quick")
    items = [item for item in compile_cases([slow, quick], cache, 2) if not isinstance(item, Underway)]
    assert [(build.case, printed) for build, printed in items] == [("net/quick@cpu", "done\n"), ("net/slow@cpu", "")]


def test_between_builds_it_is_told_what_is_being_compiled(cache: BuildCache, make_request: MakeRequest) -> None:
    requests = [make_request(f"--fake-code={name}", "--fake-sleep=0.6", variant=name) for name in "ab"]
    told = [item.cases for item in compile_cases(requests, cache, 1) if isinstance(item, Underway)]
    assert all(len(names) <= 1 for names in told)
    assert {name for names in told for name in names} == {"net/a@cpu", "net/b@cpu"}


def test_nothing_to_compile_is_no_error(cache: BuildCache) -> None:
    assert list(compile_cases([], cache, 2)) == []


def test_an_interrupted_pool_starts_no_more_compiles(
    cache: BuildCache, make_request: MakeRequest, fake: Toolchain
) -> None:
    requests = [make_request(f"--fake-code={name}", "--fake-sleep=0.1", variant=name) for name in "abcdefgh"]
    compiling = compile_cases(requests, cache, 1)
    next(compiling)
    del compiling
    assert len(calls(fake, "iree-compile")) < len(requests)
