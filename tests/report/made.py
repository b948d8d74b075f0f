"""Pieces of hand-made runs; each argument is what the test is about."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from harness.records.case import Case
from harness.records.run import (
    SCHEMA_VERSION,
    Build,
    Check,
    Header,
    IrCounts,
    ModelRecord,
    Reference,
    Round,
    Sizes,
    Statistics,
    ToolchainRecord,
    Turn,
)


def make_case(model: str, variant: str, device: str = "local-sync", **given: Any) -> Case:
    """A case of a suite whose baseline is `stock`."""
    facts: dict[str, Any] = {
        "id": f"{len(model):04x}{len(variant):04x}{len(device):08x}",
        "name": f"{model}/{variant}@{device}",
        "toolchain": "3.13.0",
        "baseline": variant == "stock",
        "uri": device,
        "backend": "llvm-cpu",
        "pin": False,
        "compile_flags": ("--iree-hal-target-device=local",),
        "run_flags": (),
        "plugins": (),
        "tags": (),
    }
    return Case(model=model, variant=variant, device=device, **{**facts, **given})


def make_build(case: Case, *, code: str, dispatches: int, copies: int, transient: int, **given: Any) -> Build:
    """A build that succeeded; `code` stands for the module's bytes."""
    facts: dict[str, Any] = {
        "cache_key": f"key of {case.name}",
        "compile_ns": 2_310_000_000 + 40_000_000 * dispatches,
        "peak_rss_bytes": 310 * 2**20,
        "module_sha256": f"{code:0<64}",
        "sizes": Sizes(
            module_bytes=812_345 + 9_000 * dispatches,
            vm_bytes=21_004,
            constant_bytes=524_288,
            dispatch_bytes={f"d{index}.so": 9_000 for index in range(dispatches)},
        ),
        "statistics": Statistics(
            dispatches=dispatches,
            copies=copies,
            fills=5,
            awaits=1,
            submissions=1,
            executables=dispatches,
            transient_bytes=transient,
            constant_bytes=524_288,
            variable_bytes=0,
        ),
        "outputs": 1,
    }
    return Build(case=case.name, command=compile_command(case), **{**facts, **given})


def compile_command(case: Case) -> tuple[str, ...]:
    return (
        "iree-compile",
        "model.mlir",
        "-o",
        "module.vmfb",
        *case.compile_flags,
        "--iree-vm-emit-polyglot-zip=true",
        "--iree-scheduling-dump-statistics-format=json",
        "--iree-scheduling-dump-statistics-file=statistics.json",
    )


def make_counts(case: Case, *, linalg: int | None, updates: int, allocations: int) -> IrCounts:
    """How many ops a case has; linalg is None where a plugin rewrote the program after that phase."""
    later = {"flow/flow.tensor.update": updates, "bufferized/executables:memref.alloc*": allocations}
    return IrCounts(case=case.name, counts=later if linalg is None else {"input/linalg.*": linalg, **later})


def make_check(case: Case, against: str, **given: Any) -> Check:
    where = ("--module=module.vmfb", f"--device={case.uri}", "--function=main", "--input=@input0.npy")
    command = ("iree-run-module", *where, "--output=@output0.npy", *case.run_flags)
    facts: dict[str, Any] = {"relative_tolerance": 1e-4, "absolute_tolerance": 1e-5, **given}
    return Check(case=case.name, against=against, command=command, **facts)


def make_reference(case: Case, *real_time_ns: float, **given: Any) -> Reference:
    command = (
        "iree-benchmark-module",
        "--module=module.vmfb",
        f"--device={case.uri}",
        "--function=main",
        "--input=@input0.npy",
        *case.run_flags,
        "--benchmark_repetitions=3",
        "--benchmark_format=json",
    )
    return Reference(case=case.name, command=command, real_time_ns=real_time_ns, **given)


def jitter(step: int) -> float:
    """Between -1 and 1, without a pattern; plain arithmetic, so that it is the same to the last bit everywhere."""
    return step * 37 % 101 / 50 - 1


def make_rounds(
    group: str,
    base_ns: Mapping[str, float],
    *,
    generations: int,
    rounds: int,
    noisy: str = "",
    instructions: bool = True,
) -> Iterator[Round]:
    """Rounds on a machine whose speed wanders by 3 %, with 0.4 % of noise of each case's own, and 3 % of one's."""
    for generation in range(generations):
        for number in range(rounds):
            wander = 1 + 0.03 * jitter(11 * number + 5 * generation)
            turns = []
            for place, (case, ns) in enumerate(base_ns.items()):
                own = jitter(7 * number + 31 * place + generation) + jitter(17 * generation + 23 * place)
                wall_ns = int(ns * wander * (1 + (0.015 if case == noisy else 0.002) * own))
                counters = {"instructions": int(ns * 3.1) + 7 * number} if instructions else {}
                turns.append(Turn(case=case, calls=1, wall_ns=wall_ns, cpu_ns=wall_ns, counters=counters))
            yield Round(
                group=group,
                generation=generation,
                round=number,
                started_unix_ns=1_795_000_000_000_000_000 + number,
                turns=tuple(turns if number % 2 else reversed(turns)),
            )


def make_header(cases: tuple[Case, ...], **given: Any) -> Header:
    models = dict.fromkeys(case.model for case in cases)
    facts: dict[str, Any] = {
        "schema_version": SCHEMA_VERSION,
        "id": "20261121-031500-esrgan",
        "suite": "suites/esrgan.toml",
        "suite_name": "esrgan",
        "suite_description": "ESRGAN's residual dense block under the flags of iree#11102.",
        "suite_sha256": "5a" * 32,
        "started": "2026-11-21T03:15:00+00:00",
        "harness_version": "0.1.0",
        "harness_commit": "35217dcf00dfeedc0ffee+dirty",
        "command": ("harness", "run", "suites/esrgan.toml"),
        "baseline": "stock",
        "toolchains": (ToolchainRecord(version="3.13.0", revision="e4a3b04d7a0c51b9", compiler_sha256="c0" * 32),),
        "models": tuple(
            ModelRecord(
                name=model,
                mlir_sha256="ab" * 32,
                mlir_bytes=1_204_331,
                function="main",
                inputs=("1x64x90x62xf32 random seed 0",),
            )
            for model in models
        ),
        "cases": cases,
        "groups": (),
        "settings": {"budget_s": 120.0, "generations": 5, "seed": 7},
        "environment": {
            "machine": {"id": "3f2a91c04b7e", "system": "Linux", "virtual": True, "hypervisor": "KVM"},
            "cpu": {"model": "AMD EPYC 7B13", "flags": ["avx2", "fma"], "usable_cores": 2},
            "load": {"load_1min": 0.42},
        },
    }
    return Header(**{**facts, **given})
