"""A fleet as the place where a run is done: its devices are those of its hosts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from harness.cache import cache_root, sweep_writing
from harness.compare.comparison import Plan
from harness.compile import BuildCache
from harness.errors import PlaceGone, UsageError
from harness.fleet import dispatch
from harness.fleet.connection import Fleet
from harness.fleet.offer import Offer
from harness.fleet.placing import devices_of_fleet
from harness.fleet.rows import FleetRows
from harness.fleet.run import FleetRun
from harness.models.materialize import ModelArtifact
from harness.peers.peer import AppliedPeer
from harness.progress import Progress
from harness.records.run import Failure
from harness.stages.context import Context
from harness.stages.count import ir_stage, work_stage
from harness.stages.run import Executor
from harness.store.run_directory import load_run
from harness.store.work_directory import ComparisonDirectory
from harness.suite.devices import Presence, each_host, patterns_on_each
from harness.suite.load import Suite
from harness.toolchain import Toolchain
from harness.verify.kept import trim_outputs


class FleetBench(Executor):
    """A fleet, to which this process is connected, in the place of this machine.

    It is planned for the hosts that are there when it is made; later ones help.
    """

    def __init__(
        self, fleet: Fleet, like: Mapping[str, str] | None = None, planned: Mapping[str, str] | None = None
    ) -> None:
        """Look at who is there."""
        self._fleet, self._like = fleet, like or {}
        offers = fleet.await_host(dispatch.RETURN_S if planned else 0.0)  # the last one may have gone, and come back
        if not offers.usable:
            said = "; ".join(offers.refused.values())
            raise UsageError(
                f"{fleet.access}: no host has joined{f' that can be used ({said})' if said else ''}; start"
                " `harness fleet worker` on one"
            )
        self._offers: tuple[Offer, ...] = tuple(offers.usable.values())
        self.hosts = dict(planned or {offer.name: offer.machine_class for offer in self._offers})

    @property
    def address(self) -> str:
        """Of the scheduler."""
        return str(self._fleet.access)

    def following(self, runs: Sequence[Path]) -> FleetBench:
        """The same fleet, planned as for these runs: groups go to the hosts that have theirs."""
        like, planned = dict(self._like), dict[str, str]()
        for path in runs:
            run = load_run(path, rounds=False)
            like.update(run.host_of_group)
            planned.update(run.header.settings.get("hosts", {}))
        try:
            return FleetBench(self._fleet, like, planned)
        except UsageError as error:
            raise PlaceGone(str(error)) from error

    def rows(self, plan: Plan, directory: ComparisonDirectory, progress: Progress, noise: float) -> FleetRows:  # noqa: ARG002
        """The hosts, as the place where a comparison's rows are measured; each has a noise of its own."""
        return FleetRows(self._fleet, plan, directory, progress)

    def suite(self, suite: Suite) -> Suite:
        """The suite, with a device for each host where it says so."""
        return each_host(suite, self.hosts)

    def patterns(self, suite: Suite, patterns: tuple[str, ...]) -> tuple[str, ...]:
        """With `*@cpu`, the device of each host that is `cpu` in the suite."""
        return patterns_on_each(suite, self.hosts, patterns)

    def devices(self, suite: Suite, toolchain: Toolchain) -> Mapping[str, Presence]:  # noqa: ARG002 (Place's signature)
        """Each device that any host has, and why none has the others."""
        return devices_of_fleet(suite, self._offers)

    def missing(self, peer: AppliedPeer) -> str | None:
        """Why no host can use a peer; None: one can."""
        said = {offer.name: each.missing for offer in self._offers for each in offer.peers if each.name == peer.name}
        if any(reason is None for reason in said.values()):
            return None
        reasons = "; ".join(f"{name}: {reason}" for name, reason in sorted(said.items()))
        return f"no host of the fleet has {peer.name} ({reasons or 'none knows it'})"

    def run(self, context: Context, artifacts: Mapping[str, ModelArtifact | Failure], scratch: Path) -> None:  # noqa: ARG002
        """Compile, check and measure on the fleet's hosts; then count on this machine what builds and models have."""
        BuildCache(cache_root()).sweep()
        sweep_writing(cache_root())
        trim_outputs(cache_root())
        run = FleetRun(self._fleet, context, artifacts, self._like)
        try:
            self._fleet.await_host(dispatch.RETURN_S)
            self._fleet.run(run.do())
        except PlaceGone as gone:
            raise PlaceGone(gone.what, context.options.command_to_go_on(context.directory.path, self.address)) from gone
        ir_stage(context, artifacts, run.builds)
        if context.options.measure:
            work_stage(context, artifacts)
