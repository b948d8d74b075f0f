"""Cases that are ready to run: compiled ones in their folders, and those of peers."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.errors import CaseError
from harness.measure.values import Group
from harness.models.bench_folder import MODULE_FILE, BenchFolder
from harness.models.materialize import ModelArtifact
from harness.peers.worker import LoadablePeer
from harness.process import Limits
from harness.records.case import Case
from harness.records.run import Build
from harness.toolchain import Toolchain
from harness.verify.module_devices import misfit, module_devices
from harness.verify.outputs import Array, load_array, run_command, run_once


@dataclass(frozen=True, kw_only=True)
class Runnable:
    """A compiled case in its folder, ready to run.

    Attributes:
        toolchain: That compiled it, and runs it.
        cpus: Cores to hold its processes on; None: wherever the system puts them.
    """

    case: Case
    build: Build
    artifact: ModelArtifact
    bench: BenchFolder
    toolchain: Toolchain
    cpus: frozenset[int] | None

    @property
    def command(self) -> tuple[str, ...]:
        """The iree-run-module command line that gives its outputs."""
        return run_command(
            function=self.artifact.function,
            inputs=self.bench.inputs,
            parameters=self.bench.parameters,
            uri=self.case.uri,
            more_uris=self.case.more_uris,
            run_flags=self.case.run_flags,
            outputs=self.build.outputs or 0,
        )

    def outputs(self, limits: Limits) -> Sequence[Array]:
        """Run it once.

        Raises:
            CaseError: Its devices are not those of the case, or it failed (stage `verify`).
        """
        if problem := misfit(module_devices(self.bench.folder / MODULE_FILE), self.case.uris):
            raise CaseError("verify", problem)
        return run_once(
            self.toolchain,
            self.command,
            self.bench.folder,
            limits=limits,
            cpus=self.cpus,
            environment=self.case.environment,
        )


@dataclass(frozen=True, kw_only=True)
class RunnablePeer:
    """A case of a peer, ready to run."""

    case: Case
    artifact: ModelArtifact
    loadable: LoadablePeer
    cpus: frozenset[int] | None

    @property
    def command(self) -> tuple[str, ...]:
        """None: its worker is asked."""
        return ()

    def outputs(self, limits: Limits) -> Sequence[Array]:
        """Run it once, in a worker as it is timed in.

        Raises:
            CaseError: The peer refused the model, failed, died or gave no arrays (stage `verify`).
        """
        group = Group(name=self.case.group, uri=self.case.uri, cases=(), cpus=self.cpus)
        with tempfile.TemporaryDirectory(prefix="harness-peer-") as folder:
            try:
                with self.loadable.worker(group, limits) as worker:
                    worker.load(self.case.name, self.loadable.request())
                    answer = worker.ask(op="outputs", case=self.case.name, folder=folder)
                return [load_array(Path(folder) / f"output{one}.npy") for one in range(int(answer["outputs"]))]
            except CaseError as error:
                raise CaseError("verify", f"{self.loadable.peer.peer.title}: {error}", error.stderr) from None
            except ValueError as error:
                raise CaseError("verify", f"{self.loadable.peer.peer.title}: an output {error}") from None


AnyRunnable = Runnable | RunnablePeer
