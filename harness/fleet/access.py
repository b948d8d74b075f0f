"""Who may join a fleet, which address may be used how, and one sentence for each way in which nobody is reached there.

Who can talk to a Dask scheduler can run programs on all of its workers. So an address beyond this machine is `tls://`,
where both sides show a certificate of the fleet; `tcp://`, which asks nobody who they are, is for this machine alone
unless somebody says that the network can be trusted. docs/fleet.md says which files a member has.

Hosts of a fleet move, and are often known by number only, so a certificate is for a member and not for an address: who
has one that the authority signed belongs to the fleet.
"""

from __future__ import annotations

import asyncio
import ipaddress
import os
import socket
import ssl
import stat
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import platformdirs
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from harness.errors import UsageError
from harness.store.files import writing

if TYPE_CHECKING:
    from distributed.security import Security

DEFAULT_PORT = 8786
_CONNECT_S, _ANSWER_S = 3.0, 10.0

AUTHORITY, AUTHORITY_KEY = "authority.pem", "authority-key.pem"
CERTIFICATE, KEY = "certificate.pem", "key.pem"
MEMBER_FILES = (AUTHORITY, CERTIFICATE, KEY)
AUTHORITY_DAYS = 3650
# Before today, since clocks of hosts differ.
_BACKDATED = timedelta(hours=1)
_LAST_DAYS, _LONGEST_NAME = 30, 64
_PEM = serialization.Encoding.PEM
_Key = ec.EllipticCurvePrivateKey


@dataclass(frozen=True, kw_only=True)
class Access:
    """Where a scheduler listens, and the folder with the certificate to show there."""

    scheme: str  # `tcp` or `tls`
    host: str
    port: int
    member: Path | None = None  # None for tcp://

    def __str__(self) -> str:
        return f"{self.scheme}://{bracketed(self.host)}:{self.port}"

    def security(self) -> Security:
        """What Dask wants to know of it; all parts of a fleet use one certificate for all that they do."""
        from distributed.security import Security

        if self.member is None:
            return Security(require_encryption=False)
        own = {"cert": str(self.member / CERTIFICATE), "key": str(self.member / KEY)}
        files = {f"tls_{role}_{part}": file for role in ("client", "scheduler", "worker") for part, file in own.items()}
        return Security(require_encryption=True, tls_ca_file=str(self.member / AUTHORITY), **files)


def default_folder() -> Path:
    """Where a user's certificate is looked for: the user's configuration folder of this system."""
    return Path(platformdirs.user_config_dir("iree-harness", appauthor=False)) / "fleet"


def bracketed(host: str) -> str:
    """A host as it stands before a port: an IPv6 address in brackets."""
    return f"[{host}]" if ":" in host else host


def is_loopback(host: str) -> bool:
    """Whether an address or name means this machine and is reached from nowhere else."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def access_to(text: str, option: str, certificates: Path | None, *, trust_network: bool) -> Access:
    """Read an address such as `tls://bench:8786`, check that it may be used, and find the certificate for it."""
    try:
        parts = urlsplit(text)
        scheme, host, port = parts.scheme, parts.hostname or "", parts.port
        host.encode("idna")  # as sockets do with every name
        is_address = bool(host) and not (parts.path or parts.query or parts.fragment or parts.username)
    except ValueError:
        is_address = False
    if not is_address or scheme not in ("tls", "tcp"):
        raise UsageError(
            f"{option} {text}: write tls://HOST:{DEFAULT_PORT}, or tcp://127.0.0.1:{DEFAULT_PORT} on one machine"
        )
    access = Access(scheme=scheme, host=host, port=DEFAULT_PORT if port is None else port)
    if scheme == "tls":
        return replace(access, member=read_member(certificates or default_folder()))
    if not is_loopback(host) and not trust_network:
        raise UsageError(
            f"{option} {access}: whoever reaches a tcp:// address runs programs on the whole fleet; use"
            f" tls://{host}:{access.port}, or give --trust-network where nobody else is on the network"
        )
    return access


# --- Who answers there ---


def ask(access: Access, operation: str) -> Any:
    """Ask a scheduler something without joining it."""
    with ThreadPoolExecutor(1) as apart:  # whoever calls may be within an event loop of their own
        try:
            answer = apart.submit(asyncio.run, _ask(access, operation)).result()
        except (OSError, asyncio.TimeoutError, MemoryError, ValueError, OverflowError) as error:  # the last of others
            raise UsageError(f"{access}: {_why_silent(access, error)}") from error
    if answer is None:
        raise UsageError(
            f"{access}: Dask answers there, but no scheduler of the harness; start `harness fleet scheduler`,"
            " and give the address that it prints"
        )
    return answer


async def _ask(access: Access, operation: str) -> Any:
    from distributed.core import rpc

    arguments = access.security().get_connection_args("client")
    scheduler = rpc(str(access), connection_args=arguments, timeout=_CONNECT_S)
    try:
        return await asyncio.wait_for(getattr(scheduler, operation)(), _ANSWER_S)
    finally:
        await scheduler.close_rpc()


def _why_silent(access: Access, error: BaseException | None) -> str:
    """Why nobody answers: nobody listens there, or what Dask's error or one behind it says."""
    try:
        socket.create_connection((access.host, access.port), _CONNECT_S).close()
    except (ConnectionRefusedError, socket.gaierror) as refused:
        why = refused.strerror or refused
        return f"nobody answers ({why}); start `harness fleet scheduler` there, or check address and firewall"
    except OSError:
        pass  # Dask's error says more
    mend = "compare the clocks of both machines, and name the folder of the scheduler's fleet with --certificates"
    while error is not None:
        if isinstance(error, ssl.SSLCertVerificationError):
            return f"this machine does not trust the scheduler ({error.verify_message}); {mend}"
        error = error.__cause__ or error.__context__
    if access.member is None:
        return "nobody answers as a scheduler does; check the address, and whether it should begin with tls://"
    return (  # what the scheduler says of it may be lost
        f"no scheduler answers that trusts {access.member}; check the address, and whether it should begin with"
        f" tcp://; {mend}"
    )


# --- Certificates ---


def make_fleet(folder: Path, days: int) -> datetime:
    """Make an authority, and the first member's certificate beside it; when this ends."""
    key = ec.generate_private_key(ec.SECP256R1())
    # Each authority has a name of its own, so that those who trust another one say so.
    identity = x509.SubjectKeyIdentifier.from_public_key(key.public_key()).digest.hex()[:12]
    subject = _named(f"iree-harness fleet {identity}")
    ends = datetime.now(timezone.utc) + timedelta(days=AUTHORITY_DAYS)
    authority = _certificate(subject, subject, key, key, ends)
    files = {AUTHORITY: authority.public_bytes(_PEM), AUTHORITY_KEY: _key_pem(key)}
    return _write_member(folder, files, authority, key, days)


def make_member(folder: Path, authority_folder: Path, days: int) -> datetime:
    """Make a certificate that an authority signs, and put it beside the authority's own; when it ends."""
    try:
        _require_private(authority_folder / AUTHORITY_KEY)
        trusted = (authority_folder / AUTHORITY).read_bytes()
        key = serialization.load_pem_private_key((authority_folder / AUTHORITY_KEY).read_bytes(), password=None)
        authority = x509.load_pem_x509_certificate(trusted)
        if not isinstance(key, _Key) or key.public_key() != authority.public_key():
            raise ValueError("the key is of another fleet")
    except (OSError, ValueError, TypeError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise UsageError(
            f"--authority {authority_folder}: has no {AUTHORITY} with the {AUTHORITY_KEY} to it ({why}); give the"
            " folder in which `harness fleet certificates` made the fleet"
        ) from error
    return _write_member(folder, {AUTHORITY: trusted}, authority, key, days)


def read_member(folder: Path) -> Path:
    """A member's folder, after its files were checked as far as that needs no other member."""
    try:
        missing = [name for name in MEMBER_FILES if not (folder / name).exists()]
        if missing:
            raise UsageError(
                f"{folder}: {', '.join(missing)} missing; make a fleet with `harness fleet certificates`, or copy here"
                " the folder that your fleet has for this machine, or name it with --certificates"
            )
        _require_private(folder / KEY)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.load_verify_locations(folder / AUTHORITY)
        context.load_cert_chain(folder / CERTIFICATE, folder / KEY)
    except OSError as error:  # as ssl's errors are
        raise UsageError(
            f"{folder}: {', '.join(MEMBER_FILES)} do not belong together, or are damaged ({error}); copy all of them"
            " from where they were made"
        ) from error
    return folder


def soon_over(folder: Path, now: datetime) -> str:
    """In the last month of a member's certificate, and afterwards, a sentence that says so; "" before."""
    ends = x509.load_pem_x509_certificate((folder / CERTIFICATE).read_bytes()).not_valid_after_utc
    if (ends - now).days >= _LAST_DAYS:
        return ""
    return (
        f"{folder / CERTIFICATE}: valid until {ends:%Y-%m-%d %H:%M} UTC only; make a new one where the authority's key"
        " is, with `harness fleet certificates NEW --authority FOLDER`"
    )


def _require_private(path: Path) -> None:
    mode = path.stat().st_mode
    if mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise UsageError(f"{path}: others may read this key (mode {stat.S_IMODE(mode):04o}); run `chmod 600 {path}`")


def _named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _certificate(subject: x509.Name, issuer: x509.Name, key: _Key, signer: _Key, ends: datetime) -> x509.Certificate:
    """A certificate of the form of RFC 5280; one that signs itself is an authority's, of members alone."""
    is_authority, public = subject == issuer, key.public_key()
    begun = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(public)
        .serial_number(x509.random_serial_number())
        .not_valid_before(datetime.now(timezone.utc) - _BACKDATED)
        .not_valid_after(ends)
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
    folder: Path, files: dict[str, bytes], authority: x509.Certificate, authority_key: _Key, days: int
) -> datetime:
    """Write files, and a member's certificate and key, which only their owner reads; nothing is overwritten."""
    wanted = datetime.now(timezone.utc) + timedelta(days=min(days, AUTHORITY_DAYS))
    ends, key = min(wanted, authority.not_valid_after_utc), ec.generate_private_key(ec.SECP256R1())
    name = _named(folder.resolve().name[:_LONGEST_NAME] or "member")  # for people: nothing depends on it
    certificate = _certificate(name, authority.subject, key, authority_key, ends)
    own = {**files, CERTIFICATE: certificate.public_bytes(_PEM), KEY: _key_pem(key)}
    with writing(folder, "choose another folder"):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for file, data in own.items():
            handle = os.open(folder / file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(handle, "wb") as opened:
                opened.write(data)
    return ends


def _key_pem(key: _Key) -> bytes:
    return key.private_bytes(_PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
