"""The asking side of a made-up run, in a process of its own: `python -m benchmarks.fleet.asker ADDRESS FOLDER SIZE`.

All of it is the harness's: how it asks hosts, and the run directory. It goes on where the folder has a run that was
begun. It prints what it took, as JSON. What `harness run` does after the fleet is done, which computes here alone, is
left out.
"""

import argparse
import json
import resource
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import psutil

from benchmarks.fleet.made import begin
from benchmarks.fleet.sizes import size_in
from harness.errors import HarnessError
from harness.fleet import dispatch
from harness.fleet.access import access_to
from harness.fleet.connection import connect
from harness.fleet.run import FleetRun
from harness.progress import Progress

# Exit status where the run ended before it was done, and can go on.
GO_ON = 4


@dataclass(frozen=True, kw_only=True)
class Took:
    """What a run took of the asking side.

    Attributes:
        began: When the plan was made and the fleet was asked first, in seconds since 1970.
        planned_bytes: Resident memory at that moment.
        peak_bytes: Its most, up to the end.
        cpu_s: Of this process, between them.
        sent_bytes: Of files that went to hosts.
        fetched_bytes: Of files that came.
    """

    began: float
    ended: float
    planned_bytes: int
    peak_bytes: int
    cpu_s: float
    sent_bytes: int
    fetched_bytes: int


class Told(Progress):
    """Says on stderr what the run notes, with the time."""

    def note(self, text: str) -> None:
        """Say it."""
        sys.stderr.write(f"{time.strftime('%H:%M:%S')} {text}\n")


def ask(address: str, folder: Path, size: str, salt: str) -> Took:
    """Do all that is left of the run.

    Raises:
        HarnessError: It could not be done to its end.
    """
    context = begin(folder, size_in(size), salt, Told())
    with context.directory, connect(access_to(address, "ADDRESS", None, trust_network=False)) as fleet:
        process = psutil.Process()
        began, before, planned = time.time(), process.cpu_times(), process.memory_info().rss
        run = FleetRun(fleet, context, {})
        fleet.run(run.do())
        after = process.cpu_times()
        return Took(
            began=began,
            ended=time.time(),
            planned_bytes=planned,
            peak_bytes=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
            cpu_s=after.user + after.system - before.user - before.system,
            sent_bytes=run.sent_bytes,
            fetched_bytes=run.fetched_bytes,
        )


def main(arguments: Sequence[str]) -> int:
    """Ask, and print what it took."""
    parser = argparse.ArgumentParser(prog="benchmarks.fleet.asker", description=__doc__)
    parser.add_argument("address")
    parser.add_argument("folder", type=Path)
    parser.add_argument("size")
    parser.add_argument("--salt", default="")
    parser.add_argument(
        "--return-s", type=float, default=dispatch.RETURN_S, help="how long a host that has gone is awaited"
    )
    given = parser.parse_args(arguments)
    dispatch.RETURN_S = given.return_s
    try:
        took = ask(given.address, given.folder, given.size, given.salt)
    except HarnessError as error:
        sys.stderr.write(f"{error}\n")
        return GO_ON
    sys.stdout.write(json.dumps(asdict(took)))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
