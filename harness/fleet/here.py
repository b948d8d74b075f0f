"""What a worker process knows of its own host: what it offers, and what it may use."""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import tempfile
from dataclasses import replace

from distributed.diagnostics.plugin import WorkerPlugin
from distributed.worker import Worker, get_worker

from harness import process
from harness.errors import UsageError
from harness.fleet.offer import Offer, own_versions, to_text
from harness.process import Limits
from harness.scratch import own_temporary_folder

# What a worker tells the scheduler of itself when it joins.
OFFER_KEY = "harness_offer"
# What is told of hosts to every client.
HOSTS_TOPIC = "harness-hosts"

_host: HostPlugin | None = None


class HostPlugin(WorkerPlugin):
    """Makes a fresh worker process a host of the harness; Dask sets it up before the worker joins, at every start."""

    name = "harness-host"

    def __init__(self, offer: Offer, limits: Limits) -> None:
        self.offer, self.limits = offer, limits
        self._temporary: contextlib.AbstractContextManager[None] = contextlib.nullcontext()

    def setup(self, worker: Worker) -> None:
        """Be the host from here on."""
        global _host
        address = worker.contact_address or worker.address
        self.offer = replace(self.offer, address=address, versions=own_versions())  # a nanny may outlive an update
        # Ctrl-C goes to all processes of a terminal, and this one is ended by its nanny. A handler that does nothing is
        # not inherited by children, as SIG_IGN would be.
        signal.signal(signal.SIGINT, lambda *_: None)
        # Dask gives all its workers one seed, and what is measured here has to be as random as elsewhere.
        os.environ.pop("PYTHONHASHSEED", None)
        logging.getLogger("distributed").setLevel(logging.CRITICAL)  # what fails here is said by who asked for it
        tempfile.tempdir = None
        self._temporary = own_temporary_folder()
        self._temporary.__enter__()
        _host = self

    def teardown(self, worker: Worker) -> None:  # noqa: ARG002 (Dask's signature)
        """End what the host has started; the threads that wait for it then end too."""
        process.stop_all()
        self._temporary.__exit__(None, None, None)


def change_of_host(change: str, name: str) -> dict[str, str]:
    """What is told of a host that has `joined` or `left`, or `waits`."""
    return {"change": change, "name": name}


def tell_that_it_waits() -> None:
    """Let every client know that another harness measures on this host, and is waited for; from any thread."""
    get_worker().log_event(HOSTS_TOPIC, change_of_host("waits", host().name))


def host() -> Offer:
    """This host, for tasks that run on it."""
    return _plugin().offer


def limits_here(asked: Limits) -> Limits:
    """What a child may use that a task starts here: as much as it asks for, and no more than the host gives."""
    given = _plugin().limits
    seconds = min((each.seconds for each in (asked, given) if each.seconds is not None), default=None)
    memory = min((each.memory_bytes for each in (asked, given) if each.memory_bytes is not None), default=None)
    return Limits(seconds=seconds, memory_bytes=memory)


def startup_offer(worker: Worker) -> str:  # noqa: ARG001 (Dask's signature)
    """What the worker tells the scheduler when it joins."""
    return to_text(host())


def _plugin() -> HostPlugin:
    if _host is None:
        raise UsageError("this process is no host of a fleet; start one with `harness fleet worker`")
    return _host
