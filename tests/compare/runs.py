"""Runs as a comparison sees them; each argument is what the test is about."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from harness.compare.pairs import Side
from harness.records.case import Case
from harness.records.run import Build, Failure, ModelRecord, Round, Run, ToolchainRecord, Turn
from tests.builders import make_case, make_header

TOOLCHAIN = ToolchainRecord(version="0.0.0", revision="", compiler_sha256="cc" * 32)
MODEL = ModelRecord(name="net", mlir_sha256="aa" * 32, mlir_bytes=100, function="main", inputs=())


def a_case(variant: str = "stock", *, model: str = "net", device: str = "cpu", **changes: Any) -> Case:
    """As make_case, with any field changed; two cases are the same one if their ids are."""
    return replace(make_case(variant, model=model, device=device), **changes)


def a_build(case: Case | str, code: str | None = None, failure: Failure | None = None, **fields: Any) -> Build:
    """A build whose module is made of `code`; by default the case's own."""
    name = case if isinstance(case, str) else case.name
    module = None if failure is not None else sha256(code or name)
    command = ("iree-compile", "model.mlir", "-o", "module.vmfb")
    return Build(
        case=name, **{"command": command, "cache_key": "ab" * 32, **fields}, module_sha256=module, failure=failure
    )


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def a_side(
    *cases: Case,
    label: str = "results/base",
    code: Mapping[str, str] | None = None,
    failures: Mapping[str, Failure] | None = None,
    uncompiled: Sequence[str] = (),
    toolchains: Sequence[ToolchainRecord] = (TOOLCHAIN,),
    model: ModelRecord = MODEL,
    rounds: Sequence[Round] = (),
    environment: Mapping[str, Mapping[str, Any]] | None = None,
    **header: Any,
) -> Side:
    """A finished run of these cases; each has a module of its own unless `code` says what it is made of."""
    builds = [
        a_build(case, (code or {}).get(case.name), (failures or {}).get(case.name))
        for case in cases
        if case.name not in uncompiled
    ]
    here = {"machine": {"id": "3f2a91c04b7e"}} if environment is None else {**environment}
    run = Run(
        header=make_header(cases=cases, toolchains=tuple(toolchains), models=(model,), environment=here, **header),
        builds=tuple(builds),
        rounds=tuple(rounds),
        finished=True,
    )
    return Side(run, label)


def a_round(number: int = 0, generation: int = 0, *, calls: int = 10, **wall_ns: float) -> Round:
    """One turn of each case, in the order given; `stock=100` is net/stock@cpu at 100 ns a call."""
    turns = tuple(
        Turn(case=f"net/{variant}@cpu", calls=calls, wall_ns=int(calls * ns), cpu_ns=int(calls * ns))
        for variant, ns in wall_ns.items()
    )
    return Round(group="net@cpu", generation=generation, round=number, started_unix_ns=0, turns=turns)
