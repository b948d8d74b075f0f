"""A made-up history -> whole run folders, written by the harness's own writer."""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.history import made
from benchmarks.history.made import NOISE, MadeCase, Night, digest, made_cases, nights
from harness.records.case import Case
from harness.records.run import (
    SCHEMA_VERSION,
    Build,
    Check,
    Header,
    ModelRecord,
    Reference,
    Round,
    Run,
    Sizes,
    Statistics,
    ToolchainRecord,
    Turn,
)
from harness.store.run_directory import RunDirectory
from harness.store.schema import Role

_FLAGS = (
    "--iree-hal-target-device=local",
    "--iree-hal-local-target-device-backends=llvm-cpu",
    "--iree-llvmcpu-target-cpu=host",
)
_CALL = ("--module=module.vmfb", "--device=local-sync", "--function=main", "--input=@input0.npy")
# Between turns; a run's times need only be in order.
_ROUND_NS = 10_000_000


@dataclass(frozen=True, kw_only=True)
class Folders:
    """Which run folders are made.

    Attributes:
        cases: Of each run, for each of its toolchains.
        roles: Of the toolchains: `reference` alone gives runs whose modules are equal night after night.
        generations: Timed ones of each group.
        rounds: Of each generation.
    """

    cases: int
    runs: int
    roles: tuple[Role, ...] = ("newest",)
    generations: int = 5
    rounds: int = 4


def write_runs(
    results: Path, folders: Folders, *, report: Callable[[Run], str] = lambda _: "", first: int = 0
) -> list[Path]:
    """Write finished runs, one a night, and return their folders, the oldest first.

    Args:
        report: What each run's report.md says; that of very many cases takes longer than all else.
        first: Number of the night of the first.
    """
    cases = list(made_cases(folders.cases, folders.runs))
    return [_write_run(results, folders, cases, night, report) for night in nights(first + folders.runs)[first:]]


def _write_run(
    results: Path, folders: Folders, cases: Sequence[MadeCase], night: Night, report: Callable[[Run], str]
) -> Path:
    toolchains = {role: _toolchain(night, role) for role in folders.roles}
    planned = [(one, role, _case(one, toolchains[role].version, folders)) for role in folders.roles for one in cases]
    with RunDirectory.create(results, _header(night, [case for *_, case in planned], toolchains.values())) as directory:
        for one, role, case in planned:
            directory.append(_build(one, case, night, role))
            directory.append(_check(case))
            directory.append(_reference(case, one.latency_ns * one.level(night.number, role)))
        for timed in _rounds(planned, folders, night):
            directory.append(timed)
        directory.finish(report)
    return directory.path


def _toolchain(night: Night, role: Role) -> ToolchainRecord:
    version = made.REFERENCE if role == "reference" else night.toolchain
    revision = digest(version, 40)
    return ToolchainRecord(version=version, revision=revision, compiler_sha256=digest(revision, 64))


def _case(one: MadeCase, toolchain: str, folders: Folders) -> Case:
    first = toolchain == made.REFERENCE or len(folders.roles) == 1
    return Case(
        id=one.id,
        name=one.name if len(folders.roles) == 1 else f"{one.name}:{toolchain}",
        model=one.model,
        variant=one.variant,
        device=made.DEVICE,
        toolchain=toolchain,
        baseline=first and one.variant == made.VARIANTS[0],
        uri="local-sync",
        backend="llvm-cpu",
        pin=False,
        compile_flags=(*_FLAGS, f"--iree-made-variant={one.variant}"),
        run_flags=(),
        plugins=(),
        tags=(),
    )


def _header(night: Night, cases: Sequence[Case], toolchains: Iterable[ToolchainRecord]) -> Header:
    used = tuple(toolchains)
    models = dict.fromkeys(case.model for case in cases)
    chosen = [word for one in used for word in ("--toolchain", one.version)]
    return Header(
        schema_version=SCHEMA_VERSION,
        id=night.run,
        suite=f"suites/{made.SUITE}.toml",
        suite_name=made.SUITE,
        suite_description="A made-up suite: nothing in it was ever compiled.",
        suite_sha256=digest(made.SUITE, 64),
        started=night.started.isoformat(timespec="seconds"),
        harness_version="0.1.0",
        harness_commit=digest(f"harness {night.number // 30}", 40),
        command=("harness", "run", f"suites/{made.SUITE}.toml", *chosen),
        baseline=made.VARIANTS[0],
        toolchains=used,
        models=tuple(
            ModelRecord(
                name=model,
                mlir_sha256=digest(model, 64),
                mlir_bytes=1_204_331,
                function="main",
                inputs=("1x64x90x62xf32 random seed 0",),
            )
            for model in models
        ),
        cases=tuple(cases),
        groups=(),
        settings={"budget_s": 120.0, "generations": 5, "seed": 0, "jobs": 2, "measure": True},
        environment={
            "machine": {"id": made.MACHINE, "system": "Linux", "distribution": made.SYSTEM, "architecture": "x86_64"},
            "cpu": {"model": made.CPU, "logical_cores": made.CORES, "usable_cores": made.CORES},
            "load": {"load_1min": 0.2},
            "devices": {made.DEVICE: made.DEVICE_FACTS},
        },
    )


def _build(one: MadeCase, case: Case, night: Night, role: Role) -> Build:
    changed = one.fate == "step" and role == "newest" and night.number >= one.at
    dispatches = one.dispatches + changed
    return Build(
        case=case.name,
        command=("iree-compile", "model.mlir", "-o", "module.vmfb", *case.compile_flags),
        cache_key=digest(f"key {case.name} {case.toolchain}", 64),
        compile_ns=1_000_000_000 + 40_000_000 * dispatches,
        peak_rss_bytes=150_000_000,
        module_sha256=digest(f"{case.id} {case.toolchain}", 64),
        sizes=Sizes(
            module_bytes=800_000 + 9_000 * dispatches,
            vm_bytes=9_020,
            constant_bytes=524_288,
            dispatch_bytes={"model_linked_embedded_elf_x86_64.so": 9_000 * dispatches},
        ),
        statistics=Statistics(
            dispatches=dispatches,
            copies=5,
            fills=2,
            awaits=1,
            submissions=1,
            executables=dispatches,
            transient_bytes=1_048_576 * (1 + one.dispatches // 3),
            constant_bytes=524_288,
            variable_bytes=0,
        ),
        outputs=1,
    )


def _check(case: Case) -> Check:
    return Check(
        case=case.name,
        against=f"{case.model}/{made.VARIANTS[0]}@{case.device}",
        command=("iree-run-module", *_CALL, "--output=@output0.npy"),
        relative_tolerance=1e-4,
        absolute_tolerance=1e-5,
        max_absolute=0.0,
        max_relative=0.0,
    )


def _reference(case: Case, latency_ns: float) -> Reference:
    return Reference(
        case=case.name,
        command=("iree-benchmark-module", *_CALL, "--benchmark_repetitions=3", "--benchmark_format=json"),
        real_time_ns=(latency_ns, latency_ns * 1.001, latency_ns * 0.999),
        host_peak_bytes=0,
        device_peak_bytes=22_183_936,
        load_1min=0.2,
    )


def _rounds(planned: Sequence[tuple[MadeCase, Role, Case]], folders: Folders, night: Night) -> Iterator[Round]:
    """Group by group; noise of a case's generations, and a tenth as much of each turn."""
    random = np.random.default_rng(night.number)
    groups: dict[str, list[tuple[MadeCase, Role, Case]]] = {}
    for entry in planned:
        groups.setdefault(entry[2].group, []).append(entry)
    started_ns = int(night.started.timestamp()) * 10**9
    for group, members in groups.items():
        shape = (folders.generations, folders.rounds, len(members))
        noise = NOISE * (random.standard_normal((shape[0], 1, shape[2])) + 0.1 * random.standard_normal(shape))
        for generation in range(folders.generations):
            for number in range(folders.rounds):
                started_ns += _ROUND_NS
                turns = [
                    _turn(case, one.latency_ns * one.level(night.number, role), float(noise[generation, number, place]))
                    for place, (one, role, case) in enumerate(members)
                ]
                yield Round(
                    group=group,
                    generation=generation,
                    round=number,
                    started_unix_ns=started_ns,
                    turns=tuple(turns if number % 2 else reversed(turns)),
                )


def _turn(case: Case, latency_ns: float, noise: float) -> Turn:
    wall_ns = int(latency_ns * math.exp(noise))
    return Turn(case=case.name, calls=1, wall_ns=wall_ns, cpu_ns=wall_ns)
