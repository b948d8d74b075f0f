"""Counts the work of a program: arithmetic operations and bytes, from its linalg operations and their maps.

It runs by path under a toolchain's own Python: stdlib and iree.compiler only, and the modules of this package beside
it. Its argument is {"file": path, "function": name, "shapes": [[size, ...], ...]} in JSON, and it prints
    {"work": {"operations": n, "integer": n, "transcendental": n, "moved_bytes": n, "compulsory_bytes": n,
              "unknown": {op name: count}}}
or {"unread": "one line"} of a file that does not parse, or {"why": "a phrase"} where a size is not known.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

_HERE = Path(__file__).resolve().parent


def _count(request: dict[str, Any]) -> dict[str, Any]:
    # This folder's modules are no top-level ones; the package is found last, so that it hides nothing.
    sys.path[:] = [entry for entry in sys.path if Path(entry).resolve() != _HERE]
    sys.path.append(str(_HERE.parents[1]))
    from iree.compiler import ir

    from harness.roofline.graph import work_of
    from harness.roofline.sizes import Unknown

    with ir.Context() as context, ir.Location.unknown():
        context.allow_unregistered_dialects = True  # as iree-compile does
        try:
            module = ir.Module.parse(Path(request["file"]).read_bytes())
        except ir.MLIRError as error:
            return {"unread": str(error).strip().splitlines()[0]}
        try:
            work = work_of(module, request["function"], request["shapes"])
            return {"work": {**vars(work), "unknown": dict(work.unknown)}}
        except Unknown as unknown:
            return {"why": str(unknown)}


if __name__ == "__main__":
    print(json.dumps(_count(json.loads(sys.argv[1]))))
