"""What `host` means to a compiler."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from harness.errors import ToolchainError
from harness.machine.identity import machine_class, processor_identity
from harness.toolchain import Toolchain
from harness.toolchain.host_cpu import TargetCpu, environment_here, host_target_cpu, target_cpu_in, without_host
from tests.fakes.fake_toolchain import calls, make_fake_toolchain

_EPYC = TargetCpu(name="znver3", features="+avx2,-avx512f")


def test_host_is_written_out_and_other_flags_stay() -> None:
    flags = ("--a", "--iree-llvmcpu-target-cpu=host", "--b=host", "--iree-llvmcpu-target-cpu-features=host", "--c")
    assert without_host(flags, _EPYC) == ("--a", *_EPYC.flags, "--b=host", "--c")
    generic = ("--iree-llvmcpu-target-cpu=generic", "--iree-llvmcpu-target-cpu-features=+avx2")
    assert without_host(generic, _EPYC) == generic


def test_the_target_is_read_out_of_ir() -> None:
    target = '#t = #hal.executable.target<"llvm-cpu", "elf", {cpu = "znver3", cpu_features = "+avx2,-avx512f", x = 1}>'
    assert target_cpu_in(target) == _EPYC
    assert target_cpu_in("module {}") is None


def test_a_compiler_that_does_not_say_is_named_and_asked_again(tmp_path: Path) -> None:
    silent = make_fake_toolchain(tmp_path, always={"iree-compile": ["--fake-stderr=no such flag", "--fake-exit=1"]})
    for _ in range(2):
        with pytest.raises(
            ToolchainError, match=r"iree-compile 0.0.0 does not say which CPU it compiles for \(no such"
        ):
            host_target_cpu(silent, "some CPU")
    assert len(calls(silent)) == 2


def test_the_compiler_is_asked_once(real_toolchain: Toolchain, tmp_path: Path) -> None:
    cpu = host_target_cpu(real_toolchain, "this CPU")
    assert cpu.name not in ("", "host", "generic")
    assert cpu.features.startswith(("+", "-"))
    gone = replace(real_toolchain, compiler_tools=tmp_path / "gone")
    assert host_target_cpu(gone, "this CPU") == cpu


def test_this_machines_class_has_the_compilers_name_for_its_processor(real_toolchain: Toolchain) -> None:
    here = environment_here()
    name = host_target_cpu(real_toolchain, processor_identity(here)).name
    assert here["cpu"]["llvm"] == name
    assert f"{name}, " in machine_class(here)
