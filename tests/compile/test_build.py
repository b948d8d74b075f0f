"""One compile: what is kept of a success, and what counts as a failure."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from harness.compile import BuildCache
from harness.compile.request import compile_command
from harness.process import Limits
from harness.records.run import Build, Failure
from harness.toolchain import Toolchain
from tests.compile.conftest import MakeRequest
from tests.fakes.fake_toolchain import calls, make_fake_toolchain

UNREGISTERED = (
    "MLIR Textual PassPipeline Parser:1:1: error: 'bogus' does not refer to a registered pass or pass pipeline"
)
UNBALANCED = "ERROR: mismatched parenthesis in pass pipeline `builtin.module(bogus`"


def failure_of(build: Build) -> Failure:
    """The failure, after a look that nothing else is claimed of the build."""
    assert build.failure is not None
    assert build.failure.stage == "compile"
    assert "\n" not in build.failure.message
    assert (build.module_sha256, build.sizes, build.statistics, build.outputs) == (None, None, None, None)
    return build.failure


def test_a_build_keeps_what_a_report_needs(cache: BuildCache, make_request: MakeRequest) -> None:
    request = make_request("--fake-exports=main:3", "--fake-stderr=model.mlir:1:1: warning: a generic CPU")
    build, stderr = cache.compile(request)
    assert build.failure is None
    assert build.case == "net/stock@cpu"
    assert build.outputs == 3
    assert build.warnings == ("a generic CPU",)
    assert stderr == "model.mlir:1:1: warning: a generic CPU\n"
    assert build.compile_ns is not None
    assert build.compile_ns > 0
    assert build.statistics is not None
    assert (build.statistics.dispatches, build.statistics.copies) == (3, 2)
    assert build.sizes is not None
    assert build.sizes.module_bytes == cache.module(build).stat().st_size
    assert list(build.sizes.dispatch_bytes) == ["main_dispatch_0.so"]
    assert len(build.module_sha256 or "") == 64


def test_a_build_keeps_the_compilers_peak_memory(cache: BuildCache, make_request: MakeRequest) -> None:
    limits = Limits(memory_bytes=1 << 30)
    build, _ = cache.compile(make_request("--fake-allocate=100", "--fake-sleep=0.3", limits=limits))
    assert build.peak_rss_bytes is not None
    assert 100 << 20 <= build.peak_rss_bytes < 1 << 30


def test_the_recorded_command_is_the_one_that_ran(
    cache: BuildCache, make_request: MakeRequest, fake: Toolchain
) -> None:
    build, _ = cache.compile(make_request("--fake-code=a", "--fake-code=b"))
    (ran,) = calls(fake, "iree-compile")
    assert build.command == ("iree-compile", *ran.arguments)
    assert build.command[:6] == ("iree-compile", "model.mlir", "-o", "module.vmfb", "--fake-code=a", "--fake-code=b")
    assert compile_command(()) == (*build.command[:4], *build.command[6:])


@pytest.mark.parametrize("line", [UNREGISTERED, UNBALANCED])
def test_an_error_that_is_only_printed_is_a_failure(cache: BuildCache, make_request: MakeRequest, line: str) -> None:
    build, stderr = cache.compile(make_request(f"--fake-stderr={line}"))
    failure = failure_of(build)
    assert failure.message.startswith("iree-compile printed an error, though it exited with status 0: ")
    assert failure.message.endswith(line.split("rror: ")[-1].removeprefix("ERROR: "))
    assert failure.stderr == line
    assert stderr == f"{line}\n"


def test_a_failed_compile_says_the_first_error(cache: BuildCache, make_request: MakeRequest) -> None:
    flags = ("--fake-exit=1", "--fake-stderr=model.mlir:3:5: warning: odd", "--fake-stderr=model.mlir:9:1: error: bad")
    build, _ = cache.compile(make_request(*flags))
    assert failure_of(build).message == "iree-compile exited with status 1: bad"
    assert build.compile_ns is not None


def test_a_failed_compile_without_an_error_line_says_its_first_line(
    cache: BuildCache, make_request: MakeRequest
) -> None:
    build, _ = cache.compile(
        make_request("--fake-exit=1", "--fake-stderr=Unknown argument", "--fake-stderr=See --help")
    )
    assert failure_of(build).message == "iree-compile exited with status 1: Unknown argument"


def test_only_the_last_lines_of_stderr_are_kept_in_a_failure(cache: BuildCache, make_request: MakeRequest) -> None:
    flags = [f"--fake-stderr=line {number}" for number in range(100)]
    build, stderr = cache.compile(make_request("--fake-exit=1", *flags))
    assert failure_of(build).stderr.splitlines() == [f"line {number}" for number in range(80, 100)]
    assert len(stderr.splitlines()) == 100


@pytest.mark.parametrize("name", ["ABRT", "SEGV", "KILL"])
def test_a_crash_names_its_signal(cache: BuildCache, make_request: MakeRequest, name: str) -> None:
    build, _ = cache.compile(make_request(f"--fake-signal={name}"))
    assert failure_of(build).message.startswith(f"iree-compile was ended by SIG{name}")


def test_a_crash_says_why_before_it_dumps_its_stack(cache: BuildCache, make_request: MakeRequest) -> None:
    lines = (
        "Please report issues to https://example.org and include the crash backtrace.",
        "Stack dump:",
        "Default target backend not registered: llvm-cpu,vmvx",
        " #0 0x00007f54e8d5a0ab PrintStackTrace",
    )
    build, _ = cache.compile(make_request("--fake-signal=SEGV", *(f"--fake-stderr={line}" for line in lines)))
    failure = failure_of(build)
    assert failure.message == f"iree-compile was ended by SIGSEGV: {lines[2]}"
    assert failure.stderr.splitlines() == list(lines)


def test_a_compile_that_takes_too_long_is_stopped(
    cache: BuildCache, make_request: MakeRequest, fake: Toolchain
) -> None:
    request = make_request("--fake-sleep=60", "--fake-stderr=so far", limits=Limits(seconds=0.3))
    build, _ = cache.compile(request)
    failure = failure_of(build)
    assert failure.message == "iree-compile ran past its limit of 0.3 s; give it more with --compile-timeout"
    assert failure.stderr == "so far"
    (ran,) = calls(fake, "iree-compile")
    with pytest.raises(ProcessLookupError):
        os.kill(ran.pid, 0)


def test_a_compile_that_takes_too_much_memory_is_stopped(cache: BuildCache, make_request: MakeRequest) -> None:
    limits = Limits(seconds=60, memory_bytes=1 << 27)
    build, _ = cache.compile(make_request("--fake-allocate=200", "--fake-sleep=60", limits=limits))
    message = failure_of(build).message
    assert message.startswith("iree-compile used more than its limit of 0.1")
    assert message.endswith(" GiB of memory; give it more with --compile-memory")


def test_a_compile_that_writes_nothing_is_a_failure(cache: BuildCache, make_request: MakeRequest) -> None:
    build, _ = cache.compile(make_request("--fake-no-output"))
    assert failure_of(build).message == (
        "iree-compile exited with status 0, but wrote no module; run its command line by hand"
    )


def test_an_entry_function_that_is_not_there_is_named(cache: BuildCache, make_request: MakeRequest) -> None:
    build, _ = cache.compile(make_request("--fake-exports=run:1,init:0", function="main"))
    assert failure_of(build).message == "the module exports no function 'main'; name one that it exports: init, run"


@pytest.mark.parametrize("tool", ["iree-compile", "iree-dump-module"])
def test_a_missing_tool_is_a_failure_of_the_case(
    cache: BuildCache, make_request: MakeRequest, tmp_path: Path, tool: str
) -> None:
    broken = make_fake_toolchain(tmp_path / "broken", missing=[tool])
    build, _ = cache.compile(make_request(toolchain=broken))
    assert failure_of(build).message == (
        f"{tool} cannot be started (No such file or directory); reinstall the toolchain"
    )


def test_a_module_that_cannot_be_read_back_is_a_failure(
    cache: BuildCache, make_request: MakeRequest, tmp_path: Path
) -> None:
    status = "c/runtime/src/iree/vm/bytecode/archive.c:106: INVALID_ARGUMENT; FlatBuffer data is not present"
    always = {"iree-dump-module": ["--fake-exit=1", f"--fake-stderr={status}"]}
    build, _ = cache.compile(make_request(toolchain=make_fake_toolchain(tmp_path / "broken", always=always)))
    assert failure_of(build).message == (
        "iree-dump-module cannot read the compiled module: it exited with status 1: "
        "INVALID_ARGUMENT; FlatBuffer data is not present"
    )
