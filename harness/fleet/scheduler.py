"""`harness fleet scheduler`: Dask's own scheduler, which also knows hosts of the harness and says what they do.

It decides nothing about benchmarks. It has one operation more than Dask's: who is here, what each does and what waits
(`FACTS`). What a client has given no host yet, and why, it tells with an event of Dask's.
"""

import asyncio
import contextlib
import logging
import signal
import time
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any

import dask
from distributed.diagnostics.plugin import SchedulerPlugin
from distributed.scheduler import Scheduler

from harness.errors import UsageError
from harness.fleet.access import Access, bracketed
from harness.fleet.placing import HOSTS_TOPIC, OFFER_KEY, own_versions

# The operation of the scheduler that is the harness's; and of which topics clients tell what waits.
FACTS, WAITS_TOPIC = "harness_facts", "harness-waits-"
_DASKS_OWN = "fire-and-forget"  # a client that is always there

# Dask would keep the last thousand messages of each connection for its developers: of each host, files and all.
FORGET_MESSAGES = {"distributed.admin.low-level-log-length": 0}
_SETTINGS = {
    **FORGET_MESSAGES,
    # A task is pinned to a host, because its module, its CPU or its group's earlier generations are there.
    "distributed.scheduler.work-stealing": False,
    # A task whose host died is the client's to place anew: it knows what else was to run there.
    "distributed.scheduler.allowed-failures": 0,
    # Dask opens a port for pages in any case; it is for this machine, and answers only whether it lives.
    "distributed.scheduler.http.routes": ["distributed.http.health"],
}
_SIGNALS = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]


class FleetPlugin(SchedulerPlugin):
    """What the scheduler knows of hosts beyond Dask."""

    name = "harness-fleet"

    def __init__(self, scheduler: Scheduler, say: Callable[[str], None]) -> None:
        self._scheduler, self._say = scheduler, say
        self._hosts: dict[str, str] = {}  # of all that ever joined: name by address
        self._waits: dict[str, Mapping[str, int]] = {}  # by client: how much waits, by why
        scheduler.handlers[FACTS] = self.facts

    def add_worker(self, scheduler: Scheduler, worker: str) -> None:
        """A host has joined."""
        self._hosts[worker] = str(scheduler.workers[worker].name)
        self._tell("joined", worker)

    def remove_worker(self, scheduler: Scheduler, worker: str, **_: Any) -> None:  # noqa: ARG002 (Dask's signature)
        """A host has left, by itself or not."""
        self._tell("left", worker)

    def log_event(self, topic: str, msg: Any) -> None:
        """A client tells what it has given no host yet."""
        if topic.startswith(WAITS_TOPIC):
            self._waits[topic.removeprefix(WAITS_TOPIC)] = msg

    def _tell(self, change: str, worker: str) -> None:
        name = self._hosts.get(worker, worker)
        self._say(f"{name} has {change} ({worker})")
        self._scheduler.log_event(HOSTS_TOPIC, name)

    def facts(self) -> dict[str, Any]:
        """Who is here, what each does, and what waits, as plain values."""
        scheduler = self._scheduler
        return {
            "versions": own_versions(),
            "hosts": [
                {
                    "name": str(state.name),
                    "address": state.address,
                    "offer": state.extra.get(OFFER_KEY),
                    "doing": sorted(
                        (str(task.key), seconds) for task, seconds in state.executing.items() if " #" in str(task.key)
                    ),
                    "clock_behind_s": state.time_delay,
                    "unseen_s": time.time() - state.last_seen,
                }
                for state in scheduler.workers.values()
            ],
            "clients": sum(client != _DASKS_OWN for client in scheduler.clients),
            "waits": [self._waits[client] for client in scheduler.clients if client in self._waits],
        }


def serve_scheduler(access: Access, *, lost_after_s: float, say: Callable[[str], None]) -> None:
    """Run a scheduler until a signal ends it."""
    own_versions()  # of the code that runs here, whatever the checkout is later
    from_dask = logging.StreamHandler()  # of connections and workers that fail
    from_dask.setLevel(logging.WARNING)
    from_dask.setFormatter(logging.Formatter("Dask: %(message)s"))
    logging.getLogger("distributed").handlers = [from_dask]
    logging.getLogger("distributed.scheduler").setLevel(logging.CRITICAL)  # of a host that is lost, the client tells
    with dask.config.set({**_SETTINGS, "distributed.scheduler.worker-ttl": lost_after_s}):
        asyncio.run(_serve(access, say))


async def _serve(access: Access, say: Callable[[str], None]) -> None:
    async with stopped_by_signal() as stop:
        try:
            scheduler = Scheduler(
                host=bracketed(access.host),
                port=access.port,
                protocol=f"{access.scheme}://",
                security=access.security(),
                dashboard_address="127.0.0.1:0",
                dashboard=False,
            )
            scheduler.add_plugin(FleetPlugin(scheduler, say))
            await scheduler
        except RuntimeError as error:
            if not isinstance(error.__cause__, OSError):
                raise
            raise UsageError(
                f"--listen {access}: cannot listen there ({error.__cause__.strerror}); choose another port, or end the"
                " scheduler that has it"
            ) from error
        say(f"{scheduler.address}: a scheduler listens")
        await stop.wait()
        await scheduler.close()


@contextlib.asynccontextmanager
async def stopped_by_signal() -> AsyncIterator[asyncio.Event]:
    """An event that ctrl-C, SIGTERM and SIGHUP set, instead of what they do elsewhere."""
    stop, loop = asyncio.Event(), asyncio.get_running_loop()
    for number in _SIGNALS:
        loop.add_signal_handler(number, stop.set)
    try:
        yield stop
    finally:
        for number in _SIGNALS:
            loop.remove_signal_handler(number)
