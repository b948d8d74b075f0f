"""Objects that installed packages register as entry points: builders and plugins."""

from __future__ import annotations

from importlib.metadata import EntryPoint
from typing import TypeVar

from harness.errors import SuiteError

_T = TypeVar("_T")


def load_registered(point: EntryPoint, kind: type[_T], kind_name: str, where: str) -> _T:
    """Import what an entry point names.

    Args:
        kind: What it has to be an instance of.
        kind_name: The public name of that class, for error messages.
        where: Who asks for it: table and key, or the registered name.

    Raises:
        SuiteError: Its package does not import, or gives something else.
    """
    try:
        found = point.load()
    except Exception as error:
        raise SuiteError(
            f"{where}: {point.value} cannot be loaded ({error}); repair or remove the package that registers it"
        ) from error
    if not isinstance(found, kind):
        raise SuiteError(f"{where}: {point.value} is not a {kind_name}; ask its package's author")
    return found
