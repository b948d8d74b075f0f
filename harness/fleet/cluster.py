"""Makes a fleet of what Dask's cluster classes start: a preload for Dask's own scheduler, and for each worker's nanny.

SSHCluster, dask-jobqueue and dask-kubernetes start Dask's own scheduler and workers. With this module as their preload,
these are the scheduler and the hosts of a fleet, as `harness fleet scheduler` and `harness fleet worker` make them.
docs/fleet.md has examples.
"""

import asyncio
import os
import sys
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import dask
from distributed.comm.addressing import get_address_host
from distributed.comm.utils import get_tcp_server_addresses
from distributed.core import Server
from distributed.nanny import Nanny
from distributed.scheduler import Scheduler

from harness.errors import UsageError
from harness.fleet import COMPILE_TIMEOUT_S, LOST_AFTER_S
from harness.fleet.access import AUTHORITY, CERTIFICATE, KEY, ROLES, default_folder, is_loopback, read_member
from harness.fleet.offer import offer_of_this_host, own_versions
from harness.fleet.scheduler import FORGET_MESSAGES, FleetPlugin
from harness.fleet.worker import (
    SETTINGS,
    host_name,
    nanny_options,
    refuse_root,
    worker_options,
)
from harness.options import CERTIFICATES_VARIABLE
from harness.stages.options import compile_limits

AS_ROOT, TRUST_NETWORK = "HARNESS_FLEET_AS_ROOT", "HARNESS_FLEET_TRUST_NETWORK"
_HASH_SEED = "PYTHONHASHSEED"
# What a nanny would do beside everything that is timed: `tick` 50 times a second.
_BESIDE_TIMED = ("tick", "ticks", "monitor")


def configuration(certificates: Path | None = None) -> dict[str, Any]:
    """What `dask.config.set` takes before a cluster is made: this preload, and TLS with a member's certificate."""
    named = certificates or os.environ.get(CERTIFICATES_VARIABLE) or default_folder()
    folder = read_member(Path(named).absolute())
    tls = {"distributed.comm.tls.ca-file": str(folder / AUTHORITY)}
    for role in ROLES:
        tls[f"distributed.comm.tls.{role}.cert"] = str(folder / CERTIFICATE)
        tls[f"distributed.comm.tls.{role}.key"] = str(folder / KEY)
    preloads = {f"distributed.{server}.preload": [__name__] for server in ("scheduler", "nanny")}
    encrypted = {"distributed.comm.require-encryption": True, "distributed.comm.default-scheme": "tls"}
    return {**preloads, **tls, **encrypted, "distributed.scheduler.worker-ttl": LOST_AFTER_S}


async def dask_setup(server: Server) -> None:
    """Make a scheduler or a nanny one of the harness; Dask calls this before a worker joins."""
    listened = [str(listener.contact_address) for listener in server.listeners]
    if isinstance(server, Scheduler):
        _require_safe("a fleet's scheduler", listened)
        _make_scheduler(server)
    elif isinstance(server, Nanny):
        _require_safe("a fleet's worker", [server.scheduler_addr, *listened])
        await _make_host(server)
    else:
        raise UsageError(f"{__name__} is a preload for a worker's nanny; give it as --preload-nanny")


def _require_safe(what: str, addresses: Iterable[str]) -> None:
    """Apply the rules of `harness fleet` to what Dask starts."""
    refuse_root(what, as_root=os.environ.get(AS_ROOT) == "1", option=f"{AS_ROOT}=1")
    for address in addresses:
        is_open = not address.startswith("tls://") and not is_loopback(get_address_host(address))
        if is_open and not _trusts_network():
            raise UsageError(
                f"{address}: whoever reaches it runs programs on the whole fleet; give the cluster a `security` for"
                f" tls://, or set {TRUST_NETWORK}=1 where nobody else is on the network"
            )


def _trusts_network() -> bool:
    return os.environ.get(TRUST_NETWORK) == "1"


def _make_scheduler(scheduler: Scheduler) -> None:
    own_versions()  # of the code that runs here, whatever the checkout is later
    dask.config.set(FORGET_MESSAGES)
    scheduler.add_plugin(FleetPlugin(scheduler, _say))
    scheduler.allowed_failures = 0
    shown_at = [address for address, *_ in get_tcp_server_addresses(scheduler.http_server)]
    if not (all(map(is_loopback, shown_at)) or _trusts_network()):
        scheduler.http_server.stop()  # the dashboard asks nobody who they are


async def _make_host(nanny: Nanny) -> None:
    """Let a nanny start a host: with the name, the cores and the memory that the cluster class has for its worker."""
    name = host_name(None if nanny.name is None else str(nanny.name))
    offer = await asyncio.to_thread(offer_of_this_host, name, nanny.nthreads)
    limits, given = compile_limits(COMPILE_TIMEOUT_S), nanny.memory_manager.memory_limit
    if given:
        limits = replace(limits, memory_bytes=min(given, limits.memory_bytes or given))
    # Dask would watch the worker process alone; the memory is taken by its children, under limits of the harness.
    nanny.memory_manager.memory_limit = None
    for callback in ("memory_monitor", *_BESIDE_TIMED):
        nanny.periodic_callbacks.pop(callback, None)
    for option, value in nanny_options(offer).items():
        setattr(nanny, option, value)
    nanny.worker_kwargs.update(worker_options(offer, limits))
    dask.config.set(SETTINGS, config=nanny.config)
    for variable in nanny.pre_spawn_env.keys() - {_HASH_SEED}:
        nanny.env.pop(variable, None)
        del nanny.pre_spawn_env[variable]


def _say(sentence: str) -> None:
    sys.stderr.write(f"{sentence}\n")
