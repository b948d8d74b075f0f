"""`harness fleet scheduler`: Dask's own scheduler, which also knows hosts of the harness and says what they do.

It decides nothing about benchmarks. It has two operations more than Dask's: who is here and what waits (`FACTS`), and
what an asker cannot begin and why (`WAITS`), which no other part of the fleet can see.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any

import dask
from distributed.diagnostics.plugin import SchedulerPlugin
from distributed.scheduler import Scheduler, TaskState

from harness.errors import UsageError
from harness.fleet.access import Access, Address
from harness.fleet.here import DOING_KEY, OFFER_KEY
from harness.fleet.offer import own_versions
from harness.fleet.signals import stopped_by_signal

# Operations of the scheduler that are the harness's, and the topic of its events.
FACTS, WAITS, HOSTS_TOPIC = "harness_facts", "harness_waits", "harness-hosts"
# Of the tasks that wait for one reason, how many are named.
_NAMED = 3
_DASKS_OWN = "fire-and-forget"  # a client that is always there

_SETTINGS = {
    # Dask moves work from busy workers to idle ones. Here a task is pinned because its module, its host's CPU or its
    # group's earlier generations are there; and what is not pinned is given out as hosts ask for it, so nothing is left
    # to move.
    "distributed.scheduler.work-stealing": False,
    # A task whose host died is the asker's to place anew: it knows what else was to run there.
    "distributed.scheduler.allowed-failures": 0,
    # Without a dashboard nothing but the harness's own questions is answered.
    "distributed.scheduler.http.routes": ["distributed.http.health"],
}
_DASHBOARD_ROUTES = ["distributed.http.health", "distributed.http.statics", "distributed.http.scheduler.info"]


class FleetPlugin(SchedulerPlugin):
    """What the scheduler knows of hosts beyond Dask."""

    name = "harness-fleet"

    def __init__(self, scheduler: Scheduler, dashboard: str) -> None:
        self._scheduler, self._dashboard = scheduler, dashboard
        self._hosts: dict[str, str] = {}  # of all that ever joined: name by address
        self._waits: dict[str, list[list[str]]] = {}  # by the asker's client
        scheduler.handlers[FACTS] = self.facts
        scheduler.handlers[WAITS] = self.waits

    def add_worker(self, scheduler: Scheduler, worker: str) -> None:
        """A host has joined."""
        state = scheduler.workers[worker]
        self._hosts[worker] = str(state.name)
        self._tell({"change": "joined", "name": str(state.name), "address": worker})

    def remove_worker(self, scheduler: Scheduler, worker: str, **_: Any) -> None:  # noqa: ARG002 (Dask's signature)
        """A host has left, by itself or not."""
        self._tell({"change": "left", "name": self._hosts.get(worker, worker), "address": worker})

    def remove_client(self, scheduler: Scheduler, client: str) -> None:  # noqa: ARG002 (Dask's signature)
        """An asker has gone, and what it could not begin with it."""
        self._waits.pop(client, None)

    def _tell(self, event: dict[str, str]) -> None:
        self._scheduler.log_event(HOSTS_TOPIC, event)

    def waits(self, client: str, waits: list[list[str]]) -> str:
        """Note what an asker cannot begin: pairs of what it is and why."""
        self._waits[client] = [[str(what), str(why)] for what, why in waits]
        return "OK"

    def facts(self) -> dict[str, Any]:
        """Who is here, what each does, and what waits, as plain values."""
        workers = self._scheduler.workers.values()
        return {
            "versions": asdict(own_versions()),
            "now": time.time(),
            "dashboard": self._dashboard,
            "hosts": [
                {
                    "name": str(state.name),
                    "address": state.address,
                    "offer": state.extra.get(OFFER_KEY),
                    "doing": state.metrics.get(DOING_KEY, []),
                    "executing": [str(task.key) for task in state.executing],
                    "clock_behind_s": state.time_delay,
                    "unseen_s": time.time() - state.last_seen,
                }
                for state in workers
            ],
            "askers": sum(client != _DASKS_OWN for client in self._scheduler.clients),
            "waits": [pair for waits in self._waits.values() for pair in waits],
            "queued": self._queued(),
        }

    def _queued(self) -> list[dict[str, Any]]:
        """Tasks that do not run, by reason: how many, and the first few."""
        groups: dict[tuple[str, str], list[str]] = {}
        for task in self._scheduler.tasks.values():
            reason = self._reason(task)
            if reason is not None:
                groups.setdefault(reason, []).append(str(task.key))
        return [
            {"why": why, "host": host, "count": len(keys), "first": keys[:_NAMED]}
            for (why, host), keys in groups.items()
        ]

    def _reason(self, task: TaskState) -> tuple[str, str] | None:
        """Why a task does not run, as a word for status.py, and the hosts it is for; None where it runs or is done."""
        if task.state == "no-worker":
            wanted = sorted(task.worker_restrictions or ())
            return ("gone" if wanted else "lacking", ", ".join(self._hosts.get(each, each) for each in wanted))
        if task.state == "processing" and task.processing_on and task not in task.processing_on.executing:
            return "busy", str(task.processing_on.name)
        return ("queued", "") if task.state == "queued" else None


@contextmanager
def scheduler_settings(lost_after_s: float, dashboard: Address | None) -> Iterator[None]:
    """Dask's settings for a scheduler of the harness.

    Args:
        lost_after_s: After how many seconds without a sign of life a host is given up.
    """
    settings = {**_SETTINGS, "distributed.scheduler.worker-ttl": f"{lost_after_s} s"}
    if dashboard is not None:
        settings["distributed.scheduler.http.routes"] = _DASHBOARD_ROUTES
    with dask.config.set(settings):
        yield


def serve_scheduler(
    access: Access, *, dashboard: Address | None, lost_after_s: float, say: Callable[[str], None]
) -> None:
    """Run a scheduler until a signal ends it.

    Args:
        dashboard: Where Dask's pages are shown; None: nowhere.
        say: Told when it listens, with its address.

    Raises:
        UsageError: The address cannot be listened at.
    """
    logging.getLogger("distributed").setLevel(logging.WARNING)
    with scheduler_settings(lost_after_s, dashboard):
        asyncio.run(_serve(access, dashboard, say))


async def _serve(access: Access, dashboard: Address | None, say: Callable[[str], None]) -> None:
    address = access.address
    shown = f"http://{dashboard.host}:{dashboard.port}/status" if dashboard is not None else ""
    async with stopped_by_signal() as stop:
        try:
            scheduler = Scheduler(
                host=address.host,
                port=address.port,
                protocol=f"{address.scheme}://",
                security=access.security(),
                # Dask opens a port for pages in any case; it is for this machine, and answers only whether it lives.
                dashboard_address=f"{dashboard.host}:{dashboard.port}" if dashboard is not None else "127.0.0.1:0",
                dashboard=dashboard is not None,
            )
            plugin = FleetPlugin(scheduler, shown)
            scheduler.add_plugin(plugin)
            await scheduler
        except OSError as error:
            raise UsageError(
                f"--listen {address}: cannot listen there ({error.strerror or error}); choose another port, or end the"
                " scheduler that has it"
            ) from error
        say(f"{scheduler.address}: a scheduler listens" + (f"; its dashboard is at {shown}" if shown else ""))
        await stop.wait()
        await scheduler.close()
