"""Many simulated hosts in one process: `python -m benchmarks.fleet.crowd ADDRESS EVENTS WORK NAME...`.

Each is a Dask worker of its own with its own threads, connections and resources, on the one event loop. Only the
process is shared, and with it what the hosts' own Python takes.
"""

import asyncio
import sys
import tempfile
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path

import dask
from distributed.worker import Worker

from benchmarks.fleet.made import offer_of
from benchmarks.fleet.sizes import Work, work_in
from benchmarks.fleet.work import install
from harness.fleet.placing import OFFER_KEY, Offer, to_text
from harness.fleet.processes import COMPILE, MEASURE, OTHER_THREADS, WORKER_SETTINGS, stopped_by_signal

JOINED = "all have joined"


async def serve(address: str, names: list[str], work: Work) -> None:
    """Take part until a signal ends it."""
    offer = offer_of("", work.cores)
    async with stopped_by_signal() as stop, AsyncExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="fleet-crowd-"))
        for name in names:
            await stack.enter_async_context(_worker(address, replace(offer, name=name), folder))
        print(JOINED, flush=True)
        await stop.wait()


def _worker(address: str, offer: Offer, folder: str) -> Worker:
    return Worker(
        address,
        name=offer.name,
        nthreads=offer.cores + OTHER_THREADS,
        resources={COMPILE: offer.cores, MEASURE: 1},
        host="127.0.0.1",
        memory_limit=0,
        dashboard=False,
        local_directory=folder,
        startup_information={OFFER_KEY: lambda _: to_text(offer)},
    )


def main(address: str, events: str, work: str, *names: str) -> None:
    """Simulate hosts of these names."""
    wanted = work_in(work)
    install(wanted, Path(events), on_disk=False)
    with dask.config.set(WORKER_SETTINGS):
        asyncio.run(serve(address, list(names), wanted))


if __name__ == "__main__":
    main(*sys.argv[1:])
