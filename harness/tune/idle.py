"""Plugins that find nothing to change in a program: the program is looked at once for all of them, and not compiled."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from harness.bisect.variants import Way
from harness.compare.samplers import Module
from harness.compile.program import sites
from harness.compile.request import MODULE_FILE
from harness.errors import CaseError
from harness.explain.alone import dump
from harness.ir.dump import entry_phase
from harness.ir.tools import ask
from harness.plugins import apply_plugin
from harness.plugins.chain import RewriteCall, arrange
from harness.process import Limits
from harness.tune.changes import Change, combine


def looks_of(start: Way, change: Change) -> tuple[RewriteCall, ...]:
    """Rewrites of which one matches something where a change does anything to the start's program; (): nothing tells.

    Nothing tells where a plugin would act before the start's own have.
    """
    way = combine(start, [change])
    if way is None or not change.way.plugins or way.plugins[: len(start.plugins)] != start.plugins:
        return ()
    (use,) = change.way.plugins
    applied = apply_plugin(use.name, use.options)
    steps = applied.steps if applied.plugin.finds is None else (applied.plugin.finds,)
    rewrites = arrange([replace(applied, steps=steps)], (), "plugins").rewrites
    return rewrites if len(rewrites) == len(steps) else ()


def find_idle(module: Module, looks: Mapping[str, Sequence[RewriteCall]], limits: Limits) -> list[str]:
    """The names of those whose rewrites match nothing in a compiled program; [] where that cannot be told."""
    calls: dict[str, dict[str, list[Any]]] = {}
    for name, rewrites in looks.items():
        for call in rewrites:
            calls.setdefault(call.phase, {}).setdefault(name, []).append((call.function, dict(call.options)))
    entry, toolchain = entry_phase(module.build.command), module.loadable.toolchain
    files = dict.fromkeys(calls, module.mlir)
    ask_all = partial(ask, "matches", where="", sites=sites())
    try:
        with tempfile.TemporaryDirectory(prefix="harness-look-") as folder:
            for phase in calls.keys() - {entry}:
                files[phase] = Path(folder, phase, MODULE_FILE)
                dump(module, (f"--compile-to={phase}", "--emit-mlir-bytecode"), files[phase].parent, limits)
            found = ask_all(files, toolchain=toolchain, limits=limits, calls=calls) if files else {}
    except CaseError:  # their compiles tell
        return []
    return [name for name in looks if not any(name in names for names in found.values())]
