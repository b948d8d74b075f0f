"""[Build] -> what is ready to run: compiled cases in folders of their own, and models for peers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from harness.cache import cache_root
from harness.compile import BuildCache
from harness.machine.pinning import usable_cores
from harness.measure import last_core
from harness.models.bench_folder import lay_out
from harness.models.materialize import ModelArtifact
from harness.peers.worker import LoadablePeer
from harness.records.case import Case
from harness.records.run import Failure
from harness.stages.build import Batch
from harness.stages.peers import peer_model
from harness.stages.prepare import Prepared
from harness.verify import AnyRunnable, Runnable, RunnablePeer


def lay_out_stage(
    prepared: Prepared,
    artifacts: Mapping[str, ModelArtifact | Failure],
    batch: Batch,
    scratch: Path,
    *,
    peers: bool,
) -> list[AnyRunnable]:
    """Make every case of a batch ready that compiled, in the plan's order.

    Args:
        peers: Whether those of peers are wanted too.
    """
    ready = _ready(prepared, artifacts, batch, scratch)
    return [one for one in ready if peers or isinstance(one, Runnable)]


def _ready(
    prepared: Prepared, artifacts: Mapping[str, ModelArtifact | Failure], batch: Batch, scratch: Path
) -> Iterator[AnyRunnable]:
    cache = BuildCache(cache_root())
    pinned = last_core()
    for number, case in enumerate(prepared.cases):
        build, artifact = batch.builds.get(case.name), artifacts.get(case.model)
        cpus = pinned if case.pin else None
        if case.model not in batch.models or case.skip is not None or not isinstance(artifact, ModelArtifact):
            continue
        if case.peer is not None:
            yield RunnablePeer(case=case, artifact=artifact, loadable=_peer(prepared, case, artifact), cpus=cpus)
        elif build is not None and build.failure is None:
            yield Runnable(
                case=case,
                build=build,
                artifact=artifact,
                bench=lay_out(scratch / str(number), cache.module(build), artifact, cache.files(build)),
                toolchain=prepared.toolchain_of(case),
                cpus=cpus,
            )


def _peer(prepared: Prepared, case: Case, artifact: ModelArtifact) -> LoadablePeer:
    model = next(one for one in prepared.suite.models if one.name == case.model)
    return LoadablePeer(
        name=case.name,
        peer=prepared.peers[case.variant],
        model=peer_model(model, artifact),
        arguments=tuple(argument.for_worker() for argument in artifact.arguments),
        threads=case.threads or usable_cores(),
        cache=cache_root() / "peers" / case.variant,
    )
