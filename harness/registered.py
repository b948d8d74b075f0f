"""Objects that installed packages register as entry points: builders, plugins and peers."""

from __future__ import annotations

from importlib.metadata import EntryPoint, EntryPoints
from typing import TypeVar

from harness.errors import SuiteError
from harness.text import did_you_mean

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


def find_registered(
    points: EntryPoints, name: str, kind: type[_T], *, kind_name: str, noun: str, where: str = ""
) -> _T:
    """What one of these entry points, all of one group, names; only its package is imported.

    Args:
        kind_name: As for load_registered.
        noun: What the group registers: `plugin`.
        where: The table and key that name it, for error messages; "": leave them out.

    Raises:
        SuiteError: No package registers the name, or several do, or the one that does fails to import or gives
            something of another kind.
    """
    prefix = f"{where}: " if where else ""
    chosen = points.select(name=name)
    if not chosen:
        known = sorted({point.name for point in points})
        hint = did_you_mean(name, known) or f"; no installed package registers a {noun}"
        advice = "" if hint.endswith("?") else "; install the package that brings it"
        raise SuiteError(f"{prefix}there is no {noun} {name!r}{hint}{advice}")
    values = sorted({point.value for point in chosen})
    if len(values) > 1:
        raise SuiteError(
            f"{prefix}{noun} {name!r} is registered by {' and by '.join(values)}; remove all packages but one"
        )
    return load_registered(next(iter(chosen)), kind, kind_name, f"{prefix}{noun} {name!r}")
