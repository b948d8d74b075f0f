"""What IREE's tools print, and what of it is the reason."""

from __future__ import annotations

import re

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
    """The last lines of what a tool printed, for a failure's record; targets without their CPU's features."""
    return "\n".join(_short(stderr).rstrip().splitlines()[-lines:])[-characters:]
