"""`harness fleet`: certificates, a scheduler, workers, and what they do; and the place that `--fleet` names.

What a fleet needs is an extra, so that it is imported in the commands, once it is known to be there.
"""

from __future__ import annotations

import asyncio
import math
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import App, Parameter

from harness.cli.app import app
from harness.cli.output import emit, print_text, tell
from harness.errors import ExitCode, UsageError
from harness.fleet import COMPILE_TIMEOUT_S, LOST_AFTER_S, require_extra
from harness.machine.environment import NAME_VARIABLE
from harness.options import (
    CERTIFICATES_VARIABLE,
    Count,
    Flag,
    Membership,
    OnFleet,
    PageFormat,
    Positive,
    Seconds,
    command_options,
)
from harness.report.data import to_json
from harness.stages.run import LOCAL, Executor

if TYPE_CHECKING:
    from harness.fleet.access import Access


@contextmanager
def bench_at(options: OnFleet) -> Iterator[Executor]:
    """The place for runs; a fleet is imported only where one is asked for."""
    if options.fleet is None:
        yield LOCAL
        return
    require_extra()
    from harness.fleet.access import access_to
    from harness.fleet.bench import FleetBench
    from harness.fleet.connection import connect

    access = access_to(options.fleet, "--fleet", options.certificates, trust_network=options.trust_network)
    with connect(access) as joined:
        yield FleetBench(joined)


def require_waiting(fleet: str | None, *, wait: bool) -> None:
    """Refuse `--no-wait` on a fleet."""
    if fleet is not None and not wait:
        raise UsageError(
            "--no-wait is of one machine, and a host of a fleet waits for whoever measures there; leave one of them out"
        )


fleet = App(
    name="fleet",
    help="Let many hosts compile and measure for one run.",
)
app.command(fleet)

_Made = Annotated[Path | None, Parameter(env_var=CERTIFICATES_VARIABLE, show_default=False)]
_Member = Annotated[Membership, Parameter(name="*")]
_ANYBODY = Membership()


@command_options
@dataclass(frozen=True, kw_only=True)
class WorkerOptions(Membership):
    """What a user can choose about a host.

    Attributes:
        scheduler: The fleet's scheduler, such as tls://bench:8786.
        name: The host's name, which no other in the fleet has (default: the machine's).
        host_class: Its class of machine in your words, for hosts that differ in what the harness cannot see (default:
            processor, cores, caches, system). Hosts of one class share a series in a history, and may take over each
            other's work.
        jobs: Compiles at once (default: the number of cores).
        compile_timeout: Seconds after which a compile is stopped here, whatever the run allows.
        compile_memory: GiB of memory at which a compile is stopped here, likewise (default: 80 % of the machine's).
        patience: Seconds to wait for a scheduler, at the start and when it has gone, and at the start for its name;
            then the host ends (default: none at the start, later as long as it takes).
        as_root: Take part as root too; whoever has a certificate of the fleet can run programs here.
    """

    scheduler: str
    name: Annotated[str | None, Parameter(env_var=NAME_VARIABLE)] = None
    host_class: Annotated[str, Parameter(name="--class", show_default=False)] = ""
    jobs: Count | None = None
    compile_timeout: Seconds = COMPILE_TIMEOUT_S
    compile_memory: Positive | None = None
    patience: Seconds | None = None
    as_root: Flag = False


@fleet.command
def certificates(folder: _Made = None, *, authority: Path | None = None, days: Count = 365) -> int:
    """Make a fleet: its authority and the certificate of its first member. Or make the certificate of one more member.

    Each member of a fleet has a folder: the scheduler, every worker, everybody who starts runs. Members know each other
    by the authority that signed them. Nothing is overwritten; for a new certificate make a new folder.

    harness fleet certificates

    harness fleet certificates host-a --authority ~/.config/iree-harness/fleet

    Args:
        folder: Where the files go (default: fleet in the user's configuration folder, where all commands look).
        authority: A folder that this command made for the fleet; its key signs the new certificate.
        days: For how long the certificate is valid, as long as its authority at most, which is for ten years.
    """
    require_extra()
    from harness.fleet.access import AUTHORITY_KEY, default_folder, make_fleet, make_member

    where = folder or default_folder()
    if authority is None:
        ends = make_fleet(where, days)
        tell(f"{where / AUTHORITY_KEY} signs members of this fleet: keep it here, and give it to no other machine.")
    else:
        ends = make_member(where, authority, days)
    print_text(f"{where}: the certificate of a member, valid until {ends:%Y-%m-%d}")
    return ExitCode.OK


@fleet.command
def scheduler(
    *,
    listen: str,
    member: _Member = _ANYBODY,
    lost_after: Seconds = LOST_AFTER_S,
    as_root: Flag = False,
) -> int:
    """Run the scheduler of a fleet, Dask's own, until ctrl-C or SIGTERM.

    harness fleet scheduler --listen tls://0.0.0.0:8786

    Args:
        listen: The address to listen at, as tls://0.0.0.0:8786; tcp://127.0.0.1:8786 for a fleet on one machine.
        lost_after: Seconds without a sign of life after which a host is given up; at least 5, and with many hosts more.
        as_root: Run as root too; whoever has a certificate of the fleet can run programs here.
    """
    require_extra()
    from harness.fleet.processes import serve_scheduler

    access = _access_of_server("scheduler", listen, "--listen", member, as_root=as_root)
    asyncio.run(serve_scheduler(access, lost_after_s=lost_after, say=tell))
    return ExitCode.OK


@fleet.command
def worker(options: WorkerOptions) -> int:
    """Make this machine a host of a fleet until ctrl-C or SIGTERM: say what it offers, then compile and measure.

    Where the scheduler goes away, the host waits for it and joins again.

    harness fleet worker --scheduler tls://bench:8786
    """
    require_extra()
    from harness.fleet.connection import offer_text
    from harness.fleet.placing import offer_of_this_host
    from harness.fleet.processes import host_name, serve_worker, wait_for_place
    from harness.stages.options import compile_limits

    access = _access_of_server("worker", options.scheduler, "--scheduler", options, as_root=options.as_root)
    name = host_name(options.name)
    why = wait_for_place(access, name, options.patience or 0.0, tell)  # before anything that takes long
    if why is not None:
        raise why
    os.environ[NAME_VARIABLE] = name  # what its machine is known by is made of it
    offer = offer_of_this_host(name, options.jobs or os.cpu_count() or 1, options.host_class)
    print_text(offer_text(offer))
    limits = compile_limits(options.compile_timeout, options.compile_memory)
    asyncio.run(serve_worker(access, offer, limits, tell, options.patience or math.inf))
    return ExitCode.OK


def _access_of_server(command: str, address: str, option: str, member: Membership, *, as_root: bool) -> Access:
    """Access for what runs for weeks: not as root, and it says if its certificate is soon over."""
    from harness.fleet.access import access_to, soon_over
    from harness.fleet.processes import refuse_root

    access = access_to(address, option, member.certificates, trust_network=member.trust_network)
    refuse_root(f"fleet {command}", as_root=as_root)
    if access.member is not None and (sentence := soon_over(access.member, datetime.now(timezone.utc))):
        tell(sentence)
    return access


@fleet.command
def status(*, fleet: str, member: _Member = _ANYBODY, format: PageFormat = "terminal") -> int:
    """Say which hosts a fleet has, what each does now, what waits, and why.

    harness fleet status --fleet tls://bench:8786

    Args:
        fleet: The fleet's scheduler, such as tls://bench:8786.
        format: How to print it.
    """
    require_extra()
    from harness.fleet.access import access_to, ask
    from harness.fleet.connection import fleet_now, status_page
    from harness.fleet.placing import require_same_versions
    from harness.fleet.processes import FACTS

    access = access_to(fleet, "--fleet", member.certificates, trust_network=member.trust_network)
    facts = ask(access, FACTS)
    require_same_versions(facts, str(access), "this machine")
    now = fleet_now(facts, str(access))
    emit(format, lambda: status_page(now), lambda: to_json(now))
    return ExitCode.OK
