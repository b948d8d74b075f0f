"""A host of a fleet with scripted tools: `python -m tests.fleet.fake_host ADDRESS NAME FOLDER`."""

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

from distributed.worker import Worker

from harness.fleet import packing, processes, tasks
from harness.fleet.access import access_to
from harness.fleet.placing import OfferedToolchain
from harness.fleet.processes import HostPlugin, serve_worker
from harness.measure import session
from harness.process import Limits
from harness.records.run import Peak
from harness.toolchain.host_cpu import TargetCpu
from tests.fakes import fake_worker
from tests.fakes.fake_toolchain import make_fake_toolchain
from tests.fleet.scripted import make_offer

_CPU = TargetCpu(name="znver3", features="+avx2")


class FakeHost(HostPlugin):
    """A host on which tools and workers are scripted."""

    def setup(self, worker: Worker) -> None:
        """Replace what would compute."""
        super().setup(worker)
        folder = Path(os.environ["FAKE_HOST"])
        toolchain = make_fake_toolchain(folder / "tools")
        changed: Any = packing
        changed.get_toolchains = lambda *_, **__: (toolchain,)
        changed = tasks
        changed.measure_peak = lambda device, threads, *_, **__: Peak(device=device, threads=threads)
        os.environ["FAKE_WORKER"] = json.dumps(
            {"log": str(folder / "turns"), "per_call_ns": {"head": 1_200_000}, "round_s": 0.05}
        )
        session.WORKER = Path(fake_worker.__file__)


def main(address: str, name: str, folder: str) -> None:
    """Take part until a signal ends it."""
    os.environ.update(FAKE_HOST=folder, HARNESS_CACHE=f"{folder}/cache")
    temporary = Path(folder) / "temporary"  # with a lock on measuring of its own
    temporary.mkdir(parents=True, exist_ok=True)
    os.environ["TMPDIR"] = str(temporary)
    changed: Any = processes
    changed.HostPlugin = FakeHost
    tools = make_fake_toolchain(Path(folder) / "tools")
    offered = {tools.version: OfferedToolchain(compiler_sha256=tools.compiler_sha256, cpu=_CPU)}
    offer = make_offer(name, cores=2, toolchains=offered)
    access = access_to(address, "ADDRESS", None, trust_network=False)
    asyncio.run(serve_worker(access, offer, Limits(seconds=60.0), lambda text: print(text, flush=True)))


if __name__ == "__main__":
    main(*sys.argv[1:])
