"""Who trusts whom, as Dask's own contexts decide it, and what is wrong with a folder."""

from __future__ import annotations

import ssl
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from harness.errors import UsageError
from harness.fleet.access import Access, Address
from harness.fleet.certificates import (
    AUTHORITY,
    AUTHORITY_KEY,
    CERTIFICATE,
    KEY,
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
    assert "valid for 29 more days only" in member.soon_over(today)
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
    key = (tmp_path / "fleet" / KEY).read_bytes()
    with pytest.raises(UsageError, match="choose another folder"):
        make_fleet(tmp_path / "fleet", "bench", 365)
    make_member(tmp_path / "member", tmp_path / "fleet", "host-a", 365)
    with pytest.raises(UsageError, match="choose another folder"):
        make_member(tmp_path / "member", tmp_path / "fleet", "host-a", 365)
    assert (tmp_path / "fleet" / KEY).read_bytes() == key
    assert not (tmp_path / "member" / AUTHORITY_KEY).exists()


@pytest.mark.parametrize("name", ["", "höst", "two\nlines", "x" * 65])
def test_what_is_no_name_of_a_member_is_one_sentence(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError, match="is no name of a member; give at most 64 letters"):
        make_fleet(tmp_path / "fleet", name, 365)
    assert not (tmp_path / "fleet").exists()


def test_every_fault_of_a_folder_is_one_sentence(tmp_path: Path) -> None:
    fleet, other, member = tmp_path / "fleet", tmp_path / "other", tmp_path / "member"
    make_fleet(fleet, "bench", 365)
    make_fleet(other, "bench", 365)

    def fault(now: datetime | None = None) -> str:
        with pytest.raises(UsageError) as caught:
            read_member(fleet, now)
        return str(caught.value)

    today = datetime.now(timezone.utc)
    assert "expired" in fault(today + timedelta(days=366))
    assert "set the clock" in fault(today - timedelta(days=1))
    (fleet / KEY).chmod(0o640)
    assert f"chmod 600 {fleet / KEY}" in fault()
    (fleet / KEY).chmod(0o600)
    (fleet / KEY).write_bytes((other / KEY).read_bytes())
    assert "is not the key of" in fault()
    (fleet / AUTHORITY).write_bytes((other / AUTHORITY).read_bytes())
    assert "of another fleet" in fault()
    with pytest.raises(UsageError, match="take both from one fleet"):
        make_member(member, fleet, "host-a", 365)
    for days in (3651, 10**12):
        with pytest.raises(UsageError, match="fewer --days"):
            make_member(member, other, "host-a", days)
    with pytest.raises(UsageError, match="fewer --days"):
        make_fleet(member, "bench", 3651)
    (other / AUTHORITY_KEY).chmod(0o644)
    with pytest.raises(UsageError, match=f"chmod 600 {other / AUTHORITY_KEY}"):
        make_member(member, other, "host-a", 365)
    (other / AUTHORITY_KEY).unlink()
    with pytest.raises(UsageError, match="give the folder in which `harness fleet certificates` made the fleet"):
        make_member(member, other, "host-a", 365)
    assert not member.exists()
    (fleet / CERTIFICATE).write_text("hello")
    assert "is no certificate" in fault()
    (fleet / CERTIFICATE).unlink()
    assert f"{CERTIFICATE} missing" in fault()
