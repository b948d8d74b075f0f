"""A run under way, as stages get it; each argument is what the test is about."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from harness.progress import Silent
from harness.records.case import Case
from harness.stages.context import Context, Done
from harness.stages.options import RunOptions
from harness.stages.prepare import Prepared
from harness.store.run_directory import RunDirectory
from harness.suite.load import LoadedSuite, Suite
from harness.toolchain import Toolchain
from tests.builders import a_suite


def a_prepared(
    toolchain: Toolchain, cases: Sequence[Case], suite: Suite | None = None, peers: Mapping[str, Any] | None = None
) -> Prepared:
    """A plan without plugins."""
    return Prepared(
        loaded=LoadedSuite(suite=suite or a_suite(), text_sha256=""),
        toolchains=(toolchain,),
        plugins={},
        peers=dict(peers or {}),
        cases=tuple(cases),
        devices={},
    )


def a_context(prepared: Prepared, directory: RunDirectory, done: Done | None = None) -> Context:
    """A run of that plan into that directory, which nobody watches."""
    options = RunOptions(Path("suite.toml"), results=directory.path.parent, jobs=2, call_timeout_s=1.0)
    return Context(prepared=prepared, options=options, directory=directory, done=done or Done(), progress=Silent())
