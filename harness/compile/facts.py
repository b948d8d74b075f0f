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
    r"^(?:.*?:\s)??(?:error|ERROR|fatal error):\s*(?P<text>.+)$|^(?P<pass>.+ does not refer to a .+)$"
)
_WARNING_LINE = re.compile(r"^(?:.*?:\s)??(?:warning|WARNING):\s*(.+)$")
# `  [  0] main(!vm.ref<?>, i32) -> (!vm.ref<?>, f32)`; the name may be any text, blanks and parentheses included.
_EXPORT = re.compile(r"\s*\[\s*\d+\] (?P<name>.+)\([^()]*\) -> \((?P<results>[^()]*)\)")
# `<file>.c:12: INVALID_ARGUMENT; what is wrong; while invoking ...`
_STATUS_LINE = re.compile(r"^\S+\.(?:c|cc|h):\d+: (?P<status>.+)$", re.MULTILINE)
_TRACE = re.compile(r"; (?:while (?:invoking|calling)|invoking function|`\w+ func @).*")


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


def error_lines(stderr: str) -> tuple[str, ...]:
    """The texts of the errors that the compiler printed, in order, without file positions."""
    return _texts(_ERROR_LINE, stderr)


def warning_lines(stderr: str) -> tuple[str, ...]:
    """The texts of the warnings that the compiler printed, each once, in order."""
    return tuple(dict.fromkeys(_texts(_WARNING_LINE, stderr)))


def _texts(pattern: re.Pattern[str], stderr: str) -> tuple[str, ...]:
    """What follows the mark on each line; where that only announces the next line, both."""
    lines = stderr.splitlines()
    texts = []
    for position, line in enumerate(lines):
        if match := pattern.match(line):
            text = next(text for text in match.groups() if text is not None).strip()
            after = lines[position + 1 : position + 2] if text.endswith(":") else []
            texts.append(" ".join([text, *after]).strip().removesuffix(":"))
    return tuple(texts)


def status_text(stderr: str) -> str:
    """The reason that one of IREE's runtime tools gives: its status, without source position and trace."""
    if match := _STATUS_LINE.search(stderr):
        return _TRACE.sub("", match["status"]).strip()
    return next((line.strip() for line in stderr.splitlines() if line.strip()), "")


def tail(stderr: str, lines: int = 20, characters: int = 4000) -> str:
    """The last lines of what a tool printed, for a failure's record."""
    return "\n".join(stderr.rstrip().splitlines()[-lines:])[-characters:]
