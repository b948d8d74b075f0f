"""Constants of dispatches whose program was dumped without them."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from harness.explain.constants import as_text, constants_of, with_constants
from harness.process import Limits
from harness.toolchain import Toolchain

BODY = """\
  %0 = arith.constant dense_resource<conv1_bias> : tensor<2xf32>
  %1 = arith.constant dense_resource<"a b.weight"> : tensor<1xf32>
  %2 = arith.constant dense_resource<conv1_bias> : tensor<2xf32>
"""
DUMPED = f"module {{\n{BODY}}}\n"
MODEL = """module {}
{-#
  dialect_resources: {
    builtin: {
      my_conv1_bias: "0x0400000000",
      conv1_bias: "0x040000000000803F00000040",
      "a b.weight": "0x0400000000004040"
    }
  }
#-}
"""


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "model.mlir"
    path.write_text(MODEL)
    return path


def test_each_constant_comes_once_with_its_bytes(model: Path) -> None:
    assert constants_of(DUMPED) == ("conv1_bias", '"a b.weight"')
    text = with_constants(DUMPED, model)
    assert text.startswith(DUMPED)
    assert text.count('\n      conv1_bias: "0x040000000000803F00000040",') == 1
    assert text.endswith('      "a b.weight": "0x0400000000004040"\n    }\n  }\n#-}\n')


@pytest.mark.parametrize(
    ("dumped", "model_text"),
    [("module {\n}\n", MODEL), (MODEL, MODEL), (DUMPED, ""), (DUMPED, "ML\xefR bytecode")],
    ids=["no constants", "has them", "empty model", "no text"],
)
def test_what_has_none_or_cannot_be_found_stays_as_it_is(dumped: str, model_text: str, tmp_path: Path) -> None:
    path = tmp_path / "model.mlir"
    path.write_text(model_text)
    assert with_constants(dumped, path) == dumped


def test_bytecode_is_printed_and_text_is_not(real_toolchain: Toolchain, model: Path, tmp_path: Path) -> None:
    limits = Limits(seconds=60)
    assert as_text(model, real_toolchain, tmp_path, limits) == model
    text, bytecode = tmp_path / "text.mlir", tmp_path / "model.mlirbc"
    text.write_text(MODEL.replace("module {}", f"module {{\n  util.func public @f() {{\n{BODY}  util.return\n  }}\n}}"))
    iree_opt = str(real_toolchain.compiler_tools / "iree-opt")
    subprocess.run([iree_opt, str(text), "--emit-bytecode", "-o", str(bytecode)], check=True)
    printed = as_text(bytecode, real_toolchain, tmp_path, limits)
    assert with_constants(DUMPED, printed) == with_constants(DUMPED, model)
    bytecode.write_bytes(b"ML\xefR and no more")
    assert as_text(bytecode, real_toolchain, tmp_path, limits) == bytecode
