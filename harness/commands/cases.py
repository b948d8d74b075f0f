"""A suite's cases on this machine, and how they are told; what `harness list` and `harness run` share."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.cache import environments_root
from harness.commands.output import tell
from harness.records.case import Case
from harness.suite.cases import Selection

if TYPE_CHECKING:
    from harness.toolchain.find import Toolchain


def find_toolchains(versions: tuple[str, ...], suite: Path, on_install: Callable[[str], None]) -> tuple[Toolchain, ...]:
    """The toolchains of these versions, installed where they are not here; () for none."""
    if not versions:
        return ()
    from harness.suite.load import load_suite
    from harness.toolchain import get_toolchains

    load_suite(suite)  # a suite that is wrong is told before minutes of installing
    return get_toolchains(versions, root=environments_root(), on_install=on_install)


def planned_cases(suite: Path, selection: Selection, versions: tuple[str, ...]) -> tuple[Case, ...]:
    """A suite's cases on this machine."""
    from harness.stages.prepare import prepare

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
