"""A real compiled module for the worker, made once."""

import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from harness.measure.session import LoadableModule
from harness.toolchain import Toolchain
from tests.builders import CPU_FLAGS, a_loadable
from tests.programs import program

_KIND = "tensor<32x32xf32>"
_ON_TWO_DEVICES = program(f"""
main a:32x32 b:32x32
c = addf a b
d:32x32 = | flow.tensor.transfer %c : {_KIND} to #hal.device.promise<@dev_b>
e = mulf d d
f:32x32 = | flow.tensor.transfer %e : {_KIND} to #hal.device.promise<@dev_a>
return f
""")
_MATMUL = program("main a:32x32 b:32x32\ne = empty 32x32\nz = fill zero e\nc = matmul a b z\nreturn c")


@pytest.fixture(scope="session")
def matmul(real_toolchain: Toolchain, tmp_path_factory: pytest.TempPathFactory) -> LoadableModule:
    """A 32x32 matmul for local devices; a call takes some microseconds."""
    return _compiled("matmul", _MATMUL, ["local"], tmp_path_factory.mktemp("matmul"), real_toolchain)


@pytest.fixture(scope="session")
def on_two_devices(real_toolchain: Toolchain, tmp_path_factory: pytest.TempPathFactory) -> LoadableModule:
    """A sum on a first local device, and its square on a second."""
    folder, devices = tmp_path_factory.mktemp("on-two"), ["dev_a=local[0]", "dev_b=local[1]"]
    return _compiled("on-two", _ON_TWO_DEVICES, devices, folder, real_toolchain)


@pytest.fixture(scope="session")
def on_numbers(real_toolchain: Toolchain, tmp_path_factory: pytest.TempPathFactory) -> LoadableModule:
    """f32 2.5 and i32 3, by value, which it gives back."""
    text = "func.func @main(%x: f32, %n: i32) -> (i32, f32) { return %n, %x : i32, f32 }"
    folder = tmp_path_factory.mktemp("numbers")
    module = _compiled("numbers", text, ["local"], folder, real_toolchain)
    np.save(folder / "x.npy", np.float32(2.5))
    np.save(folder / "n.npy", np.int32(3))
    return replace(module, arguments=tuple({"file": str(folder / name), "scalar": True} for name in ("x.npy", "n.npy")))


def _compiled(name: str, text: str, devices: list[str], folder: Path, real_toolchain: Toolchain) -> LoadableModule:
    (folder / "model.mlir").write_text(text)
    np.save(folder / "input.npy", np.eye(32, dtype=np.float32))
    targets = (f"--iree-hal-target-device={device}" for device in devices)
    command = [str(real_toolchain.iree_compile), "model.mlir", "-o", "module.vmfb", *targets, *CPU_FLAGS[1:]]
    subprocess.run(command, cwd=folder, check=True)
    return a_loadable(
        name, real_toolchain, module=folder / "module.vmfb", arguments=({"file": str(folder / "input.npy")},) * 2
    )
