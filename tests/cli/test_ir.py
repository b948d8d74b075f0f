"""What `harness ir` refuses before it compiles anything."""

from __future__ import annotations

from typing import Literal

import pytest

from harness.cli.inspect import ir
from harness.errors import ExitCode, UsageError
from harness.metrics import PHASES
from harness.stages.options import IrOptions

Format = Literal["terminal", "markdown", "mlir", "json"]
ONE = "--format mlir prints one phase; say which with --phase"
TABLE = "--ops chooses what the table shows; leave it out with --format "


@pytest.mark.parametrize(
    ("output_format", "phases", "ops", "sentence"),
    [
        ("mlir", (), (), ONE),
        ("mlir", ("flow", "stream"), (), ONE),
        ("mlir", ("flow", "flow"), (), "gone.toml: there is no such file; check the path"),
        ("mlir", ("flow",), ("linalg.*",), f"{TABLE}mlir"),
        ("json", (), ("linalg.*",), f"{TABLE}json"),
        ("markdown", (), (), "gone.toml: there is no such file; check the path"),
        (
            "terminal",
            (),
            ("linalg.*", "hosts:linalg.*"),
            "there is no place 'hosts', as in 'hosts:linalg.*'; write host:... or executables:...",
        ),
        ("terminal", ("flow", "flows"), (), f"there is no phase 'flows'; name one of {', '.join(PHASES)}"),
    ],
)
def test_what_is_refused(output_format: Format, phases: tuple[str, ...], ops: tuple[str, ...], sentence: str) -> None:
    with pytest.raises(UsageError) as caught:
        ir(IrOptions(("gone.toml", "a/b@c"), phases=phases, ops=ops, format=output_format))
    assert (caught.value.exit_code, str(caught.value)) == (ExitCode.USAGE, sentence)
