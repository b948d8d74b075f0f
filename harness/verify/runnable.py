"""Cases that are ready to run: a compiled module in its folder, or a peer that reads the model."""

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.errors import CaseError
from harness.measure.session import Group
from harness.models.materialize import MODULE_FILE, BenchFolder, ModelArtifact
from harness.peers.worker import LoadablePeer
from harness.process import Limits
from harness.records.case import Case
from harness.records.run import Build
from harness.toolchain import Toolchain
from harness.verify.outputs import Array, ModuleCall, load_array, misfit, module_devices, run_command, run_once


@dataclass(frozen=True, kw_only=True)
class Runnable:
    """A compiled case in its folder, ready to run."""

    case: Case
    build: Build
    artifact: ModelArtifact
    bench: BenchFolder
    toolchain: Toolchain  # The toolchain that compiled it and runs it
    cpus: frozenset[int] | None  # Cores to hold its processes on; None: wherever the system puts them
    note: str = ""  # What a reader should know of how it is called

    @property
    def call(self) -> ModuleCall:
        """The call that IREE's runtime tools make."""
        return ModuleCall(
            toolchain=self.toolchain,
            folder=self.bench.folder,
            function=self.artifact.function,
            inputs=self.bench.inputs,
            parameters=self.bench.parameters,
            uris=self.case.uris,
            run_flags=self.case.run_flags,
            cpus=self.cpus,
            environment=self.case.environment,
        )

    @property
    def command(self) -> tuple[str, ...]:
        """The iree-run-module command line that gives its outputs."""
        return run_command(self.call, self.build.outputs or 0)

    def outputs(self, limits: Limits) -> Sequence[Array]:
        """Run it once."""
        if problem := misfit(module_devices(self.bench.folder / MODULE_FILE), self.case.uris):
            raise CaseError("verify", problem)
        return run_once(self.call, self.build.outputs or 0, limits)


@dataclass(frozen=True, kw_only=True)
class RunnablePeer:
    """A case of a peer, ready to run."""

    case: Case
    artifact: ModelArtifact
    loadable: LoadablePeer
    cpus: frozenset[int] | None

    @property
    def command(self) -> tuple[str, ...]:
        """Empty: its worker gives its outputs, and no command line does."""
        return ()

    def outputs(self, limits: Limits) -> Sequence[Array]:
        """Run it once, in a worker as it is timed in."""
        group = Group(name=self.case.group, uri=self.case.uri, cases=(), cpus=self.cpus)
        with tempfile.TemporaryDirectory(prefix="harness-peer-") as folder:
            try:
                with self.loadable.worker(group, limits) as worker:
                    worker.load(self.case.name, self.loadable.request())
                    answer = worker.ask(op="outputs", case=self.case.name, folder=folder)
                files = [Path(folder) / f"output{position}.npy" for position in range(int(answer["outputs"]))]
                return [load_array(file) for file in files]
            except CaseError as error:
                raise CaseError("verify", f"{self.loadable.peer.peer.title}: {error}", error.stderr) from None
            except ValueError as error:
                raise CaseError("verify", f"{self.loadable.peer.peer.title}: an output {error}") from None


AnyRunnable = Runnable | RunnablePeer
