"""Whose fault an error of iree-compile is: what it prints names a plugin's file, entry or pass, or it names none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from harness.compile.tool import blamed_plugin
from harness.plugins import (
    Applied,
    CompilerPlugin,
    Flags,
    PassPipeline,
    PdlSpec,
    Step,
    TransformLibrary,
    TransformSpec,
    TuningSpec,
    written_file,
)
from harness.plugins.chain import arrange
from tests.builders import a_plugin, applied
from tests.compile.test_request import BASE


def by(name: str, *steps: Step) -> Applied:
    return applied(a_plugin(name, *steps))


FILE = written_file("spec.mlir", "module {}")
NAME = FILE.unique_name
OTHER = by("other", Flags(compile=("--a",)))
SPECS = [by("spec", kind(file=FILE)) for kind in (TransformSpec, PdlSpec, TuningSpec, TransformLibrary)]
SPEC, _, TUNING, LIBRARY = SPECS
NAMED_LIBRARY = by("spec", TransformLibrary(file=FILE, entry="tile"))
OWN = by("own", CompilerPlugin(file=FILE, activate=("mine",)))
CSE = by("cse", PassPipeline(text="builtin.module(cse)"))
BOGUS = by("bogus", PassPipeline(text="builtin.module(util.func(bogus))"))
BOGUS_FLAG = by("flags", Flags(compile=("--iree-preprocessing-pass-pipeline=builtin.module(bogus)",)))

VARIANTS_OWN = ("--iree-preprocessing-pass-pipeline=builtin.module(inline)",)
UNKNOWN = "MLIR Textual PassPipeline Parser:1:11: error: 'bogus' does not refer to a registered pass or pass pipeline"
UNBALANCED = "ERROR: mismatched parenthesis in pass pipeline `builtin.module(cse,util.func(bogus)`"
NOT_ACTIVE = "[IREE plugins error]: could not activate requested IREE plugin '{}' because it is not registered"
NO_TARGET = "model.mlir:9:1: error: no such target"


def no_entry(name: str) -> str:
    return f"model.mlir:0:0: error: could not find a nested named sequence with name: {name}"


@pytest.mark.parametrize(
    ("stderr", "plugins", "flags", "blamed"),
    [
        *((f"{NAME}:1:10: error: custom op 'nonsense' is unknown", [OTHER, spec], (), "spec") for spec in SPECS),
        *((f"model.mlir:6:1: error: Failed to load library: {NAME}", [OTHER, spec], (), "spec") for spec in SPECS),
        (f"model.mlir:6:1: error: failed to apply\n{NAME}:4:3: note: called from here", [OTHER, SPEC], (), "spec"),
        # A warning about a file is not what the compile failed with.
        (f"{NAME}:2:3: warning: op argument #0 is not consumed\n{NO_TARGET}", [OTHER, SPEC], (), None),
        (no_entry("__transform_main"), [OTHER, SPEC], (), "spec"),
        (no_entry("__kernel_config"), [OTHER, TUNING], (), "spec"),
        (no_entry("__kernel_config"), [OTHER, LIBRARY], (), "spec"),
        (no_entry("tile"), [OTHER, NAMED_LIBRARY], (), "spec"),
        (no_entry("tile"), [OTHER], (), None),
        (f"[IREE Dynamic Plugin ERROR]: could not load library './{NAME}': too short", [OTHER, OWN], (), "own"),
        (NOT_ACTIVE.format("mine"), [OTHER, OWN], (), "own"),
        (NOT_ACTIVE.format("yours"), [OTHER, OWN], (), None),
        (f"{UNKNOWN}\n{UNBALANCED}", [CSE, BOGUS], (), "bogus"),
        (UNKNOWN, [CSE, BOGUS_FLAG], (), "flags"),
        (UNKNOWN, [CSE], (), None),
        # An error that names no pass is the only pipeline's, unless there are two or one is the variant's own.
        (UNBALANCED, [OTHER, CSE], (), "cse"),
        (UNBALANCED, [CSE, BOGUS], (), None),
        (UNBALANCED, [CSE], VARIANTS_OWN, None),
        (UNKNOWN.replace("bogus", "inline"), [CSE], VARIANTS_OWN, None),
        ("model.mlir:9:1: error: 'linalg.matmul' op failed to legalize", [OTHER, CSE, SPEC], (), None),
        (NO_TARGET, [], (), None),
    ],
)
def test_blamed_plugin(stderr: str, plugins: Sequence[Applied], flags: tuple[str, ...], blamed: str | None) -> None:
    request = replace(BASE, plugins=tuple(plugins), arranged=arrange(plugins, flags, "w"))
    assert blamed_plugin(request, stderr) == blamed
