"""Packages whose names are imported when they are first asked for, so that a module of one does not load all of it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any


def lazily(package: str, names: Mapping[str, Sequence[str]]) -> Callable[[str], Any]:
    """A `__getattr__` for a package, as PEP 562 has it: each name from its module, imported then and kept.

    Args:
        package: Its `__name__`.
        names: By module of the package.
    """
    modules = {name: module for module, several in names.items() for name in several}

    def get(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(f"{package}.{modules[name]}"), name)
        setattr(sys.modules[package], name, value)
        return value

    return get
