"""Which addresses may be used, who trusts whom, what is wrong with certificates, and how long a host waits."""

import asyncio
import contextlib
import math
import socket
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from distributed.core import Server

from harness.errors import HarnessError, UsageError
from harness.fleet import access, processes
from harness.fleet.access import Access, access_to, ask, make_fleet, make_member, read_member, soon_over
from harness.fleet.placing import own_versions
from harness.fleet.processes import FACTS, wait_for_place


def local(address: str) -> Access:
    return access_to(address, "--fleet", None, trust_network=False)


def test_a_port_may_be_left_out_and_a_network_be_trusted() -> None:
    assert str(local("tcp://localhost")) == "tcp://localhost:8786"
    assert str(local("tcp://[::1]:0")) == "tcp://[::1]:0"
    assert str(access_to("tcp://10.0.0.1", "--fleet", None, trust_network=True)) == "tcp://10.0.0.1:8786"


@pytest.mark.parametrize(
    "text", ["bench", "http://bench", "tls://", "tls://a:x", "tls://a@b", "tls://a..b", "tls://a#b"]
)
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="write tls://HOST:8786"):
        local(text)


def test_a_plain_address_beyond_this_machine_is_refused() -> None:
    with pytest.raises(UsageError, match=r"use tls://10\.0\.0\.1:8786, or give --trust-network"):
        local("tcp://10.0.0.1")


# --- Who answers, and who trusts whom ---


async def _asked(scheduler: Path, client: Path) -> Any:
    """What a member is told by a server of Dask with the certificate of another."""
    server = Server({FACTS: lambda: "facts"})
    try:
        await server.listen("tls://127.0.0.1:0", **_member_of(scheduler).security().get_listen_args("scheduler"))
        return await asyncio.to_thread(ask, _member_of(client, server.port), FACTS)
    finally:
        await server.close()


def _member_of(folder: Path, port: int = 0) -> Access:
    return Access(scheme="tls", host="127.0.0.1", port=port, member=folder)


def test_who_does_not_answer_or_otherwise_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(access, "_CONNECT_S", 0.2)
    monkeypatch.setattr(access, "_ANSWER_S", 0.5)
    with socket.create_server(("127.0.0.1", 0)) as other:  # which never greets
        address = f"tcp://127.0.0.1:{other.getsockname()[1]}"
        with pytest.raises(UsageError, match=f"{address}: nobody answers as a scheduler does"):
            ask(local(address), FACTS)
    with pytest.raises(UsageError, match=rf"{address}: nobody answers \(Connection refused\)"):
        ask(local(address), FACTS)


@pytest.fixture(scope="module")
def members(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folders of members, each with something that another may not like."""
    folder = tmp_path_factory.mktemp("members")
    make_fleet(folder / "ours", 365)
    make_fleet(folder / "stranger", 365)
    make_member(folder / "second", folder / "ours", 30)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(access, "_BACKDATED", timedelta(days=3))
        make_member(folder / "ended", folder / "ours", -1)
    # A defector takes our authority for itself, but none of our keys.
    make_member(folder / "defector", folder / "stranger", 9)
    (folder / "defector" / access.AUTHORITY).write_bytes((folder / "ours" / access.AUTHORITY).read_bytes())
    return folder


@pytest.mark.parametrize(
    ("scheduler", "client", "words"),
    [
        ("second", "ours", ""),
        ("ours", "stranger", "does not trust the scheduler .self-signed certificate"),
        ("ended", "ours", "does not trust the scheduler .certificate has expired.; compare the clocks"),
        ("ours", "ended", "no scheduler answers that trusts"),
        ("ours", "defector", "no scheduler answers that trusts"),
    ],
)
def test_members_of_one_fleet_trust_each_other_and_others_say_why_not(
    members: Path, scheduler: str, client: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(access, "_CONNECT_S", 1.0)
    with (
        ThreadPoolExecutor(1) as apart,  # a browser's tests leave an event loop in this one
        pytest.raises(UsageError, match=words) if words else contextlib.nullcontext(),
    ):
        assert apart.submit(asyncio.run, _asked(members / scheduler, members / client)).result() == "facts"


# --- Certificates ---


def test_files_are_for_their_owner_alone_and_never_overwritten(tmp_path: Path) -> None:
    folder, member = tmp_path / "fleet", tmp_path / "member"
    make_fleet(folder, 365)
    modes = {path.name: path.stat().st_mode & 0o777 for path in folder.iterdir()}
    assert modes == dict.fromkeys((access.AUTHORITY, access.AUTHORITY_KEY, access.CERTIFICATE, access.KEY), 0o600)
    ends = make_member(member, folder, 10**12)
    assert 3640 < (ends - datetime.now(timezone.utc)).days < 3650  # no longer than its authority
    assert soon_over(member, ends - timedelta(days=31)) == ""
    assert "UTC only; make a new one where" in soon_over(member, ends - timedelta(days=29))
    assert not (member / access.AUTHORITY_KEY).exists()
    kept = {path: path.read_bytes() for path in (*folder.iterdir(), *member.iterdir())}
    with pytest.raises(HarnessError, match=r"File exists.*choose another folder"):
        make_fleet(folder, 365)
    with pytest.raises(HarnessError, match=r"File exists.*choose another folder"):
        make_member(member, folder, 30)
    assert kept == {path: path.read_bytes() for path in (*folder.iterdir(), *member.iterdir())}


def _of_another_fleet(file: Path) -> None:
    make_fleet(file.parent / "other", 365)
    (file.parent / "other" / file.name).replace(file)


@pytest.mark.parametrize(
    ("file", "harm", "words"),
    [
        (access.KEY, lambda file: file.chmod(0o640), "run `chmod 600 "),
        (access.KEY, _of_another_fleet, "do not belong together, or are damaged"),
        (access.CERTIFICATE, lambda file: file.write_text("hello"), "do not belong together"),
        (access.CERTIFICATE, Path.unlink, "certificate.pem missing; make a fleet with"),
        (access.AUTHORITY_KEY, lambda file: file.chmod(0o644), "chmod 600 .*authority-key.pem"),
        (access.AUTHORITY_KEY, Path.unlink, r"to it \(No such file or directory\); give the folder in which"),
        (access.AUTHORITY, _of_another_fleet, "the key is of another fleet"),
    ],
)
def test_what_is_wrong_with_a_folder_is_one_sentence(
    tmp_path: Path, file: str, harm: Callable[[Path], object], words: str
) -> None:
    fleet, member = tmp_path / "fleet", tmp_path / "member"
    make_fleet(fleet, 365)
    harm(fleet / file)
    with pytest.raises(UsageError, match=words):
        make_member(member, read_member(fleet), 30)
    assert not member.exists()


# --- How long a host waits for a scheduler, and for its name ---

_ACCESS = local("tcp://127.0.0.1:1")
_THERE = {"versions": own_versions(), "hosts": [{"name": "host-a", "address": "tcp://127.0.0.1:2"}]}
_FREE = {"versions": own_versions(), "hosts": []}


def test_a_host_waits_for_a_scheduler_and_for_its_name_as_long_as_its_patience(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    answers: list[Any] = []  # one after the other; then nobody answers
    said: list[str] = []

    def answer(*_: object) -> Any:
        if found := answers.pop(0) if answers else None:
            return found
        raise UsageError("nobody answers")

    monkeypatch.setattr(processes, "ask", answer)
    monkeypatch.setattr(processes, "_TRY_AGAIN_S", 0.01)
    answers[:] = [None, None, _THERE, _THERE, _FREE]
    assert wait_for_place(_ACCESS, "host-a", 60.0, said.append) is None
    assert said[0] == "nobody answers"
    assert said[1].startswith("tcp://127.0.0.1:1: the host host-a is there already (tcp://127.0.0.1:2); choose another")
    assert len(said) == 2
    answers[:] = [_THERE]
    assert "the host host-a is there already" in str(wait_for_place(_ACCESS, "host-a", 0.0, said.append))
    assert str(wait_for_place(_ACCESS, "host-a", 0.1, said.append)) == "nobody answers"
    assert wait_for_place(_ACCESS, "host-a", math.inf, said.append, lambda: len(said) > 2) is None  # it is ended
