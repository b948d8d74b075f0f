"""Runs during which hosts, the scheduler and the asker are killed and stopped at random: is everything there once?

A trial is one run of a made-up suite. Its seed decides what happens when. The processes are the harness's own: worker
and nanny on each host, scheduler, asker; what compiles and measures is simulated. Where a run ends since its scheduler
has gone or since it was killed, it goes on as `harness run --resume` does, until it is done; then its folder is read
back.
"""

import contextlib
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import psutil

from benchmarks.fleet.asker import GO_ON
from benchmarks.fleet.audit import Audit, audit
from benchmarks.fleet.processes import Processes, end, free_port
from benchmarks.fleet.sizes import Size, Work, to_text
from harness.store.run_directory import load_run

# Seconds without a sign of life after which a host is given up, as few as there can be; and that a run waits for it.
LOST_AFTER_S, RETURN_S = 5.0, 2.0
HOSTS = ("host-a", "host-b", "host-c")
SIZE = Size(models=9, variants=2, generations=3, generation_s=0.2, program_bytes=4096, argument_bytes=4096)
WORK = Work(
    cores=2,
    compile_s=0.4,
    check_s=0.05,
    reference_s=0.05,
    start_s=0.1,
    turn_s=0.01,
    peak_s=0.05,
    module_bytes=30_000,
    output_bytes=4096,
)
_LONGEST_TRIAL_S = 180.0
# A run without faults takes about as long.
_WITHIN_S = 8.0

KINDS = {
    "worker killed": 4,
    "host killed, back later": 3,
    "host killed for good": 2,
    "worker stopped for a while": 3,
    "host stopped for a while": 2,
    "scheduler killed": 1,
    "asker killed": 2,
}


@dataclass(frozen=True, kw_only=True)
class Trial:
    """One run with faults.

    Attributes:
        faults: What happened to whom, in order.
        resumed: How often the run went on in another process.
        audit: None: the run never came to its end.
    """

    seed: int
    faults: tuple[str, ...]
    resumed: int
    seconds: float
    audit: Audit | None


class Victims:
    """A fleet whose parts can be killed, stopped and started again; it serves one trial after the other."""

    def __init__(self, processes: Processes) -> None:
        self._processes = processes
        self.address = f"tls://127.0.0.1:{free_port()}"
        self.asker: subprocess.Popen[bytes] | None = None
        self._hosts: dict[str, subprocess.Popen[bytes]] = {}
        self._later: list[tuple[float, Callable[[], object]]] = []
        processes.make_members()
        self._scheduler = processes.scheduler(self.address, LOST_AFTER_S)

    def heal(self) -> None:
        """Have everybody here and awake."""
        for _, act in self._later:
            act()
        self._later.clear()
        self._start_scheduler()
        for name in HOSTS:
            self.start(name)
        for name in HOSTS:
            self._processes.wait_for(name, "has joined")

    def start(self, name: str) -> None:
        """Start a host that is not running."""
        if name in self._hosts and self._hosts[name].poll() is None:
            return
        folder = self._processes.folder / name
        temporary = folder / "temporary"
        temporary.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, "-m", "benchmarks.fleet.faulty_host", self.address, name, str(folder / "events")]
        environment = {"HARNESS_CACHE": str(folder / "cache"), "TMPDIR": str(temporary)}
        self._hosts[name] = self._processes.start(name, [*command, to_text(WORK)], environment)

    def tick(self) -> None:
        """Do what is due."""
        now = time.monotonic()
        for due in [due for due in self._later if due[0] <= now]:
            self._later.remove(due)
            due[1]()

    def hurt(self, kind: str, random_: random.Random) -> str:
        """Do something to somebody; what and whom."""
        running = [name for name, host in self._hosts.items() if host.poll() is None]
        name = random_.choice(sorted(running)) if running else ""
        back_s = round(random_.uniform(0.5, 1.5 * LOST_AFTER_S), 1)
        if kind == "scheduler killed":
            end(self._scheduler)
            self._after(1.0, self._start_scheduler)
            return kind
        if kind == "asker killed":
            if self.asker is not None:
                end(self.asker)
            return kind
        if not name or (kind.startswith("host killed") and len(running) == 1):
            return ""
        host = self._hosts[name]
        if kind == "worker killed":
            _signal(_worker_of(host), signal.SIGKILL)
        elif kind.startswith("host killed"):
            end(host)
            if "later" in kind:
                self._after(back_s, lambda: self.start(name))
        else:
            stopped = [_worker_of(host)] if kind.startswith("worker") else [_worker_of(host), host.pid]
            for pid in stopped:
                _signal(pid, signal.SIGSTOP)
            self._after(back_s, lambda: list(map(_go_on, stopped)))
        return f"{kind}: {name}{'' if 'killed' in kind and 'later' not in kind else f', {back_s} s'}"

    def _after(self, seconds: float, act: Callable[[], object]) -> None:
        self._later.append((time.monotonic() + seconds, act))

    def _start_scheduler(self) -> None:
        if self._scheduler.poll() is not None:
            self._scheduler = self._processes.scheduler(self.address, LOST_AFTER_S)


def _worker_of(host: subprocess.Popen[bytes]) -> int | None:
    """The worker process of a host, which its nanny started; None: it has none now."""
    with contextlib.suppress(psutil.Error):
        for child in psutil.Process(host.pid).children():
            if "spawn_main" in " ".join(child.cmdline()):
                return child.pid
    return None


def _signal(pid: int | None, number: int) -> None:
    if pid is not None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


def _go_on(pid: int | None) -> None:
    _signal(pid, signal.SIGCONT)


def run_trials(seeds: range, kinds: Mapping[str, int] = KINDS) -> list[Trial]:
    """Do trials one after the other, with one fleet."""
    trials = []
    with (
        tempfile.TemporaryDirectory(prefix="fleet-faults-", ignore_cleanup_errors=True) as scratch,
        Processes(Path(scratch)) as processes,
    ):
        victims = Victims(processes)
        for seed in seeds:
            victims.heal()
            trials.append(_trial(victims, processes, Path(scratch) / f"trial-{seed}", seed, kinds))
            _say(trials[-1])
    return trials


def _trial(victims: Victims, processes: Processes, folder: Path, seed: int, kinds: Mapping[str, int]) -> Trial:
    random_ = random.Random(seed)  # noqa: S311 (no secret)
    count = random_.randint(2, 5)
    when = sorted(random_.uniform(1.0, _WITHIN_S) for _ in range(count))
    chosen = random_.choices(list(kinds), weights=list(kinds.values()), k=count)
    plan = list(zip(when, chosen, strict=True))
    folder.mkdir()
    environment = {"HARNESS_CACHE": str(folder / "cache")}
    command = [sys.executable, "-m", "benchmarks.fleet.asker", victims.address, str(folder), to_text(SIZE)]
    command += ["--salt", str(seed), "--return-s", str(RETURN_S)]
    began, begun, done = time.monotonic(), 0, False
    faults: list[str] = []
    while time.monotonic() - began < _LONGEST_TRIAL_S:
        if victims.asker is None or (status := victims.asker.poll()) is not None:
            if victims.asker is not None and status not in (0, GO_ON, -signal.SIGKILL):
                faults.append(f"the asker ended with {status}: {processes.log('asker').read_text()[-500:]}")
            if victims.asker is not None and status == 0:
                done = True
                break
            time.sleep(1.0 if begun else 0.0)
            victims.asker = processes.start("asker", command, environment)
            begun += 1
        victims.tick()
        if plan and time.monotonic() - began >= plan[0][0]:
            faults.append(victims.hurt(plan.pop(0)[1], random_))
        time.sleep(0.05)
    if victims.asker is not None:
        end(victims.asker)
        victims.asker = None
    found = [path for path in (folder / "results").glob("*") if path.is_dir()]
    return Trial(
        seed=seed,
        faults=tuple(fault for fault in faults if fault),
        resumed=begun - 1,
        seconds=time.monotonic() - began,
        audit=audit(load_run(found[0]), SIZE.generations) if done and found else None,
    )


def _say(trial: Trial) -> None:
    """One line for people who wait."""
    found = trial.audit
    came = "did not end" if found is None else f"{found.whole}/{found.generations}, {found.reported} reported"
    wrong = () if found is None else (*found.lost, *found.twice, *found.reasons)
    sys.stderr.write(
        f"trial {trial.seed}: {came}, {trial.seconds:.0f} s, {trial.resumed} resumed, {trial.faults} {wrong}\n"
    )
    sys.stderr.flush()
