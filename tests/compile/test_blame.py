"""Whose fault an error of iree-compile is: what it prints names a plugin's file, entry or pass, or it names none."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from harness.compile.request import CompileRequest
from harness.compile.tool import blamed_plugin
from harness.plugins import (
    Applied,
    CompilerPlugin,
    Flags,
    PassPipeline,
    PdlSpec,
    TransformLibrary,
    TransformSpec,
    TuningSpec,
    written_file,
)
from harness.plugins.chain import arrange
from harness.process import Limits
from harness.toolchain import Toolchain
from tests.builders import a_plugin, applied, make_case

FILE = written_file("spec.mlir", "module {}")
NAME = FILE.unique_name
OWN = "--iree-preprocessing-pass-pipeline=builtin.module(inline)"


@pytest.fixture
def request_with(real_toolchain: Toolchain) -> CompileRequest:
    """A request that is never run."""
    return CompileRequest(
        case=make_case(),
        toolchain=real_toolchain,
        model=Path("nowhere"),
        model_sha256="",
        function="main",
        host_cpu="",
        limits=Limits(),
    )


def blamed(request: CompileRequest, stderr: str, *plugins: Applied, flags: tuple[str, ...] = ()) -> str | None:
    return blamed_plugin(replace(request, plugins=plugins, arranged=arrange(plugins, flags, "w")), stderr)


OTHER = applied(a_plugin("other", Flags(compile=("--a",))))
SPEC = applied(a_plugin("spec", TransformSpec(file=FILE)))
CSE = applied(a_plugin("cse", PassPipeline(text="builtin.module(cse)")))
BOGUS = applied(a_plugin("bogus", PassPipeline(text="builtin.module(util.func(bogus))")))


@pytest.mark.parametrize("kind", [TransformSpec, PdlSpec, TuningSpec, TransformLibrary])
def test_an_error_in_a_plugins_file(request_with: CompileRequest, kind: type) -> None:
    plugin = applied(a_plugin("spec", kind(file=FILE)))
    assert blamed(request_with, f"{NAME}:1:10: error: custom op 'nonsense' is unknown", OTHER, plugin) == "spec"
    assert blamed(request_with, f"model.mlir:6:1: error: Failed to load library: {NAME}", OTHER, plugin) == "spec"


def test_a_note_points_at_the_file_that_an_error_came_from(request_with: CompileRequest) -> None:
    stderr = f"model.mlir:6:1: error: failed to apply\n{NAME}:4:3: note: called from here"
    assert blamed(request_with, stderr, OTHER, SPEC) == "spec"


def test_a_warning_about_a_file_is_not_what_the_compile_failed_with(request_with: CompileRequest) -> None:
    stderr = f"{NAME}:2:3: warning: op argument #0 is not consumed\nmodel.mlir:9:1: error: no such target"
    assert blamed(request_with, stderr, OTHER, SPEC) is None


@pytest.mark.parametrize(
    ("step", "entry"),
    [
        (TransformSpec(file=FILE), "__transform_main"),
        (TuningSpec(file=FILE), "__kernel_config"),
        (TransformLibrary(file=FILE), "__kernel_config"),
        (TransformLibrary(file=FILE, entry="tile"), "tile"),
    ],
)
def test_a_spec_without_its_entry(
    request_with: CompileRequest, step: TransformSpec | TuningSpec | TransformLibrary, entry: str
) -> None:
    stderr = f"model.mlir:0:0: error: could not find a nested named sequence with name: {entry}"
    assert blamed(request_with, stderr, OTHER, applied(a_plugin("spec", step))) == "spec"
    assert blamed(request_with, stderr, OTHER) is None


def test_a_compiler_plugin_that_does_not_load_or_registers_something_else(request_with: CompileRequest) -> None:
    plugin = applied(a_plugin("own", CompilerPlugin(file=FILE, activate=("mine",))))
    load = f"[IREE Dynamic Plugin ERROR]: could not load plugin library './{NAME}': file too short"
    activate = "[IREE plugins error]: could not activate requested IREE plugin 'mine' because it is not registered"
    assert blamed(request_with, load, OTHER, plugin) == "own"
    assert blamed(request_with, activate, OTHER, plugin) == "own"
    assert blamed(request_with, activate.replace("mine", "yours"), OTHER, plugin) is None


UNKNOWN = "MLIR Textual PassPipeline Parser:1:11: error: 'bogus' does not refer to a registered pass or pass pipeline"
UNBALANCED = "ERROR: mismatched parenthesis in pass pipeline `builtin.module(cse,util.func(bogus)`"


def test_of_several_pipelines_the_one_that_has_the_unknown_pass(request_with: CompileRequest) -> None:
    assert blamed(request_with, f"{UNKNOWN}\n{UNBALANCED}", CSE, BOGUS) == "bogus"
    assert blamed(request_with, UNKNOWN, CSE) is None, "no plugin has it"


def test_a_pipeline_that_is_a_flag_of_a_plugin(request_with: CompileRequest) -> None:
    flags = applied(a_plugin("flags", Flags(compile=("--iree-preprocessing-pass-pipeline=builtin.module(bogus)",))))
    assert blamed(request_with, UNKNOWN, CSE, flags) == "flags"


def test_an_error_that_names_no_pass_is_the_only_pipelines(request_with: CompileRequest) -> None:
    assert blamed(request_with, UNBALANCED, OTHER, CSE) == "cse"
    assert blamed(request_with, UNBALANCED, CSE, BOGUS) is None
    assert blamed(request_with, UNBALANCED, CSE, flags=(OWN,)) is None, "it may be the variant's own"


def test_an_unknown_pass_of_the_variants_own_flag_is_no_plugins_fault(request_with: CompileRequest) -> None:
    assert blamed(request_with, UNKNOWN.replace("bogus", "inline"), CSE, flags=(OWN,)) is None


def test_other_errors_are_nobodys(request_with: CompileRequest) -> None:
    stderr = "model.mlir:9:1: error: 'linalg.matmul' op failed to legalize"
    assert blamed(request_with, stderr) is None
    assert blamed(request_with, stderr, OTHER, CSE, SPEC) is None
