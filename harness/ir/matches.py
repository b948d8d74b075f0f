"""Which rewrites match something in a program; it runs under a toolchain's own Python, for harness.ir.child."""

from __future__ import annotations

import io
import pkgutil
import site
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from iree.compiler import ir


def answer(
    modules: Iterable[Any], phase: str, *, calls: Mapping[str, Mapping[str, Sequence[Any]]], sites: Sequence[str]
) -> list[str]:
    """Names of those that match, or fail, which their compile is to tell."""
    for folder in sites:
        site.addsitedir(folder)
    (module,) = modules
    module.operation.write_bytecode(written := io.BytesIO())
    found = []
    for name, chain in calls[phase].items():
        try:
            matches = any(pkgutil.resolve_name(function)(module, **options) for function, options in chain)
        except Exception:
            matches = True
        if matches:
            found.append(name)
            module = ir.Module.parse(written.getvalue())  # it is changed now
    return found
