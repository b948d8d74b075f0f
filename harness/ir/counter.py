"""Counts the ops in files of IR with MLIR's bindings.

It runs by path under a toolchain's own Python, where the harness may not be installed: stdlib and iree.compiler.ir
only. Its argument is {phase: file} in JSON, and it prints
    {"counts": {phase: {"host": {op name: count}, "executables": {op name: count}}}}
or, of the first file that does not parse,
    {"unread": phase, "why": "one line"}
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

# Between the parts of a file that are parsed apart. No model has this line.
SEPARATOR = b"\n// ----- next dispatch -----\n"

# The phase whose files have functions of executables without the executables around them.
_BARE = "bufferized"
_EXECUTABLES = frozenset(
    (
        "flow.dispatch.region",
        "flow.dispatch.workgroups",
        "flow.executable",
        "stream.executable",
        "hal.executable",
        "hal.executable.source",
    )
)


def count(module: Any, ir: Any, *, inside: bool) -> tuple[Counter[str], Counter[str]]:
    """Count a module's ops, without the module itself.

    Args:
        inside: Whether all of it lies inside an executable.

    Returns:
        Ops outside executables, and ops inside them.
    """
    host, executables = Counter[str](), Counter[str]()

    def visit_inside(op: Any) -> Any:
        executables[op.name] += 1
        return ir.WalkResult.ADVANCE

    def visit(op: Any) -> Any:
        name = op.name
        host[name] += 1
        if name not in _EXECUTABLES:
            return ir.WalkResult.ADVANCE
        op.walk(visit_inside)
        executables[name] -= 1  # the walk starts with the op itself
        return ir.WalkResult.SKIP

    module.operation.walk(visit_inside if inside else visit, ir.WalkOrder.PRE_ORDER)
    (executables if inside else host)[module.operation.name] -= 1
    return +host, +executables


def count_file(path: Path, ir: Any, *, inside: bool) -> dict[str, Counter[str]]:
    """Count the ops of all parts of a file.

    Raises:
        ir.MLIRError: It does not parse.
    """
    host, executables = Counter[str](), Counter[str]()
    with ir.Context() as context:
        context.allow_unregistered_dialects = True  # as iree-compile does
        for part in path.read_bytes().split(SEPARATOR):
            outer, inner = count(ir.Module.parse(part), ir, inside=inside)
            host += outer
            executables += inner
    return {"host": host, "executables": executables}


def _reason(error: Exception) -> str:
    """The first diagnostic, without its position."""
    lines = [line for line in str(error).splitlines() if "error: " in line] or [str(error)]
    return lines[0].partition("error: ")[2].partition(": ")[2] or lines[0]


def main() -> None:
    """Count, and print."""
    from iree.compiler import ir

    counts = {}
    for phase, file in json.loads(sys.argv[1]).items():
        try:
            counts[phase] = count_file(Path(file), ir, inside=phase == _BARE)
        except ir.MLIRError as error:
            print(json.dumps({"unread": phase, "why": _reason(error)}))
            return
    print(json.dumps({"counts": counts}))


if __name__ == "__main__":
    main()
