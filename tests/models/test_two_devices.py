"""Programs for two devices: what they say about devices, and that all kinds compute the same."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from harness import process
from harness.errors import SuiteError
from harness.models import check_params, find_builder, load_argument
from harness.models.inputs import write_arguments
from harness.models.two_devices import BUILDER, Parameters, build
from harness.toolchain import Toolchain
from harness.verify.outputs import run_command, run_once

Array = NDArray[Any]

LIMITS = process.Limits(seconds=120)
SMALL: dict[str, Any] = {"layers": 4, "width": 8, "rows": 4}
ONE = ("local-sync",)
TWO = ("local-sync", "local-task")


def text_of(**params: Any) -> str:
    text = build(Parameters(**{**SMALL, **params})).text
    assert isinstance(text, str)
    return text


def moves(text: str) -> list[str]:
    """Where the products run and tensors go, in order: * for a product, a or b for a device."""
    found = re.findall(r"linalg\.matmul|flow\.tensor\.transfer.*<@dev_(\w)>", text)
    return [name or "*" for name in found]


@pytest.mark.parametrize(
    ("params", "expected"),
    [
        ({"kind": "whole"}, "****"),
        ({"kind": "pipeline"}, "**b**a"),
        ({"kind": "transfers"}, "*b*a*b*a"),
        ({"kind": "transfers", "layers": 3}, "*b*a*"),
        ({"kind": "pipeline", "layers": 3}, "**b*a"),
        ({"kind": "pipeline", "layers": 1}, "*"),
        ({"kind": "pipeline", "batches": 2}, "**b**a**b**a"),
    ],
)
def test_layers_go_where_the_kind_says(params: dict[str, Any], expected: str) -> None:
    assert "".join(moves(text_of(**params))) == expected


def test_a_whole_program_does_not_speak_of_devices() -> None:
    assert "dev_" not in text_of(kind="whole", batches=3)


@pytest.mark.parametrize("batches", [1, 3])
def test_the_rows_of_all_parts_are_the_input(batches: int) -> None:
    model = build(Parameters(**SMALL, batches=batches))
    assert [argument.shape for argument in model.inputs] == [(4 * batches, 8)]


def test_equal_parameters_give_equal_bytes_and_the_seed_counts() -> None:
    assert text_of() == text_of()
    assert text_of() != text_of(seed=1)


def test_it_is_registered() -> None:
    assert find_builder("two-devices") is BUILDER
    with pytest.raises(SuiteError, match="kind"):
        check_params(BUILDER, {"kind": "three"})


def run_it(folder: Path, toolchain: Toolchain, uris: tuple[str, ...], **params: Any) -> tuple[Array, Array]:
    """The input, and what the program makes of it on these devices."""
    folder.mkdir()
    model = build(Parameters(**{**SMALL, **params}))
    (argument,) = write_arguments(model.inputs, folder)
    folder = argument.file.parent
    (folder / "model.mlir").write_text(str(model.text))
    flags = [f"--iree-hal-target-device=dev_{name}=local[{index}]" for index, name in enumerate("ab")]
    command = [str(toolchain.iree_compile), *flags[: len(uris)], "model.mlir", "-o", "module.vmfb"]
    command += ["--iree-hal-local-target-device-backends=llvm-cpu", "--iree-llvmcpu-target-cpu=host"]
    compiled = process.run(command, cwd=folder, limits=LIMITS)
    assert compiled.ok, compiled.stderr
    once = run_command(
        function="main",
        inputs=[argument.flag],
        parameters=[],
        uri=uris[0],
        more_uris=uris[1:],
        run_flags=[],
        outputs=1,
    )
    (output,) = run_once(toolchain, once, folder, limits=LIMITS, cpus=None)
    return load_argument(argument), output


def test_all_kinds_compute_the_same_on_one_device_and_on_two(real_toolchain: Toolchain, tmp_path: Path) -> None:
    x, whole = run_it(tmp_path / "whole", real_toolchain, ONE, kind="whole", batches=2)
    assert whole.shape == x.shape
    assert np.count_nonzero(whole) > whole.size // 4
    for kind in ("pipeline", "transfers"):
        same, output = run_it(tmp_path / kind, real_toolchain, TWO, kind=kind, batches=2)
        np.testing.assert_array_equal(same, x)
        np.testing.assert_allclose(output, whole, rtol=1e-5, atol=1e-6)
