"""Counts the ops in the IR of one phase with MLIR's bindings.

It runs under a toolchain's own Python, for harness.ir.child.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from iree.compiler import ir

from harness.metrics import BUFFERIZED

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


def answer(modules: Iterable[Any], phase: str) -> dict[str, Counter[str]]:
    """How many of which ops a program has, outside executables (`host`) and inside them, as JSON.

    The modules themselves are not counted.
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

    # At this phase there are functions of executables without the executables around them.
    inside = phase == BUFFERIZED
    for module in modules:
        module.operation.walk(visit_inside if inside else visit, ir.WalkOrder.PRE_ORDER)
        (executables if inside else host)[module.operation.name] -= 1
    return {"host": +host, "executables": +executables}
