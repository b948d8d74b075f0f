"""Which addresses may be used, who trusts whom, what is wrong with certificates, and how long a host waits."""

import asyncio
import contextlib
import math
import socket
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from ipaddress import IPv4Address, IPv6Address
from pathlib import Path
from typing import Any

import pytest
from distributed.core import Server
from hypothesis import given
from hypothesis import strategies as st

from harness.errors import UsageError
from harness.fleet import access, certificates, worker
from harness.fleet.access import Access, access_to, ask, dashboard_address, parse_address
from harness.fleet.certificates import (
    AUTHORITY,
    AUTHORITY_KEY,
    CERTIFICATE,
    KEY,
    Member,
    make_fleet,
    make_member,
    read_member,
)
from harness.fleet.offer import own_versions
from harness.fleet.scheduler import FACTS
from harness.fleet.worker import await_place, host_name, require_place


@given(host=st.ip_addresses(), port=st.integers(0, 65535), scheme=st.sampled_from(["tcp", "tls"]))
def test_an_address_reads_as_it_is_written(host: IPv4Address | IPv6Address, port: int, scheme: str) -> None:
    text = f"{scheme}://[{host}]:{port}" if host.version == 6 else f"{scheme}://{host}:{port}"
    address = parse_address(text, "--fleet")
    assert (str(address), address.is_loopback) == (text, host.is_loopback)


def test_a_port_may_be_left_out_and_a_network_be_trusted() -> None:
    assert str(access_to("tcp://localhost", "--fleet", None, trust_network=False)) == "tcp://localhost:8786"
    assert str(access_to("tcp://10.0.0.1", "--fleet", None, trust_network=True)) == "tcp://10.0.0.1:8786"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        *(
            (text, "write tls://HOST:8786")
            for text in ("bench", "http://bench", "tls://", "tls://a:http", "tls://a@bench", "tls://a..b", "tls://a#b")
        ),
        ("tcp://10.0.0.1", r"use tls://10\.0\.0\.1:8786, or give --trust-network"),
    ],
)
def test_addresses_that_may_not_be_used(text: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        access_to(text, "--fleet", None, trust_network=False)


def test_the_dashboard_is_for_this_machine_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(access, "find_spec", lambda _: None)
    with pytest.raises(UsageError, match=r"bokeh, which is not installed; run pip install 'iree-harness\[fleet\]'"):
        dashboard_address(":8787", trust_network=False)
    monkeypatch.setattr(access, "find_spec", lambda _: object())
    assert str(dashboard_address(":8787", trust_network=False)) == "tcp://127.0.0.1:8787"
    with pytest.raises(UsageError, match="ssh -L 8787"):
        dashboard_address("0.0.0.0:8787", trust_network=False)


# --- Who answers, and who trusts whom ---


@contextlib.contextmanager
def _scheduler_of(folder: Path) -> Iterator[int]:
    """A server of Dask with the certificate of a folder; its port."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    server = Server({FACTS: lambda: "facts"})
    options = _access(folder, 0).security().get_listen_args("scheduler")
    asyncio.run_coroutine_threadsafe(server.listen("tls://127.0.0.1:0", **options), loop).result()
    yield server.port
    asyncio.run_coroutine_threadsafe(server.close(), loop).result()
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()


def _access(folder: Path, port: int) -> Access:
    """With a certificate that nobody has looked at, as when it ended while a scheduler ran."""
    member = Member(folder=folder, name="", ends=datetime.now(timezone.utc))
    return replace(parse_address(f"tls://127.0.0.1:{port}", "--fleet"), member=member)


@pytest.mark.parametrize("greeting", [b"", b"SSH-2.0-OpenSSH_9.2\r\n"])
def test_who_does_not_answer_or_otherwise_is_named(greeting: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(access, "_CONNECT_S", 0.2)
    monkeypatch.setattr(access, "_ANSWER_S", 0.5)
    with socket.create_server(("127.0.0.1", 0)) as other:
        address = f"tcp://127.0.0.1:{other.getsockname()[1]}"
        answered = threading.Event()

        def greet() -> None:
            with other.accept()[0] as plain:
                plain.send(greeting)
                answered.wait()

        thread = threading.Thread(target=greet)
        thread.start()
        with pytest.raises(UsageError, match=f"{address}: nobody answers as a scheduler does"):
            ask(access_to(address, "--fleet", None, trust_network=False), FACTS)
        answered.set()
        thread.join()
    with pytest.raises(UsageError, match=rf"{address}: nobody answers \(Connection refused\)"):
        ask(access_to(address, "--fleet", None, trust_network=False), FACTS)


@pytest.fixture(scope="module")
def members(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folders of members, each with something that another may not like."""
    folder = tmp_path_factory.mktemp("members")
    make_fleet(folder / "ours", "bench", 365)
    make_fleet(folder / "stranger", "bench", 365)
    make_member(folder / "second", folder / "ours", "host-a", 30)
    for name, backdated, days in (("ended", timedelta(days=3), -1), ("early", timedelta(days=-3), 9)):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(certificates, "_BACKDATED", backdated)
            patch.setattr(certificates, "read_member", lambda _: None)
            make_member(folder / name, folder / "ours", name, days)
    # While an authority is replaced, members trust both: old and late do, and a defector takes it for itself.
    both = (folder / "ours" / AUTHORITY).read_bytes() + (folder / "stranger" / AUTHORITY).read_bytes()
    make_member(folder / "old", folder / "ours", "old", 9)
    make_member(folder / "defector", folder / "stranger", "defector", 9)
    make_fleet(folder / "new", "bench", 365)
    for name in ("old", "defector", "new"):
        (folder / name / AUTHORITY).write_bytes(both + (folder / "new" / AUTHORITY).read_bytes() * (name != "defector"))
    make_member(folder / "late", folder / "new", "late", 9)
    return folder


@pytest.mark.parametrize(
    ("scheduler", "client", "words"),
    [
        ("second", "ours", ""),
        ("late", "old", ""),
        ("old", "late", ""),
        ("ours", "stranger", "does not trust the scheduler (self-signed certificate"),
        ("ended", "ours", "does not trust the scheduler (certificate has expired); compare the clocks"),
        ("early", "ours", "does not trust the scheduler (certificate is not yet valid); compare the clocks"),
        ("ours", "ended", "no scheduler answers that trusts"),
        ("ours", "defector", "no scheduler answers that trusts"),
    ],
)
def test_members_of_one_fleet_trust_each_other_and_others_say_why_not(
    members: Path, scheduler: str, client: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(access, "_CONNECT_S", 1.0)
    with _scheduler_of(members / scheduler) as port:
        if not words:
            assert ask(_access(members / client, port), FACTS) == "facts"
            return
        with pytest.raises(UsageError) as caught:
            ask(_access(members / client, port), FACTS)
    assert words in str(caught.value)


# --- Certificates ---


def test_files_are_for_their_owner_alone_and_never_overwritten(tmp_path: Path) -> None:
    make_fleet(tmp_path / "fleet", "bench", 365)
    modes = {path.name: path.stat().st_mode & 0o777 for path in (tmp_path / "fleet").iterdir()}
    assert modes == dict.fromkeys((AUTHORITY, AUTHORITY_KEY, CERTIFICATE, KEY), 0o600)
    member = _member(tmp_path)
    assert not (tmp_path / "member" / AUTHORITY_KEY).exists()
    with pytest.raises(UsageError, match="would be overwritten; choose another folder"):
        make_fleet(tmp_path / "fleet", "bench", 365)
    with pytest.raises(UsageError, match="would be overwritten; choose another folder"):
        _member(tmp_path)
    today = datetime.now(timezone.utc)
    assert (member.name, member.soon_over(today - timedelta(days=1))) == ("host-a", "")
    assert "UTC only; make a new one where" in member.soon_over(today)


def _member(folder: Path, name: str = "host-a", days: int = 30) -> Member:
    return make_member(folder / "member", folder / "fleet", name, days)


def _of_another(folder: Path, file: str) -> None:
    make_fleet(folder / "other", "bench", 365)
    (folder / "fleet" / file).write_bytes((folder / "other" / file).read_bytes())


@pytest.mark.parametrize(
    ("harm", "words"),
    [
        (lambda folder: (folder / "fleet" / KEY).chmod(0o640), "run `chmod 600 "),
        (lambda folder: _of_another(folder, KEY), "do not belong together, or are damaged"),
        (lambda folder: (folder / "fleet" / CERTIFICATE).write_text("hello"), "do not belong together, or are damaged"),
        (lambda folder: (folder / "fleet" / CERTIFICATE).unlink(), "certificate.pem missing; make a fleet with"),
    ],
)
def test_what_is_wrong_with_a_members_folder_is_one_sentence(
    tmp_path: Path, harm: Callable[[Path], object], words: str
) -> None:
    make_fleet(tmp_path / "fleet", "bench", 365)
    harm(tmp_path)
    with pytest.raises(UsageError, match=words):
        read_member(tmp_path / "fleet")


@pytest.mark.parametrize(
    ("harm", "given", "words"),
    [
        (Path.resolve, {"days": 3651}, "give fewer --days"),
        (Path.resolve, {"days": 10**12}, "give fewer --days"),
        (Path.resolve, {"name": ""}, "is no name of a member"),
        (Path.resolve, {"name": "x" * 65}, "is no name of a member"),
        (lambda folder: (folder / "fleet" / AUTHORITY_KEY).chmod(0o644), {}, "chmod 600 .*authority-key.pem"),
        (lambda folder: (folder / "fleet" / AUTHORITY_KEY).unlink(), {}, "give the folder in which"),
        (lambda folder: _of_another(folder, AUTHORITY), {}, "take both from one fleet"),
    ],
)
def test_what_no_member_can_be_made_of_is_one_sentence(
    tmp_path: Path, harm: Callable[[Path], object], given: dict[str, Any], words: str
) -> None:
    make_fleet(tmp_path / "fleet", "bench", 365)
    harm(tmp_path)
    with pytest.raises(UsageError, match=words):
        _member(tmp_path, **given)
    assert not (tmp_path / "member").exists()


# --- How long a host waits for a scheduler, and for its name ---

_ACCESS = access_to("tcp://127.0.0.1:1", "--scheduler", None, trust_network=False)
_THERE = {"versions": own_versions(), "hosts": [{"name": "host-a", "address": "tcp://127.0.0.1:2"}]}
_FREE = {"versions": own_versions(), "hosts": []}


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What a scheduler says, one after the other; then nobody answers."""
    found: list[Any] = []

    def ask(*_: object) -> Any:
        if not found or found[0] is None:
            del found[:1]
            raise UsageError("nobody answers")
        return found.pop(0)

    monkeypatch.setattr(worker, "ask", ask)
    monkeypatch.setattr(worker, "_TRY_AGAIN_S", 0.01)
    return found


def test_a_host_waits_for_a_scheduler_and_for_its_name_as_long_as_its_patience(answers: list[Any]) -> None:
    said: list[str] = []
    answers[:] = [None, None, _THERE, _THERE, _FREE]
    require_place(_ACCESS, "host-a", 60.0, said.append)
    assert said[0] == "nobody answers"
    assert said[1].startswith("tcp://127.0.0.1:1: the host host-a is there already (tcp://127.0.0.1:2); choose another")
    assert len(said) == 2
    answers[:] = [_THERE]
    with pytest.raises(UsageError, match="the host host-a is there already"):
        require_place(_ACCESS, "host-a")
    with pytest.raises(UsageError, match="nobody answers"):
        require_place(_ACCESS, "host-a", 0.1)


@pytest.mark.usefixtures("answers")
def test_a_host_that_is_ended_waits_no_longer() -> None:
    async def ended_at_once() -> object:
        stop = asyncio.Event()
        return await await_place(_ACCESS, "host-a", math.inf, lambda _: stop.set(), stop)

    with ThreadPoolExecutor(1) as apart:  # a browser's test may have left an event loop in this thread
        assert apart.submit(asyncio.run, ended_at_once()).result() is None


def test_a_host_may_have_the_name_of_any_machine_or_pod() -> None:
    assert host_name("p" * 64) == "p" * 64
    for name in ("p" * 65, "", "host a", "a/b"):
        with pytest.raises(UsageError, match=r"is no name of a host; .*, at most 64"):
            host_name(name)
