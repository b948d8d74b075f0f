"""The executables of a real program at each phase, and what is outside them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from harness.ir.differences import EXECUTABLE_PHASES, first_difference, match_executables
from harness.ir.program_parts import ProgramParts, read_parts
from harness.toolchain import Toolchain
from tests.ir.conftest import LIMITS, MODEL, WEIGHT, Dump

PHASES = ("start", *EXECUTABLE_PHASES)


@pytest.fixture(scope="module")
def parts(dumps: Mapping[str, Path], real_toolchain: Toolchain) -> ProgramParts:
    return read_parts({phase: dumps[phase] for phase in PHASES}, toolchain=real_toolchain, limits=LIMITS)


def test_each_executable_is_there_at_every_phase(parts: ProgramParts) -> None:
    for executable in parts.executables:
        assert tuple(executable.phases) == EXECUTABLE_PHASES, executable.name
        assert executable.operation
        assert executable.dispatches >= 1
    assert any(executable.kind == "conv" for executable in parts.executables)
    (convolution,) = (executable for executable in parts.executables if executable.kind == "conv")
    assert convolution.pipeline
    assert any("lowering_config" in line.text for line in convolution.phases["executable-configurations"])
    assert 'cpu = "haswell"' in parts.target


def test_outside_them_is_the_program_without_its_weights(parts: ProgramParts) -> None:
    assert tuple(parts.program) == ("start", "flow", "encodings", "stream")
    lines = [line.text for phase in parts.program.values() for line in phase]
    assert any("flow.dispatch" in line for line in lines)
    assert not any(
        WEIGHT[:64] in line or line.lstrip().startswith(("func.func @main_dispatch", "hal.exec")) for line in lines
    )


def test_another_program_is_matched_and_differs_where_it_is_another(
    parts: ProgramParts, dump: Dump, real_toolchain: Toolchain
) -> None:
    """Its name and those of its dispatches are others; its convolution has a minimum where there is a maximum."""
    files = dump(MODEL.replace("@main", "@net").replace("maximumf", "minimumf"), PHASES)
    other = read_parts(files, toolchain=real_toolchain, limits=LIMITS)
    matches = match_executables(parts.executables, other.executables)
    assert all(match.base and match.head for match in matches)
    assert {match.base.kind: match.by for match in matches if match.base and match.by != "same code"} == {
        "conv": "operation and shape"
    }
    (changed,) = (match for match in matches if match.by != "same code")
    assert changed.base
    assert changed.head
    assert first_difference(changed.base.phases, changed.head.phases, EXECUTABLE_PHASES) == "flow"
