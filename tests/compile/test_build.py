"""Builds: by content, whole or not there, shared between threads and processes, and compiled many at once."""

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.compile import BuildCache, CompileRequest, Underway, cache_key, compile_cases
from harness.plugins import Applied, ExecutablePlugin, Rewrite, written_file
from harness.plugins.chain import arrange
from harness.process import Limits
from harness.records.run import Build, Failure
from tests.builders import a_plugin, applied, flag_plugin
from tests.compile.conftest import FakeCompiler, a_request


def test_a_second_compile_comes_from_the_cache(fake: FakeCompiler) -> None:
    first, printed = fake.compile("--fake-stderr=a remark")
    again, nothing = BuildCache(fake.folder / "cache").compile(fake.request("--fake-stderr=a remark", variant="same"))
    assert fake.compiles == 1
    assert (first.cached, printed, nothing) == (False, "a remark\n", "")
    assert again == replace(first, case="net/same@cpu", cached=True)
    folder = fake.cache.module(again).parent
    assert {file.name for file in folder.iterdir()} == {"build.json", "module.vmfb", "statistics.txt", "stderr.txt"}
    assert (folder / "stderr.txt").read_text() == "a remark\n"
    assert folder.stat().st_mode & 0o777 == 0o755


def test_a_failed_build_is_never_cached(fake: FakeCompiler) -> None:
    for attempt in (1, 2):
        build, _ = fake.compile("--fake-exit=1")
        assert build.failure is not None
        assert fake.compiles == attempt
    assert list((fake.folder / "cache/scratch").iterdir()) == []


@pytest.mark.parametrize(("name", "damaged"), [("module.vmfb", None), ("build.json", b""), ("build.json", b"{}")])
def test_a_build_that_is_not_whole_is_compiled_again(fake: FakeCompiler, name: str, damaged: bytes | None) -> None:
    build, _ = fake.compile()
    module = fake.cache.module(build).read_bytes()
    file = fake.cache.module(build).parent / name
    file.write_bytes(file.read_bytes()[:-1] if damaged is None else damaged)
    again, _ = fake.compile()
    assert (again.cached, fake.compiles) == (False, 2)
    assert fake.cache.module(again).read_bytes() == module


def test_two_harnesses_that_want_the_same_build_run_the_compiler_once(fake: FakeCompiler) -> None:
    request, together = fake.request("--fake-sleep=0.2"), threading.Barrier(2)

    def compile_it(_: object) -> Build:
        together.wait()
        return BuildCache(fake.folder / "cache").compile(request)[0]

    with ThreadPoolExecutor(2) as pool:
        first, second = pool.map(compile_it, range(2))
    assert (fake.compiles, {first.cached, second.cached}) == (1, {False, True})
    assert first.module_sha256 == second.module_sha256


def test_each_distinct_case_is_compiled_once_and_the_others_go_on_when_one_fails(fake: FakeCompiler) -> None:
    requests = [
        fake.request(device="sync"),
        fake.request(device="task"),  # two devices, one module
        fake.request("--iree-llvmcpu-target-cpu=x", variant="inert"),
        fake.request("--fake-signal=ABRT", variant="crash"),
        fake.request("--fake-signal=ABRT", variant="crash", device="task"),
        fake.request("--fake-code=z", variant="last"),
    ]
    items = [item for item in compile_cases(requests, fake.cache, 1) if not isinstance(item, Underway)]
    builds = {build.case: build for build, _ in items}
    assert sorted(build.case for build, _ in items) == sorted(request.case.name for request in requests)
    assert fake.compiles == 4
    assert [name for name, build in builds.items() if build.failure] == ["net/crash@cpu", "net/crash@task"]
    names = ("net/stock@sync", "net/stock@task", "net/inert@cpu", "net/last@cpu")
    stock, task, inert, last = (builds[name] for name in names)
    assert stock.cache_key == task.cache_key != inert.cache_key
    assert stock.module_sha256 == task.module_sha256 == inert.module_sha256 != last.module_sha256


def test_builds_come_as_they_end_and_between_them_what_is_being_compiled(fake: FakeCompiler) -> None:
    slow, quick = fake.request("--fake-sleep=1.5", variant="slow"), fake.request("--fake-stderr=done", variant="quick")
    items = list(compile_cases([slow, quick], fake.cache, 2))
    builds = [(item[0].case, item[1]) for item in items if not isinstance(item, Underway)]
    assert builds == [("net/quick@cpu", "done\n"), ("net/slow@cpu", "")]
    assert Underway(cases=("net/slow@cpu",)) in items


def test_what_is_refused_is_not_compiled_but_is_taken_from_the_cache(fake: FakeCompiler) -> None:
    requests = [fake.request(variant="stock"), fake.request("--fake-code=z", variant="last")]
    fake.cache.compile(requests[0])
    no, ended = Failure(stage="compile", message="no"), list[tuple[str, Failure | None]]()
    on_end = lambda case, failure: ended.append((case.name, failure))  # noqa: E731
    items = list(compile_cases(requests, fake.cache, 1, lambda _: no, on_end))
    builds = {item[0].case: item[0].failure for item in items if not isinstance(item, Underway)}
    assert builds == {"net/stock@cpu": None, "net/last@cpu": no}
    assert (fake.compiles, ended) == (1, [("net/stock@cpu", None)])


def rewriting(function: str = "times", phase: str = "input", **options: Any) -> CompileRequest:
    plugin = applied(a_plugin("p", Rewrite(function=f"rewrites:{function}", phase=phase, arguments=options)))
    return replace(BASE, plugins=(plugin,), arranged=arrange((plugin,), (), ""))


def linking(text: str) -> CompileRequest:
    return with_plugins(applied(a_plugin("link", ExecutablePlugin(file=written_file("x.so", text)))))


def with_plugins(*plugins: Applied) -> CompileRequest:
    return replace(BASE, plugins=plugins)


FOLD, PAD = (applied(flag_plugin(name)) for name in ("fold", "pad"))
BASE = a_request("--a", "--b=1")
HOST, ELSEWHERE = a_request("--iree-llvmcpu-target-cpu=host"), "another processor"
REWRITING = rewriting()
DECIDES = {
    "a flag's value": (BASE, a_request("--a", "--b=2")),
    "the model": (BASE, replace(BASE, model_sha256="bb" * 32)),
    "the entry function": (BASE, replace(BASE, function="other")),
    "the binary": (BASE, replace(BASE, toolchain=replace(BASE.toolchain, compiler_sha256="dd" * 32))),
    "a plugin": (BASE, with_plugins(FOLD)),
    "a plugin's version": (with_plugins(FOLD), with_plugins(applied(flag_plugin("fold", version="2")))),
    "a plugin's options": (with_plugins(FOLD), with_plugins(replace(FOLD, options={"deep": True}))),
    "a plugin's sources": (with_plugins(FOLD), with_plugins(replace(FOLD, sources_sha256="ee" * 32))),
    "the bytes of a plugin's file": (linking("one"), linking("two")),
    "a rewrite": (REWRITING, rewriting("plus")),
    "a rewrite's options": (REWRITING, rewriting(factor=3.0)),
    "the machine that rewrites": (REWRITING, replace(REWRITING, host_cpu=ELSEWHERE)),
    "the machine, for =host": (HOST, replace(HOST, host_cpu=ELSEWHERE)),
}


@pytest.mark.parametrize("what", DECIDES)
def test_what_decides_the_code_changes_the_key(what: str) -> None:
    first, second = DECIDES[what]
    assert cache_key(first) != cache_key(second)


SAME = {
    "the name": replace(BASE, case=replace(BASE.case, name="other/name@here", device="here")),
    "flags of the runtime": replace(BASE, case=replace(BASE.case, run_flags=("--x=1",))),
    "the limits": replace(BASE, limits=Limits(seconds=1)),
    "where a build lies": replace(BASE, toolchain=replace(BASE.toolchain, version=f"{BASE.toolchain.version}+local.x")),
    "where the model lies": replace(BASE, model=Path("elsewhere")),
    "the machine, where no flag asks for it": replace(BASE, host_cpu=ELSEWHERE),
    "how a flag is written": a_request("--b=1", "-a=true"),
}


@pytest.mark.parametrize("what", SAME)
def test_what_does_not_decide_the_code_leaves_the_key(what: str) -> None:
    assert cache_key(SAME[what]) == cache_key(BASE)


def test_the_content_of_a_file_that_a_flag_names_counts(tmp_path: Path) -> None:
    spec = tmp_path / "spec.mlir"
    request = a_request(f"--iree-preprocessing-transform-spec-filename={spec}")
    spec.write_text("module {}")
    before = cache_key(request)
    spec.write_text("module { }")
    assert cache_key(request) != before
    assert cache_key(a_request(f"--x=/{'y' * 5000}")), "what is too long for a path names no file"
