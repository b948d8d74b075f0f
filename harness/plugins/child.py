"""Runs one rewrite on one module, under a toolchain's own Python, where the harness may not be installed.

It is started by path with the path of a request, a JSON file:

    {"input": file, "output": file, "answer": file,
     "function": "package.module:name", "options": {...},
     "entry": name                               of the function that has to be there afterwards too
     "sites": [folder, ...]}                     where packages of the harness's own Python lie, looked at last

and writes the changed module as bytecode, and an answer: {"matched": n, "changed": bool}, or {"error": "one phrase"}.
What the rewrite prints on either stream goes to stderr, in order; of an exception, its traceback follows.
Standard library and iree.compiler only.
"""

import importlib
import io
import json
import operator
import os
import re
import site
import sys
import traceback
from pathlib import Path
from typing import Any


class Refused(Exception):
    """What the rewrite did that it may not; the message is a phrase about it."""


def _one_line(error: BaseException) -> str:
    text = " ".join(str(error).split()) or "no reason given"
    return text.encode(errors="replace").decode()[:500]  # a path may have been no text


def where_raised(error: BaseException, package: str) -> str:
    """The last place in a package that an exception came through: ` (example_plugins/rewrites.py:23)`; "" for none."""
    found = ""
    for frame, line in traceback.walk_tb(error.__traceback__):
        module, file = str(frame.f_globals.get("__name__")), Path(frame.f_code.co_filename)
        if module.partition(".")[0] == package:
            folders = module.split(".")[: None if file.name == "__init__.py" else -1]
            found = f" ({'/'.join([*folders, file.name])}:{line})"
    return found


def _load(name: str) -> Any:
    module, _, attribute = name.partition(":")
    try:
        return getattr(importlib.import_module(module), attribute)
    except Exception as error:
        place = where_raised(error, module.partition(".")[0])
        raise Refused(f"cannot be imported ({type(error).__name__}: {_one_line(error)}){place}") from error


def _bytecode(module: Any) -> bytes:
    out = io.BytesIO()
    module.operation.write_bytecode(out)
    return out.getvalue()


def _names(module: Any) -> set[str]:
    return {
        str(op.attributes["sym_name"].value) for op in module.body.operations if "sym_name" in op.operation.attributes
    }


def _count(matched: Any) -> int:
    try:
        count = -1 if isinstance(matched, bool) else operator.index(matched)
    except TypeError:
        count = -1
    if not 0 <= count < 2**63:
        raise Refused(f"returned {repr(matched)[:100]}, and not how many places it matched")
    return count


def rewrite(request: dict[str, Any]) -> dict[str, Any]:
    """Do what the request asks for; the answer."""
    from iree.compiler import ir

    function = _load(request["function"])
    with ir.Context(), ir.Location.unknown():
        module = ir.Module.parse(Path(request["input"]).read_bytes())
        before, names = _bytecode(module), _names(module)
        try:
            matched = function(module, **request["options"])
        except Exception as error:
            place = where_raised(error, request["function"].partition(":")[0].partition(".")[0])
            raise Refused(f"raised {type(error).__name__}: {_one_line(error)}{place}") from error
        matched = _count(matched)
        if request["entry"] in names and request["entry"] not in _names(module):
            raise Refused(f"removed or renamed the entry function {request['entry']!r}")
        try:
            module.operation.verify()
        except Exception as error:
            # What the verifier says, without where that is and the operation that it prints below.
            found = re.search(r"error: (?:\S+:\d+:\d+: )?(.+)", str(error))
            why = found[1] if found is not None else _one_line(error)
            raise Refused(f"left a module that does not verify: {why}") from error
        after = _bytecode(module)
        if not matched and after != before:
            raise Refused("changed the module, and says that it matched nothing")
    Path(request["output"]).write_bytes(after)
    return {"matched": matched, "changed": after != before}


def main() -> None:
    """Read the request, answer it."""
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    request = json.loads(Path(sys.argv[1]).read_text())
    here = str(Path(__file__).parent)
    sys.path[:] = [entry for entry in sys.path if entry != here]  # its modules are not top-level ones
    for folder in request["sites"]:
        site.addsitedir(folder)
    try:
        answer = rewrite(request)
    except Refused as refused:
        if refused.__cause__ is not None:
            traceback.print_exception(refused.__cause__)
        answer = {"error": str(refused)}
    Path(request["answer"]).write_text(json.dumps(answer))


if __name__ == "__main__":
    main()
