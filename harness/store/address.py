"""How places are named: by a path, or by a URL of fsspec."""

from __future__ import annotations

import re
from collections.abc import Callable

OnProgress = Callable[[str], None]

_CREDENTIALS = re.compile(r"//[^/@]*@")


def is_url(place: str) -> bool:
    """Whether a place is one of fsspec's, and no path."""
    return "://" in place or "::" in place


def without_password(place: str) -> str:
    """A URL that may be shown."""
    return _CREDENTIALS.sub("//...@", place)
