"""Command lines that repeat a row, and what identifies the two modules behind it."""

from __future__ import annotations

import glob
import shlex
from collections.abc import Sequence
from functools import lru_cache

from harness.compare.pairs import Pair, Side
from harness.compare.sides import is_toolchain
from harness.metrics import COMPILE_TIME, LATENCY
from harness.records.case import Case
from harness.records.comparison import Row, altered

_HASH_DIGITS = 12  # as many as people compare by eye


def with_repro(row: Row, pair: Pair, base: Side, head: Side, options: Sequence[str], *, within: bool) -> Row:
    """The row with the command that repeats it and one comment line for each side; timed rows alone have any.

    Args:
        options: Of `harness compare`, which made the comparison what it is.
        within: Whether both sides are variants of one run.
    """
    if row.metric not in (LATENCY.name, COMPILE_TIME.name):
        return row
    control = ["--controls", "1"] if row.control else []
    command = [
        "harness",
        "compare",
        *_sides(base, head, within=within),
        "--filter",
        glob.escape(row.case),
        *control,
        *options,
    ]
    return altered(row, repro=(shlex.join(command), _module("base", pair.base, base), _module("head", pair.head, head)))


def _sides(base: Side, head: Side, *, within: bool) -> list[str]:
    if within:
        return ["--within", head.label]
    suites = [side.run.header.suite for side in (base, head) if is_toolchain(side.label)]
    return [base.label, head.label, *(["--suite", suites[0]] if suites else [])]


def _module(word: str, case: Case | None, side: Side) -> str:
    """A comment of one line, whatever a flag holds."""
    if case is None:
        return f"# {word}: has no such case"
    build = side.evidence.builds.get(case.name)
    if build is None or not build.command:
        return f"# {word}: was never compiled"
    module = f"module {build.module_sha256[:_HASH_DIGITS]}" if build.module_sha256 else "no module"
    return f"# {word}: {module}, {_line(build.command)}"


@lru_cache(maxsize=1024)  # cases of one variant on one device have one command
def _line(command: tuple[str, ...]) -> str:
    return " ".join(shlex.join(command).split())
