"""suites/smoke.toml on two real workers of one core each, beside one: how much sooner everything is compiled.

Caches are empty at every start. Each worker is held on a core of its own with `taskset`; its compilers inherit that.
The asker and the scheduler, which do little, run where there is room. The time is that from the header of the run's
folder, which is written once the models are made, to its last build.
"""

import itertools
import json
import statistics
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import psutil

from benchmarks.fleet.processes import HARNESS, Processes, free_port, wait_until

ROOT = Path(__file__).parents[2]
SUITE = ROOT / "suites" / "smoke.toml"
_LOST_AFTER_S = 60.0
_LONGEST_S = 1800.0
# A run whose compiles came to an end, whatever became of its cases: suites/smoke.toml has two that are known to fail.
_FINE = (0, 1, 3)


@dataclass(frozen=True, kw_only=True)
class Real:
    """One run of the suite, checked and not measured.

    Attributes:
        compile_s: From the header to the last build.
        compilers_s: What the compilers took, added up.
        builds: That were compiled; cases may share one.
    """

    workers: int
    compile_s: float
    compilers_s: float
    builds: int


def run_real(repeats: int, suite: Path = SUITE) -> list[Real]:
    """Run it with one worker and with two, in turns.

    Raises:
        RuntimeError: A run did not come to its end, or this machine has one core.
    """
    cores = psutil.Process().cpu_affinity()
    if len(cores) < 2:
        raise RuntimeError("two workers of one core each need two cores")
    found = []
    for _, workers in itertools.product(range(repeats), (1, 2)):
        found.append(_run(cores[:workers], suite))
        sys.stderr.write(f"{found[-1]}\n")
    return found


def _run(cores: list[int], suite: Path) -> Real:
    with tempfile.TemporaryDirectory(prefix="fleet-real-", ignore_cleanup_errors=True) as scratch:
        folder = Path(scratch)
        with Processes(folder) as processes:
            address = f"tcp://127.0.0.1:{free_port()}"
            processes.scheduler(address, _LOST_AFTER_S)
            for core in cores:
                _start_worker(processes, folder, address, core)
            command = [
                *HARNESS,
                "run",
                str(suite),
                "--fleet",
                address,
                "--no-measure",
                "--results",
                str(folder / "results"),
            ]
            asker = processes.start("asker", command, {"HARNESS_CACHE": str(folder / "cache")})
            status = wait_until(lambda: (asker.poll(),) if asker.poll() is not None else None, "the run", _LONGEST_S)[0]
            if status not in _FINE:
                raise RuntimeError(f"the run ended with {status}: {processes.log('asker').read_text()[-2000:]}")
        (run,) = (path for path in (folder / "results").iterdir() if (path / "run.json").is_file())
        builds = [json.loads(line) for line in (run / "builds.jsonl").read_text().splitlines()]
        took = {build["cache_key"]: build["compile_ns"] for build in builds if build["compile_ns"] is not None}
        return Real(
            workers=len(cores),
            compile_s=(run / "builds.jsonl").stat().st_mtime - (run / "run.json").stat().st_mtime,
            compilers_s=sum(took.values()) / 1e9,
            builds=len({build["cache_key"] for build in builds}),
        )


def _start_worker(processes: Processes, folder: Path, address: str, core: int) -> None:
    """A host that has one core, and a cache and a lock on measuring of its own."""
    name = f"core-{core}"
    temporary = folder / name / "temporary"
    temporary.mkdir(parents=True)
    command = ["taskset", "--cpu-list", str(core), *HARNESS, "fleet", "worker", "--as-root", "--scheduler", address]
    environment = {"HARNESS_CACHE": str(folder / name / "cache"), "TMPDIR": str(temporary)}
    processes.start(name, [*command, "--name", name, "--jobs", "1", "--class", "one core"], environment)
    processes.wait_for(name, "has joined")


def speedup(found: list[Real]) -> float:
    """How many times as fast two workers are, by the medians."""
    one, two = (statistics.median(real.compile_s for real in found if real.workers == count) for count in (1, 2))
    return one / two
