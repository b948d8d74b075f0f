"""Which address may be used how, and one sentence for each way in which nobody can be reached there.

Who can talk to a Dask scheduler can run programs on all of its workers. So an address beyond this machine is `tls://`,
where both sides show a certificate of the fleet; `tcp://`, which asks nobody who they are, is for this machine alone
unless somebody says that the network can be trusted.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
import ssl
import struct
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import platformdirs

from harness.errors import UsageError
from harness.fleet.certificates import AUTHORITY, CERTIFICATE, KEY, Member, read_member

if TYPE_CHECKING:
    from distributed.security import Security

DEFAULT_PORT = 8786
TRUST_OPTION = "--trust-network"
# A scheduler greets at once, and briefly; what does not is something else. Dask's messages begin with their length.
_CONNECT_S, _GREET_S, _ANSWER_S = 10.0, 5.0, 30.0
_LENGTH, _LONGEST_GREETING = struct.Struct("Q"), 2**20
ROLES = ("client", "scheduler", "worker")  # Dask's


@dataclass(frozen=True, kw_only=True)
class Address:
    """Where a scheduler listens."""

    scheme: str  # `tcp` or `tls`
    host: str
    port: int

    def __str__(self) -> str:
        return f"{self.scheme}://{bracketed(self.host)}:{self.port}"

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine reaches it."""
        return is_loopback(self.host)


@dataclass(frozen=True, kw_only=True)
class Access:
    """An address that may be used, and the certificate to show there."""

    address: Address
    member: Member | None  # None for tcp://

    def security(self) -> Security:
        """What Dask wants to know of it; all parts of a fleet use one certificate for all that they do."""
        from distributed.security import Security

        if self.member is None:
            return Security(require_encryption=False)
        folder = self.member.folder
        own = {"cert": str(folder / CERTIFICATE), "key": str(folder / KEY)}
        files = {f"tls_{role}_{part}": file for role in ROLES for part, file in own.items()}
        return Security(require_encryption=True, tls_ca_file=str(folder / AUTHORITY), **files)


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


def parse_address(text: str, option: str) -> Address:
    """Read an address such as `tls://bench:8786`."""
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
    return Address(scheme=scheme, host=host, port=DEFAULT_PORT if port is None else port)


def access_to(text: str, option: str, certificates: Path | None, *, trust_network: bool) -> Access:
    """Check that an address may be used, and find the certificate for it."""
    address = parse_address(text, option)
    if address.scheme == "tls":
        return Access(address=address, member=read_member(certificates or default_folder()))
    if not address.is_loopback and not trust_network:
        raise UsageError(
            f"{option} {address}: whoever reaches a tcp:// address runs programs on the whole fleet; use"
            f" tls://{address.host}:{address.port}, or give {TRUST_OPTION} where nobody else is on the network"
        )
    return Access(address=address, member=None)


def dashboard_address(text: str, *, trust_network: bool) -> Address:
    """Read where Dask's dashboard is to be shown: `:8787` on this machine alone, or `HOST:8787`."""
    if find_spec("bokeh") is None:
        raise UsageError(
            "--dashboard: Dask draws it with bokeh, which is not installed; run pip install 'iree-harness[fleet]'"
        )
    address = parse_address(f"tcp://{'127.0.0.1' if text.startswith(':') else ''}{text}", "--dashboard")
    if not address.is_loopback and not trust_network:
        raise UsageError(
            f"--dashboard {text}: its pages ask nobody for a password; give :{address.port} and come through `ssh -L"
            f" {address.port}:127.0.0.1:{address.port}`, or give {TRUST_OPTION} where nobody else is on the network"
        )
    return address


def require_answer(access: Access) -> None:
    """See that a scheduler is there and takes our certificate."""
    address = access.address
    try:
        with socket.create_connection((address.host, address.port), timeout=_CONNECT_S) as plain:
            plain.settimeout(_GREET_S)
            if access.member is None:
                greeting = plain.recv(_LENGTH.size)
            else:
                context: ssl.SSLContext = access.security().get_connection_args("client")["ssl_context"]
                with context.wrap_socket(plain) as channel:
                    # What the other side thinks of our certificate comes only with it.
                    greeting = channel.recv(_LENGTH.size)
    except ssl.SSLError as error:
        raise UsageError(_refusal(access, error)) from error
    except TimeoutError:
        greeting = b""
    except OSError as error:
        raise UsageError(
            f"{address}: nobody answers ({error.strerror or error}); start `harness fleet scheduler` there, or check"
            " address and firewall"
        ) from error
    if len(greeting) < _LENGTH.size or _LENGTH.unpack(greeting)[0] > _LONGEST_GREETING:
        raise UsageError(_silence(access))


def _silence(access: Access) -> str:
    other = "tls" if access.address.scheme == "tcp" else "tcp"
    return (
        f"{access.address}: nobody answers as a scheduler does; check the address, and whether it should begin with"
        f" {other}://"
    )


def _refusal(access: Access, error: ssl.SSLError) -> str:
    """Why two sides do not trust each other, in OpenSSL's words."""
    reason = (error.reason or str(error)).upper()
    if any(word in reason for word in ("WRONG_VERSION", "RECORD_LAYER", "EOF")):
        return _silence(access)
    mend = "compare the clocks of both machines, and name the folder of the scheduler's fleet with --certificates"
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"{access.address}: this machine does not trust the scheduler ({error.verify_message}); {mend}"
    own = access.member.folder if access.member is not None else default_folder()
    why = reason.partition("ALERT_")[2].replace("_", " ").lower() or reason
    return f"{access.address}: the scheduler does not trust {own} ({why}); {mend}"


def ask(access: Access, operation: str, **message: Any) -> Any:
    """Ask a scheduler something without joining it."""
    require_answer(access)
    with ThreadPoolExecutor(1) as apart:  # whoever calls may be within an event loop of their own
        answer = apart.submit(asyncio.run, _ask(access, operation, message)).result()
    if answer is None:
        raise UsageError(
            f"{access.address}: Dask answers there, but no scheduler of the harness; start `harness fleet scheduler`,"
            " and give the address that it prints"
        )
    return answer


async def _ask(access: Access, operation: str, message: dict[str, Any]) -> Any:
    from distributed.core import rpc

    arguments = access.security().get_connection_args("client")
    scheduler = rpc(str(access.address), connection_args=arguments, timeout=_CONNECT_S)
    try:
        return await asyncio.wait_for(getattr(scheduler, operation)(**message), _ANSWER_S)
    except (OSError, asyncio.TimeoutError) as error:
        why = f"({error})" if str(error) else f"within {_ANSWER_S:g} s"  # a time limit's own error says nothing
        raise UsageError(f"{access.address}: the scheduler does not answer {why}; see what it says") from error
    finally:
        await scheduler.close_rpc()
