"""Answers a question about files of IR with MLIR's bindings.

It runs by path under a toolchain's own Python, where the harness may not be installed: it and the modules that it
imports need the standard library and iree.compiler only. Its argument, in JSON, is
    {"answers": "module:function" of this folder, "files": {phase: file}, "arguments": {keyword: value}}
and it prints the answer for each file, in the form that the answering function gives it:
    {"answers": {phase: answer}}
or {"unread": phase, "why": "one line"} of the first file that does not parse, or {"unknown": "a phrase"} where the
answer does not follow from the IR.
"""

import json
import pkgutil
import sys
from pathlib import Path
from typing import Any

# Between the parts of a file that are parsed apart. No model has this line.
SEPARATOR = b"\n// ----- next dispatch -----\n"

_HERE = Path(__file__).resolve().parent


def _answer(request: dict[str, Any]) -> dict[str, Any]:
    # This folder's modules are no top-level ones; the harness is found last, so that it hides nothing.
    sys.path[:] = [entry for entry in sys.path if Path(entry).resolve() != _HERE]
    sys.path.append(str(_HERE.parents[1]))
    from iree.compiler import ir

    from harness.ir.sizes import Unknown

    answer = pkgutil.resolve_name(f"harness.ir.{request['answers']}")
    answers = {}
    for phase, file in request["files"].items():
        with ir.Context() as context, ir.Location.unknown():
            context.allow_unregistered_dialects = True  # as iree-compile does
            parts = (ir.Module.parse(part) for part in Path(file).read_bytes().split(SEPARATOR))
            try:
                answers[phase] = answer(parts, phase, **request["arguments"])
            except ir.MLIRError as error:
                return {"unread": phase, "why": _reason(error)}
            except Unknown as unknown:
                return {"unknown": str(unknown)}
    return {"answers": answers}


def _reason(error: Exception) -> str:
    lines = [line for line in str(error).splitlines() if "error: " in line] or [str(error)]
    return lines[0].partition("error: ")[2].partition(": ")[2] or lines[0]


if __name__ == "__main__":
    print(json.dumps(_answer(json.loads(sys.argv[1]))))
