"""A host that can be killed: `python -m benchmarks.fleet.faulty_host ADDRESS NAME EVENTS WORK`.

It is the harness's own worker, nanny and all; only what compiles and measures is simulated. Its files lie in its own
cache, and are sent and checked as ever.
"""

import asyncio
import sys
from pathlib import Path
from typing import Any

from distributed.worker import Worker as DaskWorker

from benchmarks.fleet.made import offer_of
from benchmarks.fleet.sizes import Work, work_in
from benchmarks.fleet.work import install
from harness.fleet import processes
from harness.fleet.access import access_to
from harness.fleet.placing import Offer
from harness.fleet.processes import HostPlugin, serve_worker
from harness.process import Limits

_work: Work | None = None
_events = Path()


class SimulatedHost(HostPlugin):
    """A host whose work is simulated from the start of its worker process on."""

    def __init__(self, offer: Offer, limits: Limits) -> None:
        super().__init__(offer, limits)
        self._simulated = (_work, _events)

    def setup(self, worker: DaskWorker) -> None:
        """Be the host from here on."""
        super().setup(worker)
        work, events = self._simulated
        assert work is not None
        install(work, events, on_disk=True)


def main(address: str, name: str, events: str, work: str) -> None:
    """Take part until a signal ends it."""
    global _work, _events
    _work, _events = work_in(work), Path(events)
    changed: Any = processes
    changed.HostPlugin = SimulatedHost
    access = access_to(address, "ADDRESS", None, trust_network=False)
    asyncio.run(
        serve_worker(access, offer_of(name, _work.cores), Limits(seconds=60.0), lambda text: print(text, flush=True))
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
