"""Where a command's runs are done: this machine, or the fleet that `--fleet` names."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from harness.fleet import require_extra
from harness.stages.here import HERE, Bench


@contextmanager
def bench_at(fleet: str | None, certificates: Path | None, *, trust_network: bool) -> Iterator[Bench]:
    """The place for runs; a fleet is imported only where one is asked for.

    Args:
        fleet: The address of its scheduler; None: this machine.
        certificates: The folder of this machine's certificate; None: the user's own.

    Raises:
        UsageError: The fleet cannot be reached, does not trust this machine, or has no host.
    """
    if fleet is None:
        yield HERE
        return
    require_extra()
    from harness.fleet.access import access_to
    from harness.fleet.bench import FleetBench
    from harness.fleet.connection import connect

    with connect(access_to(fleet, "--fleet", certificates, trust_network=trust_network)) as joined:
        yield FleetBench(joined)
