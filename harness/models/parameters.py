"""External weights: files beside a model's MLIR that the runtime maps in, by scope."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from harness import process
from harness.files import file_sha256
from harness.models.tools import require_file, run_tool
from harness.toolchain.values import Toolchain

SUFFIXES = (".irpa", ".gguf", ".safetensors")


def hash_parameters(
    parameters: Mapping[str, Path], *, toolchain: Toolchain, limits: process.Limits, where: str
) -> dict[str, str]:
    """Hash (sha256, hex) of each scope's file, once iree-dump-parameters has read its header.

    Raises:
        SuiteError: A file is missing, or of a format that IREE does not read.
        CaseError: A file is empty, cut short or broken (stage `model`).
    """
    hashes = {}
    for scope, path in sorted(parameters.items()):
        key = f"{where} parameters.{scope}"
        require_file(path, SUFFIXES, key)
        absolute = path.resolve()
        tool = toolchain.runtime_tool("iree-dump-parameters")
        if tool.is_file():
            run_tool(
                [tool, f"--parameters={scope}={absolute}"],
                cwd=absolute.parent,
                limits=limits,
                complaint=f"{key}: {path} is no parameter file that IREE {toolchain.version} reads",
                remedy="write or download it again",
            )
        hashes[scope] = file_sha256(absolute)
    return hashes
