"""What IREE's tools know and print: their flags, from their own help, and which line is the reason of a failure."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from harness.cache import cache_root, read_memo, write_memo
from harness.errors import CaseError, ToolchainError
from harness.process import Finished, Limits, run
from harness.toolchain.find import Toolchain

_LIMITS = Limits(seconds=60)
# LLVM's command line indents options by two blanks; IREE's runtime prints each flag at the line's start, with
# those that are lists or unset behind a hash.
_COMPILER_OPTION = re.compile(r"^  --?([A-Za-z][\w.-]*)", re.MULTILINE)
_RUNTIME_OPTION = re.compile(r"^(?:# ?)?--([a-z]\w*)(?==|$)", re.MULTILINE)


def flag_name(flag: str) -> str:
    """`--iree-opt-level=O3` -> `iree-opt-level`; LLVM's command-line library takes one dash or two."""
    return flag.lstrip("-").split("=", 1)[0]


def merge_flags(*groups: Sequence[str]) -> tuple[str, ...]:
    """Join groups of flags; a later group's flag replaces an earlier group's of the same name.

    Within one group a name may repeat (some flags are lists), so a variant can override its device's flags and a
    device can still give a list.
    """
    merged: list[str] = []
    for group in groups:
        names = {flag_name(flag) for flag in group}
        merged = [flag for flag in merged if flag_name(flag) not in names]
        merged.extend(group)
    return tuple(merged)


def compiler_flags(toolchain: Toolchain) -> frozenset[str]:
    """Names of all flags that iree-compile takes, hidden ones included; kept by the compiler's hash."""
    return _flags(toolchain, toolchain.iree_compile, "--help-list-hidden", _COMPILER_OPTION)


def runtime_flags(toolchain: Toolchain) -> frozenset[str]:
    """Names of all flags that iree-benchmark-module takes; it ignores an unknown one without a word."""
    return _flags(toolchain, toolchain.runtime_tool("iree-benchmark-module"), "--help", _RUNTIME_OPTION)


def _flags(toolchain: Toolchain, tool: Path, option: str, pattern: re.Pattern[str]) -> frozenset[str]:
    memo = cache_root() / "toolchains" / f"{toolchain.compiler_sha256[:32]}-{toolchain.version}-{tool.name}-flags.json"
    kept = read_memo(memo)
    if isinstance(kept, list):
        return frozenset(str(name) for name in kept)
    try:
        finished = run([str(tool), option], limits=_LIMITS)
    except OSError as error:
        raise ToolchainError(f"{tool.name} cannot be started ({error.strerror}); reinstall the toolchain") from None
    names = frozenset(pattern.findall(finished.stdout))
    if not names:
        raise ToolchainError(
            f"{tool.name} {option} lists no flags ({finished.how_it_ended(_LIMITS)}); reinstall the toolchain"
        )
    write_memo(memo, sorted(names))
    return names


def run_tool(
    stage: str,
    name: str,
    command: Sequence[str],
    *,
    cwd: Path | None = None,
    limits: Limits,
    environment: Mapping[str, str] | None = None,
    cpus: frozenset[int] | None = None,
) -> Finished:
    """Run a toolchain's program for a case, to its end, whichever that is."""
    try:
        return run(command, cwd=cwd, limits=limits, env=environment, cpus=cpus)
    except OSError as error:
        raise CaseError(stage, f"{name} cannot be started ({error.strerror}); reinstall the toolchain") from None


# What to do where a compile, or what reads its IR, was stopped at a limit.
COMPILE_MORE = {"time": "give it more with --compile-timeout", "memory": "give it more with --compile-memory"}

# What iree-compile prints when it goes wrong, also when it then exits with 0: a pass pipeline that it cannot parse.
_ERROR_LINE = re.compile(
    r"^(?:.*?:\s)??(?:error|ERROR|fatal error):\s*(?P<text>.+)$|^(?P<pass>.+ does not refer to a .+)$"
)
_WARNING_LINE = re.compile(r"^(?:.*?:\s)??(?:warning|WARNING):\s*(.+)$")
# `<file>.c:12: INVALID_ARGUMENT; what is wrong; while invoking ...`
_STATUS_LINE = re.compile(r"(?:^|: )\S+\.(?:c|cc|h):\d+: (?P<status>.+)$", re.MULTILINE)
_TRACE = re.compile(r"; (?:while (?:invoking|calling)|invoking function|`\w+ func @).*")


# A target with all features of its CPU, which is 1.5 KB of text.
_TARGET = re.compile(r'(#hal\.executable\.target<"[^"]*", "[^"]*"), \{[^{}]*\}')


# Colours; and what no tool says in words: control characters but tabs, and bytes that are no UTF-8.
_ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_UNREADABLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ufffd]")


def _short(text: str) -> str:
    return _TARGET.sub(r"\1, {...}", text)


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
            texts.append(_short(" ".join([text, *after])).strip().removesuffix(":"))
    return tuple(texts)


def status_text(stderr: str) -> str:
    """The reason that one of IREE's runtime tools gives: its status, without source position and trace."""
    if match := _STATUS_LINE.search(stderr):
        return _TRACE.sub("", match["status"]).strip()
    return next((line.strip() for line in stderr.splitlines() if line.strip()), "")


def tail(stderr: str, lines: int = 20, characters: int = 4000) -> str:
    """The last lines of what a Python program printed, where the exception is."""
    return "\n".join(_short(stderr).rstrip().splitlines()[-lines:])[-characters:]


def excerpt(stderr: str, lines: int = 20, characters: int = 4000) -> str:
    """What of a tool's output says why it failed: from the first error on; the last lines where none is marked."""
    readable = _short(readable_lines(stderr)).rstrip().splitlines()
    first = next((place for place, line in enumerate(readable) if _ERROR_LINE.match(line)), None)
    if first is None:
        return "\n".join(readable[-lines:])[-characters:]
    kept, rest = readable[first : first + lines], readable[first + lines :]
    if errors := list(dict.fromkeys(line for line in rest if _ERROR_LINE.match(line)))[-(lines // 4) :]:
        kept = [*kept[: lines - len(errors) - 1], "...", *errors]
    return "\n".join(kept)[:characters]


def readable_lines(text: str) -> str:
    """The lines of a text that people can read, without colours."""
    return "\n".join(line for line in _ESCAPE.sub("", text).splitlines() if not _UNREADABLE.search(line))
