"""Compile times: two command lines of a scripted iree-compile, one generation at a time."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from harness.compare.compile_time import CompileSampler
from harness.compare.modules import Module
from harness.errors import CaseError
from harness.measure import LoadableModule
from harness.process import Limits
from harness.toolchain import Toolchain
from tests.compare.runs import a_build, a_case
from tests.fakes.fake_toolchain import calls, make_fake_toolchain

CASE = a_case()


@pytest.fixture
def toolchain(tmp_path: Path) -> Toolchain:
    return make_fake_toolchain(tmp_path / "tools")


def a_module(toolchain: Toolchain, folder: Path, *flags: str) -> Module:
    mlir = folder / "net.mlir"
    mlir.write_text("func.func @main()")
    command = ("iree-compile", "model.mlir", "-o", "module.vmfb", *flags)
    loadable = LoadableModule(
        name=CASE.name,
        module=Path("module.vmfb"),
        function="main",
        arguments=(),
        parameters={},
        run_flags=(),
        toolchain=toolchain,
    )
    return Module(files=(), case=CASE, loadable=loadable, mlir=mlir, build=a_build(CASE, command=command))


def a_sampler(base: Module, head: Module, seconds: float = 60) -> CompileSampler:
    return CompileSampler(base=base, head=head, cpus=None, limits=Limits(seconds=seconds))


def test_both_sides_are_compiled_anew_in_every_generation_and_take_turns_to_be_first(
    toolchain: Toolchain, tmp_path: Path
) -> None:
    base, head = (a_module(toolchain, tmp_path, f"--fake-code={side}") for side in ("base", "head"))
    sampler = a_sampler(base, head)
    for number in range(3):
        generation = sampler.sample(number)
        assert generation.rounds == 1
        assert generation.base and generation.head
        assert generation.log_ratio == math.log(generation.head / generation.base)
        assert generation.seconds == (generation.base + generation.head) / 1e9
    started = [call.arguments for call in calls(toolchain, "iree-compile")]
    assert [arguments[-1].removeprefix("--fake-code=") for arguments in started] == [
        *("base", "head"),
        *("head", "base"),
        *("base", "head"),
    ]
    assert {arguments[:-1] for arguments in started} == {("model.mlir", "-o", "module.vmfb")}


def test_each_side_has_the_compiler_of_its_own_toolchain(toolchain: Toolchain, tmp_path: Path) -> None:
    other = make_fake_toolchain(tmp_path / "other tools")
    a_sampler(a_module(toolchain, tmp_path), a_module(other, tmp_path)).sample(0)
    assert [len(calls(one, "iree-compile")) for one in (toolchain, other)] == [1, 1]


@pytest.mark.parametrize(
    ("flag", "ending"),
    [("--fake-exit=3", "exited with status 3"), ("--fake-signal=ABRT", "SIGABRT"), ("--fake-sleep=60", "2 s")],
)
def test_a_compile_that_fails_now_fails_the_row(toolchain: Toolchain, tmp_path: Path, flag: str, ending: str) -> None:
    head = a_module(toolchain, tmp_path, "--fake-stderr=last words", flag)
    with pytest.raises(CaseError) as caught:
        a_sampler(a_module(toolchain, tmp_path), head, seconds=2).sample(0)
    assert caught.value.stage == "compile"
    assert str(caught.value).startswith("the head's iree-compile ")
    assert ending in str(caught.value)
    assert caught.value.stderr.strip() == "last words"


def test_a_compiler_that_is_gone(toolchain: Toolchain, tmp_path: Path) -> None:
    broken = make_fake_toolchain(tmp_path / "broken", missing=["iree-compile"])
    with pytest.raises(CaseError, match=r"^iree-compile cannot be started \(No such file or directory\)$"):
        a_sampler(a_module(broken, tmp_path), a_module(toolchain, tmp_path)).sample(0)
