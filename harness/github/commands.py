"""Which command lines of an artifact may stand in a comment.

A reader copies them into a shell because the comment has them. They were put together by a job that ran a pull
request's code, so only those are kept that can do nothing but compile, run and measure in the folder where they are
pasted: the harness's own and IREE's, which repeat what was measured.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from harness.records.comparison import Comparison
from harness.report.portable import portable_comparison
from harness.report.run_report import Report
from harness.suite.flags import runs_code
from harness.text import one_line
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

# Drivers of a Vulkan device, where packages of a system put them.
_DRIVER = r"(?:/usr/share|/etc/vulkan)/[A-Za-z0-9_][A-Za-z0-9_.-]*(?:/[A-Za-z0-9_][A-Za-z0-9_.-]*)*"
_VARIABLE = re.compile(rf"(?:VK_ICD_FILENAMES|VK_DRIVER_FILES)={_DRIVER}(?::{_DRIVER})*")

# The comments that harness.compare.rows and harness.report.repro write, and no others.
_NO_MODULE = re.compile(r"# (?:base|head): (?:has no such case|was never compiled)")
_MODULE = re.compile(r"(# (?:base|head): (?:module [0-9a-f]{12}|no module))(?:, (.*))?")
_RELEASE = r"[0-9][0-9A-Za-z.+-]{0,60}"
_TOOLS_OF = re.compile(
    rf"# the tools below are those of IREE ({_RELEASE}): pip install "
    r"iree-base-compiler==([^ ]+) iree-base-runtime==([^ ]+)"
)
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


def with_allowed_commands(comparison: Comparison) -> Comparison:
    """The comparison as a comment has it, with those of its commands that repeat something and can do nothing else.

    Its suite and its name become words of commands too; such as would be options or other folders do not.
    """
    portable = portable_comparison(comparison)  # first: it takes paths of the machine out, and so changes commands
    return replace(
        portable,
        id=_id(portable.id),
        base=replace(portable.base, suite=_argument(portable.base.suite)),
        head=replace(portable.head, suite=_argument(portable.head.suite)),
        rows=tuple(replace(row, repro=_allowed(row.repro)) for row in portable.rows),
        command=_whole(portable.command),
    )


def report_with_allowed_commands(report: Report) -> Report:
    """A run's report, with those of its commands that repeat something and can do nothing else."""
    facts = report.facts
    # Where the command names releases, a step names those of the rows.
    is_plain = not any(version.startswith("-") for section in report.sections for version in section.toolchains)
    sections = (
        replace(section, rows=tuple(replace(row, repro=_allowed(row.repro)) for row in section.rows))
        for section in report.sections
    )
    return replace(
        report,
        facts=replace(
            facts,
            id=_id(facts.id),
            suite=_argument(facts.suite),
            command=_whole(facts.command) if is_plain else (),
        ),
        sections=tuple(sections),
    )


def is_allowed(line: str) -> bool:
    """Whether the harness writes such a line, and whoever pastes it only measures again.

    It is one of the harness's comments; or one of its commands, or of IREE's tools, with words that a shell leaves
    alone, that load no code, and that write nothing but a module or an exported model below the reader's folder.
    """
    return _kept(line) == line


def _allowed(lines: Iterable[str]) -> tuple[str, ...]:
    kept = (_kept(line) for line in lines)
    return tuple(line for line in kept if line is not None)


def _kept(line: str) -> str | None:
    """The line, or as much of it as may stand; None: nothing."""
    if line != one_line(line) or not line.isprintable():
        return None
    if not line.startswith("#"):
        return line if _is_command(line) else None
    if _NO_MODULE.fullmatch(line):
        return line
    if (tools := _TOOLS_OF.fullmatch(line)) is not None:
        return line if tools[1] == tools[2] == tools[3] else None
    if (module := _MODULE.fullmatch(line)) is not None:
        compiled = module[2] or ""
        return line if compiled.startswith("iree-compile ") and _is_command(compiled) else module[1]
    return None


def _is_command(line: str) -> bool:
    try:
        words = shlex.split(line)
    except ValueError:
        return False
    while words and _VARIABLE.fullmatch(words[0]):
        line = line.removeprefix(words.pop(0)).lstrip(" ")
    return _are_harmless(words) and shlex.join(words) == line


def _whole(command: tuple[str, ...]) -> tuple[str, ...]:
    """A command that steps are made from; none of it where a line of it is not allowed."""
    return command if command[:1] == ("harness",) and is_allowed(shlex.join(command)) else ()


def _argument(path: str) -> str:
    """A path that no command takes for an option or a file of options."""
    return f"./{path}" if path.startswith(("-", "@")) else path


def _id(name: str) -> str:
    """The name of a folder in results/; none where it would lead elsewhere."""
    return name if _ID.fullmatch(name) else ""


def _are_harmless(words: Sequence[str]) -> bool:
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
