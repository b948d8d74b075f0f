"""The account of a turn on this machine: programs that wait, each in its own way, keep what they waited for."""

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from harness.measure.account import Account, quota_files, unavailable_reason
from harness.records.run import Account as Figures
from harness.records.run import Turn
from harness.stats.pairing import own_ns

# Where other tests take the cores, the clocks of a thread and of its process disagree by more than an account accepts.
pytestmark = [
    pytest.mark.timing,
    pytest.mark.skipif(not Path("/proc/thread-self/schedstat").exists(), reason="this kernel tells too little"),
]

WAIT_S = 0.05


def turn_of(work: Callable[[], object]) -> Turn:
    """One call, as a worker times it."""
    account = Account(on_calling_thread=True)
    account.before()
    account.start()
    started = time.perf_counter_ns()
    work()
    wall_ns = time.perf_counter_ns() - started
    cpu_ns = account.stop()
    return Turn(case="a", calls=1, wall_ns=wall_ns, cpu_ns=cpu_ns, account=Figures(**account.read()))


def compute(seconds: float) -> None:
    """Use so much CPU time of this thread, however long that takes."""
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        pass


def test_a_program_that_waits_keeps_its_wait() -> None:
    def work() -> None:
        compute(WAIT_S)
        time.sleep(WAIT_S)

    turn = turn_of(work)
    assert turn.account is not None and turn.account.voluntary
    assert own_ns(turn) >= 2 * WAIT_S * 1e9


@contextlib.contextmanager
def hogs(number: int, core: int) -> Iterator[None]:
    """So many processes that compute on one core."""
    code = f"import os; os.sched_setaffinity(0, {{{core}}}); print(flush=True)\nwhile True: pass"
    children = [subprocess.Popen([sys.executable, "-S", "-c", code], stdout=subprocess.PIPE) for _ in range(number)]
    try:
        for child in children:
            assert child.stdout is not None
            child.stdout.readline()
        yield
    finally:
        for child in children:
            child.kill()
            child.communicate()


def test_what_other_processes_take_is_no_part_of_own_time() -> None:
    cores = os.sched_getaffinity(0)
    core = max(cores)
    with hogs(2, core):
        os.sched_setaffinity(0, {core})
        try:
            turn = turn_of(lambda: compute(0.2))
        finally:
            os.sched_setaffinity(0, cores)
    assert turn.account is not None
    assert turn.account.involuntary
    assert turn.account.core == core
    assert own_ns(turn) == pytest.approx(0.2e9, rel=0.05)
    assert turn.wall_ns > 1.5 * own_ns(turn)


def test_a_thread_clock_that_counts_in_ticks_is_no_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    assert unavailable_reason() is None
    fine = time.thread_time_ns
    monkeypatch.setattr(time, "thread_time_ns", lambda: fine() // 4_000_000 * 4_000_000)
    assert unavailable_reason() == "this kernel counts a thread's time in ticks of milliseconds"
    turn = turn_of(lambda: None)
    assert turn.account is not None and turn.account.thread_ns is None


OF_VERSION_1 = {"pod/cpu.cfs_quota_us": "50000", "pod/cpu.stat": "", "cpu.cfs_quota_us": "-1", "cpu.stat": ""}


@pytest.mark.parametrize(
    ("cgroup", "files", "found"),
    [
        ("0::/a/b\n", {"sys/fs/cgroup/a/cpu.max": "50000 100000", "sys/fs/cgroup/a/cpu.stat": ""}, ["a/cpu.stat"]),
        ("0::/a\n", {"sys/fs/cgroup/a/cpu.max": "max 100000", "sys/fs/cgroup/a/cpu.stat": ""}, []),
        (
            "3:cpu,cpuacct:/pod\n2:memory:/pod\n",
            {f"sys/fs/cgroup/cpu,cpuacct/{name}": text for name, text in OF_VERSION_1.items()},
            ["cpu,cpuacct/pod/cpu.stat"],
        ),
    ],
)
def test_quotas_of_the_groups_above_are_found(
    tmp_path: Path, cgroup: str, files: dict[str, str], found: list[str]
) -> None:
    for name, text in {"proc/self/cgroup": cgroup, **files}.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    assert quota_files(tmp_path) == [tmp_path / "sys/fs/cgroup" / name for name in found]
