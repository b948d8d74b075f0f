"""Facts of files, and where those are that come with the harness."""

import hashlib
from pathlib import Path
from tokenize import TokenError

# What numpy raises on a file that is no .npy file, or whose header is no header or claims what no memory holds.
NPY_ERRORS = (ValueError, EOFError, ArithmeticError, MemoryError, RecursionError, SyntaxError, TokenError, TypeError)

# Of a foreign folder, which is read as a whole before it is let in: about 20 million turns, or a pair of wheels.
FOLDER_LIMIT_BYTES = 2 * 2**30

_PACKAGE = Path(__file__).resolve().parent


def file_sha256(path: Path) -> str:
    """Hash of a file's bytes, in hex."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(1 << 20):
            digest.update(chunk)
    return digest.hexdigest()


def require_readable(path: Path) -> None:
    """Read a file's first byte.

    What the kernel shows as a regular file may give none, as /proc/self/mem does.
    """
    with path.open("rb") as file:
        file.read(1)


def shipped(name: str) -> Path:
    """Where `docs`, `flagsets` or `suites` of the harness lie: within a wheel's package, in a checkout beside it."""
    within = _PACKAGE / "shipped"
    return (within if within.is_dir() else _PACKAGE.parent) / name
