"""What a compiled module and the compiler's output say of a build."""

from __future__ import annotations

import json
import re
import zipfile
from pathlib import Path

from harness.results.records import Sizes, Statistics

# Members of the zip that a module is (IREE's polyglot form); every other member is an executable.
_VM_MEMBER = "module.fb"
_CONSTANT_MEMBER = "_const.bin"

# What iree-compile prints when it goes wrong, also when it then exits with 0: a pass pipeline that it cannot parse.
_ERROR_LINE = re.compile(
    r"^(?:.*?:\s)?(?:error|ERROR|fatal error):\s*(?P<text>.+)$|^(?P<pass>.+ does not refer to a .+)$"
)
_WARNING_LINE = re.compile(r"^(?:.*?:\s)?(?:warning|WARNING):\s*(.+)$")
_OUTPUT = re.compile(r"%output\d+")


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
    """Functions that `iree-dump-module` lists as exported, with the number of their results.

    The count comes from the ABI declaration that the compiler attaches; 1 where it attached none.
    """
    exports: dict[str, int] = {}
    current = None
    inside = False
    for line in dump.splitlines():
        if line.startswith("Exported Functions:"):
            inside = True
        elif inside and not line.strip():
            break
        elif inside and (match := re.match(r"\s*\[\s*\d+\] ([^\s(]+)\(", line)):
            current = match.group(1)
            exports[current] = 1
        elif inside and current and "iree.abi.declaration:" in line:
            exports[current] = len(set(_OUTPUT.findall(line.split("->", 1)[-1]))) if "->" in line else 0
    exports.pop("__init", None)
    return exports


def error_lines(stderr: str) -> tuple[str, ...]:
    """The texts of the errors that the compiler printed, in order, without file positions."""
    return _texts(_ERROR_LINE, stderr)


def warning_lines(stderr: str) -> tuple[str, ...]:
    """The texts of the warnings that the compiler printed, each once, in order."""
    return tuple(dict.fromkeys(_texts(_WARNING_LINE, stderr)))


def _texts(pattern: re.Pattern[str], stderr: str) -> tuple[str, ...]:
    matches = (pattern.match(line) for line in stderr.splitlines())
    return tuple(next(text for text in match.groups() if text is not None).strip() for match in matches if match)


def tail(stderr: str, lines: int = 20, characters: int = 4000) -> str:
    """The last lines of what a tool printed, for a failure's record."""
    return "\n".join(stderr.rstrip().splitlines()[-lines:])[-characters:]
