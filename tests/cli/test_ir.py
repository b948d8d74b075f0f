"""What `harness ir` refuses before it compiles anything."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import pytest

from harness.cli.inspect import IrOptions, ir
from harness.errors import ExitCode, UsageError

Format = Literal["terminal", "mlir", "json"]


def refusal(output_format: Format, *phases: str, ops: tuple[str, ...] = ()) -> str:
    """The sentence; a suite that is not there would be another."""
    with pytest.raises(UsageError) as caught:
        ir(IrOptions(Path("gone.toml"), "a/b@c", phases=phases, ops=ops, format=output_format))
    assert caught.value.exit_code == ExitCode.USAGE
    return str(caught.value)


@pytest.mark.parametrize("phases", [(), ("flow", "stream")])
def test_the_ir_itself_is_that_of_one_phase(phases: tuple[str, ...]) -> None:
    assert refusal("mlir", *phases) == "--format mlir prints one phase; say which with --phase"


def test_a_phase_that_is_named_twice_is_one(tmp_path: Path) -> None:
    assert refusal("mlir", "flow", "flow") == "gone.toml: there is no such file; check the path"


@pytest.mark.parametrize("output_format", ["mlir", "json"])
def test_ops_are_chosen_for_the_table_alone(output_format: Format) -> None:
    assert refusal(output_format, "flow", ops=("linalg.*",)) == (
        f"--ops chooses what the table shows; leave it out with --format {output_format}"
    )


def test_a_place_that_there_is_not() -> None:
    assert refusal("terminal", ops=("linalg.*", "hosts:linalg.*")) == (
        "there is no place 'hosts', as in 'hosts:linalg.*'; write host:... or executables:..."
    )


def test_a_phase_that_there_is_not() -> None:
    assert refusal("terminal", "flow", "flows").startswith("there is no phase 'flows'; name one of start, input, ")
