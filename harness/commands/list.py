"""What `harness list` does, of one suite; harness.commands.lists has lists of them."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Literal

from harness.commands.cases import cases_record, planned_cases, print_cases
from harness.errors import ExitCode
from harness.records.run import SCHEMA_VERSION
from harness.suite.cases import Selection


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
    from harness.suite.load import find_list

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
