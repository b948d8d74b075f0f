"""Plugins that find nothing to change in a program: the program is looked at once for all of them, and not compiled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from harness.compare.samplers import Module
from harness.compile.program import sites
from harness.compile.request import MODULE_FILE
from harness.explain.alone import dump
from harness.ir.dump import entry_phase
from harness.ir.tools import ask
from harness.plugins.chain import RewriteCall
from harness.process import Limits


def find_idle(module: Module, looks: Mapping[str, Sequence[RewriteCall]], folder: Path, limits: Limits) -> list[str]:
    """Those of some changes none of whose rewrites matches anything in a compiled program.

    Args:
        looks: Rewrites by the change's name.
        folder: An empty one.

    Raises:
        CaseError: That cannot be told.
    """
    calls: dict[str, dict[str, list[tuple[str, Mapping[str, Any]]]]] = {}
    for name, rewrites in looks.items():
        for call in rewrites:
            calls.setdefault(call.phase, {}).setdefault(name, []).append((call.function, call.options))
    files = {}
    for phase in calls:
        files[phase] = module.mlir
        if phase != entry_phase(module.build.command):
            dump(module, (f"--compile-to={phase}", "--emit-mlir-bytecode"), folder / phase, limits)
            files[phase] = folder / phase / MODULE_FILE
    toolchain, who = module.loadable.toolchain, "the look for what plugins match"
    where = f" on {module.case.model}"
    found = ask(
        "matches",
        files,
        name=who,
        toolchain=toolchain,
        limits=limits,
        where=where,
        remedy="",
        calls=calls,
        sites=sites(),
    )
    busy = {name for names in found.values() for name in names}
    return [name for name in looks if name not in busy]
