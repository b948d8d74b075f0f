"""What Dask's own scheduler and workers become with the preload."""

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import dask
import pytest
from distributed.nanny import Nanny
from distributed.security import Security

from harness.errors import UsageError
from harness.fleet import cluster
from harness.fleet.access import ROLES, access_to
from harness.fleet.certificates import make_fleet
from harness.fleet.connection import connect
from harness.fleet.worker import COMPILE, MEASURE, OTHER_THREADS
from harness.options import CERTIFICATES_VARIABLE
from harness.process import Limits
from tests.fleet.world import on_host, switch_off, wait_for

Start = Callable[..., Path]


@pytest.fixture
def start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Start]:
    """Starts one of Dask's commands, as a cluster class does."""
    monkeypatch.setenv("HARNESS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv(cluster.AS_ROOT, "1")
    started: list[subprocess.Popen[bytes]] = []

    def start(command: str, *arguments: str) -> Path:
        log = tmp_path / f"{command}.log"
        with log.open("wb") as file:
            words = [sys.executable, "-m", f"distributed.cli.{command}", "--host", "127.0.0.1", *arguments]
            started.append(subprocess.Popen(words, stdout=file, stderr=file, start_new_session=True))
        return log

    yield start
    switch_off(*started)
    for process in started:
        process.wait()


def test_a_cluster_of_dasks_own_is_a_fleet(start: Start) -> None:
    log = start(
        "dask_scheduler", "--port", "0", "--dashboard-address", "127.0.0.1:0", "--preload", "harness.fleet.cluster"
    )
    address = wait_for(lambda: re.search(r"Scheduler at: +(\S+)", log.read_text()))[1]
    given = ("--name", "7", "--nthreads", "2", "--memory-limit", "3 GiB")
    worker = start("dask_worker", address, *given, "--preload-nanny", "harness.fleet.cluster")
    with connect(access_to(address, "--fleet", None, trust_network=False)) as fleet:
        offers = fleet.await_host(60.0)
        offer = offers.usable["7"]
        assert (offer.name, offer.cores, offers.refused) == ("7", 2, {})

        def order() -> tuple[Limits, set[str], str, int]:
            import dask
            from distributed.worker import get_worker

            from harness.fleet import worker

            threads = get_worker().state.nthreads
            return worker.limits_here(Limits()), daskish & set(os.environ), dask.config.get(tick), threads

        tick = "distributed.admin.tick.interval"
        daskish = {"PYTHONHASHSEED", "OMP_NUM_THREADS", "MALLOC_TRIM_THRESHOLD_"} - set(os.environ)
        asked = on_host(fleet, order, resources={MEASURE: 1, COMPILE: 2})
        limits = Limits(seconds=3600.0, memory_bytes=3 * 2**30)
        assert asked.result(timeout=60.0) == (limits, set(), "1 s", 2 + OTHER_THREADS)
    assert "7 has joined" in log.read_text()
    assert "ERROR" not in log.read_text() + worker.read_text()


def test_a_cluster_has_the_certificate_of_its_fleet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_fleet(tmp_path / "bench", "bench", 1)
    same = access_to("tls://bench:8786", "--fleet", tmp_path / "bench", trust_network=False).security()
    with dask.config.set(cluster.configuration(tmp_path / "bench")):
        found = Security()
    monkeypatch.setenv(CERTIFICATES_VARIABLE, str(tmp_path / "bench"))
    monkeypatch.chdir(tmp_path)
    assert cluster.configuration() == cluster.configuration(Path("bench"))
    assert found.require_encryption
    assert {role: found.get_tls_config_for_role(role) for role in ROLES} == {
        role: same.get_tls_config_for_role(role) for role in ROLES
    }


@pytest.mark.parametrize(
    ("scheduler", "own", "is_root", "sentence"),
    [
        ("tcp://10.0.0.1:8786", "tcp://127.0.0.1:1", False, "tcp://10.0.0.1:8786: whoever reaches it runs programs on"),
        ("tcp://127.0.0.1:8786", "tcp://10.0.0.2:1", False, "tcp://10.0.0.2:1: whoever reaches it runs programs on"),
        ("tls://10.0.0.1:8786", "tls://10.0.0.2:1", True, "a fleet's worker does not run as root.*FLEET_AS_ROOT=1"),
    ],
)
def test_what_would_be_unsafe_is_refused(
    monkeypatch: pytest.MonkeyPatch, scheduler: str, own: str, is_root: bool, sentence: str
) -> None:
    for rule in (cluster.AS_ROOT, cluster.TRUST_NETWORK):
        monkeypatch.delenv(rule, raising=False)
    monkeypatch.setattr(os, "geteuid", lambda: 0 if is_root else 1000)
    nanny = Nanny.__new__(Nanny)
    nanny.__dict__["scheduler_addr"] = scheduler
    monkeypatch.setattr(Nanny, "listeners", [SimpleNamespace(contact_address=own)], raising=False)
    with pytest.raises(UsageError, match=sentence):
        cluster.dask_setup(nanny).send(None)
