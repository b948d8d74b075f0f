"""`harness fleet worker`: makes this machine a host of a fleet, until somebody ends it.

A host is one Dask worker process with several threads: compiles in some, at most one measurement in another. In one
process `process.hold_still` stops the compilers while something is timed, as in a run on one machine. A nanny, this
process, starts the worker process again where it dies.
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
from collections.abc import Callable
from dataclasses import replace

import dask
from distributed.diagnostics.plugin import WorkerPlugin
from distributed.nanny import Nanny
from distributed.utils import get_ip, get_ipv6
from distributed.worker import Worker

from harness import process
from harness.errors import UsageError
from harness.fleet.access import Access, ask, bracketed
from harness.fleet.placing import OFFER_KEY, Offer, own_versions, require_same_versions, to_text
from harness.fleet.scheduler import FACTS, FORGET_MESSAGES, stopped_by_signal
from harness.process import Limits
from harness.scratch import own_temporary_folder
from harness.suite.schema import NAME_PATTERN
from harness.text import one_line, shown

# Of a host's threads, those that do not compile: for the one that measures, for a check, and for files that come.
OTHER_THREADS = 3
COMPILE, MEASURE = "compile", "measure"  # Dask resources
# Time for a worker process to start and join; Dask's death timeout.
_START_S = 60.0
_TRY_AGAIN_S = 2.0
_LONGEST_HOST = 64  # of a machine's name on Linux; a pod's has up to 63

# What Dask does in a worker beside its work, made so rare that it is not in what is timed.
SETTINGS = {
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
    if hasattr(os, "geteuid") and os.geteuid() == 0 and not as_root:
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
    """Wait until a scheduler lets a host in, or for the end; why none did, once patience is over.

    Each new reason is said once.
    """
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


def serve_worker(
    access: Access, offer: Offer, limits: Limits, say: Callable[[str], None], patience_s: float = math.inf
) -> None:
    """Take part in a fleet until a signal ends it, or its patience with a scheduler that has gone.

    Where the scheduler goes away, what is under way here is given up, and the host joins again as soon as a scheduler
    answers. No child of a task may use more than the limits.
    """
    logging.getLogger("distributed").setLevel(logging.CRITICAL)  # what matters is said here, in a sentence
    with dask.config.set(SETTINGS):
        asyncio.run(_serve(access, offer, limits, say, patience_s))


async def _serve(access: Access, offer: Offer, limits: Limits, say: Callable[[str], None], patience_s: float) -> None:
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
        global _host
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
        _host = self

    def teardown(self, worker: Worker) -> None:  # noqa: ARG002 (Dask's signature)
        """End what the host has started; the threads that wait for it then end too."""
        process.stop_all()
        self._temporary.__exit__(None, None, None)


_host: HostPlugin  # since `setup`


def startup_offer(worker: Worker) -> str:  # noqa: ARG001 (Dask's signature)
    """What the worker tells the scheduler when it joins."""
    return to_text(host().offer)


def host() -> HostPlugin:
    """This host, for tasks that run on it."""
    return _host


def limits_here(asked: Limits) -> Limits:
    """What a child may use that a task starts here: as much as it asks for, and no more than the host gives."""
    given = host().limits
    seconds = min((each.seconds for each in (asked, given) if each.seconds is not None), default=None)
    memory = min((each.memory_bytes for each in (asked, given) if each.memory_bytes is not None), default=None)
    return Limits(seconds=seconds, memory_bytes=memory)
