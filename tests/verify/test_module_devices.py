"""Lists of devices against what modules were compiled for: as 3.13 writes it, and in real modules."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from harness.toolchain import Toolchain
from harness.verify.outputs import Place, misfit, module_devices

TARGET = '[#hal.executable.target<"llvm-cpu", "embedded-elf-x86_64", {ordinal = 7 : i64}>]'
SECOND = f'#hal.device.target<"local", {{ordinal = 1 : index}}, {TARGET}>'
FIRST = f'#hal.device.target<"local", {TARGET}>'
EITHER = f'#hal.device.select<[#hal.device.target<"vulkan", []> : !hal.device, {FIRST} : !hal.device]>'

A, B, C = Place("local", 0), Place("local", 1), Place("vulkan", 0)


def written(folder: Path, **devices: str) -> Path:
    file = folder / "module.vmfb"
    searches = [f"HAL device `{name}` not found or unavailable: {target}" for name, target in devices.items()]
    file.write_bytes(b"\x00VM" + b"\x00\x01".join(search.encode() for search in searches) + b"\x00code")
    return file


def test_a_module_says_what_it_was_compiled_for(tmp_path: Path) -> None:
    module = written(tmp_path, dev_a=FIRST, dev_b=SECOND, fast=EITHER)
    assert module_devices(module) == {"dev_a": (A,), "dev_b": (B,), "fast": (C, A)}


@pytest.mark.parametrize("content", [b"", b"no module at all", b"HAL device `x` not found"])
def test_what_says_nothing_has_no_devices(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "module.vmfb").write_bytes(content)
    assert module_devices(tmp_path / "module.vmfb") == {}
    assert misfit({}, ["local-sync", "local-sync"]) is None


def test_a_module_that_is_not_there_is_left_to_the_runtime(tmp_path: Path) -> None:
    assert module_devices(tmp_path / "gone.vmfb") == {}


@pytest.mark.parametrize(
    ("devices", "uris"),
    [
        ({"a": (A,)}, ["local-sync"]),
        ({"a": (A,)}, ["local-task://0"]),
        ({"a": (A,), "b": (B,)}, ["local-task", "local-sync"]),
        ({"a": (A,), "b": (C,)}, ["vulkan", "local-sync"]),
        ({"a": (C, A)}, ["local-sync"]),
        ({"a": (C, A)}, ["vulkan://GPU-6d65", "local-sync"]),
        ({"a": (A,), "b": (A, B)}, ["local-sync", "local-sync"]),
        ({"a": ()}, ["local-sync", "local-sync"]),
    ],
)
def test_devices_that_fit(devices: dict[str, tuple[Place, ...]], uris: list[str]) -> None:
    assert misfit(devices, uris) is None


def test_a_list_longer_than_the_program_is_told_with_the_one_that_would_be_idle() -> None:
    assert misfit({"a": (A,), "b": (A,)}, ["local-sync", "local-task"]) == (
        "nothing of the program is for local-task (local[1]), one of 2 devices in uri, since it was compiled for "
        "a = local[0], b = local[0]; shorten uri, or name it in --iree-hal-target-device"
    )


def test_a_list_shorter_than_the_program_is_told_with_the_one_that_is_missing() -> None:
    assert misfit({"a": (A,), "b": (C, B)}, ["local-sync"]) == (
        "the program needs a device b (vulkan[0] or local[1]), and uri has none; add one to uri"
    )


PROGRAM = """
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %a = arith.addf %x, %x : tensor<4xf32>
  %b = flow.tensor.transfer %a : tensor<4xf32> to #hal.device.promise<@dev_b>
  %c = arith.mulf %b, %b : tensor<4xf32>
  %d = flow.tensor.transfer %c : tensor<4xf32> to #hal.device.promise<@dev_a>
  return %d : tensor<4xf32>
}
"""


@pytest.mark.parametrize(
    ("second", "expected"),
    [
        ("local[1]", {"dev_a": (A,), "dev_b": (B,)}),
        ("local", {"dev_a": (A,), "dev_b": (A,)}),
        ("local[1],local[0]", {"dev_a": (A,), "dev_b": (B, A)}),
    ],
)
def test_real_modules_say_it_so(
    real_toolchain: Toolchain, tmp_path: Path, second: str, expected: dict[str, tuple[Place, ...]]
) -> None:
    (tmp_path / "model.mlir").write_text(PROGRAM)
    command = [
        str(real_toolchain.iree_compile),
        "model.mlir",
        "-o",
        "module.vmfb",
        "--iree-hal-target-device=dev_a=local[0]",
        f"--iree-hal-target-device=dev_b={second}",
        "--iree-hal-local-target-device-backends=llvm-cpu",
        "--iree-llvmcpu-target-cpu=host",
    ]
    subprocess.run(command, cwd=tmp_path, check=True)
    assert module_devices(tmp_path / "module.vmfb") == expected
