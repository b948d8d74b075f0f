"""Modules of the scripted toolchain, an iree-profile that prints what a test gives it, and executables."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from harness.compare.samplers import Module
from harness.ir.canonical import canonical_lines
from harness.ir.differences import Executable
from harness.measure import LoadableModule
from harness.toolchain import Toolchain
from tests.compare.runs import a_build, a_case

Row = Mapping[str, Any]


def a_module(
    toolchain: Toolchain,
    folder: Path,
    *,
    uri: str = "local-sync",
    run_flags: Sequence[str] = (),
    arguments: Sequence[Mapping[str, Any]] = (),
    parameters: Mapping[str, Path] | None = None,
    compile_flags: Sequence[str] = (),
    **changes: Any,
) -> Module:
    """A case's module, whose file is there; `changes` are of its build."""
    case = a_case(uri=uri, run_flags=tuple(run_flags))
    folder.mkdir(parents=True, exist_ok=True)
    mlir, module = folder / "net.mlir", folder / "built.vmfb"
    mlir.write_text("func.func @main()")
    module.write_bytes(b"code")
    command = ("iree-compile", "model.mlir", "-o", "module.vmfb", *compile_flags)
    loadable = LoadableModule(
        name=case.name,
        module=module,
        function="main",
        arguments=tuple(arguments),
        parameters=parameters or {},
        run_flags=case.run_flags,
        toolchain=toolchain,
    )
    build = a_build(case, **{"command": command, **changes})
    return Module(files=(), case=case, loadable=loadable, mlir=mlir, build=build)


def with_profiler(toolchain: Toolchain, **prints: Sequence[Row]) -> Toolchain:
    """Give a scripted toolchain an iree-profile: `dispatch` and `queue` are the rows that these commands print."""
    for command, rows in prints.items():
        (toolchain.runtime_tools / f"{command}.jsonl").write_text(lines(rows))
    program = toolchain.runtime_tools / "iree-profile"
    program.write_text('#!/bin/sh\ncat "$(dirname "$0")/$1.jsonl"\n')
    program.chmod(0o755)
    return toolchain


def lines(rows: Sequence[Row]) -> str:
    return "".join(f"{json.dumps(row)}\n" for row in rows)


def a_group(key: str, *, ordinal: int = 0) -> Row:
    """A row of `iree-profile dispatch` that sums one dispatch up."""
    where = {"physical_device_ordinal": 0, "executable_id": 1, "function_ordinal": ordinal}
    return {"type": "host_dispatch_group", "key": key, **where}


def a_device_event(key: str, start: int, end: int, *, ns_per_tick: int = 1) -> Row:
    """A row of `iree-profile dispatch --dispatch_events`."""
    ticks = {"start_tick": start, "end_tick": end, "duration_ticks": end - start}
    times = {"duration_ns": ns_per_tick * (end - start), "clock_fit_available": True, "valid": True}
    return {"type": "dispatch_event", "key": key, **ticks, **times}


def an_event(op: str, start: int, end: int, *, ordinal: int = 2**32 - 1, valid: bool = True) -> Row:
    """A row of `iree-profile queue` with an operation on the host."""
    where = {"physical_device_ordinal": 0, "executable_id": 1 if op == "dispatch" else 0, "function_ordinal": ordinal}
    times = {"start_host_time_ns": start, "end_host_time_ns": end, "valid": valid}
    return {"type": "host_execution_event", "op": op, **where, **times}


def an_executable(name: str, code: str = "") -> Executable:
    """One whose code is this at its first phase and at its last; by default no other executable's."""
    texts = {"flow": code or name, "executable-targets": code or name}
    return Executable(name=name, phases={phase: canonical_lines([text]) for phase, text in texts.items()})
