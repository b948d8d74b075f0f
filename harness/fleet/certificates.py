"""A fleet's own authority, and the certificates of its members: files that `harness fleet certificates` makes.

    authority.pem        the authority's certificate: whom this member trusts; it may hold several, one after the other
    authority-key.pem    the authority's key, which signs members; only where certificates are made
    certificate.pem      the member's certificate, for all that a member does: listen, connect, ask
    key.pem              the member's key

Hosts of a fleet move, and are often known by number only, so a certificate is for a member and not for an address: who
has one that the authority signed belongs to the fleet.
"""

from __future__ import annotations

import ipaddress
import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from harness.errors import UsageError
from harness.store.files import writing
from harness.text import plural, shown

AUTHORITY, AUTHORITY_KEY = "authority.pem", "authority-key.pem"
CERTIFICATE, KEY = "certificate.pem", "key.pem"
MEMBER_FILES = (AUTHORITY, CERTIFICATE, KEY)
AUTHORITY_DAYS = 3650
_LAST_DAYS = 30
_LONGEST_NAME = 64  # ub-common-name of RFC 5280
# Before today, since clocks of hosts differ.
_BACKDATED = timedelta(hours=1)
_PRIVATE_MODE, _FOLDER_MODE = 0o600, 0o700


@dataclass(frozen=True, kw_only=True)
class Member:
    """What a folder's certificate says."""

    folder: Path
    name: str  # Of the member, for people; nothing depends on it
    ends: datetime  # When it is no longer valid, in UTC

    def soon_over(self, now: datetime) -> str:
        """A sentence that says so in its last month; "" before."""
        days = (self.ends - now).days
        if days >= _LAST_DAYS:
            return ""
        return (
            f"{self.folder / CERTIFICATE}: valid for {plural(days, 'more day')} only; make a new one, with"
            " `harness fleet certificates NEW --authority FOLDER`"
        )


def make_fleet(folder: Path, name: str, days: int) -> Member:
    """Make an authority, and the first member's certificate beside it."""
    key = _new_key()
    authority = _authority(key)
    member = _member_files(folder / AUTHORITY, authority, key, name, days)
    _write(folder, {AUTHORITY: _pem(authority), AUTHORITY_KEY: _key_pem(key), **member})
    return read_member(folder)


def make_member(folder: Path, authority_folder: Path, name: str, days: int) -> Member:
    """Make a certificate that an authority signs, and put it beside the authority's own.

    Of an authority.pem with several certificates, as while an authority is replaced, the one signs whose key lies
    there; the new member trusts all of them.
    """
    if not _is_there(authority_folder / AUTHORITY_KEY):
        raise UsageError(
            f"--authority {authority_folder}: has no {AUTHORITY_KEY}; give the folder in which"
            " `harness fleet certificates` made the fleet"
        )
    _require_private(authority_folder / AUTHORITY_KEY)
    trusted = _read(authority_folder / AUTHORITY)
    key = _load_key(authority_folder / AUTHORITY_KEY)
    public = key.public_key()
    signer = next((each for each in _load_certificates(trusted, authority_folder) if each.public_key() == public), None)
    if signer is None:
        raise UsageError(f"{authority_folder}: {AUTHORITY_KEY} is not the key of {AUTHORITY}; take both from one fleet")
    _write(folder, {AUTHORITY: trusted, **_member_files(authority_folder / AUTHORITY, signer, key, name, days)})
    return read_member(folder)


def read_member(folder: Path, now: datetime | None = None) -> Member:
    """What a member's files say, after they were checked as far as that needs no other member."""
    now = now or datetime.now(timezone.utc)
    make = (
        "make a fleet with `harness fleet certificates`, or copy here the folder that your fleet has for this machine,"
        " or name it with --certificates"
    )
    missing = [name for name in MEMBER_FILES if not _is_there(folder / name)]
    if missing:
        raise UsageError(f"{folder}: {', '.join(missing)} missing; {make}")
    _require_private(folder / KEY)
    (certificate,) = _load_certificates(_read(folder / CERTIFICATE), folder / CERTIFICATE)[:1]
    authorities = _load_certificates(_read(folder / AUTHORITY), folder / AUTHORITY)
    if not any(_signed(certificate, authority) for authority in authorities):
        raise UsageError(f"{folder}: {CERTIFICATE} is of another fleet than {AUTHORITY}; take both from one folder")
    if _load_key(folder / KEY).public_key() != certificate.public_key():
        raise UsageError(f"{folder}: {KEY} is not the key of {CERTIFICATE}; take both from one folder")
    begins, ends = certificate.not_valid_before_utc, certificate.not_valid_after_utc
    if now > ends:
        raise UsageError(
            f"{folder / CERTIFICATE}: expired {ends:%Y-%m-%d %H:%M} UTC; make a new one where the authority's key is,"
            " with `harness fleet certificates NEW --authority FOLDER`"
        )
    if now < begins:
        raise UsageError(
            f"{folder / CERTIFICATE}: valid from {begins:%Y-%m-%d %H:%M} UTC, and this clock says {now:%Y-%m-%d %H:%M};"
            " set the clock"
        )
    return Member(folder=folder, name=_common_name(certificate), ends=ends)


def _is_there(path: Path) -> bool:
    try:
        return path.exists()
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror or error}; give a folder that this user may read") from error


def _require_private(path: Path) -> None:
    mode = path.stat().st_mode
    if os.name == "posix" and mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise UsageError(f"{path}: others may read this key (mode {stat.S_IMODE(mode):04o}); run `chmod 600 {path}`")


def _new_key() -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key(ec.SECP256R1())


def _named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _authority(key: ec.EllipticCurvePrivateKey) -> x509.Certificate:
    """A certificate that signs itself and members, and no further authorities; the form is RFC 5280's."""
    now = datetime.now(timezone.utc)
    identity = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
    # Each authority has a name of its own, so that two of them can stand in one file while they change.
    name = _named(f"iree-harness fleet {identity.digest.hex()[:12]}")
    return (
        _begun(name, name, key.public_key(), now, AUTHORITY_DAYS)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(signs_certificates=True), critical=True)
        .sign(key, hashes.SHA256())
    )


def _member_files(
    where: Path, authority: x509.Certificate, authority_key: ec.EllipticCurvePrivateKey, name: str, days: int
) -> Mapping[str, bytes]:
    """A member's certificate and key."""
    ends = authority.not_valid_after_utc
    if days > (ends - datetime.now(timezone.utc)).days:
        raise UsageError(
            f"{where}: the authority ends {ends:%Y-%m-%d}, before the new certificate would; give fewer --days, or make"
            " a new fleet"
        )
    if not (name.isascii() and name.isprintable() and 0 < len(name) <= _LONGEST_NAME):
        raise UsageError(
            f"--name {shown(name)!r}: is no name of a member; give at most {_LONGEST_NAME} letters, digits and signs of"
            " ASCII"
        )
    key = _new_key()
    uses = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]  # a worker listens and connects
    signer = authority.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
    certificate = (
        _begun(_named(name), authority.subject, key.public_key(), datetime.now(timezone.utc), days)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(signs_certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage(uses), critical=False)
        .add_extension(x509.SubjectAlternativeName([_alternative_name(name)]), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(signer), critical=False)
        .sign(authority_key, hashes.SHA256())
    )
    return {CERTIFICATE: _pem(certificate), KEY: _key_pem(key)}


def _begun(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, now: datetime, days: int
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _BACKDATED)
        .not_valid_after(now + timedelta(days=days))
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
    )


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _alternative_name(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _signed(certificate: x509.Certificate, authority: x509.Certificate) -> bool:
    try:
        certificate.verify_directly_issued_by(authority)
    except (InvalidSignature, ValueError, TypeError):
        return False
    return True


def _common_name(certificate: x509.Certificate) -> str:
    names = certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    return str(names[0].value) if names else ""


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise UsageError(
            f"{path}: {error.strerror or error}; give a folder that `harness fleet certificates` made"
        ) from error


def _load_certificates(pem: bytes, where: Path) -> list[x509.Certificate]:
    try:
        return x509.load_pem_x509_certificates(pem)
    except ValueError as error:
        raise UsageError(f"{where}: is no certificate in PEM; copy it again from where it was made") from error


def _load_key(path: Path) -> ec.EllipticCurvePrivateKey:
    try:
        key = serialization.load_pem_private_key(_read(path), password=None)
    except (ValueError, TypeError) as error:
        raise UsageError(
            f"{path}: is no key in PEM without a password; copy it again from where it was made"
        ) from error
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise UsageError(f"{path}: is no key that `harness fleet certificates` made; make the certificates anew")
    return key


def _write(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write new files that only their owner reads; a folder that has files of a fleet stays as it is."""
    there = [name for name in (AUTHORITY, AUTHORITY_KEY, CERTIFICATE, KEY) if _is_there(folder / name)]
    if there:
        raise UsageError(f"{folder}: {', '.join(there)} would be overwritten; choose another folder")
    with writing(folder, "choose another folder"):
        folder.mkdir(mode=_FOLDER_MODE, parents=True, exist_ok=True)
        for name, data in files.items():
            handle = os.open(folder / name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _PRIVATE_MODE)
            with os.fdopen(handle, "wb") as file:
                file.write(data)
