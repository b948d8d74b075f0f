"""A case's IR files -> its executables and what is outside them, as lines that compare."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from harness.ir.canonical import Line, canonical_lines
from harness.ir.differences import EXECUTABLE_PHASES, PROGRAM_PHASES, Executable
from harness.ir.tools import ask
from harness.process import Limits
from harness.toolchain import Toolchain


@dataclass(frozen=True, kw_only=True)
class ProgramParts:
    """One program at some phases."""

    program: Mapping[str, tuple[Line, ...]]  # What is outside executables, by phase
    executables: tuple[Executable, ...]  # In the order in which they stand at the last phase that has any
    target: str = ""  # What they are compiled for, as MLIR writes the target of the first; "" where no phase says it


def read_parts(files: Mapping[str, Path], *, toolchain: Toolchain, limits: Limits) -> ProgramParts:
    """Take programs apart, as `dump_phases` gives them."""
    answers = ask(
        "parts",
        files,
        name="the reader of executables",
        toolchain=toolchain,
        limits=limits,
        where=f" at {', '.join(files)}",
        remedy="leave phases out",
    )
    program: dict[str, tuple[Line, ...]] = {}
    code: dict[str, dict[str, tuple[Line, ...]]] = {}
    dispatches: dict[str, int] = {}
    order: list[str] = []
    target = ""
    for phase in files:
        found = answers[phase]
        if phase in PROGRAM_PHASES:
            program[phase] = canonical_lines(found["program"])
        if phase not in EXECUTABLE_PHASES:
            continue
        for executable in found["executables"]:
            name = executable["name"]
            code.setdefault(name, {})[phase] = canonical_lines(executable["texts"], executable["names"])
            dispatches[name] = max(dispatches.get(name, 0), executable["dispatches"])
            target = target or next(iter(executable["targets"]), "")
        order = [executable["name"] for executable in found["executables"]] or order
    executables = tuple(
        Executable(name=name, phases=code[name], dispatches=dispatches[name]) for name in dict.fromkeys(order)
    )
    return ProgramParts(program=program, executables=executables, target=target)
