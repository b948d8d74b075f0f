"""A run under way, as stages get it; each argument is what the test is about."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.models.materialize import ModelArtifact
from harness.process import Limits
from harness.progress import Silent
from harness.records.case import Case
from harness.records.run import Build, Run
from harness.stages.ir import Compiled
from harness.stages.options import RunOptions
from harness.stages.prepare import Context, Done, FailureNotes, GivenUp, Prepared
from harness.store.run_directory import RunDirectory, load_run
from harness.suite.load import LoadedSuite, Suite
from harness.toolchain import Toolchain
from tests.builders import a_suite, make_artifact, make_header
from tests.fakes.fake_toolchain import make_fake_toolchain


class UnderWay:
    """A run with a scripted toolchain and a cache of its own."""

    def __init__(self, folder: Path) -> None:
        self.toolchain: Toolchain = make_fake_toolchain(folder / "tools")
        self.directory = RunDirectory.create(folder, make_header())
        self.artifact: ModelArtifact = make_artifact(folder / "net.mlir", arguments=())

    def prepared(
        self, cases: Iterable[Case], suite: Suite | None = None, peers: Mapping[str, Any] | None = None
    ) -> Prepared:
        """A plan without plugins."""
        return Prepared(
            loaded=LoadedSuite(suite=suite or a_suite(), text_sha256=""),
            toolchains=(self.toolchain,),
            plugins={},
            peers=dict(peers or {}),
            cases=tuple(cases),
            devices={},
        )

    def context(self, cases: Iterable[Case], suite: Suite | None = None, done: Done | None = None) -> Context:
        """That plan's run, which nobody watches."""
        options = RunOptions(Path("suite.toml"), results=self.directory.path.parent, jobs=2, call_timeout_s=1.0)
        prepared = self.prepared(cases, suite)
        return Context(
            prepared=prepared,
            options=options,
            directory=self.directory,
            done=done or Done(),
            progress=Silent(),
            failures=FailureNotes(Silent()),
            given_up=GivenUp(keep_going=False),
        )

    def compiled(self, build: Build) -> Compiled:
        """A build of the model."""
        return Compiled.of(build, self.artifact, self.artifact.mlir, self.toolchain, Limits())

    def sized(self, mlir_bytes: int) -> ModelArtifact:
        """A model of that size."""
        return replace(self.artifact, mlir_bytes=mlir_bytes)

    @property
    def run(self) -> Run:
        """What is on disk so far."""
        return load_run(self.directory.path)


@pytest.fixture
def under_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> UnderWay:
    monkeypatch.setenv("HARNESS_CACHE", str(tmp_path / "cache"))
    return UnderWay(tmp_path)
