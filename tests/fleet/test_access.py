"""Which addresses may be used, what is said of those where nobody is, and what is wrong with certificates."""

import asyncio
import contextlib
import math
import socket
import ssl
import struct
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta, timezone
from ipaddress import IPv4Address, IPv6Address
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.errors import UsageError
from harness.fleet import certificates, worker
from harness.fleet.access import Access, Address, access_to, ask, dashboard_address, parse_address, require_answer
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
from harness.fleet.worker import await_place, host_name, require_place


@given(host=st.ip_addresses(), port=st.integers(0, 65535), scheme=st.sampled_from(["tcp", "tls"]))
def test_an_address_reads_as_it_is_written(host: IPv4Address | IPv6Address, port: int, scheme: str) -> None:
    text = f"{scheme}://[{host}]:{port}" if host.version == 6 else f"{scheme}://{host}:{port}"
    address = parse_address(text, "--fleet")
    assert (str(address), address.is_loopback) == (text, host.is_loopback)


@pytest.mark.parametrize(("text", "loopback"), [("tls://bench:8786", False), ("tcp://localhost:8786", True)])
def test_a_port_that_is_left_out_is_8786(text: str, loopback: bool) -> None:
    address = parse_address(text.removesuffix(":8786"), "--fleet")
    assert (str(address), address.is_loopback) == (text, loopback)


@pytest.mark.parametrize(
    "text", ["bench:8786", "http://bench", "tls://", "tls://bench:http", "tls://a@bench", "tls://a..b", "tls://a#b"]
)
def test_other_addresses_are_one_sentence(text: str) -> None:
    with pytest.raises(UsageError, match="write tls://HOST:8786"):
        parse_address(text, "--fleet")


def test_tcp_is_for_this_machine_unless_the_network_is_trusted() -> None:
    with pytest.raises(UsageError, match=r"use tls://10\.0\.0\.1:8786, or give --trust-network"):
        access_to("tcp://10.0.0.1", "--fleet", None, trust_network=False)
    assert access_to("tcp://10.0.0.1", "--fleet", None, trust_network=True).member is None
    assert access_to("tcp://127.0.0.1", "--fleet", None, trust_network=False).member is None


def test_the_dashboard_is_for_this_machine_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.fleet.access.find_spec", lambda _: None)
    with pytest.raises(UsageError, match=r"bokeh, which is not installed; run pip install 'iree-harness\[fleet\]'"):
        dashboard_address(":8787", trust_network=False)
    monkeypatch.setattr("harness.fleet.access.find_spec", lambda _: object())
    assert str(dashboard_address(":8787", trust_network=False)) == "tcp://127.0.0.1:8787"
    with pytest.raises(UsageError, match="ssh -L 8787"):
        dashboard_address("0.0.0.0:8787", trust_network=False)


def test_who_does_not_answer_is_named(tmp_path: Path) -> None:
    make_fleet(tmp_path / "fleet", "bench", 1)
    with socket.create_server(("127.0.0.1", 0)) as unheard:
        port = unheard.getsockname()[1]
    for scheme in ("tcp", "tls"):
        access = access_to(f"{scheme}://127.0.0.1:{port}", "--fleet", tmp_path / "fleet", trust_network=False)
        with pytest.raises(UsageError, match=rf"{scheme}://127.0.0.1:{port}: nobody answers \(Connection refused\)"):
            require_answer(access)


@pytest.mark.parametrize("greeting", [b"", b"SSH-2.0-OpenSSH_9.2\r\n"])
def test_what_answers_otherwise_is_no_scheduler(greeting: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.fleet.access._GREET_S", 1.0 if greeting else 0.1)
    kept = []

    def greet() -> None:
        kept.append(other.accept()[0])
        kept[0].sendall(greeting)

    with socket.create_server(("127.0.0.1", 0)) as other:
        thread = threading.Thread(target=greet)
        thread.start()
        address = f"tcp://127.0.0.1:{other.getsockname()[1]}"
        with pytest.raises(UsageError, match="whether it should begin with tls://"):
            require_answer(access_to(address, "--fleet", None, trust_network=False))
        thread.join()
        kept[0].close()


def test_who_greets_and_does_not_answer_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.fleet.access._ANSWER_S", 0.1)
    monkeypatch.setattr("harness.fleet.access.require_answer", lambda _: None)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        access = access_to(f"tcp://127.0.0.1:{silent.getsockname()[1]}", "--fleet", None, trust_network=False)
        with pytest.raises(UsageError) as caught:
            ask(access, "harness_facts")
    assert str(caught.value) == f"{access.address}: the scheduler does not answer within 0.1 s; see what it says"


def _access(folder: Path, port: int) -> Access:
    """With a certificate that nobody has looked at, as when it ended while a scheduler ran."""
    member = Member(folder=folder, name="", ends=datetime.now(timezone.utc))
    return Access(address=parse_address(f"tls://127.0.0.1:{port}", "--fleet"), member=member)


@contextlib.contextmanager
def _scheduler_of(folder: Path) -> Iterator[int]:
    """Something that greets as a scheduler does, whose certificate lies in a folder; its port."""
    context = _access(folder, 0).security().get_listen_args("scheduler")["ssl_context"]
    with socket.create_server(("127.0.0.1", 0)) as server:

        def greet() -> None:
            with contextlib.suppress(OSError):
                plain, _ = server.accept()
                with plain, context.wrap_socket(plain, server_side=True) as channel:
                    channel.send(struct.pack("Q", 5) + b"hello")  # a message of Dask begins with its length

        thread = threading.Thread(target=greet)
        thread.start()
        yield server.getsockname()[1]
        thread.join()


@pytest.fixture(scope="module")
def members(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folders of members, each with something that another does not like."""
    folder = tmp_path_factory.mktemp("members")
    make_fleet(folder / "ours", "bench", 365)
    make_fleet(folder / "stranger", "bench", 365)
    for name, backdated, days in (("ended", timedelta(days=3), -1), ("early", timedelta(days=-3), 9)):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(certificates, "_BACKDATED", backdated)
            patch.setattr(certificates, "read_member", lambda _: None)
            make_member(folder / name, folder / "ours", name, days)
    make_member(folder / "defector", folder / "stranger", "defector", 9)
    both = (folder / "ours" / AUTHORITY).read_bytes() + (folder / "stranger" / AUTHORITY).read_bytes()
    (folder / "defector" / AUTHORITY).write_bytes(both)
    return folder


@pytest.mark.parametrize(
    ("scheduler", "asker", "words"),
    [
        ("ours", "ours", ""),
        ("ours", "stranger", "does not trust the scheduler (self-signed certificate"),
        ("ended", "ours", "does not trust the scheduler (certificate has expired); compare the clocks"),
        ("early", "ours", "does not trust the scheduler (certificate is not yet valid); compare the clocks"),
        ("ours", "ended", "/ended (certificate expired); compare the clocks"),
        ("ours", "defector", "/defector (unknown ca); compare"),
    ],
)
def test_sides_that_do_not_trust_each_other_say_why(members: Path, scheduler: str, asker: str, words: str) -> None:
    with _scheduler_of(members / scheduler) as port:
        if not words:
            require_answer(_access(members / asker, port))
            return
        with pytest.raises(UsageError) as caught:
            require_answer(_access(members / asker, port))
    assert words in str(caught.value)


# --- Certificates: who trusts whom, as Dask's own contexts decide it ---


def _channel(server: Path, client: Path) -> None:
    """Shake hands in memory, with the contexts that Dask makes of two members' files."""
    address = Address(scheme="tls", host="bench", port=8786)
    sides = {folder: Access(address=address, member=read_member(folder)).security() for folder in (server, client)}
    into_server, into_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    listening = sides[server].get_listen_args("scheduler")["ssl_context"]
    asking = sides[client].get_connection_args("client")["ssl_context"]
    ends = [
        listening.wrap_bio(into_server, into_client, server_side=True),
        asking.wrap_bio(into_client, into_server),
    ]
    for _ in range(4):
        for end in ends:
            try:
                end.do_handshake()
            except ssl.SSLWantReadError:
                continue


def test_members_of_one_fleet_trust_each_other_and_no_others(tmp_path: Path) -> None:
    make_fleet(tmp_path / "first", "bench", 365)
    member = make_member(tmp_path / "second", tmp_path / "first", "host-a", 30)
    make_fleet(tmp_path / "stranger", "bench", 365)
    today = datetime.now(timezone.utc)
    assert (member.name, member.soon_over(today - timedelta(days=1))) == ("host-a", "")
    assert "UTC only; make a new one where" in member.soon_over(today)
    _channel(tmp_path / "first", tmp_path / "second")
    _channel(tmp_path / "second", tmp_path / "first")
    with pytest.raises(ssl.SSLCertVerificationError):
        _channel(tmp_path / "first", tmp_path / "stranger")


def test_while_an_authority_is_replaced_members_of_both_trust_each_other(tmp_path: Path) -> None:
    old, new, late = tmp_path / "old", tmp_path / "new", tmp_path / "late"
    make_fleet(old, "bench", 365)
    make_fleet(new, "bench", 365)
    both = (old / AUTHORITY).read_bytes() + (new / AUTHORITY).read_bytes()
    for folder in (old, new):
        (folder / AUTHORITY).write_bytes(both)
    make_member(late, new, "host-b", 365)
    _channel(old, new)
    _channel(late, old)


def test_files_are_for_their_owner_alone_and_never_overwritten(tmp_path: Path) -> None:
    make_fleet(tmp_path / "fleet", "bench", 365)
    modes = {path.name: path.stat().st_mode & 0o777 for path in (tmp_path / "fleet").iterdir()}
    assert modes == dict.fromkeys((AUTHORITY, AUTHORITY_KEY, CERTIFICATE, KEY), 0o600)
    make_member(tmp_path / "member", tmp_path / "fleet", "host-a", 365)
    with pytest.raises(UsageError, match="would be overwritten; choose another folder"):
        make_fleet(tmp_path / "fleet", "bench", 365)
    with pytest.raises(UsageError, match="would be overwritten; choose another folder"):
        _member(tmp_path)
    assert not (tmp_path / "member" / AUTHORITY_KEY).exists()


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
        *((Path.resolve, {"name": name}, "is no name of a member") for name in ("", "höst", "two\nlines", "x" * 65)),
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


def _answering_after(questions: int) -> Callable[..., Any]:
    """What a scheduler says that is there only at the last of so many questions."""
    left = [questions]

    def ask(*_: object) -> Any:
        left[0] -= 1
        if left[0] > 0:
            raise UsageError("nobody answers")
        return {"versions": own_versions(), "hosts": []}

    return ask


@pytest.mark.parametrize(("questions", "is_there"), [(3, True), (10**6, False)])
def test_a_host_waits_as_long_as_its_patience(questions: int, is_there: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "_TRY_AGAIN_S", 0.01)
    said: list[str] = []
    patience_s = 60.0 if is_there else 0.1
    monkeypatch.setattr(worker, "ask", _answering_after(questions))
    if is_there:
        require_place(_ACCESS, "host-a", patience_s, said.append)
    else:
        with pytest.raises(UsageError, match="nobody answers"):
            require_place(_ACCESS, "host-a", patience_s, said.append)
    assert said == ["nobody answers"]


def test_a_host_that_is_ended_waits_no_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "ask", _answering_after(10**6))

    async def ended_at_once() -> object:
        stop = asyncio.Event()
        return await await_place(_ACCESS, "host-a", math.inf, lambda _: stop.set(), stop)

    with ThreadPoolExecutor(1) as apart:  # a browser's test may have left an event loop in this thread
        assert apart.submit(asyncio.run, ended_at_once()).result() is None


def test_a_host_that_returns_at_once_waits_until_its_name_is_free(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "_TRY_AGAIN_S", 0.01)
    before = [{"name": "host-a", "address": "tcp://127.0.0.1:2"}]
    facts = [{"versions": own_versions(), "hosts": hosts} for hosts in (before, before, [], before)]
    monkeypatch.setattr(worker, "ask", lambda *_: facts.pop(0))
    said: list[str] = []
    require_place(_ACCESS, "host-a", 60.0, said.append)
    with pytest.raises(UsageError) as caught:
        require_place(_ACCESS, "host-a")
    assert said == [str(caught.value)]
    assert said == [
        "tcp://127.0.0.1:1: the host host-a is there already (tcp://127.0.0.1:2); choose another name with --name, or"
        " where it is this host that has just gone, wait: it is given up within a minute (the scheduler's --lost-after)"
    ]


def test_a_host_may_have_the_name_of_any_machine_or_pod() -> None:
    assert host_name("p" * 64) == "p" * 64
    for name in ("p" * 65, "", "host a", "a/b"):
        with pytest.raises(UsageError, match=r"is no name of a host; .*, at most 64"):
            host_name(name)
