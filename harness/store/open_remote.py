"""A URL of fsspec -> a place, or one sentence on what is missing for it."""

from __future__ import annotations

import hashlib
from pathlib import Path

from harness.cache import cache_root
from harness.errors import UsageError
from harness.store.address import without_password
from harness.store.remote import RemotePlace, unreadable
from harness.store.web import web_options
from harness.text import one_line


def open_remote(place: str, mirror: Path | None = None) -> RemotePlace:
    """Open a URL of fsspec.

    Args:
        mirror: Where folders are fetched to; None: a folder of the cache.

    Raises:
        UsageError: No such protocol, or what reads it is not installed.
        RunError: It cannot be listed.
    """
    import fsspec
    from fsspec.core import url_to_fs

    address = without_password(place)
    try:
        system, root = url_to_fs(place, **web_options(place))
    except ImportError as error:
        raise UsageError(f"{address}: {_install(place, str(error))}") from None
    except ValueError as error:
        known = ", ".join(f"{name}://" for name in ("s3", "gs", "http", "sftp", "zip"))
        raise UsageError(f"{address}: {one_line(str(error))}; give a path, or a URL of fsspec ({known}, ...)") from None
    except Exception as error:  # every file system has exceptions of its own
        raise unreadable(address, error) from None
    if isinstance(system, fsspec.get_filesystem_class("dir")) and root == system.path:
        root = ""  # of `dir::file:///folder`, which is itself the root
    return RemotePlace(address, system, root, mirror or cache_root() / "places" / _digest(place))


def _digest(place: str) -> str:
    return hashlib.sha256(place.encode()).hexdigest()[:16]


def _install(place: str, message: str) -> str:
    """What is missing, and the command that installs it."""
    packages = {"s3": "s3fs", "s3a": "s3fs", "gs": "gcsfs", "gcs": "gcsfs", "http": "aiohttp", "https": "aiohttp"}
    packages |= {"abfs": "adlfs", "az": "adlfs", "sftp": "paramiko", "ssh": "paramiko", "smb": "smbprotocol"}
    missing = [package for scheme, package in packages.items() if f"{scheme}://" in place]
    if not missing:
        return f"cannot be read with what is installed ({one_line(message)}); install what it names"
    return f"needs the package {missing[-1]}, which is not installed: pip install {missing[-1]}"
