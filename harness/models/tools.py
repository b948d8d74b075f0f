"""Files that a suite names for a model, and IREE's tools that read them: one sentence says what is wrong with one."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from harness import process
from harness.errors import CaseError, SuiteError
from harness.files import file_sha256
from harness.toolchain.find import Toolchain

_TAIL_LINES = 20
_LFS_POINTER = b"version https://git-lfs.github.com/spec/"
_LINE_CHARACTERS = 300
_RUNTIME_SOURCE = re.compile(r"^\S+\.(?:c|cc|h):\d+: ")
_PARAMETER_SUFFIXES = (".irpa", ".gguf", ".safetensors")


def require_file(path: Path, suffixes: Sequence[str], where: str) -> None:
    """Refuse a file that has none of these endings, an empty one, and a pointer of Git LFS."""
    if path.suffix.lower() not in suffixes:
        raise SuiteError(f"{where}: {path} does not end in {' or '.join(suffixes)}; name a file that does")
    with path.open("rb") as file:
        beginning = file.read(len(_LFS_POINTER))
    if beginning == _LFS_POINTER:
        raise CaseError("model", f"{where}: {path} is a pointer of Git LFS; `git lfs pull` gets the file")
    if not beginning:
        raise CaseError("model", f"{where}: {path} is empty; write it again")


def hash_parameters(
    parameters: Mapping[str, Path], *, toolchain: Toolchain, limits: process.Limits, where: str
) -> dict[str, str]:
    """Hash (sha256, hex) of each scope's file, once iree-dump-parameters has read its header."""
    hashes = {}
    for scope, path in sorted(parameters.items()):
        key = f"{where} parameters.{scope}"
        require_file(path, _PARAMETER_SUFFIXES, key)
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


def run_tool(
    command: Sequence[str | Path], *, cwd: Path, limits: process.Limits, complaint: str, remedy: str
) -> process.Finished:
    """Run a tool to its successful end."""
    try:
        finished = process.run([str(part) for part in command], cwd=cwd, limits=limits)
    except OSError as error:
        raise CaseError("model", f"{complaint}: {command[0]} cannot be started ({error.strerror}); {remedy}") from None
    if finished.ok:
        return finished
    ending = finished.how_it_ended(limits)
    reason = ending if finished.limit is not None else _reason(finished.stderr) or ending
    # Each line cut short: diagnostics repeat the offending line, which may hold a whole weight.
    last_lines = (line[:_LINE_CHARACTERS] for line in finished.stderr.splitlines()[-_TAIL_LINES:])
    raise CaseError("model", f"{complaint}: {reason}; {remedy}", stderr="\n".join(last_lines))


def _reason(stderr: str) -> str:
    """The line that says why: the first with `error:`, else the last one, as Python's tracebacks have it."""
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    if not lines:
        return ""
    chosen = next((line for line in lines if "error:" in line), lines[-1])
    return _RUNTIME_SOURCE.sub("", chosen)[:_LINE_CHARACTERS].rstrip(".;")
