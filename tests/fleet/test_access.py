"""Which addresses may be used, and what is said of those where nobody is."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from ipaddress import IPv4Address, IPv6Address
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.errors import UsageError
from harness.fleet import certificates
from harness.fleet.access import Access, access_to, ask, dashboard_address, parse_address, require_answer
from harness.fleet.certificates import AUTHORITY, Member, make_fleet, make_member


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
