"""A run under way, as stages get it; each argument is what the test is about."""

from collections.abc import Iterable, Mapping
from pathlib import Path

import pytest

from harness.models.materialize import ModelArtifact
from harness.progress import Progress
from harness.records.case import Case
from harness.records.run import Failure, Run
from harness.stages.options import RunOptions
from harness.stages.prepare import Context, Done, FailureNotes, GivenUp, Prepared
from harness.store.run_directory import RunDirectory, load_run
from harness.suite.load import Suite
from harness.toolchain import Toolchain
from tests.builders import FLAGS, SUITE, Notes, a_suite, make_artifact, make_header
from tests.fakes.fake_toolchain import make_fake_toolchain

AT_END, FILE = "at the suite's end", "flags.toml"


def lay_out_suite(changes: Mapping[str, str] | None = None, *, program: str = "module {}") -> Path:
    """The small suite in the current folder, with pieces of its text replaced, more at its end, or other flag sets."""
    changes = {**(changes or {})}
    Path("net.mlir").write_text(program)
    Path(FILE).write_text(changes.pop(FILE, FLAGS))
    text = SUITE + changes.pop(AT_END, "")
    for old, new in changes.items():
        assert text.count(old) == 1
        text = text.replace(old, new)
    Path("suite.toml").write_text(text)
    return Path("suite.toml")


class UnderWay:
    """A run with a scripted toolchain and a cache of its own."""

    def __init__(self, folder: Path) -> None:
        self.toolchain: Toolchain = make_fake_toolchain(folder / "tools")
        self.directory = RunDirectory.create(folder, make_header())
        self.artifact: ModelArtifact = make_artifact(folder / "net.mlir", arguments=())
        self.notes = Notes()  # What is said of failures

    def prepared(self, cases: Iterable[Case], suite: Suite | None = None) -> Prepared:
        """A plan without plugins."""
        return Prepared(
            suite=suite or a_suite(),
            toolchains=(self.toolchain,),
            plugins={},
            peers={},
            cases=tuple(cases),
            devices={},
        )

    def context(
        self,
        cases: Iterable[Case],
        suite: Suite | None = None,
        done: Run | None = None,
        artifacts: Mapping[str, ModelArtifact | Failure] | None = None,
        *,
        keep_going: bool = False,
    ) -> Context:
        """That plan's run."""
        return Context(
            prepared=self.prepared(cases, suite),
            artifacts=artifacts or {"net": self.artifact},
            options=RunOptions(Path("suite.toml"), results=self.directory.path.parent, jobs=2, call_timeout_s=1.0),
            directory=self.directory,
            done=Done(done or self.begun),
            progress=Progress(),
            failures=FailureNotes(self.notes),
            given_up=GivenUp(keep_going=keep_going),
        )

    @property
    def begun(self) -> Run:
        """A run that has nothing yet."""
        return Run(header=self.directory.header)

    @property
    def run(self) -> Run:
        """What is on disk so far."""
        return load_run(self.directory.path)


@pytest.fixture
def under_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> UnderWay:
    monkeypatch.setenv("HARNESS_CACHE", str(tmp_path / "cache"))
    return UnderWay(tmp_path)
