"""Reduces a program to one of its public functions and what that calls, with MLIR's bindings.

It runs by path under a toolchain's own Python, where the harness may not be installed: standard library and
iree.compiler only. Its arguments are a file of MLIR, the function's name, and a file to write; it prints, in JSON,
    {"functions": names of the public functions}
and writes the file, in the form of the first, where there are others than the entry function.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

_BYTECODE = b"ML\xefR"
# External functions of the runtime, and of the host, are declarations, which are private.
_FUNCTIONS = ("func.func", "util.func")


def _public(module: Any) -> dict[str, Any]:
    """The public functions at the module's top, by name."""
    from iree.compiler import ir

    functions = {}
    for op in module.body.operations:
        attributes = op.operation.attributes
        if op.operation.name not in _FUNCTIONS:
            continue
        visibility = attributes["sym_visibility"] if "sym_visibility" in attributes else None  # noqa: SIM401 (3.0 has no get)
        if visibility is None or ir.StringAttr(visibility).value == "public":
            functions[ir.StringAttr(attributes["sym_name"]).value] = op.operation
    return functions


def reduce(source: Path, entry: str, target: Path) -> list[str]:
    """Write the program with the entry function as its only public one; the names of all public functions."""
    from iree.compiler import ir, passmanager

    content = source.read_bytes()
    with ir.Context() as context, ir.Location.unknown():
        context.allow_unregistered_dialects = True  # as iree-compile does
        module = ir.Module.parse(content)
        functions = _public(module)
        others = [function for name, function in functions.items() if name != entry]
        if entry in functions and others:
            for function in others:
                function.attributes["sym_visibility"] = ir.StringAttr.get("private")
            passmanager.PassManager.parse("builtin.module(symbol-dce)").run(module.operation)
            with target.open("wb") as file:
                if content.startswith(_BYTECODE):
                    module.operation.write_bytecode(file)
                else:
                    file.write(f"{module}\n".encode())
    return list(functions)


if __name__ == "__main__":
    print(json.dumps({"functions": reduce(Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3]))}))
