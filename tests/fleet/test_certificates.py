"""Who trusts whom, as Dask's own contexts decide it, and what is wrong with a folder."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from harness.errors import UsageError
from harness.fleet.access import Access, Address
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
