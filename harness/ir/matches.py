"""Which rewrites match something in a program; it runs under a toolchain's own Python, for harness.ir.child."""

from __future__ import annotations

import importlib
import io
import site
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from iree.compiler import ir

Call = tuple[str, Mapping[str, Any]]


def answer(
    modules: Iterable[Any], phase: str, *, calls: Mapping[str, Mapping[str, Sequence[Call]]], sites: Sequence[str]
) -> list[str]:
    """Names of those that match, or fail, which the compile is to tell.

    Args:
        calls: By phase and name, functions (`package.module:name`) with their keyword arguments.
        sites: Folders of packages that bring them.
    """
    for folder in sites:
        site.addsitedir(folder)
    (module,) = modules
    written = io.BytesIO()
    module.operation.write_bytecode(written)
    found = []
    for name, chain in calls[phase].items():
        if any(_matches(module, *call) for call in chain):
            found.append(name)
            module = ir.Module.parse(written.getvalue())
    return found


def _matches(module: Any, function: str, options: Mapping[str, Any]) -> bool:
    package, _, name = function.partition(":")
    try:
        return bool(getattr(importlib.import_module(package), name)(module, **options))
    except Exception:
        return True
