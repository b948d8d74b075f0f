"""Many simulated hosts and one real asker, with a real scheduler between them: what the engine itself takes.

The hosts share this machine with the asker and the scheduler, and each of them has some Python to run that would run on
a machine of its own elsewhere. So what hosts do is waiting, and takes as long as it does for small models, since all
processes together must leave the machine's cores free for a part of the time; how busy they are is in the table, as is
what the engine takes of each case.
"""

import json
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

from benchmarks.fleet.asker import Took
from benchmarks.fleet.crowd import JOINED
from benchmarks.fleet.processes import Processes, free_port
from benchmarks.fleet.sizes import Size, Work, to_text
from benchmarks.fleet.waits import Event, Waits, waits_of

HOSTS = (10, 50, 200)
CASES_A_HOST = 50
# A compile of seconds, where many take minutes: 10 s of a host for each case, so a run takes 500 s with any number of
# hosts. With 200 all processes together take some 400 s of CPU, of the 1,000 s that two cores have.
WORK = Work(
    cores=2,
    compile_s=9.0,
    check_s=0.5,
    reference_s=1.0,
    start_s=2.0,
    turn_s=0.1,
    peak_s=2.0,
)
_VARIANTS, _GENERATIONS, _ROUNDS = 10, 5, 6
_HOSTS_A_PROCESS = 50
_LOST_AFTER_S = 60.0


@dataclass(frozen=True, kw_only=True)
class Simulated:
    """What a run over simulated hosts took.

    Attributes:
        wire_bytes: All that went over the loopback interface, in either direction once.
        scheduler_s: CPU time.
        hosts_s: CPU time of all simulated hosts together.
        scheduler_bytes: Resident memory of the scheduler at the end.
        machine: How busy this machine's cores were, from 0 to 1.
        run_bytes: Of the run's directory.
    """

    hosts: int
    size: Size
    work: Work
    took: Took
    waits: Waits
    wire_bytes: int
    scheduler_s: float
    hosts_s: float
    scheduler_bytes: int
    machine: float
    run_bytes: int

    @property
    def wall_s(self) -> float:
        """From the first question to the last answer."""
        return self.took.ended - self.took.began

    @property
    def cpu_of_a_case_s(self) -> tuple[float, float, float]:
        """What asker, scheduler and all hosts' Dask take of it."""
        asker, scheduler, hosts = self.took.cpu_s, self.scheduler_s, self.hosts_s
        return asker / self.size.cases, scheduler / self.size.cases, hosts / self.size.cases


def size_for(hosts: int, cases_a_host: int) -> Size:
    """A suite that has so many cases for each host."""
    return Size(
        models=max(hosts * cases_a_host // _VARIANTS, 1),
        variants=_VARIANTS,
        generations=_GENERATIONS,
        generation_s=_VARIANTS * _ROUNDS * WORK.turn_s,
    )


def simulate(hosts: int, size: Size, work: Work) -> Simulated:
    """Run a made-up suite over so many hosts.

    Raises:
        RuntimeError: It did not come to its end, or something of it is missing.
    """
    with tempfile.TemporaryDirectory(prefix="fleet-simulated-") as scratch:
        folder = Path(scratch)
        with Processes(folder) as processes:
            return _simulate(processes, folder, hosts, size, work)


def _simulate(processes: Processes, folder: Path, hosts: int, size: Size, work: Work) -> Simulated:
    address, events = f"tcp://127.0.0.1:{free_port()}", folder / "events.jsonl"
    scheduler = psutil.Process(processes.scheduler(address, _LOST_AFTER_S).pid)
    cache = {"HARNESS_CACHE": str(folder / "cache")}
    names = [f"host-{number:03}" for number in range(hosts)]
    crowds = []
    for first in range(0, hosts, _HOSTS_A_PROCESS):
        crowd = f"crowd-{first}"
        command = [sys.executable, "-m", "benchmarks.fleet.crowd", address, str(events), to_text(work)]
        crowds.append(processes.start(crowd, [*command, *names[first : first + _HOSTS_A_PROCESS]], cache))
        processes.wait_for(crowd, JOINED)
    watched = [psutil.Process(crowd.pid) for crowd in crowds]
    before = _cpu_s([scheduler]), _cpu_s(watched), psutil.cpu_times(), _loopback_bytes()
    command = [sys.executable, "-m", "benchmarks.fleet.asker", address, str(folder), to_text(size)]
    asker = processes.start("asker", command, cache)
    while (status := asker.poll()) is None:
        time.sleep(0.2)
    printed = processes.log("asker").read_text()
    if status:
        raise RuntimeError(f"the asker ended with {status}: {printed[-2000:]}")
    took = Took(**json.loads(printed.splitlines()[-1]))
    found = [Event(**json.loads(line)) for line in events.read_text().splitlines()]
    (run,) = (folder / "results").iterdir()
    _require_whole(run, size)
    return Simulated(
        hosts=hosts,
        size=size,
        work=work,
        took=took,
        waits=waits_of(found, hosts, work.cores, took.began, took.ended),
        wire_bytes=_loopback_bytes() - before[3],
        scheduler_s=_cpu_s([scheduler]) - before[0],
        hosts_s=_cpu_s(watched) - before[1],
        scheduler_bytes=scheduler.memory_info().rss,
        machine=_busy(before[2], psutil.cpu_times()),
        run_bytes=sum(file.stat().st_size for file in run.rglob("*") if file.is_file()),
    )


def _require_whole(run: Path, size: Size) -> None:
    """See that nothing is missing from the run's directory, without reading its rounds as values.

    Raises:
        RuntimeError: Something is.
    """
    wanted = {"builds.jsonl": size.cases, "checks.jsonl": size.cases, "references.jsonl": size.cases}
    for name, count in wanted.items():
        with (run / name).open() as file:
            found = sum(1 for _ in file)
        if found != count:
            raise RuntimeError(f"{name} has {found} lines instead of {count}")
    with (run / "rounds.jsonl").open() as file:
        rounds = [json.loads(line) for line in file]
    generations = {(each["group"], each["generation"]) for each in rounds}
    if len(generations) != size.models * size.generations:
        raise RuntimeError(f"rounds of {len(generations)} generations instead of {size.models * size.generations}")
    if len({(each["group"], each["generation"], each["round"]) for each in rounds}) != len(rounds):
        raise RuntimeError("a round is there twice")


def _cpu_s(processes: Sequence[psutil.Process]) -> float:
    return sum(sum(process.cpu_times()[:2]) for process in processes)


def _loopback_bytes() -> int:
    return int(psutil.net_io_counters(pernic=True)["lo"].bytes_sent)


def _busy(before: tuple[float, ...], after: tuple[float, ...]) -> float:
    """How busy all cores were."""
    idle = after[3] - before[3]  # user, nice, system, idle, ... on Linux
    return 1 - idle / (sum(after[:8]) - sum(before[:8]))


def say(simulated: Simulated) -> None:
    """One line for people who wait."""
    sys.stderr.write(
        f"{simulated.hosts} hosts, {simulated.size.cases} cases: {simulated.wall_s:.0f} s, waits"
        f" {simulated.waits.waited:.1%}, after {simulated.waits.after:.1%}, asker {simulated.took.cpu_s:.0f} s and"
        f" {simulated.took.peak_bytes / 1e6:.0f} MB, scheduler {simulated.scheduler_s:.0f} s, hosts"
        f" {simulated.hosts_s:.0f} s, load {os.getloadavg()[0]:.1f}\n"
    )
