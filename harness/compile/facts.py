"""What a compiled module and the files beside it say of a build."""

from __future__ import annotations

import json
import re
import zipfile
from pathlib import Path

from harness.records.run import Sizes, Statistics

# Members of the zip that a module is (IREE's polyglot form); every other member is an executable.
_VM_MEMBER = "module.fb"
_CONSTANT_MEMBER = "_const.bin"

# `  [  0] main(!vm.ref<?>, i32) -> (!vm.ref<?>, f32)`; the name may be any text, blanks and parentheses included.
_EXPORT = re.compile(r"\s*\[\s*\d+\] (?P<name>.+)\([^()]*\) -> \((?P<results>[^()]*)\)")


def module_sizes(module: Path) -> Sizes:
    """Bytes of a module by component; a module that is no zip counts as VM bytecode as a whole."""
    total = module.stat().st_size
    if not zipfile.is_zipfile(module):
        return Sizes(module_bytes=total, vm_bytes=total, constant_bytes=0, dispatch_bytes={})
    with zipfile.ZipFile(module) as archive:
        members = {member.filename: member.file_size for member in archive.infolist()}
    vm = members.pop(_VM_MEMBER, 0)
    constants = members.pop(_CONSTANT_MEMBER, 0)
    return Sizes(
        module_bytes=total, vm_bytes=vm, constant_bytes=constants, dispatch_bytes=dict(sorted(members.items()))
    )


def parse_statistics(text: str) -> Statistics | None:
    """The JSON that --iree-scheduling-dump-statistics-format=json writes; None when it is not of that form.

    The counts are static: a loop's body counts once. Dynamic sizes are left out of the transient bytes.
    """
    try:
        aggregate = json.loads(text)["stream-aggregate"]
        memory, execution = aggregate["global"], aggregate["execution"]
        return Statistics(
            dispatches=int(execution["dispatch-count"]),
            copies=int(execution["copy-count"]),
            fills=int(execution["fill-count"]),
            awaits=int(aggregate["synchronization"]["await-count"]),
            submissions=int(execution["submission-count"]),
            executables=int(aggregate["executable"]["executable-count"]),
            transient_bytes=int(execution["transient-memory-size"]),
            constant_bytes=int(memory["constant-size"]),
            variable_bytes=int(memory["variable-size"]),
        )
    except (KeyError, TypeError, ValueError):
        return None


def exported_functions(dump: str) -> dict[str, int]:
    """Functions that `iree-dump-module` lists as exported, with the number of their results."""
    exports: dict[str, int] = {}
    inside = False
    for line in dump.splitlines():
        if line.startswith("Exported Functions:"):
            inside = True
        elif inside and not line.strip():
            break
        elif inside and (match := _EXPORT.fullmatch(line.rstrip())):
            results = match["results"]
            exports[match["name"]] = len(results.split(",")) if results else 0
    exports.pop("__init", None)
    return exports
