"""IR as text for people: whole, and without its weights."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from harness.errors import CaseError
from harness.ir import count_files, print_ir
from harness.metrics import PHASES
from harness.process import run
from harness.toolchain import Toolchain
from tests.ir.programs import LIMITS, WEIGHT


@pytest.mark.parametrize("phase", PHASES)
def test_the_text_has_every_op_and_no_weights(
    phase: str, dumps: Mapping[str, Path], real_toolchain: Toolchain, tmp_path: Path
) -> None:
    text = print_ir(dumps[phase], toolchain=real_toolchain, limits=LIMITS)
    assert WEIGHT[:64] not in text
    assert "{-#" not in text
    if phase == "bufferized":
        assert text.count("func.func @main_dispatch_") == 2
        return
    again = tmp_path / "again.mlir"
    again.write_text(text)
    files = [{phase: file} for file in (dumps[phase], again)]
    before, after = (count_files(file, toolchain=real_toolchain, limits=LIMITS) for file in files)
    assert before == after


def test_bytecode_becomes_text(model: Path, real_toolchain: Toolchain, tmp_path: Path) -> None:
    bytecode = tmp_path / "net.mlirbc"
    tool = str(real_toolchain.compiler_tools / "iree-opt")
    assert run([tool, str(model), "--emit-bytecode", "-o", str(bytecode)], limits=LIMITS).ok
    assert print_ir(bytecode, toolchain=real_toolchain, limits=LIMITS) == print_ir(
        model, toolchain=real_toolchain, limits=LIMITS
    )


def test_what_is_not_ir_is_a_failed_case(real_toolchain: Toolchain, tmp_path: Path) -> None:
    file = tmp_path / "net.mlir"
    file.write_text("func.func @main( {")
    with pytest.raises(CaseError) as failed:
        print_ir(file, toolchain=real_toolchain, limits=LIMITS)
    assert failed.value.stage == "ir"
    assert str(failed.value) == (
        "iree-opt exited with status 1 on net.mlir: expected non-function type; take another phase"
    )
