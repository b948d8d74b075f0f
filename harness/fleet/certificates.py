"""A fleet's own authority, and the certificates of its members: files that `harness fleet certificates` makes.

    authority.pem        the authority's certificate: whom this member trusts; it may hold several, one after the other
    authority-key.pem    the authority's key, which signs members; only where certificates are made
    certificate.pem      the member's certificate, for all that a member does: listen, connect, ask
    key.pem              the member's key

Hosts of a fleet move, and are often known by number only, so a certificate is for a member and not for an address: who
has one that the authority signed belongs to the fleet.
"""

import os
import ssl
import stat
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from harness.errors import UsageError
from harness.store.files import writing
from harness.text import shown

AUTHORITY, AUTHORITY_KEY = "authority.pem", "authority-key.pem"
CERTIFICATE, KEY = "certificate.pem", "key.pem"
MEMBER_FILES = (AUTHORITY, CERTIFICATE, KEY)
AUTHORITY_DAYS = 3650
_LAST_DAYS = 30
# Before today, since clocks of hosts differ.
_BACKDATED = timedelta(hours=1)
_PEM = serialization.Encoding.PEM
_Key = ec.EllipticCurvePrivateKey


@dataclass(frozen=True, kw_only=True)
class Member:
    """What a folder's certificate says."""

    folder: Path
    name: str  # For people; nothing depends on it
    ends: datetime  # When it is no longer valid, in UTC

    def soon_over(self, now: datetime) -> str:
        """A sentence that says so in its last month, and afterwards; "" before."""
        if (self.ends - now).days >= _LAST_DAYS:
            return ""
        return (
            f"{self.folder / CERTIFICATE}: valid until {self.ends:%Y-%m-%d %H:%M} UTC only; make a new one where the"
            " authority's key is, with `harness fleet certificates NEW --authority FOLDER`"
        )


def make_fleet(folder: Path, name: str, days: int) -> Member:
    """Make an authority, and the first member's certificate beside it."""
    key = ec.generate_private_key(ec.SECP256R1())
    identity = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
    # Each authority has a name of its own, so that two of them can stand in one file while they change.
    subject = _named(f"iree-harness fleet {identity.digest.hex()[:12]}")
    authority = _certificate(subject, subject, key, key, AUTHORITY_DAYS)
    files = {AUTHORITY: authority.public_bytes(_PEM), AUTHORITY_KEY: _key_pem(key)}
    return _write_member(folder, files, authority, key, name, days)


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
    try:
        trusted = (authority_folder / AUTHORITY).read_bytes()
        key = serialization.load_pem_private_key((authority_folder / AUTHORITY_KEY).read_bytes(), password=None)
        known = x509.load_pem_x509_certificates(trusted)
        signer = next(each for each in known if each.public_key() == key.public_key())
        assert isinstance(key, _Key)  # noqa: S101 (else it is no key of ours)
    except (OSError, ValueError, TypeError, StopIteration, AssertionError) as error:
        raise UsageError(
            f"{authority_folder}: {AUTHORITY_KEY} is not the key of {AUTHORITY}; take both from one fleet"
        ) from error
    return _write_member(folder, {AUTHORITY: trusted}, signer, key, name, days)


def read_member(folder: Path) -> Member:
    """What a member's files say, after they were checked as far as that needs no other member."""
    missing = [name for name in MEMBER_FILES if not _is_there(folder / name)]
    if missing:
        raise UsageError(
            f"{folder}: {', '.join(missing)} missing; make a fleet with `harness fleet certificates`, or copy here the"
            " folder that your fleet has for this machine, or name it with --certificates"
        )
    _require_private(folder / KEY)
    try:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.load_verify_locations(folder / AUTHORITY)
        context.load_cert_chain(folder / CERTIFICATE, folder / KEY)
        certificate = x509.load_pem_x509_certificate((folder / CERTIFICATE).read_bytes())
    except (OSError, ValueError) as error:  # ssl's errors are OSErrors
        raise UsageError(
            f"{folder}: {', '.join(MEMBER_FILES)} do not belong together, or are damaged ({error}); copy all of them"
            " from where they were made"
        ) from error
    (name,) = certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    return Member(folder=folder, name=str(name.value), ends=certificate.not_valid_after_utc)


def _is_there(path: Path) -> bool:
    try:
        return path.exists()
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror or error}; give a folder that this user may read") from error


def _require_private(path: Path) -> None:
    mode = path.stat().st_mode
    if os.name == "posix" and mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise UsageError(f"{path}: others may read this key (mode {stat.S_IMODE(mode):04o}); run `chmod 600 {path}`")


def _named(name: str) -> x509.Name:
    try:
        return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    except ValueError as error:
        raise UsageError(f"--name {shown(name)!r}: is no name of a member ({error})") from error


def _certificate(subject: x509.Name, issuer: x509.Name, key: _Key, signer: _Key, days: int) -> x509.Certificate:
    """A certificate of the form of RFC 5280; one that signs itself is an authority's, of members alone."""
    now, is_authority, public = datetime.now(timezone.utc), subject == issuer, key.public_key()
    begun = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(public)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _BACKDATED)
        .not_valid_after(now + timedelta(days=days))
        .add_extension(x509.BasicConstraints(ca=is_authority, path_length=0 if is_authority else None), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key()), critical=False)
    )
    if is_authority:
        others = ("digital_signature", "content_commitment", "key_encipherment", "data_encipherment", "key_agreement")
        unused = dict.fromkeys((*others, "encipher_only", "decipher_only"), False)
        begun = begun.add_extension(x509.KeyUsage(key_cert_sign=True, crl_sign=True, **unused), critical=True)
    return begun.sign(signer, hashes.SHA256())


def _write_member(
    folder: Path, files: dict[str, bytes], authority: x509.Certificate, authority_key: _Key, name: str, days: int
) -> Member:
    """Write files, and a member's certificate and key, which only their owner reads; nothing is overwritten."""
    ends = authority.not_valid_after_utc
    if days > (ends - datetime.now(timezone.utc)).days:
        raise UsageError(
            f"{folder}: the authority ends {ends:%Y-%m-%d}, before the new certificate would; give fewer --days, or"
            " make a new fleet"
        )
    if there := [each for each in (*MEMBER_FILES, AUTHORITY_KEY) if _is_there(folder / each)]:
        raise UsageError(f"{folder}: {', '.join(there)} would be overwritten; choose another folder")
    key = ec.generate_private_key(ec.SECP256R1())
    certificate = _certificate(_named(name), authority.subject, key, authority_key, days)
    own = {**files, CERTIFICATE: certificate.public_bytes(_PEM), KEY: _key_pem(key)}
    with writing(folder, "choose another folder"):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for file, data in own.items():
            handle = os.open(folder / file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(handle, "wb") as opened:
                opened.write(data)
    return read_member(folder)


def _key_pem(key: _Key) -> bytes:
    return key.private_bytes(_PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
