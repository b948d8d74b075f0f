"""Which address may be used how, and one sentence for each way in which nobody can be reached there.

Who can talk to a Dask scheduler can run programs on all of its workers. So an address beyond this machine is `tls://`,
where both sides show a certificate of the fleet; `tcp://`, which asks nobody who they are, is for this machine alone
unless somebody says that the network can be trusted.
"""

from __future__ import annotations

import asyncio
import ipaddress
import re
import socket
import ssl
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
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
_CONNECT_S, _ANSWER_S = 3.0, 10.0
ROLES = ("client", "scheduler", "worker")  # Dask's


@dataclass(frozen=True, kw_only=True)
class Access:
    """Where a scheduler listens, and the certificate to show there."""

    scheme: str  # `tcp` or `tls`
    host: str
    port: int
    member: Member | None = None  # None for tcp://

    def __str__(self) -> str:
        return f"{self.scheme}://{bracketed(self.host)}:{self.port}"

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine reaches it."""
        return is_loopback(self.host)

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


def parse_address(text: str, option: str) -> Access:
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
    return Access(scheme=scheme, host=host, port=DEFAULT_PORT if port is None else port)


def access_to(text: str, option: str, certificates: Path | None, *, trust_network: bool) -> Access:
    """Check that an address may be used, and find the certificate for it."""
    access = parse_address(text, option)
    if access.scheme == "tls":
        return replace(access, member=read_member(certificates or default_folder()))
    if not access.is_loopback and not trust_network:
        raise UsageError(
            f"{option} {access}: whoever reaches a tcp:// address runs programs on the whole fleet; use"
            f" tls://{access.host}:{access.port}, or give {TRUST_OPTION} where nobody else is on the network"
        )
    return access


def dashboard_address(text: str, *, trust_network: bool) -> Access:
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


def _why_silent(access: Access, error: BaseException) -> str:
    """Why nobody answers: nobody listens there, or what Dask's error or one behind it says."""
    try:
        socket.create_connection((access.host, access.port), _CONNECT_S).close()
    except (ConnectionRefusedError, socket.gaierror) as refused:
        why = refused.strerror or refused
        return f"nobody answers ({why}); start `harness fleet scheduler` there, or check address and firewall"
    except OSError:
        pass  # Dask's error says more
    mend = "compare the clocks of both machines, and name the folder of the scheduler's fleet with --certificates"
    said = ""
    behind: BaseException | None = error
    while behind is not None:
        if isinstance(behind, ssl.SSLCertVerificationError):
            return f"this machine does not trust the scheduler ({behind.verify_message}); {mend}"
        alert = re.search(r"ALERT_(\w+)", str(behind))
        said = f" ({alert[1].replace('_', ' ').lower()})" if alert else said
        behind = behind.__cause__ or behind.__context__
    if access.member is None:
        return "nobody answers as a scheduler does; check the address, and whether it should begin with tls://"
    own = access.member.folder  # what the scheduler says of it may be lost
    return (
        f"no scheduler answers that trusts {own}{said}; check the address, and whether it should begin with tcp://;"
        f" {mend}"
    )
