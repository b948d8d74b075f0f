"""IR -> text that people read."""

from __future__ import annotations

import re
from pathlib import Path

from harness.ir.counter import SEPARATOR
from harness.ir.dump import ELIDE_FLAGS
from harness.ir.tools import failure, start
from harness.process import Limits
from harness.toolchain import Toolchain

_NO_RESOURCES = re.compile(r"\n\{-#\s*#-\}\n")  # what is left of the weights


def print_ir(file: Path, *, toolchain: Toolchain, limits: Limits) -> str:
    """A file of IR, text or bytecode, as text without the values of its weights.

    Raises:
        CaseError: The toolchain cannot read the file (stage `ir`).
    """
    split = f"--split-input-file={SEPARATOR.decode().strip()}"
    tool = str(toolchain.compiler_tools / "iree-opt")
    finished = start("iree-opt", [tool, str(file), "--allow-unregistered-dialect", split, *ELIDE_FLAGS], limits=limits)
    if not finished.ok:
        raise failure("iree-opt", finished, limits, where=f" on {file.name}", remedy="take another phase")
    return _NO_RESOURCES.sub("\n", finished.stdout).strip() + "\n"
