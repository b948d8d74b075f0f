"""Which words of a command can do nothing but compile, run and measure in the folder where they are pasted."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from harness.suite.flags import runs_code
from harness.toolchain.tools import flag_name

_IREE_TOOLS = ("iree-benchmark-module", "iree-compile", "iree-opt", "iree-run-module")
# Those that repeat or show something; the others post, delete, or ask a database.
_SUBCOMMANDS = ("compare", "export", "list", "report", "run")

# A name that hides nothing and leads nowhere, and several of them.
_NAME = r"[A-Za-z0-9_][A-Za-z0-9_.+-]*"
_PLAIN_NAME = re.compile(_NAME)
_PLAIN_PATH = re.compile(rf"{_NAME}(?:/{_NAME})*")
_MODULE_FILE = re.compile(rf"{_NAME}(?:/{_NAME})*\.vmfb")
_OUTPUT_FILE = re.compile(rf"@{_NAME}(?:/{_NAME})*\.(?:npy|bin)")

# The one file besides the module that the harness has iree-compile write.
_STATISTICS = re.compile(rf"--iree-scheduling-dump-statistics-file={_NAME}\.json")

# Where a word may name a file: after `=`, `@` and the like, as in --parameters=scope=x.irpa or --input=4xf32=@x.npy.
_BETWEEN = re.compile(r"[=@:,\s]")
_LEADS_AWAY = re.compile(r"[/\\~]|[A-Za-z]:[/\\]")

# Options of IREE's tools that write where they are told, by the end of their names; `compile-to` stops early instead.
_WRITES = ("-to", "-dir", "-directory", "-file", "-output", "-out", "-prefix")
_LOADS = ("flagfile", "load")


def are_harmless(words: Sequence[str]) -> bool:
    """Whether these words, as one command, are the harness's or IREE's, load no code and write nowhere unexpected."""
    if len(words) < 2 or any(_leads_away(word) or word.startswith("@") or runs_code(word) for word in words):
        return False
    if words[0] == "harness":
        return words[1] in _SUBCOMMANDS and all(
            _may_stand(name, value, words[1]) for name, value in _options(words[2:])
        )
    return words[0] in _IREE_TOOLS and _are_of_a_tool(words[1:])


def _leads_away(word: str) -> bool:
    """Whether a word names something outside the folder: an absolute path, a parent, another machine."""
    if "://" in word or ".." in re.split(r"[/\\=@:,\s]", word):
        return True
    return any(_LEADS_AWAY.match(piece) for piece in _BETWEEN.split(word))


def _options(words: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Every option with its value, given after `=` or as the next word."""
    for position, word in enumerate(words):
        if word.startswith("-"):
            name, equals, value = word.partition("=")
            following = words[position + 1] if position + 1 < len(words) else ""
            yield name.lstrip("-").replace("_", "-").lower(), value if equals else following


def _may_stand(name: str, value: str, subcommand: str) -> bool:
    """Whether an option of the harness writes nowhere but into a folder of the reader's own, and sends nothing."""
    if name == "results":
        return _PLAIN_PATH.fullmatch(value) is not None
    if name == "out":  # of `harness export`, which fills a new folder
        return subcommand == "export" and _PLAIN_NAME.fullmatch(value) is not None
    return not name.endswith("-out") and name not in ("step-summary", "api-url")


def _are_of_a_tool(words: Sequence[str]) -> bool:
    for position, word in enumerate(words):
        if word == "-o":
            following = words[position + 1] if position + 1 < len(words) else ""
            if not _MODULE_FILE.fullmatch(following):
                return False
        elif word.startswith("-") and not _is_harmless(word):
            return False
    return True


def _is_harmless(flag: str) -> bool:
    """Whether a flag of IREE's tools, other than `-o FILE`, loads nothing and writes nothing unexpected."""
    name, value = flag_name(flag).replace("_", "-").lower(), flag.partition("=")[2]
    if name == "module":
        return value.endswith(".vmfb")
    if name == "output":
        return not value or _OUTPUT_FILE.fullmatch(value) is not None
    if name == "compile-to" or _STATISTICS.fullmatch(flag):
        return True
    return name != "o" and not name.startswith(_LOADS) and not name.endswith(_WRITES)
