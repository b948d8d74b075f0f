"""What `harness list` does, of one suite; harness.commands.lists has lists of them."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal

from harness.commands.output import tell
from harness.commands.run import find_toolchains
from harness.errors import ExitCode
from harness.plan import Case, Selection
from harness.results.records import SCHEMA_VERSION


def list_command(
    suite: Path,
    patterns: tuple[str, ...],
    tags: tuple[str, ...],
    versions: tuple[str, ...],
    output_format: Literal["terminal", "json"],
    *,
    flags: bool,
) -> int:
    """`harness list`."""
    from harness.suite import find_list

    selection = Selection(patterns=patterns, tags=tags)
    if (suites := find_list(suite)) is not None:
        from harness.commands.lists import show_list

        return show_list(suites, selection, versions, output_format, flags=flags)
    cases = planned_cases(suite, selection, versions)
    if output_format == "json":
        document = {"schema_version": SCHEMA_VERSION, **cases_record(suite, cases)}
        sys.stdout.write(json.dumps(document, indent=2) + "\n")
    else:
        print_cases(cases, flags=flags)
    return ExitCode.OK


def planned_cases(suite: Path, selection: Selection, versions: tuple[str, ...]) -> tuple[Case, ...]:
    """A suite's cases on this machine."""
    from harness.prepare import prepare

    return prepare(suite, selection, find_toolchains(versions, suite, tell)).cases


def cases_record(suite: Path, cases: tuple[Case, ...]) -> dict[str, Any]:
    """A suite's cases for other programs."""
    return {"suite": suite.as_posix(), "cases": [asdict(case) for case in cases]}


def print_cases(cases: tuple[Case, ...], *, flags: bool) -> None:
    """A line for each case, and their number."""
    width = max(len(case.name) for case in cases)
    for case in cases:
        remark = f"skipped: {case.skip}" if case.skip else "expected to fail" if case.known_to_fail else ""
        sys.stdout.write(f"{case.name:<{width}}  {case.id}  {remark}".rstrip() + "\n")
        if flags:
            sys.stdout.write("".join(f"    {flag}\n" for flag in (*case.compile_flags, *case.run_flags)))
    skipped = sum(case.skip is not None for case in cases)
    sys.stdout.write(f"{len(cases)} cases, {skipped} of them skipped here\n")
