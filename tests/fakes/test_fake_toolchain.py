"""The fake tools pass for IREE's where the harness asks them what they know."""

from __future__ import annotations

from pathlib import Path

from harness.process import run
from harness.toolchain import compiler_flags, runtime_flags
from tests.fakes.fake_toolchain import Call, calls, make_fake_toolchain


def test_their_flags_are_found_in_their_help(tmp_path: Path) -> None:
    fake = make_fake_toolchain(tmp_path)
    assert {"fake-exit", "iree-hal-target-device"} <= compiler_flags(fake)
    assert {"fake_exit", "fake_values"} <= runtime_flags(fake)


def test_flags_are_taken_with_dashes_and_with_underscores(tmp_path: Path) -> None:
    fake = make_fake_toolchain(tmp_path)
    for flag in ("--fake-exit=3", "--fake_exit=3"):
        assert run([str(fake.runtime_tool("iree-run-module")), flag]).returncode == 3


def test_calls_are_kept_in_order(tmp_path: Path) -> None:
    fake = make_fake_toolchain(tmp_path, always={"iree-run-module": ["--fake-stderr=hello"]})
    assert calls(fake) == []
    tool = str(fake.runtime_tool("iree-run-module"))
    assert run([tool, "--x=a b"]).stderr == "hello\n"
    run([tool])
    first, second = calls(fake, "iree-run-module")
    assert first == Call(tool="iree-run-module", arguments=("--x=a b",), pid=first.pid)
    assert (second.arguments, second.pid != first.pid) == ((), True)
    assert calls(fake, "iree-compile") == []
