"""Which command lines of an artifact may stand in a comment.

A reader copies them into a shell because the comment has them. They were put together by a job that ran a pull
request's code, so only those are kept that can do nothing but compile, run and measure in the folder where they are
pasted: the harness's own and IREE's, which repeat what was measured. A tool's flag stands in one only where the harness
gives it to every case, or where the suite has it that the base's checkout holds. That suite is read out of a checkout
that nobody but the repository's own people wrote, by the path that the artifact names; so an artifact chooses among the
suites of the base, and brings no flag of its own.
"""

import re
import shlex
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from harness.compile.request import REPRODUCIBLE_FLAGS, STATISTICS_FLAGS
from harness.errors import HarnessError
from harness.plugins import Applied, apply_plugin
from harness.records.comparison import Comparison
from harness.report.github import portable_comparison
from harness.report.run_report import Report
from harness.suite.cases import chain_of
from harness.suite.flags import runs_code
from harness.suite.load import Suite, Variant, load_suite
from harness.text import one_line


def suite_flags(checkout: Path, suite: str, say: Callable[[str], None]) -> frozenset[str]:
    """All flags of a suite, of its flag sets, and of those of its plugins that are installed here."""
    try:
        root = checkout.resolve()
        path = (root / suite).resolve()
        if path.suffix != ".toml" or not path.is_file() or not path.is_relative_to(root):
            raise OSError("there is no such suite")
        return frozenset(_flags(load_suite(path).suite))
    except (OSError, ValueError, HarnessError) as error:
        say(
            f"{one_line(str(checkout))}: {one_line(suite)}: its flags are in no command, since it cannot be read there "
            f"({one_line(str(error))})"
        )
        return frozenset()


def _flags(suite: Suite) -> Iterator[str]:
    for device in suite.devices:
        yield from device.compile_flags
        yield from device.run_flags
    for variant in suite.variants:
        for flag_set in variant.flag_sets:
            yield from (*flag_set.compile, *flag_set.run)
        yield from (*variant.compile_flags, *variant.run_flags)
        plugins = _plugins(variant)
        for device in suite.devices if plugins else ():
            arranged = chain_of(suite, variant, device, plugins)
            flags = (*arranged.compile_flags, *arranged.run_flags)
            yield from (flag for flag in flags if not runs_code(flag))  # a reader does not load a plugin's code unasked


def _plugins(variant: Variant) -> tuple[Applied, ...]:
    """A variant's plugins; none where one of them is not installed here."""
    try:
        return tuple(apply_plugin(use.name, use.options, variant.name) for use in variant.plugins)
    except HarnessError:
        return ()


_IREE_TOOLS = ("iree-benchmark-module", "iree-compile", "iree-opt", "iree-run-module")
# Those that repeat or show something; the others post, delete, or ask a database.
_SUBCOMMANDS = ("compare", "explain", "export", "list", "report", "run")

# A name that hides nothing and leads nowhere, and several of them.
_NAME = r"[A-Za-z0-9_][A-Za-z0-9_.+-]*"
_PLAIN_NAME = re.compile(_NAME)
_PLAIN_PATH = re.compile(rf"{_NAME}(?:/{_NAME})*")
_MODULE_FILE = re.compile(rf"{_NAME}(?:/{_NAME})*\.vmfb")

# Of runs that are older than the form that STATISTICS_FLAGS ask for.
_EARLIER = ("--iree-scheduling-dump-statistics-format=json", "--iree-scheduling-dump-statistics-file=statistics.json")
_ALWAYS = frozenset((*REPRODUCIBLE_FLAGS, *STATISTICS_FLAGS, *_EARLIER))
# Flags that the harness gives by itself: where to stop and to go on, what to run with what, and where outputs go.
_GIVEN = re.compile(
    r"--compile-(?:from|to)=[a-z-]+|--emit-mlir-bytecode"
    rf"|--module=(?:{_NAME}/)*{_NAME}\.vmfb|--function=[\w.$-]+"
    r"|--device=[a-z][a-z0-9-]*(?:://[\w.:/?=&-]*)?|--task_topology_group_count=\d+"
    rf"|--(?:input|expected_output)=[^@]*(?:@(?:{_NAME}/)*{_NAME}\.(?:npy|bin))?"
    rf"|--parameters=(?:[\w.-]+=)?(?:{_NAME}/)*{_NAME}"
    rf"|--output=(?:@(?:{_NAME}/)*{_NAME}\.(?:npy|bin))?"
    r"|--benchmark_(?:repetitions|min_time)=\w+(?:\.\w+)?|--time_unit=[mun]s|--print_statistics=true"
)

# Where a word may name a file: after `=`, `@` and the like, as in --parameters=scope=x.irpa or --input=4xf32=@x.npy.
_BETWEEN = re.compile(r"[=@:,\s]")
_LEADS_AWAY = re.compile(r"[/\\~]|[A-Za-z]:[/\\]")

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


def with_allowed_commands(comparison: Comparison, flags: Collection[str] = ()) -> Comparison:
    """The comparison as a comment has it, with those of its commands that repeat something and can do nothing else."""
    portable = portable_comparison(comparison)  # first: it takes paths of the machine out, and so changes commands
    return replace(
        portable,
        id=_id(portable.id),
        base=replace(portable.base, suite=_argument(portable.base.suite)),
        head=replace(portable.head, suite=_argument(portable.head.suite)),
        rows=tuple(replace(row, repro=_allowed(row.repro, flags)) for row in portable.rows),
        command=_whole(portable.command),
        explained=tuple(replace(each, explanation=_id(each.explanation)) for each in portable.explained),
    )


def report_with_allowed_commands(report: Report, flags: Collection[str] = ()) -> Report:
    """A run's report, with those of its commands that repeat something and can do nothing else."""
    facts = report.facts
    # Where the command names releases, a step names those of the rows.
    is_plain = not any(version.startswith("-") for section in report.sections for version in section.toolchains)
    sections = (
        replace(section, rows=tuple(replace(row, repro=_allowed(row.repro, flags)) for row in section.rows))
        for section in report.sections
    )
    return replace(
        report,
        facts=replace(
            facts,
            id=_id(facts.id),
            suite=_argument(facts.suite),
            command=_whole(facts.command) if is_plain else (),
            # A fleet's steps say --fleet, and whoever pastes one would join whatever has that address.
            settings={name: value for name, value in facts.settings.items() if name != "fleet"},
        ),
        sections=tuple(sections),
    )


def is_allowed(line: str, flags: Collection[str] = ()) -> bool:
    """Whether the harness writes such a line, and whoever pastes it only measures again.

    It is one of the harness's comments; or one of its commands, or of IREE's tools, with words that a shell leaves
    alone, that load no code, and that write nothing but a module or an exported model below the reader's folder. A tool
    gets flags that the harness gives to all, and these.
    """
    return _kept(line, flags) == line


def _allowed(lines: Sequence[str], flags: Collection[str]) -> tuple[str, ...]:
    """The lines that may stand; the tools' lines belong together, since each takes what the one before it made."""
    kept = [(line, _kept(line, flags)) for line in lines]
    broken = any(left is None and line.startswith(_IREE_TOOLS) for line, left in kept)
    return tuple(left for _, left in kept if left is not None and not (broken and left.startswith(_IREE_TOOLS)))


def _kept(line: str, flags: Collection[str]) -> str | None:
    """The line, or as much of it as may stand; None: nothing."""
    if line.startswith("harness compare ") and "--prepare" in line:
        return _without_prepare(line)
    if line != one_line(line) or not line.isprintable():
        return None
    if not line.startswith("#"):
        return line if _is_command(line, flags) else None
    if _NO_MODULE.fullmatch(line):
        return line
    if (tools := _TOOLS_OF.fullmatch(line)) is not None:
        return line if tools[1] == tools[2] == tools[3] else None
    if (module := _MODULE.fullmatch(line)) is not None:
        compiled = module[2] or ""
        return line if compiled.startswith("iree-compile ") and _is_command(compiled, flags) else module[1]
    return None


def _without_prepare(line: str) -> str | None:
    """A command without the lines of shell that prepare each tree: an artifact may bring none."""
    try:
        words = shlex.split(line)
        place = words.index("--prepare")
    except ValueError:
        return None
    rest = shlex.join([*words[:place], *words[place + 2 :]])
    return f"{rest} # and --prepare, as the workflow has it" if _is_command(rest) else None


def _is_command(line: str, flags: Collection[str] = ()) -> bool:
    try:
        words = shlex.split(line)
    except ValueError:
        return False
    while words and _VARIABLE.fullmatch(words[0]):
        line = line.removeprefix(words.pop(0)).lstrip(" ")
    return _are_harmless(words, flags) and shlex.join(words) == line


def _whole(command: tuple[str, ...]) -> tuple[str, ...]:
    """A command that steps are made from; none of it where a line of it is not allowed."""
    return command if command[:1] == ("harness",) and is_allowed(shlex.join(command)) else ()


def _argument(path: str) -> str:
    """A path that no command takes for an option or a file of options."""
    return f"./{path}" if path.startswith(("-", "@")) else path


def _id(name: str) -> str:
    """The name of a folder in results/; none where it would lead elsewhere."""
    return name if _ID.fullmatch(name) else ""


def _are_harmless(words: Sequence[str], flags: Collection[str]) -> bool:
    """Whether these words, as one command, are the harness's or IREE's, load no code and write nowhere unexpected."""
    if len(words) < 2 or any(_leads_away(word) or word.startswith("@") for word in words):
        return False
    if words[0] == "harness":
        return words[1] in _SUBCOMMANDS and all(
            _may_stand(name, value, words[1]) for name, value in _options(words[2:])
        )
    return words[0] in _IREE_TOOLS and _are_of_a_tool(words[1:], flags)


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
    return not name.endswith("-out") and name not in ("step-summary", "api-url", "prepare")


def _are_of_a_tool(words: Sequence[str], flags: Collection[str]) -> bool:
    """Whether these are a model, a module to write, and flags that the harness or the base's suite gives."""
    for position, word in enumerate(words):
        if word == "-o":
            following = words[position + 1] if position + 1 < len(words) else ""
            if not _MODULE_FILE.fullmatch(following):
                return False
        elif word.startswith("-") and not (word in _ALWAYS or word in flags or _GIVEN.fullmatch(word)):
            return False
    return True
