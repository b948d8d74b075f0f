"""The commands of a comment, made anew from checked figures.

A reader copies them into a shell because the comment has them, and the figures come from a job that ran a pull
request's code. So no command line of an artifact is taken over: each is put together here of words of a known form, and
does nothing but compare, or run, in the folder where it is pasted. Where a word has another form there is no command.
"""

import glob
import re
import shlex
from dataclasses import replace

from harness.compare.pairs import TOOLCHAIN_PREFIX
from harness.metrics import LATENCY, TIMED
from harness.records.comparison import Comparison, Row, SideFacts
from harness.report.github import portable_comparison
from harness.report.run_report import Report

_NAME = r"[A-Za-z0-9_][A-Za-z0-9_.+-]*"
_ID = re.compile(_NAME)
_SUITE = re.compile(rf"{_NAME}(?:/{_NAME})*\.toml")
_RELEASE = re.compile(r"[0-9][0-9A-Za-z.+-]{0,60}")
_COMMIT = re.compile(r"[0-9a-f]{40}")
# What harness.compare.rows says of a side's module, but for the flags that follow.
_MODULE = re.compile(r"# (?:base|head): (?:module [0-9a-f]{12}|no module|has no such case|was never compiled)")


def comparison_with_own_commands(comparison: Comparison) -> Comparison:
    """The comparison as a comment has it."""
    portable = portable_comparison(comparison)
    command = _comparing(portable)
    return replace(
        portable,
        id=_id(portable.id),
        base=replace(portable.base, suite=_argument(portable.base.suite)),
        head=replace(portable.head, suite=_argument(portable.head.suite)),
        rows=tuple(replace(row, repro=_repeating(row, command, _prepares(comparison))) for row in portable.rows),
        command=command,
        explained=tuple(replace(each, explanation=_id(each.explanation)) for each in portable.explained),
    )


def report_with_own_commands(report: Report) -> Report:
    """A run's report as a comment has it."""
    header = report.header
    versions = dict.fromkeys(version for section in report.sections for version in section.toolchains)
    releases = list(versions) if any(word.startswith("--toolchain") for word in header.command) else []
    is_plain = _SUITE.fullmatch(header.suite) and all(map(_RELEASE.fullmatch, releases))
    options = [word for release in releases for word in ("--toolchain", release)]
    command = ("harness", "run", header.suite, *options) if is_plain else ()
    sections = (
        replace(section, rows=tuple(replace(row, repro=_of_case(command, row.case)) for row in section.rows))
        for section in report.sections
    )
    header = replace(
        header,
        id=_id(header.id),
        suite=_argument(header.suite),
        command=command,
        # A fleet's steps say --fleet, and whoever pastes one would join whatever has that address.
        settings={name: value for name, value in header.settings.items() if name != "fleet"},
    )
    return replace(report, run=replace(report.run, header=header), sections=tuple(sections))


def _comparing(comparison: Comparison) -> tuple[str, ...]:
    """The command that compares both sides again; () where one of them cannot be named."""
    if comparison.within:
        run = _id(comparison.head.run)
        return ("harness", "compare", "--within", f"results/{run}") if run else ()
    sides = [_side(side) for side in (comparison.base, comparison.head)]
    suite: tuple[str, ...] = ()
    if not all(side.startswith("results/") for side in sides):
        suite = ("--suite", comparison.head.suite)
    if not all(sides) or (suite and not _SUITE.fullmatch(suite[1])):
        return ()
    return ("harness", "compare", *sides, *suite)


def _side(side: SideFacts) -> str:
    if _COMMIT.fullmatch(side.commit):
        return side.commit
    if side.label.startswith(TOOLCHAIN_PREFIX):
        return side.label if _RELEASE.fullmatch(side.label.removeprefix(TOOLCHAIN_PREFIX)) else ""
    return f"results/{side.run}" if _ID.fullmatch(side.run) else ""


def _prepares(comparison: Comparison) -> bool:
    """Whether lines of shell prepare each tree, of which an artifact may bring none."""
    return any(word.partition("=")[0] == "--prepare" for word in comparison.command)


def _repeating(row: Row, command: tuple[str, ...], prepares: bool) -> tuple[str, ...]:
    """The command that repeats a row, and what each side's module was; timed rows alone have any."""
    if row.metric not in TIMED:
        return ()
    more = ["--controls", "1"] if row.control else []
    more += [] if row.metric == LATENCY.name else ["--metric", row.metric]
    modules = [found[0] for line in row.repro if (found := _MODULE.match(line))]
    note = " # and --prepare, as the workflow has it" if prepares else ""
    lines = [f"{line}{note}" for line in _of_case(command, row.case, *more)]
    return (*lines, *modules) if lines else ()


def _of_case(command: tuple[str, ...], case: str, *more: str) -> tuple[str, ...]:
    if not command or not case.isprintable() or not case[:1].isalnum():
        return ()
    return (shlex.join([*command, "--filter", glob.escape(case), *more]),)


def _argument(path: str) -> str:
    """A path that no command takes for an option or a file of options."""
    return f"./{path}" if path.startswith(("-", "@")) else path


def _id(name: str) -> str:
    """The name of a folder in results/; none where it would lead elsewhere."""
    return name if _ID.fullmatch(name) else ""
