"""The processes of a fleet: Dask's own scheduler, which also knows hosts of the harness, and a worker on each host.

The scheduler decides nothing about benchmarks. It has one operation more than Dask's: who is here, what each does and
what waits (`FACTS`). What a client has given no host yet, and why, it tells with an event of Dask's.

A host is one Dask worker process with several threads: compiles in some, at most one measurement in another. In one
process `process.hold_still` stops the compilers while something is timed, as in a run on one machine. A nanny, the
process of `harness fleet worker`, starts the worker process again where it dies.
"""

import asyncio
import contextlib
import logging
import math
import multiprocessing
import os
import re
import signal
import socket
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import replace
from typing import Any

import dask
from distributed.diagnostics.plugin import SchedulerPlugin, WorkerPlugin
from distributed.nanny import Nanny
from distributed.scheduler import Scheduler
from distributed.utils import get_ip, get_ipv6
from distributed.worker import Worker

from harness import process
from harness.errors import UsageError
from harness.fleet.access import Access, ask, bracketed
from harness.fleet.placing import HOSTS_TOPIC, OFFER_KEY, Offer, own_versions, require_same_versions, to_text
from harness.process import Limits
from harness.scratch import own_temporary_folder
from harness.suite.schema import NAME_PATTERN
from harness.text import one_line, shown

# The operation of the scheduler that is the harness's; and of which topics clients tell what waits.
FACTS, WAITS_TOPIC = "harness_facts", "harness-waits-"
_DASKS_OWN = "fire-and-forget"  # a client that is always there

# Dask would keep the last thousand messages of each connection for its developers: of each host, files and all.
FORGET_MESSAGES = {"distributed.admin.low-level-log-length": 0}
_SCHEDULER_SETTINGS = {
    **FORGET_MESSAGES,
    # A task is pinned to a host, because its module, its CPU or its group's earlier generations are there.
    "distributed.scheduler.work-stealing": False,
    # A task whose host died is the client's to place anew: it knows what else was to run there.
    "distributed.scheduler.allowed-failures": 0,
    # Dask opens a port for pages in any case; it is for this machine, and answers only whether it lives.
    "distributed.scheduler.http.routes": ["distributed.http.health"],
}
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


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


async def serve_scheduler(access: Access, *, lost_after_s: float, say: Callable[[str], None]) -> None:
    """Run a scheduler until a signal ends it."""
    own_versions()  # of the code that runs here, whatever the checkout is later
    from_dask = logging.StreamHandler()  # of connections and workers that fail
    from_dask.setLevel(logging.WARNING)
    from_dask.setFormatter(logging.Formatter("Dask: %(message)s"))
    logging.getLogger("distributed").handlers = [from_dask]
    logging.getLogger("distributed.scheduler").setLevel(logging.CRITICAL)  # of a host that is lost, the client tells
    dask.config.set({**_SCHEDULER_SETTINGS, "distributed.scheduler.worker-ttl": lost_after_s})
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


# --- A host ---

# Of a host's threads, those that do not compile: for the one that measures, for a check, and for files that come.
OTHER_THREADS = 3
COMPILE, MEASURE = "compile", "measure"  # Dask resources
# Time for a worker process to start and join; Dask's death timeout.
_START_S = 60.0
_TRY_AGAIN_S = 2.0
_LONGEST_HOST = 64  # of a machine's name on Linux; a pod's has up to 63

# What Dask does in a worker beside its work, made so rare that it is not in what is timed.
WORKER_SETTINGS = {
    **FORGET_MESSAGES,
    "distributed.worker.profile.enabled": False,  # looks at all threads every 10 ms
    "distributed.admin.tick.interval": "1 s",  # 20 ms
    "distributed.admin.system-monitor.interval": "5 s",  # 500 ms
    "distributed.admin.system-monitor.gil.enabled": False,  # 1 ms
    "distributed.admin.system-monitor.disk": False,
    # Dask would give a worker's children one thread for every library and another malloc.
    "distributed.nanny.pre-spawn-environ": {},
    "distributed.worker.http.routes": [],
    "distributed.comm.timeouts.connect": "10 s",
}


def refuse_root(command: str, *, as_root: bool) -> None:
    """Refuse to do as root what others send."""
    if os.geteuid() == 0 and not as_root:
        raise UsageError(
            f"{command} does not run as root, since whoever has a certificate of the fleet can run programs here; start"
            " it as a user of its own, or with --as-root in a container that holds nothing else"
        )


def host_name(given: str | None) -> str:
    """The name of this host in its fleet: what the user says, else the machine's."""
    name = socket.gethostname() if given is None else given
    if not re.fullmatch(NAME_PATTERN, name) or len(name) > _LONGEST_HOST:
        raise UsageError(
            f"--name {shown(name)!r}: is no name of a host; give letters, digits and . _ + -, at most {_LONGEST_HOST}"
        )
    return name


def wait_for_place(
    access: Access,
    name: str,
    patience_s: float,
    say: Callable[[str], None],
    is_over: Callable[[], bool] = lambda: False,
) -> UsageError | None:
    """Wait until a scheduler lets a host in, or for the end, and say each new reason; why none did in that time."""
    deadline, said = time.monotonic() + patience_s, ""
    while not is_over() and (why := _why_no_place(access, name)) is not None:
        if time.monotonic() >= deadline:
            return why
        if str(why) != said:
            said = str(why)
            say(said)
        time.sleep(_TRY_AGAIN_S)
    return None


def _why_no_place(access: Access, name: str) -> UsageError | None:
    """Why a host may not join now, but perhaps soon."""
    try:
        facts = ask(access, FACTS)
    except UsageError as error:
        return error
    require_same_versions(facts, str(access), name)
    taken = next((host for host in facts["hosts"] if host["name"] == name), None)
    if taken is None:
        return None
    return UsageError(
        f"{access}: the host {name} is there already ({taken['address']}); choose another name with --name, or"
        " where it is this host that has just gone, wait: it is given up within a minute (the scheduler's --lost-after)"
    )


async def serve_worker(
    access: Access, offer: Offer, limits: Limits, say: Callable[[str], None], patience_s: float = math.inf
) -> None:
    """Take part in a fleet until a signal ends it, or its patience with a scheduler that has gone."""
    logging.getLogger("distributed").setLevel(logging.CRITICAL)  # what matters is said here, in a sentence
    dask.config.set(WORKER_SETTINGS)
    name, address = offer.name, str(access)
    has_joined = False
    async with stopped_by_signal() as stop:
        stopped = asyncio.ensure_future(stop.wait())
        while not stop.is_set():
            nanny = _nanny(access, offer, limits)
            try:
                await nanny.start()  # to its end, of seconds: half a start cannot be closed
                has_joined = True
                say(f"{name} has joined {address}")
                ended = asyncio.ensure_future(nanny.finished())
                await asyncio.wait({ended, stopped}, return_when=asyncio.FIRST_COMPLETED)
            except Exception as error:  # Dask raises what the worker process raised, of any kind
                behind: BaseException = error
                while behind.__cause__ is not None:
                    behind = behind.__cause__
                why = f"{name} cannot join {address}: {one_line(str(behind)) or type(behind).__name__}"
                if not has_joined:
                    raise UsageError(f"{why}; see what the scheduler says") from error
                say(why)
            finally:
                await nanny.close()
                for stray in multiprocessing.active_children():  # a nanny leaves one behind that never started
                    stray.kill()
            if not stop.is_set():
                say(f"{name} is no longer with {address}; it joins again when a scheduler answers there")
                if await asyncio.to_thread(wait_for_place, access, name, patience_s, say, stop.is_set) is not None:
                    say(f"{name} ends: no scheduler has answered at {address} for {patience_s:g} s")
                    return


def _nanny(access: Access, offer: Offer, limits: Limits) -> Nanny:
    scheduler = access.host
    return Nanny(
        str(access),
        name=offer.name,
        nthreads=offer.cores + OTHER_THREADS,
        resources={COMPILE: offer.cores, MEASURE: 1},
        plugins=(HostPlugin(offer, limits),),
        startup_information={OFFER_KEY: startup_offer},
        security=access.security(),
        protocol=f"{access.scheme}://",
        # The one address by which the scheduler is reached, where Dask would listen at all of them.
        host=bracketed(get_ipv6(scheduler) if ":" in scheduler else get_ip(scheduler)),
        # Dask would count the worker process alone; the memory is taken by its children, under limits of the harness.
        memory_limit=0,
        death_timeout=_START_S,
        local_directory=tempfile.gettempdir(),
        silence_logs=logging.CRITICAL,
        dashboard_address="127.0.0.1:0",
    )


# --- In the worker process: what it knows of its own host. Tasks run in threads, so this is one state for all ---


class HostPlugin(WorkerPlugin):
    """Makes a fresh worker process a host of the harness; Dask sets it up before the worker joins, at every start."""

    name = "harness-host"

    def __init__(self, offer: Offer, limits: Limits) -> None:
        self.offer, self.limits = offer, limits
        self._temporary: contextlib.AbstractContextManager[None] = contextlib.nullcontext()

    def setup(self, worker: Worker) -> None:  # noqa: ARG002 (Dask's signature)
        """Be the host from here on."""
        global this_host
        self.offer = replace(self.offer, versions=own_versions())  # a nanny may outlive an update
        # Ctrl-C goes to all processes of a terminal, and this one is ended by its nanny. A handler that does nothing is
        # not inherited by children, as SIG_IGN would be.
        signal.signal(signal.SIGINT, lambda *_: None)
        # Dask gives all its workers one seed, and what is measured here has to be as random as elsewhere.
        os.environ.pop("PYTHONHASHSEED", None)
        logging.getLogger("distributed").setLevel(logging.CRITICAL)  # what fails here is said by who asked for it
        tempfile.tempdir = None
        self._temporary = own_temporary_folder()
        self._temporary.__enter__()
        this_host = self

    def teardown(self, worker: Worker) -> None:  # noqa: ARG002 (Dask's signature)
        """End what the host has started; the threads that wait for it then end too."""
        process.stop_all()
        self._temporary.__exit__(None, None, None)


this_host: HostPlugin  # Since `setup`; for tasks that run on it


def startup_offer(worker: Worker) -> str:  # noqa: ARG001 (Dask's signature)
    """What the worker tells the scheduler when it joins."""
    return to_text(this_host.offer)


def limits_here(asked: Limits) -> Limits:
    """What a child may use that a task starts here: as much as it asks for, and no more than the host gives."""
    given = this_host.limits
    seconds = min((each.seconds for each in (asked, given) if each.seconds is not None), default=None)
    memory = min((each.memory_bytes for each in (asked, given) if each.memory_bytes is not None), default=None)
    return Limits(seconds=seconds, memory_bytes=memory)
