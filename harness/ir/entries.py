"""The functions of a program that can be called, with the types of their arguments.

It runs under a toolchain's own Python, for harness.ir.child.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


def answer(modules: Iterable[Any], _: str) -> dict[str, dict[str, Any]]:
    """By name: `arguments` and `results` as MLIR writes their types, and whether it is `public`, as JSON."""
    (module,) = modules
    functions = {}
    for op in module.body.operations:
        attributes = op.operation.attributes
        if "function_type" not in attributes or not any(len(region.blocks) for region in op.operation.regions):
            continue
        kind = attributes["function_type"].value
        visibility = attributes["sym_visibility"].value if "sym_visibility" in attributes else "public"
        functions[attributes["sym_name"].value] = {
            "arguments": [str(argument) for argument in kind.inputs],
            "results": [str(result) for result in kind.results],
            "public": visibility == "public",
        }
    return functions
